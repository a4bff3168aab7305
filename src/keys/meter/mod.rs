//! The meter of one key: what it has used of its minute, its day and its month.
//!
//! Owns the counters and promises that exactly N of N+k concurrent requests pass, that a refused request leaves
//! nothing charged, and that after a crash a key is never handed more than it had left. It keeps the last promise by
//! handing out only what has been stored ahead of use: a lease. A request takes no lock; nothing here reads a clock or
//! does I/O; who stores the leases is reached through the [desk](super::desk).
//!
//! 1. the minute is taken from, then the day, then the month; the first that is spent refuses, and what was taken
//!    before it goes back;
//! 2. where a quota has room but no lease, the answer is [`Refusal::NeedsLease`]: wait for [`Meter::lease_arrives`]
//!    and charge again;
//! 3. when less than half a lease is left, the next one is asked for while requests go on.

mod burst;
mod calendar;
mod quota;
mod standing;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use self::burst::{Burst, Window};
use self::calendar::Dates;
use self::quota::{Quota, Short, Tally};
use super::desk::{Bell, LeaseDeclined, LeaseDesk};
use super::record::{KeyRecord, Limits, Usage};
use crate::clock::Moment;
use crate::model::Timestamp;

pub use self::burst::BURST_MAX;
pub use self::quota::{QUOTA_MAX, lease_size};
pub use self::standing::{BurstStanding, QuotaStanding, Standing};

/// What a request costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// One of the minute, the day and the month.
    Full,
    /// One of the minute only, so that health checks are free.
    BurstOnly,
}

/// Why a request does not pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the minute is spent, try again in {retry_after_s} s")]
    Burst { retry_after_s: u32 },
    #[error("the day is spent, try again in {retry_after_s} s")]
    Day { retry_after_s: u32 },
    #[error("the month is spent, try again in {retry_after_s} s")]
    Month { retry_after_s: u32 },
    /// There is room, but none that has been stored. Never shown to a client.
    #[error("a lease is on its way")]
    NeedsLease,
}

impl Refusal {
    /// Which limit is spent, as one word.
    pub const fn reason(&self) -> &'static str {
        match self {
            Refusal::Burst { .. } => "burst",
            Refusal::Day { .. } => "day",
            Refusal::Month { .. } => "month",
            Refusal::NeedsLease => "lease",
        }
    }
}

#[derive(Debug)]
pub struct Meter {
    burst: Burst,
    day: Quota,
    month: Quota,
    /// The second of the last request that passed, by the wall clock; zero for none. While the clock is far behind what
    /// is held, that of the last request at all by the clock that quotas go by, so that a start knows which day it was.
    last_used: AtomicU32,
    bell: Bell,
    leasing: Mutex<Leasing>,
}

/// What becomes of a lease that was planned and is not yet granted.
#[derive(Debug, Default)]
struct Leasing {
    /// The counters began anew since: the lease speaks of what no longer counts.
    is_void: bool,
}

impl Meter {
    /// Goes on from what was stored for the key.
    pub fn new(key: &KeyRecord, stored: Usage, desk: &LeaseDesk) -> Self {
        let (day, month) = (day_of(stored), month_of(stored));
        let last = key.last_used.map(Dates::at);
        let day_behind = last.filter(|last| last.is_far_day(day.period())).map(|last| last.clock_day);
        let month_behind = last.filter(|last| last.is_far_month(month.period())).map(|last| last.clock_month);
        Meter {
            burst: Burst::new(key.limits.burst_per_minute),
            day: Quota::new(key.limits.per_day, day, day_behind),
            month: Quota::new(key.limits.per_month, month, month_behind),
            last_used: AtomicU32::new(key.last_used.map_or(0, Timestamp::unix)),
            bell: desk.bell(key.id.clone()),
            leasing: Mutex::default(),
        }
    }

    /// Begins the day and the month of `fresh` with nothing used, as an operator asked for; the minute goes on. It must
    /// have been stored before.
    pub fn restart(&self, fresh: Usage, now: Moment) {
        let mut leasing = self.leasing();
        leasing.is_void = true;
        self.day.restart(fresh.day.into());
        self.month.restart(fresh.month.into());
        self.last_used.fetch_min(now.timestamp().unix(), Ordering::Relaxed);
    }

