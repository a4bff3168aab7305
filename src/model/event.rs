//! Events: a match of two sides, or a tournament.

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use super::time::Timestamp;

/// An event's identifier, as its feed gave it. It is never reused for another event.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EventId(Arc<str>);

impl EventId {
    pub const BYTES_MAX: usize = 128;

    /// Accepts printable text without white space and without commas, which separate ids in a query.
    pub fn new(text: &str) -> Option<Self> {
        let fits = (1..=Self::BYTES_MAX).contains(&text.len());
        let clean = text.chars().all(|c| !c.is_control() && !c.is_whitespace() && c != ',');
        (fits && clean).then(|| EventId(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for EventId {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for EventId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

/// The status of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum EventStatus {
    Scheduled,
    Live,
    Final,
    Cancelled,
}

impl EventStatus {
    pub const ALL: [EventStatus; 4] =
        [EventStatus::Scheduled, EventStatus::Live, EventStatus::Final, EventStatus::Cancelled];

    pub const fn key(self) -> &'static str {
        match self {
            EventStatus::Scheduled => "scheduled",
            EventStatus::Live => "live",
            EventStatus::Final => "final",
            EventStatus::Cancelled => "cancelled",
        }
    }

    pub fn parse(text: &str) -> Option<EventStatus> {
        EventStatus::ALL.into_iter().find(|status| status.key() == text)
    }

    /// Whether the event is final or cancelled: it then has no open market and is removed after the retention period.
    pub const fn is_over(self) -> bool {
        matches!(self, EventStatus::Final | EventStatus::Cancelled)
    }
}

impl fmt::Display for EventStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

/// Whose an event is: of whoever announced it first. A feeder removes only its own events.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum EventOwner {
    /// Stored by a version that did not keep owners, and not announced since.
    #[default]
    Unknown,
    /// Announced by one of the operator's own feeds.
    Operator,
    /// By the name that the feeder sends under.
    Feeder(Arc<str>),
}

/// Who competes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Contest {
    Sides { home: Arc<str>, away: Arc<str> },
    Tournament { title: Arc<str> },
}

/// An event without its prices and its score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    pub id: EventId,
    /// Its name, as the feed gives it.
    pub competition: Arc<str>,
    pub competition_key: Arc<str>,
    /// For a tournament, the first tee time.
    pub commence: Timestamp,
    pub contest: Contest,
    pub status: EventStatus,
    /// When the event, its status or its score last changed; `retention` counts from here.
    pub changed: Timestamp,
}

impl Event {
    pub fn home(&self) -> Option<&Arc<str>> {
        match &self.contest {
            Contest::Sides { home, .. } => Some(home),
            Contest::Tournament { .. } => None,
        }
    }

    pub fn away(&self) -> Option<&Arc<str>> {
        match &self.contest {
            Contest::Sides { away, .. } => Some(away),
            Contest::Tournament { .. } => None,
        }
    }

    pub fn title(&self) -> Option<&Arc<str>> {
        match &self.contest {
            Contest::Sides { .. } => None,
            Contest::Tournament { title } => Some(title),
        }
    }
}
