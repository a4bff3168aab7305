//! Deleting the history of one event for good: from the entries and keyframes of the log, and from the lines.
//!
//! The log is rewritten from its end to its beginning, one keyframe and the entries up to the next one at a time. Whatever
//! is read in between finds an event that later entries no longer mention, and never an entry about an event that is not
//! there. So a reader is right at any moment, and after a kill the same command finishes what was begun. The lines go last:
//! they are what a second run finds the event by.
//!
//! A step is prepared from a read transaction, beside the writer. It is committed only if the rows that it replaces are
//! still the same. Entries keep their numbers and their times, but not the numbers of the changes in them: so the log has a
//! new epoch from the first step on, and who follows it begins anew.

mod section;

use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use super::fold::SportFold;
use super::lines::{LinesHead, delete_event_lines};
use super::read::{Base, LogError, base_of, damaged_entry, for_each_row, frame_mentions};
use super::row::{EntryBytes, Frame, KeyframeRow, LogRow, SectionView};
use super::state::{WorldLog, new_epoch, read_head};
use super::write::{refused, seal_frame};
use crate::model::{EventId, World};
use crate::store::codec::Flaw;
use crate::store::error::StoreError;
use crate::store::handle::Store;
use crate::store::row_batch::begin;
use crate::store::table_keys::{KeyframeKey, LogKey, world_number};
use crate::store::tables::{KEYFRAMES, LOG, META};

/// Whose history is deleted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForgottenEvent {
    pub world: World,
    /// The number of its sport.
    pub(in crate::store) sport: u16,
    pub id: EventId,
}

/// How far it has been deleted from the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForgetProgress {
    /// Keyframes after entries before this one are left to do.
    below: u64,
    /// So are the entries up to this one.
    to: u64,
    /// Whether a step has been prepared.
    has_begun: bool,
    /// Whether the log could not be read everywhere: what is damaged stays.
    pub is_damaged: bool,
}

/// What deletes an event from a piece of the log.
#[derive(Debug)]
pub struct PreparedForget {
    event: ForgottenEvent,
    epoch: u64,
    is_first: bool,
    entries: Vec<Replaced<LogKey>>,
    frame: Option<Replaced<KeyframeKey>>,
    /// How many changes it deletes.
    pub lost: u64,
}

/// A row, as it was and as it will be.
#[derive(Debug)]
struct Replaced<K> {
    key: K,
    old: Vec<u8>,
    new: Vec<u8>,
}

/// What became of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForgetOutcome {
    Done,
    /// Rows have changed since it was prepared: it must be prepared again.
    Outdated,
    /// The event is on the board again.
    OnBoard,
}

impl ForgetProgress {
    pub(super) fn start(txn: &ReadTransaction, world: World) -> Result<Self, StoreError> {
        let next = read_head(txn, world_number(world))?.unwrap_or_default().next;
        Ok(ForgetProgress { below: next, to: next.saturating_sub(1), has_begun: false, is_damaged: false })
    }
}

/// Prepares the next step. `None` if the rest of the log does not mention the event.
pub(super) fn prepare_forget(
    txn: &ReadTransaction,
    event: &ForgottenEvent,
    progress: &mut ForgetProgress,
    is_closing: impl Fn() -> bool,
) -> Result<Option<PreparedForget>, LogError> {
    let key = (world_number(event.world), event.sport);
    while let Some(frame) = frame_below(txn, key, progress.below)? {
        if is_closing() {
            return Err(StoreError::Cancelled.into());
        }
        let piece = Piece { txn, event, key: (key.0, key.1, frame), to: progress.to };
        let prepared = piece.prepare(&mut progress.is_damaged)?;
        (progress.below, progress.to) = (frame, frame);
        if let Some(prepared) = prepared {
            let is_first = !std::mem::replace(&mut progress.has_begun, true);
            return Ok(Some(PreparedForget { is_first, ..prepared }));
        }
    }
    Ok(None)
}

/// The entry that the last keyframe before an entry follows.
fn frame_below(txn: &ReadTransaction, (world, sport): (u8, u16), below: u64) -> Result<Option<u64>, LogError> {
    let frames = txn.open_table(KEYFRAMES.definition)?;
    let last = frames.range((world, sport, 0)..(world, sport, below))?.next_back();
    Ok(last.transpose()?.map(|(key, _)| key.value().2))
}

/// A keyframe, and the entries after it up to one.
struct Piece<'t> {
    txn: &'t ReadTransaction,
    event: &'t ForgottenEvent,
    key: KeyframeKey,
    to: u64,
}

