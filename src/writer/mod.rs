//! The writer: the only module that changes state.
//!
//! A single thread takes operations from two bounded queues and does each in three steps, in this order:
//! 1. commit to the file,
//! 2. publish a new snapshot to readers,
//! 3. answer.
//!
//! So what was acknowledged is durable and in effect, and no reader ever waits. When a write to the file fails, the
//! writer reopens it and tries once more; if that fails too, the operation fails with nothing changed, the service's
//! condition reports it, and the writer retries by itself until writes succeed again. A write that was refused and is
//! found in the file nevertheless is reverted.
//!
//! [`Writer`] is a plain value whose methods are the operations: a server runs it on a thread of its own behind a
//! [`WriterHandle`], a command without a server calls it directly.

mod batch;
mod budget;
mod commit;
mod event_edit;
mod feed;
mod feeders;
mod fight;
mod future;
mod handle;
mod history;
mod import;
mod keys;
mod log;
mod logged;
pub mod operation;
mod owners;
mod poll;
mod publish;
mod queue;
mod report;
mod shared;
mod shared_log;
mod snapshot_job;
mod state;
mod upkeep;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use crate::board::{Boards, ChangeEntry};
use crate::clock::Clock;
use crate::keys::{Feeders, KeyId, Keyring, LeaseQueue, LeaseRequests, Usage};
use crate::metrics::WriterMetrics;
use crate::model::{Catalogue, FeedBudget, FeederQuota, FeederUse, Maintenance, Membership, News, Timestamp, World};
use crate::store::{
    AuditEntry, AuditNote, Change, CheckReport, DamageList, HistoryReader, ImportedLog, LogHead, Progress, Snapshot,
    Store, StoreError,
};

pub use budget::FeedCharge;
pub use feeders::{FeederError, IssuedToken};
pub use handle::{OwnRotations, WriterHandle};
pub use history::HistoryOptions;
pub use import::{HistoryImport, ImportEnd, ImportReport, ImportStart, ImportStep};
pub use keys::{Issued, KeyError};
pub use logged::{Orphan, logged_board, logged_index};
pub use operation::{NewsReader, SharedOperation};
pub use owners::Sender;
pub use poll::{Poll, PollPart, PollReport, PollScope};
pub use publish::{DueSport, Publication};
#[cfg(test)]
pub(crate) use queue::spawn_task;
pub use queue::{Stopped, WriterEnd, spawn};
pub use report::IngestReport;
pub use shared::Applied;
pub use shared_log::{Delivery, LogFuture, NodesFuture, SharedLog, Waiting};
pub use snapshot_job::{SnapshotJob, SnapshotJobError, SnapshotJobGuard, SnapshotJobProgress};
pub use upkeep::Sweep;

use batch::{BatchTime, NewsBatch};
use state::WorldState;

/// A strict ingest lets queued commands run after every so many lines: as many as a batch of any other ingest has.
const MEANWHILE_EVERY: usize = 1000;

/// Settings of the writer.
#[derive(Clone, Copy, Debug)]
pub struct WriterOptions {
    /// Prices are published on ticks of this length.
    pub refresh_ms: i64,
    /// A source without a good read for longer than this is stale.
    pub stale_after_s: u32,
    /// How long an event that is over stays in the lists.
    pub retention_s: u32,
    /// What one feeder may add.
    pub quota: FeederQuota,
    pub history: HistoryOptions,
}

impl Default for WriterOptions {
    fn default() -> Self {
        let quota = FeederQuota::default();
        let history = HistoryOptions::default();
        WriterOptions { refresh_ms: 30_000, stale_after_s: 120, retention_s: 72 * 3600, quota, history }
    }
}

/// What to do with news that is applied as a whole or not at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whole {
    /// Apply it, if none of it is rejected.
    Taken,
    /// Only report what would be rejected.
    Checked,
}

/// Why an operation changed nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub enum WriteError {
    #[error("{0}; nothing was changed: fix that and try again")]
    Store(Arc<StoreError>),
    #[error("the server is stopping; nothing was changed: try again when it is back")]
    Stopped,
    #[error("the writer thread ended unexpectedly: the log says why; start the server again")]
    Died,
    #[error("the engine of the cluster did not confirm it ({0}): it may have been done; look, and try again if not")]
    Unconfirmed(Box<str>),
    #[error("{0}; nothing was changed")]
    NotEntered(Box<str>),
    #[error(
        "history is not imported or deleted on one node of a cluster; nothing was changed: stop all nodes, run `oddsbox \
         cluster leave` and then this command on one of them, make it the first node again with `oddsbox cluster init \
         --replace`, and start the others on empty directories"
    )]
    OneNode,
    #[error(
        "this file belongs to a cluster, whose changes come from the log that its nodes share: nothing was changed"
    )]
    Member,
}

