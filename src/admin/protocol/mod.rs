//! The commands of the admin interface and their answers, as JSON.
//!
//! A command is an object with its name in `command`: `{"command":"keys-revoke","id":"key_…"}`. Times are whole seconds
//! in ISO form, durations are numbers of seconds, and an answer names every field, `null` where there is no value.

mod cluster;
mod derived;
mod failure;
mod feeds;
mod history;
mod ingest;
mod keys;
mod service;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

pub use cluster::{ClusterAnswer, ClusterStatus, NodeAnswer};
pub use derived::{DerivedKind, DerivedOrder};
pub(super) use failure::FailureBody;
pub use failure::{Failure, FailureCode};
pub use feeds::{
    AddedAnswer, FailureAnswer, FeedAnswer, FeedsAnswer, PlanAnswer, RejectedAnswer, SkippedAnswer, SourceAnswer,
    TokenAnswer, UpstreamAnswer,
};
pub use history::{ForgetOrder, ForgottenAnswer, HistoryAnswer, HistoryOrder, LineAnswer, OutcomeAnswer, PointAnswer};
pub use ingest::WorldName;
pub use keys::{FieldSetting, IssueKey, KeyAnswer, LimitsAnswer, SecretText, SetKey};
pub use service::{
    AuditAnswer, BackupAnswer, BackupOrder, CheckAnswer, CheckOptions, CheckProblem, ConsoleAnswer, CountsAnswer,
    DroppedAnswer, KeyCounts, MaintenanceAnswer, MaintenanceSpan, ProgressAnswer, ReadyAnswer, ServerAnswer,
    SignedOutAnswer, StatusAnswer, WorldAnswer,
};

/// Every command, except for feed lines, which are a stream of their own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Command {
    KeysIssue(IssueKey),
    KeysList,
    KeysShow {
        /// The id of a key or its name, here and in the other commands.
        id: String,
    },
    KeysRotate {
        id: String,
        /// How long the old secret stays valid.
        #[serde(default)]
        grace_s: u32,
    },
    /// Takes the last rotation back, while the old secret is in its grace period.
    KeysRotateUndo {
        id: String,
    },
    KeysRevoke {
        id: String,
    },
    KeysSet(SetKey),
    FeedsToken {
        name: String,
        world: WorldName,
    },
    FeedsTokenRotate {
        name: String,
        /// How long the old token stays valid.
        #[serde(default)]
        grace_s: u32,
    },
    FeedsTokenRevoke {
        name: String,
    },
    Feeds {
        /// `null` is both.
        #[serde(default)]
        world: Option<WorldName>,
        /// Only sources that are stale.
        #[serde(default)]
        stale: bool,
    },
    Audit {
        /// The last entry already seen.
        #[serde(default)]
        after: Option<u64>,
        #[serde(default)]
        limit: Option<usize>,
    },
    /// The newest entries of the audit log, in their order.
    AuditTail {
        #[serde(default)]
        limit: Option<usize>,
    },
    /// What follows from the prices of a sport.
    Derived(DerivedOrder),
    /// What the prices of an event were.
    History(HistoryOrder),
    /// Delete the history of an event for good.
    HistoryForget(ForgetOrder),
    Status,
    MaintenanceOn {
        /// When it ends by itself; `null` lasts until it is ended.
        #[serde(default)]
        for_s: Option<u32>,
    },
    MaintenanceOff,
    Check(CheckOptions),
    Backup(BackupOrder),
    /// The progress of the running check or backup.
    Progress,
    Ready,
    /// The nodes of the cluster.
    Cluster,
    /// A link that opens the console once.
    ConsoleLink,
    /// Ends every session of the console.
    ConsoleSignOut,
}

impl Command {
    /// Whether it reads the whole file or all of a log, which takes time in proportion to it.
    pub fn is_long(&self) -> bool {
        matches!(self, Command::Check(_) | Command::Backup(_) | Command::HistoryForget(_))
    }
}

/// The answer to a command: the plain JSON of its variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Answer {
    Key(Box<KeyAnswer>),
    Keys(Vec<KeyAnswer>),
    Token(Box<TokenAnswer>),
    Feeds(Box<FeedsAnswer>),
    Audit(Vec<AuditAnswer>),
    /// Rows as the public API has them.
    Derived(Vec<serde_json::Value>),
    History(Box<HistoryAnswer>),
    Forgotten(ForgottenAnswer),
    Status(Box<StatusAnswer>),
    Maintenance(MaintenanceAnswer),
    Check(CheckAnswer),
    Backup(BackupAnswer),
    Progress(ProgressAnswer),
    Ready(ReadyAnswer),
    Cluster(Box<ClusterAnswer>),
    Console(ConsoleAnswer),
    SignedOut(SignedOutAnswer),
}
