//! The writer's thread and the two queues in front of it.
//!
//! Commands on keys, tokens, counters and maintenance have their own lane, which is served before the next batch of news:
//! a revocation waits for the operation that is running, not for those in the queue. Both lanes are bounded and
//! first in, first out. After [`FAST_RUN_MAX`] fast operations in a row one of the other lane is served, so that a stream
//! of commands cannot stop the feeds.

use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};

use super::operation::{FastOp, NewsReader, Op, ReplySender};
use super::snapshot_job::{SnapshotJob, SnapshotJobError, SnapshotJobProgress, SnapshotJobs};
use super::{
    FeedCharge, FeederError, ImportEnd, ImportStart, ImportStep, IngestReport, Issued, IssuedToken, KeyError, Poll,
    PollReport, PollScope, Sender, Whole, WriteError, Writer,
};
use crate::board::Boards;
use crate::keys::issue::{KeyChange, NewKey};
use crate::keys::{Feeder, KeyEntry, KeyId, KeyTicket, LeaseDeclined, LeaseStore, Usage};
use crate::metrics::WriterMetrics;
use crate::model::{EventId, FeedBudget, Maintenance, News, SportId, World};
use crate::store::{
    AuditEntry, CheckReport, ForgetOutcome, ForgottenEvent, HistoryReader, ImportedLog, PreparedForget,
};

/// How many operations may wait. A feeder that is faster than the disk waits for room in the queue: its backpressure.
const QUEUE_MAX: usize = 64;
/// How many fast operations may wait.
const FAST_QUEUE_MAX: usize = 64;
/// Not below [`FAST_QUEUE_MAX`]: whatever is in the fast lane then waits for one other operation at most.
pub(super) const FAST_RUN_MAX: usize = FAST_QUEUE_MAX;

/// Sends operations to the writer. When every handle is dropped, the writer ends.
#[derive(Clone, Debug)]
pub struct WriterHandle {
    queue: mpsc::Sender<Op>,
    fast_queue: mpsc::Sender<FastOp>,
    jobs: SnapshotJobs,
    writing: Arc<WriterMetrics>,
    history: HistoryReader,
}

/// Rotates keys on behalf of their holders. The writer ends without it: the public interface has it for as long as it runs.
#[derive(Clone, Debug)]
pub struct OwnRotations {
    fast_queue: mpsc::WeakSender<FastOp>,
}

impl OwnRotations {
    /// With the secret that was presented. It is done even if nobody waits for the answer.
    pub async fn rotate(&self, id: &KeyId, presented: KeyTicket, who: String) -> Result<Issued, KeyError> {
        let queue = self.fast_queue.upgrade().ok_or(WriteError::Stopped)?;
        let (reply, answer) = oneshot::channel();
        let operation = FastOp::RotateOwnKey { id: id.as_str().into(), presented, who: who.into(), reply };
        queue.send(operation).await.map_err(|_| WriteError::Stopped)?;
        drop(queue);
        answer.await.map_err(|_| WriteError::Stopped)?
    }
}

/// The thread of the writer.
#[derive(Debug)]
pub struct Stopped {
    thread: JoinHandle<Result<(), WriteError>>,
    end: WriterEnd,
}

impl Stopped {
    /// Waits for the end of the writer, once every handle is dropped, and its last flush.
    pub fn join(self) -> Result<(), WriteError> {
        self.thread.join().unwrap_or(Err(WriteError::Died))
    }

    /// Resolves when the writer's thread has ended, for whatever reason.
    pub fn end(&self) -> WriterEnd {
        self.end.clone()
    }
}

/// Signals the end of the writer's thread. Keeps neither the writer nor the file open.
#[derive(Clone, Debug)]
pub struct WriterEnd(watch::Receiver<()>);

impl WriterEnd {
    /// Ready once the thread has ended: after the last handle is dropped, or by a panic.
    pub async fn reached(mut self) {
        while self.0.changed().await.is_ok() {}
    }

    pub fn is_reached(&self) -> bool {
        self.0.has_changed().is_err()
    }
}

