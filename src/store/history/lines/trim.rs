//! Retention of lines: an event goes as a whole, once it has not changed for as long as history is kept.

use redb::{ReadableTable, WriteTransaction};

use super::event::id_hash;
use super::rewrite::{LineBytes, LinesHead};
use crate::model::{EventId, Timestamp};
use crate::store::error::StoreError;
use crate::store::table_keys::{EventKey, LineKey};
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
    let mut ends = txn.open_table(ENDS.definition)?;
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
    let (mut lines, mut events) = (txn.open_table(LINES.definition)?, txn.open_table(LINE_EVENTS.definition)?);
    let mut days = txn.open_table(LINE_DAYS.definition)?;
    for OldEvent { key, bytes, indexed } in old {
        let mut size = LineBytes { lines: 0, ends: bytes };
        ends.remove(key)?;
        let blocks: (LineKey, LineKey) = ((world, sport, key.2, 0), (world, sport, key.2, u32::MAX));
        for row in lines.extract_from_if(blocks.0..=blocks.1, |_, _| true)? {
            size.lines += row?.1.value().len() as u64;
        }
        if let Some((id, day)) = indexed {
            events.remove((world, sport, id_hash(id.as_str()), key.2))?;
            days.remove((world, sport, day, key.2))?;
        }
        head.size.replace(size, LineBytes::default());
    }
    Ok(next)
}
