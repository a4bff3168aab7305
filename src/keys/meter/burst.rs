//! The burst limit: a fixed window of sixty seconds that opens with the first request.
//!
//! The window's start and its count share one atomic word, so that exactly as many concurrent requests pass as the
//! limit allows. It uses the monotonic clock, so setting the wall clock opens no new window.
//!
//! In a cluster the window is that of all nodes. A node opens none by itself: it asks for a share of the window, and counts
//! what it takes of that.

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};

use super::BurstStanding;
use super::share::{BurstNeed, BurstShare};

const WINDOW_MS: u64 = 60_000;
/// The low 24 bits hold the count; the upper 40 hold milliseconds since the process started, enough for 34 years.
const COUNT_BITS: u32 = 24;
const OPENED_MAX: u64 = u64::MAX >> COUNT_BITS;

/// The largest burst limit that can be counted: some 280,000 requests a second by one key.
pub const BURST_MAX: u32 = (1 << COUNT_BITS) - 1;
/// The share of a node that is alone.
const ALL: u64 = u64::MAX;

#[derive(Debug)]
pub(super) struct Burst {
    window: AtomicU64,
    /// The window's start and how many of it may pass here, or [`ALL`].
    share: AtomicU64,
    limit: AtomicU32,
    cluster: ClusterWindow,
}

/// What is known of the window of all nodes.
#[derive(Debug, Default)]
struct ClusterWindow {
    number: AtomicU64,
    /// What other nodes have of it, less what this one has given back.
    elsewhere: AtomicI64,
    /// The limit of which it has nothing left.
    exhausted: AtomicU32,
    /// The limit of which so little is left that nothing is asked for before a request waits for it: it would be missing
    /// elsewhere.
    scarce: AtomicU32,
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
        if self.is_open(mono_ms) { self } else { Window { opened_ms: mono_ms.min(OPENED_MAX), count: 0 } }
    }

    fn is_open(self, mono_ms: u64) -> bool {
        self.count > 0 && self.is_current(mono_ms)
    }

    fn is_current(self, mono_ms: u64) -> bool {
        mono_ms.saturating_sub(self.opened_ms) < WINDOW_MS
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

/// Why a request cannot be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BurstShortage {
    /// The limit of the window is reached.
    Exhausted {
        retry_after_s: u32,
    },
    NeedsShare,
}

impl Burst {
    pub(super) fn new(limit: u32) -> Self {
        let (window, share, limit) = (AtomicU64::new(0), AtomicU64::new(ALL), AtomicU32::new(limit.min(BURST_MAX)));
        Burst { window, share, limit, cluster: ClusterWindow::default() }
    }

    /// For a node of a cluster, without a share.
    pub(super) fn shared(limit: u32) -> Self {
        Burst { share: AtomicU64::new(0), ..Burst::new(limit) }
    }

    pub(super) fn set_limit(&self, limit: u32) {
        self.limit.store(limit.min(BURST_MAX), Ordering::Relaxed);
    }

    /// Counts one request and returns the window it was counted in.
    pub(super) fn take(&self, mono_ms: u64) -> Result<Window, BurstShortage> {
        if self.share.load(Ordering::Relaxed) != ALL {
            return self.take_of_share(mono_ms);
        }
        let limit = self.limit.load(Ordering::Relaxed);
        let mut current = self.window.load(Ordering::Relaxed);
        loop {
            let window = Window::unpack(current).at(mono_ms);
            if window.count >= limit {
                return Err(BurstShortage::Exhausted { retry_after_s: window.closes_in_s(mono_ms) });
            }
            let taken = window.with_one_more();
            match self.window.compare_exchange_weak(current, taken.pack(), Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return Ok(taken),
                Err(changed) => current = changed,
            }
        }
    }

