//! Rate limits on log lines. Anyone who can reach a socket can cause log lines as fast as the network allows; that must
//! not fill the disk or displace the operator's own lines.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// The maximum number of lines of one kind logged per second.
pub const LINES_PER_SECOND: u64 = 50;

const COUNT_BITS: u32 = 24;

/// The kinds of lines that can be caused by others than the operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKind {
    /// Requests without a valid key: rejected ones, and those for public pages.
    Unauthenticated,
    /// Requests with a valid key that were rejected for an exhausted limit or a restricted group, or that failed
    /// internally.
    Refused,
    /// Requests to `/ingest` without a valid feed token.
    FeedToken,
    /// Failed TLS handshakes.
    TlsHandshake,
    /// Connections that failed, timed out or could not be accepted.
    Connection,
    /// Rejected connections to the admin socket.
    AdminConnection,
    /// Rejected console links and commands.
    Console,
    /// Failed commits, which any request that needs a new lease can cause.
    Commit,
    /// Skipped files in the drop directory.
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

    /// The label in the metrics.
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

static LIMITS: [LineLimit; LineKind::ALL.len()] = [const { LineLimit::new() }; LineKind::ALL.len()];
static STARTED: LazyLock<Instant> = LazyLock::new(Instant::now);

/// `Some` if another line of this kind may be logged now, with the number suppressed since the last one.
pub fn admit(kind: LineKind) -> Option<u64> {
    LIMITS[kind as usize].admit(STARTED.elapsed().as_secs())
}

/// The number of lines of a kind suppressed since the start.
pub fn suppressed(kind: LineKind) -> u64 {
    LIMITS[kind as usize].total.load(Ordering::Relaxed)
}

/// The counters of one kind: lines logged in this second, and suppressed lines.
#[derive(Debug)]
struct LineLimit {
    /// The second in the upper bits, and the number of lines logged in it below.
    second: AtomicU64,
    /// Suppressed since the last line that was logged.
    unreported: AtomicU64,
    /// Suppressed since the start.
    total: AtomicU64,
}

impl LineLimit {
    const fn new() -> Self {
        LineLimit { second: AtomicU64::new(0), unreported: AtomicU64::new(0), total: AtomicU64::new(0) }
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
    fn fifty_lines_pass_per_second_and_the_next_line_reports_the_suppressed() {
        let limit = LineLimit::new();
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
        let limit = LineLimit::new();
        let admitted: usize = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| (0..1000).filter_map(|_| limit.admit(5)).count())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(admitted, 50);
    }

    #[test]
    fn each_kind_has_its_own_limit() {
        assert!(LineKind::ALL.iter().enumerate().all(|(index, kind)| *kind as usize == index));
        let limits: [LineLimit; 2] = [const { LineLimit::new() }; 2];
        assert_eq!((0..100).filter_map(|_| limits[0].admit(0)).count(), 50);
        assert_eq!(limits[1].admit(0), Some(0));
    }
}
