//! Removal from the lines: an event goes as a whole, once it has not changed for as long as history is kept, or when its
//! history is deleted.

use redb::{ReadableTable, WriteTransaction};

use super::event::id_hash;
use super::rewrite::{LineBytes, LinesHead};
use crate::model::{EventId, Timestamp};
use crate::store::error::StoreError;
use crate::store::table_keys::{EventKey, LineEventKey, LineKey};
use crate::store::tables::{ENDS, LINE_DAYS, LINE_EVENTS, LINES};

/// The most events that one call looks at.
const EVENTS_MAX: usize = 128;

/// An event to remove.
struct OldEvent {
    key: EventKey,
    bytes: u64,
    /// What the indexes have it under; unknown if its row is damaged.
    indexed: Option<(EventId, u32)>,
}

/// Removes events of a sport that last changed before a time, from a number on. Returns the number to go on from, if
/// there may be more.
pub(in crate::store) fn trim_lines(
    txn: &WriteTransaction,
    (world, sport): (u8, u16),
    keep_from: Timestamp,
    from: u32,
    head: &mut LinesHead,
) -> Result<Option<u32>, StoreError> {
    let ends = txn.open_table(ENDS.definition)?;
    let mut old: Vec<OldEvent> = Vec::new();
    let (mut seen, mut next) = (0, None);
    for row in ends.range((world, sport, from)..=(world, sport, u32::MAX))? {
        let (key, value) = row?;
        let key: EventKey = key.value();
        if seen == EVENTS_MAX {
            next = Some(key.2);
            break;
        }
        seen += 1;
        // The next step of the lines finds a row that is damaged.
        let Ok(row) = ENDS.unseal(&key, value.value()) else { continue };
        let Ok((first, last)) = row.span() else { continue };
        // Events are numbered in the order in which they were first seen.
        if first >= keep_from {
            break;
        }
        if last < keep_from {
            let indexed = row.read().ok().map(|ends| (ends.event.id.clone(), ends.day()));
            old.push(OldEvent { key, bytes: value.value().len() as u64, indexed });
        }
    }
    drop(ends);
    for event in old {
        event.remove(txn, head)?;
    }
    Ok(next)
}

/// Removes an event of a sport; returns whether it was there.
pub(in crate::store) fn delete_event_lines(
    txn: &WriteTransaction,
    (world, sport): (u8, u16),
    id: &EventId,
    head: &mut LinesHead,
) -> Result<bool, StoreError> {
    let hash = id_hash(id.as_str());
    let mut found = Vec::new();
    {
        let (events, ends) = (txn.open_table(LINE_EVENTS.definition)?, txn.open_table(ENDS.definition)?);
        for row in events.range::<LineEventKey>((world, sport, hash, 0)..=(world, sport, hash, u32::MAX))? {
            let key: EventKey = (world, sport, row?.0.value().3);
            let Some(stored) = ends.get(key)? else { continue };
            // The next step of the lines finds a row that is damaged, and they are all written again.
            let Ok(read) = ENDS.unseal(&key, stored.value()).and_then(|row| row.read()) else { continue };
            if read.event.id == *id {
                let (bytes, indexed) = (stored.value().len() as u64, Some((id.clone(), read.day())));
                found.push(OldEvent { key, bytes, indexed });
            }
        }
    }
    let had_lines = !found.is_empty();
    for event in found {
        event.remove(txn, head)?;
    }
    Ok(had_lines)
}

impl OldEvent {
    fn remove(self, txn: &WriteTransaction, head: &mut LinesHead) -> Result<(), StoreError> {
        let OldEvent { key: (world, sport, number), bytes, indexed } = self;
        let mut size = LineBytes { lines: 0, ends: bytes };
        txn.open_table(ENDS.definition)?.remove((world, sport, number))?;
        let blocks: (LineKey, LineKey) = ((world, sport, number, 0), (world, sport, number, u32::MAX));
        for row in txn.open_table(LINES.definition)?.extract_from_if(blocks.0..=blocks.1, |_, _| true)? {
            size.lines += row?.1.value().len() as u64;
        }
        if let Some((id, day)) = indexed {
            txn.open_table(LINE_EVENTS.definition)?.remove((world, sport, id_hash(id.as_str()), number))?;
            txn.open_table(LINE_DAYS.definition)?.remove((world, sport, day, number))?;
        }
        head.size.replace(size, LineBytes::default());
        Ok(())
    }
}