    fn take_of_share(&self, mono_ms: u64) -> Result<Window, BurstShortage> {
        let mut current = self.window.load(Ordering::Acquire);
        loop {
            let window = Window::unpack(current);
            if let Some(shortage) = self.shortage(window, mono_ms) {
                return Err(shortage);
            }
            let taken = window.with_one_more();
            match self.window.compare_exchange_weak(current, taken.pack(), Ordering::Relaxed, Ordering::Acquire) {
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

    /// Whether a request would have to wait for a share.
    pub(super) fn needs_share(&self, mono_ms: u64) -> bool {
        let window = Window::unpack(self.window.load(Ordering::Acquire));
        self.share.load(Ordering::Relaxed) != ALL && self.shortage(window, mono_ms) == Some(BurstShortage::NeedsShare)
    }

    /// Why the share of a window does not allow another request.
    fn shortage(&self, window: Window, mono_ms: u64) -> Option<BurstShortage> {
        let (limit, share) = (self.limit.load(Ordering::Relaxed), Window::unpack(self.share.load(Ordering::Relaxed)));
        if window.opened_ms != share.opened_ms || !share.is_current(mono_ms) {
            return Some(BurstShortage::NeedsShare);
        }
        if window.count < share.count.min(limit) {
            return None;
        }
        let is_exhausted = window.count >= limit || self.cluster.exhausted.load(Ordering::Relaxed) == limit;
        let exhausted = BurstShortage::Exhausted { retry_after_s: window.closes_in_s(mono_ms) };
        Some(if is_exhausted { exhausted } else { BurstShortage::NeedsShare })
    }

    /// Whether less than half of what is asked for at a time is left, and more is to be had.
    pub(super) fn runs_low(&self, taken: Window) -> bool {
        let share = self.share.load(Ordering::Relaxed);
        if share == ALL {
            return false;
        }
        let (share, limit) = (Window::unpack(share), self.limit.load(Ordering::Relaxed));
        let given_out = i64::from(share.count) + self.cluster.elsewhere.load(Ordering::Relaxed);
        share.count.saturating_sub(taken.count) < share_size(limit) / 2
            && given_out < i64::from(limit)
            && self.cluster.scarce.load(Ordering::Relaxed) != limit
    }

    /// The next share, if one is needed: for a request that waits, or ahead of need.
    pub(super) fn plan_share(&self, mono_ms: u64, is_awaited: bool) -> Option<BurstNeed> {
        let share = self.share.load(Ordering::Relaxed);
        if share == ALL {
            return None;
        }
        let (share, limit) = (Window::unpack(share), self.limit.load(Ordering::Relaxed));
        let window = Window::unpack(self.window.load(Ordering::Relaxed));
        let own = if share.is_current(mono_ms) { share.count } else { 0 };
        let left = if window.opened_ms == share.opened_ms { own.saturating_sub(window.count) } else { 0 };
        if own > 0 && self.cluster.exhausted.load(Ordering::Relaxed) == limit {
            return None;
        }
        let is_scarce = own > 0 && self.cluster.scarce.load(Ordering::Relaxed) == limit;
        let ahead = if is_scarce { 0 } else { share_size(limit) / 2 };
        let window = self.cluster.number.load(Ordering::Relaxed);
        let wanted = share_size(limit).saturating_sub(left);
        (left < ahead.max(is_awaited.into())).then_some(BurstNeed { window, own, wanted, limit })
    }

    /// What this node has of the current window, as a need of no more; none if it has nothing.
    pub(super) fn holdings(&self, mono_ms: u64) -> Option<BurstNeed> {
        let share = self.share.load(Ordering::Relaxed);
        let (share, is_shared) = (Window::unpack(share), share != ALL);
        let (window, limit) = (self.cluster.number.load(Ordering::Relaxed), self.limit.load(Ordering::Relaxed));
        let has_some = is_shared && share.is_current(mono_ms) && share.count > 0;
        has_some.then_some(BurstNeed { window, own: share.count, wanted: 0, limit })
    }

    /// Makes a share usable that was asked for at `asked_mono_ms`. Its window ends no later here than in the cluster.
    pub(super) fn grant_share(&self, need: BurstNeed, share: BurstShare, asked_mono_ms: u64) {
        let is_new = self.enter_share(share, asked_mono_ms);
        if share.after - share.before < need.wanted {
            self.ration();
        } else if is_new {
            self.cluster.scarce.store(0, Ordering::Relaxed);
        }
    }

    /// Returns whether its window is another one than before.
    fn enter_share(&self, share: BurstShare, asked_mono_ms: u64) -> bool {
        let number = self.cluster.number.swap(share.window, Ordering::Relaxed);
        let elsewhere = share.total - i64::from(share.after);
        self.cluster.elsewhere.store(elsewhere, Ordering::Relaxed);
        if number == share.window {
            let known = Window::unpack(self.share.load(Ordering::Relaxed));
            self.share.store(Window { count: share.after, ..known }.pack(), Ordering::Relaxed);
            return false;
        }
        self.cluster.exhausted.store(0, Ordering::Relaxed);
        // One that was opened before this process was started began with it, for this node: it had nothing of it.
        let opened_ms = asked_mono_ms.saturating_sub(share.elapsed_ms).min(OPENED_MAX);
        // The share first: a request that sees the new window must not see the old share.
        self.share.store(Window { opened_ms, count: share.after }.pack(), Ordering::Relaxed);
        self.window.store(Window { opened_ms, count: share.before }.pack(), Ordering::Release);
        true
    }

    /// Gives back what of the share is not used: the number of its window, and how many.
    pub(super) fn give_back(&self, mono_ms: u64) -> (u64, u32) {
        let number = self.cluster.number.load(Ordering::Relaxed);
        let share = Window::unpack(self.share.load(Ordering::Relaxed));
        if !share.is_current(mono_ms) {
            return (number, 0);
        }
        let use_up = |word| {
            let window = Window::unpack(word);
            (window.opened_ms == share.opened_ms && window.count < share.count).then(|| share.pack())
        };
        let before = self.window.fetch_update(Ordering::Relaxed, Ordering::Relaxed, use_up);
        let unused = before.map_or(0, |before| share.count - Window::unpack(before).count);
        self.cluster.elsewhere.fetch_sub(unused.into(), Ordering::Relaxed);
        self.ration();
        (number, unused)
    }

    /// Little is left of the window.
    fn ration(&self) {
        self.cluster.scarce.store(self.limit.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    /// The cluster has nothing left of a window, for the limit that was asked with.
    pub(super) fn exhaust(&self, need: BurstNeed) {
        self.cluster.exhausted.store(need.limit, Ordering::Relaxed);
    }

    pub(super) fn look(&self, mono_ms: u64) -> Window {
        Window::unpack(self.window.load(Ordering::Relaxed)).at(mono_ms)
    }

    pub(super) fn standing(&self, window: Window, mono_ms: u64) -> BurstStanding {
        let limit = self.limit.load(Ordering::Relaxed);
        let reset_s = if window.count == 0 { 0 } else { window.closes_in_s(mono_ms) };
        let elsewhere = if reset_s == 0 { 0 } else { self.cluster.elsewhere.load(Ordering::Relaxed) };
        let used = i64::from(window.count) + elsewhere;
        let remaining = u32::try_from((i64::from(limit) - used).max(0)).unwrap_or(limit).min(limit);
        BurstStanding { limit, remaining, reset_s }
    }
}

/// How many are asked for at a time: each is a request to the cluster, and what a node that dies had is lost until the
/// window ends.
fn share_size(limit: u32) -> u32 {
    (limit / 20).max(1)
}
