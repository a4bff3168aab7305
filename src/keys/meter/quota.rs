//! A quota: how many requests a key has used in one period, a UTC day or a UTC month.
//!
//! Owns the used count, the granted count and the limit. Used and granted each hold their period's number above their
//! count in one word, so a later period compares greater, and neither ever returns to an earlier period: when the clock
//! is set back, requests are still counted in the later one. Granted counts were stored before they came here, and no
//! request passes beyond them, so a crash can lose what was granted and not used, but never grant it twice.
//!
//! A clock that was days ahead and has been corrected leaves a period that the correct clock does not reach for a long
//! time. Requests are counted in that period until the clock's own day, or month, ends, and then in the period after
//! it. So setting the clock refunds nothing, and locks a key out for at most one period and the tolerance that
//! separates a wrong clock from a small correction. This also holds for a period that ends while the process is
//! stopped. What was used of the next month while the clock was ahead stays used when that month begins; an operator
//! can reset it.
//!
//! While the process runs, its dates come from a clock that cannot be set (see [`crate::clock`]): setting the wall
//! clock ahead, or back and forth, begins no period early. A restart trusts the wall clock.
//!
//! A node of a cluster counts what it has itself taken of the period, and its leases are shares that the cluster has given to
//! it alone: all shares together are at most the limit. What the other nodes have is known as of the last share. That all is
//! given out does not mean that it is used: only the cluster says when nothing is left. A share is given back by counting
//! the rest of it as used.
//!
//! Every guarantee depends on the atomic update of a single word, none on the order in which two words are seen. That
//! is why the orderings are relaxed, except for those that [`Quota::restart`] needs.

use std::sync::atomic::{AtomicU64, Ordering};

use super::QuotaStanding;
use super::share::{QuotaNeed, QuotaShare};

const COUNT_BITS: u32 = 48;
/// The largest quota that can be counted.
pub const QUOTA_MAX: u64 = (1 << COUNT_BITS) - 1;
const PERIOD_MAX: u64 = u64::MAX >> COUNT_BITS;
const UNLIMITED: u64 = u64::MAX;
/// The clock is not behind the stored period.
const NOT_BEHIND: u64 = u64::MAX;

/// The number of requests leased at a time: a hundredth of the quota, within bounds. A crash costs a key at most one
/// lease of its day and one of its month; larger leases lose more, smaller ones need more commits.
pub fn lease_size(limit: u64) -> u64 {
    (limit / 100).clamp(100, 10_000)
}

/// A period's number and a count within it, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct PeriodCount(u64);

impl PeriodCount {
    pub(super) fn new(period: u64, count: u64) -> Self {
        PeriodCount(period.min(PERIOD_MAX) << COUNT_BITS | count.min(QUOTA_MAX))
    }

    /// A period with nothing used.
    fn opening(period: u64) -> Self {
        PeriodCount::new(period, 0)
    }

    pub(super) fn period(self) -> u64 {
        self.0 >> COUNT_BITS
    }

    pub(super) fn count(self) -> u64 {
        self.0 & QUOTA_MAX
    }

    /// The period in its stored form.
    pub(super) fn period_number(self) -> u32 {
        u32::try_from(self.period()).unwrap_or(u32::MAX)
    }

    fn plus(self, units: u64) -> Self {
        PeriodCount::new(self.period(), self.count() + units)
    }
}

/// A period's number and what other nodes have of it, less what this one has given back.
#[derive(Clone, Copy, Debug)]
struct Elsewhere(u64);

impl Elsewhere {
    /// Added to the count, which may be below zero.
    const BIAS: i64 = 1 << (COUNT_BITS - 1);

    fn new(period: u64, count: i64) -> Self {
        let biased = count.clamp(-Self::BIAS, Self::BIAS - 1) + Self::BIAS;
        Elsewhere(period.min(PERIOD_MAX) << COUNT_BITS | biased.unsigned_abs())
    }

    /// The count, if it is of that period.
    fn within(self, period: u64) -> i64 {
        if self.0 >> COUNT_BITS == period { (self.0 & QUOTA_MAX).cast_signed() - Self::BIAS } else { 0 }
    }
}

