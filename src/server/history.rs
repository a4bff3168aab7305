//! The log as the public interface reads it: boards as of a time, the last ones of them in memory.

use std::hash::Hash;
use std::sync::{Arc, Weak};

use foldhash::fast::RandomState;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};

use crate::board::{
    AsOf, Boards, ChangeEntry, ChangedRecord, EventNode, Index, ListChange, MovedEvent, Published, Register,
    SportBoard, SportEntry, TickEntry,
};
use crate::http::{
    AsOfRead, ClosingOf, ClosingRead, EntriesRead, History, HistoryFailure, HourEntries, HourRead, HourRun, LinesRead,
    Shown,
};
use crate::keys::SportAccess;
use crate::model::{Event, EventLines, LoggedPrice, Market, Permanence, Record, RecordId, SportId, Timestamp, World};
use crate::store::{
    EndsOf, Entries, EntryAt, HistoryError, HistoryReader, LineRange, LogId, LoggedChange, LoggedEntry, LoggedMove,
    LoggedRecord, SportFold,
};
use crate::writer::logged_board;

/// The most that the boards in memory weigh together: about 128 MiB.
const WEIGHT_MAX: u64 = 4 << 20;
/// What an event and a record weigh in outcomes, which take about 32 bytes.
const EVENT_WEIGHT: u64 = 32;
const RECORD_WEIGHT: u64 = 4;
/// Of how many times it is remembered which entry they are about.
const TIMES_MAX: usize = 4096;

#[derive(Debug)]
pub(super) struct LogHistory {
    reader: HistoryReader,
    boards: Arc<Boards>,
    times: Cache<AsOfRead, KnownEntry>,
    past: Cache<PastKey, Arc<PastBoard>, ByWeight, RandomState>,
    runs: Cache<RunKey, EntryRun, ByWeight, RandomState>,
}

/// A sport after an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PastKey {
    world: World,
    sport: SportId,
    log: LogId,
    sequence: u64,
    /// The address of what was published, for the last entry: it may be taken back and another one have its number, so its board
    /// counts until the next publication.
    published: Option<usize>,
    /// How often the log had been rewritten: a board from before is not asked for again.
    rewrites: u64,
}

impl PastKey {
    fn new(read: AsOfRead, KnownEntry { entry, published, rewrites }: &KnownEntry) -> Self {
        PastKey {
            world: read.access.world(),
            sport: read.access.sport(),
            log: entry.log,
            sequence: entry.sequence,
            published: (entry.permanence == Permanence::Current).then(|| published.as_ptr().addr()),
            rewrites: *rewrites,
        }
    }
}

#[derive(Debug)]
struct PastBoard {
    board: SportBoard,
    register: Arc<Register>,
    /// See [`WEIGHT_MAX`].
    weight: u64,
}

/// The entry that a time is about.
#[derive(Clone, Debug)]
struct KnownEntry {
    entry: EntryAt,
    /// What was published when this was found: the last entry stays the last until the next publication.
    published: Weak<Published>,
    /// See [`HistoryReader::rewrites`].
    rewrites: u64,
}

#[derive(Clone, Debug)]
struct ByWeight;

impl Weighter<PastKey, Arc<PastBoard>> for ByWeight {
    fn weight(&self, _: &PastKey, past: &Arc<PastBoard>) -> u64 {
        past.weight
    }
}

/// A cache of so much weight.
fn bounded<K: Eq + Hash, V: Clone>(weight_max: u64) -> Cache<K, V, ByWeight, RandomState>
where
    ByWeight: Weighter<K, V>,
{
    let items = TIMES_MAX / 16;
    let mut options = OptionsBuilder::new();
    // Shards would bound the largest value, not the sum.
    options.shards(1).estimated_items_capacity(items).weight_capacity(weight_max);
    match options.build() {
        Ok(options) => Cache::with_options(options, ByWeight, RandomState::default(), DefaultLifecycle::default()),
        Err(_) => Cache::with(items, weight_max, ByWeight, RandomState::default(), DefaultLifecycle::default()),
    }
}

