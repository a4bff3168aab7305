//! Unfinished heads: a bound on the bytes of incomplete requests that all connections buffer together.
//!
//! The HTTP library buffers a head until it is complete, and has a bound for one connection only. A connection whose
//! next bytes would exceed the bound over all of them is closed. A connection that no valid key was used on may hold less,
//! and the last quarter of the whole is for the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// The HTTP library's bound on a head, which it enforces without a response body: far above the bounds of any service.
pub(crate) const HEAD_BYTES_MAX: usize = 96 << 10;
/// The same before a valid key was used: far enough above our bounds on URL and headers that a request beyond one of them
/// still gets its error.
pub(crate) const UNKNOWN_HEAD_BYTES_MAX: usize = 64 << 10;

/// The library allocates this much for every connection, so it is not counted: heads of ordinary size cost nothing here.
const UNCOUNTED_BYTES: usize = 8 << 10;

const BYTES_MAX: usize = 64 << 20;

/// The bytes of unfinished heads, shared by all connections of all listeners.
#[derive(Debug)]
pub struct Heads {
    bytes: AtomicUsize,
    max: usize,
    refused: AtomicU64,
}

impl Default for Heads {
    fn default() -> Self {
        Heads::new(BYTES_MAX)
    }
}

impl Heads {
    pub fn new(max: usize) -> Self {
        Heads { bytes: AtomicUsize::new(0), max, refused: AtomicU64::new(0) }
    }

    /// Buffered now.
    pub fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed)
    }

    pub fn max(&self) -> usize {
        self.max
    }

    /// Connections closed for exceeding a bound.
    pub fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }

    fn take(&self, bytes: usize, is_known: bool) -> bool {
        let max = if is_known { self.max } else { self.max / 4 * 3 };
        let fits = self.bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= max;
        if !fits {
            self.give_back(bytes);
        }
        fits
    }

    fn give_back(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// What one connection has buffered. Dropping it releases that.
#[derive(Debug, Default)]
pub(crate) struct UnfinishedHead {
    heads: Arc<Heads>,
    /// At least what the library has read and not handled.
    buffered: AtomicUsize,
    last_read: AtomicUsize,
    /// What of `buffered` is counted in `heads`.
    counted: AtomicUsize,
    /// Whether a valid key was used on this connection.
    is_known: AtomicBool,
    has_answered: AtomicBool,
}

impl UnfinishedHead {
    pub(crate) fn new(heads: Arc<Heads>) -> Self {
        UnfinishedHead {
            heads,
            buffered: AtomicUsize::new(0),
            last_read: AtomicUsize::new(0),
            counted: AtomicUsize::new(0),
            is_known: AtomicBool::new(false),
            has_answered: AtomicBool::new(false),
        }
    }

    /// More bytes of a head came; false if they are too many.
    pub(crate) fn grows_by(&self, bytes: usize) -> bool {
        self.last_read.store(bytes, Ordering::Relaxed);
        self.set(self.buffered.load(Ordering::Relaxed) + bytes)
    }

    /// The head is complete. The last read may have brought the beginning of the next one.
    pub(crate) fn is_complete(&self) {
        self.has_answered.store(true, Ordering::Relaxed);
        let next = self.buffered.load(Ordering::Relaxed).min(self.last_read.load(Ordering::Relaxed));
        self.set(next);
    }

    /// What comes now is no head, but the body of a request in flight.
    pub(crate) fn reads_body(&self) {
        self.last_read.store(0, Ordering::Relaxed);
        self.set(0);
    }

    /// Sets how many bytes of an unfinished head are buffered; false if they are too many.
    pub(crate) fn is_now(&self, bytes: usize) -> bool {
        self.last_read.store(usize::MAX, Ordering::Relaxed);
        self.set(bytes)
    }

    fn set(&self, buffered: usize) -> bool {
        self.buffered.store(buffered, Ordering::Relaxed);
        let (wanted, counted) = (buffered.saturating_sub(UNCOUNTED_BYTES), self.counted.load(Ordering::Relaxed));
        let Some(more) = wanted.checked_sub(counted) else {
            self.heads.give_back(counted - wanted);
            self.counted.store(wanted, Ordering::Relaxed);
            return true;
        };
        if more == 0 {
            return true;
        }
        let is_known = self.is_known();
        // The library closes the connections of the others at their own bound.
        let fits = (is_known || buffered <= UNKNOWN_HEAD_BYTES_MAX) && self.heads.take(more, is_known);
        if fits {
            self.counted.store(wanted, Ordering::Relaxed);
        } else {
            self.heads.refused.fetch_add(1, Ordering::Relaxed);
        }
        fits
    }

    pub(crate) fn is_known(&self) -> bool {
        self.is_known.load(Ordering::Relaxed)
    }

    pub(crate) fn set_known(&self) {
        self.is_known.store(true, Ordering::Relaxed);
    }

    /// Whether any head was completed on this connection.
    pub(crate) fn has_answered(&self) -> bool {
        self.has_answered.load(Ordering::Relaxed)
    }
}

impl Drop for UnfinishedHead {
    fn drop(&mut self) {
        self.heads.give_back(*self.counted.get_mut());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KB: usize = 1 << 10;

    #[test]
    fn unfinished_heads_of_all_connections_share_one_bound() {
        let heads = Arc::new(Heads::new(32 * KB));
        let without_key = || UnfinishedHead::new(Arc::clone(&heads));
        let (first, second) = (without_key(), without_key());
        assert!(first.grows_by(8 * KB) && second.grows_by(8 * KB));
        assert_eq!(heads.bytes(), 0, "heads of ordinary size are not counted");
        assert!(first.grows_by(20 * KB));
        assert_eq!(heads.bytes(), 20 * KB);
        assert!(!second.grows_by(8 * KB), "the last quarter is for connections with a valid key");
        let known = without_key();
        known.set_known();
        assert!(known.grows_by(16 * KB));
        assert_eq!((heads.bytes(), heads.refused()), (28 * KB, 1));
        // The last read may have brought the beginning of the next head.
        first.is_complete();
        assert_eq!(heads.bytes(), 20 * KB);
        first.reads_body();
        assert_eq!(heads.bytes(), 8 * KB);
        drop((first, second, known));
        assert_eq!(heads.bytes(), 0);
    }

    #[test]
    fn head_may_be_longer_once_a_valid_key_was_used() {
        let heads = Arc::new(Heads::default());
        let (unknown, known) = (UnfinishedHead::new(Arc::clone(&heads)), UnfinishedHead::new(Arc::clone(&heads)));
        known.set_known();
        assert!(unknown.grows_by(UNKNOWN_HEAD_BYTES_MAX) && !unknown.grows_by(1));
        assert!(known.grows_by(HEAD_BYTES_MAX));
    }
}