#[derive(Debug)]
pub(super) struct Quota {
    used: AtomicU64,
    granted: AtomicU64,
    /// Nothing, for a node that is alone.
    elsewhere: AtomicU64,
    /// The period and the limit of which the cluster has nothing left.
    exhausted: AtomicU64,
    /// The same for a limit of which so little is left that nothing is asked for before a request waits for it: it would be
    /// missing elsewhere.
    scarce: AtomicU64,
    limit: AtomicU64,
    /// What was used when the process was started.
    stored: PeriodCount,
    /// The clock's period when it was found to be far behind the stored one.
    behind_since: AtomicU64,
}

/// Units counted against a quota: a request is one, unless its answer is long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) used: PeriodCount,
    /// Less than half a lease is left: the next one is requested now, so that no request has to wait for it.
    pub(super) runs_low: bool,
}

/// Why units cannot be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shortage {
    Exhausted { period: u64 },
    NeedsLease,
}

/// The next lease of a quota.
#[derive(Clone, Copy, Debug)]
pub(super) struct LeasePlan {
    pub(super) lease: PeriodCount,
    /// Whether more than the granted count is needed.
    pub(super) wanted: bool,
}

impl Quota {
    /// Continues from the stored count. All of it counts as used, as the used part of a lease is not stored.
    /// `behind_since` is the clock's period if it was found to be far behind the stored one.
    pub(super) fn new(limit: Option<u64>, stored: PeriodCount, behind_since: Option<u64>) -> Self {
        let quota = Quota {
            used: stored.0.into(),
            granted: stored.0.into(),
            elsewhere: Elsewhere::new(0, 0).0.into(),
            exhausted: 0.into(),
            scarce: 0.into(),
            limit: UNLIMITED.into(),
            stored,
            behind_since: behind_since.unwrap_or(NOT_BEHIND).into(),
        };
        quota.set_limit(limit);
        quota
    }

    /// The same for a node of a cluster: it has taken nothing yet of what is stored.
    pub(super) fn shared(limit: Option<u64>, stored: PeriodCount) -> Self {
        let quota = Quota { stored, ..Quota::new(limit, PeriodCount::opening(stored.period()), None) };
        quota.set_elsewhere(stored.period(), stored.count().cast_signed());
        quota
    }

    fn set_elsewhere(&self, period: u64, count: i64) {
        self.elsewhere.store(Elsewhere::new(period, count).0, Ordering::Relaxed);
    }

    fn elsewhere(&self, period: u64) -> i64 {
        Elsewhere(self.elsewhere.load(Ordering::Relaxed)).within(period)
    }

    pub(super) fn set_limit(&self, limit: Option<u64>) {
        self.limit.store(limit.map_or(UNLIMITED, |limit| limit.min(QUOTA_MAX)), Ordering::Relaxed);
    }

    /// Begins `period` with nothing used and nothing granted, even if the current one is later. `granted` is stored
    /// first: a thread that sees the new count must not see the old grant.
    pub(super) fn restart(&self, period: u64) {
        let opening = PeriodCount::opening(period).0;
        self.behind_since.store(NOT_BEHIND, Ordering::Relaxed);
        self.forget_exhaustion();
        self.scarce.store(0, Ordering::Relaxed);
        self.set_elsewhere(period, 0);
        self.granted.store(opening, Ordering::Release);
        self.used.store(opening, Ordering::Release);
    }

    /// The period that a request is counted in: the clock's, unless the current one `is_far` ahead of it.
    pub(super) fn period_at(&self, clock: u64, is_far: impl FnOnce(u64) -> bool) -> u64 {
        let current = self.used().period().max(self.granted().period());
        if current > clock && is_far(current) {
            return self.period_behind(clock, current);
        }
        if self.behind_since.load(Ordering::Relaxed) != NOT_BEHIND {
            self.behind_since.store(NOT_BEHIND, Ordering::Relaxed);
        }
        clock
    }

