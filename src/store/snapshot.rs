//! The file as it is at one moment, for reading it as a whole beside the writer.
//!
//! A snapshot is one read transaction: whoever has it sees no later commit, and keeps nobody from committing. While it
//! lives the file cannot use again what the writer replaces, so it grows by what is written meanwhile: it is for
//! readings that the disk alone paces, and [`Snapshot::copy_to`] ends itself when the file has doubled. It keeps the
//! file open as well; a store that has to reopen its file breaks it off.

use std::fmt;
use std::sync::{Arc, Weak};

use redb::{ReadTransaction, ReadableDatabase};

use super::check::{CheckReport, Integrity, checked};
use super::error::StoreError;
use super::gate::Gate;
use super::handle::Store;
use super::progress::Progress;

pub struct Snapshot {
    pub(super) txn: ReadTransaction,
    pub(super) gate: Gate,
    pub(super) progress: Arc<Progress>,
}

impl Store {
    /// The file as the last commit left it. `progress` tells how far a reading of it is, and breaks it off.
    pub fn snapshot(&mut self, progress: &Arc<Progress>) -> Result<Snapshot, StoreError> {
        let snapshot = self.reading(|_, file| {
            Ok(Snapshot { txn: file.db.begin_read()?, gate: file.gate.clone(), progress: Arc::clone(progress) })
        })?;
        self.readings.retain(|reading| reading.strong_count() > 0);
        self.readings.push(Arc::downgrade(progress));
        Ok(snapshot)
    }

    /// Ends every reading, as they keep the file open.
    pub(super) fn break_off_readings(&mut self) {
        for progress in self.readings.drain(..).filter_map(|reading: Weak<Progress>| reading.upgrade()) {
            progress.break_off();
        }
    }
}

impl Snapshot {
    /// Reads every row, follows every reference and compares every index with its rows. The database's own pages are
    /// not looked at: that takes the file for itself.
    pub fn check(self) -> Result<CheckReport, StoreError> {
        let found = checked(&self.txn, &self.progress)?;
        Ok(CheckReport { rows: found.rows, problems: found.problems, integrity: Integrity::Unchecked })
    }
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("progress", &self.progress).finish_non_exhaustive()
    }
}
