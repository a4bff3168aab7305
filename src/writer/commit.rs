//! Commits, also to a disk that fails: what was acknowledged is in the file, and what was refused is not.
//!
//! A commit that fails may have reached the disk nevertheless, and only reopening the file finds out. If it did and the
//! caller still waits, the commit has succeeded. If the file could not be reopened, the caller has got an error: then the
//! first write once the file opens again restores the state in memory of everything that the commit touched.
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
use crate::model::{BookId, EventId, Market, SportId, World};
use crate::store::{AuditNote, Change, Store, StoreError};

/// Each change puts at most about two rows, into a page each.
const PAGES_PER_CHANGE: usize = 2;
/// The bounds of what a probe writes: 64 kB and 16 MB.
const PROBE_PAGES_MIN: usize = 16;
const PROBE_PAGES_MAX: usize = 4_096;

/// Where memory and file may differ after a failure. One batch at most: nothing is written before it is known whether that
/// one was committed.
#[derive(Debug, Default)]
pub(super) struct PendingUndo {
    /// Refused, and perhaps in the file.
    refused: Vec<Change>,
    /// Reverts what was refused and is in the file.
    undo: Vec<Change>,
}

impl Writer {
    /// Commits changes; after a failure reopens the file and tries once more, since no write to it can succeed before.
    pub(super) fn commit(&mut self, changes: &[Change]) -> Result<(), WriteError> {
        if changes.is_empty() {
            return Ok(());
        }
        let Some(applying) = &self.applying else {
            if self.is_member() && !changes.iter().all(is_of_this_file) {
                return Err(WriteError::Member);
            }
            return self.commit_alone(changes);
        };
        // The place of the entry is in the same commit, so that it is applied once.
        let changes: Vec<Change> = changes.iter().cloned().chain([applying.change()]).collect();
        let result = self.commit_alone(&changes);
        self.note_commit(result.as_ref().err());
        result
    }

    fn commit_alone(&mut self, changes: &[Change]) -> Result<(), WriteError> {
        let result = self.write(changes);
        if result.is_ok() {
            self.follow_logs(changes);
        }
        match &result {
            Err(error) if error.needs_reopen() => self.set_refused(self.refused.max(changes.len())),
            Ok(()) if changes.len() >= self.refused => self.set_refused(0),
            _ => {}
        }
        result.map_err(WriteError::from)
    }

    fn write(&mut self, changes: &[Change]) -> Result<(), StoreError> {
        let result = match self.attempt(changes) {
            Err(CommitFailure::Retry(error)) => {
                limited!(LineKind::Commit, Level::WARN, %error, "commit failed; reopened the file to try once more");
                self.attempt(changes)
            }
            other => other,
        };
        result.map_err(|failed| match failed {
            CommitFailure::Retry(error) | CommitFailure::Final(error) => error,
        })
    }

