//! What a key has used and has left, as responses report it.

/// A key's use of all its limits at one moment, as responses report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub burst: BurstStanding,
    pub day: QuotaStanding,
    pub month: QuotaStanding,
}

impl Standing {
    /// The quota that responses report first: the day's, or the month's for a key that has only a monthly one.
    pub fn quota(&self) -> QuotaStanding {
        if self.day.limit.is_none() && self.month.limit.is_some() { self.month } else { self.day }
    }

    /// The standing without the request that it includes, which took so many units.
    pub(super) fn without(mut self, units: u64) -> Self {
        self.burst.remaining = self.burst.remaining.saturating_add(1).min(self.burst.limit);
        self.day.used = self.day.used.saturating_sub(units);
        self.month.used = self.month.used.saturating_sub(units);
        self
    }
}

/// The one-minute window. If no window is open, `remaining` is the limit and `reset_s` is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstStanding {
    pub limit: u32,
    pub remaining: u32,
    pub reset_s: u32,
}

/// The use of a UTC day or month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaStanding {
    /// `None` if unlimited; use is counted anyway.
    pub limit: Option<u64>,
    pub used: u64,
    pub reset_s: u32,
}

impl QuotaStanding {
    pub fn remaining(&self) -> Option<u64> {
        self.limit.map(|limit| limit.saturating_sub(self.used))
    }
}