/// The state of the process, and the only type that changes it.
#[derive(Debug)]
pub struct Writer {
    store: Store,
    catalogue: Arc<Catalogue>,
    boards: Arc<Boards>,
    keyring: Arc<Keyring>,
    feeders: Arc<Feeders>,
    /// The time of operations: in a cluster that of the entry that is applied.
    clock: Clock,
    /// The clock of this machine.
    local_clock: Clock,
    options: WriterOptions,
    /// Shared only with a strict ingest that is being validated, so that changing a world never copies it.
    worlds: [Arc<WorldState>; 2],
    maintenance: Option<Maintenance>,
    /// Whether the live world holds simulated prices.
    simulated_live: bool,
    /// The place of the file in a cluster, and the entry that is being applied.
    membership: Option<Membership>,
    applying: Option<shared::Applying>,
    /// What each polled feed has spent, by its name.
    feed_budgets: BTreeMap<Box<str>, FeedBudget>,
    last_tick: i64,
    upkeep: upkeep::Schedule,
    comparison: future::Comparison,
    pending_undo: commit::PendingUndo,
    /// Whether the log has everything that the file has.
    is_log_complete: bool,
    /// Where the logs end after the last acknowledged commit.
    log_heads: [LogHead; World::ALL.len()],
    /// The sizes of the lines and of imported history.
    bytes_beside_log: [u64; World::ALL.len()],
    /// Imports of history that are under way.
    imports: Vec<ImportedLog>,
    line_job: Option<history::LineJob>,
    /// Entries of the log that readers do not see yet.
    unannounced: [Vec<ChangeEntry>; World::ALL.len()],
    last_beat: Timestamp,
    /// Whether it runs beside other work, so that what only reads may do so too.
    has_own_thread: bool,
    /// The most bytes of the logs while the disk is nearly full.
    history_cap: Option<u64>,
    /// While the log of both worlds is too large: up to when nothing is left to remove of each.
    emptied_to: [Timestamp; World::ALL.len()],
    /// The number of changes in the largest write that was refused; 0 while the file takes writes.
    refused: usize,
    lost_usage: Vec<KeyId>,
    writing: Arc<WriterMetrics>,
}

/// An opened writer.
#[derive(Debug)]
pub struct Opened {
    pub writer: Writer,
    /// To be passed to `keys::leases::serve`.
    pub lease_requests: LeaseRequests,
    /// What could not be read and is not served.
    pub damage: DamageList,
}

impl Writer {
    /// Loads everything that the file holds.
    pub fn open(
        mut store: Store,
        catalogue: Arc<Catalogue>,
        clock: Clock,
        options: WriterOptions,
    ) -> Result<Opened, StoreError> {
        let mut loaded = store.load()?;
        let local_clock = clock;
        // What a node makes of its file must not depend on when it was opened.
        let clock = loaded.membership.map_or_else(|| local_clock.clone(), shared::clock_of);
        let now = clock.now();
        let comparison = future::Comparison::read(&store, loaded.membership);
        let (log_heads, history) = (loaded.log_heads, store.history());
        for (key, usage) in loaded.keys.iter_mut().filter(|(key, _)| loaded.damaged_usage.contains(&key.id)) {
            *usage = Usage::exhausted(key.limits, now);
        }
        let is_member = loaded.membership.is_some();
        let (queue, lease_requests) = if is_member { LeaseQueue::open_shared() } else { LeaseQueue::open() };
        let keyring = Arc::new(Keyring::new(Arc::clone(&catalogue), loaded.keys, queue));
        keyring.restore_recent_use(loaded.recent_use);
        let feeders = Arc::new(Feeders::new(loaded.feeders));
        let open = |world: World, loaded| {
            let logged = |sport| log::last_state(&history, world, sport);
            WorldState::new(loaded, logged, &catalogue, now.unix_ms, options.stale_after_s).map(Arc::new)
        };
        let [sandbox, live] = loaded.worlds;
        let worlds = [open(World::Sandbox, sandbox)?, open(World::Live, live)?];
        let at_head = |world: World| worlds[world.index()].board().at(feed::position_of(log_heads[world.index()]));
        let boards = Arc::new(Boards::new(Arc::clone(&catalogue), World::ALL.map(at_head)));
        boards.condition().set_maintenance(loaded.maintenance);
        boards.condition().set_simulated_live(loaded.simulated_live);
        let mut writer = Writer {
            store,
            catalogue,
            boards,
            keyring,
            feeders,
            options,
            worlds,
            maintenance: loaded.maintenance,
            simulated_live: loaded.simulated_live,
            membership: loaded.membership,
            applying: None,
            feed_budgets: loaded.feed_budgets.into_iter().collect(),
            last_tick: now.unix_ms.div_euclid(options.refresh_ms),
            upkeep: upkeep::Schedule::starting(local_clock.mono_ms()),
            comparison,
            pending_undo: commit::PendingUndo::default(),
            // The log of a node is what the shared log made of it.
            is_log_complete: loaded.membership.is_some(),
            log_heads,
            bytes_beside_log: [0; World::ALL.len()],
            imports: Vec::new(),
            line_job: None,
            unannounced: Default::default(),
            last_beat: now.timestamp(),
            has_own_thread: false,
            history_cap: None,
            emptied_to: [Timestamp::default(); World::ALL.len()],
            refused: 0,
            clock,
            local_clock,
            lost_usage: loaded.damaged_usage,
            writing: Arc::default(),
        };
        if !writer.is_member() {
            writer.bring_up_to_date(now.timestamp());
        }
        for world in World::ALL {
            writer.bytes_beside_log[world.index()] = writer.store.bytes_beside_log(world)?;
            writer.show_log_size(world);
            writer.show_history_since(world);
        }
        Ok(Opened { writer, lease_requests, damage: loaded.damage })
    }

