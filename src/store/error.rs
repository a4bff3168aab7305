//! Errors of the file. Every message is one line that says what to do about it.

use std::fmt;
use std::io;
use std::time::Duration;

/// Why a file was not opened. Nothing in it was changed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    #[error(
        "no permission to use {place}: run oddsbox as the user who owns it, or give that user read and write access"
    )]
    Permission { place: String },
    #[error("{place} cannot be created, as a part of its path is not a directory: name a path inside a directory")]
    NotADirectory { place: String },
    #[error("{place} is a directory: name a file in it, such as {place}/oddsbox.redb")]
    IsADirectory { place: String },
    #[error("{place} is not an oddsbox file: name another path, or move that file away")]
    NotOurs { place: String },
    #[error(
        "{place} is empty, perhaps after a failed copy or a full disk: restore a backup with `oddsbox restore FILE`, or \
         remove the file to begin a new one"
    )]
    Empty { place: String },
    #[error("{place} is damaged or cut short ({detail}): restore a backup; the file was left as it is")]
    Damaged { place: String, detail: String },
    #[error("{place} is in use by another oddsbox (waited {waited:?}): stop that one, or send it the command instead")]
    InUse { place: String, waited: Duration },
    #[error("{place} has format {found}, and this oddsbox knows formats up to {known}: use a newer oddsbox")]
    NewerFormat { place: String, found: u32, known: u32 },
    #[error("{place} has format {found} and is not upgraded, as no copy of it could be made beside it: {error}")]
    NoCopy { place: String, found: u32, error: io::Error },
    #[error("{place} is gone: put the file back, or restart oddsbox to begin a new one")]
    Gone { place: String },
    #[error("{place} has no number left for the {what}: {limit} are in use")]
    NumbersSpent { place: String, what: String, limit: usize },
    #[error("the disk of {place} is full: free some room on it and try again")]
    DiskFull { place: String },
    #[error("{place} cannot be opened: {error}")]
    Io { place: String, error: io::Error },
}

impl OpenError {
    /// Classifies an I/O error of opening `place`.
    pub(super) fn from_io(place: &str, error: io::Error) -> Self {
        let place = place.to_owned();
        match error.kind() {
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => OpenError::Permission { place },
            io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => OpenError::NotADirectory { place },
            io::ErrorKind::IsADirectory => OpenError::IsADirectory { place },
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => OpenError::DiskFull { place },
            io::ErrorKind::UnexpectedEof => OpenError::Damaged { place, detail: error.to_string() },
            _ => OpenError::Io { place, error },
        }
    }

    /// Classifies an error of reading or writing `place` while it is being opened.
    pub(super) fn from_store(place: &str, error: StoreError) -> Self {
        match error {
            StoreError::Io(error) => OpenError::from_io(place, error),
            StoreError::DiskFull => OpenError::DiskFull { place: place.to_owned() },
            StoreError::Damaged(detail) => OpenError::Damaged { place: place.to_owned(), detail },
            other => OpenError::Damaged { place: place.to_owned(), detail: other.to_string() },
        }
    }
}

/// Why reading or writing failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Nothing of the batch was stored. Reopen when there is room, then commit it again.
    #[error("the disk is full: free some room on it")]
    DiskFull,
    /// The batch may be on disk as a whole or not at all: reopening finds out.
    #[error("the file cannot be read or written: {0}")]
    Io(io::Error),
    #[error("the file is damaged ({0}): run the check, or restore a backup")]
    Damaged(String),
    /// An earlier failure closed the file to writes.
    #[error("the file must be reopened first, as an earlier write to it failed")]
    NeedsReopen,
    /// The reading of a snapshot was cancelled, by its caller or because the file had to be reopened.
    #[error("the reading was cancelled: try again")]
    Cancelled,
    /// The file cannot hold the batch. Nothing of it was stored, and the file is fine.
    #[error("the change cannot be stored: {0}")]
    Refused(String),
}

impl StoreError {
    /// Whether writes stay impossible until [`Store::reopen`](super::Store::reopen).
    pub const fn needs_reopen(&self) -> bool {
        !matches!(self, StoreError::Refused(_) | StoreError::Cancelled)
    }

    /// Whether the disk failed, now or before: redb reads nothing more from it either.
    pub(super) const fn is_of_disk(&self) -> bool {
        matches!(self, StoreError::Io(_) | StoreError::DiskFull | StoreError::NeedsReopen)
    }
}

impl From<io::Error> for StoreError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => StoreError::DiskFull,
            io::ErrorKind::UnexpectedEof => StoreError::Damaged(error.to_string()),
            _ => StoreError::Io(error),
        }
    }
}

impl From<redb::Error> for StoreError {
    fn from(error: redb::Error) -> Self {
        match error {
            redb::Error::Io(error) => StoreError::from(error),
            redb::Error::PreviousIo | redb::Error::DatabaseClosed => StoreError::NeedsReopen,
            other => StoreError::Damaged(other.to_string()),
        }
    }
}

/// redb has an error type for each kind of call; all are converted the same way.
macro_rules! from_redb {
    ($($error:ty),*) => {$(
        impl From<$error> for StoreError {
            fn from(error: $error) -> Self {
                StoreError::from(redb::Error::from(error))
            }
        }
    )*};
}
from_redb!(redb::StorageError, redb::TableError, redb::CommitError, redb::TransactionError, redb::DatabaseError);

/// A row that cannot be trusted and was left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    pub table: &'static str,
    /// Description of the row.
    pub key: String,
    pub reason: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}: {}", self.table, self.key, self.reason)
    }
}

/// The damage found so far. All of it is counted and the first of it listed, so that a ruined file of millions of rows
/// does not fill the memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DamageList {
    listed: Vec<Damage>,
    count: u64,
}

impl DamageList {
    pub const LISTED_MAX: usize = 1000;

    pub fn listed(&self) -> &[Damage] {
        &self.listed
    }

    pub const fn count(&self) -> u64 {
        self.count
    }

    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(super) fn add(&mut self, table: &'static str, key: String, reason: impl fmt::Display) {
        self.count += 1;
        if self.listed.len() < Self::LISTED_MAX {
            // The key itself may be what is damaged.
            let key = if key.is_empty() { "a row without a name".to_owned() } else { key };
            self.listed.push(Damage { table, key, reason: reason.to_string() });
        }
    }

    pub(super) fn absorb(&mut self, other: DamageList) {
        let room = Self::LISTED_MAX - self.listed.len();
        self.count += other.count;
        self.listed.extend(other.listed.into_iter().take(room));
    }
}
