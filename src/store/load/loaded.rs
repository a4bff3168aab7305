//! The content of a file, in types of the model.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::keys::{Feeder, KeyId, KeyRecord, RecentUse, Usage};
use crate::model::{
    BookId, Bookmakers, Closed, Competitions, Event, EventId, EventOwner, FeedBudget, FeederUse, Maintenance, Market,
    Membership, Record, Score, Source, SportId, World,
};
use crate::store::error::DamageList;
use crate::store::history::LogHead;

/// Everything in the file that can be served, and the damage that was left out.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// By [`World::index`].
    pub worlds: [LoadedWorld; 2],
    /// In the order of their issue.
    pub keys: Vec<(KeyRecord, Usage)>,
    /// What keys have used lately.
    pub recent_use: Vec<(KeyId, RecentUse)>,
    /// In the order of their names.
    pub feeders: Vec<Feeder>,
    /// Keys whose counters cannot be read: their usage is unknown, so they count as exhausted.
    pub damaged_usage: Vec<KeyId>,
    /// What each polled feed has spent, in the order of their names.
    pub feed_budgets: Vec<(Box<str>, FeedBudget)>,
    pub maintenance: Option<Maintenance>,
    /// Whether the live world holds simulated prices.
    pub simulated_live: bool,
    /// Which shared log the file follows, and how far.
    pub membership: Option<Membership>,
    /// Where the log of each world ends, by [`World::index`].
    pub log_heads: [LogHead; 2],
    /// What was left out.
    pub damage: DamageList,
    /// Sports that the catalogue no longer lists: kept, not served.
    pub unserved: Vec<UnservedSport>,
}

impl Loaded {
    pub const fn world(&self, world: World) -> &LoadedWorld {
        &self.worlds[world.index()]
    }
}

#[derive(Clone, Debug, Default)]
pub struct LoadedWorld {
    pub bookmakers: Bookmakers,
    /// Those that the world has had events of, and the markets that it has had prices of.
    pub competitions: Competitions,
    pub markets: BTreeSet<Market>,
    /// By the index of the catalogue's sport ids.
    pub sports: Vec<LoadedSport>,
    pub polls: Vec<LoadedPoll>,
    /// What feeders have added, in the order of their names; without the events that are there now.
    pub feeder_uses: Vec<(Box<str>, FeederUse)>,
}

/// Records of an event, each by its bookmaker and market.
pub(super) type BookMarkets = Box<[(BookId, Market)]>;

/// What the last complete poll of a scope returned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedPoll {
    pub scope: Box<str>,
    pub sport: SportId,
    pub stale_after_s: u32,
    pub books: Vec<BookId>,
    /// With the records that it returned of each event.
    pub events: Vec<(EventId, BookMarkets)>,
}

#[derive(Clone, Debug, Default)]
pub struct LoadedSport {
    /// In the order of commence time and event id.
    pub events: Vec<LoadedEvent>,
    pub sources: Vec<(BookId, Source)>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadedEvent {
    pub event: Arc<Event>,
    pub owner: EventOwner,
    pub score: Option<Arc<Score>>,
    /// In the order of bookmaker key and market key.
    pub records: Vec<Arc<Record>>,
    pub closed: Vec<Closed>,
}

/// A sport of an earlier catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnservedSport {
    pub key: Box<str>,
    /// In both worlds together.
    pub events: u64,
    pub records: u64,
}
