//! The admin interface: the only way to change anything.
//!
//! - `protocol` what can be asked and what is answered, as JSON
//! - `execute` does it; the same code in a server and in a command that opens the file itself
//! - `export` writes a world or its history as lines, in `pieces`
//! - `socket` is the server's side: HTTP on a Unix socket that only its owner can reach; `respond` its routes
//! - `monitor` is an address on loopback for the read-only routes; `metrics` the page of metrics
//! - `access` is a command's side: the server behind the socket (`client`) if one runs, else the file (`local`)
//! - `console` is the interface for an operator's browser
//! - `restore` replaces the file by a backup while no server runs
//! - `cluster` makes the file that of a node of a cluster, or of a single node again, while no server runs
//! - `clear_demo` deletes a simulated live world, so that the directory can be served
//! - `data_dir` the paths in the data directory, `who` the name of the acting user
//!
//! Secrets of keys leave here in the answers to issue and rotate, and nowhere else.

mod access;
mod clear_demo;
mod client;
mod cluster;
mod console;
mod context;
mod data_dir;
mod execute;
mod export;
mod join;
mod local;
mod metrics;
mod monitor;
mod pieces;
mod protocol;
mod respond;
mod restore;
mod socket;
#[cfg(test)]
mod tests;
mod who;

pub use access::{Access, AdminAccess, AdminError, PieceSource};
pub use clear_demo::{ClearAnswer, ClearError, clear_demo};
pub use cluster::{ClusterError, MembershipAnswer, init_cluster, leave_cluster, reseed_cluster};
pub use console::{
    CONNECTIONS_MAX as CONSOLE_CONNECTIONS_MAX, ConsoleAddress, ConsoleError, ConsoleListener, ConsoleSessions,
    NewLink, NoRandom,
};
pub use context::{Context, ServerFacts};
pub use data_dir::{DataDir, DataDirError};
pub use execute::execute;
pub use export::{ExportOptions, HistoryRange};
#[cfg(test)]
pub(crate) use export::{export_history, export_world};
pub use join::{JoinError, join_cluster};
pub use local::{CatalogueOrigin, LocalError, Setup, SetupError};
pub use monitor::{Monitor, MonitorError};
pub use protocol::{
    AddedAnswer, Answer, AuditAnswer, BackupAnswer, BackupOrder, CheckAnswer, CheckOptions, CheckProblem,
    ClusterAnswer, ClusterStatus, Command, ConsoleAnswer, CountsAnswer, DerivedKind, DerivedOrder, DroppedAnswer,
    Failure, FailureAnswer, FailureCode, FeedAnswer, FeedsAnswer, FieldSetting, ForgetOrder, ForgottenAnswer,
    HistoryAnswer, HistoryOrder, IssueKey, KeyAnswer, KeyCounts, LimitsAnswer, LineAnswer, MaintenanceAnswer,
    MaintenanceSpan, NodeAnswer, OutcomeAnswer, PlanAnswer, PointAnswer, ProgressAnswer, ReadyAnswer, RejectedAnswer,
    SecretText, ServerAnswer, SetKey, SignedOutAnswer, SkippedAnswer, SourceAnswer, StatusAnswer, TokenAnswer,
    UpstreamAnswer, WorldAnswer, WorldName,
};
pub use restore::{Carried, RestoreAnswer, RestoreError, RestoreOrder, restore};
pub use socket::{BindError, Listener};
pub use who::{own_name, user_name};
