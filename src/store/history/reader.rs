//! Reading the log beside the writer, from any thread.
//!
//! Each call is one short read transaction and hands out plain values: nothing of the file stays open while a client
//! reads. A store that has to close its file ends the readings that are under way.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{Database, ReadTransaction, ReadableDatabase};

use super::entry::LoggedChange;
use super::fold::SportFold;
use super::forget::{ForgetProgress, ForgottenEvent, PreparedForget, prepare_forget};
use super::lines::{
    EndsOf, KeptTails, LineBytes, LineRange, LinesHead, PreparedLines, Tails, prepare_lines, read_ends,
    read_event_lines,
};
use super::read::{
    LogError, apply_sport, base_of, first_entry, first_frame, first_tick, fold_to, for_each_entry, last_entry_at,
    last_frame, tick_after, tick_at,
};
use super::state::{LogHead, read_head};
use crate::model::{EventId, EventLines, Market, SportId, Timestamp, World};
use crate::store::error::StoreError;
use crate::store::scan::guarded;
use crate::store::table_keys::world_number;

/// Why history cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HistoryError {
    /// It is older than what is kept.
    #[error("the log does not reach back to it")]
    Gone,
    /// Of a time or an entry that has not come yet.
    #[error("it is in the future")]
    Future,
    #[error("the log is damaged: {0}")]
    Damaged(String),
    /// More than may be held in memory for one reading.
    #[error("it is too much to be read at once")]
    TooMuch,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl HistoryError {
    pub fn into_store(self) -> StoreError {
        match self {
            HistoryError::Store(error) => error,
            other => StoreError::Refused(other.to_string()),
        }
    }
}

impl From<LogError> for HistoryError {
    fn from(error: LogError) -> Self {
        match error {
            LogError::Store(error) => HistoryError::Store(error),
            LogError::TooMuch => HistoryError::TooMuch,
            damaged @ LogError::Damaged { .. } => HistoryError::Damaged(damaged.to_string()),
        }
    }
}

impl From<redb::TransactionError> for HistoryError {
    fn from(error: redb::TransactionError) -> Self {
        HistoryError::Store(error.into())
    }
}

/// Which entry a reading as of a time is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entries {
    /// Publications of the sport's prices.
    Ticks,
    /// All of them.
    All,
}

/// The last entry at or before a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryAt {
    pub sequence: u64,
    pub at: Timestamp,
    /// The neighbouring ticks of the sport, each of which changed something.
    pub previous: Option<Timestamp>,
    pub next: Option<Timestamp>,
    /// Whether later entries exist, so that neither this one nor its neighbours change.
    pub is_final: bool,
}

/// A sport from a time on.
#[derive(Clone, Debug)]
pub struct SportPath {
    /// From when on the path is known: the time that was asked for, or the first tick that is kept.
    pub since: Timestamp,
    /// As of the last tick at or before that.
    pub state: SportFold,
    /// What changed after it, in order, each with its second.
    pub changes: Vec<(Timestamp, LoggedChange)>,
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedEntry {
    pub sequence: u64,
    pub at: Timestamp,
    /// In the order of the sports' keys; without sports that the catalogue no longer lists.
    pub sports: Vec<(SportId, Vec<LoggedChange>)>,
}

/// Access to the log of an open file; a clone is the same access.
#[derive(Clone, Default)]
pub struct HistoryReader(Arc<Mutex<ReadSource>>);

#[derive(Default)]
struct ReadSource {
    /// `None` while the file is closed.
    db: Option<Arc<Database>>,
    /// The sports of the catalogue with their numbers in the file.
    sports: Arc<[(SportId, u16)]>,
    /// Set when the file is about to be closed.
    is_closing: Arc<AtomicBool>,
    /// How often entries that were there have become others.
    rewrites: u64,
    tails: Arc<Tails>,
}

impl HistoryReader {
    /// Gives readers a file that was just opened.
    pub(in crate::store) fn open(&self, db: &Arc<Database>, sports: impl Iterator<Item = (SportId, u16)>) {
        let mut source = self.source();
        // What was found out about another file, or before a write that failed, may be wrong.
        let (sports, rewrites) = (sports.collect(), source.rewrites + 1);
        let (is_closing, tails) = (Arc::default(), Arc::default());
        *source = ReadSource { db: Some(Arc::clone(db)), sports, is_closing, rewrites, tails };
    }

    /// Takes the file from readers, and ends what they are reading.
    pub(in crate::store) fn close(&self) {
        let mut source = self.source();
        source.is_closing.store(true, Ordering::Relaxed);
        source.db = None;
    }

    /// How often entries that were there have become others: what was read before that may not be what is there now.
    pub fn rewrites(&self) -> u64 {
        self.source().rewrites
    }

