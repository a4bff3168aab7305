//! The way to the writer's thread: its operations as asynchronous functions.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::operation::{
    EndPoll, EndRound, Ingest, IngestWhole, IssueKey, IssueToken, Lane, MarkSimulated, Meanwhile, NewsReader,
    Operation, PublishNow, PutFeedBudget, RecordUse, RetainPolled, RevokeKey, RevokeToken, RotateKey, RotateOwnKey,
    RotateToken, SetKey, SetMaintenance, SharedOperation, UndoRotation, WriteAudit,
};
use super::queue::Job;
use super::shared_log::{SharedLog, Waiting};
use super::snapshot_job::{SnapshotJob, SnapshotJobError, SnapshotJobProgress, SnapshotJobs};
use super::{
    Applied, FeedCharge, FeederError, ImportEnd, ImportStart, ImportStep, IngestReport, Issued, IssuedToken, KeyError,
    Poll, PollReport, PollScope, Publication, Sender, Whole, WriteError, Writer,
};
use crate::clock::Moment;
use crate::keys::issue::{KeyChange, NewKey};
use crate::keys::{FeedToken, Feeder, KeyEntry, KeyId, KeyTicket, Keyring, LeaseDeclined, LeaseStore, Secret, Usage};
use crate::metrics::WriterMetrics;
use crate::model::{EntryId, EventId, FeedBudget, Maintenance, Membership, News, SportId, World};
use crate::store::{
    AuditEntry, CheckReport, ForgetOutcome, ForgottenEvent, HistoryReader, ImportedLog, PreparedForget,
};

/// How long other nodes are waited for that need not have what is new at once.
const SPREAD_WITHIN: Duration = Duration::from_secs(1);

/// Sends operations to the writer. When every handle is dropped, the writer ends.
#[derive(Clone, Debug)]
pub struct WriterHandle {
    queue: mpsc::Sender<Job>,
    fast_queue: mpsc::Sender<Job>,
    keyring: Arc<Keyring>,
    jobs: SnapshotJobs,
    writing: Arc<WriterMetrics>,
    history: HistoryReader,
    /// In a cluster, where operations go.
    shared: Option<Arc<dyn SharedLog>>,
}

/// Rotates keys on behalf of their holders. The writer ends without it: the public interface has it for as long as it runs.
#[derive(Clone, Debug)]
pub struct OwnRotations {
    fast_queue: mpsc::WeakSender<Job>,
    keyring: Arc<Keyring>,
    shared: Option<Weak<dyn SharedLog>>,
}

impl OwnRotations {
    /// With the secret that was presented. It is done even if nobody waits for the answer.
    pub async fn rotate(&self, id: &KeyId, presented: KeyTicket, who: String) -> Result<Issued, KeyError> {
        let secret = new_secret(&self.keyring, id.as_str())?;
        let rotation = RotateOwnKey { id: id.as_str().into(), presented, secret: secret.stored(), who: who.into() };
        if let Some(log) = &self.shared {
            let log = log.upgrade().ok_or(WriteError::Stopped)?;
            let key = enter(&*log, rotation).await??;
            let unconfirmed = log.settled().await;
            if !unconfirmed.is_empty() {
                tracing::warn!(key = %id.as_str(), nodes = %unconfirmed.join(", "), "nodes have not confirmed a rotation");
            }
            return Ok(Issued { key, secret });
        }
        let (job, answer) = job(rotation);
        let queue = self.fast_queue.upgrade().ok_or(WriteError::Stopped)?;
        queue.send(job).await.map_err(|_| WriteError::Stopped)?;
        drop(queue);
        let key = answer.await.map_err(|_| WriteError::Stopped)??;
        Ok(Issued { key, secret })
    }
}

/// Has an operation done by all nodes, and returns the answer of this one.
async fn enter<O>(log: &dyn SharedLog, operation: O) -> Result<O::Answer, WriteError>
where
    O: Operation + Into<SharedOperation> + TryFrom<SharedOperation>,
{
    let (reply, answer) = oneshot::channel();
    log.enter(operation.into(), Waiting::new::<O>(reply)).await?;
    answer.await.map_err(|_| WriteError::Stopped)
}

