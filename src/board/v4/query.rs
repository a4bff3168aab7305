//! Queries in the terms of The Odds API. Like every query, these are complete and canonical, so that a query is the
//! key under which its answer is cached.

use crate::board::body::HeapBytes;
use crate::board::query::{Cursor, EventScope};
use crate::model::{
    BookId, Contest, Event, EventId, MarketFilter, OddsFormat, Regions, SportKind, SportSet, Timestamp,
};

/// How points in time are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DateFormat {
    #[default]
    Iso,
    /// Whole seconds since 1970.
    Unix,
}

/// The requested markets, for each kind of sport: `totals` is another market in a fight than in a match.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct MarketsByKind([MarketFilter; 3]);

impl MarketsByKind {
    pub fn new(of: impl Fn(SportKind) -> MarketFilter) -> Self {
        MarketsByKind([SportKind::HeadToHead, SportKind::Fight, SportKind::Tournament].map(of))
    }

    pub const fn of(&self, kind: SportKind) -> &MarketFilter {
        match kind {
            SportKind::HeadToHead => &self.0[0],
            SportKind::Fight => &self.0[1],
            SportKind::Tournament => &self.0[2],
        }
    }

    /// Those of an event of a sport: every sport can have events with a field, and events with two sides.
    pub const fn of_event(&self, kind: SportKind, event: &Event) -> &MarketFilter {
        self.of(match (&event.contest, kind) {
            (Contest::Tournament { .. }, _) => SportKind::Tournament,
            (Contest::Sides { .. }, SportKind::Tournament) => SportKind::HeadToHead,
            (Contest::Sides { .. }, kind) => kind,
        })
    }
}

/// Whose prices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PricedBooks {
    OfferedIn(Regions),
    /// Sorted, each once.
    Named(Box<[BookId]>),
}

impl PricedBooks {
    pub fn named(mut books: Vec<BookId>) -> Self {
        books.sort_unstable();
        books.dedup();
        PricedBooks::Named(books.into())
    }
}

/// Optional fields. Their values are never known here, so they are null.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[expect(clippy::struct_excessive_bools, reason = "each is a parameter of its own, true or false")]
pub struct Extras {
    pub links: bool,
    pub sids: bool,
    pub bet_limits: bool,
    pub multipliers: bool,
    pub rotation_numbers: bool,
}

/// Which prices, and how they are written.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Prices {
    pub markets: MarketsByKind,
    pub books: PricedBooks,
    pub format: OddsFormat,
    pub dates: DateFormat,
    pub extras: Extras,
}

/// Which events.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scoped {
    pub events: EventScope,
    pub after: Option<Cursor>,
}

/// A query for prices under one sport key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct PricedQuery {
    pub key: Box<str>,
    pub what: Priced,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Priced {
    Events { prices: Prices, scope: Scoped },
    OneEvent { id: EventId, shown: Shown },
}

/// What is shown of one event.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Shown {
    Odds(Prices),
    /// Which markets there are, without their prices.
    Markets {
        books: PricedBooks,
        dates: DateFormat,
    },
}

/// A query for events and scores under one sport key.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ListQuery {
    pub key: Box<str>,
    pub what: Listed,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Listed {
    Events {
        dates: DateFormat,
        scope: Scoped,
        /// Adds fields for rotation numbers.
        rotation_numbers: bool,
    },
    Scores {
        dates: DateFormat,
        scope: Scoped,
        /// Events that ended at this time or later are listed as well.
        ended_since: Option<Timestamp>,
    },
    Participants,
}

/// Events live now and next, across sports.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UpcomingQuery {
    /// Those that the API key may read.
    pub sports: SportSet,
    pub prices: Prices,
    pub scope: Scoped,
}

impl HeapBytes for PricedBooks {
    fn heap_bytes(&self) -> usize {
        match self {
            PricedBooks::OfferedIn(_) => 0,
            PricedBooks::Named(books) => size_of_val(&**books),
        }
    }
}

impl HeapBytes for Prices {
    fn heap_bytes(&self) -> usize {
        self.books.heap_bytes() + self.markets.0.iter().map(HeapBytes::heap_bytes).sum::<usize>()
    }
}

impl HeapBytes for Scoped {
    fn heap_bytes(&self) -> usize {
        self.events.heap_bytes() + self.after.heap_bytes()
    }
}

impl HeapBytes for PricedQuery {
    fn heap_bytes(&self) -> usize {
        let what = match &self.what {
            Priced::Events { prices, scope } => prices.heap_bytes() + scope.heap_bytes(),
            Priced::OneEvent { id, shown: Shown::Odds(prices) } => id.heap_bytes() + prices.heap_bytes(),
            Priced::OneEvent { id, shown: Shown::Markets { books, .. } } => id.heap_bytes() + books.heap_bytes(),
        };
        self.key.len() + what
    }
}

impl HeapBytes for ListQuery {
    fn heap_bytes(&self) -> usize {
        let what = match &self.what {
            Listed::Events { scope, .. } | Listed::Scores { scope, .. } => scope.heap_bytes(),
            Listed::Participants => 0,
        };
        self.key.len() + what
    }
}

impl HeapBytes for UpcomingQuery {
    fn heap_bytes(&self) -> usize {
        self.prices.heap_bytes() + self.scope.heap_bytes()
    }
}
