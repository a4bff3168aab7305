//! Retention: removing the oldest part of a log, a bounded piece at a time.
//!
//! What is kept begins with a keyframe of each sport, the last one at or before the time that is asked for. So a sport
//! that has been quiet for longer than history is kept still has its state. A sport that has not been mentioned since entries were
//! lost has none: what is left of it goes with the entries from before.

use redb::{ReadableTable, Table, WriteTransaction};

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

/// The most rows of the log, and of the keyframes of a sport, that one call removes.
const ROWS_MAX: usize = 128;
/// The most ticks, as far as keyframes are as close: one goes with all of the ticks that are read from it.
const TICKS_MAX: usize = 1024;

/// What a step did.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trimmed {
    /// Whether it removed anything, or has more to do.
    pub(super) anything: bool,
    /// Whether a keyframe was rewritten because it referred to one that is gone.
    rewrote_frame: bool,
}

impl Store {
    /// Removes what is older than a time, as far as one bounded step goes; whether it removed anything.
    pub fn trim_history(&mut self, world: World, keep_from: Timestamp) -> Result<bool, StoreError> {
        let mut logs = self.take_logs()?;
        let log = &mut logs[world.index()];
        let trimmed = self.trim_log(world_number(world), keep_from, log)?;
        // Where a keyframe was rewritten, the last one may be another.
        if !trimmed.rewrote_frame {
            self.put_logs(logs);
        }
        Ok(trimmed.anything)
    }

    pub(super) fn trim_log(
        &mut self,
        number: LogNumber,
        keep_from: Timestamp,
        log: &mut WorldLog,
    ) -> Result<Trimmed, StoreError> {
        let mut trimmed = self.writing(|store| {
            let txn = begin(&store.file()?.db)?;
            let mut trimmed = trim(&txn, number, keep_from, log)?;
            trimmed.anything |= trim_all_lines(&txn, number, keep_from, log)?;
            if trimmed.anything {
                txn.commit()?;
            } else {
                txn.abort()?;
            }
            Ok(trimmed)
        })?;
        trimmed.anything |= !log.trimmed_lines.is_empty();
        Ok(trimmed)
    }
}

/// Removes ticks, keyframes and entries, and notes it in `log`.
fn trim(
    txn: &WriteTransaction,
    number: LogNumber,
    keep_from: Timestamp,
    log: &mut WorldLog,
) -> Result<Trimmed, StoreError> {
    let (before, mut trimmed, mut ticks_max) = (log.head, Trimmed::default(), TICKS_MAX);
    let (mut first_kept, mut unmentioned) = (log.head.next - 1, Vec::new());
    for sport in sports_of(txn, number)? {
        let mut frames = old_frames(txn, (number, sport), keep_from)?;
        let ticks = old_ticks(txn, (number, sport), &mut frames, ticks_max)?;
        ticks_max = ticks_max.saturating_sub(ticks.len());
        trimmed.anything |= !ticks.is_empty();
        remove_ticks(txn, &ticks)?;
        trimmed.rewrote_frame |= trim_frames(txn, &frames, &mut log.head)?;
        let Some(kept) = frames.last() else { continue };
        if is_unmentioned(txn, *kept, keep_from, log.head)? {
            unmentioned.push(*kept);
        } else {
            first_kept = first_kept.min(kept.2);
        }
    }
    if first_kept + 1 >= log.head.start {
        for sport in unmentioned {
            trim_sport(txn, sport, &mut log.head)?;
            trimmed.anything = true;
        }
    } else {
        first_kept = unmentioned.iter().fold(first_kept, |first, kept| first.min(kept.2));
    }
    trim_entries(txn, number, first_kept, log)?;
    if log.head != before {
        trimmed.anything = true;
        let (key, row) = log.head.seal(number)?;
        txn.open_table(META.definition)?.insert(&*key, &*row)?;
    }
    Ok(trimmed)
}

/// Whether a sport has nothing after one of its keyframes, and that is from before entries were lost.
fn is_unmentioned(
    txn: &WriteTransaction,
    (world, sport, frame): KeyframeKey,
    keep_from: Timestamp,
    head: LogHead,
) -> Result<bool, StoreError> {
    if frame + 1 >= head.start {
        return Ok(false);
    }
    let (ticks, frames) = (txn.open_table(TICKS.definition)?, txn.open_table(KEYFRAMES.definition)?);
    let last_tick = ticks.range((world, sport, 0)..=(world, sport, u32::MAX))?.next_back().transpose()?;
    let has_newer = frames.range((world, sport, frame + 1)..=(world, sport, u64::MAX))?.next().is_some();
    Ok(!has_newer && last_tick.is_none_or(|(tick, _)| tick.value().2 <= keep_from.unix()))
}