impl LogHistory {
    pub(super) fn new(reader: HistoryReader, boards: Arc<Boards>) -> Self {
        let (past, runs) = (bounded(WEIGHT_MAX), bounded(ENTRY_BYTES_MAX));
        LogHistory { reader, boards, times: Cache::new(TIMES_MAX), past, runs }
    }

    fn published(&self, read: AsOfRead) -> Weak<Published> {
        let world = self.boards.load(read.access.world());
        Arc::downgrade(world.sport(read.access.sport()).published())
    }

    /// The board of a sport after an entry, as the log has it.
    fn past_board(&self, world: World, sport: SportId, state: &SportFold) -> PastBoard {
        let (board, register) = logged_board(&self.boards, world, sport, state);
        let weight = weight_of(board.current());
        PastBoard { board, register, weight }
    }

    fn failure(&self, access: SportAccess, error: &HistoryError) -> HistoryFailure {
        let (world, sport) = (access.world(), access.sport());
        match error {
            HistoryError::Gone | HistoryError::Future => {
                HistoryFailure::Gone { since: self.reader.sport_since(world, sport).unwrap_or_default() }
            }
            error => unreadable(error),
        }
    }

    fn read(&self, read: AsOfRead) -> Result<AsOf, HistoryError> {
        let (world, sport) = (read.access.world(), read.access.sport());
        let entries = match read.shown {
            Shown::Prices => Entries::Ticks,
            Shown::Lists => Entries::All,
        };
        // Both before the entry is read: what changes meanwhile makes it too old, and not too new.
        let (published, rewrites) = (self.published(read), self.reader.rewrites());
        let entry = self.reader.entry_at(world, sport, entries, read.time)?;
        let known = KnownEntry { entry, published, rewrites };
        // The last entry of events and scores may be followed by another one at any time.
        if entry.permanence > Permanence::Current || read.shown == Shown::Prices {
            self.times.insert(read, known.clone());
        }
        let past = self.past.get_or_insert_with(&PastKey::new(read, &known), || {
            let state = self.reader.state_at(sport, entry)?;
            Ok::<_, HistoryError>(Arc::new(self.past_board(world, sport, &state)))
        })?;
        Ok(as_of(&past, &entry))
    }
}

/// How many entries of the log are read at a time.
const ENTRIES_READ: u64 = 64;
/// The most bytes that entries in memory take together, about, if all clients ask for the same form. A run of long
/// publications has to fit: a longer one would be read again for each client.
const ENTRY_BYTES_MAX: u64 = 128 << 20;

/// A run of entries of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct RunKey {
    world: World,
    epoch: u64,
    /// How often the log had been rewritten.
    rewrites: u64,
    first: u64,
    last: u64,
}

/// Entries as streams hand them out, and their seconds.
#[derive(Clone, Debug)]
struct EntryRun {
    entries: Arc<[Arc<ChangeEntry>]>,
    times: Arc<[Timestamp]>,
    weight: u64,
}

impl EntryRun {
    /// The second of the first entry from a number on.
    fn time_from(&self, sequence: u64) -> Option<Timestamp> {
        let first = self.entries.partition_point(|entry| entry.sequence < sequence);
        self.times.get(first).copied()
    }
}

impl Weighter<RunKey, EntryRun> for ByWeight {
    fn weight(&self, _: &RunKey, run: &EntryRun) -> u64 {
        run.weight
    }
}

impl LogHistory {
    /// The entries around one: streams that resume at about the same time share them.
    fn run(&self, read: EntriesRead) -> Result<EntryRun, HistoryError> {
        let log = self.reader.log_of_epoch(read.world, read.epoch)?.ok_or(HistoryError::Gone)?;
        let first = read.from - read.from % ENTRIES_READ;
        let last = (first + ENTRIES_READ - 1).min(read.to.saturating_sub(1));
        let rewrites = self.reader.rewrites();
        let key = |first| RunKey { world: read.world, epoch: read.epoch, rewrites, first, last };
        let read_run = |key: RunKey| {
            let after = key.first.max(1) - 1;
            let count = usize::try_from(key.last.saturating_sub(after)).unwrap_or(0);
            let read = self.reader.entries_after(log, after, count);
            read.map(|entries| self.entry_run(&entries))
        };
        match self.runs.get_or_insert_with(&key(first), || read_run(key(first))) {
            // The run begins before what is kept.
            Err(HistoryError::Gone) if first < read.from => read_run(key(read.from)),
            run => run,
        }
    }

