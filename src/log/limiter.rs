//! How many lines of one kind are logged in a second. Whoever reaches a socket can send as much as the network carries,
//! and must not fill the disk with it or push the operator's own lines out.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// Lines of one kind that are logged in a second.
pub const LINES_PER_SECOND: u64 = 50;

const COUNT_BITS: u32 = 24;

/// The kinds of lines that somebody other than the operator can cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// Requests without a valid key: rejected ones, and those for the open pages.
    Unauthenticated,
    /// Requests of a valid key that were rejected for a spent limit or another group, or failed on our side.
    Refused,
    /// Requests to `/ingest` without a valid feed token.
    FeedToken,
    /// TLS handshakes that failed.
    TlsHandshake,
    /// Connections that broke off, timed out or could not be accepted.
    Connection,
    /// Connections to the admin socket that were rejected.
    AdminConnection,
    /// Console links and commands that were rejected.
    Console,
    /// Commits that failed: any request that needs a new lease can cause one.
    Commit,
    /// Files in the drop directory that were skipped.
    DropFile,
}

impl LineKind {
    pub const ALL: [LineKind; 9] = [
        LineKind::Unauthenticated,
        LineKind::Refused,
        LineKind::FeedToken,
        LineKind::TlsHandshake,
        LineKind::Connection,
        LineKind::AdminConnection,
        LineKind::Console,
        LineKind::Commit,
        LineKind::DropFile,
    ];

    /// Its label in the metrics.
    pub const fn key(self) -> &'static str {
        match self {
            LineKind::Unauthenticated => "unauthenticated",
            LineKind::Refused => "refused",
            LineKind::FeedToken => "feed_token",
            LineKind::TlsHandshake => "tls_handshake",
            LineKind::Connection => "connection",
            LineKind::AdminConnection => "admin_connection",
            LineKind::Console => "console",
            LineKind::Commit => "commit",
            LineKind::DropFile => "drop_file",
        }
    }
}

static LIMITS: [Limit; LineKind::ALL.len()] = [const { Limit::new() }; LineKind::ALL.len()];
static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

/// Whether one more line of a kind may be logged now; if so, how many were suppressed since the last one.
pub fn admit(kind: LineKind) -> Option<u64> {
    LIMITS[kind as usize].admit(STARTED.elapsed().as_secs())
}

/// How many lines of a kind were suppressed since the start.
pub fn suppressed(kind: LineKind) -> u64 {
    LIMITS[kind as usize].total.load(Ordering::Relaxed)
}

/// The lines of one kind: how many were logged in this second, and how many were suppressed.
#[derive(Debug)]
struct Limit {
    /// The second, above the number of lines that were logged in it.
    second: AtomicU64,
    /// Suppressed since the last line that was logged.
    unreported: AtomicU64,
    /// Suppressed since the start.
    total: AtomicU64,
}

impl Limit {
    const fn new() -> Self {
        Limit { second: AtomicU64::new(0), unreported: AtomicU64::new(0), total: AtomicU64::new(0) }
    }

    fn admit(&self, second: u64) -> Option<u64> {
        let first = second << COUNT_BITS;
        let count = |stored: u64| {
            let stored = stored.max(first);
            let lines = stored & ((1 << COUNT_BITS) - 1);
            (lines < LINES_PER_SECOND).then_some(stored + 1)
        };
        if self.second.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).is_ok() {
            return Some(self.unreported.swap(0, Ordering::Relaxed));
        }
        self.unreported.fetch_add(1, Ordering::Relaxed);
        self.total.fetch_add(1, Ordering::Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fifty_lines_pass_in_a_second_and_the_next_line_reports_the_suppressed() {
        let limit = Limit::new();
        for second in [0, 1, 1_000_000] {
            let admitted: Vec<_> = (0..120).map(|_| limit.admit(second)).collect();
            assert_eq!(admitted[0], Some(if second == 0 { 0 } else { 70 }));
            assert!(admitted[1..50].iter().all(|admitted| *admitted == Some(0)));
            assert!(admitted[50..].iter().all(Option::is_none));
        }
        assert_eq!(limit.total.into_inner(), 3 * 70);
    }

    #[test]
    fn concurrent_threads_share_one_limit() {
        let limit = Limit::new();
        let admitted: usize = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| (0..1000).filter_map(|_| limit.admit(5)).count())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(admitted, 50);
    }

    #[test]
    fn kinds_have_limits_of_their_own() {
        assert!(LineKind::ALL.iter().enumerate().all(|(index, kind)| *kind as usize == index));
        let limits: [Limit; 2] = [const { Limit::new() }; 2];
        assert_eq!((0..100).filter_map(|_| limits[0].admit(0)).count(), 50);
        assert_eq!(limits[1].admit(0), Some(0));
    }
}