impl Piece<'_> {
    fn prepare(&self, is_damaged: &mut bool) -> Result<Option<PreparedForget>, LogError> {
        // Decoding everything would take much longer than looking for the text.
        let is_mentioned = match self.is_mentioned() {
            Err(LogError::Damaged { .. }) => true,
            other => other?,
        };
        if !is_mentioned {
            return Ok(None);
        }
        let base = match base_of(self.txn, (self.key.0, self.key.1), self.key.2) {
            Ok(Some(base)) => base,
            Ok(None) => return Ok(None),
            // Nobody can read what follows it either.
            Err(LogError::Damaged { .. }) => {
                *is_damaged = true;
                return Ok(None);
            }
            Err(other) => return Err(other),
        };
        let frame = self.without_event(&base)?;
        let (entries, lost, is_whole) = self.rewrite(base.fold)?;
        *is_damaged |= !is_whole;
        if entries.is_empty() && frame.is_none() {
            return Ok(None);
        }
        let epoch = read_head(self.txn, self.key.0)?.map_or(0, |head| head.epoch);
        Ok(Some(PreparedForget { event: self.event.clone(), epoch, is_first: false, entries, frame, lost }))
    }

    fn is_mentioned(&self) -> Result<bool, LogError> {
        let id = self.event.id.as_str().as_bytes();
        if frame_mentions(self.txn, self.key, id)? {
            return Ok(true);
        }
        let mut is_mentioned = false;
        for_each_row(self.txn, self.key.0, (self.key.2, self.to), |key, _, entries| {
            for entry in entries {
                let view = entry.view().map_err(|flaw| damaged_entry(key, flaw))?;
                let mut sections = view.sections.iter().filter(|section| section.sport == self.event.sport);
                is_mentioned |= sections.any(|section| contains(section.bytes, id));
            }
            Ok(())
        })?;
        Ok(is_mentioned)
    }

    /// The keyframe that has the state, if the event is in it. It goes together with the entries after one that only refers
    /// to it: a keyframe that is written in between would have the event for ever.
    fn without_event(&self, base: &Base) -> Result<Option<Replaced<KeyframeKey>>, LogError> {
        let mut fold = base.fold.clone();
        if !fold.remove_event(&self.event.id) {
            return Ok(None);
        }
        let key = (self.key.0, self.key.1, base.whole);
        let stored = self.txn.open_table(KEYFRAMES.definition)?.get(key)?;
        let Some(old) = stored.map(|row| row.value().to_vec()) else { return Ok(None) };
        let at = KEYFRAMES.unseal(&key, &old).and_then(|row| Ok(row.view()?.0)).unwrap_or(base.at);
        let bytes = fold.to_keyframe(at).map_err(refused)?;
        Ok(Some(Replaced { key, old, new: seal_frame(key, &KeyframeRow::new(at, Frame::Whole(&bytes)))? }))
    }

    /// The rows that change, how many changes they lose, and whether all of them could be read.
    fn rewrite(&self, mut fold: SportFold) -> Result<(Vec<Replaced<LogKey>>, u64, bool), LogError> {
        let (mut replaced, mut lost) = (Vec::new(), 0);
        let read = for_each_row(self.txn, self.key.0, (self.key.2, self.to), |key, stored, entries| {
            let (mut new, mut lost_in_row) = (Vec::with_capacity(entries.len()), 0);
            for (sequence, entry) in (key.1..).zip(&entries) {
                // A pack may have entries of the pieces before and after.
                if sequence <= self.key.2 || sequence > self.to {
                    new.push(entry.clone());
                    continue;
                }
                let rewritten = rewrite_entry(&mut fold, self.event, entry);
                let (entry, lost) = rewritten.map_err(|flaw| damaged_entry((key.0, sequence), flaw))?;
                lost_in_row += lost;
                new.push(entry);
            }
            if lost_in_row > 0 {
                replaced.push(Replaced { key, old: stored.to_vec(), new: sealed(key, stored, &new)? });
                lost += lost_in_row;
            }
            Ok(())
        });
        match read {
            Ok(()) => {}
            // What follows a damaged row cannot be read by anybody.
            Err(LogError::Damaged { .. }) => return Ok((replaced, lost, false)),
            Err(other) => return Err(other),
        }
        Ok((replaced, lost, true))
    }
}

/// The row of entries, packed if it was.
fn sealed(key: LogKey, stored: &[u8], entries: &[EntryBytes]) -> Result<Vec<u8>, LogError> {
    let was_pack = LOG.unseal(&key, stored).is_ok_and(|row| row.is_pack());
    let row = match entries {
        [entry] if !was_pack => LogRow::loose(entry),
        entries => LogRow::pack(entries).map_err(|flaw| damaged_entry(key, flaw))?,
    };
    let sealed = LOG.seal(&key, &row);
    Ok(sealed.map_err(|error| StoreError::Refused(format!("the entry of the log is too long: {error}")))?)
}

