//! Sources: the freshness of one bookmaker's prices in one sport.

use super::time::Timestamp;

/// A bookmaker as a source of one sport's prices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// When its prices were last confirmed: the newest time that a feed gave, never in the future.
    pub last_read: Timestamp,
    /// How long that read took, as its feed measured it.
    pub latency_ms: u32,
    /// Since when it has had no price at all; `None` while it has one.
    pub empty_since: Option<Timestamp>,
}

impl Source {
    /// Whether it has no price: a complete poll left it out, or all its markets are closed. Nothing of it is served, so
    /// it cannot be stale.
    pub fn is_idle(&self) -> bool {
        self.empty_since.is_some()
    }

    /// Whether it has a price, but no successful read for longer than `stale_after_seconds`.
    pub fn is_stale(&self, now: Timestamp, stale_after_seconds: u32) -> bool {
        !self.is_idle() && now.seconds_since(self.last_read) > stale_after_seconds
    }
}
