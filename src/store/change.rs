//! What a commit can change: the closed set of changes, in the words of the model.

use std::sync::Arc;

use crate::keys::{Feeder, KeyId, KeyRecord, Usage};
use crate::model::{
    BookId, Bookmaker, Closed, Event, EventId, EventOwner, FeedBudget, FeederUse, Maintenance, Market, Record, Score,
    Source, SportId, Timestamp, World,
};

/// One change. A batch of them is applied in its order, all or nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    PutBookmaker {
        world: World,
        id: BookId,
        bookmaker: Arc<Bookmaker>,
        origin: BookOrigin,
    },
    /// With its prices and its sources. Its number is never given to another.
    RemoveBookmaker {
        world: World,
        id: BookId,
    },
    PutEvent {
        world: World,
        sport: SportId,
        event: Arc<Event>,
        owner: EventOwner,
    },
    /// With its score, its prices and its closed marks.
    RemoveEvent {
        world: World,
        sport: SportId,
        event: EventId,
    },
    PutScore {
        world: World,
        sport: SportId,
        event: EventId,
        score: Arc<Score>,
    },
    PutOdds {
        world: World,
        sport: SportId,
        event: EventId,
        record: Arc<Record>,
    },
    /// Replaces the record by a mark, so that older news cannot open the market again, not even after a restart.
    CloseOdds {
        world: World,
        sport: SportId,
        event: EventId,
        closed: Closed,
    },
    PutSource {
        world: World,
        sport: SportId,
        bookmaker: BookId,
        source: Source,
    },
    RemoveSource {
        world: World,
        sport: SportId,
        bookmaker: BookId,
    },
    /// What a scope of polls is about; its name is of the feed and what it asks for.
    PutPoll {
        world: World,
        scope: Box<str>,
        sport: SportId,
        stale_after_s: u32,
        books: Box<[BookId]>,
    },
    /// The records of an event that the last complete poll of a scope brought; none of them, and the row goes.
    PutPolled {
        world: World,
        scope: Box<str>,
        event: EventId,
        records: Box<[(BookId, Market)]>,
    },
    /// Only the scope itself: its events are taken back one by one.
    RemovePoll {
        world: World,
        scope: Box<str>,
    },
    PutKey(Arc<KeyRecord>),
    /// For a key that was never in force: any other is revoked, and stays in the list.
    RemoveKey(KeyId),
    PutUsage {
        key: KeyId,
        usage: Usage,
        last_used: Option<Timestamp>,
    },
    /// Under its name; the token before is forgotten.
    PutFeeder(Arc<Feeder>),
    /// What a feeder has added in a world, apart from its token, so that a new token changes nothing in it. The events that
    /// are there now are not stored with it: their owners are.
    PutFeederUse {
        world: World,
        feed: Arc<str>,
        used: FeederUse,
    },
    SetMaintenance(Option<Maintenance>),
    /// Whether the live world holds simulated prices.
    SetSimulated(bool),
    PutFeedBudget {
        feed: Box<str>,
        budget: FeedBudget,
    },
    RemoveFeedBudget {
        feed: Box<str>,
    },
    /// Appends to the audit log. The one change that is not the same when committed twice.
    Audit(AuditNote),
}

/// Where what is known of a bookmaker comes from, which decides what becomes of it when the catalogue changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookOrigin {
    Catalogue,
    /// Listed in the catalogue, with the title of a payload: the title stays, the regions follow the catalogue.
    Titled,
    /// By a feed: it stays as it is, whatever the catalogue lists.
    Declared,
}

/// Who did what to which thing, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditNote {
    pub at: Timestamp,
    pub who: Box<str>,
    pub action: Box<str>,
    pub subject: Box<str>,
    pub detail: Box<str>,
}

/// A note in the audit log with its place in it. Sequence numbers begin at 1 and have no gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    pub sequence: u64,
    pub note: AuditNote,
}
