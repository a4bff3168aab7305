//! What the writer enters in the log of changes.
//!
//! Events, scores and removals are entered with the commit that changes them, prices with the publication that shows
//! them. What a publication enters is the difference between the board that readers see and the one that they are about to
//! see, so nothing has to be remembered in between. At the start the board that readers saw last is what the log has: what
//! was committed since, and not published, is entered then.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::batch::WorldUpdate;
use super::logged::Orphan;
use super::state::{SportState, WorldState, published_sources};
use super::{WriteError, Writer};
use crate::board::{EventNode, NodeDiff};
use crate::model::{BookId, Bookmakers, Event, Market, Record, SportId, Timestamp, World};
use crate::store::{
    Change, EventChange, HistoryError, HistoryReader, LogEntry, RecordChange, SportChanges, SportFold, StoreError,
    TickChanges,
};

impl Writer {
    /// Commits the changes of an update with an entry for what it changes of events and scores.
    pub(super) fn commit_update(
        &mut self,
        world: World,
        mut changes: Vec<Change>,
        update: &WorldUpdate,
        now: Timestamp,
    ) -> Result<(), WriteError> {
        self.catch_up()?;
        let sports = update.sports.iter().filter_map(|sport| {
            let before = &self.worlds[world.index()].sports[sport.sport.index()].current;
            let removed: BTreeSet<&str> = sport.removed.iter().map(|edit| edit.id.as_str()).collect();
            let diffs = before.diff(sport.index.as_ref()?);
            let events: Vec<EventChange> = diffs.iter().flat_map(|diff| event_changes(*diff, &removed)).collect();
            (!events.is_empty()).then_some(SportChanges { sport: sport.sport, events, tick: None })
        });
        changes.extend(entry(world, now, sports.collect()));
        self.commit(&changes)
    }

    /// Enters what the log lacks of what the file has, and publishes it. After a start, nothing else may be entered before.
    pub(super) fn catch_up(&mut self) -> Result<(), WriteError> {
        if self.is_log_complete {
            return Ok(());
        }
        let now = self.clock.now();
        let at = due_time(now.unix_ms);
        let changes = World::ALL.into_iter().filter_map(|world| {
            let sports = self.catalogue.sport_ids().filter_map(|sport| {
                let state = &self.worlds[world.index()].sports[sport.index()];
                let diffs = state.board.published().index().diff(&state.current);
                let events: Vec<_> = diffs.iter().flat_map(|diff| event_changes(*diff, &BTreeSet::new())).collect();
                let tick = self.tick_changes(world, sport, state.has_moved_prices, (at, now.unix_ms));
                (!events.is_empty() || tick.is_some()).then_some(SportChanges { sport, events, tick })
            });
            entry(world, now.timestamp(), sports.collect())
        });
        let changes: Vec<Change> = changes.collect();
        self.commit(&changes)?;
        self.is_log_complete = true;
        for world in World::ALL {
            for sport in self.catalogue.sport_ids() {
                self.note_logged(world, sport, true, now.unix_ms);
                // A sport without prices has not published any.
                self.publish_events(world, sport, now.unix_ms);
            }
            self.show(world);
        }
        Ok(())
    }

    /// What a publication of a sport would change of the board that readers see. `None` if it changes nothing, or nothing
    /// but the times of confirmed prices, unless it is forced.
    pub(super) fn tick_changes(
        &self,
        world: World,
        id: SportId,
        is_forced: bool,
        (at, now_ms): (Timestamp, i64),
    ) -> Option<TickChanges> {
        let WorldState { register, sports, .. } = &*self.worlds[world.index()];
        let sport = &sports[id.index()];
        let mut keys = BookKeys { books: register.bookmakers(), keys: BTreeMap::new() };
        let diffs = sport.board.published().index().diff(&sport.current);
        let mut records = Vec::new();
        // With its event go its records.
        for diff in diffs.iter().filter(|diff| diff.after.is_some()) {
            record_changes(*diff, &mut keys, &mut records);
        }
        let has_event = |orphan: &&Orphan| sport.current.get(orphan.event.as_str()).is_some();
        records.extend(sport.orphans.iter().filter(has_event).map(|orphan| RecordChange {
            event: orphan.event.clone(),
            bookmaker: Arc::clone(&orphan.bookmaker),
            market: orphan.market,
            before: None,
            after: None,
        }));
        let stale = stale_keys(sport, &mut keys, now_ms);
        let is_change = !records.is_empty() || is_forced || stale != sport.logged_stale;
        is_change.then_some(TickChanges { at, stale, records })
    }

    /// Follows an entry that is in the file.
    pub(super) fn note_logged(&mut self, world: World, id: SportId, is_forced: bool, now_ms: i64) {
        let WorldState { register, sports, .. } = Arc::make_mut(&mut self.worlds[world.index()]);
        let sport = &mut sports[id.index()];
        let mut keys = BookKeys { books: register.bookmakers(), keys: BTreeMap::new() };
        sport.logged_stale = stale_keys(sport, &mut keys, now_ms);
        sport.orphans = Vec::new();
        // One that was removed since the publication was planned has the next one.
        sport.has_moved_prices &= !is_forced;
    }
}

