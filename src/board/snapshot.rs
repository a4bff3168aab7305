//! Immutable snapshots, one for each world and sport, behind an atomic pointer.
//!
//! A sport's board has two versions of its index. `current` has events and scores as they arrive; `published` is the
//! index as of the last publication of prices, so that between two ticks the odds stay the same byte for byte. They
//! share all nodes that did not change.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;

use super::body::{ALL_CACHED, Bodies, CachedBytes, PAST_CACHED};
use super::condition::Condition;
use super::coverage::BookSet;
use super::derived::{DerivedQuery, RankedQuery, RankedRows};
use super::feed::Feed;
use super::index::Index;
use super::query::{EventsQuery, OddsQuery, ScoresQuery};
use super::register::Register;
use super::target_cache::TargetCache;
use super::v4::{ListQuery, PricedQuery, UpcomingQuery, V4Answers};
use crate::attachment::Attachment;
use crate::model::{
    BookId, Catalogue, Competitions, EventId, Position, Regions, SeenCompetition, Source, SportId, Timestamp, World,
};

/// Bound on the rendered odds of one publication of a sport.
const ODDS_BYTES_MAX: u64 = 16 << 20;
/// Bound on the rendered derived prices of one publication of a sport, and on the lists that they are rendered from.
const DERIVED_BYTES_MAX: u64 = 16 << 20;
/// Bound on each kind of rendered event and score lists of a sport.
const EVENTS_BYTES_MAX: u64 = 4 << 20;
/// Bound on the rendered answers across the sports of a world.
const UPCOMING_BYTES_MAX: u64 = 8 << 20;

/// The first sports of the catalogue, which clients of the first version expect in the list.
const ALWAYS_LISTED: usize = 5;

/// A source as of a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublishedSource {
    pub bookmaker: BookId,
    pub last_read: Timestamp,
    pub stale: bool,
    pub latency_ms: u32,
}

/// The prices of a sport as of one publication.
#[derive(Debug)]
pub struct Published {
    index: Index,
    register: Arc<Register>,
    /// In the order of the bookmakers' keys.
    sources: Box<[PublishedSource]>,
    at_ms: i64,
    pub(super) bodies: Bodies<OddsQuery>,
    target_cache: TargetCache,
    v4: OnceLock<V4Answers<PricedQuery>>,
    derived: OnceLock<DerivedAnswers>,
    /// What the cached answers count toward.
    cached: &'static CachedBytes,
}

impl Published {
    pub fn new(index: Index, register: Arc<Register>, sources: Box<[PublishedSource]>, at_ms: i64) -> Self {
        Published::among(&ALL_CACHED, index, register, sources, at_ms)
    }

    /// A publication of the past.
    pub fn past(index: Index, register: Arc<Register>, at_ms: i64) -> Self {
        Published::among(&PAST_CACHED, index, register, Box::default(), at_ms)
    }

    fn among(
        cached: &'static CachedBytes,
        index: Index,
        register: Arc<Register>,
        sources: Box<[PublishedSource]>,
        at_ms: i64,
    ) -> Self {
        let (bodies, target_cache) = (Bodies::among(cached, ODDS_BYTES_MAX), TargetCache::default());
        let (v4, derived) = (OnceLock::new(), OnceLock::new());
        Published { index, register, sources, at_ms, bodies, target_cache, v4, derived, cached }
    }

    /// The same publication with another index, in which events were removed or are in another competition.
    #[must_use]
    pub fn with_index(&self, index: Index) -> Self {
        Published::new(index, Arc::clone(&self.register), self.sources.clone(), self.at_ms)
    }

    pub fn index(&self) -> &Index {
        &self.index
    }

    pub fn register(&self) -> &Register {
        &self.register
    }

    pub fn sources(&self) -> &[PublishedSource] {
        &self.sources
    }

    /// The odds served so far, by request target.
    pub fn target_cache(&self) -> &TargetCache {
        &self.target_cache
    }

    pub(crate) fn v4(&self) -> &V4Answers<PricedQuery> {
        let bodies = || Bodies::among(self.cached, ODDS_BYTES_MAX);
        self.v4.get_or_init(|| V4Answers::new(&self.index, self.register.competitions(), bodies()))
    }

    pub(super) fn derived_answers(&self) -> &DerivedAnswers {
        self.derived.get_or_init(|| DerivedAnswers {
            bodies: Bodies::among(self.cached, DERIVED_BYTES_MAX),
            ranked: Bodies::among(self.cached, DERIVED_BYTES_MAX),
        })
    }