    /// Whether the lease that was planned last speaks of counters that have begun anew since. It must not be stored.
    pub fn has_void_lease(&self) -> bool {
        self.leasing().is_void
    }

    fn leasing(&self) -> MutexGuard<'_, Leasing> {
        self.leasing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The dates that requests count in now.
    fn dates(&self, now: Moment) -> Dates {
        let clock = Dates::of(now);
        let day = self.day.period_at(clock.day, |day| clock.is_far_day(day));
        let month = self.month.period_at(clock.month, |month| clock.is_far_month(month));
        let dates = Dates { day, month, ..clock };
        if dates.is_behind() {
            self.note_use(now.steady_timestamp());
        }
        dates
    }

    /// Notes a second. A later one that is noted already stays if it is later by no more than a clock may waver.
    fn note_use(&self, at: Timestamp) {
        let (noted, second) = (self.last_used.load(Ordering::Relaxed), at.unix());
        let is_wrong = || Dates::at(at).is_far_day(Dates::at(Timestamp::from_unix(noted)).clock_day);
        if noted < second || (noted > second && is_wrong()) {
            // Whoever was quicker has noted the same hour.
            let _ = self.last_used.compare_exchange(noted, second, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Takes effect at once and keeps the counters.
    pub fn set_limits(&self, limits: Limits) {
        self.burst.set_limit(limits.burst_per_minute);
        self.day.set_limit(limits.per_day);
        self.month.set_limit(limits.per_month);
    }

    /// Lets one request pass, or says why not. A charge that is dropped stays charged.
    pub fn charge(&self, cost: Cost, now: Moment) -> Result<Charge<'_>, Refusal> {
        let dates = self.dates(now);
        let window =
            self.burst.take(now.mono_ms).map_err(|spent| Refusal::Burst { retry_after_s: spent.retry_after_s })?;
        let (day, month) = match cost {
            Cost::Full => self.take_quotas(&dates).inspect_err(|_| self.burst.refund(window))?,
            Cost::BurstOnly => (self.day.look(dates.day), self.month.look(dates.month)),
        };
        if !dates.is_behind() {
            self.note_use(now.timestamp());
        }
        let standing = self.standing_of(window, day, month, now.mono_ms, &dates);
        Ok(Charge { meter: self, cost, window, day, month, standing })
    }

    fn take_quotas(&self, dates: &Dates) -> Result<(Tally, Tally), Refusal> {
        let day = self.day.take(dates.day).map_err(|short| match short {
            Short::Spent { period } => self.spent_day(period, dates),
            Short::NeedsLease => self.ask(dates),
        })?;
        let month = self.month.take(dates.month).map_err(|short| {
            self.day.refund(day.tally);
            match short {
                Short::Spent { period } => Refusal::Month { retry_after_s: dates.until_month_ends(period) },
                Short::NeedsLease => self.ask(dates),
            }
        })?;
        if day.runs_low || month.runs_low {
            self.bell.ring();
        }
        Ok((day.tally, month.tally))
    }

    /// The day is spent. If the month is spent as well, a new day does not help: the month is what to wait for.
    fn spent_day(&self, day: u64, dates: &Dates) -> Refusal {
        let month = self.month.look(dates.month);
        let retry_after_s = dates.until_month_ends(month.period());
        match self.month.standing(month, retry_after_s).remaining() {
            Some(0) => Refusal::Month { retry_after_s },
            _ => Refusal::Day { retry_after_s: dates.until_day_ends(day) },
        }
    }

    /// Asks for a lease of the periods that are now, whatever the clock says by the time it is planned.
    fn ask(&self, dates: &Dates) -> Refusal {
        self.day.enter(dates.day);
        self.month.enter(dates.month);
        self.bell.ring();
        Refusal::NeedsLease
    }

    /// How much is left, without charging anything.
    pub fn standing(&self, now: Moment) -> Standing {
        let dates = self.dates(now);
        let (day, month) = (self.day.look(dates.day), self.month.look(dates.month));
        self.standing_of(self.burst.look(now.mono_ms), day, month, now.mono_ms, &dates)
    }

    fn standing_of(&self, window: Window, day: Tally, month: Tally, mono_ms: u64, dates: &Dates) -> Standing {
        Standing {
            burst: self.burst.standing(window, mono_ms),
            day: self.day.standing(day, dates.until_day_ends(day.period())),
            month: self.month.standing(month, dates.until_month_ends(month.period())),
        }
    }

    /// What is really used. Storing it gives back the rest of the leases, so store it only when no request can be
    /// charged any more: at the end of a clean shutdown.
    pub fn usage(&self) -> Usage {
        usage_of(self.day.used(), self.month.used())
    }

    /// What was stored ahead of use and may still be handed out: what the file must hold while requests are charged.
    pub fn granted(&self) -> Usage {
        usage_of(self.day.used().max(self.day.granted()), self.month.used().max(self.month.granted()))
    }

    pub fn last_used(&self) -> Option<Timestamp> {
        Some(self.last_used.load(Ordering::Relaxed)).filter(|second| *second > 0).map(Timestamp::from_unix)
    }

    /// What is to be stored next for this key, and then to be granted or declined. `None` when it needs nothing more,
    /// which answers whoever asked.
    pub fn plan_lease(&self, now: Moment) -> Option<Usage> {
        let mut leasing = self.leasing();
        leasing.is_void = false;
        let dates = self.dates(now);
        let (day, month) = (self.day.plan(dates.day), self.month.plan(dates.month));
        if !day.wanted && !month.wanted {
            self.bell.answer();
            return None;
        }
        Some(usage_of(day.tally, month.tally))
    }

    /// Makes usable what has been planned and stored since.
    pub fn grant(&self, stored: Usage) {
        let leasing = self.leasing();
        if !leasing.is_void {
            self.day.grant(day_of(stored));
            self.month.grant(month_of(stored));
        }
        drop(leasing);
        self.bell.answer();
    }

    /// What was planned could not be stored.
    pub fn decline_lease(&self) {
        self.bell.decline();
    }

    /// Waits until a charge that needed a lease is worth trying again. An error says that none could be stored. It
    /// waits as long as the disk takes: the caller bounds its patience.
    pub async fn lease_arrives(&self, now: Moment) -> Result<(), LeaseDeclined> {
        let answer = self.bell.next_answer();
        let dates = self.dates(now);
        if !self.day.needs_lease(dates.day) && !self.month.needs_lease(dates.month) {
            return Ok(());
        }
        self.ask(&dates);
        answer.await
    }
}

/// One request that has passed.
#[derive(Debug)]
pub struct Charge<'m> {
    meter: &'m Meter,
    cost: Cost,
    window: Window,
    day: Tally,
    month: Tally,
    standing: Standing,
}

impl Charge<'_> {
    /// The key's standing as of this very request.
    pub fn standing(&self) -> &Standing {
        &self.standing
    }