    /// Corrects and publishes what was committed and not published when the file was last closed.
    fn bring_up_to_date(&mut self, now: Timestamp) {
        if let Err(error) = self.store_exhausted() {
            tracing::warn!(%error, "failed to persist exhausted quotas of keys with lost counters");
        }
        self.warn_if_clock_is_behind(now);
        // Until it succeeds, readers get what the log has.
        if let Err(error) = self.catch_up() {
            tracing::warn!(%error, "failed to log what changed since the last publication; trying again later");
        }
        self.correct_future(now);
        self.publish_now(World::Live);
    }

    pub fn boards(&self) -> &Arc<Boards> {
        &self.boards
    }

    pub fn keyring(&self) -> &Arc<Keyring> {
        &self.keyring
    }

    /// Read access to the log, for other threads.
    pub fn history(&self) -> HistoryReader {
        self.store.history()
    }

    pub fn feeders(&self) -> &Arc<Feeders> {
        &self.feeders
    }

    /// What each feeder has used of its quota in a world.
    pub fn feeder_uses(&self, world: World) -> impl Iterator<Item = (&Arc<str>, FeederUse)> {
        self.worlds[world.index()].owners.uses()
    }

    /// What one feeder may add.
    pub fn feeder_quota(&self) -> FeederQuota {
        self.options.quota
    }

    /// Applies a batch of news to a world: all of it is committed, or nothing. `end` means that no more of the same
    /// follows.
    pub fn ingest(&mut self, world: World, news: Vec<News>, end: bool) -> Result<IngestReport, WriteError> {
        self.ingest_charged(world, news, end, None, None)
    }

    /// Applies news to a world only if none of it is rejected; else nothing changes and the report says why. The news is
    /// never in memory as a whole.
    ///
    /// While the news is read and validated, `meanwhile` is called every 1,000 lines. It must not change a
    /// world. Applying the news is one transaction, which everything else waits for.
    pub fn ingest_whole(
        &mut self,
        world: World,
        news: impl Iterator<Item = io::Result<News>>,
        whole: Whole,
        sender: Option<Sender>,
        mut meanwhile: impl FnMut(&mut Writer),
    ) -> Result<IngestReport, WriteError> {
        let now = self.clock.now();
        let (state, catalogue) = (Arc::clone(&self.worlds[world.index()]), Arc::clone(&self.catalogue));
        let batch = NewsBatch::new(world, &state, &catalogue, self.batch_time(now.timestamp()));
        let mut batch = batch.sent_by(sender, self.options.quota);
        for (news, count) in news.zip(1_usize..) {
            let _ = batch.apply(news.map_err(StoreError::from)?);
            if count.is_multiple_of(MEANWHILE_EVERY) {
                meanwhile(self);
            }
        }
        let (mut changes, update, mut report) = batch.finish();
        // From here on the world is changed in place.
        drop(state);
        if report.rejected() == 0 && whole == Whole::Taken {
            let lost = self.lost_to_news(world, &update, &mut changes);
            self.commit_update(world, changes, &update, now.timestamp())?;
            self.remove_lost(world, lost);
            self.apply_update(world, update, now.unix_ms);
            self.publish_quiet(world, now.unix_ms);
        } else {
            report.added = None;
        }
        Ok(report)
    }

