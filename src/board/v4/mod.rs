//! What the shape of The Odds API needs of a board beyond its own lists: the events of each of its sport keys, and the
//! answers that were rendered in its shape.
//!
//! Nothing here holds a price or an event of its own: a competition is a view of the sport's index, and everything
//! lives inside the snapshot that it was made from and dies with it.

mod competitions;
mod query;
mod upcoming;

pub(crate) use competitions::{Competition, Competitions};
pub use query::{
    DateFormat, Extras, ListQuery, Listed, MarketSet, MarketsByKind, Priced, PricedBooks, PricedQuery, Prices, Scoped,
    Shown, UpcomingQuery,
};
pub(crate) use upcoming::{Upcoming, UpcomingEvent, upcoming};

use super::body::{Bodies, HeapBytes};
use super::index::Index;
use crate::model::V4Names;

/// The events of an index by key, and what was rendered of them. Made when somebody asks, so that a service whose
/// clients all speak `/v1` pays nothing for it.
#[derive(Debug)]
pub(crate) struct Shelf<Q> {
    pub competitions: Competitions,
    pub bodies: Bodies<Q>,
}

impl<Q: Eq + std::hash::Hash + Clone + HeapBytes> Shelf<Q> {
    pub(crate) fn new(index: &Index, names: &V4Names, bytes_max: u64) -> Self {
        Shelf { competitions: Competitions::of(index, names), bodies: Bodies::new(bytes_max) }
    }
}
