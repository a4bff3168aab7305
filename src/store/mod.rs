//! The file: one redb database stores everything that must survive the process.
//!
//! The store owns the file and is the only module that uses redb. Its interface is in types of the model: a batch of
//! [`Change`]s is on disk, all or nothing, when [`Store::commit`] returns; [`Store::load`] returns everything that can be
//! trusted. Each row carries a checksum over its key and its bytes; a row that fails it, or that the model would refuse,
//! is reported and left out, never served. A file that is not ours, newer, damaged or truncated is refused with a
//! one-line error and stays byte for byte as it was. The numbers that stand for names, events and sports in the file
//! never leave it; a [`BookId`](crate::model::BookId) is the file's number of a bookmaker.
//!
//! The file's format has a number. An older file is copied and then upgraded when it is opened, a newer one is refused:
//! `care/upgrade` says how to add a step, `codec` how a row gains a field, `tables` how to add a table. `history` is the log
//! of what commits changed.
//!
//! It never serves requests, never decides what is news, and never keeps a read transaction beyond a call, except for a
//! [`Snapshot`].

mod care;
mod change;
mod codec;
mod commit_check;
mod deferred_backend;
mod encode_batch;
mod error;
mod guard;
mod handle;
mod history;
mod id_maps;
mod indexes;
mod load;
mod numbers;
mod open;
mod row_batch;
mod rows;
mod scan;
mod sync_catalogue;
mod table_keys;
mod tables;

#[cfg(test)]
mod tests;

/// For tests that provide their own storage.
pub use redb::{BackendError, StorageBackend};

pub use care::{CheckReport, CopyError, CopyReport, Existing, Integrity, Progress, Snapshot};
pub use change::{AuditEntry, AuditNote, BookOrigin, Change};
pub use error::{Damage, DamageList, OpenError, StoreError};
pub use guard::is_guarded;
pub use handle::{Store, StoreOptions};
pub use history::{
    EndsOf, Entries, EntryAt, EventChange, FoldedEvent, ForgetOutcome, ForgetProgress, ForgottenEvent, HistoryError,
    HistoryReader, ImportBuilder, ImportProblem, ImportedLog, LineBytes, LineRange, LogEntry, LogHead, LogId, LogWalk,
    LoggedChange, LoggedEntry, LoggedMove, LoggedRecord, LoggedTick, PreparedForget, PreparedImport, PreparedLines,
    RecordChange, SportChanges, SportFold, SportPath, TickChanges, new_epoch,
};
pub use load::{Loaded, LoadedEvent, LoadedPoll, LoadedSport, LoadedWorld, UnservedSport};
pub use open::BackendFactory;
