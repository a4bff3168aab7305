//! The operations that can be queued for the writer, in two lanes.
//!
//! A [`FastOp`] is about keys, feeder tokens, counters, budgets, maintenance or the audit log. It never reads or changes a world,
//! so it may run between two operations of the other lane, and also during one that has not begun to write.
//! Everything else is an [`Op`].

use std::fmt;
use std::io;
use std::sync::Arc;

use tokio::sync::oneshot;

use super::{
    FeedCharge, FeederError, ImportEnd, ImportStart, ImportStep, IngestReport, Issued, IssuedToken, KeyError, Poll,
    PollReport, PollScope, Sender, Whole, WriteError, Writer,
};
use crate::keys::issue::{KeyChange, NewKey};
use crate::keys::{Feeder, KeyEntry, KeyId, KeyTicket, Usage};
use crate::model::{EventId, FeedBudget, Maintenance, News, SportId, World};
use crate::store::{
    AuditEntry, CheckReport, ForgetOutcome, ForgottenEvent, ImportedLog, PreparedForget, Progress, Snapshot,
};

pub(super) type ReplySender<T> = oneshot::Sender<T>;

/// News that the writer reads itself, one at a time, from a source that does not block.
pub struct NewsReader(pub Box<dyn Iterator<Item = io::Result<News>> + Send>);

impl fmt::Debug for NewsReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewsReader(…)")
    }
}

/// Operations that run before every queued [`Op`].
#[derive(Debug)]
pub(super) enum FastOp {
    IssueKey {
        new: Box<NewKey>,
        who: Box<str>,
        reply: ReplySender<Result<Issued, KeyError>>,
    },
    RotateKey {
        id: Box<str>,
        grace_s: u32,
        who: Box<str>,
        reply: ReplySender<Result<Issued, KeyError>>,
    },
    RotateOwnKey {
        id: Box<str>,
        presented: KeyTicket,
        who: Box<str>,
        reply: ReplySender<Result<Issued, KeyError>>,
    },
    UndoRotation {
        id: Box<str>,
        who: Box<str>,
        reply: ReplySender<Result<Arc<KeyEntry>, KeyError>>,
    },
    RevokeKey {
        id: Box<str>,
        who: Box<str>,
        reply: ReplySender<Result<Arc<KeyEntry>, KeyError>>,
    },
    SetKey {
        id: Box<str>,
        change: Box<KeyChange>,
        who: Box<str>,
        reply: ReplySender<Result<Arc<KeyEntry>, KeyError>>,
    },
    IssueToken {
        name: Box<str>,
        world: World,
        who: Box<str>,
        reply: ReplySender<Result<IssuedToken, FeederError>>,
    },
    RotateToken {
        name: Box<str>,
        grace_s: u32,
        who: Box<str>,
        reply: ReplySender<Result<IssuedToken, FeederError>>,
    },
    RevokeToken {
        name: Box<str>,
        who: Box<str>,
        reply: ReplySender<Result<Arc<Feeder>, FeederError>>,
    },
    TakeLeases {
        leases: Vec<(KeyId, Usage)>,
        reply: ReplySender<Result<(), WriteError>>,
    },
    SetMaintenance {
        until: Option<Maintenance>,
        who: Box<str>,
        reply: ReplySender<Result<(), WriteError>>,
    },
    Audit {
        who: Box<str>,
        action: Box<str>,
        subject: Box<str>,
        detail: String,
        reply: ReplySender<Result<(), WriteError>>,
    },
    ReadAudit {
        after: Option<u64>,
        limit: usize,
        reply: ReplySender<Result<Vec<AuditEntry>, WriteError>>,
    },
    AuditTail {
        limit: usize,
        reply: ReplySender<Result<Vec<AuditEntry>, WriteError>>,
    },
    LostUsage {
        reply: ReplySender<Vec<KeyId>>,
    },
    FileBytes {
        reply: ReplySender<Result<u64, WriteError>>,
    },
    FeedBudget {
        feed: Box<str>,
        reply: ReplySender<Option<FeedBudget>>,
    },
    PutFeedBudget {
        charge: FeedCharge,
        reply: ReplySender<Result<(), WriteError>>,
    },
    Ping {
        reply: ReplySender<()>,
    },
}

/// Operations on worlds and on the file as a whole, in the order in which they came.
#[derive(Debug)]
pub(super) enum Op {
    Ingest {
        world: World,
        news: Vec<News>,
        end: bool,
        charge: Option<FeedCharge>,
        sender: Option<Sender>,
        reply: ReplySender<Result<IngestReport, WriteError>>,
    },
    EndRound {
        world: World,
        sport: SportId,
        reply: ReplySender<()>,
    },
    IngestWhole {
        world: World,
        news: NewsReader,
        whole: Whole,
        sender: Option<Sender>,
        reply: ReplySender<Result<IngestReport, WriteError>>,
    },
    Poll {
        poll: Box<Poll>,
        reply: ReplySender<Result<PollReport, WriteError>>,
    },
    RetainPolled {
        scope: PollScope,
        events: Vec<EventId>,
        markets: Vec<Box<str>>,
        reply: ReplySender<Result<u64, WriteError>>,
    },
    EndPolls {
        world: World,
        feed: Box<str>,
        kept_keys: Vec<Box<str>>,
        reply: ReplySender<Result<u64, WriteError>>,
    },
    MarkSimulated {
        who: Box<str>,
        reply: ReplySender<Result<(), WriteError>>,
    },
    Snapshot {
        progress: Arc<Progress>,
        reply: ReplySender<Result<Snapshot, WriteError>>,
    },
    Check {
        progress: Arc<Progress>,
        reply: ReplySender<Result<CheckReport, WriteError>>,
    },
    DropDamaged {
        who: Box<str>,
        reply: ReplySender<Result<u64, WriteError>>,
    },
    Forget {
        prepared: Box<PreparedForget>,
        reply: ReplySender<Result<ForgetOutcome, WriteError>>,
    },
    ForgetLines {
        event: ForgottenEvent,
        reply: ReplySender<Result<bool, WriteError>>,
    },
    BeginImport {
        world: World,
        sport: SportId,
        reply: ReplySender<Result<ImportStart, WriteError>>,
    },
    WriteImport {
        step: Box<ImportStep>,
        reply: ReplySender<Result<(), WriteError>>,
    },
    EndImport {
        log: ImportedLog,
        end: ImportEnd,
        reply: ReplySender<Result<bool, WriteError>>,
    },
    PublishNow {
        world: World,
        reply: ReplySender<()>,
    },
    Tick {
        reply: ReplySender<()>,
    },
}

