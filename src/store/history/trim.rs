//! Retention: removing the oldest part of a log, a bounded piece at a time.
//!
//! What is kept begins with a keyframe of each sport, the last one at or before the time that is asked for. So a sport
//! that has been quiet for longer than history is kept still has its state.

use redb::{ReadableTable, WriteTransaction};

use super::lines::{LinesHead, trim_lines};
use super::row::{Frame, KeyframeRow};
use super::state::{LogHead, WorldLog};
use super::write::seal_frame;
use crate::model::{Timestamp, World};
use crate::store::error::StoreError;
use crate::store::handle::Store;
use crate::store::row_batch::begin;
use crate::store::table_keys::{KeyframeKey, LogKey, LogNumber, TickKey, world_number};
use crate::store::tables::{KEYFRAMES, LOG, META, TICKS};

/// The most rows of each table that one call removes.
const ROWS_MAX: usize = 128;

impl Store {
    /// Removes what is older than a time, as far as one bounded step goes; whether it removed anything.
    pub fn trim_history(&mut self, world: World, keep_from: Timestamp) -> Result<bool, StoreError> {
        let mut logs = self.take_logs()?;
        let log = &mut logs[world.index()];
        let (is_trimmed, is_whole) = self.trim_log(world_number(world), keep_from, log)?;
        // Where a keyframe was rewritten, the last one may be another.
        if is_whole {
            self.put_logs(logs);
        }
        Ok(is_trimmed)
    }

    /// Trims a log; returns whether that removed anything or has more to do, and whether no keyframe was rewritten.
    pub(super) fn trim_log(
        &mut self,
        number: LogNumber,
        keep_from: Timestamp,
        log: &mut WorldLog,
    ) -> Result<(bool, bool), StoreError> {
        let before = log.head;
        let (is_whole, has_fewer_lines) = self.writing(|store| {
            let txn = begin(&store.file()?.db)?;
            let is_whole = trim(&txn, number, keep_from, log)?;
            let has_fewer_lines = trim_all_lines(&txn, number, keep_from, log)?;
            if log.head == before && !has_fewer_lines {
                txn.abort()?;
            } else {
                txn.commit()?;
            }
            Ok((is_whole, has_fewer_lines))
        })?;
        Ok((log.head != before || has_fewer_lines || !log.trimmed_lines.is_empty(), is_whole))
    }
}

/// Removes rows and notes it in `log`; returns whether no keyframe was rewritten.
fn trim(
    txn: &WriteTransaction,
    number: LogNumber,
    keep_from: Timestamp,
    log: &mut WorldLog,
) -> Result<bool, StoreError> {
    let mut is_whole = true;
    let mut first_kept = log.head.next - 1;
    for sport in sports_of(txn, number)? {
        let (first, rewritten) = trim_frames(txn, (number, sport), keep_from, &mut log.head)?;
        is_whole &= !rewritten;
        first_kept = first_kept.min(first);
        trim_ticks(txn, (number, sport), first)?;
    }
    trim_entries(txn, number, first_kept, log)?;
    let (key, row) = log.head.seal(number)?;
    txn.open_table(META.definition)?.insert(&*key, &*row)?;
    Ok(is_whole)
}

/// Removes events from the lines; returns whether there were any.
fn trim_all_lines(
    txn: &WriteTransaction,
    number: LogNumber,
    keep_from: Timestamp,
    log: &mut WorldLog,
) -> Result<bool, StoreError> {
    let mut meta = txn.open_table(META.definition)?;
    let before = LinesHead::read_from(&meta, number)?;
    let mut lines = before.clone();
    for sport in before.through.keys() {
        let from = log.trimmed_lines.remove(sport).unwrap_or(0);
        let next = trim_lines(txn, (number, *sport), keep_from, from, &mut lines)?;
        log.trimmed_lines.extend(next.map(|next| (*sport, next)));
    }
    if lines == before {
        return Ok(false);
    }
    let (key, row) = lines.seal(number)?;
    meta.insert(&*key, &*row)?;
    Ok(true)
}

/// The sports that a world's log mentions.
fn sports_of(txn: &WriteTransaction, world: u8) -> Result<Vec<u16>, StoreError> {
    let frames = txn.open_table(KEYFRAMES.definition)?;
    let (mut sports, mut from) = (Vec::new(), 0_u16);
    while let Some(row) = frames.range((world, from, 0)..=(world, u16::MAX, u64::MAX))?.next() {
        let sport = row?.0.value().1;
        sports.push(sport);
        match sport.checked_add(1) {
            Some(next) => from = next,
            None => break,
        }
    }
    Ok(sports)
}

