//! What readers see: immutable snapshots, one for each world and sport, behind an atomic pointer.
//!
//! A sport's board has two versions of its index. `current` holds events and scores as they come; `published` is the
//! index as of the last publication of prices, so that between two ticks of the refresh the odds stay byte for byte
//! the same. Both share whatever did not change.

use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;

use super::body::{Bodies, Body};
use super::books::Books;
use super::condition::Condition;
use super::coverage::BookSet;
use super::index::Index;
use super::node::EventNode;
use super::query::{EventsQuery, OddsQuery, ScoresQuery};
use super::render;
use super::v4::{Competition, ListQuery, Listed, Priced, PricedQuery, Shelf, Shown, Upcoming, UpcomingQuery};
use super::words::Words;
use crate::model::{BookId, Catalogue, EventId, Source, Sport, SportId, Timestamp, V4Names, World};

/// What one publication of a sport may keep rendered.
const ODDS_BYTES_MAX: u64 = 16 << 20;
/// The same for each shape of its events and scores.
const EVENTS_BYTES_MAX: u64 = 4 << 20;

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
    books: Arc<Books>,
    /// In the order of the bookmakers' keys.
    sources: Box<[PublishedSource]>,
    at_ms: i64,
    bodies: Bodies<OddsQuery>,
    words: Words,
    v4: OnceLock<Shelf<PricedQuery>>,
}

impl Published {
    pub fn new(index: Index, books: Arc<Books>, sources: Box<[PublishedSource]>, at_ms: i64) -> Self {
        let (bodies, words, v4) = (Bodies::new(ODDS_BYTES_MAX), Words::default(), OnceLock::new());
        Published { index, books, sources, at_ms, bodies, words, v4 }
    }

    /// The same publication without some events, for those that were removed since.
    #[must_use]
    pub fn without(&self, index: Index) -> Self {
        Published::new(index, Arc::clone(&self.books), self.sources.clone(), self.at_ms)
    }

    pub fn index(&self) -> &Index {
        &self.index
    }

    pub fn books(&self) -> &Books {
        &self.books
    }

    pub fn sources(&self) -> &[PublishedSource] {
        &self.sources
    }

    /// The odds that were asked for, by the target of the request.
    pub fn words(&self) -> &Words {
        &self.words
    }

    pub(crate) fn v4(&self, names: &V4Names) -> &Shelf<PricedQuery> {
        self.v4.get_or_init(|| Shelf::new(&self.index, names, ODDS_BYTES_MAX))
    }

    fn kept_bytes(&self) -> u64 {
        let v4 = self.v4.get().map_or(0, |shelf| shelf.bodies.kept_bytes());
        self.bodies.kept_bytes() + self.words.kept_bytes() as u64 + v4
    }

    /// When this was published.
    pub fn at_ms(&self) -> i64 {
        self.at_ms
    }

    /// The bookmakers that a query is about; `None` stands for all.
    pub(crate) fn books_of(&self, query: &OddsQuery) -> Option<Arc<BookSet>> {
        match (query.bookmaker, query.regions) {
            (None, None) => None,
            (None, Some(regions)) => Some(Arc::clone(self.books.offered_in(regions))),
            (Some(book), regions) => {
                let offered = regions.is_none_or(|regions| self.books.offered_in(regions).contains(book));
                Some(Arc::new(offered.then_some(book).into_iter().collect()))
            }
        }
    }
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

/// The events of a sport with their scores and markets, and what was rendered of them.
#[derive(Debug)]
struct Listing {
    current: Index,
    published: Arc<Published>,
    event_bodies: Bodies<EventsQuery>,
    score_bodies: Bodies<ScoresQuery>,
    one_event_bodies: Bodies<EventId>,
    v4: OnceLock<Shelf<ListQuery>>,
}

/// Everything that readers can know of one sport in one world.
#[derive(Clone, Debug)]
pub struct SportBoard {
    listing: Arc<Listing>,
    /// In the order of the bookmakers' keys.
    sources: Arc<[SourceState]>,
}

impl SportBoard {
    pub fn new(current: Index, published: Arc<Published>, sources: Arc<[SourceState]>) -> Self {
        let listing = Listing {
            current,
            published,
            event_bodies: Bodies::new(EVENTS_BYTES_MAX),
            score_bodies: Bodies::new(EVENTS_BYTES_MAX),
            one_event_bodies: Bodies::new(EVENTS_BYTES_MAX),
            v4: OnceLock::new(),
        };
        SportBoard { listing: Arc::new(listing), sources }
    }