/// Kept by the writer's thread until it ends. Once it is dropped, no key is accepted: none could be revoked any more.
struct RunningGuard {
    boards: Arc<Boards>,
    _ends: watch::Sender<()>,
}

impl Drop for RunningGuard {
    fn drop(&mut self) {
        self.boards.condition().set_writer_ended();
        // Streams end too, and look for a reason to only when they are woken.
        self.boards.wake_followers();
    }
}

/// The receiving ends of both lanes.
#[derive(Debug)]
pub(super) struct Lanes {
    fast: mpsc::Receiver<FastOp>,
    other: mpsc::Receiver<Op>,
    /// Fast operations since the last other one.
    fast_run: usize,
}

#[derive(Debug)]
pub(super) enum Next {
    Fast(FastOp),
    Other(Op),
}

impl Lanes {
    pub(super) fn open() -> (mpsc::Sender<FastOp>, mpsc::Sender<Op>, Lanes) {
        let (fast_sender, fast) = mpsc::channel(FAST_QUEUE_MAX);
        let (sender, other) = mpsc::channel(QUEUE_MAX);
        (fast_sender, sender, Lanes { fast, other, fast_run: 0 })
    }

    /// The next operation; `None` when every handle is gone and both lanes are empty.
    pub(super) async fn next(&mut self) -> Option<Next> {
        if self.fast_run >= FAST_RUN_MAX {
            self.fast_run = 0;
            if let Ok(operation) = self.other.try_recv() {
                return Some(Next::Other(operation));
            }
        }
        tokio::select! {
            biased;
            Some(operation) = self.fast.recv() => {
                self.fast_run += 1;
                Some(Next::Fast(operation))
            }
            Some(operation) = self.other.recv() => {
                self.fast_run = 0;
                Some(Next::Other(operation))
            }
            else => None,
        }
    }

    /// Runs the fast operations that wait, as many as may wait at most.
    fn run_fast(&mut self, writer: &mut Writer) {
        for _ in 0..FAST_QUEUE_MAX {
            let Ok(operation) = self.fast.try_recv() else { break };
            operation.run(writer);
        }
    }
}

/// Puts the writer on a thread of its own.
pub fn spawn(mut writer: Writer) -> io::Result<(WriterHandle, Stopped)> {
    writer.has_own_thread = true;
    let (fast_queue, queue, lanes) = Lanes::open();
    let (writing, history) = (Arc::clone(&writer.writing), writer.history());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let (ends, end) = watch::channel(());
    let running = RunningGuard { boards: Arc::clone(&writer.boards), _ends: ends };
    let thread = thread::Builder::new()
        .name("writer".to_owned())
        .spawn(move || runtime.block_on(serve(writer, lanes, running)))?;
    let stopped = Stopped { thread, end: WriterEnd(end) };
    Ok((WriterHandle { queue, fast_queue, jobs: SnapshotJobs::default(), writing, history }, stopped))
}

async fn serve(mut writer: Writer, mut lanes: Lanes, running: RunningGuard) -> Result<(), WriteError> {
    // Dropped before the queue, so that the condition is set when the queue is found closed.
    let _running = running;
    loop {
        match tokio::time::timeout(writer.idle_time(), lanes.next()).await {
            Ok(Some(Next::Fast(operation))) => operation.run(&mut writer),
            Ok(Some(Next::Other(operation))) => operation.run(&mut writer, |writer| lanes.run_fast(writer)),
            Ok(None) => return writer.flush(),
            Err(_elapsed) => {}
        }
        writer.tick();
    }
}

impl Writer {
    /// How long the writer may sleep if no operation comes.
    fn idle_time(&self) -> Duration {
        const LONGEST_MS: u64 = 1_000;
        let due_ms = u64::try_from(self.next_due_ms(self.clock.now().unix_ms)).unwrap_or(0);
        Duration::from_millis(due_ms.min(LONGEST_MS))
    }
}

