//! Reading the log in a transaction: the state of a sport after an entry, and the entries after one.
//!
//! What a reading costs depends on the distance to the keyframe before it, which the upkeep bounds, and not on how much
//! history there is.

use redb::ReadTransaction;

use super::entry::LoggedChange;
use super::fold::SportFold;
use super::keyframe::mentions;
use super::row::{EntryBytes, EntryView, Frame, KeyframeRow};
use crate::model::Timestamp;
use crate::store::codec::Flaw;
use crate::store::error::StoreError;
use crate::store::table_keys::{KeyframeKey, LogKey, LogNumber, TickKey};
use crate::store::tables::{KEYFRAMES, LOG, TICKS};

/// Where the state of a sport is known without reading entries.
#[derive(Clone, Debug)]
pub(in crate::store) struct Base {
    /// The entry that it follows.
    pub(in crate::store) sequence: u64,
    pub(in crate::store) at: Timestamp,
    /// The keyframe that has the state, if this one only refers to it.
    pub(in crate::store) whole: u64,
    pub(in crate::store) whole_at: Timestamp,
    /// The size of that keyframe.
    pub(in crate::store) bytes: u64,
    pub(in crate::store) fold: SportFold,
}

/// Why a part of the log cannot be read.
#[derive(Debug, thiserror::Error)]
pub(in crate::store) enum LogError {
    /// Rows are damaged or missing.
    #[error("{table} {row}: {flaw}")]
    Damaged { table: &'static str, row: String, flaw: Flaw },
    /// More than may be held in memory for one reading.
    #[error("it is too much to be read at once")]
    TooMuch,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<redb::StorageError> for LogError {
    fn from(error: redb::StorageError) -> Self {
        LogError::Store(error.into())
    }
}

impl From<redb::TableError> for LogError {
    fn from(error: redb::TableError) -> Self {
        LogError::Store(error.into())
    }
}

impl LogError {
    pub(in crate::store) fn into_store(self) -> StoreError {
        match self {
            LogError::Store(error) => error,
            other => StoreError::Refused(other.to_string()),
        }
    }
}

/// The last keyframe of a sport at or before an entry. `None` if the log does not reach back to one.
pub(in crate::store) fn base_of(
    txn: &ReadTransaction,
    (world, sport): (u8, u16),
    sequence: u64,
) -> Result<Option<Base>, LogError> {
    let table = txn.open_table(KEYFRAMES.definition)?;
    let Some(row) = table.range((world, sport, 0)..=(world, sport, sequence))?.next_back() else { return Ok(None) };
    let (key, value) = row?;
    let key = key.value();
    let read = |key, bytes: &[u8]| KEYFRAMES.unseal(&key, bytes).map_err(|flaw| damaged_frame(key, flaw));
    let of_frame = |key, flaw| damaged_frame(key, flaw);
    let row = read(key, value.value())?;
    let (at, frame) = row.view().map_err(|flaw| of_frame(key, flaw))?;
    let (whole, row) = match frame {
        Frame::Whole(_) => (key.2, row),
        Frame::SameAs(whole) => {
            let stored = table.get((world, sport, whole))?;
            let stored = stored.ok_or_else(|| of_frame(key, Flaw::Invalid("what it refers to is missing")))?;
            (whole, read((world, sport, whole), stored.value())?)
        }
    };
    let (whole_at, frame) = row.view().map_err(|flaw| of_frame(key, flaw))?;
    let Frame::Whole(bytes) = frame else { return Err(of_frame(key, Flaw::Malformed)) };
    let fold = SportFold::from_keyframe(bytes).map_err(|flaw| of_frame(key, flaw))?;
    Ok(Some(Base { sequence: key.2, at, whole, whole_at, bytes: bytes.len() as u64, fold }))
}

fn damaged_frame((world, sport, sequence): (u8, u16, u64), flaw: Flaw) -> LogError {
    LogError::Damaged { table: KEYFRAMES.name, row: format!("{world} {sport} {sequence}"), flaw }
}

pub(super) fn damaged_entry((world, sequence): LogKey, flaw: Flaw) -> LogError {
    LogError::Damaged { table: LOG.name, row: format!("{world} {sequence}"), flaw }
}

/// Whether the state that a keyframe has or refers to mentions a text.
pub(super) fn frame_mentions(
    txn: &ReadTransaction,
    (world, sport, sequence): KeyframeKey,
    text: &[u8],
) -> Result<bool, LogError> {
    let table = txn.open_table(KEYFRAMES.definition)?;
    let read = |sequence: u64| {
        let key = (world, sport, sequence);
        let Some(stored) = table.get(key)? else { return Ok(None) };
        let row = KEYFRAMES.unseal(&key, stored.value()).map_err(|flaw| damaged_frame(key, flaw))?;
        Ok::<_, LogError>(Some(row))
    };
    let of_frame = |flaw| damaged_frame((world, sport, sequence), flaw);
    let mut row = read(sequence)?;
    if let Some((_, Frame::SameAs(whole))) = row.as_ref().map(KeyframeRow::view).transpose().map_err(of_frame)? {
        row = read(whole)?;
    }
    match row.as_ref().map(KeyframeRow::view).transpose().map_err(of_frame)? {
        Some((_, Frame::Whole(bytes))) => mentions(bytes, text).map_err(of_frame),
        _ => Ok(false),
    }
}

/// Calls `each` with every row that has entries after one, up to another: its key, its bytes, and all of its entries. Every
/// one of them must be there.
pub(super) fn for_each_row(
    txn: &ReadTransaction,
    world: u8,
    (after, to): (u64, u64),
    mut each: impl FnMut(LogKey, &[u8], Vec<EntryBytes>) -> Result<(), LogError>,
) -> Result<(), LogError> {
    let mut expected = after.saturating_add(1);
    if expected > to {
        return Ok(());
    }
    let log = txn.open_table(LOG.definition)?;
    // The first one may be in the middle of a pack.
    let first = log.range((world, 0)..=(world, expected))?.next_back().transpose()?;
    let first = first.map_or(expected, |(key, _)| key.value().1);
    for row in log.range((world, first)..=(world, to))? {
        let (key, value) = row?;
        let key: LogKey = key.value();
        if key.1 > expected {
            break;
        }
        let entries = LOG.unseal(&key, value.value()).and_then(|row| row.entries());
        let entries = entries.map_err(|flaw| damaged_entry(key, flaw))?;
        expected = expected.max(key.1.saturating_add(entries.len() as u64));
        each(key, value.value(), entries)?;
    }
    if expected > to { Ok(()) } else { Err(damaged_entry((world, expected), Flaw::Invalid("it is missing"))) }
}

/// Calls `each` with every entry after one, up to another. Every one of them must be there.
pub(in crate::store) fn for_each_entry(
    txn: &ReadTransaction,
    world: u8,
    (after, to): (u64, u64),
    mut each: impl FnMut(u64, &EntryView<'_>) -> Result<(), Flaw>,
) -> Result<(), LogError> {
    for_each_row(txn, world, (after, to), |key, _, entries| {
        for (sequence, bytes) in (key.1..=to).zip(&entries).filter(|(sequence, _)| *sequence > after) {
            let read = bytes.view().and_then(|entry| each(sequence, &entry));
            read.map_err(|flaw| damaged_entry((world, sequence), flaw))?;
        }
        Ok(())
    })
}

/// The last entry of a world after one whose second is not after a time, and whether one that is follows it.
pub(in crate::store) fn last_entry_at(
    txn: &ReadTransaction,
    world: u8,
    after: u64,
    time: Timestamp,
) -> Result<(Option<(u64, Timestamp)>, bool), LogError> {
    let damaged = |sequence: u64, flaw| LogError::Damaged { table: LOG.name, row: format!("{world} {sequence}"), flaw };
    let log = txn.open_table(LOG.definition)?;
    // The first one may be in the middle of a pack.
    let first = log.range((world, 0)..=(world, after.saturating_add(1)))?.next_back().transpose()?;
    let first = first.map_or(after, |(key, _)| key.value().1);
    let mut last = None;
    for row in log.range((world, first)..=(world, u64::MAX))? {
        let (key, value) = row?;
        let key: LogKey = key.value();
        let entries = LOG.unseal(&key, value.value()).and_then(|row| row.entries());
        for (sequence, bytes) in (key.1..).zip(&entries.map_err(|flaw| damaged(key.1, flaw))?) {
            let at = bytes.view().map_err(|flaw| damaged(sequence, flaw))?.at;
            if sequence > after && at > time {
                return Ok((last, true));
            }
            if sequence > after {
                last = Some((sequence, at));
            }
        }
    }
    Ok((last, false))
}

/// The state of a sport after an entry.
pub(in crate::store) fn fold_to(
    txn: &ReadTransaction,
    (world, sport): (u8, u16),
    sequence: u64,
) -> Result<Option<SportFold>, LogError> {
    let Some(base) = base_of(txn, (world, sport), sequence)? else { return Ok(None) };
    fold_from(txn, (world, sport), base, sequence).map(Some)
}

/// The same from a state that is known.
pub(in crate::store) fn fold_from(
    txn: &ReadTransaction,
    (world, sport): (u8, u16),
    base: Base,
    sequence: u64,
) -> Result<SportFold, LogError> {
    let mut fold = base.fold;
    for_each_entry(txn, world, (base.sequence, sequence), |_, entry| {
        pass_sport(&mut fold, sport, entry)?;
        Ok(())
    })?;
    Ok(fold)
}

/// Brings a sport into the state after an entry, and returns how many bytes the entry has of it.
pub(in crate::store) fn pass_sport(fold: &mut SportFold, sport: u16, entry: &EntryView<'_>) -> Result<u64, Flaw> {
    let mut bytes = 0;
    for section in entry.sections.iter().filter(|section| section.sport == sport) {
        fold.pass(section, entry.at)?;
        bytes += section.bytes.len() as u64;
    }
    Ok(bytes)
}

/// Applies what an entry says of a sport, and returns how many bytes that takes.
pub(in crate::store) fn apply_sport(
    fold: &mut SportFold,
    sport: u16,
    entry: &EntryView<'_>,
    mut each: impl FnMut(LoggedChange),
) -> Result<u64, Flaw> {
    let mut bytes = 0;
    for section in entry.sections.iter().filter(|section| section.sport == sport) {
        fold.apply(section, entry.at, &mut each)?;
        bytes += section.bytes.len() as u64;
    }
    Ok(bytes)
}

/// The last tick of a sport at or before a time, with its entry; none of those that [`first_tick`] leaves out.
pub(in crate::store) fn tick_at(
    txn: &ReadTransaction,
    (world, sport): (u8, u16),
    time: Timestamp,
) -> Result<Option<(Timestamp, u64)>, LogError> {
    let ticks = txn.open_table(TICKS.definition)?;
    let range = (world, sport, 0)..=(world, sport, time.unix());
    let Some((key, sequence)) = ticks.range::<TickKey>(range)?.next_back().transpose()? else { return Ok(None) };
    let (at, sequence) = (key.value().2, sequence.value());
    if let Some(first) = first_frame(txn, (world, sport))?.filter(|first| sequence < *first) {
        let after = (world, sport, at.saturating_add(1))..=(world, sport, u32::MAX);
        let next = ticks.range::<TickKey>(after)?.next().transpose()?;
        if next.is_some_and(|(_, next)| next.value() <= first) {
            return Ok(None);
        }
    }
    Ok(Some((Timestamp::from_unix(at), sequence)))
}

/// The first tick of a sport after a time.
pub(in crate::store) fn tick_after(
    txn: &ReadTransaction,
    (world, sport): (u8, u16),
    time: Timestamp,
) -> Result<Option<Timestamp>, LogError> {
    let range = (world, sport, time.unix().saturating_add(1))..=(world, sport, u32::MAX);
    let first = txn.open_table(TICKS.definition)?.range::<TickKey>(range)?.next();
    Ok(first.transpose()?.map(|(key, _)| Timestamp::from_unix(key.value().2)).filter(|after| *after > time))
}

/// The first tick of a sport whose prices are known: the first keyframe has those of the last tick before it, and of no other that
/// may still be in the index.
pub(in crate::store) fn first_tick(
    txn: &ReadTransaction,
    (world, sport): (u8, u16),
) -> Result<Option<Timestamp>, LogError> {
    let first = first_frame(txn, (world, sport))?.unwrap_or(0);
    let mut found = None;
    let range = (world, sport, 0)..=(world, sport, u32::MAX);
    for row in txn.open_table(TICKS.definition)?.range::<TickKey>(range)? {
        let (key, sequence) = row?;
        if found.is_some() && sequence.value() > first {
            break;
        }
        found = Some(Timestamp::from_unix(key.value().2));
        if sequence.value() >= first {
            break;
        }
    }
    Ok(found)
}

/// The last tick of a sport.
pub(in crate::store) fn last_tick(
    txn: &ReadTransaction,
    sport: (LogNumber, u16),
) -> Result<Option<Timestamp>, LogError> {
    Ok(tick_at(txn, sport, Timestamp::from_unix(u32::MAX))?.map(|(at, _)| at))
}

/// The entry that the first kept keyframe of a sport follows.
pub(in crate::store) fn first_frame(txn: &ReadTransaction, (world, sport): (u8, u16)) -> Result<Option<u64>, LogError> {
    let range = (world, sport, 0)..=(world, sport, u64::MAX);
    let first = txn.open_table(KEYFRAMES.definition)?.range(range)?.next();
    Ok(first.transpose()?.map(|(key, _)| key.value().2))
}

/// The entry that the last keyframe of a sport follows.
pub(in crate::store) fn last_frame(txn: &ReadTransaction, (world, sport): (u8, u16)) -> Result<Option<u64>, LogError> {
    let range = (world, sport, 0)..=(world, sport, u64::MAX);
    let last = txn.open_table(KEYFRAMES.definition)?.range(range)?.next_back();
    Ok(last.transpose()?.map(|(key, _)| key.value().2))
}

/// The entry that the next keyframe of a sport follows, after an entry.
pub(in crate::store) fn next_frame(
    txn: &ReadTransaction,
    (world, sport): (u8, u16),
    after: u64,
) -> Result<Option<u64>, LogError> {
    let range = (world, sport, after.saturating_add(1))..=(world, sport, u64::MAX);
    let next = txn.open_table(KEYFRAMES.definition)?.range(range)?.next();
    Ok(next.transpose()?.map(|(key, _)| key.value().2))
}

/// The first entry of a world that is kept.
pub(in crate::store) fn first_entry(txn: &ReadTransaction, world: u8) -> Result<Option<u64>, LogError> {
    let first = txn.open_table(LOG.definition)?.range((world, 0)..=(world, u64::MAX))?.next();
    Ok(first.transpose()?.map(|(key, _)| key.value().1))
}

/// The second of the first entry of a log that is kept; of one that is damaged, none.
pub(in crate::store) fn first_logged(txn: &ReadTransaction, world: LogNumber) -> Result<Option<Timestamp>, StoreError> {
    let first = txn.open_table(LOG.definition)?.range((world, 0)..=(world, u64::MAX))?.next();
    let Some((key, value)) = first.transpose()? else { return Ok(None) };
    let row = LOG.unseal(&key.value(), value.value()).ok();
    let first = row.and_then(|row| row.entries().ok()?.into_iter().next());
    Ok(first.and_then(|entry| entry.view().ok().map(|entry| entry.at)))
}
