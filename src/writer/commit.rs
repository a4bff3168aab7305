//! Committing, also to a disk that fails: what was acknowledged is in the file, and what was refused is not.
//!
//! A commit that fails may have reached the disk all the same, and only reopening the file tells. If it did and the
//! caller still waits, it is done. If the file could not be reopened, the caller has been told that nothing was changed:
//! then the first thing that is written to the file once it opens again is what memory holds of the things concerned.

//!
//! A write that was refused makes the service's condition unwritable. That ends only when a write as large as the largest
//! refused one has gone through: on a full disk small ones still fit, and the status must not alternate between feeds
//! that fail and counters that are stored.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;

use tracing::Level;

use super::batch::origin_of;
use super::{WriteError, Writer};
use crate::keys::KeyId;
use crate::log::{LineKind, limited};
use crate::model::{BookId, EventId, SportId, World};
use crate::store::{AuditNote, Change, StoreError};

/// Each change puts at most about two rows, into a page each.
const PAGES_PER_CHANGE: usize = 2;
/// What a probe writes at least, and at most: 64 kB and 16 MB.
const PROBE_PAGES_MIN: usize = 16;
const PROBE_PAGES_MAX: usize = 4_096;

/// Where memory and file may differ after a failure. One batch at most: nothing is written before it is known whether that
/// one was kept.
#[derive(Debug, Default)]
pub(super) struct Doubt {
    /// Refused, and perhaps in the file.
    refused: Vec<Change>,
    /// Takes back what was refused and is in the file.
    undo: Vec<Change>,
}

impl Writer {
    /// Commits changes; after a failure reopens the file and tries once more, since no write to it can succeed before.
    pub(super) fn commit(&mut self, changes: &[Change]) -> Result<(), WriteError> {
        if changes.is_empty() {
            return Ok(());
        }
        let result = self.write(changes);
        match &result {
            Err(error) if error.needs_reopen() => self.set_refused(self.refused.max(changes.len())),
            Ok(()) if changes.len() >= self.refused => self.set_refused(0),
            _ => {}
        }
        result.map_err(WriteError::from)
    }

    fn write(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let result = match self.attempt(changes) {
            Err(Failed::Retry(error)) => {
                limited!(LineKind::Commit, Level::WARN, %error, "commit failed; reopened the file to try once more");
                self.attempt(changes)
            }
            other => other,
        };
        result.map_err(|failed| match failed {
            Failed::Retry(error) | Failed::Final(error) => error,
        })
    }

    /// Tries a write as large as the largest refused one, to learn whether the disk takes it again. The first commit takes
    /// back what is in doubt, and reopens the file if it must be.
    pub(super) fn heal(&mut self) {
        let pages = self.refused.saturating_mul(PAGES_PER_CHANGE).clamp(PROBE_PAGES_MIN, PROBE_PAGES_MAX);
        let written = self.write(&[Change::SetMaintenance(self.maintenance)]);
        match written.and_then(|()| self.store.probe(u32::try_from(pages).unwrap_or(u32::MAX))) {
            Ok(()) => self.set_refused(0),
            Err(error) => {
                self.writing.count_failure();
                tracing::debug!(%error, pages, "write probe failed");
            }
        }
    }

    pub(super) fn is_unwritable(&self) -> bool {
        self.refused > 0
    }

    fn set_refused(&mut self, refused: usize) {
        if self.refused > 0 && refused == 0 {
            tracing::info!("the file takes writes again");
        }
        self.refused = refused;
        self.boards.condition().set_unwritable(refused > 0);
    }

