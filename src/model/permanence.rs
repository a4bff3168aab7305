//! How long an answer about the past stays the same.

/// How long what the log has of a time stays the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Permanence {
    /// Until the next entry.
    Current,
    /// Until more history is imported.
    Imported,
    /// For ever.
    Final,
}
