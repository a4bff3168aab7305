//! What a feed can tell: the closed set of messages that change a world. Every feed, whatever it reads, speaks in
//! these; whoever makes one has validated it.

use std::sync::Arc;

use super::bookmaker::Bookmaker;
use super::event::{Contest, EventId, EventStatus};
use super::market::Market;
use super::odds::Outcome;
use super::score::Score;
use super::source::Source;
use super::sport::SportId;
use super::time::Timestamp;

/// One message of a feed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// Adds a bookmaker to the world, or changes its title and regions.
    Bookmaker(Bookmaker),
    /// A bookmaker as a payload lists it. Its title replaces the stored one; its regions count only if it is new.
    Listed(Bookmaker),
    Event(EventNews),
    Odds(OddsNews),
    Score(ScoreNews),
    /// The event is gone at once, with its prices and its score.
    Remove {
        sport: SportId,
        event: EventId,
    },
    Read(ReadNews),
    /// The same, taken as if it had come at that moment: how an export tells when a thing last changed.
    AsOf(Timestamp, Box<News>),
    /// A market that is closed, told without a read of it.
    Closed(ClosedNews),
    /// A source as another service holds it.
    Source(SourceNews),
}

/// Adds an event or changes what is known of it. It carries no time, so the last one to arrive counts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNews {
    pub sport: SportId,
    pub id: EventId,
    pub competition: Arc<str>,
    pub commence: Timestamp,
    /// Of the shape that the sport's kind asks for.
    pub contest: Contest,
    pub status: EventStatus,
}

/// All prices of one bookmaker in one market of an event. No outcomes: the market is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OddsNews {
    pub sport: SportId,
    pub event: EventId,
    pub bookmaker: Arc<str>,
    pub market: Market,
    pub last_update: Timestamp,
    /// The bookmaker's own time, where the feed gives one beside the market's.
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

/// A good read of a bookmaker's prices that changed nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadNews {
    pub sport: SportId,
    pub bookmaker: Arc<str>,
    pub at: Timestamp,
    pub latency_ms: u32,
}

/// The mark of a closed market: news older than this does not open it again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClosedNews {
    pub sport: SportId,
    pub event: EventId,
    pub bookmaker: Arc<str>,
    pub market: Market,
    pub at: Timestamp,
}

/// What is known of a source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceNews {
    pub sport: SportId,
    pub bookmaker: Arc<str>,
    pub source: Source,
}
