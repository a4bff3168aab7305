//! The writer's thread and the queue in front of it.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::reading::{Desk, Reading, ReadingError, ReadingProgress};
use super::{
    FeedCharge, FeederError, IngestReport, Issued, IssuedToken, KeyError, Poll, PollReport, Whole, WriteError, Writer,
};
use crate::keys::issue::{KeyChange, NewKey};
use crate::keys::{Feeder, KeyEntry, KeyId, LeaseBook, LeaseDeclined, Usage};
use crate::metrics::Writing;
use crate::model::{FeedBudget, Maintenance, News, SportId, World};
use crate::store::{AuditEntry, CheckReport, Progress, Snapshot};

/// How many operations may wait. A feeder that is faster than the disk waits for a place: that is its back-pressure.
const QUEUE_MAX: usize = 64;

type Reply<T> = oneshot::Sender<T>;

/// News that the writer reads itself, one at a time, from something that does not keep it waiting.
pub struct NewsReader(pub Box<dyn Iterator<Item = io::Result<News>> + Send>);

impl fmt::Debug for NewsReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewsReader(…)")
    }
}

/// Everything that can be asked of the writer.
#[derive(Debug)]
enum Op {
    Ingest {
        world: World,
        news: Vec<News>,
        end: bool,
        charge: Option<FeedCharge>,
        reply: Reply<Result<IngestReport, WriteError>>,
    },
    FeedBudget {
        feed: Box<str>,
        reply: Reply<Option<FeedBudget>>,
    },
    PutFeedBudget {
        charge: FeedCharge,
        reply: Reply<Result<(), WriteError>>,
    },
    IngestWhole {
        world: World,
        news: NewsReader,
        whole: Whole,
        reply: Reply<Result<IngestReport, WriteError>>,
    },
    Poll {
        poll: Box<Poll>,
        reply: Reply<Result<PollReport, WriteError>>,
    },
    EndRound {
        world: World,
        sport: SportId,
        reply: Reply<()>,
    },
    EndPolls {
        world: World,
        feed: Box<str>,
        kept_keys: Vec<Box<str>>,
        reply: Reply<Result<u64, WriteError>>,
    },
    IssueKey {
        new: Box<NewKey>,
        who: Box<str>,
        reply: Reply<Result<Issued, KeyError>>,
    },
    RotateKey {
        id: Box<str>,
        grace_s: u32,
        who: Box<str>,
        reply: Reply<Result<Issued, KeyError>>,
    },
    RevokeKey {
        id: Box<str>,
        who: Box<str>,
        reply: Reply<Result<Arc<KeyEntry>, KeyError>>,
    },
    SetKey {
        id: Box<str>,
        change: Box<KeyChange>,
        who: Box<str>,
        reply: Reply<Result<Arc<KeyEntry>, KeyError>>,
    },
    IssueToken {
        name: Box<str>,
        world: World,
        who: Box<str>,
        reply: Reply<Result<IssuedToken, FeederError>>,
    },
    RevokeToken {
        name: Box<str>,
        who: Box<str>,
        reply: Reply<Result<Arc<Feeder>, FeederError>>,
    },
    TakeLeases {
        leases: Vec<(KeyId, Usage)>,
        reply: Reply<Result<(), WriteError>>,
    },
    SetMaintenance {
        until: Option<Maintenance>,
        who: Box<str>,
        reply: Reply<Result<(), WriteError>>,
    },
    Audit {
        who: Box<str>,
        action: Box<str>,
        subject: Box<str>,
        detail: String,
        reply: Reply<Result<(), WriteError>>,
    },
    ReadAudit {
        after: Option<u64>,
        limit: usize,
        reply: Reply<Result<Vec<AuditEntry>, WriteError>>,
    },
    AuditTail {
        limit: usize,
        reply: Reply<Result<Vec<AuditEntry>, WriteError>>,
    },
    Snapshot {
        progress: Arc<Progress>,
        reply: Reply<Result<Snapshot, WriteError>>,
    },
    LostUsage {
        reply: Reply<Vec<KeyId>>,
    },
    Check {
        progress: Arc<Progress>,
        reply: Reply<Result<CheckReport, WriteError>>,
    },
    DropDamaged {
        who: Box<str>,
        reply: Reply<Result<u64, WriteError>>,
    },
    FileBytes {
        reply: Reply<Result<u64, WriteError>>,
    },
    PublishNow {
        world: World,
        reply: Reply<()>,
    },
    Tick {
        reply: Reply<()>,
    },
}