impl WriterHandle {
    async fn ask<T>(&self, operation: impl FnOnce(ReplySender<T>) -> Op) -> Result<T, WriteError> {
        let (reply, answer) = oneshot::channel();
        self.queue.send(operation(reply)).await.map_err(|_| WriteError::Stopped)?;
        answer.await.map_err(|_| WriteError::Stopped)
    }

    async fn ask_fast<T>(&self, operation: impl FnOnce(ReplySender<T>) -> FastOp) -> Result<T, WriteError> {
        let (reply, answer) = oneshot::channel();
        self.fast_queue.send(operation(reply)).await.map_err(|_| WriteError::Stopped)?;
        answer.await.map_err(|_| WriteError::Stopped)
    }

    /// Counters of what the writer did.
    pub fn writing(&self) -> &WriterMetrics {
        &self.writing
    }

    /// Operations that wait for the writer, without those in the fast lane.
    pub fn queue_len(&self) -> usize {
        self.queue_max() - self.queue.capacity()
    }

    /// How many may wait.
    pub fn queue_max(&self) -> usize {
        self.queue.max_capacity()
    }

    /// Commands that wait in the fast lane.
    pub fn fast_queue_len(&self) -> usize {
        self.fast_queue_max() - self.fast_queue.capacity()
    }

    /// How many may wait there.
    pub fn fast_queue_max(&self) -> usize {
        self.fast_queue.max_capacity()
    }

    pub async fn ingest(&self, world: World, news: Vec<News>, end: bool) -> Result<IngestReport, WriteError> {
        self.ingest_charged(world, news, end, None).await
    }

    /// The same, with the cost of the news for a polled feed in the same commit.
    pub async fn ingest_charged(
        &self,
        world: World,
        news: Vec<News>,
        end: bool,
        charge: Option<FeedCharge>,
    ) -> Result<IngestReport, WriteError> {
        self.ask(|reply| Op::Ingest { world, news, end, charge, sender: None, reply }).await?
    }

    /// The same, subject to the quota of a sender.
    pub async fn ingest_sent(
        &self,
        world: World,
        news: Vec<News>,
        end: bool,
        sender: Option<Sender>,
    ) -> Result<IngestReport, WriteError> {
        self.ask(|reply| Op::Ingest { world, news, end, charge: None, sender, reply }).await?
    }

    /// What a feed has spent, as far as the file knows.
    pub async fn feed_budget(&self, feed: &str) -> Result<Option<FeedBudget>, WriteError> {
        self.ask_fast(|reply| FastOp::FeedBudget { feed: feed.into(), reply }).await
    }

    /// Stores what a feed has spent.
    pub async fn put_feed_budget(&self, charge: FeedCharge) -> Result<(), WriteError> {
        self.ask_fast(|reply| FastOp::PutFeedBudget { charge, reply }).await?
    }

    /// All of the news or, if any of it is rejected, nothing.
    pub async fn ingest_whole(&self, world: World, news: NewsReader, whole: Whole) -> Result<IngestReport, WriteError> {
        self.ingest_whole_sent(world, news, whole, None).await
    }

    /// The same, subject to the quota of a sender.
    pub async fn ingest_whole_sent(
        &self,
        world: World,
        news: NewsReader,
        whole: Whole,
        sender: Option<Sender>,
    ) -> Result<IngestReport, WriteError> {
        self.ask(|reply| Op::IngestWhole { world, news, whole, sender, reply }).await?
    }

    /// Applies the news of a complete poll, and closes what it no longer has.
    pub async fn poll(&self, poll: Poll) -> Result<PollReport, WriteError> {
        self.ask(|reply| Op::Poll { poll: Box::new(poll), reply }).await?
    }

    /// Ends a feed's round of polls of a sport: its prices are published if the sport is quiet.
    pub async fn end_round(&self, world: World, sport: SportId) -> Result<(), WriteError> {
        self.ask(|reply| Op::EndRound { world, sport, reply }).await
    }