    fn attempt(&mut self, changes: &[Change]) -> Result<(), Failed> {
        let written = if self.doubt.undo.is_empty() {
            self.timed_commit(changes)
        } else {
            self.timed_commit(&[&self.doubt.undo, changes].concat())
        };
        let Err(error) = written else {
            self.doubt.undo.clear();
            return Ok(());
        };
        if !error.needs_reopen() {
            return Err(Failed::Final(error));
        }
        // Before the reopening that an earlier failure asks for, nothing was tried.
        let was_tried = !matches!(error, StoreError::NeedsReopen);
        match self.store.reopen() {
            Ok(true) if was_tried => {
                self.doubt.undo.clear();
                Ok(())
            }
            Ok(was_kept) => {
                let refused = std::mem::take(&mut self.doubt.refused);
                if was_kept {
                    self.doubt.undo = self.undo(&refused);
                }
                Err(Failed::Retry(error))
            }
            Err(reopening) => {
                limited!(LineKind::Commit, Level::WARN, error = %reopening, "failed to reopen the file after a failed commit");
                if was_tried {
                    self.doubt.refused = changes.to_vec();
                }
                Err(Failed::Final(error))
            }
        }
    }

    fn timed_commit(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let began = Instant::now();
        let committed = self.store.commit(changes);
        match &committed {
            Ok(()) => self.writing.commits.record(began.elapsed()),
            Err(_) => self.writing.count_failure(),
        }
        committed
    }

    /// The changes that bring whatever `changes` touched back to what memory holds of it. Bookmakers come first and
    /// events last: the store refuses a price or a source of a bookmaker that it does not have.
    pub(super) fn undo(&self, changes: &[Change]) -> Vec<Change> {
        let mut books = Vec::new();
        let mut undo = Vec::new();
        let mut events: BTreeSet<(World, SportId, EventId)> = BTreeSet::new();
        for change in changes {
            match change {
                Change::PutEvent { world, sport, event, .. } => drop(events.insert((*world, *sport, event.id.clone()))),
                Change::RemoveEvent { world, sport, event }
                | Change::PutScore { world, sport, event, .. }
                | Change::PutOdds { world, sport, event, .. }
                | Change::CloseOdds { world, sport, event, .. } => {
                    events.insert((*world, *sport, event.clone()));
                }
                Change::PutBookmaker { world, id, .. } => books.push(self.held_bookmaker(*world, *id)),
                Change::RemoveBookmaker { world, id } => {
                    books.push(self.held_bookmaker(*world, *id));
                    undo.extend(self.held_sources(*world, *id));
                    events.extend(self.events_priced_by(*world, *id));
                }
                Change::PutSource { world, sport, bookmaker, .. }
                | Change::RemoveSource { world, sport, bookmaker } => {
                    undo.push(self.held_source(*world, *sport, *bookmaker));
                }
                Change::PutPoll { world, scope, .. } | Change::RemovePoll { world, scope } => {
                    undo.push(self.held_poll(*world, scope));
                }
                Change::PutPolled { world, scope, event, .. } => undo.push(self.held_polled(*world, scope, event)),
                Change::PutKey(record) => undo.push(self.held_key(&record.id)),
                Change::RemoveKey(id) => {
                    undo.push(self.held_key(id));
                    undo.extend(self.held_usage(id));
                }
                Change::PutFeeder(feeder) => undo.push(Change::PutFeeder(self.held_feeder(feeder))),
                Change::PutFeederUse { world, feed, .. } => undo.push(self.held_use(*world, feed)),
                Change::SetMaintenance(_) => undo.push(Change::SetMaintenance(self.maintenance)),
                Change::SetSimulated(_) => undo.push(Change::SetSimulated(self.simulated_live)),
                Change::PutFeedBudget { feed, .. } | Change::RemoveFeedBudget { feed } => {
                    undo.push(self.stored_budget(feed));
                }
                Change::Audit(note) => undo.push(Change::Audit(self.undone(note))),
                Change::PutUsage { key, .. } => undo.extend(self.held_usage(key)),
            }
        }
        let events = events.into_iter().flat_map(|(world, sport, event)| self.held_event(world, sport, event));
        books.into_iter().chain(undo).chain(events).collect()
    }

