//! How much of a key's limits is left, as answers tell it to the client. Plain figures, taken at one moment.

/// A key's use of all its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    pub burst: BurstStanding,
    pub day: QuotaStanding,
    pub month: QuotaStanding,
}

impl Standing {
    /// The quota that a client is told of first: the day's, or the month's for a key that has only that.
    pub fn quota(&self) -> QuotaStanding {
        if self.day.limit.is_none() && self.month.limit.is_some() { self.month } else { self.day }
    }

    /// The same, less the request that it was taken for.
    pub(super) fn without_one(mut self, quotas_too: bool) -> Self {
        self.burst.remaining = self.burst.remaining.saturating_add(1).min(self.burst.limit);
        if quotas_too {
            self.day.used = self.day.used.saturating_sub(1);
            self.month.used = self.month.used.saturating_sub(1);
        }
        self
    }
}

/// The window of a minute. While none is open, all of it remains and there is nothing to reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BurstStanding {
    pub limit: u32,
    pub remaining: u32,
    pub reset_s: u32,
}

/// A UTC day or month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaStanding {
    /// `None` counts without an end.
    pub limit: Option<u64>,
    pub used: u64,
    pub reset_s: u32,
}

impl QuotaStanding {
    pub fn remaining(&self) -> Option<u64> {
        self.limit.map(|limit| limit.saturating_sub(self.used))
    }
}