    /// Closes what a scope has of other events or other markets than these; returns how many records that closed.
    pub async fn retain_polled(
        &self,
        scope: PollScope,
        events: Vec<EventId>,
        markets: Vec<Box<str>>,
    ) -> Result<u64, WriteError> {
        self.ask(|reply| Op::RetainPolled { scope, events, markets, reply }).await?
    }

    /// Ends the scopes that a feed no longer polls; returns how many records that closed.
    pub async fn end_polls(&self, world: World, feed: &str, kept_keys: Vec<Box<str>>) -> Result<u64, WriteError> {
        self.ask(|reply| Op::EndPolls { world, feed: feed.into(), kept_keys, reply }).await?
    }

    pub async fn issue_key(&self, new: NewKey, who: &str) -> Result<Issued, KeyError> {
        self.ask_fast(|reply| FastOp::IssueKey { new: Box::new(new), who: who.into(), reply }).await?
    }

    pub async fn rotate_key(&self, id: &str, grace_s: u32, who: &str) -> Result<Issued, KeyError> {
        self.ask_fast(|reply| FastOp::RotateKey { id: id.into(), grace_s, who: who.into(), reply }).await?
    }

    pub async fn undo_rotation(&self, id: &str, who: &str) -> Result<Arc<KeyEntry>, KeyError> {
        self.ask_fast(|reply| FastOp::UndoRotation { id: id.into(), who: who.into(), reply }).await?
    }

    /// What rotates keys for their holders, and does not keep the writer running.
    pub fn rotations(&self) -> OwnRotations {
        OwnRotations { fast_queue: self.fast_queue.downgrade() }
    }

    pub async fn revoke_key(&self, id: &str, who: &str) -> Result<Arc<KeyEntry>, KeyError> {
        self.ask_fast(|reply| FastOp::RevokeKey { id: id.into(), who: who.into(), reply }).await?
    }

    pub async fn set_key(&self, id: &str, change: KeyChange, who: &str) -> Result<Arc<KeyEntry>, KeyError> {
        self.ask_fast(|reply| FastOp::SetKey { id: id.into(), change: Box::new(change), who: who.into(), reply })
            .await?
    }

    pub async fn issue_token(&self, name: &str, world: World, who: &str) -> Result<IssuedToken, FeederError> {
        self.ask_fast(|reply| FastOp::IssueToken { name: name.into(), world, who: who.into(), reply }).await?
    }

    pub async fn rotate_token(&self, name: &str, grace_s: u32, who: &str) -> Result<IssuedToken, FeederError> {
        self.ask_fast(|reply| FastOp::RotateToken { name: name.into(), grace_s, who: who.into(), reply }).await?
    }

    pub async fn revoke_token(&self, name: &str, who: &str) -> Result<Arc<Feeder>, FeederError> {
        self.ask_fast(|reply| FastOp::RevokeToken { name: name.into(), who: who.into(), reply }).await?
    }

    pub async fn set_maintenance(&self, until: Option<Maintenance>, who: &str) -> Result<(), WriteError> {
        self.ask_fast(|reply| FastOp::SetMaintenance { until, who: who.into(), reply }).await?
    }

    /// Marks the live world as simulated.
    pub async fn mark_simulated(&self, who: &str) -> Result<(), WriteError> {
        self.ask(|reply| Op::MarkSimulated { who: who.into(), reply }).await?
    }

    pub async fn audit(&self, who: &str, action: &str, subject: &str, detail: String) -> Result<(), WriteError> {
        let (who, action, subject) = (who.into(), action.into(), subject.into());
        self.ask_fast(|reply| FastOp::Audit { who, action, subject, detail, reply }).await?
    }

    pub async fn read_audit(&self, after: Option<u64>, limit: usize) -> Result<Vec<AuditEntry>, WriteError> {
        self.ask_fast(|reply| FastOp::ReadAudit { after, limit, reply }).await?
    }

    /// The last entries of the audit log, oldest first.
    pub async fn audit_tail(&self, limit: usize) -> Result<Vec<AuditEntry>, WriteError> {
        self.ask_fast(|reply| FastOp::AuditTail { limit, reply }).await?
    }

