//! The feed line: one JSON object a line, the format in which news is pushed, kept in files, exported and imported.
//!
//! [`read()`] turns one line into news or says why it cannot, naming the field; [`write()`] turns news into the line that
//! reads back as exactly the same news. Prices and points are taken from their text, never through a float. Nothing
//! here panics, whatever the bytes, and nothing here knows what is already stored.

pub(super) mod field;
mod history;
pub(super) mod outcomes;
mod read;
mod time;
mod write;

#[cfg(test)]
mod tests;

pub use history::{HistoryLine, read_history, write_source, write_tick};
pub use read::read;
pub(in crate::ingest) use read::unknown_market;
pub use write::write;

use crate::model::{News, Reason};

/// Longer lines are rejected unparsed; no real one comes near it.
pub const LINE_BYTES_MAX: usize = 1 << 20;

/// As long as a name may be.
pub const TEXT_BYTES_MAX: usize = 200;

/// What a line contains.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedLine {
    pub news: News,
    /// The outcomes of an odds line that were left out; the others are in the news.
    pub dropped: Vec<DroppedOutcome>,
}

/// An outcome that was left out of its record, alone or with its group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DroppedOutcome {
    pub name: Box<str>,
    pub reason: Reason,
}

/// Why a line was rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {detail}")]
pub struct Rejection {
    pub reason: Reason,
    /// For people: the field at fault and what it takes.
    pub detail: Box<str>,
}

impl Rejection {
    pub(crate) fn new(reason: Reason, detail: impl Into<Box<str>>) -> Self {
        Rejection { reason, detail: detail.into() }
    }
}
