//! What a polled feed may spend: the operator's budget of a UTC day, and what the upstream says is left of its month, of
//! its day or of both.
//!
//! The smallest governs. A report of a month is valid until the first of the next one, when the quota is renewed; from
//! then on nothing is known until the upstream reports again. A report of a day says itself when it ends, and is not
//! stored. What was spent is stored ahead of each request, so that a process that is killed at any moment never spends a
//! credit twice.

use super::client::UpstreamQuota;
use super::plan::PlanLimit;
use crate::model::{FeedBudget, ReportedCredits, Timestamp};

const DAY_MS: i64 = 86_400_000;
/// An upstream whose clock is behind renews its quota a little later than ours says.
const RENEWAL_MARGIN_MS: i64 = 60_000;

/// A feed's spending.
#[derive(Clone, Debug)]
pub(super) struct Credits {
    per_day: Option<u64>,
    /// The UTC day that `spent` is of.
    day: i64,
    spent: u64,
    reported: Option<ReportedLeft>,
    /// What the upstream has left of its own day.
    reported_today: Option<ReportedToday>,
}

#[derive(Clone, Copy, Debug)]
struct ReportedToday {
    left: u64,
    until_ms: i64,
}

#[derive(Clone, Copy, Debug)]
struct ReportedLeft {
    left: u64,
    at_ms: i64,
}

/// What is left of a limit, and how long it has to last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CreditShare {
    pub(super) left: u64,
    pub(super) rest_ms: u64,
    pub(super) limit: PlanLimit,
}

impl CreditShare {
    /// The time between two requests of this cost in thousandths, or two rounds, when what is left is spread evenly: the
    /// last one that can be paid for comes one such time before the renewal.
    pub(super) fn spread_ms(self, cost_milli: u128) -> u64 {
        let affordable = (u128::from(self.left) * 1000).checked_div(cost_milli);
        affordable
            .map_or(0, |affordable| u64::try_from(u128::from(self.rest_ms) / (affordable + 1)).unwrap_or(u64::MAX))
    }
}

impl Credits {
    /// A start in the middle of a day has only the rest of its budget, unless [`Credits::resume`] knows better.
    pub(super) fn new(per_day: Option<u64>, now_ms: i64) -> Self {
        let passed = u128::try_from(now_ms.rem_euclid(DAY_MS)).unwrap_or(0);
        let share = per_day.map_or(0, |budget| u128::from(budget) * passed / u128::from(DAY_MS.unsigned_abs()));
        let spent = u64::try_from(share).unwrap_or(u64::MAX);
        Credits { per_day, day: day_of(now_ms), spent, reported: None, reported_today: None }
    }

    /// Resumes from what was stored. A day or a report of the future is from before the clock was set back: it counts as of
    /// now.
    pub(super) fn resume(&mut self, stored: &FeedBudget, now_ms: i64) {
        self.day = day_of(now_ms);
        self.spent = if i64::from(stored.day) < self.day { 0 } else { stored.spent };
        let report =
            |reported: ReportedCredits| ReportedLeft { left: reported.left, at_ms: reported.at.unix_ms().min(now_ms) };
        self.reported = stored.reported.map(report);
        self.turn(now_ms);
    }

    /// Counts what a request cost.
    pub(super) fn charge(&mut self, cost: u64, now_ms: i64) {
        self.turn(now_ms);
        self.spent = self.spent.saturating_add(cost);
        if let Some(reported) = &mut self.reported {
            reported.left = reported.left.saturating_sub(cost);
        }
        if let Some(today) = &mut self.reported_today {
            today.left = today.left.saturating_sub(cost);
        }
    }

    /// Notes what the upstream says is left; whether that is more than was known. A report that may be older than what
    /// was charged since counts only if it says less.
    pub(super) fn report(&mut self, quota: UpstreamQuota, is_newest: bool, now_ms: i64) -> bool {
        self.turn(now_ms);
        let before = [self.reported.map(|known| known.left), self.reported_today.map(|known| known.left)];
        let bounded = |left: u64, known: Option<u64>| if is_newest { left } else { left.min(known.unwrap_or(left)) };
        self.reported = quota.month.map(|left| ReportedLeft { left: bounded(left, before[0]), at_ms: now_ms });
        self.reported_today = quota.day.map(|day| {
            let rest_ms = i64::try_from(day.rest_s.saturating_mul(1000)).unwrap_or(DAY_MS).min(DAY_MS);
            ReportedToday { left: bounded(day.left, before[1]), until_ms: now_ms + rest_ms.max(1) }
        });
        let after = [self.reported.map(|known| known.left), self.reported_today.map(|known| known.left)];
        before.iter().zip(after).any(|(before, after)| before.zip(after).is_some_and(|(before, after)| before < after))
    }

