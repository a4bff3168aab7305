//! What can be asked of derived prices. A query is also the key of a kept answer.

use super::position::RowPosition;
use crate::board::body::HeapBytes;
use crate::board::query::{Cursor, EventScope, Limit};
use crate::model::derived::{FairMethod, Millionths};
use crate::model::{BookId, MarketFilter, OddsFormat, Regions};

/// Which prices an answer is derived from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct DerivedFilter {
    pub markets: MarketFilter,
    pub bookmaker: Option<BookId>,
    /// `None`: wherever a bookmaker is offered.
    pub regions: Option<Regions>,
    pub scope: EventScope,
}

/// Whose prices are taken for fair once their margin is taken out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FairFrom {
    /// The median of all bookmakers of the regions.
    #[default]
    Consensus,
    Bookmaker(BookId),
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FairQuery {
    pub method: FairMethod,
    pub from: FairFrom,
}

/// The order of the best prices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum BestOrder {
    /// As every list: by commence time and event.
    #[default]
    Schedule,
    /// The lowest hold first.
    Hold,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EdgeKind {
    /// Prices above what is fair.
    Value(FairQuery),
    /// The best prices of all outcomes, together.
    Arbitrage,
}

/// What is derived.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Derived {
    Best(BestOrder),
    Fair(FairQuery),
    Edges { kind: EdgeKind, min: Millionths },
}

/// A page of derived prices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct DerivedQuery {
    pub filter: DerivedFilter,
    pub what: Derived,
    pub format: OddsFormat,
    pub limit: Limit,
    pub after: Option<Cursor>,
    /// Whether each row has the event's names, competition and start.
    pub with_event: bool,
}

impl DerivedQuery {
    /// Whether a cursor is one between two pages of derived prices.
    pub fn is_cursor(cursor: &Cursor) -> bool {
        RowPosition::of_cursor(cursor).is_some()
    }
}

impl HeapBytes for DerivedFilter {
    fn heap_bytes(&self) -> usize {
        self.markets.heap_bytes() + self.scope.heap_bytes()
    }
}

impl HeapBytes for DerivedQuery {
    fn heap_bytes(&self) -> usize {
        self.filter.heap_bytes() + self.after.heap_bytes()
    }
}