    fn kept_bytes(&self) -> u64 {
        let v4 = self.v4.get().map_or(0, |answers| answers.bodies.kept_bytes());
        let derived = |answers: &DerivedAnswers| answers.bodies.kept_bytes() + answers.ranked.kept_bytes();
        let derived = self.derived.get().map_or(0, derived);
        self.bodies.kept_bytes() + self.target_cache.kept_bytes() as u64 + v4 + derived
    }

    /// When this was published.
    pub fn at_ms(&self) -> i64 {
        self.at_ms
    }

    /// The bookmakers that a query is about; `None` stands for all.
    pub(crate) fn books_of(&self, bookmakers: Option<&[BookId]>, regions: Option<Regions>) -> Option<Arc<BookSet>> {
        match (bookmakers, regions) {
            (None, None) => None,
            (None, Some(regions)) => Some(Arc::clone(self.register.offered_in(regions))),
            (Some(books), regions) => {
                let offered = regions.map(|regions| self.register.offered_in(regions));
                let is_offered = |book: &BookId| offered.is_none_or(|offered| offered.contains(*book));
                Some(Arc::new(books.iter().copied().filter(is_offered).collect()))
            }
        }
    }
}

/// Derived prices that were rendered, and the lists that pages of them are rendered from.
#[derive(Debug)]
pub(super) struct DerivedAnswers {
    pub(super) bodies: Bodies<DerivedQuery>,
    pub(super) ranked: Bodies<RankedQuery, RankedRows>,
}

/// A source and the age at which it counts as stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceState {
    pub bookmaker: BookId,
    pub source: Source,
    pub stale_after_s: u32,
}

impl SourceState {
    pub fn is_stale(&self, now: Timestamp) -> bool {
        self.source.is_stale(now, self.stale_after_s)
    }
}

/// The events of a sport with their scores and markets, and the answers rendered from them.
#[derive(Debug)]
pub(super) struct Listing {
    current: Index,
    published: Arc<Published>,
    pub(super) event_bodies: Bodies<EventsQuery>,
    pub(super) score_bodies: Bodies<ScoresQuery>,
    pub(super) one_event_bodies: Bodies<EventId>,
    v4: OnceLock<V4Answers<ListQuery>>,
}

/// One sport in one world.
#[derive(Clone, Debug)]
pub struct SportBoard {
    pub(super) listing: Arc<Listing>,
    /// In the order of the bookmakers' keys.
    sources: Arc<[SourceState]>,
}

impl SportBoard {
    pub fn new(current: Index, published: Arc<Published>, sources: Arc<[SourceState]>) -> Self {
        let cached = published.cached;
        let listing = Listing {
            current,
            published,
            event_bodies: Bodies::among(cached, EVENTS_BYTES_MAX),
            score_bodies: Bodies::among(cached, EVENTS_BYTES_MAX),
            one_event_bodies: Bodies::among(cached, EVENTS_BYTES_MAX),
            v4: OnceLock::new(),
        };
        SportBoard { listing: Arc::new(listing), sources }
    }

    /// The same events and prices with newer reads; rendered answers stay valid.
    #[must_use]
    pub fn with_sources(&self, sources: Arc<[SourceState]>) -> Self {
        SportBoard { listing: Arc::clone(&self.listing), sources }
    }

    pub fn current(&self) -> &Index {
        &self.listing.current
    }

    pub fn published(&self) -> &Arc<Published> {
        &self.listing.published
    }

    pub fn sources(&self) -> &Arc<[SourceState]> {
        &self.sources
    }

    /// The memory of cached answers and their queries.
    pub fn kept_bytes(&self) -> u64 {
        let Listing { published, event_bodies, score_bodies, one_event_bodies, v4, .. } = &*self.listing;
        let v4 = v4.get().map_or(0, |answers| answers.bodies.kept_bytes());
        let lists = event_bodies.kept_bytes() + score_bodies.kept_bytes() + one_event_bodies.kept_bytes();
        published.kept_bytes() + lists + v4
    }

    pub(crate) fn v4(&self, competitions: &Competitions) -> &V4Answers<ListQuery> {
        let bodies = || Bodies::among(self.published().cached, EVENTS_BYTES_MAX);
        self.listing.v4.get_or_init(|| V4Answers::new(self.current(), competitions, bodies()))
    }

    /// Events that are scheduled or live.
    pub fn open_event_count(&self) -> usize {
        self.current().open_event_count()
    }

    /// Bookmakers with at least one published price.
    pub fn book_count(&self) -> usize {
        self.published().index.coverage().book_count()
    }

