//! How often an upstream is polled: at the configured interval, or less often where its credits demand it. After a
//! failure the wait doubles each time, with a random part so that many feeds do not come back at the same moment.
//!
//! Time and random numbers are passed in, so that all of it can be tested.

use super::credits::{Credits, renewal_ms};
use crate::ingest::ledger::UpstreamPlan;
use crate::model::{FeedBudget, Timestamp};

const DAY_MS: u128 = 86_400_000;
const BACK_OFF_MS_MIN: u64 = 2_000;
const BACK_OFF_MS_MAX: u64 = 600_000;
/// An upstream may ask for a longer wait: until its quota is back.
const ASKED_WAIT_MS_MAX: u64 = 86_400_000;
/// How long to wait after an error status that only a person can correct.
pub(super) const REFUSED_WAIT_MS: u64 = 600_000;

/// A feed's pace.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    interval_ms: u64,
    credits: Credits,
    /// The last interval at which a whole round could be paid for.
    steady_ms: u64,
    failures: u32,
}

/// How an upstream's credits are spent until they are renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SpendingPlan {
    pub(super) left: u64,
    pub(super) until: Timestamp,
    pub(super) per_day: u64,
    pub(super) interval_ms: u64,
}

impl SpendingPlan {
    /// Whether the operator should know of it although another plan was announced: another month, or an interval that
    /// is half as long again, or shorter by as much.
    pub(super) fn is_other_than(&self, announced: &SpendingPlan) -> bool {
        let (short, long) = (self.interval_ms.min(announced.interval_ms), self.interval_ms.max(announced.interval_ms));
        self.until != announced.until || long > short.saturating_add(short / 2)
    }
}

impl Pace {
    pub(super) fn new(interval_ms: u64, per_day: Option<u64>, now_ms: i64) -> Self {
        Pace { interval_ms, credits: Credits::new(per_day, now_ms), steady_ms: interval_ms, failures: 0 }
    }

    /// Resumes from the spending that was stored.
    pub(super) fn resume(&mut self, stored: &FeedBudget, now_ms: i64) {
        self.credits.resume(stored, now_ms);
    }

    /// Counts what a request cost.
    pub(super) fn charge(&mut self, cost: u64, now_ms: i64) {
        self.credits.charge(cost, now_ms);
    }

    /// Notes what the upstream says is left; whether that is more than was known.
    pub(super) fn report(&mut self, left: u64, now_ms: i64) -> bool {
        self.credits.report(left, now_ms)
    }

    /// What is left of the day's budget; `None` where there is none.
    pub(super) fn left_today(&mut self, now_ms: i64) -> Option<u64> {
        self.credits.left_today(now_ms)
    }

    /// The spending with the next request counted, to be stored before it is sent.
    pub(super) fn with_reserve(&mut self, reserve: u64, now_ms: i64) -> FeedBudget {
        self.credits.with_reserve(reserve, now_ms)
    }

