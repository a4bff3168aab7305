//! A meter on a node of a cluster: its leases are shares of what all nodes may use together, and what it has used is entered in
//! the log that the nodes share.

use std::sync::atomic::Ordering;

use super::quota::Quota;
use super::{KeyNeed, KeyShare, LimitSet, Meter, SharedUse, Unused};
use crate::clock::Moment;
use crate::model::Timestamp;

impl Meter {
    /// What a node of a cluster needs more of, to be granted, exhausted or declined afterwards. `None` if nothing is needed,
    /// which resolves the pending request.
    pub fn plan_share(&self, now: Moment) -> Option<KeyNeed> {
        let leasing = self.leasing();
        let dates = self.dates(now);
        let units = leasing.awaited.iter().copied().max().unwrap_or_default();
        let (day, month) = (self.day.plan_share(dates.day, units), self.month.plan_share(dates.month, units));
        let burst = self.burst.plan_share(now.mono_ms, units > 0);
        let need = KeyNeed { resets: leasing.resets, burst, day, month };
        if need.is_empty() {
            self.leases.resolve();
            return None;
        }
        Some(need)
    }

    /// Makes shares usable that were asked for at a moment.
    pub fn grant_share(&self, need: KeyNeed, share: KeyShare, asked: Moment) {
        let mut leasing = self.leasing();
        if leasing.resets != share.resets {
            leasing.resets = share.resets;
            let dates = self.dates(asked);
            self.day.restart(dates.day);
            self.month.restart(dates.month);
        }
        if let Some((need, share)) = need.burst.zip(share.burst) {
            self.burst.grant_share(need, share, asked.mono_ms);
        }
        for (quota, need, share) in [(&self.day, need.day, share.day), (&self.month, need.month, share.month)] {
            if let Some((need, share)) = need.zip(share) {
                quota.grant_share(need, share);
            }
        }
    }

    /// What this node has of the limits, for a cluster that may have forgotten it. `None` if it has nothing.
    pub fn holdings(&self, now: Moment) -> Option<KeyNeed> {
        let leasing = self.leasing();
        let burst = self.burst.holdings(now.mono_ms);
        let need = KeyNeed { resets: leasing.resets, burst, day: self.day.holdings(), month: self.month.holdings() };
        (!need.is_empty()).then_some(need)
    }

    /// The cluster has nothing left of these.
    pub fn exhaust(&self, nothing_left: KeyNeed) {
        nothing_left.burst.into_iter().for_each(|need| self.burst.exhaust(need));
        nothing_left.day.into_iter().for_each(|need| self.day.exhaust(need));
        nothing_left.month.into_iter().for_each(|need| self.month.exhaust(need));
    }

    /// What was used of the day and of the month counts anew.
    pub fn forget_exhaustion(&self) {
        self.day.forget_exhaustion();
        self.month.forget_exhaustion();
    }

    /// Resolves the pending request, after shares were granted.
    pub fn resolve_lease(&self) {
        self.leases.resolve();
    }

    /// Takes what is not used of this node's shares of limits, to give it back to the cluster.
    pub fn take_unused(&self, limits: LimitSet, now: Moment) -> Unused {
        let leasing = self.leasing();
        let quota = |quota: &Quota| {
            let unused = quota.give_back();
            (unused.period_number(), unused.count())
        };
        Unused {
            resets: leasing.resets,
            burst: if limits.burst { self.burst.give_back(now.mono_ms) } else { (0, 0) },
            day: if limits.day { quota(&self.day) } else { (0, 0) },
            month: if limits.month { quota(&self.month) } else { (0, 0) },
        }
    }

    /// In a cluster, what all nodes have used, as far as their log has it.
    pub fn shared_use(&self) -> Option<SharedUse> {
        self.recorder.shared_use()
    }

    /// An entry of the log has changed it.
    pub fn put_shared_use(&self, shared: SharedUse) {
        self.recorder.put_shared_use(shared);
        if let Some(used) = shared.last_used {
            self.last_used.fetch_max(used.unix(), Ordering::Relaxed);
        }
    }

    /// Takes the units that were used here since this was last called, and when they were last, to enter both in the log.
    pub fn take_use(&self) -> Option<(u64, Timestamp)> {
        let last_used = self.last_used()?;
        Some(self.recorder.take_units()).filter(|units| *units > 0).map(|units| (units, last_used))
    }

    /// Units that were taken could not be entered.
    pub fn keep_use(&self, units: u64) {
        self.recorder.keep_units(units);
    }
}