    /// The same events and prices with newer reads: what was rendered stays good.
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

    /// The memory of rendered answers that are kept, with the queries that they answer.
    pub fn kept_bytes(&self) -> u64 {
        let Listing { published, event_bodies, score_bodies, one_event_bodies, v4, .. } = &*self.listing;
        let v4 = v4.get().map_or(0, |shelf| shelf.bodies.kept_bytes());
        let lists = event_bodies.kept_bytes() + score_bodies.kept_bytes() + one_event_bodies.kept_bytes();
        published.kept_bytes() + lists + v4
    }

    /// Events that are scheduled or live.
    pub fn open_event_count(&self) -> usize {
        self.current().open_event_count()
    }

    /// Bookmakers with at least one published price.
    pub fn book_count(&self) -> usize {
        self.published().index.coverage().book_count()
    }

    /// Whether any source of the sport holds a price that is not stale.
    pub fn is_active(&self, now: Timestamp) -> bool {
        self.sources.iter().any(|source| !source.source.is_idle() && !source.is_stale(now))
    }

    pub fn has_stale_source(&self, now: Timestamp) -> bool {
        self.sources.iter().any(|source| source.is_stale(now))
    }

    pub fn odds(&self, sport_key: &str, query: &OddsQuery) -> Arc<Body> {
        let board = &**self.published();
        let render = if query.by_bout { render::bouts } else { render::odds };
        board.bodies.get_or_render(query, || render(board, sport_key, query))
    }

    pub fn events(&self, sport_key: &str, query: &EventsQuery) -> Arc<Body> {
        self.listing.event_bodies.get_or_render(query, || render::events(self, sport_key, query))
    }

    pub fn scores(&self, sport_key: &str, query: &ScoresQuery) -> Arc<Body> {
        self.listing.score_bodies.get_or_render(query, || render::scores(self, sport_key, query))
    }

    /// One event; `None` if it is unknown or removed.
    pub fn event(&self, sport_key: &str, id: &str) -> Option<Arc<Body>> {
        let node = self.current().get(id)?;
        Some(self.listing.one_event_bodies.get_or_render(&node.event().id, || render::event(self, node, sport_key)))
    }
}

/// In the shape of The Odds API. A sport that has no name there is asked for by none.
impl SportBoard {
    pub(crate) fn v4(&self, names: &V4Names) -> &Shelf<ListQuery> {
        self.listing.v4.get_or_init(|| Shelf::new(self.current(), names, EVENTS_BYTES_MAX))
    }

    /// Prices under a key; `None` for one event that is unknown, over or of another key.
    pub fn v4_priced(&self, sport: &Sport, names: &V4Names, query: &PricedQuery) -> Option<Arc<Body>> {
        let (published, kind) = (&**self.published(), sport.kind);
        let shelf = published.v4(names);
        let competition = shelf.competitions.get(&query.key);
        let (id, shown) = match &query.what {
            Priced::Events { prices, scope } => {
                let render = || render::v4::odds(published, competition, kind, prices, scope);
                return Some(shelf.bodies.get_or_render(query, render));
            }
            Priced::OneEvent { id, shown } => (id, shown),
        };
        let render = |competition: &Competition, node: &EventNode, is_published| match shown {
            Shown::Odds(prices) => render::v4::event_odds(published, competition, node, kind, prices, is_published),
            Shown::Markets { books, dates } => {
                render::v4::event_markets(published, competition, node, kind, (books, *dates), is_published)
            }
        };
        if let Some((competition, node)) = open_event(competition, id) {
            return Some(shelf.bodies.get_or_render(query, || render(competition, node, true)));
        }
        // An event that came since the last publication is known by now, and its prices wait for the next.
        let (competition, node) = open_event(self.v4(names).competitions.get(&query.key), id)?;
        Some(Arc::new(render(competition, node, false)))
    }

