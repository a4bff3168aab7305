//! The plan of a feed's credits: what polling costs in a day, and the intervals that follow from what may be spent.
//!
//! Where the limits do not allow the configured intervals, all intervals are longer by the same factor. Everything here
//! is computed from its arguments.

use super::credits::CreditShare;

const DAY_MS: u128 = 86_400_000;

/// What one request of everything that is polled costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Demand {
    pub(super) odds: u64,
    pub(super) event_odds: u64,
    /// Of competitions that have an event on.
    pub(super) scores: u64,
}

impl Demand {
    pub(super) fn total(self) -> u64 {
        self.odds.saturating_add(self.event_odds).saturating_add(self.scores)
    }
}

/// How often a feed is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PollIntervals {
    /// Of odds, and of the odds of single events.
    pub(super) odds_ms: u64,
    pub(super) scores_ms: u64,
}

impl PollIntervals {
    /// What is spent from one poll of the odds to the next, in thousandths of a credit.
    fn round_milli(self, demand: Demand) -> u128 {
        let odds = u128::from(demand.odds) + u128::from(demand.event_odds);
        let scores = u128::from(demand.scores) * 1000 * u128::from(self.odds_ms) / u128::from(self.scores_ms.max(1));
        odds * 1000 + scores
    }
}

/// What makes the intervals longer than configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanLimit {
    /// The operator's budget of a day.
    Budget,
    /// What is left upstream.
    Upstream,
}

impl PlanLimit {
    pub const fn key(self) -> &'static str {
        match self {
            PlanLimit::Budget => "budget",
            PlanLimit::Upstream => "upstream",
        }
    }
}

/// How credits are spent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct CreditPlan {
    pub(super) intervals: PollIntervals,
    /// Credits in a day.
    pub(super) per_day: Demand,
    /// `None` if the configured intervals can be kept.
    pub(super) limit: Option<PlanLimit>,
}

impl CreditPlan {
    /// The plan for a demand within every limit that is known. `per_day_max` is the most that a day may cost.
    pub(super) fn new(
        configured: PollIntervals,
        demand: Demand,
        shares: impl Iterator<Item = CreditShare>,
        per_day_max: Option<u64>,
    ) -> Self {
        let round_milli = configured.round_milli(demand);
        let (mut odds_ms, mut limit) = (configured.odds_ms, None);
        let mut left = u64::MAX;
        for share in shares {
            let needed_ms = share.spread_ms(round_milli);
            left = left.min(share.left);
            if needed_ms > odds_ms {
                (odds_ms, limit) = (needed_ms, Some(share.limit));
            }
        }
        let stretched = |interval_ms: u64| {
            let stretched = u128::from(interval_ms) * u128::from(odds_ms) / u128::from(configured.odds_ms.max(1));
            u64::try_from(stretched).unwrap_or(u64::MAX)
        };
        let intervals = PollIntervals { odds_ms, scores_ms: stretched(configured.scores_ms) };
        // A round that cannot be paid for in full costs what is left.
        let paid = scaled(demand, left);
        let per_day = Demand {
            odds: per_day(paid.odds, intervals.odds_ms),
            event_odds: per_day(paid.event_odds, intervals.odds_ms),
            scores: per_day(paid.scores, intervals.scores_ms),
        };
        CreditPlan { intervals, per_day: scaled(per_day, per_day_max.unwrap_or(u64::MAX)), limit }
    }

    /// Whether the operator should know of it although another plan was announced: another limit, or an interval or a
    /// cost that is half as large again, or smaller by as much.
    pub(super) fn is_other_than(&self, announced: &CreditPlan) -> bool {
        let differs = |one: u64, other: u64| {
            let (small, large) = (one.min(other), one.max(other));
            large > small.saturating_add(small / 2)
        };
        self.limit != announced.limit
            || differs(self.intervals.odds_ms, announced.intervals.odds_ms)
            || differs(self.per_day.total(), announced.per_day.total())
    }
}

/// A demand in the same proportions that costs no more than `max`.
fn scaled(demand: Demand, max: u64) -> Demand {
    let total = demand.total();
    if total <= max {
        return demand;
    }
    let part =
        |cost: u64| u64::try_from(u128::from(cost) * u128::from(max) / u128::from(total.max(1))).unwrap_or(u64::MAX);
    let (event_odds, scores) = (part(demand.event_odds), part(demand.scores));
    Demand { odds: max.saturating_sub(event_odds).saturating_sub(scores), event_odds, scores }
}

