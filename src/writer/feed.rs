//! What the writer hands to clients that follow changes: every entry of the log once it is in the file, and a beat at every
//! tick.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Writer;
use super::state::{SportState, WorldState};
use crate::board::{Beat, ChangeEntry, ChangedRecord, ListChange, MovedEvent, SourceRead, SportEntry, TickEntry};
use crate::model::{Bookmakers, Event, EventId, Position, Record, SportId, Timestamp, World};
use crate::store::{EventChange, LogEntry, LogHead, RecordChange, SportChanges, TickChanges};

/// The position at the end of a log.
pub(super) const fn position_of(head: LogHead) -> Position {
    Position::before(head.epoch, head.next)
}

impl Writer {
    pub(super) fn position(&self, world: World) -> Position {
        position_of(self.log_heads[world.index()])
    }

    /// Keeps an entry that is in the log, until the board that shows it is published. The state is still the one before.
    pub(super) fn follow_entry(&mut self, world: World, entry: &LogEntry) {
        let feed = self.boards.feed(world);
        if !feed.is_followed(self.local_clock.now().timestamp()) {
            feed.clear();
            return;
        }
        let sequence = self.log_heads[world.index()].next.saturating_sub(1);
        let mut sports = Vec::with_capacity(entry.sports.len());
        for changes in &entry.sports {
            let at = changes.tick.as_ref().map(|tick| {
                // The log may have moved it by some seconds.
                self.store.last_tick(world, changes.sport).unwrap_or(tick.at)
            });
            sports.push(self.sport_entry(world, changes, (entry.at, at)));
        }
        self.unannounced[world.index()].push(ChangeEntry::new(sequence, sports));
    }

    /// `at` is the second of the entry, and `tick` that of the publication.
    fn sport_entry(
        &self,
        world: World,
        changes: &SportChanges,
        (at, tick): (Timestamp, Option<Timestamp>),
    ) -> SportEntry {
        let WorldState { register, sports, .. } = &*self.worlds[world.index()];
        let sport = &sports[changes.sport.index()];
        let key: Arc<str> = (*self.catalogue[changes.sport].key).into();
        let (lists, put) = list_changes((&key, sport), register.bookmakers(), at, &changes.events);
        let event_of = |id: &EventId| {
            let known = || sport.current.get(id.as_str()).map(|node| Arc::clone(node.event()));
            put.get(id).cloned().or_else(known)
        };
        let tick = changes.tick.as_ref().zip(tick).map(|(tick, at)| {
            let record = |change: &RecordChange| -> Option<ChangedRecord> {
                let event = event_of(&change.event)?;
                Some((event, Arc::clone(&change.bookmaker), change.market, change.after.clone()))
            };
            TickEntry::new(&key, at, source_changes(sport, tick), tick.records.iter().filter_map(record).collect())
        });
        SportEntry { sport: changes.sport, key, lists, tick }
    }

    /// Hands over the entries of a world whose board is about to be published.
    pub(super) fn announce(&mut self, world: World) {
        for entry in std::mem::take(&mut self.unannounced[world.index()]) {
            self.boards.feed(world).push(entry);
        }
    }

    /// Marks a tick for everybody who follows, with the sources that were read since the one before.
    pub(super) fn beat(&mut self, at: Timestamp) {
        let since = std::mem::replace(&mut self.last_beat, at);
        for world in World::ALL {
            let feed = self.boards.feed(world);
            if !feed.is_followed(at) {
                feed.clear();
                continue;
            }
            let reads = self.catalogue.sport_ids().flat_map(|sport| self.reads_since(world, sport, since)).collect();
            feed.beat(Beat::new(at, self.position(world), reads));
            feed.wake_all();
        }
    }

    fn reads_since(&self, world: World, sport: SportId, since: Timestamp) -> Vec<SourceRead> {
        let state = &self.worlds[world.index()];
        let books = state.register.bookmakers();
        let sport_key: Arc<str> = (*self.catalogue[sport].key).into();
        let sources = state.sports[sport.index()].board.sources().iter();
        let read = sources.filter(|state| state.source.last_read >= since).map(|state| SourceRead {
            sport,
            sport_key: Arc::clone(&sport_key),
            bookmaker: books.key(state.bookmaker).into(),
            last_read: state.source.last_read,
        });
        read.collect()
    }
}

/// The changes of events and scores, and the events that were put.
fn list_changes(
    (sport_key, sport): (&str, &SportState),
    books: &Bookmakers,
    at: Timestamp,
    changes: &[EventChange],
) -> (Vec<ListChange>, BTreeMap<EventId, Arc<Event>>) {
    let mut put: BTreeMap<EventId, Arc<Event>> = BTreeMap::new();
    let mut removed: BTreeSet<&EventId> = BTreeSet::new();
    let mut lists = Vec::with_capacity(changes.len());
    let known = |id: &EventId| sport.current.get(id.as_str()).map(|node| Arc::clone(node.event()));
    for change in changes {
        match change {
            EventChange::Put(event) => {
                // With an event go its prices, also if it is added again at once.
                let priced = sport.board.published().index().get(event.id.as_str());
                let priced = priced.filter(|_| !removed.contains(&event.id));
                let markets = priced.map(|node| node.markets().into()).unwrap_or_default();
                let is_moved = |from: &Arc<Event>| from.competition_key != event.competition_key;
                let before = put.get(&event.id).cloned().or_else(|| known(&event.id));
                let moved = before.filter(is_moved).zip(priced).map(|(from, priced)| {
                    let record = |record: &Arc<Record>| (books.key(record.bookmaker).into(), Arc::clone(record));
                    let records: Vec<_> = priced.records().iter().map(record).collect();
                    Arc::new(MovedEvent::new(sport_key, at, (&from, event), &records))
                });
                lists.push(ListChange::Event(Arc::clone(event), markets, moved));
                put.insert(event.id.clone(), Arc::clone(event));
            }
            EventChange::Score(id, score) => {
                let event = put.get(id).cloned().or_else(|| known(id));
                lists.extend(event.map(|event| ListChange::Score(event, Arc::clone(score))));
            }
            EventChange::Removed(id) => {
                removed.insert(id);
                lists.extend(put.remove(id).or_else(|| known(id)).map(ListChange::Removed));
            }
        }
    }
    (lists, put)
}

/// The sources that went stale or came back, with whether they are stale now.
fn source_changes(sport: &SportState, tick: &TickChanges) -> Vec<(Arc<str>, bool)> {
    let (before, after): (BTreeSet<&Arc<str>>, BTreeSet<&Arc<str>>) =
        (sport.logged_stale.iter().collect(), tick.stale.iter().collect());
    before.symmetric_difference(&after).map(|key| (Arc::clone(key), after.contains(key))).collect()
}
