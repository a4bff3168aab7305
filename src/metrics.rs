//! Counters that every part may raise and anyone may read. A leaf: it knows nothing of what it counts.

use std::sync::atomic::{AtomicU64, Ordering};

/// What passes through the public door.
#[derive(Debug, Default)]
pub struct Traffic {
    connections: AtomicU64,
    requests: AtomicU64,
    /// Requests answered in each of the last seconds, as a ring, and the total at its newest entry.
    recent: [AtomicU64; RECENT_SECONDS],
    seen: AtomicU64,
    second: AtomicU64,
}

/// Over how many seconds the rate of requests is taken.
const RECENT_SECONDS: usize = 10;

/// A connection being open; dropping it is its end.
#[derive(Debug)]
pub struct OpenConnection<'t>(&'t Traffic);

impl Traffic {
    /// Counts a connection for as long as what is returned lives.
    pub fn connection(&self) -> OpenConnection<'_> {
        self.connections.fetch_add(1, Ordering::Relaxed);
        OpenConnection(self)
    }

    pub fn count_request(&self) {
        self.requests.fetch_add(1, Ordering::Relaxed);
    }

    /// Connections open now.
    pub fn connections(&self) -> u64 {
        self.connections.load(Ordering::Relaxed)
    }

    /// Requests answered since the start.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    /// To be called once a second: closes the current second of the rate.
    pub fn tick(&self) {
        let total = self.requests();
        let seen = self.seen.swap(total, Ordering::Relaxed);
        let second = self.second.fetch_add(1, Ordering::Relaxed);
        let at = usize::try_from(second).unwrap_or(0) % RECENT_SECONDS;
        self.recent[at].store(total.saturating_sub(seen), Ordering::Relaxed);
    }

    /// Requests answered each second, over the last ten.
    pub fn requests_per_second(&self) -> f64 {
        let seconds = self.second.load(Ordering::Relaxed).min(RECENT_SECONDS as u64);
        let answered: u64 = self.recent.iter().map(|second| second.load(Ordering::Relaxed)).sum();
        // Both are far below what a double holds exactly.
        #[expect(clippy::cast_precision_loss, reason = "a rate for display")]
        let rate = answered as f64 / seconds.max(1) as f64;
        rate
    }
}

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_is_that_of_the_last_ten_seconds() {
        let traffic = Traffic::default();
        assert!(traffic.requests_per_second().abs() < f64::EPSILON);
        for _ in 0..25 {
            for _ in 0..4 {
                traffic.count_request();
            }
            traffic.tick();
        }
        assert!((traffic.requests_per_second() - 4.0).abs() < f64::EPSILON);
        assert_eq!(traffic.requests(), 100);
    }

    #[test]
    fn connections_are_counted_while_they_live() {
        let traffic = Traffic::default();
        let first = traffic.connection();
        let second = traffic.connection();
        drop(first);
        assert_eq!(traffic.connections(), 1);
        drop(second);
        assert_eq!(traffic.connections(), 0);
    }
}
