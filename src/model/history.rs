//! Changes of a sport with the time of each: what history is imported and exported as.

use std::sync::Arc;

use super::{Event, EventId, Market, Outcome, Score, Timestamp};

/// A price as the log has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedPrice {
    /// When the record last changed: a confirmation of the same price is not logged.
    pub last_update: Timestamp,
    pub outcomes: Arc<[Outcome]>,
}

/// A change of a sport.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HistoryChange {
    /// A new event, or one that changed.
    Event(Arc<Event>),
    Score(EventId, Arc<Score>),
    Removed(EventId),
    Price(HistoryPrice),
    /// The source of a bookmaker went stale, or is no longer stale.
    Source(Arc<str>, bool),
    /// A publication that is another one than before, although no price changed: events that have prices did.
    Tick,
    Observed(Observation),
}

/// The price of a record from now on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryPrice {
    pub event: EventId,
    /// Its key.
    pub bookmaker: Arc<str>,
    pub market: Market,
    /// `None` if it closed.
    pub price: Option<LoggedPrice>,
}

/// What a response of an upstream had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Observation {
    pub events: Vec<ObservedEvent>,
    /// Whether it lists the events of a competition, so that what it lacks was not offered.
    pub is_list: bool,
}

/// An event with its prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedEvent {
    pub event: Arc<Event>,
    /// By the keys of the bookmakers.
    pub records: Vec<(Arc<str>, Market, LoggedPrice)>,
}
