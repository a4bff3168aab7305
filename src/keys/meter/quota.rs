//! A quota: how many requests a key has used of one period, a UTC day or a UTC month.
//!
//! Owns what is used, what is granted, and the limit. Used and granted each hold their period's number above their
//! count, so a later period is a greater word, and neither ever goes back to an earlier one: a clock that is set back
//! counts on in the period it left. What is granted was stored before it came here, and no request passes beyond it,
//! so a crash can lose what was granted and not used, and never hand it out twice.
//!
//! A clock that was days ahead and was set right has left a period behind that the true one will not reach for long.
//! Nobody is to wait for that: requests count on in it until the clock's own day, or month, ends, and then in the one
//! that follows it. So a clock gives nothing back by being set, and shuts nobody out for longer than a true period and
//! the two days of tolerance that tell a wrong clock from one that is set back by a little. A period that ends between a
//! stop and the next start has ended too. What a clock that was ahead used of the very next month stays used when that
//! month comes: an operator can begin it anew.
//!
//! While a process runs, its dates come from a clock that nobody can set (see [`crate::clock`]): a wall clock that is set
//! ahead, or to and fro, opens no period before its time. A start believes the wall clock.
//!
//! Every promise rests on a single word being exchanged as a whole, none on the order in which two words are seen:
//! that is why the orderings are relaxed, but for those that an operator's [`Quota::restart`] needs.

use std::sync::atomic::{AtomicU64, Ordering};

use super::standing::QuotaStanding;

const COUNT_BITS: u32 = 48;
/// The largest quota that can be counted.
pub const QUOTA_MAX: u64 = (1 << COUNT_BITS) - 1;
const PERIOD_MAX: u64 = u64::MAX >> COUNT_BITS;
const UNLIMITED: u64 = u64::MAX;
/// The clock is not far behind.
const NOT_BEHIND: u64 = u64::MAX;

/// How much is stored ahead of use at a time: a hundredth of the quota, within bounds. A crash costs a key at most one
/// lease of its day and one of its month; a larger one costs more, a smaller one more commits.
pub fn lease_size(limit: u64) -> u64 {
    (limit / 100).clamp(100, 10_000)
}

/// A period's number and a count within it, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Tally(u64);

impl Tally {
    pub(super) fn new(period: u64, count: u64) -> Self {
        Tally(period.min(PERIOD_MAX) << COUNT_BITS | count.min(QUOTA_MAX))
    }

    /// The start of a period.
    fn opening(period: u64) -> Self {
        Tally::new(period, 0)
    }

    pub(super) fn period(self) -> u64 {
        self.0 >> COUNT_BITS
    }

    pub(super) fn count(self) -> u64 {
        self.0 & QUOTA_MAX
    }

    /// The period as it is stored.
    pub(super) fn period_number(self) -> u32 {
        u32::try_from(self.period()).unwrap_or(u32::MAX)
    }

    fn plus_one(self) -> Self {
        Tally::new(self.period(), self.count() + 1)
    }
}

#[derive(Debug)]
pub(super) struct Quota {
    used: AtomicU64,
    granted: AtomicU64,
    limit: AtomicU64,
    /// The clock's period when it was found to be far behind the one that is held.
    behind_since: AtomicU64,
}

/// One request taken from a quota.
#[derive(Clone, Copy, Debug)]
pub(super) struct Taken {
    pub(super) tally: Tally,
    /// Less than half a lease is left: time to ask for the next, so that nobody has to wait for it.
    pub(super) runs_low: bool,
}

/// Why nothing can be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Short {
    Spent { period: u64 },
    NeedsLease,
}

/// What a quota wants stored next.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) tally: Tally,
    /// Whether it is more than what is granted already.
    pub(super) wanted: bool,
}

impl Quota {
    /// Goes on from what was stored: all of it counts as used, as nobody knows how much of it was. So does a clock that
    /// was found to be far behind it.
    pub(super) fn new(limit: Option<u64>, stored: Tally, behind_since: Option<u64>) -> Self {
        let quota = Quota {
            used: stored.0.into(),
            granted: stored.0.into(),
            limit: UNLIMITED.into(),
            behind_since: behind_since.unwrap_or(NOT_BEHIND).into(),
        };
        quota.set_limit(limit);
        quota
    }

    pub(super) fn set_limit(&self, limit: Option<u64>) {
        self.limit.store(limit.map_or(UNLIMITED, |limit| limit.min(QUOTA_MAX)), Ordering::Relaxed);
    }

    /// Begins `period` with nothing used and nothing granted, also if a later one is held. Granted goes first: who sees
    /// the new count must not see an old grant.
    pub(super) fn restart(&self, period: u64) {
        let opening = Tally::opening(period).0;
        self.behind_since.store(NOT_BEHIND, Ordering::Relaxed);
        self.granted.store(opening, Ordering::Release);
        self.used.store(opening, Ordering::Release);
    }