    /// Whether any source of the sport has a price that is not stale.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.sources.iter().any(|source| !source.source.is_idle() && !source.is_stale(now))
    }

    pub fn has_stale_source(&self, now: Timestamp) -> bool {
        self.sources.iter().any(|source| source.is_stale(now))
    }
}

/// A world as of one moment.
#[derive(Clone, Debug)]
pub struct WorldBoard {
    sports: Box<[SportBoard]>,
    register: Arc<Register>,
    /// Up to where the log is in it.
    position: Position,
    /// The same as readers are given it.
    position_text: Arc<Attachment>,
    /// Answers across sports, valid until a sport publishes.
    pub(super) upcoming: Arc<Bodies<UpcomingQuery>>,
}

impl WorldBoard {
    pub fn new(sports: Box<[SportBoard]>, register: Arc<Register>) -> Self {
        let (position_text, upcoming) = (Arc::default(), Arc::new(Bodies::new(UPCOMING_BYTES_MAX)));
        WorldBoard { sports, register, position: Position::default(), position_text, upcoming }
    }

    /// The same as of a position in the log.
    #[must_use]
    pub fn at(self, position: Position) -> Self {
        WorldBoard { position, ..self }
    }

    /// Up to where the log of the world is in it.
    pub fn position(&self) -> Position {
        self.position
    }

    /// The position in another form, which is made once.
    pub(crate) fn position_text<T: Any + Clone + Send + Sync>(&self, make: impl FnOnce(Position) -> T) -> T {
        self.position_text.get_or_make(|| make(self.position))
    }

    /// Takes over the answers across sports of the previous board, if the same prices are published.
    #[must_use]
    fn with_answers_of(self, previous: &WorldBoard) -> Self {
        let is_same = |(one, other): (&SportBoard, &SportBoard)| Arc::ptr_eq(one.published(), other.published());
        let is_unchanged =
            previous.sports.len() == self.sports.len() && previous.sports.iter().zip(&self.sports).all(is_same);
        if is_unchanged { WorldBoard { upcoming: Arc::clone(&previous.upcoming), ..self } } else { self }
    }

    /// The memory of cached answers across sports.
    pub fn kept_bytes_across_sports(&self) -> u64 {
        self.upcoming.kept_bytes()
    }

    pub fn sport(&self, id: SportId) -> &SportBoard {
        &self.sports[id.index()]
    }

    /// The boards of all sports.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SportId, &SportBoard)> {
        SportId::all().zip(&self.sports)
    }

    pub fn sports(&self) -> &[SportBoard] {
        &self.sports
    }

    pub fn register(&self) -> &Arc<Register> {
        &self.register
    }

    /// Whether a list of sports has this one: those of the first version always, another once the world has had an event
    /// of it.
    pub fn lists(&self, sport: SportId) -> bool {
        let is_of = |seen: &SeenCompetition| seen.sport == sport;
        sport.index() < ALWAYS_LISTED || self.register.competitions().iter().any(|(_, seen)| is_of(seen))
    }

    pub fn record_count(&self) -> usize {
        self.sports.iter().map(|sport| sport.current().record_count()).sum()
    }
}

/// Both worlds and the condition of the service, shared by every reader. Only the writer publishes to it.
#[derive(Debug)]
pub struct Boards {
    catalogue: Arc<Catalogue>,
    worlds: [ArcSwap<WorldBoard>; 2],
    feeds: [Feed; 2],
    condition: Condition,
}

impl Boards {
    pub fn new(catalogue: Arc<Catalogue>, worlds: [WorldBoard; 2]) -> Self {
        let (feeds, condition) = (Default::default(), Condition::default());
        Boards { catalogue, worlds: worlds.map(ArcSwap::from_pointee), feeds, condition }
    }

    /// What changes of a world.
    pub fn feed(&self, world: World) -> &Feed {
        &self.feeds[world.index()]
    }

    /// Lets everybody who follows changes look at the condition of the service and at its keys again.
    pub fn wake_followers(&self) {
        self.feeds.iter().for_each(Feed::wake_all);
    }

    pub fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// The current snapshot of a world. A request loads it once and reads nothing else.
    pub fn load(&self, world: World) -> arc_swap::Guard<Arc<WorldBoard>> {
        self.worlds[world.index()].load()
    }

    pub fn load_full(&self, world: World) -> Arc<WorldBoard> {
        self.worlds[world.index()].load_full()
    }

    pub(crate) fn publish(&self, world: World, board: WorldBoard) {
        let current = &self.worlds[world.index()];
        let board = board.with_answers_of(&current.load());
        current.store(Arc::new(board));
    }
}