    /// Events and scores under a key.
    pub fn v4_listed(&self, sport: &Sport, names: &V4Names, query: &ListQuery) -> Arc<Body> {
        let shelf = self.v4(names);
        let competition = shelf.competitions.get(&query.key);
        shelf.bodies.get_or_render(query, || match &query.what {
            Listed::Events { dates, scope } => render::v4::events(competition, *dates, scope),
            Listed::Scores { dates, scope, ended_since } => {
                render::v4::scores(competition, *dates, scope, *ended_since)
            }
            Listed::Participants => {
                let published = self.published().v4(names).competitions.get(&query.key);
                render::v4::participants(competition, published, sport)
            }
        })
    }
}

/// An event of a competition that is not over.
fn open_event<'a>(competition: Option<&'a Competition>, id: &EventId) -> Option<(&'a Competition, &'a EventNode)> {
    let node = competition?.index.get(id.as_str()).filter(|node| !node.event().status.is_over())?;
    Some((competition?, node))
}

/// A world as of one moment.
#[derive(Clone, Debug)]
pub struct WorldBoard {
    sports: Box<[SportBoard]>,
    books: Arc<Books>,
    upcoming: Upcoming,
}

impl WorldBoard {
    pub fn new(sports: Box<[SportBoard]>, books: Arc<Books>) -> Self {
        WorldBoard { sports, books, upcoming: Upcoming::new() }
    }

    /// Takes over what is still good of what the world before has rendered.
    #[must_use]
    fn succeeding(self, before: &WorldBoard) -> Self {
        WorldBoard { upcoming: Upcoming::succeeding(before, &self.sports), ..self }
    }

    pub(crate) fn upcoming(&self) -> &Upcoming {
        &self.upcoming
    }

    /// The memory of rendered answers that are of no one sport.
    pub fn kept_bytes_across_sports(&self) -> u64 {
        self.upcoming.0.kept_bytes()
    }

    /// What is on now and next in the sports of the query.
    pub fn v4_upcoming(&self, catalogue: &Catalogue, query: &UpcomingQuery) -> Arc<Body> {
        self.upcoming.0.get_or_render(query, || render::v4::upcoming(self, catalogue, query))
    }

    pub fn sport(&self, id: SportId) -> &SportBoard {
        &self.sports[id.index()]
    }

    pub fn sports(&self) -> &[SportBoard] {
        &self.sports
    }

    pub fn books(&self) -> &Arc<Books> {
        &self.books
    }

    pub fn record_count(&self) -> usize {
        self.sports.iter().map(|sport| sport.current().record_count()).sum()
    }
}

/// Both worlds and the service's own condition, shared by every reader. Only the writer stores into it.
#[derive(Debug)]
pub struct Boards {
    catalogue: Arc<Catalogue>,
    worlds: [ArcSwap<WorldBoard>; 2],
    condition: Condition,
}

impl Boards {
    pub fn new(catalogue: Arc<Catalogue>, worlds: [WorldBoard; 2]) -> Self {
        Boards { catalogue, worlds: worlds.map(ArcSwap::from_pointee), condition: Condition::default() }
    }

    pub fn catalogue(&self) -> &Arc<Catalogue> {
        &self.catalogue
    }

    pub fn condition(&self) -> &Condition {
        &self.condition
    }

    /// The world as it is now. A request loads it once and answers from what it got.
    pub fn load(&self, world: World) -> arc_swap::Guard<Arc<WorldBoard>> {
        self.worlds[world.index()].load()
    }

    pub fn load_full(&self, world: World) -> Arc<WorldBoard> {
        self.worlds[world.index()].load_full()
    }

    pub(crate) fn publish(&self, world: World, board: WorldBoard) {
        let kept = &self.worlds[world.index()];
        let board = board.succeeding(&kept.load());
        kept.store(Arc::new(board));
    }
}
