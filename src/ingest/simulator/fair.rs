//! Chances before any bookmaker has touched them, and the shapes that most markets share: two sides, a line that both
//! sides of a total or a handicap stand around, a field in which some win.

use std::sync::Arc;

use super::curve::{ONE, exp_below, sigmoid};

/// One outcome and its true chance in millionths.
#[derive(Clone, Debug)]
pub(super) struct Side {
    pub name: Arc<str>,
    pub chance: i64,
    pub point_milli: Option<i32>,
}

impl Side {
    pub(super) fn new(name: &Arc<str>, chance: i64) -> Self {
        Side { name: Arc::clone(name), chance, point_milli: None }
    }

    fn at(name: &Arc<str>, chance: i64, point_milli: i64) -> Self {
        Side { name: Arc::clone(name), chance, point_milli: i32::try_from(point_milli).ok() }
    }
}

/// Two sides of which the first wins with `chance`.
pub(super) fn two_way(first: &Arc<str>, second: &Arc<str>, chance: i64) -> Vec<Side> {
    vec![Side::new(first, chance), Side::new(second, ONE - chance)]
}

/// A line that divides the expectation as evenly as half points allow, and the chance of ending above it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    pub milli: i64,
    pub above: i64,
}

impl Line {
    /// `mean_milli` is what is expected, `steepness` how many thousandths of a logit a whole point is worth, `tilt`
    /// what the bookmaker thinks otherwise.
    pub(super) fn around(mean_milli: i64, steepness: i64, tilt: i64) -> Self {
        Self::on(half(mean_milli), mean_milli, steepness, tilt)
    }

    /// A line at a given place.
    pub(super) fn on(milli: i64, mean_milli: i64, steepness: i64, tilt: i64) -> Self {
        Line { milli, above: sigmoid((mean_milli - milli) * steepness / 1000 + tilt) }
    }

    pub(super) fn totals(self, over: &Arc<str>, under: &Arc<str>) -> Vec<Side> {
        vec![Side::at(over, self.above, self.milli), Side::at(under, ONE - self.above, self.milli)]
    }

    /// The line as the margin that the home side is expected to win by: it gives that many points.
    pub(super) fn handicap(self, home: &Arc<str>, away: &Arc<str>) -> Vec<Side> {
        vec![Side::at(home, self.above, -self.milli), Side::at(away, ONE - self.above, self.milli)]
    }
}

/// The nearest multiple of half a point.
pub(super) const fn half(milli: i64) -> i64 {
    (milli + 250).div_euclid(500) * 500
}

/// The chances of a field in which exactly one wins, from strengths in thousandths of a logit.
pub(super) fn one_of(strengths: &[i64]) -> Vec<i64> {
    let best = strengths.iter().copied().max().unwrap_or(0);
    let weights: Vec<i64> = strengths.iter().map(|strength| exp_below(best - strength)).collect();
    let sum = weights.iter().sum::<i64>().max(1);
    weights.into_iter().map(|weight| weight * ONE / sum).collect()
}

/// The chances of a field of which exactly `winners` finish above the mark: the mark is searched for until the
/// chances sum to their number.
pub(super) fn some_of(strengths: &[i64], winners: usize) -> Vec<i64> {
    let wanted = ONE * i64::try_from(winners).unwrap_or(1);
    let sum_above = |mark: i64| strengths.iter().map(|strength| sigmoid(strength - mark)).sum::<i64>();
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
    fn lines_stand_on_half_points() {
        assert_eq!([half(3_200), half(3_250), half(-3_300), half(240)], [3_000, 3_500, -3_500, 0]);
        let line = Line::around(3_200, 110, 0);
        assert_eq!(line.milli, 3_000);
        assert!(line.above > ONE / 2);
    }

    #[test]
    fn a_field_sums_to_its_winners() {
        let strengths: Vec<i64> = (0..60).map(|n| n * 97 % 2_500).collect();
        assert!((one_of(&strengths).iter().sum::<i64>() - ONE).abs() < 100);
        for winners in [5, 10, 20] {
            let sum = some_of(&strengths, winners).iter().sum::<i64>();
            assert!((sum - ONE * i64::try_from(winners).unwrap()).abs() < 20_000, "{sum}");
        }
    }
}