    /// Gives everything back, for a request that failed through no fault of the client; the standing without it.
    pub fn refund(self) -> Standing {
        self.meter.burst.refund(self.window);
        if self.cost == Cost::Full {
            self.meter.day.refund(self.day);
            self.meter.month.refund(self.month);
        }
        self.standing.without_one(self.cost == Cost::Full)
    }
}

impl Usage {
    /// Today and this month, with nothing used.
    pub fn fresh(now: Moment) -> Usage {
        let dates = Dates::of(now);
        usage_of(Tally::new(dates.day, 0), Tally::new(dates.month, 0))
    }

    /// Today and this month, with everything used that the limits allow.
    pub fn spent(limits: Limits, now: Moment) -> Usage {
        let (day_used, month_used) = (limits.per_day.unwrap_or(0), limits.per_month.unwrap_or(0));
        Usage { day_used, month_used, ..Usage::fresh(now) }
    }

    /// What both have seen used: of each period the later one, and within the same one the higher count.
    #[must_use]
    pub fn joined(self, other: Usage) -> Usage {
        usage_of(day_of(self).max(day_of(other)), month_of(self).max(month_of(other)))
    }
}

fn day_of(usage: Usage) -> Tally {
    Tally::new(usage.day.into(), usage.day_used)
}

fn month_of(usage: Usage) -> Tally {
    Tally::new(usage.month.into(), usage.month_used)
}

fn usage_of(day: Tally, month: Tally) -> Usage {
    Usage { day: day.period_number(), day_used: day.count(), month: month.period_number(), month_used: month.count() }
}
