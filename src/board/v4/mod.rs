//! What answers in the shape of The Odds API need beyond the board's own indexes: the events of each of its sport keys,
//! and a cache of the answers rendered in that shape.
//!
//! Nothing here stores a price or an event of its own: a competition is a view of the sport's index, and everything is
//! owned by the snapshot that it was made from and dropped with it.

mod competitions;
mod query;

pub(crate) use competitions::{Competition, Competitions};
pub use query::{
    DateFormat, Extras, ListQuery, Listed, MarketSet, MarketsByKind, Priced, PricedBooks, PricedQuery, Prices, Scoped,
    Shown, UpcomingQuery,
};

use super::body::{Bodies, HeapBytes};
use super::index::Index;
use crate::model::V4Names;

/// The events of an index by sport key, and the answers rendered from them. Built on the first request, so that a
/// service whose clients all use `/v1` pays nothing for it.
#[derive(Debug)]
pub(crate) struct V4Answers<Q> {
    pub competitions: Competitions,
    pub bodies: Bodies<Q>,
}

impl<Q: Eq + std::hash::Hash + Clone + HeapBytes> V4Answers<Q> {
    pub(crate) fn new(index: &Index, names: &V4Names, bytes_max: u64) -> Self {
        V4Answers { competitions: Competitions::of(index, names), bodies: Bodies::new(bytes_max) }
    }
}