    /// Tries a write as large as the largest refused one, to find out whether the disk takes it again. The first commit
    /// reverts what was refused and is in the file, and reopens the file if necessary.
    pub(super) fn try_recovery(&mut self) {
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

    /// Writes what is not a change, such as a rewritten piece of the log. If an earlier failure asks for a reopening, nothing was
    /// tried: the file is opened again, and it is written then.
    pub(super) fn write_beside_changes<T>(
        &mut self,
        write: impl Fn(&mut Store) -> Result<T, StoreError>,
    ) -> Result<T, WriteError> {
        // A change that was refused may have to be taken back from the file first.
        if self.is_unwritable() {
            return Err(StoreError::NeedsReopen.into());
        }
        match write(&mut self.store) {
            Err(StoreError::NeedsReopen) => {
                self.write(&[Change::SetMaintenance(self.maintenance)])?;
                Ok(write(&mut self.store)?)
            }
            written => Ok(written?),
        }
    }

    /// Whether the file has to be opened again before anything can be written, or was too full for what was refused.
    pub(super) fn needs_recovery(&self) -> bool {
        self.is_unwritable() || !self.store.is_writable()
    }

    pub(super) fn is_unwritable(&self) -> bool {
        self.refused > 0
    }

    fn set_refused(&mut self, refused: usize) {
        if self.refused > 0 && refused == 0 {
            tracing::info!("writes to the file succeed again");
        }
        self.refused = refused;
        self.boards.condition().set_unwritable(refused > 0);
    }

    fn attempt(&mut self, changes: &[Change]) -> Result<(), CommitFailure> {
        // In a commit of its own: what it takes back of the log is read again before the next entry.
        let undo = std::mem::take(&mut self.pending_undo.undo);
        let is_undoing = !undo.is_empty();
        // A commit that is not tried asks for the reopening that an earlier failure made necessary. One that is tried may ask for it too:
        // a reader has met a failure meanwhile.
        let was_tried = self.store.has_no_failed_write();
        let written = self.timed_commit(if is_undoing { &undo } else { changes });
        let Err(error) = written else {
            return if is_undoing { self.attempt(changes) } else { Ok(()) };
        };
        self.pending_undo.undo = undo;
        if !error.needs_reopen() {
            return Err(CommitFailure::Final(error));
        }
        match self.store.reopen() {
            Ok(true) if was_tried && is_undoing => {
                self.pending_undo.undo.clear();
                Err(CommitFailure::Retry(error))
            }
            Ok(true) if was_tried => Ok(()),
            Ok(is_stored) => {
                let refused = std::mem::take(&mut self.pending_undo.refused);
                if is_stored {
                    self.pending_undo.undo = self.undo(&refused);
                }
                Err(CommitFailure::Retry(error))
            }
            Err(reopening) => {
                limited!(LineKind::Commit, Level::WARN, error = %reopening, "failed to reopen the file after a failed commit");
                if was_tried && !is_undoing {
                    self.pending_undo.refused = changes.to_vec();
                }
                Err(CommitFailure::Final(error))
            }
        }
    }

    /// Notes where the logs end after a commit.
    fn follow_logs(&mut self, changes: &[Change]) {
        for change in changes {
            let Change::Log { world, entry } = change else { continue };
            let head = &mut self.log_heads[world.index()];
            let next = head.next + 1;
            match self.store.log_head(*world) {
                Ok(stored) => *head = stored,
                // The file cannot be read now, and the entry is in it nevertheless.
                Err(_) => head.next = next,
            }
            self.follow_entry(*world, entry);
            self.show_log_size(*world);
            if self.boards.condition().history_since(*world).is_none() {
                self.show_history_since(*world);
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

    /// The changes that restore from memory whatever `changes` touched. Bookmakers come first and events last: the store
    /// refuses a price or a source of a bookmaker that it does not have.
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
                Change::PutBookmaker { world, id, .. } => books.push(self.restore_bookmaker(*world, *id)),
                Change::RemoveBookmaker { world, id } => {
                    books.push(self.restore_bookmaker(*world, *id));
                    undo.extend(self.restore_sources(*world, *id));
                    events.extend(self.events_priced_by(*world, *id));
                }
                Change::PutSource { world, sport, bookmaker, .. }
                | Change::RemoveSource { world, sport, bookmaker } => {
                    undo.push(self.restore_source(*world, *sport, *bookmaker));
                }
                Change::PutPoll { world, scope, .. } | Change::RemovePoll { world, scope } => {
                    undo.push(self.restore_poll(*world, scope));
                }
                Change::PutPolled { world, scope, event, .. } => undo.push(self.restore_polled(*world, scope, event)),
                Change::PutKey(record) => undo.push(self.restore_key(&record.id)),
                Change::RemoveKey(id) => {
                    undo.push(self.restore_key(id));
                    undo.extend(self.restore_usage(id));
                }
                Change::PutFeeder(feeder) => undo.push(Change::PutFeeder(self.held_feeder(feeder))),
                Change::PutFeederUse { world, feed, .. } => undo.push(self.restore_use(*world, feed)),
                Change::SetMaintenance(_) => undo.push(Change::SetMaintenance(self.maintenance)),
                Change::SetSimulated(_) => undo.push(Change::SetSimulated(self.simulated_live)),
                Change::SetMembership(_) => undo.push(Change::SetMembership(self.membership)),
                Change::PutFeedBudget { feed, .. } | Change::RemoveFeedBudget { feed } => {
                    undo.push(self.restore_budget(feed));
                }
                Change::PutCompetition { world, key, .. } | Change::RemoveCompetition { world, key } => {
                    undo.push(self.restore_competition(*world, key));
                }
                Change::PutMarket { world, market } | Change::RemoveMarket { world, market } => {
                    undo.push(self.restore_market(*world, *market));
                }
                Change::Log { world, .. } | Change::RevertLog { world, .. } => {
                    undo.push(Change::RevertLog { world: *world, head: self.log_heads[world.index()] });
                }
                // Only a file that nobody uses is restored or cleared. What was counted is right wherever it is.
                Change::ClearLog { .. } | Change::RenewEpochs(_) | Change::PutRecentUse { .. } => {}
                Change::Audit(note) => undo.push(Change::Audit(self.undone(note))),
                Change::PutUsage { key, .. } => undo.extend(self.restore_usage(key)),
            }
        }
        let events = events.into_iter().flat_map(|(world, sport, event)| self.restore_event(world, sport, event));
        books.into_iter().chain(undo).chain(events).collect()
    }

    fn restore_bookmaker(&self, world: World, id: BookId) -> Change {
        match self.worlds[world.index()].register.bookmakers().get(id) {
            Some(bookmaker) => {
                let origin = origin_of(bookmaker, &self.catalogue);
                Change::PutBookmaker { world, id, bookmaker: Arc::clone(bookmaker), origin }
            }
            None => Change::RemoveBookmaker { world, id },
        }
    }

    fn restore_competition(&self, world: World, key: &Arc<str>) -> Change {
        match self.worlds[world.index()].register.competitions().get(key) {
            Some(known) => Change::PutCompetition { world, key: Arc::clone(key), competition: known.clone() },
            None => Change::RemoveCompetition { world, key: Arc::clone(key) },
        }
    }

    fn restore_market(&self, world: World, market: Market) -> Change {
        if self.worlds[world.index()].register.markets().contains(&market) {
            Change::PutMarket { world, market }
        } else {
            Change::RemoveMarket { world, market }
        }
    }

    fn restore_source(&self, world: World, sport: SportId, bookmaker: BookId) -> Change {
        match self.worlds[world.index()].sports[sport.index()].sources.get(&bookmaker) {
            Some(entry) => Change::PutSource { world, sport, bookmaker, source: entry.source },
            None => Change::RemoveSource { world, sport, bookmaker },
        }
    }

    fn restore_sources(&self, world: World, bookmaker: BookId) -> impl Iterator<Item = Change> {
        let sports = self.catalogue.sport_ids();
        let has_source =
            move |sport: &SportId| self.worlds[world.index()].sports[sport.index()].sources.contains_key(&bookmaker);
        sports.filter(has_source).map(move |sport| self.restore_source(world, sport, bookmaker))
    }

    fn events_priced_by(&self, world: World, bookmaker: BookId) -> impl Iterator<Item = (World, SportId, EventId)> {
        self.catalogue.sport_ids().flat_map(move |sport| {
            let nodes = self.worlds[world.index()].sports[sport.index()].current.iter();
            let priced = nodes.filter(move |node| node.records().iter().any(|record| record.bookmaker == bookmaker));
            priced.map(move |node| (world, sport, node.event().id.clone()))
        })
    }

    fn restore_use(&self, world: World, feed: &Arc<str>) -> Change {
        let used = self.worlds[world.index()].owners.used(feed);
        Change::PutFeederUse { world, feed: Arc::clone(feed), used }
    }

    fn restore_key(&self, id: &KeyId) -> Change {
        match self.keyring.get(id) {
            Some(key) => Change::PutKey(Arc::new(key.record().clone())),
            None => Change::RemoveKey(id.clone()),
        }
    }

    fn restore_budget(&self, feed: &str) -> Change {
        match self.feed_budgets.get(feed) {
            Some(budget) => Change::PutFeedBudget { feed: feed.into(), budget: *budget },
            None => Change::RemoveFeedBudget { feed: feed.into() },
        }
    }

    /// What the key's meter may hand out, which must be stored before it does.
    fn restore_usage(&self, key: &KeyId) -> Option<Change> {
        let entry = self.keyring.get(key)?;
        let (usage, last_used) = match entry.meter().shared_use() {
            Some(shared) => (shared.usage, shared.last_used),
            None => (entry.meter().granted(), entry.meter().last_used()),
        };
        Some(Change::PutUsage { key: key.clone(), usage, last_used })
    }

    /// Removes the event from the file and, if it is in memory, puts it back with everything that belongs to it.
    fn restore_event(&self, world: World, sport: SportId, event: EventId) -> Vec<Change> {
        let node = self.worlds[world.index()].sports[sport.index()].current.get(event.as_str());
        let mut changes = vec![Change::RemoveEvent { world, sport, event: event.clone() }];
        let Some(node) = node else { return changes };
        let owner = self.worlds[world.index()].owners.owner(sport, &event);
        changes.push(Change::PutEvent { world, sport, event: Arc::clone(node.event()), owner });
        let score = node.score().map(Arc::clone);
        changes.extend(score.map(|score| Change::PutScore { world, sport, event: event.clone(), score }));
        let records = node.records().iter().map(Arc::clone);
        changes.extend(records.map(|record| Change::PutOdds { world, sport, event: event.clone(), record }));
        let closed = node.closed().iter();
        changes.extend(closed.map(|mark| Change::CloseOdds { world, sport, event: event.clone(), closed: *mark }));
        changes
    }

    /// The log is append-only: an entry is reverted by another one.
    fn undone(&self, note: &AuditNote) -> AuditNote {
        let detail = "the disk failed while it was written: it was refused, and is taken back".to_owned();
        self.note(&note.who, &format!("{} taken back", note.action), &note.subject, detail)
    }
}

/// Whether a change is of this file alone, and of no other node's.
const fn is_of_this_file(change: &Change) -> bool {
    matches!(change, Change::SetMembership(_))
}

enum CommitFailure {
    /// The file is open again: another attempt may succeed.
    Retry(StoreError),
    Final(StoreError),
}
