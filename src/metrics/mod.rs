//! Counters and histograms that any module may update and read. A leaf: it depends on no other module.
//!
//! - [`Traffic`]: requests and connections of the public API, and their [`History`] over the last hour
//! - [`WriterMetrics`]: durations of commits and publications
//! - [`Histogram`]: durations by bucket
//! - [`MetricsPage`]: the Prometheus text format; [`process`]: figures of this process from the operating system
//!
//! An update takes no lock, allocates nothing and is rarely contended. No label has a value that grows with the number
//! of keys, addresses or requests.

mod histogram;
mod history;
mod page;
pub mod process;
mod streams;
mod traffic;
mod work;

use std::sync::atomic::{AtomicU64, Ordering};

pub use histogram::{Histogram, HistogramSnapshot};
pub use history::{History, HistoryStep};
pub use page::{Kind, MetricsPage};
pub use streams::StreamCounts;
pub use traffic::{OpenConnection, Totals, Traffic};
pub use work::{WaitingForWork, WorkCounts};

/// Counters and durations of the writer.
#[derive(Debug, Default)]
pub struct WriterMetrics {
    /// Successful commits.
    pub commits: Histogram,
    /// Publications, each of one sport of one world.
    pub publications: Histogram,
    /// Keyframes of the log.
    pub keyframes: Histogram,
    /// Packs of entries of the log.
    pub packs: Histogram,
    /// Pieces of lines that were committed.
    pub lines: Histogram,
    /// Removals of old parts of the log.
    pub trims: Histogram,
    /// The log of each world.
    pub logs: [LogSize; 2],
    failures: AtomicU64,
}

/// How large a log is.
#[derive(Debug, Default)]
pub struct LogSize {
    entries: AtomicU64,
    changes: AtomicU64,
    bytes: AtomicU64,
}

impl LogSize {
    pub fn set(&self, entries: u64, changes: u64, bytes: u64) {
        self.entries.store(entries, Ordering::Relaxed);
        self.changes.store(changes, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// How many entries were ever written.
    pub fn entries(&self) -> u64 {
        self.entries.load(Ordering::Relaxed)
    }

    /// Of the entries that are kept.
    pub fn changes(&self) -> u64 {
        self.changes.load(Ordering::Relaxed)
    }

    /// Of the entries, keyframes and lines that are kept.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

impl WriterMetrics {
    /// Counts a failed commit.
    pub fn count_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }

    pub fn failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}
