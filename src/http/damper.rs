//! How many lines of the log strangers may cause: whoever has no valid key can send as much as the network carries, and
//! must not fill the disk with it. Requests of a key are bounded by its limits and are all logged.

use std::sync::atomic::{AtomicU64, Ordering};

/// Lines a second that requests without a valid key may cause.
const LINES_PER_SECOND: u64 = 50;

const COUNT_BITS: u32 = 24;

/// Counts what was logged in this second, and what was not since the last line.
#[derive(Debug, Default)]
pub(super) struct Damper {
    /// The second above the lines logged in it.
    second: AtomicU64,
    unlogged: AtomicU64,
}

impl Damper {
    /// Whether one more may be logged now; if so, how many were not since the last that was.
    pub(super) fn admit(&self, mono_ms: u64) -> Option<u64> {
        let opening = (mono_ms / 1000) << COUNT_BITS;
        let count = |held: u64| {
            let held = held.max(opening);
            let lines = held & ((1 << COUNT_BITS) - 1);
            (lines < LINES_PER_SECOND).then_some(held + 1)
        };
        if self.second.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).is_ok() {
            Some(self.unlogged.swap(0, Ordering::Relaxed))
        } else {
            self.unlogged.fetch_add(1, Ordering::Relaxed);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_lines_pass_in_a_second_and_the_next_line_tells_of_the_rest() {
        let damper = Damper::default();
        for second in [0, 1, 1_000_000] {
            let admitted: Vec<_> = (0..120).map(|number| damper.admit(second * 1000 + number)).collect();
            assert!(admitted[1..50].iter().all(|admitted| *admitted == Some(0)));
            assert_eq!(admitted[0], Some(if second == 0 { 0 } else { 70 }));
            assert!(admitted[50..].iter().all(Option::is_none));
        }
    }

    #[test]
    fn many_threads_pass_no_more() {
        let damper = Damper::default();
        let admitted: usize = std::thread::scope(|scope| {
            let threads: Vec<_> =
                (0..4).map(|_| scope.spawn(|| (0..1000).filter_map(|_| damper.admit(5)).count())).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(admitted, 50);
    }
}
