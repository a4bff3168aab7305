//! The messages that change a world. Every feed is translated into these; they are validated when they are created.

use std::sync::Arc;

use super::bookmaker::Bookmaker;
use super::catalogue::Catalogue;
use super::competition::SeenCompetition;
use super::event::{Contest, Event, EventId, EventStatus};
use super::market::MarketKey;
use super::odds::Outcome;
use super::score::Score;
use super::source::Source;
use super::sport::SportId;
use super::time::Timestamp;

/// One message from a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Adds a bookmaker to the world, or changes its title and regions.
    Bookmaker(Bookmaker),
    /// A bookmaker as a payload lists it. Its title replaces the stored one; its regions count only if it is new.
    Listed(Bookmaker),
    Event(EventNews),
    Odds(OddsNews),
    Score(ScoreNews),
    /// Removes the event with its prices and its score.
    Remove {
        sport: SportId,
        event: EventId,
    },
    Read(ReadNews),
    /// A message applied as if it had arrived at that time. Exports use it to preserve modification times.
    AsOf(Timestamp, Box<News>),
    /// Marks a market as closed without counting as a read.
    Closed(ClosedNews),
    /// The state of a source, as exported by another instance.
    Source(SourceNews),
    /// A competition that the world has had an event of, as exported by another instance.
    Competition(CompetitionNews),
    /// A market that the world has had a price of, as exported by another instance.
    Market(MarketKey),
}

/// Adds or changes an event. It carries no time, so the last one to arrive wins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNews {
    pub sport: SportId,
    pub id: EventId,
    pub competition: Arc<str>,
    /// `None`: the one that the catalogue has for the competition's name.
    pub competition_key: Option<Arc<str>>,
    /// The title of the key, if the feed gives one.
    pub competition_title: Option<Arc<str>>,
    pub commence: Timestamp,
    pub contest: Contest,
    pub status: EventStatus,
}

impl EventNews {
    /// The key of its competition: its own, or the catalogue's for the name.
    pub fn competition_key(&self, catalogue: &Catalogue) -> Arc<str> {
        match &self.competition_key {
            Some(key) => Arc::clone(key),
            None => (*catalogue.competition_key(self.sport, &self.competition, &self.contest)).into(),
        }
    }

    /// The event that it describes.
    pub fn event(&self, competition_key: Arc<str>, status: EventStatus, changed: Timestamp) -> Event {
        Event {
            id: self.id.clone(),
            competition: Arc::clone(&self.competition),
            competition_key,
            commence: self.commence,
            contest: self.contest.clone(),
            status,
            changed,
        }
    }
}

/// All prices of one bookmaker in one market of an event. Without outcomes, the market is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OddsNews {
    pub sport: SportId,
    pub event: EventId,
    pub bookmaker: Arc<str>,
    pub market: MarketKey,
    pub last_update: Timestamp,
    /// The bookmaker's own update time, if the feed gives one besides the market's.
    pub bookmaker_update: Option<Timestamp>,
    pub outcomes: Box<[Outcome]>,
}

/// The score of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScoreNews {
    pub sport: SportId,
    pub event: EventId,
    pub score: Score,
}

/// A successful read of a bookmaker's prices that changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadNews {
    pub sport: SportId,
    pub bookmaker: Arc<str>,
    pub at: Timestamp,
    pub latency_ms: u32,
}

/// A closed market: older messages do not reopen it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedNews {
    pub sport: SportId,
    pub event: EventId,
    pub bookmaker: Arc<str>,
    pub market: MarketKey,
    pub at: Timestamp,
}

/// The state of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceNews {
    pub sport: SportId,
    pub bookmaker: Arc<str>,
    pub source: Source,
}

/// A competition that has had an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompetitionNews {
    pub key: Arc<str>,
    pub competition: SeenCompetition,
}
