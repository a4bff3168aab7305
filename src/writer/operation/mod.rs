//! The operations of the writer that change what the service serves.
//!
//! An operation is a value: what it does depends on nothing but the value, the state before it and the time at which it is
//! done. So it can be done here, or wherever else the same operations are done in the same order. Whatever is random
//! is drawn before, and is a part of the value.

mod keys;
mod news;
mod service;
mod tokens;

use std::sync::Arc;

use super::{FeederError, IngestReport, KeyError, Poll, PollReport, Publication, Sweep, WriteError, Writer};
use crate::keys::{Feeder, KeyEntry};

pub use keys::{IssueKey, RecordUse, RevokeKey, RotateKey, RotateOwnKey, SetKey, UndoRotation};
pub use news::{EndPoll, EndRound, Ingest, IngestWhole, NewsReader, PutFeedBudget, RetainPolled};
pub use service::{MarkSimulated, PublishNow, SetMaintenance, WriteAudit};
pub use tokens::{IssueToken, RevokeToken, RotateToken};

/// Called by a long operation wherever others may run: those of the fast lane that are queued.
pub type Meanwhile<'a> = &'a mut dyn FnMut(&mut Writer);

/// The lane in which an operation waits for the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// For what never reads or changes a world: it may run between two operations of the other lane, and also during one
    /// that has not begun to write.
    Fast,
    /// In the order in which they came.
    Other,
}

pub trait Operation: Send + 'static {
    type Answer: Send + 'static;

    const LANE: Lane;

    fn run(self, writer: &mut Writer, meanwhile: Meanwhile<'_>) -> Self::Answer;
}

/// The key or the feeder as it is in force after the operation.
type KeyAnswer = Result<Arc<KeyEntry>, KeyError>;
type TokenAnswer = Result<Arc<Feeder>, FeederError>;
type WriteAnswer<T = ()> = Result<T, WriteError>;

/// Defines the operations: the lane of each, its answer, and what it does.
macro_rules! operations {
    ($($lane:ident $name:ident -> $answer:ty = $run:expr;)*) => {
        $(impl Operation for $name {
            type Answer = $answer;

            const LANE: Lane = Lane::$lane;

            fn run(self, writer: &mut Writer, meanwhile: Meanwhile<'_>) -> $answer {
                let run: fn(Self, &mut Writer, Meanwhile<'_>) -> $answer = $run;
                run(self, writer, meanwhile)
            }
        })*
    };
}

operations! {
    Fast IssueKey -> KeyAnswer = |issue, writer, _| writer.put_new_key(issue);
    Fast RotateKey -> KeyAnswer = |rotation, writer, _| writer.put_rotated_key(rotation);
    Fast RotateOwnKey -> KeyAnswer = |rotation, writer, _| writer.rotate_own_key(rotation);
    Fast UndoRotation -> KeyAnswer = |undo, writer, _| writer.undo_rotation(&undo.id, &undo.who);
    Fast RevokeKey -> KeyAnswer = |revocation, writer, _| writer.revoke_key(&revocation.id, &revocation.who);
    Fast SetKey -> KeyAnswer = |set, writer, _| writer.set_key(&set.id, set.change, &set.who);
    Fast RecordUse -> WriteAnswer = |record, writer, _| writer.record_use(&record.uses);

    Fast IssueToken -> TokenAnswer = |issue, writer, _| writer.put_new_token(issue);
    Fast RotateToken -> TokenAnswer = |rotation, writer, _| writer.put_rotated_token(rotation);
    Fast RevokeToken -> TokenAnswer = |revocation, writer, _| writer.revoke_token(&revocation.name, &revocation.who);

    Other Ingest -> WriteAnswer<IngestReport> = |ingest, writer, _| {
        writer.ingest_charged(ingest.world, ingest.news, ingest.is_end, ingest.charge, ingest.sender)
    };
    Other IngestWhole -> WriteAnswer<IngestReport> = |ingest, writer, meanwhile| {
        writer.ingest_whole(ingest.world, ingest.news.0, ingest.whole, ingest.sender, meanwhile)
    };
    Other Poll -> WriteAnswer<PollReport> = |poll, writer, _| writer.poll(poll);
    Other EndRound -> () = |round, writer, _| writer.end_round(round.world, round.sport);
    Other RetainPolled -> WriteAnswer<u64> = |kept, writer, _| {
        writer.retain_polled(&kept.scope, &kept.events, &kept.markets)
    };
    Other EndPoll -> WriteAnswer<u64> = |poll, writer, _| writer.end_poll(poll.world, &poll.scope);
    Fast PutFeedBudget -> WriteAnswer = |budget, writer, _| writer.put_feed_budget(budget.0);

    Fast SetMaintenance -> WriteAnswer = |set, writer, _| writer.set_maintenance(set.until, &set.who);
    Other MarkSimulated -> WriteAnswer = |mark, writer, _| writer.mark_simulated(&mark.who);
    Fast WriteAudit -> WriteAnswer = |note, writer, _| {
        writer.audit(&note.who, &note.action, &note.subject, note.detail)
    };
    Other Publication -> WriteAnswer = |publication, writer, _| writer.publish(&publication);
    Other PublishNow -> () = |publish, writer, _| writer.publish_now(publish.world);
    Other Sweep -> WriteAnswer = |sweep, writer, _| writer.sweep(sweep);
}

/// Defines [`SharedOperation`] and its conversions.
macro_rules! shared_operations {
    ($($name:ident)*) => {
        /// An operation of any kind, for a log that nodes share.
        #[derive(Debug)]
        pub enum SharedOperation {
            $($name($name),)*
        }

        $(impl From<$name> for SharedOperation {
            fn from(operation: $name) -> Self {
                SharedOperation::$name(operation)
            }
        }

        impl TryFrom<SharedOperation> for $name {
            type Error = SharedOperation;

            fn try_from(operation: SharedOperation) -> Result<Self, SharedOperation> {
                match operation {
                    SharedOperation::$name(operation) => Ok(operation),
                    other => Err(other),
                }
            }
        })*

        impl SharedOperation {
            /// Whether it may end what a key or a token can do: whoever asked for it waits until every node has done it.
            pub fn ends_access(&self) -> bool {
                use SharedOperation as Op;
                matches!(
                    self,
                    Op::RotateKey(_)
                        | Op::RotateOwnKey(_)
                        | Op::UndoRotation(_)
                        | Op::RevokeKey(_)
                        | Op::SetKey(_)
                        | Op::RotateToken(_)
                        | Op::RevokeToken(_)
                )
            }

            /// Whether whoever asked for it waits until other nodes have done it: a node that has says so at once.
            pub fn is_awaited(&self) -> bool {
                self.ends_access() || matches!(self, SharedOperation::IssueKey(_) | SharedOperation::IssueToken(_))
            }

            /// For an operation that nobody here waits for.
            pub fn run_unanswered(self, writer: &mut Writer) {
                match self {
                    $(SharedOperation::$name(operation) => drop(operation.run(writer, &mut |_| {})),)*
                }
            }
        }
    };
}

shared_operations! {
    IssueKey RotateKey RotateOwnKey UndoRotation RevokeKey SetKey RecordUse
    IssueToken RotateToken RevokeToken
    Ingest IngestWhole Poll EndRound RetainPolled EndPoll PutFeedBudget
    SetMaintenance MarkSimulated WriteAudit
    Publication Sweep
}
