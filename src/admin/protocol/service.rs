//! Answers about the service itself: its condition, its file, its audit log.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::cluster::ClusterStatus;
use super::keys::SecretText;

/// One entry of the audit log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditAnswer {
    pub sequence: u64,
    pub at: String,
    pub who: String,
    pub action: String,
    pub subject: String,
    pub detail: String,
}

/// How the service is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StatusAnswer {
    /// The worse of the two worlds': `ok`, `degraded` or `maintenance`.
    pub status: String,
    pub version: String,
    pub time: String,
    /// `null` when no server runs and the file was read instead.
    pub server: Option<ServerAnswer>,
    pub maintenance: Option<MaintenanceSpan>,
    /// Whether the file takes changes.
    pub writable: bool,
    pub file_bytes: u64,
    pub keys: KeyCounts,
    pub worlds: CountsAnswer,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ServerAnswer {
    pub ready: bool,
    pub address: SocketAddr,
    /// Where feed lines are taken from other machines; `null` if they are not.
    #[serde(default)]
    pub ingest_address: Option<SocketAddr>,
    /// Whether that address speaks TLS.
    pub tls: bool,
    pub started: String,
    pub uptime_s: u64,
    pub connections: u64,
    pub requests: u64,
    pub requests_per_second: f64,
    /// `null` for a single node.
    #[serde(default)]
    pub cluster: Option<ClusterStatus>,
}

impl ServerAnswer {
    pub fn scheme(&self) -> &'static str {
        if self.tls { "https" } else { "http" }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyCounts {
    pub active: u64,
    pub revoked: u64,
    pub expired: u64,
}

/// What each world holds.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountsAnswer {
    pub sandbox: WorldAnswer,
    pub live: WorldAnswer,
}

/// One world: its status as its keys see it, and its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorldAnswer {
    pub status: String,
    /// Whether its prices are invented: always in the sandbox, in the live world after `oddsbox demo`.
    pub simulated: bool,
    pub sports_active: usize,
    /// Scheduled or live.
    pub events: usize,
    /// One for each bookmaker and market of an event.
    pub records: usize,
    pub sources: usize,
    pub sources_stale: usize,
    /// When the oldest prices in the log of changes were published; `null` if there are none.
    #[serde(default)]
    pub history_since: Option<String>,
    /// The changes and the bytes of the log.
    #[serde(default)]
    pub history_changes: u64,
    #[serde(default)]
    pub history_bytes: u64,
}

/// A time of maintenance.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaintenanceSpan {
    pub since: String,
    /// `null` lasts until it is ended.
    pub until: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MaintenanceAnswer {
    pub maintenance: Option<MaintenanceSpan>,
}

/// How a check is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckOptions {
    /// Have the database's own pages checked as well, while a server runs: every change waits for that.
    pub pages: bool,
    /// Take out what is damaged, after a copy of the file was made: only while no server runs.
    pub drop_damaged: bool,
}

/// A copy of the file to be made.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackupOrder {
    /// An absolute path. The one who has the file open writes it.
    pub file: PathBuf,
    /// Replace a file that is there.
    #[serde(default)]
    pub force: bool,
}

/// A copy that was made, read back and found to be the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BackupAnswer {
    pub file: PathBuf,
    pub bytes: u64,
    pub records: u64,
    pub seconds: f64,
    /// Records that were damaged before, and are in the copy as they were.
    pub damaged: u64,
}

/// How far the reading of the whole file is that is under way: a backup or a check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgressAnswer {
    /// `null` when there is none.
    pub under_way: Option<String>,
    pub rows_done: u64,
    pub rows_total: u64,
}

/// What a check of the file found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckAnswer {
    pub clean: bool,
    /// `sound`, `repaired`, `broken` or `unchecked`: what the database says of its own pages.
    pub integrity: String,
    pub integrity_detail: Option<String>,
    /// The rows of each table.
    pub rows: BTreeMap<String, u64>,
    pub problem_count: u64,
    /// The first of them.
    pub problems: Vec<CheckProblem>,
    /// What to do about it; `null` when there is nothing to do.
    pub advice: Option<String>,
    /// The result of the repair, if one was requested.
    pub dropped: Option<DroppedAnswer>,
}

/// Damaged rows that were taken out; the report is of the file before that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedAnswer {
    pub rows: u64,
    /// The file as it was.
    pub copy: PathBuf,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckProblem {
    pub table: String,
    pub key: String,
    pub reason: String,
}

/// A way into the console.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConsoleAnswer {
    /// It opens once.
    pub url: SecretText,
    pub expires: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignedOutAnswer {
    /// How many sessions ended.
    pub sessions: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyAnswer {
    pub ready: bool,
}
