//! What a commit can change: a closed set of changes, in types of the model.

use std::sync::Arc;

use super::history::{LogEntry, LogHead};
use crate::keys::{Feeder, KeyId, KeyRecord, RecentUse, Usage};
use crate::model::{
    BookId, Bookmaker, Closed, Event, EventId, EventOwner, FeedBudget, FeederUse, Maintenance, Market, Membership,
    Record, Score, SeenCompetition, Source, SportId, Timestamp, World,
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
    /// With its prices and its sources. Its number is never reused.
    RemoveBookmaker {
        world: World,
        id: BookId,
    },
    /// A competition that the world has had an event of.
    PutCompetition {
        world: World,
        key: Arc<str>,
        competition: SeenCompetition,
    },
    /// For one that never took effect.
    RemoveCompetition {
        world: World,
        key: Arc<str>,
    },
    /// A market that the world has had a price of.
    PutMarket {
        world: World,
        market: Market,
    },
    /// For one that never took effect.
    RemoveMarket {
        world: World,
        market: Market,
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
    /// Replaces the record by a mark, so that older news cannot reopen the market, not even after a restart.
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
    /// The description of a scope of polls, which is named after the feed and what it requests.
    PutPoll {
        world: World,
        scope: Box<str>,
        sport: SportId,
        stale_after_s: u32,
        books: Box<[BookId]>,
    },
    /// The records of an event that the last complete poll of a scope returned; an empty list removes the row.
    PutPolled {
        world: World,
        scope: Box<str>,
        event: EventId,
        records: Box<[(BookId, Market)]>,
    },
    /// Removes only the scope itself: its events are removed one by one.
    RemovePoll {
        world: World,
        scope: Box<str>,
    },
    PutKey(Arc<KeyRecord>),
    /// For a key that never took effect: any other is revoked, and stays in the list.
    RemoveKey(KeyId),
    PutUsage {
        key: KeyId,
        usage: Usage,
        last_used: Option<Timestamp>,
    },
    /// What a key has used in the last hours and days.
    PutRecentUse {
        key: KeyId,
        recent: Box<RecentUse>,
    },
    /// Under its name; replaces the previous token.
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
    /// Which shared log the file follows, and how far; `None` if it is the file of a single node.
    SetMembership(Option<Membership>),
    PutFeedBudget {
        feed: Box<str>,
        budget: FeedBudget,
    },
    RemoveFeedBudget {
        feed: Box<str>,
    },
    /// Appends an entry to the world's log of changes.
    Log {
        world: World,
        entry: Arc<LogEntry>,
    },
    /// Takes back the entries of the log after its end as given here: they were refused.
    RevertLog {
        world: World,
        head: LogHead,
    },
    /// Deletes the whole log of a world and begins an empty one, under the epoch given here.
    ClearLog {
        world: World,
        epoch: u64,
    },
    /// Begins a new epoch in each log, after which no position of the old one is valid.
    RenewEpochs([u64; World::ALL.len()]),
    /// Appends to the audit log. The one change that is not the same when committed twice.
    Audit(AuditNote),
}

impl Change {
    /// Whether it concerns the log of changes.
    pub(super) const fn is_of_log(&self) -> bool {
        matches!(self, Change::Log { .. } | Change::RevertLog { .. } | Change::ClearLog { .. } | Change::RenewEpochs(_))
    }
}

/// The origin of what is known of a bookmaker, which decides what happens to it when the catalogue changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BookOrigin {
    Catalogue,
    /// Listed in the catalogue, with a title from a payload: the title stays, the regions follow the catalogue.
    Titled,
    /// Declared by a feed: it stays as it is, whatever the catalogue lists.
    Declared,
}

/// Who did what to which subject, and when.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditNote {
    pub at: Timestamp,
    pub who: Box<str>,
    pub action: Box<str>,
    pub subject: Box<str>,
    pub detail: Box<str>,
}

/// A note in the audit log with its sequence number. Numbers begin at 1 and have no gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuditEntry {
    pub sequence: u64,
    pub note: AuditNote,
}
