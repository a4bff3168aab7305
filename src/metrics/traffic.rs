//! Requests and connections of the public API.
//!
//! Every request is counted by route, status and duration. The counters are split into a few shards, and a thread
//! always updates the same one, to avoid contention on cache lines; readers sum over the shards.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use super::histogram::{FineHistogram, FineSnapshot, Histogram, HistogramSnapshot};
use super::history::{CounterSnapshot, History};
use super::streams::StreamCounts;
use super::work::WorkCounts;

/// Statuses with a counter of their own; any other is counted under the last one, 0.
const STATUSES: [u16; 15] = [200, 304, 400, 401, 403, 404, 405, 414, 422, 429, 431, 500, 503, 204, 0];

/// The number of seconds over which the request rate is averaged.
const RECENT_SECONDS: usize = 10;

/// About the number of worker threads on the machines that this is made for.
const SHARDS: usize = 8;

static NEXT_SHARD: AtomicUsize = AtomicUsize::new(0);
thread_local! {
    static SHARD: usize = NEXT_SHARD.fetch_add(1, Ordering::Relaxed) % SHARDS;
}

/// The counters of the public API.
#[derive(Debug)]
pub struct Traffic {
    routes: &'static [&'static str],
    reasons: &'static [&'static str],
    shards: Box<[Shard]>,
    /// In the order of `reasons`.
    refused: Box<[AtomicU64]>,
    open: AtomicU64,
    open_max: AtomicU64,
    accepted: AtomicU64,
    rejected: AtomicU64,
    handshakes_failed: AtomicU64,
    streams: StreamCounts,
    work: WorkCounts,
    /// Incremented by every iteration of the accept loop, with or without a connection.
    beats: AtomicU64,
    /// A ring buffer of requests answered in each of the last seconds, and the total at its newest entry.
    recent: [AtomicU64; RECENT_SECONDS],
    seen: AtomicU64,
    second: AtomicU64,
    history: History,
}

/// The counters of one group of threads, on cache lines of their own.
#[derive(Debug)]
#[repr(align(128))]
struct Shard {
    /// In the order of the routes; the last one also counts unknown routes.
    routes: Box<[RouteCounts]>,
    latency: FineHistogram,
}

#[derive(Debug, Default)]
struct RouteCounts {
    statuses: [AtomicU64; STATUSES.len()],
    latency: Histogram,
}

/// The totals of one route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals {
    pub route: &'static str,
    /// The number of responses by status; 0 stands for any status without a counter of its own.
    pub statuses: Vec<(u16, u64)>,
    pub latency: HistogramSnapshot,
}

/// An open connection, counted until it is dropped.
#[derive(Debug)]
pub struct OpenConnection<'t>(&'t Traffic);