    fn entry_run(&self, entries: &[LoggedEntry]) -> EntryRun {
        let catalogue = self.boards.catalogue();
        let times = entries.iter().map(|entry| entry.at).collect();
        let entry = |entry: &LoggedEntry| {
            let sports = entry
                .sports
                .iter()
                .map(|(sport, changes)| sport_entry(&catalogue[*sport].key, entry.at, (*sport, changes)));
            Arc::new(ChangeEntry::logged(entry.sequence, sports.collect()))
        };
        let entries: Arc<[Arc<ChangeEntry>]> = entries.iter().map(entry).collect();
        let weight = 1 + entries.iter().map(|entry| entry.weight_rendered() as u64).sum::<u64>();
        EntryRun { entries, times, weight }
    }
}

fn sport_entry(key: &str, at: Timestamp, (sport, changes): (SportId, &[LoggedChange])) -> SportEntry {
    let mut lists = Vec::new();
    let mut tick = None;
    for change in changes {
        match change {
            LoggedChange::Event(event, markets, moved) => {
                let moved = moved.as_ref().map(|moved| Arc::new(moved_event(key, at, moved, event)));
                lists.push(ListChange::Event(Arc::clone(event), markets.clone(), moved));
            }
            LoggedChange::Score(event, score) => lists.push(ListChange::Score(Arc::clone(event), Arc::clone(score))),
            LoggedChange::Removed(event) => lists.push(ListChange::Removed(Arc::clone(event))),
            LoggedChange::Tick(logged) => {
                let records = logged.records.iter().map(|record| changed_record(key, record)).collect();
                tick = Some(TickEntry::new(key, logged.at, logged.sources.clone(), records));
            }
        }
    }
    SportEntry { sport, key: key.into(), lists, tick }
}

fn changed_record(sport_key: &str, logged: &LoggedRecord) -> ChangedRecord {
    let LoggedRecord { event, bookmaker, market, price } = logged;
    let id = RecordId::new(sport_key, &event.id, bookmaker, *market);
    let record = price.as_ref().map(|price| record_of(id, *market, price));
    (Arc::clone(event), Arc::clone(bookmaker), *market, record)
}

fn record_of(id: RecordId, market: Market, price: &LoggedPrice) -> Arc<Record> {
    Arc::new(Record::logged(id, market, price.last_update, &price.outcomes))
}

fn moved_event(sport_key: &str, at: Timestamp, moved: &LoggedMove, to: &Arc<Event>) -> MovedEvent {
    let records = moved.records.iter().map(|(book, market, price)| {
        (Arc::clone(book), record_of(RecordId::new(sport_key, &to.id, book, *market), *market, price))
    });
    MovedEvent::new(sport_key, at, (&moved.from, to), &records.collect::<Vec<_>>())
}

const HOUR_S: u32 = 3_600;

impl History for LogHistory {
    fn hour(&self, HourRead { access, start }: HourRead) -> Result<HourEntries, HistoryFailure> {
        let (world, sport) = (access.world(), access.sport());
        let last_before = |time: u32| {
            let before = Timestamp::from_unix(time.saturating_sub(1));
            self.reader.entry_at(world, sport, Entries::All, before)
        };
        let read = || {
            let (before, last) = (last_before(start.unix())?, last_before(start.unix().saturating_add(HOUR_S))?);
            let (epoch, first) = self.reader.log_start(last.log)?;
            let mut runs = Vec::new();
            if before.log == last.log {
                runs.push(HourRun { epoch, first: before.sequence + 1, end: last.sequence + 1 });
            } else {
                let (older_epoch, end) = self.reader.log_end(before.log)?;
                runs.push(HourRun { epoch: older_epoch, first: before.sequence + 1, end });
                runs.push(HourRun { epoch, first, end: last.sequence + 1 });
            }
            let is_imported = before.log != last.log;
            let permanence = if is_imported { last.permanence.min(Permanence::Imported) } else { last.permanence };
            Ok(HourEntries { runs, permanence })
        };
        read().map_err(|error: HistoryError| self.failure(access, &error))
    }

