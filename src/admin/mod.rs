//! The admin interface: the only way to change anything.
//!
//! - `protocol` what can be asked and what is answered, as JSON
//! - `execute` does it; the same code in a server and in a command that opens the file itself
//! - `export` gives a world out as feed lines, in `pieces`
//! - `intake` takes a stream of feed lines in, `spool` one that is taken whole or not at all
//! - `taking` reads lines from a request, `gunzip`ped if they are compressed
//! - `push` is what a feeder on another machine meets: one route, by its token; `drop_directory` takes files
//! - `socket` is the server's side: HTTP on a Unix socket that only its owner can reach; `respond` its routes
//! - `monitor` is an address on loopback for the routes that only look; `figures` the page of metrics
//! - `access` is a command's side: the server behind the socket (`client`) if one runs, else the file (`local`)
//! - `console` is the same for an operator's browser
//! - `restore` puts a backup in the place of the file, which no server may be using
//! - `clear_demo` deletes a simulated live world, so that the directory can be served
//! - `place` where in the data directory things are, `who` who acts
//!
//! Secrets of keys leave here in the answers to issue and rotate, and nowhere else.

mod access;
mod clear_demo;
mod client;
mod console;
mod context;
mod drop_directory;
mod drop_files;
mod execute;
mod export;
mod figures;
mod gunzip;
mod intake;
mod lines;
mod local;
mod monitor;
mod payload;
mod pieces;
mod place;
mod protocol;
mod push;
mod respond;
mod restore;
mod socket;
mod spool;
mod taking;
mod tally;
#[cfg(test)]
mod tests;
mod who;

pub use access::{Access, AdminAccess, AdminError, Source};
pub use clear_demo::{ClearAnswer, ClearError, clear_demo};
pub use console::{
    CONNECTIONS_MAX as CONSOLE_CONNECTIONS_MAX, ConsoleAddress, ConsoleError, ConsoleListener, Desk as ConsoleDesk,
    NewLink, NoRandom,
};
pub use context::{Context, ServerFacts};
pub use drop_directory::{DropDirectory, DropError};
pub use execute::execute;
pub use intake::{Feed, Intake};
pub use local::{CatalogueOrigin, LocalError, Setup, SetupError};
pub use monitor::{Monitor, MonitorError};
pub use place::{DataDir, PlaceError};
pub use protocol::{
    AddedAnswer, Answer, AuditAnswer, BackupAnswer, BackupOrder, CheckAnswer, CheckOptions, CheckProblem, Command,
    ConsoleAnswer, CountsAnswer, DroppedAnswer, Example, Failure, FailureAnswer, FailureCode, FeedAnswer, FeedsAnswer,
    IngestAnswer, IngestOptions, IssueKey, KeyAnswer, KeyCounts, LimitsAnswer, MaintenanceAnswer, MaintenanceSpan,
    PayloadOptions, ProgressAnswer, ReadyAnswer, SecretText, ServerAnswer, SetKey, Setting, SignedOutAnswer,
    SourceAnswer, StatusAnswer, TokenAnswer, UpstreamAnswer, WorldAnswer, WorldName,
};
pub use push::PushDoor;
pub use restore::{Carried, RestoreAnswer, RestoreError, RestoreOrder, restore};
pub use socket::{BindError, Listener};
pub use who::{own_name, user_name};