impl FastOp {
    /// Does the operation and answers it. The caller may be gone: the operation is done nevertheless.
    pub(super) fn run(self, writer: &mut Writer) {
        match self {
            FastOp::IssueKey { new, who, reply } => drop(reply.send(writer.issue_key(*new, &who))),
            FastOp::RotateKey { id, grace_s, who, reply } => drop(reply.send(writer.rotate_key(&id, grace_s, &who))),
            FastOp::RotateOwnKey { id, presented, who, reply } => {
                drop(reply.send(writer.rotate_own_key(&id, presented, &who)));
            }
            FastOp::UndoRotation { id, who, reply } => drop(reply.send(writer.undo_rotation(&id, &who))),
            FastOp::RevokeKey { id, who, reply } => drop(reply.send(writer.revoke_key(&id, &who))),
            FastOp::SetKey { id, change, who, reply } => drop(reply.send(writer.set_key(&id, *change, &who))),
            FastOp::IssueToken { name, world, who, reply } => drop(reply.send(writer.issue_token(&name, world, &who))),
            FastOp::RotateToken { name, grace_s, who, reply } => {
                drop(reply.send(writer.rotate_token(&name, grace_s, &who)));
            }
            FastOp::RevokeToken { name, who, reply } => drop(reply.send(writer.revoke_token(&name, &who))),
            FastOp::TakeLeases { leases, reply } => drop(reply.send(writer.take_leases(&leases))),
            FastOp::SetMaintenance { until, who, reply } => drop(reply.send(writer.set_maintenance(until, &who))),
            FastOp::Audit { who, action, subject, detail, reply } => {
                drop(reply.send(writer.audit(&who, &action, &subject, detail)));
            }
            FastOp::ReadAudit { after, limit, reply } => drop(reply.send(writer.read_audit(after, limit))),
            FastOp::AuditTail { limit, reply } => drop(reply.send(writer.audit_tail(limit))),
            FastOp::LostUsage { reply } => drop(reply.send(writer.lost_usage().to_vec())),
            FastOp::FileBytes { reply } => drop(reply.send(writer.file_bytes())),
            FastOp::FeedBudget { feed, reply } => drop(reply.send(writer.feed_budget(&feed))),
            FastOp::PutFeedBudget { charge, reply } => drop(reply.send(writer.put_feed_budget(charge))),
            FastOp::Ping { reply } => drop(reply.send(())),
        }
    }
}

impl Op {
    /// The same. `meanwhile` runs the fast operations that are queued, wherever this one can let them run.
    pub(super) fn run(self, writer: &mut Writer, meanwhile: impl FnMut(&mut Writer)) {
        match self {
            Op::Ingest { world, news, end, charge, sender, reply } => {
                drop(reply.send(writer.ingest_charged(world, news, end, charge, sender)));
            }
            Op::EndRound { world, sport, reply } => {
                writer.end_round(world, sport);
                let _ = reply.send(());
            }
            Op::IngestWhole { world, news, whole, sender, reply } => {
                drop(reply.send(writer.ingest_whole(world, news.0, whole, sender, meanwhile)));
            }
            Op::Poll { poll, reply } => drop(reply.send(writer.poll(*poll))),
            Op::RetainPolled { scope, events, markets, reply } => {
                drop(reply.send(writer.retain_polled(&scope, &events, &markets)));
            }
            Op::EndPolls { world, feed, kept_keys, reply } => {
                drop(reply.send(writer.end_polls(world, &feed, &kept_keys, meanwhile)));
            }
            Op::MarkSimulated { who, reply } => drop(reply.send(writer.mark_simulated(&who))),
            Op::Snapshot { progress, reply } => drop(reply.send(writer.snapshot(&progress))),
            Op::Check { progress, reply } => drop(reply.send(writer.check(&progress))),
            Op::DropDamaged { who, reply } => drop(reply.send(writer.drop_damaged(&who))),
            Op::Forget { prepared, reply } => drop(reply.send(writer.forget(&prepared))),
            Op::ForgetLines { event, reply } => drop(reply.send(writer.forget_lines(&event))),
            Op::BeginImport { world, sport, reply } => drop(reply.send(writer.begin_import(world, sport))),
            Op::WriteImport { step, reply } => drop(reply.send(writer.write_import(*step))),
            Op::EndImport { log, end, reply } => drop(reply.send(writer.end_import(log, end))),
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
