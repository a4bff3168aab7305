//! What answers in the shape of The Odds API need beyond the board's own indexes: the events of each of its sport keys,
//! and a cache of the answers rendered in that shape.
//!
//! Nothing here stores a price or an event of its own: a competition is a view of the sport's index, and everything is
//! owned by the snapshot that it was made from and dropped with it.

mod competitions;
mod query;

pub(crate) use competitions::{CompetitionView, CompetitionViews};
pub use query::{
    DateFormat, Extras, ListQuery, Listed, MarketsByKind, Priced, PricedBooks, PricedQuery, Prices, Scoped, Shown,
    UpcomingQuery,
};

use super::body::{Bodies, HeapBytes};
use super::index::Index;
use crate::model::Competitions;

/// The events of an index by sport key, and the answers rendered from them. Built on the first request, so that a
/// service whose clients all use `/v1` pays nothing for it.
#[derive(Debug)]
pub(crate) struct V4Answers<Q> {
    pub competitions: CompetitionViews,
    pub bodies: Bodies<Q>,
}

impl<Q: Eq + std::hash::Hash + Clone + HeapBytes> V4Answers<Q> {
    pub(crate) fn new(index: &Index, seen: &Competitions, bodies: Bodies<Q>) -> Self {
        V4Answers { competitions: CompetitionViews::of(index, seen), bodies }
    }
}
