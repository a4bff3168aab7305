//! Streams of the public API.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use super::histogram::{Histogram, HistogramSnapshot};

/// The counters of all streams together.
#[derive(Debug, Default)]
pub struct StreamCounts {
    open: AtomicU64,
    bytes: AtomicU64,
    merged: AtomicU64,
    resets: AtomicU64,
    deliveries: Histogram,
}

impl StreamCounts {
    /// Counts a stream as open, unless there are as many as there may be.
    pub fn try_open(&self, streams_max: u64) -> bool {
        let more = |open: u64| (open < streams_max).then_some(open + 1);
        self.open.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).is_ok()
    }

    /// Counts a stream that was open as closed.
    pub fn close(&self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    pub fn count_bytes(&self, count: usize) {
        self.bytes.fetch_add(count as u64, Ordering::Relaxed);
    }

    /// Counts a slow reader that got several entries as one.
    pub fn count_merged(&self) {
        self.merged.fetch_add(1, Ordering::Relaxed);
    }

    pub fn count_reset(&self) {
        self.resets.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an entry that was handed to a stream so long after its publication.
    pub fn record_delivery(&self, took: Duration) {
        self.deliveries.record(took);
    }

    pub fn deliveries(&self) -> HistogramSnapshot {
        self.deliveries.snapshot()
    }

    pub fn open(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn merged(&self) -> u64 {
        self.merged.load(Ordering::Relaxed)
    }

    pub fn resets(&self) -> u64 {
        self.resets.load(Ordering::Relaxed)
    }
}