/// What requests of this cost at this interval cost in a day.
fn per_day(cost: u64, interval_ms: u64) -> u64 {
    u64::try_from(u128::from(cost) * DAY_MS / u128::from(interval_ms.max(1))).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE_MS: u64 = 60_000;
    const INTERVALS: PollIntervals = PollIntervals { odds_ms: MINUTE_MS, scores_ms: 5 * MINUTE_MS };

    fn share(left: u64, days: u64, limit: PlanLimit) -> CreditShare {
        CreditShare { left, rest_ms: days * 86_400_000, limit }
    }

    fn plan(demand: Demand, shares: &[CreditShare]) -> CreditPlan {
        CreditPlan::new(INTERVALS, demand, shares.iter().copied(), None)
    }

    /// Three markets in two regions for ten competitions, four props for twelve events, scores of two competitions.
    const DEMAND: Demand = Demand { odds: 60, event_odds: 96, scores: 4 };

    #[test]
    fn without_a_limit_the_intervals_are_those_configured() {
        let plan = plan(DEMAND, &[]);
        assert_eq!((plan.intervals, plan.limit), (INTERVALS, None));
        assert_eq!(plan.per_day, Demand { odds: 60 * 1440, event_odds: 96 * 1440, scores: 4 * 288 });
        let ample = CreditPlan::new(INTERVALS, DEMAND, [share(10_000_000, 1, PlanLimit::Budget)].into_iter(), None);
        assert_eq!(ample, plan, "a limit that allows it changes nothing");
    }

    #[test]
    fn all_intervals_stretch_by_the_same_factor_and_the_limit_is_kept() {
        let budget = share(20_000, 1, PlanLimit::Budget);
        let shares = [budget, share(3_000_000, 30, PlanLimit::Upstream)];
        let plan = CreditPlan::new(INTERVALS, DEMAND, shares.into_iter(), Some(20_000));
        assert_eq!(plan.limit, Some(PlanLimit::Budget));
        let PollIntervals { odds_ms, scores_ms } = plan.intervals;
        assert!(odds_ms > 11 * MINUTE_MS && scores_ms.abs_diff(5 * odds_ms) <= 5, "{:?}", plan.intervals);
        let total = plan.per_day.total();
        assert!((19_700..=20_000).contains(&total), "{:?}", plan.per_day);
        let ratio = |demand: Demand| demand.event_odds * 1000 / demand.odds;
        assert!(ratio(plan.per_day).abs_diff(ratio(DEMAND)) <= 10, "{:?}", plan.per_day);
    }

    #[test]
    fn tightest_limit_is_the_one_that_is_named() {
        let shares = [share(20_000, 1, PlanLimit::Budget), share(30_000, 30, PlanLimit::Upstream)];
        let plan = plan(DEMAND, &shares);
        assert_eq!(plan.limit, Some(PlanLimit::Upstream));
        // A round is paid for now, and what is left pays for those that follow.
        assert!((990..=1_000 + DEMAND.total() / 30).contains(&plan.per_day.total()), "{:?}", plan.per_day);
    }

    #[test]
    fn nothing_left_and_nothing_to_poll_are_plans_as_well() {
        let none = plan(DEMAND, &[share(0, 3, PlanLimit::Upstream)]);
        assert_eq!((none.per_day.total(), none.intervals.odds_ms), (0, 3 * 86_400_000));
        let idle = plan(Demand::default(), &[share(500, 30, PlanLimit::Upstream)]);
        assert_eq!((idle.intervals, idle.per_day, idle.limit), (INTERVALS, Demand::default(), None));
        let capped = CreditPlan::new(INTERVALS, DEMAND, std::iter::empty(), Some(1_000));
        assert_eq!(capped.per_day.total(), 1_000);
    }

    #[test]
    fn plan_is_announced_again_when_its_limit_or_its_size_changes() {
        let month = |left: u64| plan(DEMAND, &[share(left, 30, PlanLimit::Upstream)]);
        let first = month(30_000);
        assert!(!month(25_000).is_other_than(&first));
        assert!(month(90_000).is_other_than(&first));
        assert!(plan(DEMAND, &[]).is_other_than(&first));
        let more = Demand { event_odds: 400, ..DEMAND };
        assert!(plan(more, &[]).is_other_than(&plan(DEMAND, &[])), "the same intervals at a higher cost");
    }
}
