//! The way of an operation through a log that nodes share: it is entered by the node that was asked for it, applied by all,
//! and answered when that node has applied it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::oneshot;

use super::operation::{Operation, SharedOperation};
use super::{WriteError, Writer};
use crate::keys::KeyId;

pub type LogFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, WriteError>> + Send + 'a>>;

/// The names of nodes.
pub type NodesFuture<'a> = Pin<Box<dyn Future<Output = Vec<Box<str>>> + Send + 'a>>;

/// A log that nodes share.
pub trait SharedLog: fmt::Debug + Send + Sync {
    /// Enters an operation. Whoever waits for its answer gets it when the entry is applied here, and none if it is not known
    /// whether the operation has been entered.
    fn enter(&self, operation: SharedOperation, waiting: Waiting) -> LogFuture<'_, ()>;

    /// Waits until no node serves by what was before the entries that are in the log by now. Names those that may
    /// nevertheless: they are cut off, and go on.
    fn settled(&self) -> NodesFuture<'_>;

    /// Whether what is entered now is done. Not if it is for one node at a time, and another one's turn has begun.
    fn is_in_turn(&self) -> bool {
        true
    }

    /// Counts what is used of a key's day and month anew, on all nodes.
    fn reset_usage<'a>(&'a self, key: &'a KeyId) -> LogFuture<'a, ()>;
}

/// Hands the answer to an operation over, once the operation is in the file.
pub type Delivery = Box<dyn FnOnce() + Send>;

type RunOwn = dyn FnMut(SharedOperation, &mut Writer) -> Delivery + Send;

/// Somebody who waits for the answer to an operation.
pub struct Waiting(Box<RunOwn>);

impl fmt::Debug for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Waiting(…)")
    }
}

impl Waiting {
    pub(super) fn new<O>(reply: oneshot::Sender<O::Answer>) -> Self
    where
        O: Operation + TryFrom<SharedOperation>,
    {
        // An entry that could not be committed is applied again, and answered then.
        let reply = Arc::new(Mutex::new(Some(reply)));
        Waiting(Box::new(move |operation, writer| {
            let answer = O::try_from(operation).ok().map(|operation| operation.run(writer, &mut |_| {}));
            let reply = Arc::clone(&reply);
            Box::new(move || {
                let reply = reply.lock().unwrap_or_else(PoisonError::into_inner).take();
                if let (Some(reply), Some(answer)) = (reply, answer) {
                    // Whoever asked may be gone.
                    let _ = reply.send(answer);
                }
            })
        }))
    }

    /// Does the operation of an entry.
    pub(super) fn run(&mut self, operation: SharedOperation, writer: &mut Writer) -> Delivery {
        (self.0)(operation, writer)
    }
}