    /// The period that a request counts in when the clock says `clock`: that one, unless the one that is held
    /// `is_far` ahead of it.
    pub(super) fn period_at(&self, clock: u64, is_far: impl FnOnce(u64) -> bool) -> u64 {
        let held = self.used().period().max(self.granted().period());
        if held > clock && is_far(held) {
            return self.period_behind(clock, held);
        }
        if self.behind_since.load(Ordering::Relaxed) != NOT_BEHIND {
            self.behind_since.store(NOT_BEHIND, Ordering::Relaxed);
        }
        clock
    }

    /// Counts on in the held period, and enters the next one when the clock does. A clock that wavers by one around
    /// the end of its period enters no other period by that.
    fn period_behind(&self, clock: u64, held: u64) -> u64 {
        let since = self.behind_since.load(Ordering::Relaxed);
        let is_over = since != NOT_BEHIND && clock > since;
        if is_over || since == NOT_BEHIND || clock + 1 < since {
            let noted = self.behind_since.compare_exchange(since, clock, Ordering::Relaxed, Ordering::Relaxed);
            // Of several requests that see the period end, one enters the next.
            if is_over && noted.is_ok() {
                return self.enter(held + 1).period();
            }
        }
        self.look(held).period()
    }

    /// Takes one in `period`, or in the later period that is held.
    pub(super) fn take(&self, period: u64) -> Result<Taken, Short> {
        let limit = self.limit.load(Ordering::Relaxed);
        let mut held = self.used.load(Ordering::Acquire);
        loop {
            let granted = self.granted();
            let before = Tally(held).max(Tally::opening(period)).max(Tally::opening(granted.period()));
            if let Some(short) = short(before, granted, limit) {
                return Err(short);
            }
            let tally = before.plus_one();
            match self.used.compare_exchange_weak(held, tally.0, Ordering::Relaxed, Ordering::Acquire) {
                Ok(_) => return Ok(Taken { tally, runs_low: runs_low(tally, granted, limit) }),
                Err(changed) => held = changed,
            }
        }
    }

    /// Gives one back, if its period is still the one that counts.
    pub(super) fn refund(&self, taken: Tally) {
        let give_back = |word| {
            let held = Tally(word);
            let same = held.period() == taken.period() && held.count() > 0;
            same.then(|| Tally::new(held.period(), held.count() - 1).0)
        };
        // An error only says that the period is over: then there is nothing to do.
        let _ = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, give_back);
    }

    /// What is used in `period`, or in the later period that is held.
    pub(super) fn look(&self, period: u64) -> Tally {
        self.used().max(Tally::opening(period))
    }

    /// Moves on to `period`, unless a later one is held.
    pub(super) fn enter(&self, period: u64) -> Tally {
        let opening = Tally::opening(period);
        Tally(self.used.fetch_max(opening.0, Ordering::Relaxed)).max(opening)
    }

    /// Whether the next request would have to wait for a lease.
    pub(super) fn needs_lease(&self, period: u64) -> bool {
        short(self.look(period), self.granted(), self.limit.load(Ordering::Relaxed)) == Some(Short::NeedsLease)
    }

    /// What is to be stored next. Never less than what is granted: that may be used up while it is being stored.
    pub(super) fn plan(&self, period: u64) -> Plan {
        let limit = self.limit.load(Ordering::Relaxed);
        let used = self.enter(period);
        let granted = self.granted().max(used);
        let wanted = runs_low(used, granted, limit);
        let ahead = if wanted { (used.count() + lease_size(limit)).min(limit) } else { 0 };
        Plan { tally: granted.max(Tally::new(granted.period(), ahead)), wanted }
    }

    /// Makes usable what has been stored.
    pub(super) fn grant(&self, stored: Tally) {
        self.granted.fetch_max(stored.0, Ordering::Relaxed);
    }

    pub(super) fn used(&self) -> Tally {
        Tally(self.used.load(Ordering::Relaxed))
    }

    pub(super) fn granted(&self) -> Tally {
        Tally(self.granted.load(Ordering::Relaxed))
    }

    pub(super) fn standing(&self, tally: Tally, reset_s: u32) -> QuotaStanding {
        let limit = self.limit.load(Ordering::Relaxed);
        QuotaStanding { limit: (limit != UNLIMITED).then_some(limit), used: tally.count(), reset_s }
    }
}

fn short(used: Tally, granted: Tally, limit: u64) -> Option<Short> {
    if limit == UNLIMITED {
        None
    } else if used.count() >= limit {
        Some(Short::Spent { period: used.period() })
    } else {
        (used >= granted).then_some(Short::NeedsLease)
    }
}

fn runs_low(used: Tally, granted: Tally, limit: u64) -> bool {
    let left = granted.count().saturating_sub(used.count());
    limit != UNLIMITED && granted.count() < limit && left < lease_size(limit) / 2
}
