//! How often an upstream is polled: at the configured interval, or less often where its credits demand it. After a
//! failure the wait doubles each time, with a random part so that many feeds do not come back at the same moment.
//!
//! Time and random numbers are passed in, so that all of it can be tested.

use super::client::UpstreamQuota;
use super::credits::Credits;
use super::plan::{CreditPlan, Demand, PollIntervals};
use crate::ingest::ledger::UpstreamPlan;
use crate::model::{FeedBudget, Timestamp};

const BACK_OFF_MS_MIN: u64 = 2_000;
const BACK_OFF_MS_MAX: u64 = 600_000;
/// An upstream may ask for a longer wait: until its quota is back.
const ASKED_WAIT_MS_MAX: u64 = 86_400_000;
/// How long to wait after an error status that only a person can correct.
pub(super) const REFUSED_WAIT_MS: u64 = 600_000;

/// A feed's pace.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    configured: PollIntervals,
    credits: Credits,
    /// The last interval at which a whole round could be paid for.
    steady_ms: u64,
    failures: u32,
}

impl Pace {
    pub(super) fn new(configured: PollIntervals, per_day: Option<u64>, now_ms: i64) -> Self {
        let credits = Credits::new(per_day, now_ms);
        Pace { configured, credits, steady_ms: configured.odds_ms, failures: 0 }
    }

    pub(super) fn configured(&self) -> PollIntervals {
        self.configured
    }

    /// Resumes from the spending that was stored.
    pub(super) fn resume(&mut self, stored: &FeedBudget, now_ms: i64) {
        self.credits.resume(stored, now_ms);
    }

    /// Counts what a request cost.
    pub(super) fn charge(&mut self, cost: u64, now_ms: i64) {
        self.credits.charge(cost, now_ms);
    }

    /// Notes what the upstream says is left; whether that is more than was known. `is_newest` is false for a report that
    /// may be older than what was charged since.
    pub(super) fn report(&mut self, quota: UpstreamQuota, is_newest: bool, now_ms: i64) -> bool {
        self.credits.report(quota, is_newest, now_ms)
    }

    /// What is left of the day's budget; `None` where there is none.
    pub(super) fn left_today(&mut self, now_ms: i64) -> Option<u64> {
        self.credits.left_today(now_ms)
    }

    /// The spending with the next requests counted, to be stored before they are sent.
    pub(super) fn with_reserve(&mut self, reserve: u64, now_ms: i64) -> FeedBudget {
        self.credits.with_reserve(reserve, now_ms)
    }

    /// Whether what is stored already counts requests of this cost.
    pub(super) fn is_reserved(&mut self, stored: Option<&FeedBudget>, cost: u64, now_ms: i64) -> bool {
        self.credits.is_reserved(stored, cost, now_ms)
    }

    /// How long to wait before a request of this cost may be sent at all: until the credits are back.
    pub(super) fn wait_for_credits_ms(&mut self, cost: u64, now_ms: i64) -> u64 {
        let spent = self.credits.shares(now_ms).filter(|share| share.left < cost);
        spent.map(|share| share.rest_ms).max().unwrap_or(0)
    }

    /// Whether the upstream has too little left for a request of this cost, and until when.
    pub(super) fn is_used_up(&mut self, cost: u64, now_ms: i64) -> Option<Timestamp> {
        let spent = self.credits.upstream(now_ms).filter(|share| share.left < cost);
        spent.map(|share| share.rest_ms).max().map(|rest_ms| after(now_ms, rest_ms))
    }

    /// How credits are spent from now on.
    pub(super) fn plan(&mut self, demand: Demand, now_ms: i64) -> CreditPlan {
        let per_day_max = self.credits.per_day();
        CreditPlan::new(self.configured, demand, self.credits.shares(now_ms), per_day_max)
    }

    /// The intervals at which what is left lasts until it is renewed.
    pub(super) fn intervals(&mut self, demand: Demand, now_ms: i64) -> PollIntervals {
        let intervals = self.plan(demand, now_ms).intervals;
        if !self.is_short(demand, now_ms) {
            self.steady_ms = intervals.odds_ms;
        }
        intervals
    }

    /// The interval that prices count as fresh by. Credits that run out do not make old prices fresh.
    pub(super) fn steady_interval_ms(&mut self, demand: Demand, now_ms: i64) -> u64 {
        self.intervals(demand, now_ms);
        self.steady_ms
    }