    fn entries(&self, read: EntriesRead) -> Result<Arc<[Arc<ChangeEntry>]>, HistoryFailure> {
        let gone = HistoryFailure::Gone { since: None };
        match self.run(read) {
            Ok(run) if run.time_from(read.from).is_some_and(|time| time < read.oldest) => Err(gone),
            Ok(run) => Ok(run.entries),
            Err(HistoryError::Gone | HistoryError::Future) => Err(gone),
            Err(error) => Err(unreadable(&error)),
        }
    }

    fn lines(&self, read: &LinesRead) -> Result<Option<EventLines>, HistoryFailure> {
        let LinesRead { access, event, bookmakers, markets, range: (from, to) } = read;
        let is_wanted = |key: &str, market: Market| bookmakers.contains(key) && markets.accepts(market);
        let wanted = (is_wanted, LineRange { from: *from, to: *to });
        let lines = self.reader.lines_between(access.world(), access.sport(), event, wanted);
        lines.map_err(|error| self.failure(*access, &error))
    }

    fn closing(&self, read: &ClosingRead) -> Result<Vec<EventLines>, HistoryFailure> {
        let ClosingRead { access, of, bookmakers, markets, rows_max } = read;
        let is_wanted = |key: &str, market: Market| bookmakers.contains(key) && markets.accepts(market);
        let of = match of {
            ClosingOf::Events(ids) => EndsOf::Events(ids.clone()),
            ClosingOf::Day(day) => EndsOf::Day(*day),
        };
        let events = self.reader.ends(access.world(), access.sport(), &of, (is_wanted, *rows_max));
        events.map_err(|error| self.failure(*access, &error))
    }

    fn kept(&self, read: AsOfRead) -> Option<AsOf> {
        let known = self.times.get(&read)?;
        let is_current = known.entry.permanence > Permanence::Current || known.published.ptr_eq(&self.published(read));
        if !is_current || known.rewrites != self.reader.rewrites() {
            return None;
        }
        let past = self.past.get(&PastKey::new(read, &known))?;
        Some(as_of(&past, &known.entry))
    }

    fn as_of(&self, read: AsOfRead) -> Result<AsOf, HistoryFailure> {
        self.read(read).map_err(|error| self.failure(read.access, &error))
    }
}

fn unreadable(error: &HistoryError) -> HistoryFailure {
    match error {
        HistoryError::Gone | HistoryError::Future => HistoryFailure::Gone { since: None },
        HistoryError::TooMuch => HistoryFailure::TooMuch,
        HistoryError::Damaged(reason) => {
            tracing::error!(reason, "failed to read the log");
            HistoryFailure::Damaged
        }
        HistoryError::Store(error) => {
            tracing::warn!(%error, "failed to read the log");
            HistoryFailure::Unavailable
        }
    }
}

fn weight_of(index: &Index) -> u64 {
    let of_node = |node: &Arc<EventNode>| {
        let outcomes: usize = node.records().iter().map(|record| record.outcomes.len()).sum();
        EVENT_WEIGHT + RECORD_WEIGHT * node.records().len() as u64 + outcomes as u64
    };
    1 + index.iter().map(of_node).sum::<u64>()
}

fn as_of(past: &PastBoard, entry: &EntryAt) -> AsOf {
    AsOf {
        board: past.board.clone(),
        register: Arc::clone(&past.register),
        at: entry.at,
        previous: entry.previous,
        next: entry.next,
        permanence: entry.permanence,
    }
}