    pub(in crate::store) fn note_rewrite(&self) {
        self.source().rewrites += 1;
    }

    fn source(&self) -> MutexGuard<'_, ReadSource> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn read<T>(&self, work: impl FnOnce(&Reading) -> Result<T, HistoryError>) -> Result<T, HistoryError> {
        let reading = {
            let source = self.source();
            let db = source.db.as_ref().ok_or(StoreError::NeedsReopen)?;
            let (sports, is_closing) = (Arc::clone(&source.sports), Arc::clone(&source.is_closing));
            let (tails, rewrites) = (Arc::clone(&source.tails), source.rewrites);
            Reading { txn: db.begin_read()?, sports, is_closing, tails, rewrites }
        };
        guarded(|| work(&reading))
    }

    /// Where the log of a world ends.
    pub fn head(&self, world: World) -> Result<LogHead, HistoryError> {
        self.read(|reading| Ok(read_head(&reading.txn, world)?.unwrap_or_default()))
    }

    /// How large the lines of a world are.
    pub fn line_bytes(&self, world: World) -> Result<LineBytes, HistoryError> {
        self.read(|reading| Ok(LinesHead::read(&reading.txn, world)?.size))
    }

    /// Since when the prices of a world are known; `None` if none were published.
    pub fn since(&self, world: World) -> Result<Option<Timestamp>, HistoryError> {
        self.read(|reading| {
            let mut since = None;
            for (_, number) in reading.sports.iter() {
                let first = first_tick(&reading.txn, (world_number(world), *number))?;
                since = [since, first].into_iter().flatten().min();
            }
            Ok(since)
        })
    }

    /// A sport as of the last tick at or before a time.
    pub fn as_of(&self, world: World, sport: SportId, time: Timestamp) -> Result<(EntryAt, SportFold), HistoryError> {
        let tick = self.entry_at(world, sport, Entries::Ticks, time)?;
        Ok((tick, self.state_at(world, sport, tick)?))
    }

    /// The last entry at or before a time, from which on the state of a sport is known.
    pub fn entry_at(
        &self,
        world: World,
        sport: SportId,
        entries: Entries,
        time: Timestamp,
    ) -> Result<EntryAt, HistoryError> {
        self.read(|reading| {
            let key = (world_number(world), reading.number(sport)?);
            match entries {
                Entries::Ticks => reading.tick_at(key, time),
                Entries::All => reading.entry_at(key, time),
            }
        })
    }

    /// A sport after an entry that [`HistoryReader::entry_at`] found.
    pub fn state_at(&self, world: World, sport: SportId, entry: EntryAt) -> Result<SportFold, HistoryError> {
        self.read(|reading| reading.state_after((world_number(world), reading.number(sport)?), entry.sequence))
    }

    /// Since when the prices of a sport are known.
    pub fn sport_since(&self, world: World, sport: SportId) -> Result<Option<Timestamp>, HistoryError> {
        self.read(|reading| Ok(first_tick(&reading.txn, (world_number(world), reading.number(sport)?))?))
    }

    /// What happened to a sport since a time. For short times: everything since is read at once.
    pub fn path(&self, world: World, sport: SportId, since: Timestamp) -> Result<SportPath, HistoryError> {
        self.read(|reading| {
            let key = (world_number(world), reading.number(sport)?);
            let last = read_head(&reading.txn, world)?.unwrap_or_default().next.saturating_sub(1);
            let (since, from) = if let Some((_, sequence)) = tick_at(&reading.txn, key, since)? {
                (since, sequence)
            } else {
                let first = first_tick(&reading.txn, key)?.ok_or(HistoryError::Gone)?;
                (first, first_frame(&reading.txn, key)?.ok_or(HistoryError::Gone)?)
            };
            let mut state = reading.state_after(key, from)?;
            let (start, mut changes) = (state.clone(), Vec::new());
            for_each_entry(&reading.txn, key.0, (from, last), |_, entry| {
                apply_sport(&mut state, key.1, entry, |change| changes.push((entry.at, change)))?;
                Ok(())
            })?;
            Ok(SportPath { since, state: start, changes })
        })
    }

    /// A sport after the last entry; empty if the log has not mentioned it since entries were last lost.
    pub fn last_state(&self, world: World, sport: SportId) -> Result<SportFold, HistoryError> {
        self.read(|reading| {
            let key = (world_number(world), reading.number(sport)?);
            let head = read_head(&reading.txn, world)?.unwrap_or_default();
            let last = head.next.saturating_sub(1);
            let is_mentioned = last_frame(&reading.txn, key)?.is_some_and(|sequence| sequence + 1 >= head.start);
            let state = if is_mentioned { fold_to(&reading.txn, key, last)? } else { None };
            Ok(state.unwrap_or_default())
        })
    }