    /// The interval that the credits demand, where it is longer than the configured one.
    pub(super) fn stretched_ms(&mut self, demand: Demand, now_ms: i64) -> Option<u64> {
        Some(self.intervals(demand, now_ms).odds_ms).filter(|interval_ms| *interval_ms > self.configured.odds_ms)
    }

    /// Whether not even one round can be paid for.
    pub(super) fn is_short(&mut self, demand: Demand, now_ms: i64) -> bool {
        self.credits.shares(now_ms).any(|share| share.left < demand.total())
    }

    /// How long to wait after a request when not even one round can be paid for: its requests are then spread as well.
    pub(super) fn gap_ms(&mut self, cost: u64, demand: Demand, now_ms: i64) -> u64 {
        let short = self.credits.shares(now_ms).filter(|share| share.left < demand.total());
        short.map(|share| share.spread_ms(u128::from(cost) * 1000)).max().unwrap_or(0)
    }

    /// When the upstream renews the quota that it has least of, if it reports one.
    pub(super) fn resets(&mut self, now_ms: i64) -> Option<Timestamp> {
        let per_ms =
            |share: &super::credits::CreditShare| u128::from(share.left) * 1_000_000 / u128::from(share.rest_ms.max(1));
        let tightest = self.credits.upstream(now_ms).min_by_key(per_ms);
        tightest.map(|share| after(now_ms, share.rest_ms))
    }

    /// What the upstream has left, where it reports that.
    pub(super) fn left_upstream(&mut self, now_ms: i64) -> Option<u64> {
        self.credits.upstream(now_ms).map(|share| share.left).min()
    }

    /// The plan as an operator sees it. `None` while the cost of a round is unknown.
    pub(super) fn outlook(&mut self, demand: Demand, now_ms: i64) -> Option<UpstreamPlan> {
        if demand.total() == 0 {
            return None;
        }
        let CreditPlan { intervals, per_day, limit } = self.plan(demand, now_ms);
        Some(UpstreamPlan {
            credits_per_day: per_day.total(),
            odds_per_day: per_day.odds,
            event_odds_per_day: per_day.event_odds,
            scores_per_day: per_day.scores,
            interval_s: intervals.odds_ms / 1000,
            scores_interval_s: intervals.scores_ms / 1000,
            limit,
            resets: self.resets(now_ms),
        })
    }

    pub(super) fn budget_per_day(&self) -> Option<u64> {
        self.credits.per_day()
    }

    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
    }

    pub(super) fn has_failed(&self) -> bool {
        self.failures > 0
    }

    /// How long to wait after one more failure: twice as long each time, of which one half is left to chance, and not
    /// less than the upstream asked for.
    pub(super) fn failed(&mut self, asked_wait_ms: Option<u64>, chance: u32) -> u64 {
        let full = BACK_OFF_MS_MIN.saturating_mul(1 << self.failures.min(20)).min(BACK_OFF_MS_MAX);
        self.failures = self.failures.saturating_add(1);
        let wait = full / 2 + (full / 2) * u64::from(chance) / u64::from(u32::MAX);
        asked_wait_ms.map_or(wait, |asked| asked.min(ASKED_WAIT_MS_MAX).max(wait))
    }
}

