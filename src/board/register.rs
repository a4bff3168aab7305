//! What a world has had, as queries need it: its bookmakers with the regions that they are offered in, its competitions and
//! its markets. It changes rarely, so that a change makes a new one.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};

use super::coverage::BookSet;
use crate::model::{Bookmakers, Competitions, Market, Regions};

/// The bookmakers, competitions and markets of a world. Immutable.
#[derive(Clone, Debug)]
pub struct Register {
    bookmakers: Bookmakers,
    competitions: Arc<Competitions>,
    markets: Arc<BTreeSet<Market>>,
    /// One set of bookmakers for each set of regions, made when it is first requested.
    by_regions: Box<[OnceLock<Arc<BookSet>>]>,
}

impl Register {
    pub fn new(bookmakers: Bookmakers) -> Self {
        let by_regions = unmade_sets();
        Register { bookmakers, competitions: Arc::default(), markets: Arc::default(), by_regions }
    }

    #[must_use]
    pub fn with_bookmakers(&self, bookmakers: Bookmakers) -> Self {
        Register { bookmakers, by_regions: unmade_sets(), ..self.clone() }
    }

    #[must_use]
    pub fn with_competitions(self, competitions: Arc<Competitions>) -> Self {
        Register { competitions, ..self }
    }

    #[must_use]
    pub fn with_markets(self, markets: Arc<BTreeSet<Market>>) -> Self {
        Register { markets, ..self }
    }

    pub fn bookmakers(&self) -> &Bookmakers {
        &self.bookmakers
    }

    /// The competitions that the world has had events of.
    pub fn competitions(&self) -> &Arc<Competitions> {
        &self.competitions
    }

    /// The markets that the world has had prices of.
    pub fn markets(&self) -> &Arc<BTreeSet<Market>> {
        &self.markets
    }

    /// The bookmakers offered in any of the regions.
    pub(crate) fn offered_in(&self, regions: Regions) -> &Arc<BookSet> {
        self.by_regions[usize::from(regions.bits())].get_or_init(|| {
            let books = self.bookmakers.iter().filter(|(_, book)| book.regions.intersects(regions));
            Arc::new(books.map(|(id, _)| id).collect())
        })
    }
}

fn unmade_sets() -> Box<[OnceLock<Arc<BookSet>>]> {
    (0..=Regions::ALL.bits()).map(|_| OnceLock::new()).collect()
}