    /// A sport after an entry.
    pub fn after(&self, world: World, sport: SportId, sequence: u64) -> Result<SportFold, HistoryError> {
        self.read(|reading| {
            let key = (world_number(world), reading.number(sport)?);
            Ok(fold_to(&reading.txn, key, sequence)?.unwrap_or_default())
        })
    }

    /// The history of an event: those of its lines that are wanted. `None` if no log that is kept has mentioned it.
    pub fn lines(
        &self,
        world: World,
        sport: SportId,
        event: &EventId,
        is_wanted: impl Fn(&str, Market) -> bool,
    ) -> Result<Option<EventLines>, HistoryError> {
        self.lines_between(world, sport, event, (is_wanted, LineRange::default()))
    }

    /// The same, with the points of a range at least. The rest of a long history is not read.
    pub fn lines_between(
        &self,
        world: World,
        sport: SportId,
        event: &EventId,
        wanted: (impl Fn(&str, Market) -> bool, LineRange),
    ) -> Result<Option<EventLines>, HistoryError> {
        self.read(|reading| {
            let key = (world, reading.number(sport)?);
            Ok(read_event_lines(&reading.txn, key, event, wanted, reading.kept_tails())?)
        })
    }

    /// The openings and closing prices of events: see [`EndsOf`].
    pub fn ends(
        &self,
        world: World,
        sport: SportId,
        of: &EndsOf,
        (is_wanted, lines_max): (impl Fn(&str, Market) -> bool, usize),
    ) -> Result<Vec<EventLines>, HistoryError> {
        self.read(|reading| {
            let key = (world, reading.number(sport)?);
            Ok(read_ends(&reading.txn, key, of, (is_wanted, lines_max), reading.kept_tails())?)
        })
    }

    /// Prepares the next step of writing lines, if there is one: see [`Store::write_lines`].
    ///
    /// [`Store::write_lines`]: crate::store::Store::write_lines
    pub fn prepare_lines(&self, world: World) -> Result<Option<PreparedLines>, HistoryError> {
        self.read(|reading| {
            let sports = reading.sports.iter().map(|(_, number)| *number);
            Ok(prepare_lines(&reading.txn, world, sports, &reading.is_closing)?)
        })
    }

    /// The event of a sport, if its history is to be deleted, and all of the log as what is left to do.
    pub fn begin_forget(
        &self,
        world: World,
        sport: SportId,
        id: &EventId,
    ) -> Result<(ForgottenEvent, ForgetProgress), HistoryError> {
        self.read(|reading| {
            let event = ForgottenEvent { world, sport: reading.number(sport)?, id: id.clone() };
            Ok((event, ForgetProgress::start(&reading.txn, world)?))
        })
    }

    /// Prepares the next step of deleting an event's history from the log: see [`Store::forget`]. `None` if there is none.
    ///
    /// [`Store::forget`]: crate::store::Store::forget
    pub fn prepare_forget(
        &self,
        event: &ForgottenEvent,
        progress: &mut ForgetProgress,
    ) -> Result<Option<PreparedForget>, HistoryError> {
        self.read(|reading| {
            let is_closing = || reading.is_closing.load(Ordering::Relaxed);
            Ok(prepare_forget(&reading.txn, event, progress, is_closing)?)
        })
    }

    /// At most `limit` entries after one, in order.
    pub fn entries_after(&self, world: World, sequence: u64, limit: usize) -> Result<Vec<LoggedEntry>, HistoryError> {
        self.read(|reading| {
            let head = read_head(&reading.txn, world)?.unwrap_or_default();
            let last = head.next.saturating_sub(1);
            if sequence > last {
                return Err(HistoryError::Future);
            }
            let to = sequence.saturating_add(limit as u64).min(last);
            reading.entries(world_number(world), head.start, (sequence, to))
        })
    }
}

/// One transaction.
struct Reading {
    txn: ReadTransaction,
    sports: Arc<[(SportId, u16)]>,
    is_closing: Arc<AtomicBool>,
    tails: Arc<Tails>,
    rewrites: u64,
}