impl Op {
    /// Does the operation and answers it. Whoever asked may be gone: what is done is done.
    fn run(self, writer: &mut Writer) {
        match self {
            Op::Ingest { world, news, end, charge, reply } => {
                drop(reply.send(writer.ingest_charged(world, news, end, charge)));
            }
            Op::FeedBudget { feed, reply } => drop(reply.send(writer.feed_budget(&feed))),
            Op::PutFeedBudget { charge, reply } => drop(reply.send(writer.put_feed_budget(charge))),
            Op::IngestWhole { world, news, whole, reply } => {
                drop(reply.send(writer.ingest_whole(world, news.0, whole)));
            }
            Op::Poll { poll, reply } => drop(reply.send(writer.poll(*poll))),
            Op::EndRound { world, sport, reply } => {
                writer.end_round(world, sport);
                let _ = reply.send(());
            }
            Op::EndPolls { world, feed, kept_keys, reply } => {
                drop(reply.send(writer.end_polls(world, &feed, &kept_keys)));
            }
            Op::IssueKey { new, who, reply } => drop(reply.send(writer.issue_key(*new, &who))),
            Op::RotateKey { id, grace_s, who, reply } => drop(reply.send(writer.rotate_key(&id, grace_s, &who))),
            Op::RevokeKey { id, who, reply } => drop(reply.send(writer.revoke_key(&id, &who))),
            Op::SetKey { id, change, who, reply } => drop(reply.send(writer.set_key(&id, *change, &who))),
            Op::IssueToken { name, world, who, reply } => drop(reply.send(writer.issue_token(&name, world, &who))),
            Op::RevokeToken { name, who, reply } => drop(reply.send(writer.revoke_token(&name, &who))),
            Op::TakeLeases { leases, reply } => drop(reply.send(writer.take_leases(&leases))),
            Op::SetMaintenance { until, who, reply } => drop(reply.send(writer.set_maintenance(until, &who))),
            Op::Audit { who, action, subject, detail, reply } => {
                drop(reply.send(writer.audit(&who, &action, &subject, detail)));
            }
            Op::ReadAudit { after, limit, reply } => drop(reply.send(writer.read_audit(after, limit))),
            Op::AuditTail { limit, reply } => drop(reply.send(writer.audit_tail(limit))),
            Op::Snapshot { progress, reply } => drop(reply.send(writer.snapshot(&progress))),
            Op::LostUsage { reply } => drop(reply.send(writer.lost_usage().to_vec())),
            Op::Check { progress, reply } => drop(reply.send(writer.check(&progress))),
            Op::DropDamaged { who, reply } => drop(reply.send(writer.drop_damaged(&who))),
            Op::FileBytes { reply } => drop(reply.send(writer.file_bytes())),
            Op::PublishNow { world, reply } => {
                writer.publish_now(world);
                let _ = reply.send(());
            }
            Op::Tick { reply } => {
                writer.tick();
                let _ = reply.send(());
            }
        }
    }
}

/// The way to the writer. When every handle is gone, the writer ends.
#[derive(Clone, Debug)]
pub struct WriterHandle {
    queue: mpsc::Sender<Op>,
    readings: Desk,
    writing: Arc<Writing>,
}

/// The writer after its last operation. Holding it keeps the file open.
#[derive(Debug)]
pub struct Stopped(JoinHandle<Result<(), WriteError>>);

impl Stopped {
    /// Waits for the writer's end, once every handle is dropped: its last flush.
    pub fn join(self) -> Result<(), WriteError> {
        self.0.join().unwrap_or(Err(WriteError::Stopped))
    }
}