    /// Stays in the current period, and enters the next one when the clock does. A clock that jitters by one around the
    /// end of its period enters no further period.
    fn period_behind(&self, clock: u64, current: u64) -> u64 {
        let since = self.behind_since.load(Ordering::Relaxed);
        let is_over = since != NOT_BEHIND && clock > since;
        if is_over || since == NOT_BEHIND || clock + 1 < since {
            let updated = self.behind_since.compare_exchange(since, clock, Ordering::Relaxed, Ordering::Relaxed);
            // Of several requests that see the period end, only one enters the next.
            if is_over && updated.is_ok() {
                return self.enter(current + 1).period();
            }
        }
        self.look(current).period()
    }

    /// Counts units in `period`, or in the current period if that is later: all of them or none.
    pub(super) fn take(&self, period: u64, units: u64) -> Result<Taken, Shortage> {
        let limit = self.limit.load(Ordering::Relaxed);
        let mut current = self.used.load(Ordering::Acquire);
        loop {
            let granted = self.granted();
            let before =
                PeriodCount(current).max(PeriodCount::opening(period)).max(PeriodCount::opening(granted.period()));
            if let Some(shortage) = self.shortage(before, granted, limit, units) {
                return Err(shortage);
            }
            let used = before.plus(units);
            match self.used.compare_exchange_weak(current, used.0, Ordering::Relaxed, Ordering::Acquire) {
                Ok(_) => return Ok(Taken { used, runs_low: self.runs_low(used, granted, limit) }),
                Err(changed) => current = changed,
            }
        }
    }