impl Traffic {
    /// Counters for these routes, the last of which also counts unknown ones, and for these reasons to refuse a
    /// request.
    pub fn new(routes: &'static [&'static str], reasons: &'static [&'static str]) -> Self {
        let shard = || Shard {
            routes: std::iter::repeat_with(RouteCounts::default).take(routes.len().max(1)).collect(),
            latency: FineHistogram::default(),
        };
        Traffic {
            routes,
            reasons,
            shards: std::iter::repeat_with(shard).take(SHARDS).collect(),
            refused: reasons.iter().map(|_| AtomicU64::new(0)).collect(),
            open: AtomicU64::new(0),
            open_max: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            rejected: AtomicU64::new(0),
            handshakes_failed: AtomicU64::new(0),
            streams: StreamCounts::default(),
            work: WorkCounts::default(),
            beats: AtomicU64::new(0),
            recent: std::array::from_fn(|_| AtomicU64::new(0)),
            seen: AtomicU64::new(0),
            second: AtomicU64::new(0),
            history: History::default(),
        }
    }

    pub fn streams(&self) -> &StreamCounts {
        &self.streams
    }

    pub fn work(&self) -> &WorkCounts {
        &self.work
    }

    /// Counts a connection until the returned guard is dropped.
    pub fn connection(&self) -> OpenConnection<'_> {
        self.open.fetch_add(1, Ordering::Relaxed);
        self.accepted.fetch_add(1, Ordering::Relaxed);
        OpenConnection(self)
    }

    /// Sets the maximum number of open connections.
    pub fn set_connections_max(&self, max: u32) {
        self.open_max.store(max.into(), Ordering::Relaxed);
    }

    pub fn connections_max(&self) -> u64 {
        self.open_max.load(Ordering::Relaxed)
    }

    /// Counts a connection that was closed because its address had too many.
    pub fn count_rejected_connection(&self) {
        self.rejected.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a failed TLS handshake.
    pub fn count_failed_handshake(&self) {
        self.handshakes_failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts an answered request.
    pub fn count_request(&self, route: &str, status: u16, took: Duration) {
        let shard = &self.shards[SHARD.with(|shard| *shard)];
        let unknown = shard.routes.len() - 1;
        let at = self.routes.iter().position(|known| *known == route).unwrap_or(unknown);
        let counts = &shard.routes[at];
        let status = STATUSES.iter().position(|known| *known == status).unwrap_or(STATUSES.len() - 1);
        counts.statuses[status].fetch_add(1, Ordering::Relaxed);
        counts.latency.record(took);
        shard.latency.record(took);
    }

    /// Counts a refused request under one of the reasons.
    pub fn count_refused(&self, reason: &str) {
        if let Some(at) = self.reasons.iter().position(|known| *known == reason) {
            self.refused[at].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Reports an iteration of the accept loop.
    pub fn beat(&self) {
        self.beats.fetch_add(1, Ordering::Relaxed);
    }

    pub fn beats(&self) -> u64 {
        self.beats.load(Ordering::Relaxed)
    }

    /// Connections open now.
    pub fn connections(&self) -> u64 {
        self.open.load(Ordering::Relaxed)
    }

    /// Connections accepted since the start.
    pub fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    pub fn rejected_connections(&self) -> u64 {
        self.rejected.load(Ordering::Relaxed)
    }

    pub fn handshakes_failed(&self) -> u64 {
        self.handshakes_failed.load(Ordering::Relaxed)
    }

    /// Requests answered since the start.
    pub fn requests(&self) -> u64 {
        self.sum_where(|_| true)
    }

    /// The totals of each route, in the order of the routes.
    pub fn totals(&self) -> Vec<Totals> {
        let total = |(at, route): (usize, &&'static str)| {
            let counts = || self.shards.iter().map(|shard| &shard.routes[at]);
            let mut latency = HistogramSnapshot::default();
            counts().for_each(|counts| latency.add(&counts.latency.snapshot()));
            let answered = |(status, code): (usize, &u16)| {
                let sum = counts().map(|counts| counts.statuses[status].load(Ordering::Relaxed)).sum::<u64>();
                (sum > 0).then_some((*code, sum))
            };
            Totals { route, statuses: STATUSES.iter().enumerate().filter_map(answered).collect(), latency }
        };
        self.routes.iter().enumerate().map(total).collect()
    }

    /// The number of refused requests by reason.
    pub fn refused(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.reasons.iter().copied().zip(self.refused.iter().map(|count| count.load(Ordering::Relaxed)))
    }

    pub fn history(&self) -> &History {
        &self.history
    }

    /// To be called once a second: ends the current second of the rate, and a step of the history every few seconds.
    pub fn tick(&self, unix_s: i64) {
        let total = self.requests();
        let seen = self.seen.swap(total, Ordering::Relaxed);
        let second = self.second.fetch_add(1, Ordering::Relaxed);
        let at = usize::try_from(second).unwrap_or(0) % RECENT_SECONDS;
        self.recent[at].store(total.saturating_sub(seen), Ordering::Relaxed);
        if (second + 1).is_multiple_of(History::STEP_S) {
            self.history.end_step(unix_s, self.snapshot());
        }
    }

    fn snapshot(&self) -> CounterSnapshot {
        let mut latency = FineSnapshot::default();
        for shard in &self.shards {
            shard.latency.add_to(&mut latency);
        }
        CounterSnapshot {
            requests: self.requests(),
            errors: self.sum_where(|status| status >= 500),
            refused: self.sum_where(|status| matches!(status, 401 | 403 | 429)),
            latency,
        }
    }

    fn sum_where(&self, counts: impl Fn(u16) -> bool) -> u64 {
        let routes = self.shards.iter().flat_map(|shard| &shard.routes);
        let statuses = routes.flat_map(|route| STATUSES.iter().zip(&route.statuses));
        statuses.filter(|(status, _)| counts(**status)).map(|(_, count)| count.load(Ordering::Relaxed)).sum()
    }

    /// Requests answered per second, averaged over the last ten seconds.
    pub fn requests_per_second(&self) -> f64 {
        let seconds = self.second.load(Ordering::Relaxed).min(RECENT_SECONDS as u64);
        let answered: u64 = self.recent.iter().map(|second| second.load(Ordering::Relaxed)).sum();
        // Both are far below the integers that an f64 represents exactly.
        #[expect(clippy::cast_precision_loss, reason = "a rate for display")]
        let rate = answered as f64 / seconds.max(1) as f64;
        rate
    }
}

impl Drop for OpenConnection<'_> {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::super::HistoryStep;
    use super::*;

    fn traffic() -> Traffic {
        Traffic::new(&["/a", "/b", "unknown"], &["burst", "day"])
    }

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn rate_covers_the_last_ten_seconds() {
        let traffic = traffic();
        assert!(traffic.requests_per_second().abs() < f64::EPSILON);
        for second in 0..25 {
            for _ in 0..4 {
                traffic.count_request("/a", 200, MS);
            }
            traffic.tick(second);
        }
        assert!((traffic.requests_per_second() - 4.0).abs() < f64::EPSILON);
        assert_eq!(traffic.requests(), 100);
    }

    #[test]
    fn connections_are_counted_while_open() {
        let traffic = traffic();
        let first = traffic.connection();
        let second = traffic.connection();
        drop(first);
        assert_eq!((traffic.connections(), traffic.accepted()), (1, 2));
        drop(second);
        assert_eq!((traffic.connections(), traffic.accepted()), (0, 2));
    }

    #[test]
    fn requests_of_concurrent_threads_are_counted_once() {
        let traffic = traffic();
        std::thread::scope(|scope| {
            for _ in 0..=2 * SHARDS {
                scope.spawn(|| {
                    for status in [200, 200, 429, 418] {
                        traffic.count_request("/b", status, MS);
                    }
                    traffic.count_request("/elsewhere", 404, 7000 * MS);
                    traffic.count_refused("day");
                });
            }
        });
        let threads = 2 * SHARDS as u64 + 1;
        let totals = traffic.totals();
        assert_eq!(totals[0], Totals { route: "/a", statuses: Vec::new(), latency: HistogramSnapshot::default() });
        assert_eq!(totals[1].statuses, [(200, 2 * threads), (429, threads), (0, threads)]);
        assert_eq!((totals[2].route, totals[2].statuses.as_slice()), ("unknown", &[(404, threads)][..]));
        assert_eq!((totals[1].latency.count(), totals[2].latency.count()), (4 * threads, threads));
        assert_eq!(traffic.refused().collect::<Vec<_>>(), [("burst", 0), ("day", threads)]);
        assert_eq!(traffic.requests(), 5 * threads);
    }

    #[test]
    fn history_keeps_one_hour_of_steps() {
        let traffic = traffic();
        for status in [200, 200, 503, 401] {
            traffic.count_request("/a", status, 3 * MS / 1000);
        }
        for second in 1..=10 {
            traffic.tick(second);
        }
        let quiet = HistoryStep { ended_s: 10, requests: 0, errors: 0, refused: 0, p50_us: None, p99_us: None };
        let busy = HistoryStep { ended_s: 5, requests: 4, errors: 1, refused: 1, p50_us: Some(3), p99_us: Some(3) };
        assert_eq!(traffic.history().steps(), [busy, quiet]);
        for second in 11..=2 * 3600 {
            traffic.tick(second);
        }
        let steps = traffic.history().steps();
        assert_eq!((steps.len(), steps[0].ended_s, steps[719].ended_s), (720, 3605, 7200));
    }
}
