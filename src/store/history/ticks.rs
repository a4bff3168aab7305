//! The index of ticks: it can be checked against the log, and rebuilt from it.

use std::collections::BTreeMap;

use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use super::row::LogRow;
use crate::store::care::{CheckFindings, CheckedRows};
use crate::store::error::StoreError;
use crate::store::table_keys::{LogKey, LogNumber, TickKey, log_name};
use crate::store::tables::{LOG, TICKS};

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
    let describe = |(world, sport, at): TickKey| format!("{} sport number {sport} at {at}", log_name(world));
    for row in log.range::<LogKey>(..)? {
        let (key, value) = row?;
        // A damaged row was reported before.
        let Ok(row) = LOG.unseal(&key.value(), value.value()) else { continue };
        for (tick, sequence) in ticks_of(key.value(), &row) {
            if ticks.get(tick)?.is_none_or(|stored| stored.value() != sequence) {
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

/// The first entry of a world that is kept. The last tick of a sport before it stays: it says as of when its first
/// keyframe is.
fn first_entry(log: &impl ReadableTable<LogKey, &'static [u8]>, world: u8) -> Result<Option<u64>, StoreError> {
    let first = log.range((world, 0)..=(world, u64::MAX))?.next().transpose()?;
    Ok(first.map(|(key, _)| key.value().1))
}

/// Replaces the ticks of the entries that are there.
pub(in crate::store) fn rebuild_ticks(txn: &WriteTransaction) -> Result<(), StoreError> {
    let log = txn.open_table(LOG.definition)?;
    let mut first = BTreeMap::new();
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
                ticks.insert(tick, sequence)?;
            }
        }
    }
    Ok(())
}