fn rewrite_entry(fold: &mut SportFold, event: &ForgottenEvent, entry: &EntryBytes) -> Result<(EntryBytes, u64), Flaw> {
    let view = entry.view()?;
    let (mut sections, mut lost) = (Vec::with_capacity(view.sections.len()), 0);
    for section in &view.sections {
        let rewritten = if section.sport == event.sport {
            let rewritten = fold.rewrite(section, view.at, &event.id)?;
            lost += rewritten.lost;
            Some(rewritten.bytes)
        } else {
            None
        };
        sections.push((*section, rewritten));
    }
    if lost == 0 {
        return Ok((entry.clone(), 0));
    }
    let sections = sections.iter().map(|(section, rewritten)| match rewritten {
        Some(bytes) => SectionView { bytes, ..*section },
        None => *section,
    });
    Ok((EntryBytes::of_sections(view.at, view.changes.saturating_sub(lost), sections), lost))
}

/// Whether bytes have others in them.
pub(super) fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len().max(1)).any(|window| window == part)
}

impl Store {
    /// Commits a step that `HistoryReader::prepare_forget` prepared.
    pub fn forget(&mut self, prepared: &PreparedForget) -> Result<ForgetOutcome, StoreError> {
        let event = &prepared.event;
        let mut logs = self.take_logs()?;
        let log = &mut logs[event.world.index()];
        let is_known = |sport: &super::state::SportLog| sport.dictionary.events.contains_key(&event.id);
        if log.sports.get(&event.sport).is_some_and(is_known) {
            self.put_logs(logs);
            return Ok(ForgetOutcome::OnBoard);
        }
        let outcome = if log.head.epoch == prepared.epoch {
            self.writing(|store| prepared.commit(begin(&store.file()?.db)?, log))?
        } else {
            ForgetOutcome::Outdated
        };
        self.put_logs(logs);
        self.history().note_rewrite();
        Ok(outcome)
    }

    /// Deletes the lines of an event; returns whether it had any.
    pub fn forget_lines(&mut self, event: &ForgottenEvent) -> Result<bool, StoreError> {
        let had_lines = self.writing(|store| {
            let txn = begin(&store.file()?.db)?;
            let had_lines = {
                let mut meta = txn.open_table(META.definition)?;
                let log = world_number(event.world);
                let mut head = LinesHead::read_from(&meta, log)?;
                let had_lines = delete_event_lines(&txn, (log, event.sport), &event.id, &mut head)?;
                if had_lines {
                    let (key, row) = head.seal(log)?;
                    meta.insert(&*key, &*row)?;
                }
                had_lines
            };
            txn.commit()?;
            Ok(had_lines)
        })?;
        self.history().note_rewrite();
        Ok(had_lines)
    }
}

impl PreparedForget {
    pub fn world(&self) -> World {
        self.event.world
    }

    fn commit(&self, txn: WriteTransaction, log: &mut WorldLog) -> Result<ForgetOutcome, StoreError> {
        {
            let (mut rows, mut frames) = (txn.open_table(LOG.definition)?, txn.open_table(KEYFRAMES.definition)?);
            for row in &self.entries {
                if rows.get(row.key)?.is_none_or(|stored| stored.value() != row.old) {
                    return Ok(ForgetOutcome::Outdated);
                }
            }
            if let Some(row) = &self.frame {
                if frames.get(row.key)?.is_none_or(|stored| stored.value() != row.old) {
                    return Ok(ForgetOutcome::Outdated);
                }
                frames.insert(row.key, &*row.new)?;
                log.head.frame_bytes = row.in_place(log.head.frame_bytes);
            }
            for row in &self.entries {
                rows.insert(row.key, &*row.new)?;
                log.head.entry_bytes = row.in_place(log.head.entry_bytes);
                if row.key.1 > log.head.packed {
                    log.loose_bytes = row.in_place(log.loose_bytes);
                }
            }
            log.head.changes = log.head.changes.saturating_sub(self.lost);
            if self.is_first {
                log.head.epoch = new_epoch()?;
            }
            let (key, row) = log.head.seal(world_number(self.event.world))?;
            txn.open_table(META.definition)?.insert(&*key, &*row)?;
        }
        txn.commit()?;
        Ok(ForgetOutcome::Done)
    }
}

impl<K> Replaced<K> {
    /// A sum of sizes after the replacement.
    fn in_place(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(self.old.len() as u64) + self.new.len() as u64
    }
}
