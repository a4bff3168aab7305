//! The index of events in the lines: it can be checked against the rows of the events, and rebuilt from them.

use std::collections::BTreeSet;

use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use super::event::id_hash;
use crate::store::care::{CheckFindings, CheckedRows};
use crate::store::codec::Flaw;
use crate::store::error::StoreError;
use crate::store::table_keys::{EventKey, LineEventKey, LineKey};
use crate::store::tables::{ENDS, LINE_EVENTS, LINES};

fn entry_of(key: EventKey, row: &[u8]) -> Result<LineEventKey, Flaw> {
    let id = ENDS.unseal(&key, row)?.event_id()?;
    Ok((key.0, key.1, id_hash(&id), key.2))
}

pub(in crate::store) fn check_line_events(
    txn: &ReadTransaction,
    rows: &mut CheckedRows,
    findings: &mut CheckFindings,
) -> Result<u64, StoreError> {
    let (index, ends) = (txn.open_table(LINE_EVENTS.definition)?, txn.open_table(ENDS.definition)?);
    let mut events: BTreeSet<EventKey> = BTreeSet::new();
    for row in ends.range::<EventKey>(..)? {
        let (key, value) = row?;
        events.insert(key.value());
        // A damaged row was reported before.
        let Ok(entry) = entry_of(key.value(), value.value()) else { continue };
        if index.get(entry)?.is_none() {
            findings.problem(
                LINE_EVENTS.name,
                rows.describe_line(key.value()),
                "the event is there and not in the index",
            );
        }
    }
    let mut count = 0;
    for row in index.range::<LineEventKey>(..)? {
        let (world, sport, _, event) = row?.0.value();
        count += 1;
        if !events.contains(&(world, sport, event)) {
            findings.problem(LINE_EVENTS.name, rows.describe_line((world, sport, event)), "it points to no event");
        }
    }
    for row in txn.open_table(LINES.definition)?.range::<LineKey>(..)? {
        let (world, sport, event, _) = row?.0.value();
        if !events.contains(&(world, sport, event)) {
            findings.problem(LINES.name, rows.describe_line((world, sport, event)), "its event is missing");
        }
    }
    Ok(count)
}

pub(in crate::store) fn rebuild_line_events(txn: &WriteTransaction) -> Result<(), StoreError> {
    let (mut index, ends) = (txn.open_table(LINE_EVENTS.definition)?, txn.open_table(ENDS.definition)?);
    index.retain(|_, ()| false)?;
    for row in ends.range::<EventKey>(..)? {
        let (key, value) = row?;
        if let Ok(entry) = entry_of(key.value(), value.value()) {
            index.insert(entry, ())?;
        }
    }
    Ok(())
}