    /// Whether what is stored already counts a request of this cost.
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
        let upstream = self.credits.upstream(now_ms)?;
        (upstream.left < cost).then(|| Timestamp::from_unix_ms(renewal_ms(now_ms)))
    }

    /// The time between two rounds of requests that cost this much together: what is left lasts until it is renewed.
    pub(super) fn interval_ms(&mut self, round_cost: u64, now_ms: i64) -> u64 {
        let mut is_short = false;
        let mut interval_ms = self.interval_ms;
        for share in self.credits.shares(now_ms) {
            is_short |= share.left < round_cost;
            interval_ms = interval_ms.max(share.spread_ms(round_cost));
        }
        if !is_short {
            self.steady_ms = interval_ms;
        }
        interval_ms
    }

    /// The interval that prices count as fresh by. Credits that run out do not make old prices fresh.
    pub(super) fn steady_interval_ms(&mut self, round_cost: u64, now_ms: i64) -> u64 {
        self.interval_ms(round_cost, now_ms);
        self.steady_ms
    }

    /// The interval that the credits demand, where it is longer than the configured one.
    pub(super) fn stretched_ms(&mut self, round_cost: u64, now_ms: i64) -> Option<u64> {
        Some(self.interval_ms(round_cost, now_ms)).filter(|interval_ms| *interval_ms > self.interval_ms)
    }

    /// How long to wait after a request when not even one round can be paid for: its requests are then spread as well.
    pub(super) fn gap_ms(&mut self, cost: u64, round_cost: u64, now_ms: i64) -> u64 {
        let short = self.credits.shares(now_ms).filter(|share| share.left < round_cost);
        short.map(|share| share.spread_ms(cost)).max().unwrap_or(0)
    }

    /// How the upstream's credits will be spent, if it has said what is left.
    pub(super) fn plan(&mut self, round_cost: u64, now_ms: i64) -> Option<SpendingPlan> {
        let left = self.credits.upstream(now_ms)?.left;
        let interval_ms = self.interval_ms(round_cost, now_ms);
        let per_day = per_day(round_cost.min(left), interval_ms);
        Some(SpendingPlan { left, until: Timestamp::from_unix_ms(renewal_ms(now_ms)), per_day, interval_ms })
    }

    /// The same for an operator: what a day costs at the interval that follows from every limit, and when the upstream
    /// renews its quota, if it has one. `None` while the cost of a round is unknown.
    pub(super) fn outlook(&mut self, round_cost: u64, now_ms: i64) -> Option<UpstreamPlan> {
        if round_cost == 0 {
            return None;
        }
        let (interval_ms, plan) = (self.interval_ms(round_cost, now_ms), self.plan(round_cost, now_ms));
        let credits_per_day = plan.map_or_else(|| per_day(round_cost, interval_ms), |plan| plan.per_day);
        Some(UpstreamPlan {
            credits_per_day: credits_per_day.min(self.budget_per_day().unwrap_or(u64::MAX)),
            interval_s: interval_ms / 1000,
            resets: plan.map(|plan| plan.until),
        })
    }

    pub(super) fn budget_per_day(&self) -> Option<u64> {
        self.credits.per_day()
    }

    pub(super) fn succeeded(&mut self) {
        self.failures = 0;
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

/// What rounds of this cost at this interval cost in a day.
fn per_day(cost: u64, interval_ms: u64) -> u64 {
    u64::try_from(u128::from(cost) * DAY_MS / u128::from(interval_ms.max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const DAY_MS: i64 = 86_400_000;
    const MIDNIGHT: i64 = 20_000 * DAY_MS;
    /// The first of November 2026 and of December, when the quotas are renewed.
    const NOVEMBER: i64 = 20_758 * DAY_MS + 60_000;
    const DECEMBER: i64 = NOVEMBER + 30 * DAY_MS;

    #[test]
    fn without_a_budget_the_interval_is_what_is_set() {
        let mut pace = Pace::new(60_000, None, MIDNIGHT);
        pace.charge(1_000_000, MIDNIGHT);
        assert_eq!((pace.interval_ms(9, MIDNIGHT), pace.wait_for_credits_ms(9, MIDNIGHT)), (60_000, 0));
        assert_eq!(pace.plan(9, MIDNIGHT), None);
    }

    #[test]
    fn a_budget_returns_at_midnight() {
        let mut pace = Pace::new(1_000, Some(10), MIDNIGHT);
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
        let mut pace = Pace::new(1_000, Some(10), NOVEMBER);
        pace.resume(&FeedBudget::default(), NOVEMBER);
        pace.report(30_000, NOVEMBER);
        assert_eq!(pace.interval_ms(1, NOVEMBER), 7_849_090, "ten of the day, and the next at midnight");
        pace.report(30, NOVEMBER);
        assert_eq!(pace.interval_ms(1, NOVEMBER), 83_612_903, "thirty of the month");
    }

    #[test]
    fn upstream_with_nothing_left_is_not_asked_before_the_renewal() {
        let mut pace = Pace::new(60_000, None, NOVEMBER);
        pace.report(2, NOVEMBER);
        let noon = NOVEMBER + DAY_MS / 2;
        assert_eq!(pace.wait_for_credits_ms(3, noon), (DECEMBER - noon).unsigned_abs());
        assert_eq!(pace.is_used_up(3, noon), Some(Timestamp::from_unix_ms(DECEMBER)));
        assert_eq!((pace.wait_for_credits_ms(0, noon), pace.is_used_up(2, noon)), (0, None), "what it can pay for");
        assert_eq!((pace.wait_for_credits_ms(3, DECEMBER), pace.interval_ms(3, DECEMBER)), (0, 60_000), "a new month");
        assert_eq!(pace.steady_interval_ms(3, noon), 60_000, "prices do not stay fresh until then");
    }

    #[test]
    fn plan_is_announced_again_when_it_changes_by_half() {
        let mut pace = Pace::new(60_000, None, NOVEMBER);
        pace.report(500, NOVEMBER);
        let plan = pace.plan(3, NOVEMBER).unwrap();
        assert_eq!((plan.left, plan.per_day, plan.interval_ms), (500, 16, 15_520_958));
        assert_eq!(plan.until, Timestamp::from_unix_ms(DECEMBER));
        pace.report(400, NOVEMBER);
        assert!(!pace.plan(3, NOVEMBER).unwrap().is_other_than(&plan));
        pace.report(20_000, NOVEMBER);
        assert!(pace.plan(3, NOVEMBER).unwrap().is_other_than(&plan), "a larger plan was bought");
        pace.report(500, DECEMBER);
        assert!(pace.plan(3, DECEMBER).unwrap().is_other_than(&plan), "another month");
    }

    /// Polls until the end of November an upstream with so many credits; when it did. Restarts as asked, each time from
    /// what was stored with the last answer.
    fn polled(credits: u64, cost: u64, start: i64, restarts: &[i64]) -> Vec<i64> {
        let (mut left, mut now, mut times) = (credits, start, Vec::new());
        let mut pace = Pace::new(60_000, None, now);
        let (mut stored, mut restarts) = (FeedBudget::default(), restarts.iter().peekable());
        loop {
            if restarts.next_if(|at| **at <= now).is_some() {
                pace = Pace::new(60_000, None, now);
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
            pace.report(left, now);
            stored = pace.with_reserve(cost, now);
            now += i64::try_from(pace.interval_ms(cost, now)).unwrap();
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
        let mut pace = Pace::new(1_000, None, MIDNIGHT);
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
            let mut pace = Pace::new(interval_s * 1000, Some(budget), now);
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
                now += i64::try_from(pace.interval_ms(cost, now)).unwrap();
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
            let mut pace = Pace::new(1_000, None, MIDNIGHT);
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
