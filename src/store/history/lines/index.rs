//! The indexes of events in the lines: they can be checked against the rows of the events, and rebuilt from them.

use std::collections::BTreeSet;

use redb::{Key, ReadTransaction, ReadableTable, WriteTransaction};

use super::event::id_hash;
use super::pieces::{block_of, read_block};
use crate::store::care::{CheckFindings, CheckedRows};
use crate::store::codec::Flaw;
use crate::store::error::StoreError;
use crate::store::history::read::LogError;
use crate::store::table_keys::{EventKey, LineDayKey, LineEventKey, LineKey};
use crate::store::tables::{ENDS, IndexTable, LINE_DAYS, LINE_EVENTS, LINES};

fn entry_of(key: EventKey, row: &[u8]) -> Result<LineEventKey, Flaw> {
    let id = ENDS.unseal(&key, row)?.event_id()?;
    Ok((key.0, key.1, id_hash(&id), key.2))
}

fn day_of(key: EventKey, row: &[u8]) -> Result<LineDayKey, Flaw> {
    let ends = ENDS.unseal(&key, row)?.read()?;
    Ok((key.0, key.1, ends.day(), key.2))
}

/// Reports events that an index lacks, and returns all events.
fn check_events<K: Key + 'static>(
    txn: &ReadTransaction,
    index: &IndexTable<K, ()>,
    entry_of: impl Fn(EventKey, &[u8]) -> Result<K::SelfType<'static>, Flaw>,
    (rows, findings): (&mut CheckedRows, &mut CheckFindings),
) -> Result<BTreeSet<EventKey>, StoreError> {
    let (table, ends) = (txn.open_table(index.definition)?, txn.open_table(ENDS.definition)?);
    let mut events = BTreeSet::new();
    for row in ends.range::<EventKey>(..)? {
        let (key, value) = row?;
        events.insert(key.value());
        // A damaged row was reported before.
        let Ok(entry) = entry_of(key.value(), value.value()) else { continue };
        if table.get(entry)?.is_none() {
            let reason = "the event is there and not in the index";
            findings.problem(index.name, rows.describe_line(key.value()), reason);
        }
    }
    Ok(events)
}

pub(in crate::store) fn check_line_days(
    txn: &ReadTransaction,
    rows: &mut CheckedRows,
    findings: &mut CheckFindings,
) -> Result<u64, StoreError> {
    let events = check_events(txn, &LINE_DAYS, day_of, (rows, findings))?;
    let (mut count, mut seen) = (0, BTreeSet::new());
    for row in txn.open_table(LINE_DAYS.definition)?.range::<LineDayKey>(..)? {
        let (world, sport, _, event) = row?.0.value();
        count += 1;
        if !events.contains(&(world, sport, event)) {
            findings.problem(LINE_DAYS.name, rows.describe_line((world, sport, event)), "it points to no event");
        } else if !seen.insert((world, sport, event)) {
            findings.problem(LINE_DAYS.name, rows.describe_line((world, sport, event)), "it has the event twice");
        }
    }
    Ok(count)
}

pub(in crate::store) fn check_line_events(
    txn: &ReadTransaction,
    rows: &mut CheckedRows,
    findings: &mut CheckFindings,
) -> Result<u64, StoreError> {
    let events = check_events(txn, &LINE_EVENTS, entry_of, (rows, findings))?;
    let index = txn.open_table(LINE_EVENTS.definition)?;
    let mut count = 0;
    for row in index.range::<LineEventKey>(..)? {
        let (world, sport, _, event) = row?.0.value();
        count += 1;
        if !events.contains(&(world, sport, event)) {
            findings.problem(LINE_EVENTS.name, rows.describe_line((world, sport, event)), "it points to no event");
        }
    }
    let mut last = None;
    for row in txn.open_table(LINES.definition)?.range::<LineKey>(..)? {
        let key = row?.0.value();
        let (event, block) = ((key.0, key.1, key.2), block_of(key));
        if last.replace((event, block)) == Some((event, block)) {
            continue;
        }
        if !events.contains(&event) {
            findings.problem(LINES.name, rows.describe_line(event), "its event is missing");
        }
        match read_block(txn, event, block) {
            Ok(_) => {}
            Err(LogError::Damaged { .. }) => {
                findings.problem(LINES.name, rows.describe_line(event), "a block of it cannot be read");
            }
            Err(other) => return Err(other.into_store()),
        }
    }
    Ok(count)
}

pub(in crate::store) fn rebuild_line_events(txn: &WriteTransaction) -> Result<(), StoreError> {
    rebuild(txn, &LINE_EVENTS, entry_of)
}

pub(in crate::store) fn rebuild_line_days(txn: &WriteTransaction) -> Result<(), StoreError> {
    rebuild(txn, &LINE_DAYS, day_of)
}

fn rebuild<K: Key + 'static>(
    txn: &WriteTransaction,
    index: &IndexTable<K, ()>,
    entry_of: impl Fn(EventKey, &[u8]) -> Result<K::SelfType<'static>, Flaw>,
) -> Result<(), StoreError> {
    let (mut table, ends) = (txn.open_table(index.definition)?, txn.open_table(ENDS.definition)?);
    table.retain(|_, ()| false)?;
    for row in ends.range::<EventKey>(..)? {
        let (key, value) = row?;
        if let Ok(entry) = entry_of(key.value(), value.value()) {
            table.insert(entry, ())?;
        }
    }
    Ok(())
}