/// An operation for the queue, and where its answer comes.
fn job<O: Operation>(operation: O) -> (Job, oneshot::Receiver<O::Answer>) {
    let (reply, answer) = oneshot::channel();
    let run = Box::new(move |writer: &mut Writer, meanwhile: Meanwhile<'_>| {
        let _ = reply.send(operation.run(writer, meanwhile));
    });
    (Job(run), answer)
}

/// A new secret for a key that there is.
fn new_secret(keyring: &Keyring, id: &str) -> Result<Secret, KeyError> {
    let key = KeyId::new(id).and_then(|id| keyring.get(&id)).ok_or_else(|| KeyError::no_such_key(id))?;
    Ok(Secret::generate(key.record().kind)?)
}

impl WriterHandle {
    pub(super) fn new(queue: mpsc::Sender<Job>, fast_queue: mpsc::Sender<Job>, writer: &Writer) -> Self {
        let (keyring, jobs) = (Arc::clone(&writer.keyring), SnapshotJobs::default());
        WriterHandle {
            queue,
            fast_queue,
            keyring,
            jobs,
            writing: Arc::clone(&writer.writing),
            history: writer.history(),
            shared: None,
        }
    }

    /// The same writer for those who ask for operations: they go through the log that nodes share.
    #[must_use]
    pub fn sharing(self, log: Arc<dyn SharedLog>) -> Self {
        WriterHandle { shared: Some(log), ..self }
    }

    /// Applies an entry of the shared log. An entry that cannot be committed must be applied again, with whoever waits for it.
    pub async fn apply(
        &self,
        id: EntryId,
        fence: Option<u64>,
        operation: SharedOperation,
        mut waiting: Option<Waiting>,
    ) -> Result<(), (WriteError, Option<Waiting>)> {
        let apply = move |writer: &mut Writer| {
            let applied = writer.apply(id, fence, |writer| {
                if let Some(waiting) = &mut waiting {
                    return Some(waiting.run(operation, writer));
                }
                operation.run_unanswered(writer);
                None
            });
            match applied {
                Ok(Applied::Done(Some(deliver))) => deliver(),
                Ok(Applied::Done(None) | Applied::Before | Applied::Fenced) => {}
                Err(error) => return Err((error, waiting)),
            }
            Ok(())
        };
        self.ask(Lane::Other, apply).await.unwrap_or_else(|error| Err((error, None)))
    }

    /// The operations that are due, for the node that enters them.
    pub async fn plan_due(&self, now: Moment) -> Result<Vec<SharedOperation>, WriteError> {
        self.ask(Lane::Other, move |writer| writer.plan_due(now)).await
    }

    /// A publication of everything.
    pub async fn plan_full_publication(&self, now: Moment) -> Result<Publication, WriteError> {
        self.ask(Lane::Other, move |writer| writer.plan_full_publication(now)).await
    }

    /// Has an operation done.
    async fn run<O>(&self, operation: O) -> Result<O::Answer, WriteError>
    where
        O: Operation + Into<SharedOperation> + TryFrom<SharedOperation>,
    {
        match &self.shared {
            Some(log) => enter(&**log, operation).await,
            None => self.run_here(operation).await,
        }
    }

    async fn run_here<O: Operation>(&self, operation: O) -> Result<O::Answer, WriteError> {
        let (job, answer) = job(operation);
        self.send(O::LANE, job).await?;
        answer.await.map_err(|_| WriteError::Stopped)
    }

