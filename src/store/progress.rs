//! How far a long reading is, for whoever watches it, and the way to break it off.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::error::StoreError;

/// Shared by the one who reads and the one who watches.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    is_broken_off: AtomicBool,
}

impl Progress {
    /// Rows read, of as many as there are to be read; 0 and 0 before it is known.
    pub fn rows(&self) -> (u64, u64) {
        let total = self.total.load(Ordering::Relaxed);
        (self.done.load(Ordering::Relaxed).min(total), total)
    }

    /// Ends the reading at its next row.
    pub fn break_off(&self) {
        self.is_broken_off.store(true, Ordering::Relaxed);
    }

    #[cfg(test)]
    pub(super) fn is_broken_off(&self) -> bool {
        self.is_broken_off.load(Ordering::Relaxed)
    }

    pub(super) fn expect(&self, rows: u64) {
        self.total.store(rows, Ordering::Relaxed);
    }

    /// One more row.
    pub(super) fn step(&self) -> Result<(), StoreError> {
        self.done.fetch_add(1, Ordering::Relaxed);
        if self.is_broken_off.load(Ordering::Relaxed) { Err(StoreError::BrokenOff) } else { Ok(()) }
    }
}