    /// Closes the service for maintenance, or opens it again.
    pub fn set_maintenance(&mut self, until: Option<Maintenance>, who: &str) -> Result<(), WriteError> {
        let (action, detail) = match until {
            Some(Maintenance { until: Some(until), .. }) => ("maintenance on", format!("until {until}")),
            Some(_) => ("maintenance on", "until it is ended".to_owned()),
            None => ("maintenance off", String::new()),
        };
        let note = self.note(who, action, "service", detail);
        self.commit(&[Change::SetMaintenance(until), Change::Audit(note)])?;
        self.maintenance = until;
        self.boards.condition().set_maintenance(until);
        self.boards.wake_followers();
        Ok(())
    }

    /// Marks the live world as simulated, until the world is cleared.
    pub fn mark_simulated(&mut self, who: &str) -> Result<(), WriteError> {
        if self.simulated_live {
            return Ok(());
        }
        let note = self.note(who, "simulate", "live world", String::new());
        self.commit(&[Change::SetSimulated(true), Change::Audit(note)])?;
        self.simulated_live = true;
        self.boards.condition().set_simulated_live(true);
        Ok(())
    }

    /// Writes a line to the audit log.
    pub fn audit(&mut self, who: &str, action: &str, subject: &str, detail: String) -> Result<(), WriteError> {
        let note = self.note(who, action, subject, detail);
        self.commit(&[Change::Audit(note)])
    }

    /// The audit log after a sequence number, oldest first.
    pub fn read_audit(&self, after: Option<u64>, limit: usize) -> Result<Vec<AuditEntry>, WriteError> {
        self.store.audit(after, limit).map_err(WriteError::from)
    }

    /// The last entries of the audit log, oldest first.
    pub fn audit_tail(&self, limit: usize) -> Result<Vec<AuditEntry>, WriteError> {
        self.store.audit_tail(limit).map_err(WriteError::from)
    }

    /// A snapshot of the file, to be read outside the writer.
    pub fn snapshot(&mut self, progress: &Arc<Progress>) -> Result<Snapshot, WriteError> {
        self.store.snapshot(progress).map_err(WriteError::from)
    }

    /// The keys whose counters could not be read when the file was opened, and have not been reset since.
    pub fn lost_usage(&self) -> &[KeyId] {
        &self.lost_usage
    }

    /// Reads every record and index of the file, and checks the database's own pages.
    pub fn check(&mut self, progress: &Arc<Progress>) -> Result<CheckReport, WriteError> {
        self.store.check_with_progress(progress).map_err(WriteError::from)
    }

    /// Removes every damaged row from the file, and returns how many there were. Only for a file that is not served: what
    /// was loaded does not change.
    pub fn drop_damaged(&mut self, who: &str) -> Result<u64, WriteError> {
        let dropped = self.store.drop_damaged()?;
        self.audit(who, "drop damaged", "file", format!("{dropped} rows"))?;
        Ok(dropped)
    }

    pub fn file_bytes(&self) -> Result<u64, WriteError> {
        self.store.file_bytes().map_err(WriteError::from)
    }

    fn batch(&self, world: World, now: Timestamp) -> NewsBatch<'_> {
        NewsBatch::new(world, &self.worlds[world.index()], &self.catalogue, self.batch_time(now))
    }

    fn batch_time(&self, now: Timestamp) -> BatchTime {
        // Whatever another node has in memory must be in the file, for when this one is started again.
        BatchTime { now, is_clock_behind: self.comparison.is_clock_behind(now), stores_every_read: self.is_member() }
    }

    fn note(&self, who: &str, action: &str, subject: &str, detail: String) -> AuditNote {
        AuditNote {
            at: self.now(),
            who: who.into(),
            action: action.into(),
            subject: subject.into(),
            detail: detail.into(),
        }
    }

    fn now(&self) -> Timestamp {
        self.clock.now().timestamp()
    }
}

impl WriteError {
    /// For an operation that is not in the log which the nodes share.
    pub fn not_entered(reason: impl ToString) -> Self {
        WriteError::NotEntered(reason.to_string().into())
    }
}

impl From<StoreError> for WriteError {
    fn from(error: StoreError) -> Self {
        WriteError::Store(Arc::new(error))
    }
}
