//! The fraction a bookmaker would write for a price that was quoted in decimal.

use super::ladder::LADDER;

/// A price quoted in decimal is known to its last place only. `units` is its profit counted in that place,
/// `scale` how many of them make one: 1.91 is 91 of 100, 1.909 is 909 of 1000.
#[derive(Clone, Copy)]
struct Quote {
    units: u32,
    scale: u32,
}

/// For a profit of `milli` thousandths: a step of the traditional ladder that reads as the decimal, else the exact
/// fraction if it is a simple one, else the simplest that rounds to the decimal. In lowest terms.
pub(super) fn of_decimal(milli: u32) -> (u32, u32) {
    let quote = match milli % 10 {
        0 => Quote { units: milli / 10, scale: 100 },
        _ => Quote { units: milli, scale: 1000 },
    };
    nearest_step(quote).or_else(|| simple(milli)).unwrap_or_else(|| simplest_that_rounds(quote))
}

/// Whether a fraction shows as the quoted decimal when it is rounded or cut to the quote's places.
fn reads_as((n, d): (u32, u32), quote: Quote) -> bool {
    let (shown, divisor) = (u64::from(n) * u64::from(quote.scale), u64::from(d));
    let units = u64::from(quote.units);
    shown / divisor == units || (2 * shown + divisor) / (2 * divisor) == units
}

fn nearest_step(quote: Quote) -> Option<(u32, u32)> {
    let Quote { units, scale } = quote;
    let below = |(n, d): &(u32, u32)| (u64::from(*n) * u64::from(scale)) < u64::from(units) * u64::from(*d);
    let above = LADDER.partition_point(below);
    let candidates = [above.checked_sub(1), Some(above)].into_iter().flatten();
    candidates
        .filter_map(|at| LADDER.get(at).copied())
        .filter(|step| reads_as(*step, quote))
        .min_by(|one, other| closer(*one, *other, quote))
}

/// Compares how far two fractions lie from the quote.
fn closer(one: (u32, u32), other: (u32, u32), quote: Quote) -> std::cmp::Ordering {
    let distance = |(n, d): (u32, u32)| {
        let exact = u128::from(quote.units) * u128::from(d);
        (exact.abs_diff(u128::from(n) * u128::from(quote.scale)), u128::from(d))
    };
    let ((one_n, one_d), (other_n, other_d)) = (distance(one), distance(other));
    (one_n * other_d).cmp(&(other_n * one_d))
}

/// The exact fraction, if people would write it: a denominator up to 20, or a numerator of 1.
fn simple(milli: u32) -> Option<(u32, u32)> {
    let divisor = super::gcd(milli, 1000);
    let (n, d) = (milli / divisor, 1000 / divisor);
    (d <= 20 || n == 1).then_some((n, d))
}

fn simplest_that_rounds(quote: Quote) -> (u32, u32) {
    let (twice, scale) = (2 * u64::from(quote.units), 2 * u64::from(quote.scale));
    let low = Bound { n: twice - 1, d: scale, included: true };
    let high = Bound { n: twice + 1, d: scale, included: false };
    let (n, d) = simplest_between(low, high);
    // Both are at most the quote's own units and scale.
    (u32::try_from(n).unwrap_or(quote.units), u32::try_from(d).unwrap_or(quote.scale))
}

/// An end of an interval of fractions; a zero denominator stands for infinity.
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
    // Both bounds share the whole part: what remains is one over something, with the bounds exchanged.
    let flipped_low = Bound { n: high.d, d: high.n - whole * high.d, included: high.included };
    let flipped_high = Bound { n: low.d, d: low.n - whole * low.d, included: low.included };
    let (n, d) = simplest_between(flipped_low, flipped_high);
    (whole * n + d, n)
}