    /// Refunds units, if their period is still the current one.
    pub(super) fn refund(&self, taken: PeriodCount, units: u64) {
        let subtract = |word| {
            let current = PeriodCount(word);
            let same = current.period() == taken.period() && current.count() > 0;
            same.then(|| PeriodCount::new(current.period(), current.count().saturating_sub(units)).0)
        };
        // An error means that the period has ended, so there is nothing to refund.
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, subtract);
    }

    /// The used count in `period`, or in the current period if that is later.
    pub(super) fn look(&self, period: u64) -> PeriodCount {
        self.used().max(PeriodCount::opening(period))
    }

    /// Enters `period`, unless the current one is later.
    pub(super) fn enter(&self, period: u64) -> PeriodCount {
        let opening = PeriodCount::opening(period);
        PeriodCount(self.used.fetch_max(opening.0, Ordering::Relaxed)).max(opening)
    }

    /// Whether a request of so many units would have to wait for a lease.
    pub(super) fn needs_lease(&self, period: u64, units: u64) -> bool {
        let limit = self.limit.load(Ordering::Relaxed);
        self.shortage(self.look(period), self.granted(), limit, units) == Some(Shortage::NeedsLease)
    }

    fn shortage(&self, used: PeriodCount, granted: PeriodCount, limit: u64, units: u64) -> Option<Shortage> {
        let exhausted = Shortage::Exhausted { period: used.period() };
        if limit == UNLIMITED {
            None
        } else if used.count() + units > limit {
            Some(exhausted)
        } else if used.plus(units) > granted {
            Some(if self.is_exhausted(used.period(), limit) { exhausted } else { Shortage::NeedsLease })
        } else {
            None
        }
    }

    fn runs_low(&self, used: PeriodCount, granted: PeriodCount, limit: u64) -> bool {
        let left = granted.count().saturating_sub(used.count());
        let given_out = || granted.count().saturating_add_signed(self.elsewhere(granted.period()));
        limit != UNLIMITED
            && left < lease_size(limit) / 2
            && given_out() < limit
            && !self.is_scarce(granted.period(), limit)
    }

    fn is_exhausted(&self, period: u64, limit: u64) -> bool {
        self.exhausted.load(Ordering::Relaxed) == PeriodCount::new(period, limit).0
    }

    fn is_scarce(&self, period: u64, limit: u64) -> bool {
        self.scarce.load(Ordering::Relaxed) == PeriodCount::new(period, limit).0
    }

    /// The next lease. Never less than the granted count, which may be used up while the lease is being stored.
    pub(super) fn plan(&self, period: u64) -> LeasePlan {
        let limit = self.limit.load(Ordering::Relaxed);
        let used = self.enter(period);
        let granted = self.granted().max(used);
        let wanted = self.runs_low(used, granted, limit);
        let ahead = if wanted { (used.count() + lease_size(limit)).min(limit) } else { 0 };
        LeasePlan { lease: granted.max(PeriodCount::new(granted.period(), ahead)), wanted }
    }

    /// The next share, if one is needed. A request waits for `units`, which may be none.
    pub(super) fn plan_share(&self, period: u64, units: u64) -> Option<QuotaNeed> {
        let limit = self.limit.load(Ordering::Relaxed);
        if limit == UNLIMITED {
            return None;
        }
        let used = self.enter(period.max(self.granted().period()));
        let granted = self.granted().max(used);
        if self.is_exhausted(granted.period(), limit) {
            return None;
        }
        let left = granted.count() - used.count();
        let ahead = if self.is_scarce(granted.period(), limit) { 0 } else { lease_size(limit) / 2 };
        let (period, own) = (granted.period_number(), granted.count());
        let wanted = lease_size(limit).saturating_sub(left);
        let stored = if self.stored.period() == granted.period() { self.stored.count() } else { 0 };
        (left < units.max(ahead)).then_some(QuotaNeed { period, own, stored, wanted, limit })
    }

    /// What this node has of the current period, as a need of no more; none if it has nothing.
    pub(super) fn holdings(&self) -> Option<QuotaNeed> {
        let (limit, granted) = (self.limit.load(Ordering::Relaxed), self.granted());
        let (period, own) = (granted.period_number(), granted.count());
        let has_some = limit != UNLIMITED && own > 0;
        has_some.then_some(QuotaNeed { period, own, stored: 0, wanted: 0, limit })
    }

    /// Makes a share usable.
    pub(super) fn grant_share(&self, need: QuotaNeed, share: QuotaShare) {
        let period = u64::from(share.period);
        if share.after - share.before < need.wanted {
            self.ration(period);
        }
        let granted = self.granted();
        if granted.period() > period {
            return;
        }
        let known = if granted.period() == period { granted.count() } else { 0 };
        if share.before > known {
            // It was given to this node before it was started: what of it was used is not known.
            self.used.fetch_max(PeriodCount::new(period, share.before).0, Ordering::Relaxed);
        }
        self.set_elsewhere(period, share.total - share.after.cast_signed());
        self.granted.fetch_max(PeriodCount::new(period, share.after).0, Ordering::Relaxed);
    }

    /// Gives back what of the share is not used, and returns it.
    pub(super) fn give_back(&self) -> PeriodCount {
        let granted = self.granted();
        let use_up = |word| {
            let used = PeriodCount(word);
            (used.period() == granted.period() && used < granted).then_some(granted.0)
        };
        let before = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, use_up);
        let unused = before.map_or(0, |before| granted.count() - PeriodCount(before).count());
        self.ration(granted.period());
        self.set_elsewhere(granted.period(), self.elsewhere(granted.period()) - unused.cast_signed());
        PeriodCount::new(granted.period(), unused)
    }

    /// Little is left of a period.
    fn ration(&self, period: u64) {
        let limit = self.limit.load(Ordering::Relaxed);
        self.scarce.store(PeriodCount::new(period, limit).0, Ordering::Relaxed);
    }

    /// The cluster has nothing left of a period, for the limit that was asked with.
    pub(super) fn exhaust(&self, need: QuotaNeed) {
        self.exhausted.store(PeriodCount::new(need.period.into(), need.limit).0, Ordering::Relaxed);
    }

    pub(super) fn forget_exhaustion(&self) {
        self.exhausted.store(0, Ordering::Relaxed);
    }

    /// Makes a stored lease usable.
    pub(super) fn grant(&self, stored: PeriodCount) {
        self.granted.fetch_max(stored.0, Ordering::Relaxed);
    }

    pub(super) fn used(&self) -> PeriodCount {
        PeriodCount(self.used.load(Ordering::Relaxed))
    }

    pub(super) fn granted(&self) -> PeriodCount {
        PeriodCount(self.granted.load(Ordering::Relaxed))
    }

    pub(super) fn standing(&self, used: PeriodCount, reset_s: u32) -> QuotaStanding {
        let limit = self.limit.load(Ordering::Relaxed);
        let used = used.count().saturating_add_signed(self.elsewhere(used.period()));
        QuotaStanding { limit: (limit != UNLIMITED).then_some(limit), used, reset_s }
    }
}
