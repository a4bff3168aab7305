//! What a polled feed has spent of its upstream's credits.

use super::time::Timestamp;

/// The spending of one feed. It is stored, so that a restart spends nothing twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FeedBudget {
    /// The UTC day that `spent` is of, in days since 1970.
    pub day: u32,
    /// Credits spent on that day.
    pub spent: u64,
    /// What the upstream last reported; `None` if it reports nothing.
    pub reported: Option<ReportedCredits>,
    /// When the feed was last polled.
    pub polled: Option<Timestamp>,
    /// A checksum of the address and the key: other ones have credits of their own.
    pub account: u32,
    /// A checksum of what is asked for: something else is asked for at once.
    pub scope: u32,
}

/// The credits that an upstream says are left, and when it said so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportedCredits {
    pub left: u64,
    pub at: Timestamp,
}
