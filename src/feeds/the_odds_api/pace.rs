//! How often an upstream is asked: as often as is set, as seldom as its daily budget needs, and after trouble later and
//! later, with a part left to chance so that many feeds do not come back at the same moment.
//!
//! Time and chance are given, so that everything here can be tried out.

const DAY_MS: i64 = 86_400_000;
const BACK_OFF_MS_MIN: u64 = 2_000;
const BACK_OFF_MS_MAX: u64 = 600_000;
/// An upstream may ask for a longer wait: until its quota is back.
const ASKED_WAIT_MS_MAX: u64 = 86_400_000;
/// A refusal that only a person can mend is tried again this seldom.
pub const REFUSED_WAIT_MS: u64 = 600_000;

/// A feed's pace.
#[derive(Clone, Debug)]
pub struct Pace {
    interval_ms: u64,
    budget: Option<u64>,
    /// The UTC day that `spent` is of.
    day: i64,
    spent: u64,
    failures: u32,
}

impl Pace {
    /// A start in the middle of a day has only the rest of its budget: what was spent before a restart is not known.
    pub fn new(interval_ms: u64, budget: Option<u64>, now_unix_ms: i64) -> Self {
        let passed = u128::try_from(now_unix_ms.rem_euclid(DAY_MS)).unwrap_or(0);
        let share = budget.map_or(0, |budget| u128::from(budget) * passed / u128::from(DAY_MS.unsigned_abs()));
        let day = now_unix_ms.div_euclid(DAY_MS);
        Pace { interval_ms, budget, day, spent: u64::try_from(share).unwrap_or(u64::MAX), failures: 0 }
    }

    /// Notes what a request cost.
    pub fn charge(&mut self, cost: u64, now_unix_ms: i64) {
        self.turn_day(now_unix_ms);
        self.spent = self.spent.saturating_add(cost);
    }

    /// What is left of the day's budget; `None` where there is none.
    pub fn left(&mut self, now_unix_ms: i64) -> Option<u64> {
        self.turn_day(now_unix_ms);
        self.budget.map(|budget| budget.saturating_sub(self.spent))
    }

    /// How long to wait before a request of this cost may be sent at all: until tomorrow, when the budget is spent.
    pub fn wait_for_budget_ms(&mut self, cost: u64, now_unix_ms: i64) -> u64 {
        match self.left(now_unix_ms) {
            Some(left) if left < cost => rest_of_day_ms(now_unix_ms),
            _ => 0,
        }
    }

    /// The time between two rounds of requests that cost this much together: what is left of the budget lasts for what
    /// is left of the day.
    pub fn interval_ms(&mut self, round_cost: u64, now_unix_ms: i64) -> u64 {
        let rest_ms = rest_of_day_ms(now_unix_ms);
        match self.left(now_unix_ms) {
            None => self.interval_ms,
            Some(left) if left < round_cost => self.interval_ms.max(rest_ms),
            Some(left) => {
                let spread = u128::from(rest_ms) * u128::from(round_cost) / u128::from(left.max(1));
                self.interval_ms.max(u64::try_from(spread).unwrap_or(u64::MAX))
            }
        }
    }

    pub fn succeeded(&mut self) {
        self.failures = 0;
    }

    /// How long to wait after one more failure: twice as long each time, of which one half is left to chance, and not
    /// less than the upstream asked for.
    pub fn failed(&mut self, asked_wait_ms: Option<u64>, chance: u32) -> u64 {
        let full = BACK_OFF_MS_MIN.saturating_mul(1 << self.failures.min(20)).min(BACK_OFF_MS_MAX);
        self.failures = self.failures.saturating_add(1);
        let wait = full / 2 + (full / 2) * u64::from(chance) / u64::from(u32::MAX);
        asked_wait_ms.map_or(wait, |asked| asked.min(ASKED_WAIT_MS_MAX).max(wait))
    }

    fn turn_day(&mut self, now_unix_ms: i64) {
        let day = now_unix_ms.div_euclid(DAY_MS);
        if day > self.day {
            (self.day, self.spent) = (day, 0);
        }
    }
}

fn rest_of_day_ms(now_unix_ms: i64) -> u64 {
    (DAY_MS - now_unix_ms.rem_euclid(DAY_MS)).unsigned_abs()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MIDNIGHT: i64 = 20_000 * DAY_MS;

    #[test]
    fn without_a_budget_the_interval_is_what_is_set() {
        let mut pace = Pace::new(60_000, None, MIDNIGHT);
        pace.charge(1_000_000, MIDNIGHT);
        assert_eq!((pace.interval_ms(9, MIDNIGHT), pace.wait_for_budget_ms(9, MIDNIGHT)), (60_000, 0));
    }

    #[test]
    fn a_budget_returns_at_midnight() {
        let mut pace = Pace::new(1_000, Some(10), MIDNIGHT);
        pace.charge(10, MIDNIGHT + 5);
        assert_eq!(pace.wait_for_budget_ms(1, MIDNIGHT + 5), DAY_MS.unsigned_abs() - 5);
        assert_eq!(pace.left(MIDNIGHT + DAY_MS), Some(10));
        assert_eq!(pace.left(MIDNIGHT), Some(10), "a clock that is set back gives nothing twice, and takes nothing");
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
        fn a_day_never_costs_more_than_its_budget_and_is_used_to_the_end(
            budget in 1..5_000_u64, cost in 1..30_u64, interval_s in 1..3_600_u64, start in 0..DAY_MS,
        ) {
            let (mut now, end) = (MIDNIGHT + start, MIDNIGHT + DAY_MS);
            let mut pace = Pace::new(interval_s * 1000, Some(budget), now);
            let (mut spent, mut last) = (0, now);
            while now < end {
                let wait = pace.wait_for_budget_ms(cost, now);
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
