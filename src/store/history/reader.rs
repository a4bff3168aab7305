//! Reading the log beside the writer, from any thread.
//!
//! Each call is one short read transaction and hands out plain values: nothing of the file stays open while a client
//! reads. A store that has to close its file ends the readings that are under way.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::{Database, ReadableDatabase};

use super::entry::LoggedChange;
use super::fold::SportFold;
use super::forget::{ForgetProgress, ForgottenEvent, PreparedForget, prepare_forget};
use super::import::Imports;
use super::lines::{
    EndsOf, LineBytes, LineRange, LinesHead, PreparedLines, Tails, is_in_lines, prepare_lines, read_ends,
    read_event_lines,
};
use super::merge::{merge_ends, merge_lines};
use super::read::{
    LogError, apply_sport, first_entry, first_frame, first_tick, fold_to, for_each_entry, last_frame, tick_at,
};
use super::reading::Reading;
use super::state::{LogHead, read_head};
use crate::model::{EventId, EventLines, Market, Permanence, SportId, Timestamp, World};
use crate::store::error::StoreError;
use crate::store::guard::guarded;
use crate::store::table_keys::{LogNumber, world_number};

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
    pub log: LogId,
    pub sequence: u64,
    pub at: Timestamp,
    /// The neighbouring ticks of the sport, each of which changed something.
    pub previous: Option<Timestamp>,
    pub next: Option<Timestamp>,
    /// How long this one and its neighbours stay the same.
    pub permanence: Permanence,
}

/// A log: a world's own, or an imported history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogId(pub(in crate::store) LogNumber);

impl From<World> for LogId {
    /// The world's own.
    fn from(world: World) -> Self {
        LogId(world_number(world))
    }
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
    /// Set when the disk fails while it is read.
    has_failed: Arc<AtomicBool>,
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
        let db = Some(Arc::clone(db));
        *source = ReadSource { db, sports, rewrites, ..ReadSource::default() };
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

    /// Notes that the disk failed while it was read.
    pub(in crate::store) fn note_failure(&self) {
        self.source().has_failed.store(true, Ordering::Relaxed);
    }

    /// Whether the disk has failed while it was read since the file was opened: it has to be opened again.
    pub(in crate::store) fn has_failed(&self) -> bool {
        self.source().has_failed.load(Ordering::Relaxed)
    }

