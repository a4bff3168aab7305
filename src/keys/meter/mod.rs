//! The meter of one key: what it has used of its minute, its day and its month.
//!
//! Owns the counters and guarantees that exactly N of N+k concurrent requests pass, that a refused request is not
//! charged, and that after a crash a key never gets more than it had left. The last guarantee holds because only quota
//! that was stored ahead of use, a lease, can be used. A request takes no lock; nothing here reads a clock or does I/O;
//! leases are stored by the other end of the [lease queue](super::leases).
//!
//! 1. a request is charged to the minute, then the day, then the month; the first exhausted one refuses it, and what
//!    was charged before is refunded;
//! 2. if a quota has room but no lease, the result is [`Refusal::NeedsLease`]: wait for [`Meter::lease_arrives`] and
//!    charge again;
//! 3. when less than half a lease is left, the next one is requested while requests continue.
//!
//! In a cluster, leases are shares of what all nodes may use together: see `shared`, and the other end in
//! [`super::shares`].

mod burst;
mod calendar;
mod charge;
mod quota;
mod recent;
mod share;
mod shared;
mod standing;
#[cfg(test)]
mod tests;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use self::burst::{Burst, BurstShortage, Window};
use self::calendar::Dates;
use self::quota::{PeriodCount, Quota, Shortage};
use self::recent::UseRecorder;
use super::leases::{LeaseDeclined, LeaseQueue, LeaseRequester};
use super::record::{KeyRecord, Limits, Usage};
use super::streams::OpenStreams;
use crate::clock::Moment;
use crate::model::Timestamp;

pub use self::burst::BURST_MAX;
pub use self::charge::{Charge, PaidCharge};
pub use self::quota::{QUOTA_MAX, lease_size};
pub use self::recent::{RECENT_DAYS, RECENT_HOURS, RecentUse, SharedUse};
pub use self::share::{BurstNeed, BurstShare, KeyNeed, KeyShare, LimitSet, QuotaNeed, QuotaShare, Unused};
pub use self::standing::{BurstStanding, QuotaStanding, Standing};

/// The most units that one request may take: less than half of the smallest lease, which is requested when that is left.
pub const UNITS_MAX: u64 = 49;

/// The cost of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cost {
    /// One of the minute, the day and the month.
    Full,
    /// One of the minute only, so that health checks are free.
    BurstOnly,
}

/// Why a request was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("the requests of this minute are used up, retry in {retry_after_s} s")]
    Burst { retry_after_s: u32 },
    #[error("the daily quota is used up, retry in {retry_after_s} s")]
    Day { retry_after_s: u32 },
    #[error("the monthly quota is used up, retry in {retry_after_s} s")]
    Month { retry_after_s: u32 },
    /// The quota has room, but no stored lease. Never sent to a client.
    #[error("waiting for a lease")]
    NeedsLease,
}

impl Refusal {
    /// The exhausted limit, as a metric label.
    pub const fn reason(&self) -> &'static str {
        match self {
            Refusal::Burst { .. } => "burst",
            Refusal::Day { .. } => "day",
            Refusal::Month { .. } => "month",
            Refusal::NeedsLease => "lease",
        }
    }
}

/// The counters of a key. Every request of the key writes them, on any thread, so they share no cache line with what
/// requests only read.
#[derive(Debug)]
#[repr(align(128))]
pub struct Meter {
    burst: Burst,
    day: Quota,
    month: Quota,
    /// The wall-clock second of the last request that passed; zero for none. While the clock is far behind the stored
    /// period, the steady-clock second of the last request, passed or not, so that a restart knows the clock's day.
    last_used: AtomicU32,
    recorder: UseRecorder,
    leases: LeaseRequester,
    leasing: Mutex<Leasing>,
    streams: Arc<OpenStreams>,
}

/// The state of a lease that is planned but not yet granted.
#[derive(Debug, Default)]
struct Leasing {
    /// The counters were reset after the lease was planned, so it must not be granted.
    is_void: bool,
    /// See [`KeyNeed::resets`].
    resets: u64,
    /// The units of each request that waits for a lease.
    awaited: Vec<u64>,
}

