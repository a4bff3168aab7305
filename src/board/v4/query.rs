//! Queries in the terms of The Odds API. Like every query, these are complete and canonical, so that a query is the
//! key under which its answer is cached.

use crate::board::body::HeapBytes;
use crate::board::query::{Cursor, EventIds};
use crate::model::{BookId, EventId, Market, OddsFormat, Regions, SportKind, SportSet, Timestamp};

/// How points in time are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DateFormat {
    #[default]
    Iso,
    /// Whole seconds since 1970.
    Unix,
}

/// A set of markets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MarketSet(u16);

impl MarketSet {
    #[must_use]
    pub const fn with(self, market: Market) -> Self {
        MarketSet(self.0 | 1 << market.index())
    }

    pub const fn contains(self, market: Market) -> bool {
        self.0 & (1 << market.index()) != 0
    }
}

/// The requested markets, for each kind of sport: `totals` is another market in a fight than in a match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MarketsByKind([MarketSet; 3]);

impl MarketsByKind {
    const fn at(kind: SportKind) -> usize {
        match kind {
            SportKind::HeadToHead => 0,
            SportKind::Fight => 1,
            SportKind::Tournament => 2,
        }
    }

    #[must_use]
    pub fn with(mut self, kind: SportKind, market: Market) -> Self {
        let set = &mut self.0[Self::at(kind)];
        *set = set.with(market);
        self
    }

    pub const fn of(self, kind: SportKind) -> MarketSet {
        self.0[Self::at(kind)]
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
pub struct Extras {
    pub links: bool,
    pub sids: bool,
    pub bet_limits: bool,
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
    pub events: Option<EventIds>,
    pub commence_from: Option<Timestamp>,
    pub commence_to: Option<Timestamp>,
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

impl HeapBytes for Scoped {
    fn heap_bytes(&self) -> usize {
        self.events.heap_bytes() + self.after.heap_bytes()
    }
}

impl HeapBytes for PricedQuery {
    fn heap_bytes(&self) -> usize {
        let what = match &self.what {
            Priced::Events { prices, scope } => prices.books.heap_bytes() + scope.heap_bytes(),
            Priced::OneEvent { id, shown: Shown::Odds(Prices { books, .. }) | Shown::Markets { books, .. } } => {
                id.heap_bytes() + books.heap_bytes()
            }
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
        self.prices.books.heap_bytes() + self.scope.heap_bytes()
    }
}
