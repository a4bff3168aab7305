//! The file: one redb database keeps everything that must outlive the process.
//!
//! The store owns the file and is the only module that knows redb. It speaks the model's language: a batch of
//! [`Change`]s goes in and is on disk, all or nothing, when [`Store::commit`] returns; [`Store::load`] gives back
//! everything that can be trusted. Each row carries a checksum over its key and its bytes; a row that fails it, or that
//! the model would refuse, is reported and left out, never served. A file that is not ours, newer, damaged or cut short
//! is refused with one clear line and stays byte for byte as it was. The numbers under which the file keeps names,
//! events and sports never leave it; a [`BookId`](crate::model::BookId) is the file's number of a bookmaker.
//!
//! The file's format has a number. An older file is copied and then upgraded when it is opened, a newer one is refused:
//! `upgrade` says how to add a step, `codec` how a row gains a field.
//!
//! It never serves requests, never decides what is news, and never holds a read transaction for longer than a call.

mod audit;
mod batch;
mod books;
mod called;
mod catalogue;
mod change;
mod check;
mod codec;
mod commit_check;
mod copy;
mod drop_damaged;
mod error;
mod gate;
mod handle;
mod load;
mod load_sport;
mod loaded;
mod mirror;
mod names;
mod place;
mod probe;
mod progress;
mod rows;
mod scan;
mod settle;
mod snapshot;
mod sports;
mod stage;
mod sweep;
mod tables;
mod unused_books;
mod upgrade;

#[cfg(test)]
mod tests;

/// What a test needs to put its own storage under a store.
pub use redb::{BackendError, StorageBackend};

pub use change::{AuditEntry, AuditNote, BookOrigin, Change};
pub use check::{CheckReport, Integrity};
pub use copy::{CopyError, CopyReport, Existing};
pub use error::{Damage, DamageList, OpenError, StoreError};
pub use handle::{Store, StoreOptions};
pub use loaded::{Loaded, LoadedEvent, LoadedPoll, LoadedSport, LoadedWorld, UnservedSport};
pub use place::BackendFactory;
pub use progress::Progress;
pub use snapshot::Snapshot;