    /// A snapshot of the file, to be read beside the writer; `what` names the job.
    pub async fn start_snapshot_job(&self, what: &'static str) -> Result<SnapshotJob, SnapshotJobError> {
        let permit = self.jobs.start(what)?;
        let progress = Arc::clone(&permit.progress);
        let snapshot = self.ask(|reply| Op::Snapshot { progress, reply }).await??;
        Ok(SnapshotJob::new(snapshot, permit))
    }

    /// The progress of the running job.
    pub fn snapshot_job_progress(&self) -> Option<SnapshotJobProgress> {
        self.jobs.progress()
    }

    /// The keys whose counters could not be read when the file was opened, and have not been reset since.
    pub async fn lost_usage(&self) -> Result<Vec<KeyId>, WriteError> {
        self.ask_fast(|reply| FastOp::LostUsage { reply }).await
    }

    /// Reads every record and index, and checks the database's own pages; every change waits for that.
    pub async fn check(&self) -> Result<CheckReport, SnapshotJobError> {
        let permit = self.jobs.start("check")?;
        let progress = Arc::clone(&permit.progress);
        Ok(self.ask(|reply| Op::Check { progress, reply }).await??)
    }

    /// Removes every damaged row from the file, and returns how many there were. What is loaded does not change.
    pub async fn drop_damaged(&self, who: &str) -> Result<u64, WriteError> {
        self.ask(|reply| Op::DropDamaged { who: who.into(), reply }).await?
    }

    /// Deletes an event from a piece of the log.
    pub async fn forget(&self, prepared: PreparedForget) -> Result<ForgetOutcome, WriteError> {
        self.ask(|reply| Op::Forget { prepared: Box::new(prepared), reply }).await?
    }

    /// Deletes the lines of an event that the log no longer has; returns whether it had any.
    pub async fn forget_lines(&self, event: ForgottenEvent) -> Result<bool, WriteError> {
        self.ask(|reply| Op::ForgetLines { event, reply }).await?
    }

    /// Begins an import of history for a sport, which must be ended.
    pub async fn begin_import(&self, world: World, sport: SportId) -> Result<ImportStart, WriteError> {
        self.ask(|reply| Op::BeginImport { world, sport, reply }).await?
    }

    pub async fn write_import(&self, step: ImportStep) -> Result<(), WriteError> {
        self.ask(|reply| Op::WriteImport { step: Box::new(step), reply }).await?
    }

    /// Ends an import; returns whether it took effect. It does not if another one was imported meanwhile.
    pub async fn end_import(&self, log: ImportedLog, end: ImportEnd) -> Result<bool, WriteError> {
        self.ask(|reply| Op::EndImport { log, end, reply }).await?
    }

    /// The log, for whoever reads it beside the writer.
    pub(super) fn history(&self) -> &HistoryReader {
        &self.history
    }

    pub async fn file_bytes(&self) -> Result<u64, WriteError> {
        self.ask_fast(|reply| FastOp::FileBytes { reply }).await?
    }

    /// Publishes what waits for the tick: for a start, before there are readers.
    pub async fn publish_now(&self, world: World) -> Result<(), WriteError> {
        self.ask(|reply| Op::PublishNow { world, reply }).await
    }

    /// Returns once the writer has answered.
    pub async fn ping(&self) -> Result<(), WriteError> {
        self.ask_fast(|reply| FastOp::Ping { reply }).await
    }

    /// Does what is due, for tests that move the clock themselves.
    pub async fn tick(&self) -> Result<(), WriteError> {
        self.ask(|reply| Op::Tick { reply }).await
    }
}

impl LeaseStore for WriterHandle {
    async fn store_leases(&self, leases: Vec<(KeyId, Usage)>) -> Result<(), LeaseDeclined> {
        let taken = self.ask_fast(|reply| FastOp::TakeLeases { leases, reply }).await;
        taken.and_then(|result| result).map_err(|_| LeaseDeclined)
    }
}
