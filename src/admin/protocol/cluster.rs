//! Answers about the cluster that a server is a node of.

use serde::{Deserialize, Serialize};

/// A cluster as one of its nodes sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterAnswer {
    /// The node that was asked.
    pub node: String,
    /// `following`, `cut off`, `stalled`, `lost`, `behind`, `unreadable`, `disagrees` or `name taken`.
    pub standing: String,
    /// More about it.
    pub detail: Option<String>,
    /// The last entry of the shared log that is in its file.
    pub position: String,
    /// How long ago it last had an answer of the engine; `null` if never.
    pub contact_ms: Option<u64>,
    /// The last entry of the shared log, as of then.
    pub last: Option<String>,
    pub nodes: Vec<NodeAnswer>,
}

/// The same in short, in the status of a server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// The node that was asked.
    pub node: String,
    /// As in [`ClusterAnswer`].
    pub standing: String,
    /// Nodes with a lease, as of its last contact with the engine.
    pub leased_nodes: usize,
}

/// A node as it reported itself last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeAnswer {
    pub name: String,
    pub version: Option<String>,
    pub address: Option<String>,
    pub started: Option<String>,
    pub position: String,
    /// How much older its last entry was than the last of the log, when it reported itself.
    pub behind_ms: u64,
    /// Until its lease ends; 0 if it has ended.
    pub lease_ms: u64,
    /// Whether it goes on when it is cut off.
    pub serves_when_cut_off: bool,
    /// Whether it polls and publishes.
    pub on_duty: bool,
}
