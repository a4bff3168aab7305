//! How long the writer takes.

use std::sync::atomic::{AtomicU64, Ordering};

use super::histogram::Histogram;

/// What the writer did, counted.
#[derive(Debug, Default)]
pub struct Writing {
    /// Commits that the file took.
    pub commits: Histogram,
    /// Publications of one sport of one world each.
    pub publications: Histogram,
    failures: AtomicU64,
}

impl Writing {
    /// Counts a commit that the file did not take.
    pub fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}
