//! The writer's state in memory: the same worlds as in the file, as values that a failed commit leaves untouched.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::logged::{Orphan, logged_index};
use super::owners::Owners;
use super::poll::{self, PollState, Polls};
use crate::board::{Draft, Index, Published, PublishedSource, Register, SourceState, SportBoard, WorldBoard};
use crate::model::{BookId, Bookmakers, Catalogue, Source, SportId, Timestamp};
use crate::store::{LoadedEvent, LoadedSport, LoadedWorld, SportFold, StoreError};

/// A source, and its last read in the file. Reads that change nothing else are stored only now and then.
#[derive(Clone, Copy, Debug)]
pub(super) struct SourceEntry {
    pub source: Source,
    pub stored_read: Timestamp,
}

impl SourceEntry {
    /// The last read to store: with a clock that is behind, stored reads do not go back.
    pub(super) fn read_to_store(&self, is_clock_behind: bool) -> Timestamp {
        if is_clock_behind { self.source.last_read.max(self.stored_read) } else { self.source.last_read }
    }
}

/// One sport of one world.
#[derive(Clone, Debug)]
pub(super) struct SportState {
    pub current: Index,
    pub sources: BTreeMap<BookId, SourceEntry>,
    pub board: SportBoard,
    pub unpublished: Option<Unpublished>,
    /// When prices were last published; `None` if there have been none.
    pub published_ms: Option<i64>,
    /// Whether a feed is in the middle of a round of polls, with more of this sport to follow.
    pub is_in_round: bool,
    /// The keys of the bookmakers whose sources are stale by the log, in their order.
    pub logged_stale: Vec<Arc<str>>,
    /// Records that only the log has: the next entry closes them.
    pub orphans: Vec<Orphan>,
    /// Whether an event with prices was removed or changed since the last tick, which readers saw at once.
    pub has_moved_prices: bool,
    /// Whether it is to be published without waiting for the tick.
    pub is_due: bool,
}

/// Price changes that readers have not seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Unpublished {
    /// When the first of them was committed.
    pub since_ms: i64,
}

/// One world.
#[derive(Clone, Debug)]
pub(super) struct WorldState {
    pub register: Arc<Register>,
    pub sports: Vec<SportState>,
    pub polls: Polls,
    pub owners: Owners,
}

impl WorldState {
    /// The world as it was loaded. `logged` returns a sport as its log has it: what was published last.
    pub(super) fn new(
        loaded: LoadedWorld,
        mut logged: impl FnMut(SportId) -> Result<SportFold, StoreError>,
        catalogue: &Catalogue,
        now_ms: i64,
        stale_after_s: u32,
    ) -> Result<Self, StoreError> {
        let register = Register::new(loaded.bookmakers)
            .with_competitions(Arc::new(loaded.competitions))
            .with_markets(Arc::new(loaded.markets));
        let register = Arc::new(register);
        let polls: Polls = loaded.polls.into_iter().map(PollState::loaded).collect();
        let events = catalogue.sport_ids().zip(&loaded.sports).flat_map(|(sport, loaded)| {
            loaded.events.iter().map(move |held| (sport, held.event.id.clone(), held.owner.clone()))
        });
        let owners = Owners::loaded(events, loaded.feeder_uses);
        let sports = catalogue.sport_ids().zip(loaded.sports).map(|(id, sport)| {
            let stale_after_s = |book| poll::stale_after_s(&polls, id, book, stale_after_s);
            Ok(SportState::new((&catalogue[id].key, sport), &logged(id)?, &register, now_ms, stale_after_s))
        });
        let sports = sports.collect::<Result<_, StoreError>>()?;
        Ok(WorldState { register, sports, polls, owners })
    }

    pub(super) fn board(&self) -> WorldBoard {
        WorldBoard::new(self.sports.iter().map(|sport| sport.board.clone()).collect(), Arc::clone(&self.register))
    }
}

impl SportState {
    fn new(
        (key, loaded): (&str, LoadedSport),
        logged: &SportFold,
        register: &Arc<Register>,
        now_ms: i64,
        stale_after_s: impl Fn(BookId) -> u32,
    ) -> Self {
        let node = |event: LoadedEvent| {
            let draft = Draft::assemble(event.event, event.score, event.records, event.closed);
            Arc::new(draft.finish(register.bookmakers()))
        };
        let current = Index::from_sorted(loaded.events.into_iter().map(node).collect());
        let mut sources: BTreeMap<_, _> = loaded
            .sources
            .into_iter()
            .map(|(book, source)| (book, SourceEntry { source, stored_read: source.last_read }))
            .collect();
        clamp_reads(&mut sources, Timestamp::from_unix_ms(now_ms));
        let states = source_states(&sources, register.bookmakers(), stale_after_s);
        // What readers saw last is what the log has; the writer goes on from there.
        let mut logged_stale: Vec<Arc<str>> = logged.stale().cloned().collect();
        logged_stale.sort_unstable();
        let (last, orphans) = logged_index(key, logged, &current, register.bookmakers());
        let board = SportBoard::new(current.clone(), Arc::new(published(last, register, &states, now_ms)), states);
        // Prices from the file are a publication like any other; an empty sport has not published anything.
        let published_ms = (current.record_count() > 0).then_some(now_ms);
        let (unpublished, is_in_round) = (None, false);
        let (has_moved_prices, is_due) = (false, false);
        SportState {
            current,
            sources,
            board,
            unpublished,
            published_ms,
            is_in_round,
            logged_stale,
            orphans,
            has_moved_prices,
            is_due,
        }
    }

    /// Whether there are prices, now or in what is published.
    pub(super) fn has_prices(&self) -> bool {
        self.current.record_count() > 0 || self.board.published().index().record_count() > 0
    }
}

/// Sets reads in the future, which are from before the clock was set back, to now, so that a silent source goes stale in
/// time. Returns whether there was one.
pub(super) fn clamp_reads(sources: &mut BTreeMap<BookId, SourceEntry>, now: Timestamp) -> bool {
    let mut any = false;
    for entry in sources.values_mut().filter(|entry| entry.source.last_read > now) {
        entry.source.last_read = now;
        any = true;
    }
    any
}

/// The sources in the order of their bookmakers' keys, as readers get them.
pub(super) fn source_states(
    sources: &BTreeMap<BookId, SourceEntry>,
    register: &Bookmakers,
    stale_after_s: impl Fn(BookId) -> u32,
) -> Arc<[SourceState]> {
    register
        .iter()
        .filter_map(|(bookmaker, _)| {
            let source = sources.get(&bookmaker)?.source;
            Some(SourceState { bookmaker, source, stale_after_s: stale_after_s(bookmaker) })
        })
        .collect()
}

/// A publication of an index as of now.
pub(super) fn published(index: Index, register: &Arc<Register>, sources: &[SourceState], now_ms: i64) -> Published {
    Published::new(index, Arc::clone(register), published_sources(sources, Timestamp::from_unix_ms(now_ms)), now_ms)
}

pub(super) fn published_sources(sources: &[SourceState], now: Timestamp) -> Box<[PublishedSource]> {
    sources
        .iter()
        .map(|state| PublishedSource {
            bookmaker: state.bookmaker,
            last_read: state.source.last_read,
            stale: state.is_stale(now),
            latency_ms: state.source.latency_ms,
        })
        .collect()
}