fn after(now_ms: i64, rest_ms: u64) -> Timestamp {
    Timestamp::from_unix_ms(now_ms.saturating_add(i64::try_from(rest_ms).unwrap_or(i64::MAX)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::ingest::poll::plan::PlanLimit;

    const DAY_MS: i64 = 86_400_000;
    const MIDNIGHT: i64 = 20_000 * DAY_MS;
    /// The first of November 2026 and of December, when the quotas are renewed.
    const NOVEMBER: i64 = 20_758 * DAY_MS + 60_000;
    const DECEMBER: i64 = NOVEMBER + 30 * DAY_MS;

    fn at_interval(interval_ms: u64, per_day: Option<u64>, now_ms: i64) -> Pace {
        Pace::new(PollIntervals { odds_ms: interval_ms, scores_ms: 5 * interval_ms }, per_day, now_ms)
    }

    fn odds(cost: u64) -> Demand {
        Demand { odds: cost, ..Demand::default() }
    }

    fn month(left: u64) -> UpstreamQuota {
        UpstreamQuota { month: Some(left), ..UpstreamQuota::default() }
    }

    fn interval_ms(pace: &mut Pace, cost: u64, now_ms: i64) -> u64 {
        pace.intervals(odds(cost), now_ms).odds_ms
    }

    #[test]
    fn without_a_budget_the_interval_is_what_is_set() {
        let mut pace = at_interval(60_000, None, MIDNIGHT);
        pace.charge(1_000_000, MIDNIGHT);
        assert_eq!((interval_ms(&mut pace, 9, MIDNIGHT), pace.wait_for_credits_ms(9, MIDNIGHT)), (60_000, 0));
        let plan = pace.plan(odds(9), MIDNIGHT);
        assert_eq!((plan.limit, plan.per_day.odds, pace.resets(MIDNIGHT)), (None, 9 * 1440, None));
    }

    #[test]
    fn a_budget_returns_at_midnight() {
        let mut pace = at_interval(1_000, Some(10), MIDNIGHT);
        pace.charge(10, MIDNIGHT + 5);
        assert_eq!(pace.wait_for_credits_ms(1, MIDNIGHT + 5), DAY_MS.unsigned_abs() - 5);
        assert_eq!(pace.left_today(MIDNIGHT + DAY_MS), Some(10));
        assert_eq!(
            pace.left_today(MIDNIGHT),
            Some(10),
            "a clock that is set back gives nothing twice, and takes nothing"
        );
    }

    #[test]
    fn smaller_of_budget_and_upstream_governs() {
        let mut pace = at_interval(1_000, Some(10), NOVEMBER);
        pace.resume(&FeedBudget::default(), NOVEMBER);
        pace.report(month(30_000), true, NOVEMBER);
        assert_eq!(interval_ms(&mut pace, 1, NOVEMBER), 7_849_090, "ten of the day, and the next at midnight");
        pace.report(month(30), true, NOVEMBER);
        assert_eq!(interval_ms(&mut pace, 1, NOVEMBER), 83_612_903, "thirty of the month");
    }

    #[test]
    fn upstream_with_nothing_left_is_not_asked_before_the_renewal() {
        let mut pace = at_interval(60_000, None, NOVEMBER);
        pace.report(month(2), true, NOVEMBER);
        let noon = NOVEMBER + DAY_MS / 2;
        assert_eq!(pace.wait_for_credits_ms(3, noon), (DECEMBER - noon).unsigned_abs());
        assert_eq!(pace.is_used_up(3, noon), Some(Timestamp::from_unix_ms(DECEMBER)));
        assert_eq!((pace.wait_for_credits_ms(0, noon), pace.is_used_up(2, noon)), (0, None), "what it can pay for");
        assert_eq!(
            (pace.wait_for_credits_ms(3, DECEMBER), interval_ms(&mut pace, 3, DECEMBER)),
            (0, 60_000),
            "a new month"
        );
        assert_eq!(pace.steady_interval_ms(odds(3), noon), 60_000, "prices do not stay fresh until then");
    }

    #[test]
    fn plan_follows_from_what_the_upstream_has_left() {
        let mut pace = at_interval(60_000, None, NOVEMBER);
        pace.report(month(500), true, NOVEMBER);
        let plan = pace.plan(odds(3), NOVEMBER);
        assert_eq!(
            (plan.per_day.odds, plan.intervals.odds_ms, plan.limit),
            (16, 15_520_958, Some(PlanLimit::Upstream))
        );
        let shown = pace.outlook(odds(3), NOVEMBER).unwrap();
        assert_eq!((shown.credits_per_day, shown.resets), (16, Some(Timestamp::from_unix_ms(DECEMBER))));
        assert_eq!(pace.outlook(Demand::default(), NOVEMBER), None, "the cost is not known");
    }

    /// Polls until the end of November an upstream with so many credits; when it did. Restarts as asked, each time from
    /// what was stored with the last answer.
    fn polled(credits: u64, cost: u64, start: i64, restarts: &[i64]) -> Vec<i64> {
        let (mut left, mut now, mut times) = (credits, start, Vec::new());
        let mut pace = at_interval(60_000, None, now);
        let (mut stored, mut restarts) = (FeedBudget::default(), restarts.iter().peekable());
        loop {
            if restarts.next_if(|at| **at <= now).is_some() {
                pace = at_interval(60_000, None, now);
                pace.resume(&stored, now);
            }
            let wait = pace.wait_for_credits_ms(cost, now);
            if wait > 0 {
                now += i64::try_from(wait).unwrap();
            }
            if now >= DECEMBER {
                return times;
            }
            left = left.checked_sub(cost).expect("an upstream that has credits");
            times.push(now);
            pace.charge(cost, now);
            pace.report(month(left), true, now);
            stored = pace.with_reserve(cost, now);
            now += i64::try_from(interval_ms(&mut pace, cost, now)).unwrap();
        }
    }

    #[test]
    fn plan_of_500_credits_lasts_for_the_month_and_is_spent_evenly() {
        for restarts in [vec![], (1..30).map(|day| NOVEMBER + day * DAY_MS).collect()] {
            let times = polled(500, 3, NOVEMBER, &restarts);
            let gaps: Vec<i64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let even = 30 * DAY_MS / 166;
            assert!(gaps.iter().all(|gap| (even - even / 50..=even + even / 50).contains(gap)), "{even}: {gaps:?}");
            assert!((164..=166).contains(&times.len()) && DECEMBER - times[times.len() - 1] < 3 * even);
        }
    }

    #[test]
    fn waits_double_up_to_ten_minutes_and_begin_anew_after_a_success() {
        let mut pace = at_interval(1_000, None, MIDNIGHT);
        let waits: Vec<u64> = (0..11).map(|_| pace.failed(None, u32::MAX)).collect();
        assert_eq!(waits[..4], [2_000, 4_000, 8_000, 16_000]);
        assert_eq!(waits[9..], [600_000, 600_000]);
        pace.succeeded();
        assert_eq!(pace.failed(None, 0), 1_000);
        assert_eq!(pace.failed(Some(90_000), 0), 90_000);
        assert_eq!(pace.failed(Some(u64::MAX), 0), 86_400_000);
    }

    proptest! {
        #[test]
        fn upstream_is_never_asked_for_more_than_it_has_and_lasts_to_the_end(
            credits in 1..20_000_u64, cost in 1..30_u64, start in 0..29 * DAY_MS,
            mut restarts in prop::collection::vec(NOVEMBER..DECEMBER, 0..20),
        ) {
            restarts.sort_unstable();
            // The first request is what tells how much there is.
            prop_assume!(credits >= cost);
            let times = polled(credits, cost, NOVEMBER + start, &restarts);
            let stretch = (DECEMBER - NOVEMBER - start) / i64::try_from(times.len()).unwrap();
            let last = times[times.len() - 1];
            prop_assert!(DECEMBER - last <= 3 * stretch.max(60_000), "{} before the end, {stretch}", DECEMBER - last);
        }

        #[test]
        fn a_day_never_costs_more_than_its_budget_and_is_used_to_the_end(
            budget in 1..5_000_u64, cost in 1..30_u64, interval_s in 1..3_600_u64, start in 0..DAY_MS,
        ) {
            let (mut now, end) = (MIDNIGHT + start, MIDNIGHT + DAY_MS);
            let mut pace = at_interval(interval_s * 1000, Some(budget), now);
            let (mut spent, mut last) = (0, now);
            while now < end {
                let wait = pace.wait_for_credits_ms(cost, now);
                if wait > 0 {
                    now += i64::try_from(wait).unwrap();
                    continue;
                }
                pace.charge(cost, now);
                spent += cost;
                last = now;
                now += i64::try_from(interval_ms(&mut pace, cost, now)).unwrap();
            }
            let share = u128::from(budget) * u128::try_from(DAY_MS - start).unwrap() / u128::from(DAY_MS.unsigned_abs());
            prop_assert!(u128::from(spent) <= share + 1, "{} of {}", spent, share);
            // Where the budget is what binds, requests go on until the last stretch of the day.
            let stretch = i64::try_from(interval_s * 1000).unwrap().max((end - MIDNIGHT - start) / i64::try_from((spent / cost).max(1)).unwrap());
            prop_assert!(spent == 0 || end - last <= 3 * stretch, "{} before the end, stretch {}", end - last, stretch);
        }

        #[test]
        fn a_wait_is_bounded_and_never_shorter_than_asked_for(
            failures in 0..100_usize, asked in prop::option::of(0..100_000_000_u64), chance in any::<u32>(),
        ) {
            let mut pace = at_interval(1_000, None, MIDNIGHT);
            for _ in 0..failures {
                pace.failed(None, chance);
            }
            let wait = pace.failed(asked, chance);
            prop_assert!((BACK_OFF_MS_MIN / 2..=ASKED_WAIT_MS_MAX).contains(&wait));
            prop_assert!(asked.is_none_or(|asked| wait >= asked.min(ASKED_WAIT_MS_MAX)));
            prop_assert!(asked.is_some() || wait <= BACK_OFF_MS_MAX);
        }
    }
}
