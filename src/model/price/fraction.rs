//! The fraction that a bookmaker would write for a price quoted in decimal.

/// The fractions that bookmakers traditionally quote, shortest price first. Each is in lowest terms: 6/4 is written
/// 3/2, 100/30 is 10/3.
#[rustfmt::skip]
pub(super) const LADDER: [(u32, u32); 109] = [
    (1, 100), (1, 80), (1, 66), (1, 50), (1, 40), (1, 33), (1, 28), (1, 25), (1, 22), (1, 20), (1, 18), (1, 16),
    (1, 14), (1, 12), (1, 11), (1, 10), (1, 9), (1, 8), (2, 15), (1, 7), (2, 13), (1, 6), (2, 11), (1, 5), (2, 9),
    (1, 4), (2, 7), (3, 10), (1, 3), (4, 11), (2, 5), (4, 9), (1, 2), (8, 15), (4, 7), (8, 13), (2, 3), (8, 11),
    (4, 5), (5, 6), (10, 11), (20, 21), (1, 1), (21, 20), (11, 10), (6, 5), (5, 4), (11, 8), (3, 2), (13, 8), (7, 4),
    (15, 8), (2, 1), (17, 8), (9, 4), (19, 8), (5, 2), (11, 4), (3, 1), (10, 3), (7, 2), (4, 1), (9, 2), (5, 1), (11, 2),
    (6, 1), (13, 2), (7, 1), (15, 2), (8, 1), (17, 2), (9, 1), (10, 1), (11, 1), (12, 1), (13, 1), (14, 1), (15, 1),
    (16, 1), (18, 1), (20, 1), (22, 1), (25, 1), (28, 1), (33, 1), (40, 1), (50, 1), (66, 1), (80, 1), (100, 1),
    (125, 1), (150, 1), (175, 1), (200, 1), (225, 1), (250, 1), (275, 1), (300, 1), (350, 1), (400, 1), (450, 1),
    (500, 1), (550, 1), (600, 1), (650, 1), (700, 1), (750, 1), (900, 1), (1000, 1),
];

/// The profit of a decimal quote at its own precision: 1.91 is 91 units of 1/100, 1.909 is 909 units of 1/1000.
#[derive(Clone, Copy)]
struct DecimalQuote {
    units: u32,
    scale: u32,
}

/// The fraction for a profit of `milli` thousandths: a traditional one that reads as the decimal, else the exact
/// fraction if it is simple, else the simplest that rounds to the decimal. In lowest terms.
pub(super) fn of_decimal(milli: u32) -> (u32, u32) {
    let quote = match milli % 10 {
        0 => DecimalQuote { units: milli / 10, scale: 100 },
        _ => DecimalQuote { units: milli, scale: 1000 },
    };
    nearest_step(quote).or_else(|| simple(milli)).unwrap_or_else(|| simplest_that_rounds(quote))
}

/// Whether a fraction, rounded or truncated to the quote's precision, is the quoted decimal.
fn reads_as((n, d): (u32, u32), quote: DecimalQuote) -> bool {
    let (shown, divisor) = (u64::from(n) * u64::from(quote.scale), u64::from(d));
    let units = u64::from(quote.units);
    shown / divisor == units || (2 * shown + divisor) / (2 * divisor) == units
}

fn nearest_step(quote: DecimalQuote) -> Option<(u32, u32)> {
    let DecimalQuote { units, scale } = quote;
    let below = |(n, d): &(u32, u32)| (u64::from(*n) * u64::from(scale)) < u64::from(units) * u64::from(*d);
    let above = LADDER.partition_point(below);
    let candidates = [above.checked_sub(1), Some(above)].into_iter().flatten();
    candidates
        .filter_map(|at| LADDER.get(at).copied())
        .filter(|step| reads_as(*step, quote))
        .min_by(|one, other| closer(*one, *other, quote))
}

/// Compares the distances of two fractions from the quote.
fn closer(one: (u32, u32), other: (u32, u32), quote: DecimalQuote) -> std::cmp::Ordering {
    let distance = |(n, d): (u32, u32)| {
        let exact = u128::from(quote.units) * u128::from(d);
        (exact.abs_diff(u128::from(n) * u128::from(quote.scale)), u128::from(d))
    };
    let ((one_n, one_d), (other_n, other_d)) = (distance(one), distance(other));
    (one_n * other_d).cmp(&(other_n * one_d))
}

/// The exact fraction, if people would write it: a denominator up to 20, or a numerator of 1.
fn simple(milli: u32) -> Option<(u32, u32)> {
    let divisor = super::COMMON_WITH_1000[milli as usize % 1000];
    let (n, d) = (milli / divisor, 1000 / divisor);
    (d <= 20 || n == 1).then_some((n, d))
}

fn simplest_that_rounds(quote: DecimalQuote) -> (u32, u32) {
    let (twice, scale) = (2 * u64::from(quote.units), 2 * u64::from(quote.scale));
    let low = Bound { n: twice - 1, d: scale, included: true };
    let high = Bound { n: twice + 1, d: scale, included: false };
    let (n, d) = simplest_between(low, high);
    // The conversions cannot fail: both are at most the quote's units and scale.
    (u32::try_from(n).unwrap_or(quote.units), u32::try_from(d).unwrap_or(quote.scale))
}

/// An end of an interval of fractions; a zero denominator means infinity.
#[derive(Clone, Copy)]
struct Bound {
    n: u64,
    d: u64,
    included: bool,
}

/// The fraction with the smallest denominator between two bounds, by descending their continued fractions.
fn simplest_between(low: Bound, high: Bound) -> (u64, u64) {
    let whole = low.n / low.d;
    let candidate = if low.included && low.n.is_multiple_of(low.d) { whole } else { whole + 1 };
    let limit = candidate * high.d;
    if limit < high.n || (high.included && limit == high.n) {
        return (candidate, 1);
    }
    // Both bounds have the same whole part: continue with the reciprocals of the remainders, which swaps the bounds.
    let flipped_low = Bound { n: high.d, d: high.n - whole * high.d, included: high.included };
    let flipped_high = Bound { n: low.d, d: low.n - whole * low.d, included: low.included };
    let (n, d) = simplest_between(flipped_low, flipped_high);
    (whole * n + d, n)
}

#[cfg(test)]
mod tests {
    use super::LADDER;

    #[test]
    fn ladder_ascends_and_is_in_lowest_terms() {
        for pair in LADDER.windows(2) {
            let [(n, d), (next_n, next_d)] = [pair[0], pair[1]];
            assert!(n * next_d < next_n * d, "{n}/{d} before {next_n}/{next_d}");
        }
        for (n, d) in LADDER {
            assert_eq!(super::super::gcd(n.into(), d.into()), 1, "{n}/{d}");
        }
    }
}