/// A sport as its log has it. A log that is damaged was reported when it was loaded, and begins again from nothing.
pub(super) fn last_state(history: &HistoryReader, world: World, sport: SportId) -> Result<SportFold, StoreError> {
    match history.last_state(world, sport) {
        Err(HistoryError::Store(error)) => Err(error),
        state => Ok(state.unwrap_or_default()),
    }
}

/// The second in which prices become visible that are published now.
pub(super) fn due_time(now_ms: i64) -> Timestamp {
    Timestamp::from_unix_ms(now_ms.saturating_add(999))
}

/// One entry for the sports, if there are any.
pub(super) fn entry(world: World, at: Timestamp, sports: Vec<SportChanges>) -> Option<Change> {
    let entry = LogEntry { at, sports };
    (!entry.sports.is_empty()).then(|| Change::Log { world, entry: Arc::new(entry) })
}

/// What changed of an event and its score; `removed` are events that were removed, and perhaps added again.
fn event_changes(diff: NodeDiff<'_>, removed: &BTreeSet<&str>) -> Vec<EventChange> {
    let mut changes = Vec::new();
    let is_removed = |node: &&Arc<EventNode>| removed.contains(node.event().id.as_str());
    let before = match (diff.before, diff.after) {
        (Some(before), after) if after.is_none() || is_removed(&before) => {
            changes.push(EventChange::Removed(before.event().id.clone()));
            None
        }
        (before, _) => before,
    };
    let Some(after) = diff.after else { return changes };
    if before.is_none_or(|before| !is_alike(before.event(), after.event())) {
        changes.push(EventChange::Put(Arc::clone(after.event())));
    }
    if let Some(score) = after.score()
        && before.and_then(|before| before.score()) != Some(score)
    {
        changes.push(EventChange::Score(after.event().id.clone(), Arc::clone(score)));
    }
    changes
}

/// Whether clients see no difference between two states of an event.
pub(super) fn is_alike(one: &Arc<Event>, other: &Arc<Event>) -> bool {
    Arc::ptr_eq(one, other) || Event { changed: other.changed, ..(**one).clone() } == **other
}

/// The records of an event that opened, closed or have other outcomes.
fn record_changes(diff: NodeDiff<'_>, keys: &mut BookKeys<'_>, changes: &mut Vec<RecordChange>) {
    let Some(event) = diff.after.or(diff.before).map(|node| &node.event().id) else { return };
    let records = |node: Option<&Arc<EventNode>>| node.map_or(&[][..], |node| node.records()).to_vec();
    let by_pair = |records: &[Arc<Record>]| -> BTreeMap<(BookId, Market), Arc<Record>> {
        records.iter().map(|record| ((record.bookmaker, record.market), Arc::clone(record))).collect()
    };
    let (before, after) = (records(diff.before), records(diff.after));
    // Nearly all records of an event are the same ones as before.
    let unchanged: BTreeSet<*const Record> = before.iter().map(Arc::as_ptr).collect();
    let shared: BTreeSet<*const Record> = after.iter().map(Arc::as_ptr).filter(|at| unchanged.contains(at)).collect();
    let rest = |records: Vec<Arc<Record>>| -> Vec<Arc<Record>> {
        records.into_iter().filter(|record| !shared.contains(&Arc::as_ptr(record))).collect()
    };
    let (mut before, after) = (by_pair(&rest(before)), by_pair(&rest(after)));
    let mut change = |(book, market): (BookId, Market), before: Option<Arc<Record>>, after: Option<Arc<Record>>| {
        changes.push(RecordChange { event: event.clone(), bookmaker: keys.key(book), market, before, after });
    };
    for (pair, after) in after {
        let before = before.remove(&pair);
        if before.as_ref().is_none_or(|before| before.outcomes != after.outcomes) {
            change(pair, before, Some(after));
        }
    }
    for (pair, before) in before {
        change(pair, Some(before), None);
    }
}

/// The keys of the bookmakers whose sources are stale, in their order.
fn stale_keys(sport: &SportState, keys: &mut BookKeys<'_>, now_ms: i64) -> Vec<Arc<str>> {
    let sources = published_sources(sport.board.sources(), Timestamp::from_unix_ms(now_ms));
    let mut stale: Vec<Arc<str>> =
        sources.iter().filter(|source| source.stale).map(|source| keys.key(source.bookmaker)).collect();
    stale.sort_unstable();
    stale
}

/// The keys of bookmakers, each made once.
struct BookKeys<'b> {
    books: &'b Bookmakers,
    keys: BTreeMap<BookId, Arc<str>>,
}

impl BookKeys<'_> {
    fn key(&mut self, book: BookId) -> Arc<str> {
        Arc::clone(self.keys.entry(book).or_insert_with(|| self.books.key(book).into()))
    }
}
