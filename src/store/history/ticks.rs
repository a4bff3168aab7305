//! The index of ticks: it can be checked against the log, and rebuilt from it.
//!
//! It has the ticks of each sport after its first keyframe, and the last one before: that says as of when the keyframe is. The log
//! may have older ones, of a sport that changes more often than another.

use std::collections::BTreeMap;

use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use super::row::LogRow;
use crate::store::care::{CheckFindings, CheckedRows};
use crate::store::error::StoreError;
use crate::store::table_keys::{KeyframeKey, LogKey, LogNumber, TickKey, log_name};
use crate::store::tables::{KEYFRAMES, LOG, TICKS};

/// The ticks of a row's entries; none of what cannot be read.
pub(super) fn ticks_of((world, first): LogKey, row: &LogRow) -> Vec<(TickKey, u64)> {
    let mut ticks = Vec::new();
    for (sequence, entry) in (first..).zip(row.entries().unwrap_or_default()) {
        let sections = entry.view().map(|entry| entry.sections).unwrap_or_default();
        ticks.extend(
            sections.iter().filter_map(|section| Some(((world, section.sport, section.tick?.unix()), sequence))),
        );
    }
    ticks
}

pub(in crate::store) fn check_ticks(
    txn: &ReadTransaction,
    _: &mut CheckedRows,
    findings: &mut CheckFindings,
) -> Result<u64, StoreError> {
    let (ticks, log) = (txn.open_table(TICKS.definition)?, txn.open_table(LOG.definition)?);
    let first_frames = first_frames(&txn.open_table(KEYFRAMES.definition)?)?;
    let describe = |(world, sport, at): TickKey| format!("{} sport number {sport} at {at}", log_name(world));
    for row in log.range::<LogKey>(..)? {
        let (key, value) = row?;
        // A damaged row was reported before.
        let Ok(row) = LOG.unseal(&key.value(), value.value()) else { continue };
        for (tick, sequence) in ticks_of(key.value(), &row) {
            let is_needed = first_frames.get(&(tick.0, tick.1)).is_none_or(|first| *first < sequence);
            if is_needed && ticks.get(tick)?.is_none_or(|stored| stored.value() != sequence) {
                findings.problem(TICKS.name, describe(tick), "the log has it and the index has not");
            }
        }
    }
    let mut count = 0;
    for row in ticks.range::<TickKey>(..)? {
        let (key, sequence) = row?;
        count += 1;
        let world = key.value().0;
        let is_trimmed = first_entry(&log, world)?.is_none_or(|first| sequence.value() < first);
        let row = log.range((world, 0)..=(world, sequence.value()))?.next_back().transpose()?;
        let has_entry = |key: LogKey, bytes: &[u8]| match LOG.unseal(&key, bytes).and_then(|row| row.count()) {
            Ok(count) => sequence.value() < key.1 + count,
            // A damaged row was reported before.
            Err(_) => true,
        };
        if !is_trimmed && !row.is_some_and(|(key, value)| has_entry(key.value(), value.value())) {
            findings.problem(TICKS.name, describe(key.value()), "it points to no entry");
        }
    }
    Ok(count)
}

/// The first entry of a log that is kept.
fn first_entry(log: &impl ReadableTable<LogKey, &'static [u8]>, world: u8) -> Result<Option<u64>, StoreError> {
    let first = log.range((world, 0)..=(world, u64::MAX))?.next().transpose()?;
    Ok(first.map(|(key, _)| key.value().1))
}

/// The entry that the first keyframe of each sport follows.
fn first_frames(
    frames: &impl ReadableTable<KeyframeKey, &'static [u8]>,
) -> Result<BTreeMap<(LogNumber, u16), u64>, StoreError> {
    let (mut first, mut from) = (BTreeMap::new(), Some((0, 0, 0)));
    while let Some(row) = from.map(|from| frames.range(from..)).transpose()?.and_then(|mut rows| rows.next()) {
        let (number, sport, sequence) = row?.0.value();
        first.insert((number, sport), sequence);
        let next_sport = sport.checked_add(1).map(|sport| (number, sport, 0));
        from = next_sport.or_else(|| number.checked_add(1).map(|number| (number, 0, 0)));
    }
    Ok(first)
}

/// Replaces the ticks of the entries that are there.
pub(in crate::store) fn rebuild_ticks(txn: &WriteTransaction) -> Result<(), StoreError> {
    let log = txn.open_table(LOG.definition)?;
    let first_frames = first_frames(&txn.open_table(KEYFRAMES.definition)?)?;
    let (mut first, mut before_frames) = (BTreeMap::new(), BTreeMap::new());
    for number in 0..=LogNumber::MAX {
        first.extend(first_entry(&log, number)?.map(|first| (number, first)));
    }
    let is_trimmed = |number: LogNumber, sequence: u64| first.get(&number).is_none_or(|first| sequence < *first);
    let mut ticks = txn.open_table(TICKS.definition)?;
    ticks.retain(|(number, _, _): TickKey, sequence| is_trimmed(number, sequence))?;
    for row in log.range::<LogKey>(..)? {
        let (key, value) = row?;
        if let Ok(row) = LOG.unseal(&key.value(), value.value()) {
            for (tick, sequence) in ticks_of(key.value(), &row) {
                let sport = (tick.0, tick.1);
                if first_frames.get(&sport).is_none_or(|first| *first < sequence) {
                    ticks.insert(tick, sequence)?;
                } else {
                    before_frames.insert(sport, (tick, sequence));
                }
            }
        }
    }
    for (tick, sequence) in before_frames.into_values() {
        ticks.insert(tick, sequence)?;
    }
    Ok(())
}
