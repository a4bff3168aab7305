//! The bookmakers of a world as queries need them: the register, and which are offered in which regions.

use std::sync::Arc;

use super::coverage::BookSet;
use crate::model::{Bookmakers, Region, Regions};

/// A register of bookmakers with the set of each region. Immutable.
#[derive(Debug)]
pub struct Books {
    register: Bookmakers,
    /// One set for each of the sixteen sets of regions.
    by_regions: [Arc<BookSet>; 16],
}

impl Books {
    pub fn new(register: Bookmakers) -> Self {
        let offered = |wanted: Regions| {
            let books = register.iter().filter(|(_, book)| book.regions.intersects(wanted));
            Arc::new(books.map(|(id, _)| id).collect::<BookSet>())
        };
        let regions = |bits: usize| Region::ALL.into_iter().filter(|region| bits & (1 << *region as u8) != 0).collect();
        let by_regions = std::array::from_fn(|bits| offered(regions(bits)));
        Books { register, by_regions }
    }

    pub fn register(&self) -> &Bookmakers {
        &self.register
    }

    /// The bookmakers offered in any of the regions.
    pub(crate) fn offered_in(&self, regions: Regions) -> &Arc<BookSet> {
        &self.by_regions[usize::from(regions.bits())]
    }
}