    /// Has something done on the writer's thread that changes nothing which is served.
    async fn ask<T: Send + 'static>(
        &self,
        lane: Lane,
        work: impl FnOnce(&mut Writer) -> T + Send + 'static,
    ) -> Result<T, WriteError> {
        let (reply, answer) = oneshot::channel();
        self.send(lane, Job(Box::new(move |writer, _| drop(reply.send(work(writer)))))).await?;
        answer.await.map_err(|_| WriteError::Stopped)
    }

    async fn send(&self, lane: Lane, job: Job) -> Result<(), WriteError> {
        let queue = match lane {
            Lane::Fast => &self.fast_queue,
            Lane::Other => &self.queue,
        };
        queue.send(job).await.map_err(|_| WriteError::Stopped)
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
        self.run(Ingest { world, news, is_end: end, charge, sender: None }).await?
    }

    /// The same, subject to the quota of a sender.
    pub async fn ingest_sent(
        &self,
        world: World,
        news: Vec<News>,
        end: bool,
        sender: Option<Sender>,
    ) -> Result<IngestReport, WriteError> {
        self.run(Ingest { world, news, is_end: end, charge: None, sender }).await?
    }

    /// What a feed has spent, as far as the file knows.
    pub async fn feed_budget(&self, feed: &str) -> Result<Option<FeedBudget>, WriteError> {
        let feed: Box<str> = feed.into();
        self.ask(Lane::Fast, move |writer| writer.feed_budget(&feed)).await
    }

    /// Stores what a feed has spent.
    pub async fn put_feed_budget(&self, charge: FeedCharge) -> Result<(), WriteError> {
        self.run(PutFeedBudget(charge)).await?
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
        let operation = IngestWhole { world, news, whole, sender };
        match whole {
            Whole::Taken => self.run(operation).await?,
            Whole::Checked => self.run_here(operation).await?,
        }
    }

    /// Applies the news of a complete poll, and closes what it no longer has.
    pub async fn poll(&self, poll: Poll) -> Result<PollReport, WriteError> {
        self.run(poll).await?
    }

    /// Ends a feed's round of polls of a sport: its prices are published if the sport is quiet.
    pub async fn end_round(&self, world: World, sport: SportId) -> Result<(), WriteError> {
        self.run(EndRound { world, sport }).await
    }

    /// Closes what a scope has of other events or other markets than these; returns how many records that closed.
    pub async fn retain_polled(
        &self,
        scope: PollScope,
        events: Vec<EventId>,
        markets: Vec<Box<str>>,
    ) -> Result<u64, WriteError> {
        self.run(RetainPolled { scope, events, markets }).await?
    }

    /// Ends the scopes that a feed no longer polls; returns how many records that closed.
    pub async fn end_polls(&self, world: World, feed: &str, kept_keys: Vec<Box<str>>) -> Result<u64, WriteError> {
        let feed: Box<str> = feed.into();
        let over = move |writer: &mut Writer| writer.polls_without(world, &feed, &kept_keys);
        let mut closed = 0;
        // Each is a transaction of its own, so that other operations run in between.
        for scope in self.ask(Lane::Other, over).await? {
            closed += self.run(EndPoll { world, scope }).await??;
        }
        Ok(closed)
    }

    pub async fn issue_key(&self, new: NewKey, who: &str) -> Result<Issued, KeyError> {
        let (id, secret) = (KeyId::generate()?, Secret::generate(new.kind)?);
        let key = self.run(IssueKey { new, id, secret: secret.stored(), who: who.into() }).await??;
        Ok(Issued { key, secret })
    }

    pub async fn rotate_key(&self, id: &str, grace_s: u32, who: &str) -> Result<Issued, KeyError> {
        let secret = new_secret(&self.keyring, id)?;
        let rotation = RotateKey { id: id.into(), secret: secret.stored(), grace_s, who: who.into() };
        let key = self.run(rotation).await??;
        Ok(Issued { key, secret })
    }

    pub async fn undo_rotation(&self, id: &str, who: &str) -> Result<Arc<KeyEntry>, KeyError> {
        self.run(UndoRotation { id: id.into(), who: who.into() }).await?
    }

    /// What rotates keys for their holders, and does not keep the writer running.
    pub fn rotations(&self) -> OwnRotations {
        OwnRotations {
            fast_queue: self.fast_queue.downgrade(),
            keyring: Arc::clone(&self.keyring),
            shared: self.shared.as_ref().map(Arc::downgrade),
        }
    }

    pub async fn revoke_key(&self, id: &str, who: &str) -> Result<Arc<KeyEntry>, KeyError> {
        self.run(RevokeKey { id: id.into(), who: who.into() }).await?
    }

    pub async fn set_key(&self, id: &str, change: KeyChange, who: &str) -> Result<Arc<KeyEntry>, KeyError> {
        let resets = change.reset_usage;
        let key = self.run(SetKey { id: id.into(), change, who: who.into() }).await??;
        if let Some(log) = self.shared.as_ref().filter(|_| resets) {
            log.reset_usage(key.id()).await?;
        }
        Ok(key)
    }

    /// See [`SharedLog::is_in_turn`].
    pub fn is_in_turn(&self) -> bool {
        self.shared.as_ref().is_none_or(|log| log.is_in_turn())
    }

    /// Whether the file is that of a node of a cluster.
    pub async fn membership(&self) -> Result<Option<Membership>, WriteError> {
        self.ask(Lane::Fast, |writer| writer.membership()).await
    }

    /// Waits until every node has what this one has: see [`SharedLog::settled`].
    pub async fn settled(&self) -> Vec<Box<str>> {
        match &self.shared {
            Some(log) => log.settled().await,
            None => Vec::new(),
        }
    }

    /// Waits until every node has what this one has, so that what is new works wherever it is used first. A node that takes
    /// longer than others usually do is not waited for.
    pub async fn spread(&self) {
        let _ = tokio::time::timeout(SPREAD_WITHIN, self.settled()).await;
    }

    /// Enters what keys have used on this node in the log that the nodes share.
    pub async fn record_use(&self) -> Result<(), WriteError> {
        let taken = |key: &Arc<KeyEntry>| key.meter().take_use().map(|(units, used)| (key.id().clone(), units, used));
        let uses: Vec<_> = self.keyring.list().iter().filter_map(taken).collect();
        if uses.is_empty() {
            return Ok(());
        }
        let taken: Vec<_> = uses.iter().map(|(key, units, _)| (key.clone(), *units)).collect();
        let recorded = self.run(RecordUse { uses }).await;
        if let Err(WriteError::NotEntered(_)) = &recorded {
            for (key, units) in taken {
                self.keyring.get(&key).into_iter().for_each(|key| key.meter().keep_use(units));
            }
        }
        recorded?
    }

    pub async fn issue_token(&self, name: &str, world: World, who: &str) -> Result<IssuedToken, FeederError> {
        let token = FeedToken::generate()?;
        let issue = IssueToken { name: name.into(), world, token: token.stored(), who: who.into() };
        let feeder = self.run(issue).await??;
        Ok(IssuedToken { feeder, token })
    }

    pub async fn rotate_token(&self, name: &str, grace_s: u32, who: &str) -> Result<IssuedToken, FeederError> {
        let token = FeedToken::generate()?;
        let rotation = RotateToken { name: name.into(), token: token.stored(), grace_s, who: who.into() };
        let feeder = self.run(rotation).await??;
        Ok(IssuedToken { feeder, token })
    }

    pub async fn revoke_token(&self, name: &str, who: &str) -> Result<Arc<Feeder>, FeederError> {
        self.run(RevokeToken { name: name.into(), who: who.into() }).await?
    }

    pub async fn set_maintenance(&self, until: Option<Maintenance>, who: &str) -> Result<(), WriteError> {
        self.run(SetMaintenance { until, who: who.into() }).await?
    }

    /// Marks the live world as simulated.
    pub async fn mark_simulated(&self, who: &str) -> Result<(), WriteError> {
        self.run(MarkSimulated { who: who.into() }).await?
    }

    pub async fn audit(&self, who: &str, action: &str, subject: &str, detail: String) -> Result<(), WriteError> {
        let (who, action, subject) = (who.into(), action.into(), subject.into());
        self.run(WriteAudit { who, action, subject, detail }).await?
    }

    pub async fn read_audit(&self, after: Option<u64>, limit: usize) -> Result<Vec<AuditEntry>, WriteError> {
        self.ask(Lane::Fast, move |writer| writer.read_audit(after, limit)).await?
    }

    /// The last entries of the audit log, oldest first.
    pub async fn audit_tail(&self, limit: usize) -> Result<Vec<AuditEntry>, WriteError> {
        self.ask(Lane::Fast, move |writer| writer.audit_tail(limit)).await?
    }

    /// A snapshot of the file, to be read beside the writer; `what` names the job.
    pub async fn start_snapshot_job(&self, what: &'static str) -> Result<SnapshotJob, SnapshotJobError> {
        let permit = self.jobs.start(what)?;
        let progress = Arc::clone(&permit.progress);
        let snapshot = self.ask(Lane::Other, move |writer| writer.snapshot(&progress)).await??;
        Ok(SnapshotJob::new(snapshot, permit))
    }

    /// The progress of the running job.
    pub fn snapshot_job_progress(&self) -> Option<SnapshotJobProgress> {
        self.jobs.progress()
    }

    /// The keys whose counters could not be read when the file was opened, and have not been reset since.
    pub async fn lost_usage(&self) -> Result<Vec<KeyId>, WriteError> {
        self.ask(Lane::Fast, |writer| writer.lost_usage().to_vec()).await
    }

    /// Reads every record and index, and checks the database's own pages; every change waits for that.
    pub async fn check(&self) -> Result<CheckReport, SnapshotJobError> {
        let permit = self.jobs.start("check")?;
        let progress = Arc::clone(&permit.progress);
        Ok(self.ask(Lane::Other, move |writer| writer.check(&progress)).await??)
    }

    /// Removes every damaged row from the file, and returns how many there were. What is loaded does not change.
    pub async fn drop_damaged(&self, who: &str) -> Result<u64, WriteError> {
        let who: Box<str> = who.into();
        self.ask(Lane::Other, move |writer| writer.drop_damaged(&who)).await?
    }

    /// Deletes an event from a piece of the log.
    pub async fn forget(&self, prepared: PreparedForget) -> Result<ForgetOutcome, WriteError> {
        self.ask(Lane::Other, move |writer| writer.forget(&prepared)).await?
    }

    /// Deletes the lines of an event that the log no longer has; returns whether it had any.
    pub async fn forget_lines(&self, event: ForgottenEvent) -> Result<bool, WriteError> {
        self.ask(Lane::Other, move |writer| writer.forget_lines(&event)).await?
    }

    /// Begins an import of history for a sport, which must be ended.
    pub async fn begin_import(&self, world: World, sport: SportId) -> Result<ImportStart, WriteError> {
        self.ask(Lane::Other, move |writer| writer.begin_import(world, sport)).await?
    }

    pub async fn write_import(&self, step: ImportStep) -> Result<(), WriteError> {
        self.ask(Lane::Other, move |writer| writer.write_import(step)).await?
    }

    /// Ends an import; returns whether it took effect. It does not if another one was imported meanwhile.
    pub async fn end_import(&self, log: ImportedLog, end: ImportEnd) -> Result<bool, WriteError> {
        self.ask(Lane::Other, move |writer| writer.end_import(log, end)).await?
    }

    /// The log, for whoever reads it beside the writer.
    pub(super) fn history(&self) -> &HistoryReader {
        &self.history
    }

    pub async fn file_bytes(&self) -> Result<u64, WriteError> {
        self.ask(Lane::Fast, |writer| writer.file_bytes()).await?
    }

    /// Publishes what waits for the tick: for a start, before there are readers.
    pub async fn publish_now(&self, world: World) -> Result<(), WriteError> {
        if self.shared.is_none() {
            return self.run_here(PublishNow { world }).await;
        }
        let plan = self.ask(Lane::Other, move |writer| writer.plan_unpublished(world)).await?;
        self.publish(plan).await
    }

    pub async fn publish(&self, publication: Publication) -> Result<(), WriteError> {
        self.run(publication).await?
    }

    /// Returns once the writer has answered.
    pub async fn ping(&self) -> Result<(), WriteError> {
        self.ask(Lane::Fast, |_| ()).await
    }

    /// Does what is due, for tests that move the clock themselves.
    pub async fn tick(&self) -> Result<(), WriteError> {
        self.ask(Lane::Other, Writer::tick).await
    }
}

impl LeaseStore for WriterHandle {
    async fn store_leases(&self, leases: Vec<(KeyId, Usage)>) -> Result<(), LeaseDeclined> {
        let taken = self.ask(Lane::Fast, move |writer| writer.take_leases(&leases)).await;
        taken.and_then(|result| result).map_err(|_| LeaseDeclined)
    }
}
