//! The history of one event: what each of its records was, from when on, and its opening and closing prices.

use std::sync::Arc;

use super::{Event, Market, Outcome, Timestamp};

/// The history of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventLines {
    /// As the log last had it, also if it was removed since.
    pub event: Arc<Event>,
    /// When the log first had it.
    pub since: Timestamp,
    pub source: StartSource,
    pub start: Start,
    /// In the order of bookmakers and markets.
    pub lines: Vec<Line>,
}

/// The history of one record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub bookmaker: Arc<str>,
    pub market: Market,
    pub opening: PricedAt,
    /// The last price before the start, so far.
    pub closing: Option<PricedAt>,
    /// Whether the record closed before the start.
    pub is_closed: bool,
    /// Each differs from the one before.
    pub points: Vec<LinePoint>,
}

/// Whether an event has begun, as far as the log tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// It has not begun: prices before its commence time may be the last.
    Ahead,
    /// It was seen live before its commence time.
    Live(Timestamp),
    /// Its commence time passed.
    Scheduled(Timestamp),
    /// It was cancelled: there is no start until it is scheduled again.
    Cancelled,
}

/// How a log knows about the start of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartSource {
    /// It had the event while that was ahead.
    Ahead,
    /// The event had begun when the log first had it.
    Begun,
    /// The event was cancelled, and has not been ahead since.
    Cancelled,
}

/// A price and when it was published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PricedAt {
    pub at: Timestamp,
    pub outcomes: Arc<[Outcome]>,
}

/// A price from a time on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinePoint {
    pub at: Timestamp,
    /// `None` from when the record closed.
    pub outcomes: Option<Arc<[Outcome]>>,
}

/// Why a price is the closing one, or why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClosingReason {
    /// The event was seen live before its commence time.
    Started,
    /// Its commence time passed.
    ScheduledStart,
    /// The record had closed before the start.
    MarketClosed,
    /// No price was published before the start.
    Missing,
}

impl ClosingReason {
    pub const fn key(self) -> &'static str {
        match self {
            ClosingReason::Started => "started",
            ClosingReason::ScheduledStart => "scheduled_start",
            ClosingReason::MarketClosed => "market_closed",
            ClosingReason::Missing => "missing",
        }
    }
}

impl EventLines {
    /// Whether the event has begun by now. The log learns of a commence time that passed with the next change only.
    pub fn start_by(&self, now: Timestamp) -> Start {
        match self.start {
            Start::Ahead if now >= self.event.commence => Start::Scheduled(self.event.commence),
            start => start,
        }
    }
}

impl Start {
    pub fn has_begun(self) -> bool {
        matches!(self, Start::Live(_) | Start::Scheduled(_))
    }

    /// The UTC day on which the event began or is to begin, counted from 1970.
    pub fn day(self, event: &Event) -> u32 {
        self.time(event).unwrap_or(event.commence).unix() / 86_400
    }

    /// When the event began, or will begin. `None` if it was cancelled.
    pub fn time(self, event: &Event) -> Option<Timestamp> {
        match self {
            Start::Ahead => Some(event.commence),
            Start::Live(at) | Start::Scheduled(at) => Some(at),
            Start::Cancelled => None,
        }
    }
}

impl StartSource {
    /// When the log first has an event, or the event changes.
    #[must_use]
    pub fn after(self, start: Start) -> Self {
        match start {
            Start::Ahead => StartSource::Ahead,
            Start::Cancelled => StartSource::Cancelled,
            Start::Live(_) | Start::Scheduled(_) => self,
        }
    }
}

impl Line {
    /// The closing price of an event that has begun as `start` says. `None` before that, and if it was cancelled.
    pub fn close(&self, start: Start) -> Option<(ClosingReason, Option<&PricedAt>)> {
        let reason = match start {
            Start::Ahead | Start::Cancelled => return None,
            Start::Live(_) => ClosingReason::Started,
            Start::Scheduled(_) => ClosingReason::ScheduledStart,
        };
        Some(match &self.closing {
            None => (ClosingReason::Missing, None),
            Some(closing) if self.is_closed => (ClosingReason::MarketClosed, Some(closing)),
            Some(closing) => (reason, Some(closing)),
        })
    }
}
