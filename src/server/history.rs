//! The log as the public interface reads it: boards as of a time, the last ones of them in memory.

use std::sync::{Arc, Weak};

use foldhash::fast::RandomState;
use quick_cache::sync::{Cache, DefaultLifecycle};
use quick_cache::{OptionsBuilder, Weighter};

use crate::board::{AsOf, Boards, EventNode, Index, Published, Register, SportBoard};
use crate::http::{AsOfRead, ClosingOf, ClosingRead, History, HistoryFailure, LinesRead, Shown};
use crate::keys::SportAccess;
use crate::model::{Bookmaker, EventLines, Market, Regions, SportId, World};
use crate::store::{EndsOf, Entries, EntryAt, HistoryError, HistoryReader, LineRange, SportFold};
use crate::writer::logged_index;

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
}

/// A sport after an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct PastKey {
    world: World,
    sport: SportId,
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
            sequence: entry.sequence,
            published: (!entry.is_final).then(|| published.as_ptr().addr()),
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

impl LogHistory {
    pub(super) fn new(reader: HistoryReader, boards: Arc<Boards>) -> Self {
        let items = TIMES_MAX / 16;
        let mut options = OptionsBuilder::new();
        // Shards would bound the largest board, not the sum.
        options.shards(1).estimated_items_capacity(items).weight_capacity(WEIGHT_MAX);
        let past = match options.build() {
            Ok(options) => Cache::with_options(options, ByWeight, RandomState::default(), DefaultLifecycle::default()),
            Err(_) => Cache::with(items, WEIGHT_MAX, ByWeight, RandomState::default(), DefaultLifecycle::default()),
        };
        LogHistory { reader, boards, times: Cache::new(TIMES_MAX), past }
    }

    fn published(&self, read: AsOfRead) -> Weak<Published> {
        let world = self.boards.load(read.access.world());
        Arc::downgrade(world.sport(read.access.sport()).published())
    }

    /// The board of a sport after an entry, as the log has it.
    fn past_board(&self, world: World, sport: SportId, state: &SportFold) -> PastBoard {
        let register = self.register_of(world, state);
        let key = &self.boards.catalogue()[sport].key;
        // Nothing is shared with what is current: the log has times of its own for unchanged prices.
        let (index, _) = logged_index(key, state, &Index::default(), register.bookmakers());
        let at_ms = state.last_tick().map_or(0, |tick| i64::from(tick.unix()) * 1000);
        let weight = weight_of(&index);
        let published = Published::past(index.clone(), Arc::clone(&register), at_ms);
        PastBoard { board: SportBoard::new(index, Arc::new(published), Arc::from([])), register, weight }
    }

    /// The register of the world, with the bookmakers that it no longer has. They are found by their names; where they were
    /// offered is not known.
    fn register_of(&self, world: World, state: &SportFold) -> Arc<Register> {
        let register = Arc::clone(self.boards.load(world).register());
        let mut bookmakers = register.bookmakers().clone();
        for key in state.bookmakers().filter(|key| register.bookmakers().find(key).is_none()) {
            let Some(id) = bookmakers.next_id() else { break };
            let regions = Regions::default();
            bookmakers.put(id, Arc::new(Bookmaker { key: (**key).into(), title: (**key).into(), regions }));
        }
        if bookmakers.len() == register.bookmakers().len() {
            return register;
        }
        Arc::new(register.with_bookmakers(bookmakers))
    }

    fn failure(&self, access: SportAccess, error: &HistoryError) -> HistoryFailure {
        let (world, sport) = (access.world(), access.sport());
        match error {
            HistoryError::Gone | HistoryError::Future => {
                HistoryFailure::Gone { since: self.reader.sport_since(world, sport).unwrap_or_default() }
            }
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
        if entry.is_final || read.shown == Shown::Prices {
            self.times.insert(read, known.clone());
        }
        let past = self.past.get_or_insert_with(&PastKey::new(read, &known), || {
            let state = self.reader.state_at(world, sport, entry)?;
            Ok::<_, HistoryError>(Arc::new(self.past_board(world, sport, &state)))
        })?;
        Ok(as_of(&past, &entry))
    }
}

impl History for LogHistory {
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
        let is_current = known.entry.is_final || known.published.ptr_eq(&self.published(read));
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
        is_final: entry.is_final,
    }
}
