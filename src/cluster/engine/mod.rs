//! What a cluster needs of an engine: an ordered log, the time, who holds what for how long, and what of the limits of keys is
//! given to which node.
//!
//! Everything here is decided by the engine, one request after the other, so all nodes see the same. `redis` is Redis or Valkey;
//! `memory` is an engine in this process, for tests.

#[cfg(test)]
pub mod memory;
#[cfg(feature = "cluster")]
pub mod redis;

use std::future::Future;
use std::time::Duration;

use crate::keys::{KeyId, KeyNeed, KeyShare, LimitSet, Recall, Unused};
use crate::model::EntryId;

/// Which log: a cluster has one after the other, of which each begins where the last was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LogIdentity {
    pub cluster: u64,
    pub epoch: u64,
}

/// An entry to be appended.
#[derive(Clone, Debug)]
pub struct NewEntry<'a> {
    pub node: &'a str,
    /// The node's own number of it, by which it knows it again.
    pub number: u64,
    /// Present if only the holder of the duty may append it.
    pub fence: Option<u64>,
    pub bytes: &'a [u8],
}

/// An entry of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    pub id: EntryId,
    /// The entry before it. A node that has applied another one is on a log that the engine has lost.
    pub previous: EntryId,
    pub node: Box<str>,
    pub number: u64,
    pub fence: Option<u64>,
    pub bytes: Vec<u8>,
}

/// What a node reports of itself, for as long as its lease.
#[derive(Clone, Debug)]
pub struct Heartbeat<'a> {
    pub node: &'a str,
    pub applied: EntryId,
    /// For whoever looks at the cluster.
    pub details: &'a str,
    /// From now on; one that was granted before stays. None if it is zero.
    pub lease: Duration,
}

/// The cluster as the engine sees it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterView {
    /// The engine's clock.
    pub now_ms: u64,
    /// Since when this server of the engine has had the log: it may have lost what was written shortly before.
    pub since_ms: u64,
    /// The last entry of the log.
    pub last: EntryId,
    /// Every node that is not forgotten, in the order of their names.
    pub nodes: Vec<NodeView>,
    pub duty: Option<DutyHolder>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    pub node: Box<str>,
    pub applied: EntryId,
    pub details: Box<str>,
    /// Until its lease ends; zero if it has ended.
    pub lease_ms: u64,
}

/// The node that polls and publishes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DutyHolder {
    pub node: Box<str>,
    /// Higher than that of every holder before it.
    pub fence: u64,
}

/// Why the engine did not do what it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EngineError {
    /// It may have been done.
    #[error("the engine does not answer: {0}")]
    Unreachable(Box<str>),
    #[error("the engine refuses: {0}")]
    Refused(Box<str>),
    /// Its log is not the one of this cluster, or ends before what a node has applied.
    #[error("the engine has lost the log of this cluster")]
    Lost,
    /// Another node holds the duty.
    #[error("another node polls and publishes by now")]
    Fenced,
}

/// An engine that holds the log of a cluster.
pub trait Engine: Send + Sync + 'static {
    /// Begins a log. `None` if there is one.
    fn create(&self, log: LogIdentity) -> impl Future<Output = Result<Option<EntryId>, EngineError>> + Send;

    /// Which log it holds.
    fn identity(&self) -> impl Future<Output = Result<Option<LogIdentity>, EngineError>> + Send;

    fn append(
        &self,
        log: LogIdentity,
        entry: NewEntry<'_>,
    ) -> impl Future<Output = Result<EntryId, EngineError>> + Send;

    /// The entries after one, at most so many; waits if there are none, and returns none if there are none by then. `Lost` if the
    /// log does not reach back that far.
    fn read(
        &self,
        after: EntryId,
        count: usize,
        wait: Duration,
    ) -> impl Future<Output = Result<Vec<LogEntry>, EngineError>> + Send;

    /// Reports a node, and returns what the others are doing.
    fn beat(
        &self,
        log: LogIdentity,
        beat: Heartbeat<'_>,
    ) -> impl Future<Output = Result<ClusterView, EngineError>> + Send;

    /// Takes the duty, or keeps it, for so long. `None` if another node has it.
    fn hold_duty(
        &self,
        log: LogIdentity,
        node: &str,
        lease: Duration,
    ) -> impl Future<Output = Result<Option<u64>, EngineError>> + Send;

    /// Gives the duty up, if the node has it.
    fn drop_duty(&self, node: &str) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Ends a node's lease, and forgets the node if it will not come back. Returns whether there was such a node.
    fn end_lease(&self, node: &str, is_forgotten: bool) -> impl Future<Output = Result<bool, EngineError>> + Send;

    /// Gives a node shares of the limits of keys, in the order of `needs`.
    fn share(
        &self,
        log: LogIdentity,
        node: &str,
        needs: &[(KeyId, KeyNeed)],
    ) -> impl Future<Output = Result<Vec<KeyShare>, EngineError>> + Send;

    /// Takes back what a node has not used, as the answer to a recall or because the node ends.
    fn give_back(
        &self,
        log: LogIdentity,
        node: &str,
        unused: &[(KeyId, Unused)],
        answered: Option<EntryId>,
    ) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Begins to count anew what is used of a key's day and month, and tells all nodes by a recall. What they have of it must
    /// have been given back before.
    fn reset_usage(&self, log: LogIdentity, key: &KeyId) -> impl Future<Output = Result<EntryId, EngineError>> + Send;

    /// Asks all nodes to give back what they have not used of limits of a key.
    fn recall(&self, key: &KeyId, limits: LimitSet) -> impl Future<Output = Result<EntryId, EngineError>> + Send;

    /// Whether every node, or every other one, has answered a recall or has no lease.
    fn is_recalled(&self, but: Option<&str>, recall: EntryId)
    -> impl Future<Output = Result<bool, EngineError>> + Send;

    /// The last recall.
    fn last_recall(&self) -> impl Future<Output = Result<EntryId, EngineError>> + Send;

    /// The recalls after one; waits if there are none.
    fn recalls(&self, after: EntryId, wait: Duration) -> impl Future<Output = Result<Vec<Recall>, EngineError>> + Send;
}
