//! Fair (margin-free) chances of outcomes, and the distributions they come from: a margin or a total, and a
//! field of competitors of which some win.

use std::sync::Arc;

use super::curve::{ONE, exp_below, sigmoid};
use super::goals::CountChances;
use crate::model::OutcomeName;

/// One outcome and its fair chance in millionths.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub name: OutcomeName,
    pub chance: i64,
    pub point_milli: Option<i32>,
}

impl Side {
    pub(super) fn new(name: &Arc<str>, chance: i64) -> Self {
        Side { name: Arc::clone(name).into(), chance, point_milli: None }
    }

    pub(super) fn at(name: &OutcomeName, chance: i64, point_milli: i64) -> Self {
        Side { name: name.clone(), chance, point_milli: i32::try_from(point_milli).ok() }
    }
}

/// Two outcomes of which the first wins with `chance`.
pub(super) fn two_way(first: &Arc<str>, second: &Arc<str>, chance: i64) -> [Side; 2] {
    [Side::new(first, chance), Side::new(second, ONE - chance)]
}

/// The expected final margin or total and its standard deviation, in thousandths of a point.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimate {
    pub mean: i64,
    pub deviation: i64,
}

impl Estimate {
    /// The chance of ending above a line, if the distribution is normal.
    pub(super) fn above(self, line: i64) -> i64 {
        // The logistic function of 1.702 x is within one percent of the normal distribution.
        sigmoid((self.mean - line) * 1_702 / self.deviation.max(1))
    }

    /// The line nearest to the mean: on any half point, or on halves only, where no bet can be void.
    pub(super) const fn line(self, whole_points: bool) -> i64 {
        if whole_points { (self.mean + 250).div_euclid(500) * 500 } else { self.mean.div_euclid(1_000) * 1_000 + 500 }
    }
}

/// How a margin or a total may end.
#[derive(Debug)]
pub(super) enum Distribution {
    Normal(Estimate),
    Goals(CountChances),
}

impl Distribution {
    pub(super) fn above(&self, line: i64) -> i64 {
        match self {
            Distribution::Normal(estimate) => estimate.above(line),
            Distribution::Goals(tally) => tally.above(line),
        }
    }

    /// The line that both sides of a bet are about equally likely at. That of goals is always on a half.
    pub(super) fn line(&self, whole_points: bool) -> i64 {
        match self {
            Distribution::Normal(estimate) => estimate.line(whole_points),
            Distribution::Goals(tally) => tally.line(),
        }
    }
}

/// The chances of a field in which exactly one wins, from strengths in thousandths of a logit.
pub(super) fn one_of(strengths: &[i64]) -> Vec<i64> {
    let best = strengths.iter().copied().max().unwrap_or(0);
    let weights: Vec<i64> = strengths.iter().map(|strength| exp_below(best - strength)).collect();
    let sum = weights.iter().sum::<i64>().max(1);
    weights.into_iter().map(|weight| weight * ONE / sum).collect()
}

/// The chances of a field of which exactly `winners` finish above a threshold, found by bisection so that the chances
/// sum to their number.
pub(super) fn some_of(strengths: &[i64], winners: usize) -> Vec<i64> {
    let wanted = ONE * i64::try_from(winners).unwrap_or(1);
    let sum_above = |threshold: i64| strengths.iter().map(|strength| sigmoid(strength - threshold)).sum::<i64>();
    let mut low = strengths.iter().copied().min().unwrap_or(0) - 8_000;
    let mut high = strengths.iter().copied().max().unwrap_or(0) + 8_000;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if sum_above(middle) > wanted {
            low = middle;
        } else {
            high = middle;
        }
    }
    strengths.iter().map(|strength| sigmoid(strength - high)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_on_half_points() {
        let line = |mean, whole_points| Estimate { mean, deviation: 13_500 }.line(whole_points);
        assert_eq!([3_200, 3_250, -3_300, 240].map(|mean| line(mean, true)), [3_000, 3_500, -3_500, 0]);
        assert_eq!([3_200, 2_999, -3_300, 240].map(|mean| line(mean, false)), [3_500, 2_500, -3_500, 500]);
        assert!(Estimate { mean: 3_200, deviation: 13_500 }.above(3_000) > ONE / 2);
    }

    #[test]
    fn chances_of_a_field_sum_to_its_winners() {
        let strengths: Vec<i64> = (0..60).map(|n| n * 97 % 2_500).collect();
        assert!((one_of(&strengths).iter().sum::<i64>() - ONE).abs() < 100);
        for winners in [5, 10, 20] {
            let sum = some_of(&strengths, winners).iter().sum::<i64>();
            assert!((sum - ONE * i64::try_from(winners).unwrap()).abs() < 20_000, "{sum}");
        }
    }
}
