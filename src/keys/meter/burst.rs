//! The burst limit: a fixed window of sixty seconds that opens with the first request.
//!
//! The window's start and its count share one atomic word, so that exactly as many concurrent requests pass as the
//! limit allows. It uses the monotonic clock, so setting the wall clock opens no new window.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::BurstStanding;

const WINDOW_MS: u64 = 60_000;
/// The low 24 bits hold the count; the upper 40 hold milliseconds since the process started, enough for 34 years.
const COUNT_BITS: u32 = 24;
const OPENED_MAX: u64 = u64::MAX >> COUNT_BITS;

/// The largest burst limit that can be counted: some 280,000 requests a second by one key.
pub const BURST_MAX: u32 = (1 << COUNT_BITS) - 1;

#[derive(Debug)]
pub(super) struct Burst {
    window: AtomicU64,
    limit: AtomicU32,
}

/// A window and its number of passed requests. A window with a count of zero is not open.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    pub(super) opened_ms: u64,
    count: u32,
}

impl Window {
    fn unpack(word: u64) -> Self {
        let count = u32::try_from(word & u64::from(BURST_MAX)).unwrap_or(BURST_MAX);
        Window { opened_ms: word >> COUNT_BITS, count }
    }

    fn pack(self) -> u64 {
        self.opened_ms << COUNT_BITS | u64::from(self.count)
    }

    /// The window that a request at `mono_ms` falls into. A time read just before another thread opened the window
    /// counts as inside it.
    fn at(self, mono_ms: u64) -> Self {
        let open = self.count > 0 && mono_ms.saturating_sub(self.opened_ms) < WINDOW_MS;
        if open { self } else { Window { opened_ms: mono_ms.min(OPENED_MAX), count: 0 } }
    }

    fn with_one_more(self) -> Self {
        Window { count: self.count + 1, ..self }
    }

    /// Seconds until the window closes, rounded up, so that a client that waits for them finds it closed.
    fn closes_in_s(self, mono_ms: u64) -> u32 {
        let left_ms = WINDOW_MS - mono_ms.saturating_sub(self.opened_ms).min(WINDOW_MS - 1);
        u32::try_from(left_ms.div_ceil(1000)).unwrap_or(u32::MAX)
    }
}

/// The limit of the window is reached.
#[derive(Debug)]
pub(super) struct BurstExhausted {
    pub(super) retry_after_s: u32,
}

impl Burst {
    pub(super) fn new(limit: u32) -> Self {
        Burst { window: AtomicU64::new(0), limit: AtomicU32::new(limit.min(BURST_MAX)) }
    }

    pub(super) fn set_limit(&self, limit: u32) {
        self.limit.store(limit.min(BURST_MAX), Ordering::Relaxed);
    }

    /// Counts one request and returns the window it was counted in.
    pub(super) fn take(&self, mono_ms: u64) -> Result<Window, BurstExhausted> {
        let limit = self.limit.load(Ordering::Relaxed);
        let mut current = self.window.load(Ordering::Relaxed);
        loop {
            let window = Window::unpack(current).at(mono_ms);
            if window.count >= limit {
                return Err(BurstExhausted { retry_after_s: window.closes_in_s(mono_ms) });
            }
            let taken = window.with_one_more();
            match self.window.compare_exchange_weak(current, taken.pack(), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(taken),
                Err(changed) => current = changed,
            }
        }
    }

    /// Refunds one request, unless its window has closed: a refund to a later window would raise its limit.
    pub(super) fn refund(&self, taken: Window) {
        let subtract_one = |word| {
            let current = Window::unpack(word);
            let same = current.opened_ms == taken.opened_ms && current.count > 0;
            same.then(|| Window { count: current.count - 1, ..current }.pack())
        };
        // An error means that the window has closed, so there is nothing to refund.
        let _ = self.window.fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract_one);
    }

    pub(super) fn look(&self, mono_ms: u64) -> Window {
        Window::unpack(self.window.load(Ordering::Relaxed)).at(mono_ms)
    }

    pub(super) fn standing(&self, window: Window, mono_ms: u64) -> BurstStanding {
        let limit = self.limit.load(Ordering::Relaxed);
        let reset_s = if window.count == 0 { 0 } else { window.closes_in_s(mono_ms) };
        BurstStanding { limit, remaining: limit.saturating_sub(window.count), reset_s }
    }
}