/// Removes keyframes before the last one at or before `keep_from`. Returns the entry that the first kept one follows, and
/// whether that was rewritten because it referred to one that is gone.
fn trim_frames(
    txn: &WriteTransaction,
    (world, sport): (u8, u16),
    keep_from: Timestamp,
    head: &mut LogHead,
) -> Result<(u64, bool), StoreError> {
    let mut frames = txn.open_table(KEYFRAMES.definition)?;
    let mut old: Vec<(KeyframeKey, u64)> = Vec::new();
    let mut kept: Option<(KeyframeKey, Vec<u8>)> = None;
    for row in frames.range((world, sport, 0)..=(world, sport, u64::MAX))?.take(ROWS_MAX) {
        let (key, value) = row?;
        // A damaged row is as old as the one after it.
        let at = KEYFRAMES.unseal(&key.value(), value.value()).ok().and_then(|row| row.view().ok().map(|(at, _)| at));
        if at.is_some_and(|at| at > keep_from) && kept.is_some() {
            break;
        }
        if let Some((key, bytes)) = kept.replace((key.value(), value.value().to_vec())) {
            old.push((key, bytes.len() as u64));
        }
        if at.is_some_and(|at| at > keep_from) {
            break;
        }
    }
    let Some((key, bytes)) = kept else { return Ok((head.next - 1, false)) };
    let refers_to = KEYFRAMES.unseal(&key, &bytes).ok().and_then(|row| match row.view() {
        Ok((at, Frame::SameAs(whole))) => Some((at, whole)),
        _ => None,
    });
    let mut is_rewritten = false;
    if let Some((at, whole)) = refers_to.filter(|(_, whole)| old.iter().any(|(old, _)| old.2 == *whole)) {
        let stored = frames.get((world, sport, whole))?.map(|row| row.value().to_vec());
        let state = stored.and_then(|row| KEYFRAMES.unseal(&(world, sport, whole), &row).ok());
        if let Some(Ok((_, Frame::Whole(state)))) = state.as_ref().map(KeyframeRow::view) {
            let row = seal_frame(key, &KeyframeRow::new(at, Frame::Whole(state)))?;
            head.frame_bytes = head.frame_bytes.saturating_sub(bytes.len() as u64) + row.len() as u64;
            frames.insert(key, &*row)?;
            is_rewritten = true;
        }
    }
    for (key, bytes) in old {
        frames.remove(key)?;
        head.frame_bytes = head.frame_bytes.saturating_sub(bytes);
    }
    Ok((key.2, is_rewritten))
}

/// Removes the ticks up to an entry, except the last of them: it says as of when the first keyframe is.
fn trim_ticks(txn: &WriteTransaction, (world, sport): (u8, u16), first: u64) -> Result<(), StoreError> {
    let mut ticks = txn.open_table(TICKS.definition)?;
    let mut old: Vec<TickKey> = Vec::new();
    for row in ticks.range((world, sport, 0)..=(world, sport, u32::MAX))?.take(ROWS_MAX) {
        let (key, sequence) = row?;
        if sequence.value() > first {
            break;
        }
        old.push(key.value());
    }
    old.pop();
    for key in old {
        ticks.remove(key)?;
    }
    Ok(())
}

/// Removes the entries up to one, which the first keyframes stand for.
fn trim_entries(txn: &WriteTransaction, world: u8, first: u64, log: &mut WorldLog) -> Result<(), StoreError> {
    let mut rows = txn.open_table(LOG.definition)?;
    let mut old: Vec<(LogKey, u64, u64)> = Vec::new();
    for row in rows.range((world, 0)..=(world, first))?.take(ROWS_MAX) {
        let (key, value) = row?;
        let row = LOG.unseal(&key.value(), value.value()).ok();
        let entries = row.and_then(|row| row.entries().ok()).unwrap_or_default();
        if key.value().1 + (entries.len() as u64).max(1) - 1 > first {
            break;
        }
        let changes = entries.iter().filter_map(|entry| entry.view().ok()).map(|entry| entry.changes).sum();
        old.push((key.value(), value.value().len() as u64, changes));
    }
    for (key, bytes, changes) in old {
        rows.remove(key)?;
        log.head.entry_bytes = log.head.entry_bytes.saturating_sub(bytes);
        log.head.changes = log.head.changes.saturating_sub(changes);
        if key.1 > log.head.packed {
            log.loose_bytes = log.loose_bytes.saturating_sub(bytes);
        }
    }
    Ok(())
}
