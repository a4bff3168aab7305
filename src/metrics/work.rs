//! Answers of the public API that are computed away from the threads that answer requests.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The counters of all such answers together.
#[derive(Debug, Default)]
pub struct WorkCounts {
    waiting: AtomicU64,
    computed: AtomicU64,
    micros: AtomicU64,
}

impl WorkCounts {
    /// Counts a request as waiting for its answer until the returned guard is dropped.
    pub fn wait(&self) -> WaitingForWork<'_> {
        self.waiting.fetch_add(1, Ordering::Relaxed);
        WaitingForWork(self)
    }

    /// Counts an answer that was computed, for which its request waited this long.
    pub fn count_computed(&self, took: Duration) {
        self.computed.fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub fn waiting(&self) -> u64 {
        self.waiting.load(Ordering::Relaxed)
    }

    pub fn computed(&self) -> u64 {
        self.computed.load(Ordering::Relaxed)
    }

    pub fn time(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }
}

/// A request whose answer is being computed, or waits for its turn.
#[derive(Debug)]
pub struct WaitingForWork<'c>(&'c WorkCounts);

impl Drop for WaitingForWork<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}
