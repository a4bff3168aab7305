//! A snapshot of the file, for reading it as a whole beside the writer, and the progress of such a reading.
//!
//! A snapshot is one read transaction: its reader sees no later commit, and blocks none. While it is open the file cannot
//! reuse the pages that the writer replaces, so it grows by what is written meanwhile: a snapshot is for readings that
//! only the disk paces, and [`Snapshot::copy_to`] fails when the file has doubled. It also keeps the file open, so a
//! store that has to reopen its file cancels it.

use std::fmt;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use redb::{ReadTransaction, ReadableDatabase};

use super::check::{CheckReport, Integrity, check_rows};
use crate::store::deferred_backend::DeferredBackend;
use crate::store::error::StoreError;
use crate::store::handle::Store;

pub struct Snapshot {
    pub(super) txn: ReadTransaction,
    pub(super) backend: DeferredBackend,
    pub(super) progress: Arc<Progress>,
}

impl Store {
    /// The file as the last commit left it. `progress` follows a reading of it, and can cancel it.
    pub fn snapshot(&mut self, progress: &Arc<Progress>) -> Result<Snapshot, StoreError> {
        let snapshot = self.reading(|_, file| {
            Ok(Snapshot { txn: file.db.begin_read()?, backend: file.backend.clone(), progress: Arc::clone(progress) })
        })?;
        self.snapshots.retain(|progress| progress.strong_count() > 0);
        self.snapshots.push(Arc::downgrade(progress));
        Ok(snapshot)
    }

    /// Cancels every reading of a snapshot, as they keep the file open.
    pub(in crate::store) fn cancel_snapshots(&mut self) {
        for progress in self.snapshots.drain(..).filter_map(|progress: Weak<Progress>| progress.upgrade()) {
            progress.cancel();
        }
    }
}

impl Snapshot {
    /// Reads every row, follows every reference and compares every index with its rows. The database's own pages are
    /// not checked: that needs exclusive use of the file.
    pub fn check(self) -> Result<CheckReport, StoreError> {
        let found = check_rows(&self.txn, &self.progress)?;
        Ok(CheckReport { rows: found.rows, problems: found.problems, integrity: Integrity::Unchecked })
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("progress", &self.progress).finish_non_exhaustive()
    }
}

/// Progress of a long reading, shared by the reader and its observers.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    is_cancelled: AtomicBool,
}

impl Progress {
    /// Rows read and rows to read; 0 and 0 before the total is known.
    pub fn rows(&self) -> (u64, u64) {
        let total = self.total.load(Ordering::Relaxed);
        (self.done.load(Ordering::Relaxed).min(total), total)
    }

    /// Ends the reading at its next row.
    pub fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(in crate::store) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    pub(super) fn expect(&self, rows: u64) {
        self.total.store(rows, Ordering::Relaxed);
    }

    /// Counts one more row.
    pub(super) fn step(&self) -> Result<(), StoreError> {
        self.done.fetch_add(1, Ordering::Relaxed);
        if self.is_cancelled.load(Ordering::Relaxed) { Err(StoreError::Cancelled) } else { Ok(()) }
    }
}
