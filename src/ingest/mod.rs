//! Every way in for data, and the one path that all of it takes to the writer:
//!
//! 1. Bytes arrive: in a request (`read_body`, from the admin interface or from [`push`](PushInterface)), in a file
//!    (`drop_directory`) or in the answer of an upstream (`poll`). The `simulator` makes its news itself.
//! 2. They are decoded within bounds: `gunzip` inflates, `lines` splits, `spool` keeps a strict input until its end,
//!    `payload` collects a payload. `history` takes what prices were in the past.
//! 3. [`wire`] and [`the_odds_api`] turn them into validated [`News`](crate::model::News), or reject them with a reason.
//! 4. `delivery` hands the news to the writer and counts what was accepted and rejected, in the feed's account
//!    (`ledger`, with a few examples of what was `rejected`) and in the report on the input (`report`).
//!
//! Nothing here knows who issues commands or how a server is composed: `admin` and `server` use this module, never the
//! other way round.

mod delivery;
mod drop_directory;
mod error;
mod feed;
mod gunzip;
mod history;
mod ledger;
mod lines;
mod options;
mod payload;
mod poll;
mod push;
mod read_body;
mod rejected;
mod report;
mod simulator;
mod spool;
mod stream;
#[cfg(test)]
pub(crate) mod tests;
pub mod the_odds_api;
pub mod wire;

pub use drop_directory::{DropDirectory, DropError};
pub use error::{IngestError, IngestErrorKind};
pub use feed::{Feed, IngestContext};
pub use history::HistoryStream;
pub use ledger::{Account, FeedKind, Ledger, SkippedPoll, Upstream, UpstreamPlan};
pub use options::{HistoryInput, IngestOptions, InputOptions, PayloadOptions};
pub use payload::PayloadBuffer;
pub use poll::{FeedError, PlanLimit, PollSettings, Pollers};
pub use push::PushInterface;
pub use read_body::{BodyTerms, InterruptedInput, drain, read_history, read_lines, read_payload};
pub use rejected::{RejectedMessage, RejectedMessages};
pub use report::{IngestSummary, ReasonCounts, RejectedLine};
pub use simulator::{Simulation, Simulator};
pub use stream::LineStream;