/// A request that waits for a lease, until it is dropped.
#[derive(Debug)]
struct Awaiting<'m> {
    meter: &'m Meter,
    units: u64,
}

impl<'m> Awaiting<'m> {
    fn new(meter: &'m Meter, units: u64) -> Self {
        meter.leasing().awaited.push(units);
        Awaiting { meter, units }
    }
}

impl Drop for Awaiting<'_> {
    fn drop(&mut self) {
        let awaited = &mut self.meter.leasing().awaited;
        if let Some(at) = awaited.iter().position(|units| *units == self.units) {
            awaited.swap_remove(at);
        }
    }
}

impl Meter {
    /// Continues from the stored usage of the key.
    pub fn new(key: &KeyRecord, stored: Usage, queue: &LeaseQueue) -> Self {
        let (day, month) = (day_of(stored), month_of(stored));
        let last = key.last_used.map(Dates::at);
        let day_behind = last.filter(|last| last.is_far_day(day.period())).map(|last| last.clock_day);
        let month_behind = last.filter(|last| last.is_far_month(month.period())).map(|last| last.clock_month);
        let Limits { burst_per_minute, per_day, per_month, .. } = key.limits;
        let (burst, day, month, recorder) = if queue.is_shared() {
            let recorder = UseRecorder::shared(stored, key.last_used);
            (Burst::shared(burst_per_minute), Quota::shared(per_day, day), Quota::shared(per_month, month), recorder)
        } else {
            let day = Quota::new(per_day, day, day_behind);
            (Burst::new(burst_per_minute), day, Quota::new(per_month, month, month_behind), UseRecorder::default())
        };
        Meter {
            burst,
            day,
            month,
            last_used: AtomicU32::new(key.last_used.map_or(0, Timestamp::unix)),
            recorder,
            leases: queue.requester(key.id.clone()),
            leasing: Mutex::default(),
            streams: Arc::new(queue.streams_of(key.id.clone())),
        }
    }

    /// The open streams of the key.
    pub fn streams(&self) -> &Arc<OpenStreams> {
        &self.streams
    }

    /// Resets the day and the month to those of `fresh` with nothing used, on an operator's request. The minute is not
    /// reset. `fresh` must have been stored before.
    pub fn restart(&self, fresh: Usage, now: Moment) {
        if let Some(shared) = self.recorder.shared_use() {
            // What nodes may use of it is reset by what gives them their shares.
            let last_used = shared.last_used.min(Some(now.timestamp()));
            return self.recorder.put_shared_use(SharedUse { usage: fresh, last_used, ..shared });
        }
        let mut leasing = self.leasing();
        leasing.is_void = true;
        self.day.restart(fresh.day.into());
        self.month.restart(fresh.month.into());
        self.last_used.fetch_min(now.timestamp().unix(), Ordering::Relaxed);
    }

    /// Whether the counters were reset since the last lease was planned. Such a lease must not be stored.
    pub fn has_void_lease(&self) -> bool {
        self.leasing().is_void
    }

    fn leasing(&self) -> MutexGuard<'_, Leasing> {
        self.leasing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The day and month that requests at `now` are counted in.
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