impl Reading {
    fn kept_tails(&self) -> KeptTails<'_> {
        KeptTails { tails: &self.tails, rewrites: self.rewrites, is_closing: &self.is_closing }
    }

    fn number(&self, sport: SportId) -> Result<u16, HistoryError> {
        let found = self.sports.iter().find(|(id, _)| *id == sport);
        found.map(|(_, number)| *number).ok_or(HistoryError::Gone)
    }

    /// The state of a sport in the first keyframe that is kept.
    fn first_state(&self, key: (u8, u16)) -> Result<SportFold, HistoryError> {
        let first = first_frame(&self.txn, key)?.ok_or(HistoryError::Gone)?;
        Ok(base_of(&self.txn, key, first)?.ok_or(HistoryError::Gone)?.fold)
    }

    /// The state of a sport after an entry. The first keyframe that is kept stands for the tick before it: no price changed
    /// in between.
    fn state_after(&self, key: (u8, u16), sequence: u64) -> Result<SportFold, HistoryError> {
        match fold_to(&self.txn, key, sequence)? {
            Some(state) => Ok(state),
            None => self.first_state(key),
        }
    }

    fn tick_at(&self, key: (u8, u16), time: Timestamp) -> Result<EntryAt, HistoryError> {
        let (at, sequence) = tick_at(&self.txn, key, time)?.ok_or(HistoryError::Gone)?;
        let (previous, next) = self.ticks_beside(key, at)?;
        Ok(EntryAt { sequence, at, previous, next, is_final: next.is_some() })
    }

    /// The last entry of any sport at or before a time.
    fn entry_at(&self, key: (u8, u16), time: Timestamp) -> Result<EntryAt, HistoryError> {
        let first = first_frame(&self.txn, key)?.ok_or(HistoryError::Gone)?;
        // Ticks are found by their time, and from the last one on, of whatever sport, it is not far.
        let mut last_tick = None;
        for (_, sport) in self.sports.iter() {
            let tick = tick_at(&self.txn, (key.0, *sport), time)?.map(|(at, sequence)| (sequence, at));
            last_tick = last_tick.max(tick);
        }
        let (from, _) = last_tick.unwrap_or_default();
        let from = from.max(first_entry(&self.txn, key.0)?.unwrap_or(0).saturating_sub(1));
        let (found, is_final) = last_entry_at(&self.txn, key.0, from, time)?;
        let found = found.or(last_tick).filter(|(sequence, _)| *sequence >= first);
        let (sequence, at) = found.ok_or(HistoryError::Gone)?;
        let (previous, next) = self.ticks_beside(key, at)?;
        Ok(EntryAt { sequence, at, previous, next, is_final: is_final && next.is_some() })
    }

    /// The last tick of a sport before a second, and the first one after it.
    fn ticks_beside(
        &self,
        key: (u8, u16),
        at: Timestamp,
    ) -> Result<(Option<Timestamp>, Option<Timestamp>), HistoryError> {
        let before = at.unix().checked_sub(1).map(Timestamp::from_unix);
        let previous = before.map(|before| tick_at(&self.txn, key, before)).transpose()?.flatten();
        Ok((previous.map(|(tick, _)| tick), tick_after(&self.txn, key, at)?))
    }

    fn entries(&self, world: u8, start: u64, (after, to): (u64, u64)) -> Result<Vec<LoggedEntry>, HistoryError> {
        // Each sport is read from its own keyframe on, and all of them in one pass.
        let mut states = Vec::new();
        for (sport, number) in self.sports.iter().copied() {
            let base = base_of(&self.txn, (world, number), after)?.filter(|base| base.sequence + 1 >= start);
            let (from, state) = base.map_or((after, SportFold::default()), |base| (base.sequence, base.fold));
            states.push((sport, number, from, state));
        }
        let first = states.iter().map(|(_, _, from, _)| *from).min().unwrap_or(after);
        let mut entries = Vec::new();
        for_each_entry(&self.txn, world, (first, to), |sequence, entry| {
            let mut sports = Vec::new();
            for section in &entry.sections {
                let Some((sport, _, from, state)) =
                    states.iter_mut().find(|(_, number, _, _)| *number == section.sport)
                else {
                    continue;
                };
                let mut changes = Vec::new();
                if *from < sequence {
                    apply_sport(state, section.sport, entry, |change| changes.push(change))?;
                }
                sports.push((*sport, changes));
            }
            if sequence > after {
                entries.push(LoggedEntry { sequence, at: entry.at, sports });
            }
            Ok(())
        })
        .map_err(|error| self.explain(world, after, error))?;
        if self.is_closing.load(Ordering::Relaxed) { Err(StoreError::Cancelled.into()) } else { Ok(entries) }
    }

    /// An entry before the first one that is kept is not damaged.
    fn explain(&self, world: u8, after: u64, error: LogError) -> HistoryError {
        match first_entry(&self.txn, world) {
            Ok(Some(first)) if after + 1 < first => HistoryError::Gone,
            _ => error.into(),
        }
    }
}

impl fmt::Debug for HistoryReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HistoryReader(…)")
    }
}