    fn source(&self) -> MutexGuard<'_, ReadSource> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn read<T>(&self, work: impl FnOnce(&Reading) -> Result<T, HistoryError>) -> Result<T, HistoryError> {
        let (begun, has_failed) = {
            let source = self.source();
            let db = source.db.as_ref().ok_or(StoreError::NeedsReopen)?;
            let (sports, is_closing) = (Arc::clone(&source.sports), Arc::clone(&source.is_closing));
            let (tails, rewrites) = (Arc::clone(&source.tails), source.rewrites);
            let begun = db.begin_read().map(|txn| Reading { txn, sports, is_closing, tails, rewrites });
            (begun, Arc::clone(&source.has_failed))
        };
        let result = begun.map_err(HistoryError::from).and_then(|reading| guarded(|| work(&reading)));
        if matches!(&result, Err(HistoryError::Store(error)) if error.is_of_disk()) {
            has_failed.store(true, Ordering::Relaxed);
        }
        result
    }

    /// Where the log of a world ends.
    pub fn head(&self, world: World) -> Result<LogHead, HistoryError> {
        self.read(|reading| Ok(read_head(&reading.txn, world_number(world))?.unwrap_or_default()))
    }

    /// How large the lines of a world are.
    pub fn line_bytes(&self, world: World) -> Result<LineBytes, HistoryError> {
        self.read(|reading| Ok(LinesHead::read(&reading.txn, world_number(world))?.size))
    }

    /// Since when the prices of a world are known; `None` if none were published.
    pub fn since(&self, world: World) -> Result<Option<Timestamp>, HistoryError> {
        self.read(|reading| {
            let mut since = None;
            for (_, number) in reading.sports.iter() {
                for log in reading.logs(world, *number)? {
                    since = [since, first_tick(&reading.txn, log)?].into_iter().flatten().min();
                }
            }
            Ok(since)
        })
    }

    /// A sport as of the last tick at or before a time.
    pub fn as_of(&self, world: World, sport: SportId, time: Timestamp) -> Result<(EntryAt, SportFold), HistoryError> {
        let tick = self.entry_at(world, sport, Entries::Ticks, time)?;
        Ok((tick, self.state_at(sport, tick)?))
    }

    /// The last entry at or before a time, from which on the state of a sport is known.
    pub fn entry_at(
        &self,
        world: World,
        sport: SportId,
        entries: Entries,
        time: Timestamp,
    ) -> Result<EntryAt, HistoryError> {
        self.read(|reading| reading.entry_as_of((world, reading.number(sport)?), entries, time))
    }

    /// A sport after an entry that [`HistoryReader::entry_at`] found, if it is still kept.
    pub fn state_at(&self, sport: SportId, entry: EntryAt) -> Result<SportFold, HistoryError> {
        self.read(|reading| reading.state_at((entry.log.0, reading.number(sport)?), entry))
    }

    /// Since when the prices of a sport are known.
    pub fn sport_since(&self, world: World, sport: SportId) -> Result<Option<Timestamp>, HistoryError> {
        self.read(|reading| {
            let mut since = None;
            for log in reading.logs(world, reading.number(sport)?)? {
                since = [since, first_tick(&reading.txn, log)?].into_iter().flatten().min();
            }
            Ok(since)
        })
    }

    /// Since when the prices of a sport are in the log of the world itself.
    pub fn own_since(&self, world: World, sport: SportId) -> Result<Option<Timestamp>, HistoryError> {
        self.read(|reading| Ok(first_tick(&reading.txn, (world_number(world), reading.number(sport)?))?))
    }

    /// What happened to a sport since a time. For short times: everything since is read at once.
    pub fn path(&self, world: World, sport: SportId, since: Timestamp) -> Result<SportPath, HistoryError> {
        self.read(|reading| {
            let key = (world_number(world), reading.number(sport)?);
            let last = read_head(&reading.txn, key.0)?.unwrap_or_default().next.saturating_sub(1);
            let first = first_frame(&reading.txn, key)?.ok_or(HistoryError::Gone)?;
            let (since, from) = match tick_at(&reading.txn, key, since)? {
                // The first tick that is kept may be before the first keyframe, and its entry removed.
                Some((_, sequence)) => (since, sequence.max(first)),
                None => (first_tick(&reading.txn, key)?.ok_or(HistoryError::Gone)?, first),
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
            let head = read_head(&reading.txn, key.0)?.unwrap_or_default();
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
            let sport = reading.number(sport)?;
            let of_log = |log| {
                let wanted = (&wanted.0, wanted.1);
                read_event_lines(&reading.txn, log, event, wanted, reading.kept_tails())
            };
            let own = (world_number(world), sport);
            let Some(imported) = reading.imported(world, sport)? else { return Ok(of_log(own)?) };
            Ok(merge_lines(of_log(imported)?, of_log(own)?, first_tick(&reading.txn, own)?))
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
            let sport = reading.number(sport)?;
            let of_log =
                |log, of: &EndsOf| read_ends(&reading.txn, log, of, (&is_wanted, lines_max), reading.kept_tails());
            let own = (world_number(world), sport);
            let Some(imported) = reading.imported(world, sport)? else { return Ok(of_log(own, of)?) };
            // The day of an event may be another one in each of the logs.
            let of_both = match of {
                EndsOf::Events(_) => None,
                EndsOf::Day(_) => {
                    let events = of_log(imported, of)?.into_iter().chain(of_log(own, of)?);
                    Some(EndsOf::Events(events.map(|event| event.event.id.clone()).collect()))
                }
            };
            let of_both = of_both.as_ref().unwrap_or(of);
            let since = first_tick(&reading.txn, own)?;
            let mut merged = merge_ends(of_log(imported, of_both)?, of_log(own, of_both)?, since);
            merged.retain(|event| !matches!(of, EndsOf::Day(day) if *day != event.start.day(&event.event)));
            Ok(merged)
        })
    }

    /// Prepares the next step of writing lines, if there is one: see [`Store::write_lines`].
    ///
    /// [`Store::write_lines`]: crate::store::Store::write_lines
    pub fn prepare_lines(&self, log: LogId) -> Result<Option<PreparedLines>, HistoryError> {
        self.read(|reading| {
            let sports = reading.sports.iter().map(|(_, number)| *number);
            Ok(prepare_lines(&reading.txn, log.0, sports, &reading.is_closing)?)
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

    /// Whether an event is in an imported history; or one with another id and the same hash.
    pub fn is_imported(&self, world: World, sport: SportId, event: &EventId) -> Result<bool, HistoryError> {
        self.read(|reading| match reading.imported(world, reading.number(sport)?)? {
            Some(log) => Ok(is_in_lines(&reading.txn, log, event)?),
            None => Ok(false),
        })
    }

    /// The log of a world that has an epoch.
    pub fn log_of_epoch(&self, world: World, epoch: u64) -> Result<Option<LogId>, HistoryError> {
        self.read(|reading| {
            let imported = Imports::read(&reading.txn)?;
            let imported = imported.iter().filter(|log| log.world == world_number(world)).map(|log| log.number);
            for log in [world_number(world)].into_iter().chain(imported) {
                if read_head(&reading.txn, log)?.is_some_and(|head| head.epoch == epoch) {
                    return Ok(Some(LogId(log)));
                }
            }
            Ok(None)
        })
    }

    /// How many changes a log has.
    pub fn changes(&self, log: LogId) -> Result<u64, HistoryError> {
        self.read(|reading| Ok(read_head(&reading.txn, log.0)?.unwrap_or_default().changes))
    }

    /// The epoch of a log, and its first entry that is kept.
    pub fn log_start(&self, log: LogId) -> Result<(u64, u64), HistoryError> {
        self.read(|reading| {
            let head = read_head(&reading.txn, log.0)?.unwrap_or_default();
            Ok((head.epoch, first_entry(&reading.txn, log.0)?.unwrap_or(head.next)))
        })
    }

    /// The epoch of a log, and the number of its next entry.
    pub fn log_end(&self, log: LogId) -> Result<(u64, u64), HistoryError> {
        self.read(|reading| {
            let head = read_head(&reading.txn, log.0)?.unwrap_or_default();
            Ok((head.epoch, head.next))
        })
    }

    /// At most `limit` entries after one, in order.
    pub fn entries_after(&self, log: LogId, sequence: u64, limit: usize) -> Result<Vec<LoggedEntry>, HistoryError> {
        self.read(|reading| {
            let head = read_head(&reading.txn, log.0)?.unwrap_or_default();
            let last = head.next.saturating_sub(1);
            if sequence > last {
                return Err(HistoryError::Future);
            }
            let to = sequence.saturating_add(limit as u64).min(last);
            reading.entries(log.0, head.start, (sequence, to))
        })
    }
}

impl fmt::Debug for HistoryReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HistoryReader(…)")
    }
}
