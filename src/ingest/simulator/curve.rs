//! Exponential and logistic functions in fixed point: arguments in thousandths, results in millionths.

/// Probability one, in millionths.
pub(super) const ONE: i64 = 1_000_000;

const LN_2_MILLI: i64 = 693;

/// e to the power of minus `milli` thousandths, in millionths; for `milli` from zero up.
pub(super) const fn exp_below(milli: i64) -> i64 {
    let halvings = milli / LN_2_MILLI;
    if halvings >= 40 {
        return 0;
    }
    // Below ln 2, the Taylor series up to the fourth power is exact to a thousandth.
    let rest = milli % LN_2_MILLI;
    let square = rest * rest;
    let value = ONE - rest * 1000 + square / 2 - square * rest / 6000 + square * square / 24_000_000;
    value >> halvings
}

/// The logistic function: the probability of a logit of `milli` thousandths.
pub(super) const fn sigmoid(milli: i64) -> i64 {
    let small = exp_below(milli.abs());
    let likely = ONE * ONE / (ONE + small);
    if milli >= 0 { likely } else { ONE - likely }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_values() {
        for (milli, expected) in [(0, 1_000_000), (693, 500_000), (1000, 367_879), (2000, 135_335), (5000, 6_738)] {
            assert!((exp_below(milli) - expected).abs() <= 2_000, "{milli}: {}", exp_below(milli));
        }
        for (milli, expected) in [(0, 500_000), (1000, 731_059), (-1000, 268_941), (3000, 952_574)] {
            assert!((sigmoid(milli) - expected).abs() <= 1_000, "{milli}: {}", sigmoid(milli));
        }
        assert_eq!((sigmoid(i64::from(i32::MAX)), sigmoid(-i64::from(i32::MAX))), (ONE, 0));
    }

    #[test]
    fn sigmoid_is_monotonic() {
        for milli in -20_000..20_000 {
            assert!(sigmoid(milli) <= sigmoid(milli + 1) + 1, "{milli}");
        }
    }
}