    /// The operator's budget of a day.
    pub(super) fn per_day(&self) -> Option<u64> {
        self.per_day
    }

    /// What is left of the day's budget; `None` where there is none.
    pub(super) fn left_today(&mut self, now_ms: i64) -> Option<u64> {
        self.turn(now_ms);
        self.per_day.map(|budget| budget.saturating_sub(self.spent))
    }

    /// What the upstream still allows until its quotas are renewed, as far as it has said so.
    pub(super) fn upstream(&mut self, now_ms: i64) -> impl Iterator<Item = CreditShare> + use<> {
        self.turn(now_ms);
        let share = |left: u64, until_ms: i64| CreditShare {
            left,
            rest_ms: until_ms.saturating_sub(now_ms).unsigned_abs(),
            limit: PlanLimit::Upstream,
        };
        let month = self.reported.map(|reported| share(reported.left, renewal_ms(now_ms)));
        let today = self.reported_today.map(|today| share(today.left, today.until_ms));
        [month, today].into_iter().flatten()
    }

    /// Every limit that is known.
    pub(super) fn shares(&mut self, now_ms: i64) -> impl Iterator<Item = CreditShare> + use<> {
        let rest_ms = (DAY_MS - now_ms.rem_euclid(DAY_MS)).unsigned_abs();
        let today = self.left_today(now_ms).map(|left| CreditShare { left, rest_ms, limit: PlanLimit::Budget });
        today.into_iter().chain(self.upstream(now_ms))
    }

    /// The spending with the next request already counted, as it is stored before that request is sent.
    pub(super) fn with_reserve(&mut self, reserve: u64, now_ms: i64) -> FeedBudget {
        self.turn(now_ms);
        let reported = self.reported.map(|reported| ReportedCredits {
            left: reported.left.saturating_sub(reserve),
            at: Timestamp::from_unix_ms(reported.at_ms),
        });
        let day = u32::try_from(self.day).unwrap_or(0);
        FeedBudget { day, spent: self.spent.saturating_add(reserve), reported, ..FeedBudget::default() }
    }

    /// Whether what is stored already counts a request of this cost; so it does where there is no limit to exceed.
    pub(super) fn is_reserved(&mut self, stored: Option<&FeedBudget>, cost: u64, now_ms: i64) -> bool {
        if self.shares(now_ms).next().is_none() {
            return true;
        }
        let needed = self.with_reserve(cost, now_ms);
        let left = |budget: &FeedBudget| budget.reported.map_or(u64::MAX, |reported| reported.left);
        stored.is_some_and(|stored| {
            stored.day == needed.day && stored.spent >= needed.spent && left(stored) <= left(&needed)
        })
    }

    /// A clock that is set back turns nothing: a day or a month is given once.
    fn turn(&mut self, now_ms: i64) {
        let day = day_of(now_ms);
        if day > self.day {
            (self.day, self.spent) = (day, 0);
        }
        if self.reported.is_some_and(|reported| renewal_ms(reported.at_ms) <= now_ms) {
            self.reported = None;
        }
        if self.reported_today.is_some_and(|today| today.until_ms <= now_ms) {
            self.reported_today = None;
        }
    }
}

fn day_of(unix_ms: i64) -> i64 {
    unix_ms.div_euclid(DAY_MS)
}