    /// Records the time of use. A later recorded time stays, unless it is later by more than a clock may jitter.
    fn note_use(&self, at: Timestamp) {
        let (recorded, second) = (self.last_used.load(Ordering::Relaxed), at.unix());
        let is_wrong = || Dates::at(at).is_far_day(Dates::at(Timestamp::from_unix(recorded)).clock_day);
        if recorded < second || (recorded > second && is_wrong()) {
            // On failure another thread has just recorded about the same time.
            let _ = self.last_used.compare_exchange(recorded, second, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// Takes effect immediately and keeps the counters.
    pub fn set_limits(&self, limits: Limits) {
        self.burst.set_limit(limits.burst_per_minute);
        self.day.set_limit(limits.per_day);
        self.month.set_limit(limits.per_month);
    }

    /// Charges one request, or returns why it is refused. Dropping the charge does not refund it.
    pub fn charge(&self, cost: Cost, now: Moment) -> Result<Charge<'_>, Refusal> {
        let dates = self.dates(now);
        let window = self.burst.take(now.mono_ms).map_err(|shortage| match shortage {
            BurstShortage::Exhausted { retry_after_s } => Refusal::Burst { retry_after_s },
            BurstShortage::NeedsShare => self.request_lease(&dates),
        })?;
        let (day, month) = match cost {
            Cost::Full => self.take_quotas(&dates, 1).inspect_err(|_| self.burst.refund(window))?,
            Cost::BurstOnly => (self.day.look(dates.day), self.month.look(dates.month)),
        };
        if !dates.is_behind() {
            self.note_use(now.timestamp());
        }
        if self.burst.runs_low(window) {
            self.leases.request();
        }
        let standing = self.standing_of(window, day, month, now.mono_ms, &dates);
        let units = u64::from(cost == Cost::Full);
        self.recorder.count(units);
        Ok(PaidCharge { units, window, day, month, standing }.attach(self))
    }

    fn take_quotas(&self, dates: &Dates, units: u64) -> Result<(PeriodCount, PeriodCount), Refusal> {
        let day = self.day.take(dates.day, units).map_err(|shortage| match shortage {
            Shortage::Exhausted { period } => self.day_refusal(period, dates),
            Shortage::NeedsLease => self.request_lease(dates),
        })?;
        let month = self.month.take(dates.month, units).map_err(|shortage| {
            self.day.refund(day.used, units);
            match shortage {
                Shortage::Exhausted { period } => Refusal::Month { retry_after_s: dates.until_month_ends(period) },
                Shortage::NeedsLease => self.request_lease(dates),
            }
        })?;
        if day.runs_low || month.runs_low {
            self.leases.request();
        }
        Ok((day.used, month.used))
    }

    /// The refusal of an exhausted day. If the month is exhausted too, the client has to wait for the next month.
    fn day_refusal(&self, day: u64, dates: &Dates) -> Refusal {
        let month = self.month.look(dates.month);
        let retry_after_s = dates.until_month_ends(month.period());
        match self.month.standing(month, retry_after_s).remaining() {
            Some(0) => Refusal::Month { retry_after_s },
            _ => Refusal::Day { retry_after_s: dates.until_day_ends(day) },
        }
    }

    /// Requests a lease for the current periods, even if the clock has moved on by the time it is planned.
    fn request_lease(&self, dates: &Dates) -> Refusal {
        self.day.enter(dates.day);
        self.month.enter(dates.month);
        self.leases.request();
        Refusal::NeedsLease
    }

    /// The current standing, without charging anything.
    pub fn standing(&self, now: Moment) -> Standing {
        let dates = self.dates(now);
        let (day, month) = (self.day.look(dates.day), self.month.look(dates.month));
        self.standing_of(self.burst.look(now.mono_ms), day, month, now.mono_ms, &dates)
    }

    fn standing_of(
        &self,
        window: Window,
        day: PeriodCount,
        month: PeriodCount,
        mono_ms: u64,
        dates: &Dates,
    ) -> Standing {
        Standing {
            burst: self.burst.standing(window, mono_ms),
            day: self.day.standing(day, dates.until_day_ends(day.period())),
            month: self.month.standing(month, dates.until_month_ends(month.period())),
        }
    }

    /// The actual usage. Storing it returns the unused part of the leases, so store it only when no request can be
    /// charged any more: at the end of a clean shutdown.
    pub fn usage(&self) -> Usage {
        usage_of(self.day.used(), self.month.used())
    }

    /// The usage including leases. The file must hold at least this while requests are charged.
    pub fn granted(&self) -> Usage {
        usage_of(self.day.used().max(self.day.granted()), self.month.used().max(self.month.granted()))
    }

    /// What the key has used in the last hours and days.
    pub fn recent_use(&self, now: Timestamp) -> RecentUse {
        self.recorder.recent(now)
    }

    /// The same, if it has changed since it was last taken.
    pub fn take_recent_use(&self, now: Timestamp) -> Option<RecentUse> {
        self.recorder.take_unstored(now)
    }

    /// Recent use that was taken could not be stored.
    pub fn keep_recent_use(&self) {
        self.recorder.keep_unstored();
    }

    /// Continues from the stored recent use.
    pub fn restore_recent_use(&self, recent: RecentUse) {
        self.recorder.restore(recent);
    }

    pub fn last_used(&self) -> Option<Timestamp> {
        Some(self.last_used.load(Ordering::Relaxed)).filter(|second| *second > 0).map(Timestamp::from_unix)
    }

    /// The usage to store next for this key, to be granted or declined afterwards. `None` if no lease is needed, which
    /// resolves the pending request.
    pub fn plan_lease(&self, now: Moment) -> Option<Usage> {
        let mut leasing = self.leasing();
        leasing.is_void = false;
        let dates = self.dates(now);
        let (day, month) = (self.day.plan(dates.day), self.month.plan(dates.month));
        if !day.wanted && !month.wanted {
            self.leases.resolve();
            return None;
        }
        Some(usage_of(day.lease, month.lease))
    }

    /// Makes a planned lease usable once it has been stored.
    pub fn grant(&self, stored: Usage) {
        let leasing = self.leasing();
        if !leasing.is_void {
            self.day.grant(day_of(stored));
            self.month.grant(month_of(stored));
        }
        drop(leasing);
        self.leases.resolve();
    }

    /// Reports that a planned lease could not be stored.
    pub fn decline_lease(&self) {
        self.leases.decline();
    }

    /// Waits until a charge that needed a lease can be retried; fails if no lease could be stored. There is no timeout
    /// here: the caller sets one.
    pub async fn lease_arrives(&self, now: Moment) -> Result<(), LeaseDeclined> {
        self.lease_arrives_for(1, now).await
    }

    /// The same for a request of several units.
    pub(super) async fn lease_arrives_for(&self, units: u64, now: Moment) -> Result<(), LeaseDeclined> {
        let resolution = self.leases.next_resolution();
        let dates = self.dates(now);
        let needs_lease = self.burst.needs_share(now.mono_ms)
            || self.day.needs_lease(dates.day, units)
            || self.month.needs_lease(dates.month, units);
        if !needs_lease {
            return Ok(());
        }
        let _awaiting = Awaiting::new(self, units);
        self.request_lease(&dates);
        resolution.await
    }
}

impl Usage {
    /// The current day and month with nothing used.
    pub fn fresh(now: Moment) -> Usage {
        let dates = Dates::of(now);
        usage_of(PeriodCount::new(dates.day, 0), PeriodCount::new(dates.month, 0))
    }

    /// The current day and month with both quotas used up.
    pub fn exhausted(limits: Limits, now: Moment) -> Usage {
        let (day_used, month_used) = (limits.per_day.unwrap_or(0), limits.per_month.unwrap_or(0));
        Usage { day_used, month_used, ..Usage::fresh(now) }
    }

    /// Merges two records of usage: the later day and the later month, with the higher count if they are equal.
    #[must_use]
    pub fn joined(self, other: Usage) -> Usage {
        usage_of(day_of(self).max(day_of(other)), month_of(self).max(month_of(other)))
    }
}

fn day_of(usage: Usage) -> PeriodCount {
    PeriodCount::new(usage.day.into(), usage.day_used)
}

fn month_of(usage: Usage) -> PeriodCount {
    PeriodCount::new(usage.month.into(), usage.month_used)
}

fn usage_of(day: PeriodCount, month: PeriodCount) -> Usage {
    Usage { day: day.period_number(), day_used: day.count(), month: month.period_number(), month_used: month.count() }
}
