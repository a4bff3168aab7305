//! What a cluster needs of an engine: an ordered log, the time, who holds what for how long, and what of the limits of keys is
//! given to which node.
//!
//! Everything here is decided by the engine, one request after the other, so all nodes see the same. `redis` is Redis or Valkey;
//! `memory` is an engine in this process, for tests.

#[cfg(test)]
pub mod memory;
#[cfg(not(feature = "cluster"))]
mod none;
#[cfg(feature = "cluster")]
pub mod redis;

use std::fmt;
use std::future::Future;
use std::time::Duration;

use crate::keys::{KeyId, KeyNeed, KeyShare, LimitSet, Recall, Unused};
use crate::model::EntryId;

/// The engine that servers use.
#[cfg(not(feature = "cluster"))]
pub type ServedEngine = none::NoEngine;
#[cfg(feature = "cluster")]
pub type ServedEngine = redis::RedisEngine;

/// How the engine is reached.
#[derive(Clone, Default)]
pub struct EngineOptions {
    pub url: Box<str>,
    /// The name of the cluster.
    pub name: Box<str>,
    pub user: Option<Box<str>>,
    pub password: Option<Box<str>>,
    /// Certificates in PEM form.
    pub ca: Option<Vec<u8>>,
    pub client: Option<ClientCertificate>,
}

/// A certificate and its key in PEM form.
#[derive(Clone)]
pub struct ClientCertificate {
    pub certificate: Vec<u8>,
    pub key: Vec<u8>,
}

/// Without what is secret.
impl fmt::Debug for ClientCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ClientCertificate(…)")
    }
}

/// Without what is secret.
impl fmt::Debug for EngineOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EngineOptions").field("url", &self.url).field("name", &self.name).finish_non_exhaustive()
    }
}

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
    /// See [`crate::model::Membership::file`].
    pub file: u64,
    pub applied: EntryId,
    /// For whoever looks at the cluster.
    pub details: &'a str,
    /// What must be the same on all nodes, as a digest.
    pub settings: &'a str,
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
    /// The last entry that has been removed.
    pub trimmed: EntryId,
    /// Every node that is not forgotten, in the order of their names.
    pub nodes: Vec<NodeView>,
    pub duty: Option<DutyHolder>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeView {
    pub node: Box<str>,
    pub applied: EntryId,
    /// How much older that was than the last entry, when it was reported.
    pub behind_ms: u64,
    pub details: Box<str>,
    /// Until its lease ends; zero if it has ended.
    pub lease_ms: u64,
    /// It has ended in good order.
    pub has_left: bool,
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
    /// Entries after what a node has applied have been removed.
    #[error("the log of this cluster does not reach back far enough")]
    Behind,
    /// Other nodes that have a lease have other settings.
    #[error("other nodes have other settings")]
    Disagrees,
    /// Its server was restarted less than a lease ago, and may have lost what nodes have applied.
    #[error("the engine has been restarted: what nodes have of its log is being compared, for as long as a lease")]
    Settling,
    /// Another node holds the duty.
    #[error("another node polls and publishes by now")]
    Fenced,
    /// Another file is that of a node of this name, which has a lease.
    #[error("another node has the name of this one: give each its own with cluster.node")]
    NameTaken,
}

/// An engine that holds the log of a cluster.
pub trait Engine: Send + Sync + 'static {
    /// Begins a log. `None` if there is one.
    fn create(&self, log: LogIdentity) -> impl Future<Output = Result<Option<EntryId>, EngineError>> + Send;

    /// The same in place of one that it has lost, or has lost entries of. `None` if it holds another one.
    fn create_anew(
        &self,
        lost: LogIdentity,
        log: LogIdentity,
    ) -> impl Future<Output = Result<Option<EntryId>, EngineError>> + Send;

    /// Which log it holds.
    fn identity(&self) -> impl Future<Output = Result<Option<LogIdentity>, EngineError>> + Send;

    fn append(
        &self,
        log: LogIdentity,
        entry: NewEntry<'_>,
    ) -> impl Future<Output = Result<EntryId, EngineError>> + Send;

    /// The entries after one, at most so many; waits if there are none, and returns none if there are none by then.
    fn read(
        &self,
        after: EntryId,
        count: usize,
        wait: Duration,
    ) -> impl Future<Output = Result<Vec<LogEntry>, EngineError>> + Send;

    /// Removes entries that are older than `keep`, and more of them if they take more memory than `bytes_max`. Those that a node
    /// with a lease has not applied stay.
    fn trim(
        &self,
        log: LogIdentity,
        keep: Duration,
        bytes_max: u64,
    ) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// Reports a node, and returns what the others are doing.
    fn beat(
        &self,
        log: LogIdentity,
        beat: Heartbeat<'_>,
    ) -> impl Future<Output = Result<ClusterView, EngineError>> + Send;

    /// What the nodes are doing, without reporting one.
    fn look(&self, log: LogIdentity) -> impl Future<Output = Result<ClusterView, EngineError>> + Send;

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

    /// Gives a node shares of the limits of keys, in the order of `needs`. `Settling` while it may have forgotten what it gave
    /// to a node that has not restated it.
    fn share(
        &self,
        log: LogIdentity,
        node: &str,
        needs: &[(KeyId, KeyNeed)],
    ) -> impl Future<Output = Result<Vec<KeyShare>, EngineError>> + Send;

    /// A node reports its shares of limits, after a restart at `since_ms`.
    fn restate(
        &self,
        log: LogIdentity,
        node: &str,
        holdings: &[(KeyId, KeyNeed)],
        since_ms: u64,
    ) -> impl Future<Output = Result<(), EngineError>> + Send;

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

    /// A node has so many streams of a key open. Returns whether all nodes with a lease together may have as many; if not, the
    /// node counts as having those that it had.
    fn put_streams(
        &self,
        log: LogIdentity,
        node: &str,
        key: &KeyId,
        open: u32,
        streams_max: u32,
    ) -> impl Future<Output = Result<bool, EngineError>> + Send;

    /// A node has no streams open.
    fn end_streams(&self, node: &str) -> impl Future<Output = Result<(), EngineError>> + Send;

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

/// An engine through which nodes send copies of their files to nodes that join. A copy has a name, and goes in pieces, of which
/// some may be on their way.
pub trait CopyRelay: Send + Sync + 'static {
    /// Asks whoever has the duty for a copy. To be asked again every second until its first piece is there.
    fn ask_for_copy(&self, copy: &str) -> impl Future<Output = Result<(), EngineError>> + Send;

    fn withdraw_ask(&self, copy: &str) -> impl Future<Output = Result<(), EngineError>> + Send;

    /// The next copy that was asked for, and by nobody sent yet.
    fn next_asked(&self) -> impl Future<Output = Result<Option<String>, EngineError>> + Send;

    /// Sends a piece. Returns how many are on their way.
    fn put_piece(&self, copy: &str, piece: &[u8]) -> impl Future<Output = Result<usize, EngineError>> + Send;

    /// How many pieces are on their way.
    fn pieces_waiting(&self, copy: &str) -> impl Future<Output = Result<usize, EngineError>> + Send;

    /// The next piece; waits for so long if there is none.
    fn take_piece(
        &self,
        copy: &str,
        wait: Duration,
    ) -> impl Future<Output = Result<Option<Vec<u8>>, EngineError>> + Send;

    /// Removes the pieces that are on their way.
    fn drop_pieces(&self, copy: &str) -> impl Future<Output = Result<(), EngineError>> + Send;
}