    fn held_bookmaker(&self, world: World, id: BookId) -> Change {
        match self.worlds[world.index()].books.register().get(id) {
            Some(held) => {
                let origin = origin_of(held, &self.catalogue);
                Change::PutBookmaker { world, id, bookmaker: Arc::clone(held), origin }
            }
            None => Change::RemoveBookmaker { world, id },
        }
    }

    fn held_source(&self, world: World, sport: SportId, bookmaker: BookId) -> Change {
        match self.worlds[world.index()].sports[sport.index()].sources.get(&bookmaker) {
            Some(held) => Change::PutSource { world, sport, bookmaker, source: held.source },
            None => Change::RemoveSource { world, sport, bookmaker },
        }
    }

    fn held_sources(&self, world: World, bookmaker: BookId) -> impl Iterator<Item = Change> {
        let sports = self.catalogue.sport_ids();
        let is_held =
            move |sport: &SportId| self.worlds[world.index()].sports[sport.index()].sources.contains_key(&bookmaker);
        sports.filter(is_held).map(move |sport| self.held_source(world, sport, bookmaker))
    }

    fn events_priced_by(&self, world: World, bookmaker: BookId) -> impl Iterator<Item = (World, SportId, EventId)> {
        self.catalogue.sport_ids().flat_map(move |sport| {
            let nodes = self.worlds[world.index()].sports[sport.index()].current.iter();
            let priced = nodes.filter(move |node| node.records().iter().any(|record| record.bookmaker == bookmaker));
            priced.map(move |node| (world, sport, node.event().id.clone()))
        })
    }

    fn held_use(&self, world: World, feed: &Arc<str>) -> Change {
        let used = self.worlds[world.index()].owners.used(feed);
        Change::PutFeederUse { world, feed: Arc::clone(feed), used }
    }

    fn held_key(&self, id: &KeyId) -> Change {
        match self.keyring.get(id) {
            Some(held) => Change::PutKey(Arc::new(held.record().clone())),
            None => Change::RemoveKey(id.clone()),
        }
    }

    fn stored_budget(&self, feed: &str) -> Change {
        match self.feed_budgets.get(feed) {
            Some(budget) => Change::PutFeedBudget { feed: feed.into(), budget: *budget },
            None => Change::RemoveFeedBudget { feed: feed.into() },
        }
    }

    /// What the key's meter may hand out, which must be in the file before it does.
    fn held_usage(&self, key: &KeyId) -> Option<Change> {
        let meter = self.keyring.get(key)?;
        let (usage, last_used) = (meter.meter().granted(), meter.meter().last_used());
        Some(Change::PutUsage { key: key.clone(), usage, last_used })
    }

    /// The event as a whole: it goes from the file, and comes back with what hangs on it, if it is held.
    fn held_event(&self, world: World, sport: SportId, event: EventId) -> Vec<Change> {
        let held = self.worlds[world.index()].sports[sport.index()].current.get(event.as_str());
        let mut changes = vec![Change::RemoveEvent { world, sport, event: event.clone() }];
        let Some(held) = held else { return changes };
        let owner = self.worlds[world.index()].owners.owner(sport, &event);
        changes.push(Change::PutEvent { world, sport, event: Arc::clone(held.event()), owner });
        let score = held.score().map(Arc::clone);
        changes.extend(score.map(|score| Change::PutScore { world, sport, event: event.clone(), score }));
        let records = held.records().iter().map(Arc::clone);
        changes.extend(records.map(|record| Change::PutOdds { world, sport, event: event.clone(), record }));
        let closed = held.closed().iter();
        changes.extend(closed.map(|mark| Change::CloseOdds { world, sport, event: event.clone(), closed: *mark }));
        changes
    }

    /// The log is only ever added to.
    fn undone(&self, note: &AuditNote) -> AuditNote {
        let detail = "the disk failed while it was written: it was refused, and is taken back".to_owned();
        self.note(&note.who, &format!("{} taken back", note.action), &note.subject, detail)
    }
}

enum Failed {
    /// The file is open again: it is worth another try.
    Retry(StoreError),
    Final(StoreError),
}