/// Removes the ticks of a sport and its last keyframe; of many ticks, only some.
fn trim_sport(txn: &WriteTransaction, frame: KeyframeKey, head: &mut LogHead) -> Result<(), StoreError> {
    let (world, sport, _) = frame;
    let old: Vec<TickKey> = {
        let ticks = txn.open_table(TICKS.definition)?;
        let range = ticks.range((world, sport, 0)..=(world, sport, u32::MAX))?;
        range.take(TICKS_MAX).map(|row| Ok(row?.0.value())).collect::<Result<_, StoreError>>()?
    };
    remove_ticks(txn, &old)?;
    if old.len() < TICKS_MAX {
        let mut frames = txn.open_table(KEYFRAMES.definition)?;
        let removed = frames.remove(frame)?;
        head.frame_bytes = head.frame_bytes.saturating_sub(removed.map_or(0, |row| row.value().len() as u64));
    }
    Ok(())
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

/// The keyframes of a sport up to the last one at or before `keep_from`, which is the first to be kept.
fn old_frames(
    txn: &WriteTransaction,
    (world, sport): (u8, u16),
    keep_from: Timestamp,
) -> Result<Vec<KeyframeKey>, StoreError> {
    let frames = txn.open_table(KEYFRAMES.definition)?;
    let mut old: Vec<KeyframeKey> = Vec::new();
    for row in frames.range((world, sport, 0)..=(world, sport, u64::MAX))?.take(ROWS_MAX) {
        let (key, value) = row?;
        // A damaged row is as old as the one after it.
        let at = KEYFRAMES.unseal(&key.value(), value.value()).ok().and_then(|row| row.view().ok().map(|(at, _)| at));
        let is_newer = at.is_some_and(|at| at > keep_from);
        if !is_newer || old.is_empty() {
            old.push(key.value());
        }
        if is_newer {
            break;
        }
    }
    Ok(old)
}

/// The ticks up to the last of some keyframes, except the last of them: it says as of when that keyframe is. If there are too
/// many, the keyframes are cut to those whose ticks there is room for, and one more.
fn old_ticks(
    txn: &WriteTransaction,
    (world, sport): (u8, u16),
    frames: &mut Vec<KeyframeKey>,
    ticks_max: usize,
) -> Result<Vec<TickKey>, StoreError> {
    let ticks = txn.open_table(TICKS.definition)?;
    let mut old: Vec<TickKey> = Vec::new();
    for row in ticks.range((world, sport, 0)..=(world, sport, u32::MAX))? {
        let (key, sequence) = row?;
        let is_before = |frame: &KeyframeKey| frame.2 < sequence.value();
        if old.len() >= ticks_max {
            frames.truncate(frames.partition_point(is_before) + 1);
        }
        // Nothing is read at ticks before the first keyframe: they need not go all at once.
        let is_left_over = old.len() >= ticks_max && frames.len() == 1;
        if is_left_over || frames.last().is_none_or(is_before) {
            break;
        }
        old.push(key.value());
    }
    old.pop();
    Ok(old)
}

fn remove_ticks(txn: &WriteTransaction, old: &[TickKey]) -> Result<(), StoreError> {
    let mut ticks = txn.open_table(TICKS.definition)?;
    for key in old {
        ticks.remove(*key)?;
    }
    Ok(())
}

/// Removes all of some keyframes of a sport but the last. Returns whether that was rewritten because it referred to one that is
/// gone.
fn trim_frames(txn: &WriteTransaction, frames: &[KeyframeKey], head: &mut LogHead) -> Result<bool, StoreError> {
    let Some((kept, old)) = frames.split_last() else { return Ok(false) };
    let mut table = txn.open_table(KEYFRAMES.definition)?;
    let is_rewritten = !old.is_empty() && inline_frame(&mut table, *kept, old, head)?;
    for key in old {
        let removed = table.remove(*key)?;
        head.frame_bytes = head.frame_bytes.saturating_sub(removed.map_or(0, |row| row.value().len() as u64));
    }
    Ok(is_rewritten)
}

/// Gives a keyframe the state itself if it refers to one of those that are removed; returns whether it did.
fn inline_frame(
    table: &mut Table<'_, KeyframeKey, &'static [u8]>,
    key: KeyframeKey,
    removed: &[KeyframeKey],
    head: &mut LogHead,
) -> Result<bool, StoreError> {
    let read = |table: &Table<'_, KeyframeKey, &'static [u8]>, key: KeyframeKey| {
        let Some(stored) = table.get(key)? else { return Ok(None) };
        let bytes = stored.value();
        Ok::<_, StoreError>(KEYFRAMES.unseal(&key, bytes).ok().map(|row| (row, bytes.len() as u64)))
    };
    let Some((row, bytes)) = read(table, key)? else { return Ok(false) };
    let Ok((at, Frame::SameAs(whole))) = row.view() else { return Ok(false) };
    let Some(whole) = removed.iter().find(|removed| removed.2 == whole) else { return Ok(false) };
    let Some((state, _)) = read(table, *whole)? else { return Ok(false) };
    let Ok((_, Frame::Whole(state))) = state.view() else { return Ok(false) };
    let row = seal_frame(key, &KeyframeRow::new(at, Frame::Whole(state)))?;
    head.frame_bytes = head.frame_bytes.saturating_sub(bytes) + row.len() as u64;
    table.insert(key, &*row)?;
    Ok(true)
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