/// Puts the writer on a thread of its own.
pub fn spawn(writer: Writer) -> io::Result<(WriterHandle, Stopped)> {
    let (queue, operations) = mpsc::channel(QUEUE_MAX);
    let writing = Arc::clone(&writer.writing);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
    let thread =
        thread::Builder::new().name("writer".to_owned()).spawn(move || runtime.block_on(serve(writer, operations)))?;
    Ok((WriterHandle { queue, readings: Desk::default(), writing }, Stopped(thread)))
}

async fn serve(mut writer: Writer, mut operations: mpsc::Receiver<Op>) -> Result<(), WriteError> {
    loop {
        match tokio::time::timeout(writer.idle_time(), operations.recv()).await {
            Ok(Some(operation)) => operation.run(&mut writer),
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
    async fn ask<T>(&self, operation: impl FnOnce(Reply<T>) -> Op) -> Result<T, WriteError> {
        let (reply, answer) = oneshot::channel();
        self.queue.send(operation(reply)).await.map_err(|_| WriteError::Stopped)?;
        answer.await.map_err(|_| WriteError::Stopped)
    }

    /// What the writer did, counted.
    pub fn writing(&self) -> &Writing {
        &self.writing
    }

    /// Operations that wait for the writer.
    pub fn queue_len(&self) -> usize {
        self.queue_max() - self.queue.capacity()
    }

    /// How many may wait.
    pub fn queue_max(&self) -> usize {
        self.queue.max_capacity()
    }

    pub async fn ingest(&self, world: World, news: Vec<News>, end: bool) -> Result<IngestReport, WriteError> {
        self.ingest_charged(world, news, end, None).await
    }

    /// The same, with what the news cost a polled feed in the same commit.
    pub async fn ingest_charged(
        &self,
        world: World,
        news: Vec<News>,
        end: bool,
        charge: Option<FeedCharge>,
    ) -> Result<IngestReport, WriteError> {
        self.ask(|reply| Op::Ingest { world, news, end, charge, reply }).await?
    }

    /// What a feed has spent, as far as the file knows.
    pub async fn feed_budget(&self, feed: &str) -> Result<Option<FeedBudget>, WriteError> {
        self.ask(|reply| Op::FeedBudget { feed: feed.into(), reply }).await
    }

    /// Stores what a feed has spent.
    pub async fn put_feed_budget(&self, charge: FeedCharge) -> Result<(), WriteError> {
        self.ask(|reply| Op::PutFeedBudget { charge, reply }).await?
    }

    /// All of the news or, if any of it is turned away, nothing.
    pub async fn ingest_whole(&self, world: World, news: NewsReader, whole: Whole) -> Result<IngestReport, WriteError> {
        self.ask(|reply| Op::IngestWhole { world, news, whole, reply }).await?
    }

    /// The news of a complete poll, and an end to what it no longer has.
    pub async fn poll(&self, poll: Poll) -> Result<PollReport, WriteError> {
        self.ask(|reply| Op::Poll { poll: Box::new(poll), reply }).await?
    }

    /// Ends a feed's round of polls of a sport: what it brought is published if the sport is quiet.
    pub async fn end_round(&self, world: World, sport: SportId) -> Result<(), WriteError> {
        self.ask(|reply| Op::EndRound { world, sport, reply }).await
    }

    /// Ends what a feed polled before and does not poll any more; how many records that closed.
    pub async fn end_polls(&self, world: World, feed: &str, kept_keys: Vec<Box<str>>) -> Result<u64, WriteError> {
        self.ask(|reply| Op::EndPolls { world, feed: feed.into(), kept_keys, reply }).await?
    }

    pub async fn issue_key(&self, new: NewKey, who: &str) -> Result<Issued, KeyError> {
        self.ask(|reply| Op::IssueKey { new: Box::new(new), who: who.into(), reply }).await?
    }

    pub async fn rotate_key(&self, id: &str, grace_s: u32, who: &str) -> Result<Issued, KeyError> {
        self.ask(|reply| Op::RotateKey { id: id.into(), grace_s, who: who.into(), reply }).await?
    }

    pub async fn revoke_key(&self, id: &str, who: &str) -> Result<Arc<KeyEntry>, KeyError> {
        self.ask(|reply| Op::RevokeKey { id: id.into(), who: who.into(), reply }).await?
    }

    pub async fn set_key(&self, id: &str, change: KeyChange, who: &str) -> Result<Arc<KeyEntry>, KeyError> {
        self.ask(|reply| Op::SetKey { id: id.into(), change: Box::new(change), who: who.into(), reply }).await?
    }

    pub async fn issue_token(&self, name: &str, world: World, who: &str) -> Result<IssuedToken, FeederError> {
        self.ask(|reply| Op::IssueToken { name: name.into(), world, who: who.into(), reply }).await?
    }

    pub async fn revoke_token(&self, name: &str, who: &str) -> Result<Arc<Feeder>, FeederError> {
        self.ask(|reply| Op::RevokeToken { name: name.into(), who: who.into(), reply }).await?
    }

    pub async fn set_maintenance(&self, until: Option<Maintenance>, who: &str) -> Result<(), WriteError> {
        self.ask(|reply| Op::SetMaintenance { until, who: who.into(), reply }).await?
    }

    pub async fn audit(&self, who: &str, action: &str, subject: &str, detail: String) -> Result<(), WriteError> {
        let (who, action, subject) = (who.into(), action.into(), subject.into());
        self.ask(|reply| Op::Audit { who, action, subject, detail, reply }).await?
    }

    pub async fn read_audit(&self, after: Option<u64>, limit: usize) -> Result<Vec<AuditEntry>, WriteError> {
        self.ask(|reply| Op::ReadAudit { after, limit, reply }).await?
    }

    /// The last entries of the audit log, oldest first.
    pub async fn audit_tail(&self, limit: usize) -> Result<Vec<AuditEntry>, WriteError> {
        self.ask(|reply| Op::AuditTail { limit, reply }).await?
    }

    /// The file as it is now, to be read beside the writer; `what` says what for.
    pub async fn read_aside(&self, what: &'static str) -> Result<Reading, ReadingError> {
        let place = self.readings.take(what)?;
        let progress = Arc::clone(&place.progress);
        let snapshot = self.ask(|reply| Op::Snapshot { progress, reply }).await??;
        Ok(Reading::new(snapshot, place))
    }

    /// How far the reading is that is under way.
    pub fn reading_progress(&self) -> Option<ReadingProgress> {
        self.readings.progress()
    }

    /// The keys whose counters could not be read when the file was opened, and that nobody has reset since.
    pub async fn lost_usage(&self) -> Result<Vec<KeyId>, WriteError> {
        self.ask(|reply| Op::LostUsage { reply }).await
    }

    /// Reads every record and index, and has the database's own pages checked; every change waits for that.
    pub async fn check(&self) -> Result<CheckReport, ReadingError> {
        let place = self.readings.take("check")?;
        let progress = Arc::clone(&place.progress);
        Ok(self.ask(|reply| Op::Check { progress, reply }).await??)
    }

    /// Takes every damaged row out of the file; how many those were. What was loaded is not told of it.
    pub async fn drop_damaged(&self, who: &str) -> Result<u64, WriteError> {
        self.ask(|reply| Op::DropDamaged { who: who.into(), reply }).await?
    }

    pub async fn file_bytes(&self) -> Result<u64, WriteError> {
        self.ask(|reply| Op::FileBytes { reply }).await?
    }

    /// Publishes what waits for the tick, for a start that nobody has seen yet.
    pub async fn publish_now(&self, world: World) -> Result<(), WriteError> {
        self.ask(|reply| Op::PublishNow { world, reply }).await
    }

    /// Does what has come due, for tests that move the clock themselves.
    pub async fn tick(&self) -> Result<(), WriteError> {
        self.ask(|reply| Op::Tick { reply }).await
    }
}

impl LeaseBook for WriterHandle {
    async fn take(&self, leases: Vec<(KeyId, Usage)>) -> Result<(), LeaseDeclined> {
        let taken = self.ask(|reply| Op::TakeLeases { leases, reply }).await;
        taken.and_then(|result| result).map_err(|_| LeaseDeclined)
    }
}
