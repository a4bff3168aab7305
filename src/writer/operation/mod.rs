//! The operations of the writer that change what the service serves.
//!
//! An operation is a value: what it does depends on nothing but the value, the state before it and the time at which it is
//! done. So it can be done here, or wherever else the same operations are done in the same order. Whatever is random
//! is drawn before, and is a part of the value.

mod keys;
mod news;
mod service;
mod tokens;

use super::{Poll, Publication, Sweep, Writer};

pub use keys::{IssueKey, RevokeKey, RotateKey, RotateOwnKey, SetKey, UndoRotation};
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
    IssueKey RotateKey RotateOwnKey UndoRotation RevokeKey SetKey
    IssueToken RotateToken RevokeToken
    Ingest IngestWhole Poll EndRound RetainPolled EndPoll PutFeedBudget
    SetMaintenance MarkSimulated WriteAudit
    Publication Sweep
}
