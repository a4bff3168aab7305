//! The upstream credits that a polled feed has spent.

use super::time::Timestamp;

/// The credits spent by one feed. Stored, so that a restart does not exceed the budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedBudget {
    /// The UTC day of `spent`, in days since 1970.
    pub day: u32,
    /// Credits spent on that day.
    pub spent: u64,
    /// What the upstream last reported; `None` if it reports nothing.
    pub reported: Option<ReportedCredits>,
    /// When the feed was last polled.
    pub polled: Option<Timestamp>,
    /// A checksum of the address and the key: another account has credits of its own.
    pub account: u32,
    /// A checksum of the requested data: after a change the feed is polled without delay.
    pub scope: u32,
}

/// The remaining credits as the upstream reported them, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedCredits {
    pub left: u64,
    pub at: Timestamp,
}