/// When the quota that is in force is renewed: the first of the next month, UTC.
pub(super) fn renewal_ms(now_ms: i64) -> i64 {
    const DAYS_OF_ANY_MONTH: i64 = 31;
    let at_ms = now_ms - RENEWAL_MARGIN_MS;
    let date = jiff::Timestamp::from_millisecond(at_ms).map(|at| jiff::tz::Offset::UTC.to_datetime(at).date());
    let days_left = date.map_or(DAYS_OF_ANY_MONTH, |date| i64::from(date.days_in_month()) - i64::from(date.day()) + 1);
    (day_of(at_ms) + days_left) * DAY_MS + RENEWAL_MARGIN_MS
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::poll::client::DayQuota;

    fn month(left: u64) -> UpstreamQuota {
        UpstreamQuota { month: Some(left), ..UpstreamQuota::default() }
    }

    fn month_left(credits: &mut Credits, now_ms: i64) -> Option<u64> {
        credits.upstream(now_ms).next().map(|share| share.left)
    }

    /// Midnight of 2026-11-01.
    const NOVEMBER: i64 = 20_758 * DAY_MS;
    const DECEMBER: i64 = NOVEMBER + 30 * DAY_MS;

    #[test]
    fn quota_is_renewed_on_the_first_of_the_month() {
        for now in [NOVEMBER + RENEWAL_MARGIN_MS, NOVEMBER + 15 * DAY_MS, DECEMBER, DECEMBER + RENEWAL_MARGIN_MS - 1] {
            assert_eq!(renewal_ms(now), DECEMBER + RENEWAL_MARGIN_MS, "{now}");
        }
        assert_eq!(renewal_ms(DECEMBER + RENEWAL_MARGIN_MS), DECEMBER + 31 * DAY_MS + RENEWAL_MARGIN_MS);
    }

    #[test]
    fn report_holds_until_the_renewal_and_a_larger_one_is_taken_up() {
        let mut credits = Credits::new(None, NOVEMBER);
        assert_eq!(month_left(&mut credits, NOVEMBER), None, "nothing was reported");
        assert!(!credits.report(month(500), true, NOVEMBER + DAY_MS));
        credits.charge(3, NOVEMBER + DAY_MS);
        assert_eq!(month_left(&mut credits, NOVEMBER + DAY_MS), Some(497));
        assert!(credits.report(month(20_000), true, NOVEMBER + 2 * DAY_MS), "a larger plan");
        assert!(!credits.report(month(19_997), true, NOVEMBER + 2 * DAY_MS));
        assert_eq!(month_left(&mut credits, DECEMBER), Some(19_997), "the upstream may be behind");
        assert_eq!(month_left(&mut credits, DECEMBER + RENEWAL_MARGIN_MS), None, "a new month");
    }

    #[test]
    fn stored_spending_is_taken_up_with_what_was_reserved() {
        const START: i64 = NOVEMBER + RENEWAL_MARGIN_MS;
        let mut credits = Credits::new(Some(100), START);
        credits.report(month(500), true, START);
        credits.charge(10, START);
        let stored = credits.with_reserve(3, START);
        assert!(credits.is_reserved(Some(&stored), 3, START) && !credits.is_reserved(Some(&stored), 4, START));
        assert!(!credits.is_reserved(Some(&stored), 3, START + DAY_MS), "another day");

        let noon = START + DAY_MS / 2;
        let mut again = Credits::new(Some(100), noon);
        assert_eq!(again.left_today(noon), Some(50), "not known: the share of the day that is left");
        again.resume(&stored, noon);
        assert_eq!((again.left_today(noon), month_left(&mut again, noon)), (Some(87), Some(487)));
        again.resume(&stored, noon + DAY_MS);
        assert_eq!(again.left_today(noon + DAY_MS), Some(100), "nothing was spent today");
        again.resume(&stored, START - 3 * DAY_MS);
        assert_eq!(again.left_today(START - 3 * DAY_MS), Some(87), "the clock was set back");
        assert!(Credits::new(None, START).is_reserved(None, 9, START), "no limit is known");
    }

    #[test]
    fn report_of_a_day_ends_with_that_day_and_is_not_stored() {
        let noon = NOVEMBER + DAY_MS / 2;
        let mut credits = Credits::new(None, noon);
        credits.report(month(9_000), true, noon);
        let day = UpstreamQuota { day: Some(DayQuota { left: 40, rest_s: 3_600 }), ..UpstreamQuota::default() };
        credits.report(day, true, noon);
        let shares: Vec<CreditShare> = credits.shares(noon).collect();
        assert_eq!(shares, [CreditShare { left: 40, rest_ms: 3_600_000, limit: PlanLimit::Upstream }]);
        credits.charge(3, noon);
        assert_eq!(credits.shares(noon).next().map(|share| share.left), Some(37));
        assert_eq!(credits.with_reserve(3, noon).reported, None);
        assert_eq!(credits.shares(noon + 3_600_000).count(), 0, "nothing is known of the next day");
        let both = UpstreamQuota { month: Some(500), ..day };
        credits.report(both, true, noon);
        assert_eq!(credits.shares(noon).map(|share| share.left).collect::<Vec<_>>(), [500, 40]);
    }

    #[test]
    fn report_that_may_be_older_than_a_charge_never_gives_credits_back() {
        let mut credits = Credits::new(None, NOVEMBER);
        credits.report(month(100), true, NOVEMBER);
        credits.charge(30, NOVEMBER);
        assert!(!credits.report(month(97), false, NOVEMBER));
        assert_eq!(month_left(&mut credits, NOVEMBER), Some(70));
        credits.report(month(60), false, NOVEMBER);
        assert_eq!(month_left(&mut credits, NOVEMBER), Some(60), "less is taken at once");
        assert!(credits.report(month(97), true, NOVEMBER));
    }
}
