//! What an entry of the log says, in types of the model: as the writer gives it, and as a reader gets it back.

use std::sync::Arc;

use crate::model::{Event, EventId, LoggedPrice, Market, Record, Score, SportId, Timestamp};

/// What one commit changed of a world that clients can see.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The second of the commit.
    pub at: Timestamp,
    /// Each sport once, in any order.
    pub sports: Vec<SportChanges>,
}

/// What an entry changes of one sport: its events and scores first, then a publication of its prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SportChanges {
    pub sport: SportId,
    pub events: Vec<EventChange>,
    pub tick: Option<TickChanges>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventChange {
    /// A new event, or one that changed.
    Put(Arc<Event>),
    Score(EventId, Arc<Score>),
    /// With its score and its prices.
    Removed(EventId),
}

/// A publication of prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TickChanges {
    /// When it was due. The log moves it to the second after the sport's last tick, if it is not later than that.
    pub at: Timestamp,
    /// The key of every bookmaker whose source is stale.
    pub stale: Vec<Arc<str>>,
    pub records: Vec<RecordChange>,
}

/// A record of which a price, a point or an outcome changed, or that opened or closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordChange {
    pub event: EventId,
    /// Its key: in the log, bookmakers have numbers of their own.
    pub bookmaker: Arc<str>,
    pub market: Market,
    /// As the log has it; `None` if it was not open, or not known.
    pub before: Option<Arc<Record>>,
    /// `None` if it closed.
    pub after: Option<Arc<Record>>,
}

/// A change as a reader of the log gets it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoggedChange {
    /// With the markets that have a price, in the order of an event's list.
    Event(Arc<Event>, Box<[Market]>, Option<Box<LoggedMove>>),
    Score(Arc<Event>, Arc<Score>),
    /// As it was last.
    Removed(Arc<Event>),
    Tick(LoggedTick),
}

/// An event that went to another competition, with its open records: who follows one of the two gets or loses them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedMove {
    /// As it was before.
    pub from: Arc<Event>,
    pub records: Vec<(Arc<str>, Market, LoggedPrice)>,
}

/// A publication of prices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedTick {
    pub at: Timestamp,
    /// Sources that went stale or are no longer stale.
    pub sources: Vec<(Arc<str>, bool)>,
    pub records: Vec<LoggedRecord>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedRecord {
    pub event: Arc<Event>,
    pub bookmaker: Arc<str>,
    pub market: Market,
    /// `None` if it closed.
    pub price: Option<LoggedPrice>,
}
