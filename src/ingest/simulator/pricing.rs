//! From fair chances to prices: adds the bookmaker's margin, then rounds down to a price that the bookmaker would quote.
//!
//! Guarantees that the implied chances of every group of outcomes sum to more than its number of winners, and to less
//! than 1.35 times that. Rounding only shortens prices, so it never reduces the margin.

use super::books::Book;
use super::curve::ONE;
use super::fair::Side;
use super::markets::{Bet, SimulatedMarket};
use crate::model::{OddsFormat, Outcome, Point, Price};

/// The weight of an even chance that is mixed into every fair one, in millionths, which keeps all away from 0 and 1: for
/// two or three outcomes, and for more.
const EVEN_WEIGHT_OF_FEW: i64 = 40_000;
const EVEN_WEIGHT_OF_MANY: i64 = 80_000;
/// The least chance of a draw.
const DRAW_MIN: i64 = 10_000;

/// The most margin on an outcome, as a share of its variance, so that no implied chance reaches one.
const LOAD_MAX: i64 = 800_000;

/// A bookmaker's prices for a market. `None` if one of them would be no price.
pub(super) fn price(sides: &[Side], market: &SimulatedMarket, book: &Book) -> Option<Box<[Outcome]>> {
    let (size, winners) = market.settlement(sides.len());
    let margin = book.margin * market.margin_tenths / 10;
    let mut outcomes = Vec::with_capacity(sides.len());
    for group in sides.chunks(size.max(1)) {
        let chances = if market.bet == Bet::Ways { mixed_ways(group) } else { mixed(group, winners) };
        for (side, implied) in group.iter().zip(loaded(chances, winners, margin)?) {
            let point = side.point_milli.and_then(Point::from_milli);
            outcomes.push(Outcome { name: side.name.clone(), price: quote(implied, book.format)?, point });
        }
    }
    (!outcomes.is_empty()).then(|| outcomes.into())
}

/// The chances of a group, moved towards an even one.
fn mixed(group: &[Side], winners: i64) -> Vec<i64> {
    let count = i64::try_from(group.len()).unwrap_or(i64::MAX).max(1);
    let weight = if count <= 3 { EVEN_WEIGHT_OF_FEW } else { EVEN_WEIGHT_OF_MANY };
    let even = ONE * winners / count;
    group.iter().map(|side| (side.chance * (ONE - weight) + even * weight) / ONE).collect()
}

/// The same for two sides and perhaps a draw, which comes last. Both sides move as those of a line do, so that winning and
/// winning by a half point have the same price.
fn mixed_ways(group: &[Side]) -> Vec<i64> {
    let mut chances = mixed(&group[..group.len().min(2)], 1);
    if let Some(draw) = group.get(2) {
        let draw = (draw.chance * (ONE - EVEN_WEIGHT_OF_FEW) / ONE).max(DRAW_MIN);
        let surplus = chances.iter().sum::<i64>() + draw - ONE;
        if let Some(favourite) = chances.iter_mut().max() {
            *favourite -= surplus;
        }
        chances.push(draw);
    }
    chances
}

/// The chances that the prices of one group imply. The margin is distributed in proportion to the variance of each
/// outcome, so that no chance reaches one.
fn loaded(chances: Vec<i64>, winners: i64, margin: i64) -> Option<impl Iterator<Item = i64>> {
    i64::try_from(chances.len()).ok().filter(|count| *count > winners)?;
    let sum_of_variances: i64 = chances.iter().map(|chance| variance(*chance)).sum();
    // The chances may not sum exactly to the winners; the margin makes up the difference.
    let missing = winners * (ONE + margin) - chances.iter().sum::<i64>();
    let load = (missing * ONE / sum_of_variances.max(1)).clamp(0, LOAD_MAX);
    Some(chances.into_iter().map(move |chance| chance + variance(chance) * load / ONE))
}

/// Of an outcome with this chance, in millionths.
const fn variance(chance: i64) -> i64 {
    chance * (ONE - chance) / ONE
}

/// The price that a book would quote for an implied chance: never longer than the exact one.
fn quote(implied: i64, format: OddsFormat) -> Option<Price> {
    if !(1..ONE).contains(&implied) {
        return None;
    }
    match format {
        OddsFormat::American => Price::from_american(american(implied)).ok(),
        OddsFormat::Decimal => Price::from_decimal_milli(u64::try_from(decimal_milli(implied)).ok()?).ok(),
        OddsFormat::Fractional => {
            let (profit, stake) = ladder_step(implied)?;
            Price::from_fraction(u64::from(profit), u64::from(stake), OddsFormat::Fractional).ok()
        }
    }
}

fn american(implied: i64) -> i64 {
    if 2 * implied >= ONE {
        let exact = div_up(100 * implied, ONE - implied);
        let step = step(exact, &[(300, 5), (1_000, 10), (2_000, 50)], 100);
        return -(div_up(exact, step) * step);
    }
    let exact = 100 * (ONE - implied) / implied;
    exact - exact % step(exact, &[(200, 5), (500, 10), (1_000, 25), (2_000, 50), (5_000, 100), (10_000, 500)], 1_000)
}

fn decimal_milli(implied: i64) -> i64 {
    let exact = ONE * 1000 / implied;
    exact - exact % step(exact, &[(5_000, 10), (10_000, 100), (20_000, 500), (100_000, 1_000)], 5_000)
}

/// The longest step of the traditional ladder that is not longer than the exact price.
fn ladder_step(implied: i64) -> Option<(u32, u32)> {
    let fits = |(profit, stake): &(u32, u32)| i64::from(*profit) * implied <= (ONE - implied) * i64::from(*stake);
    let ladder = Price::ladder();
    ladder.partition_point(fits).checked_sub(1).map(|at| ladder[at])
}

/// The rounding step at a size: that of the first row whose bound is above it.
fn step(size: i64, rows: &[(i64, i64)], beyond: i64) -> i64 {
    rows.iter().find(|(below, _)| size < *below).map_or(beyond, |(_, step)| *step)
}

/// Rounded up, for two numbers above zero.
const fn div_up(number: i64, divisor: i64) -> i64 {
    (number + divisor - 1) / divisor
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_never_lengthens_a_price() {
        for implied in (1_200..989_000).step_by(37) {
            for format in OddsFormat::ALL {
                let price = quote(implied, format).unwrap();
                let (profit, stake) = price.fraction();
                let exact = i64::from(profit) * implied <= i64::from(stake) * (ONE - implied);
                assert!(exact, "{implied}: {price:?}");
            }
        }
    }

    #[test]
    fn quotes_are_rounded_as_books_do() {
        assert_eq!(
            [american(523_800), american(540_000), american(333_333), american(12_000)],
            [-110, -120, 200, 8_000]
        );
        assert_eq!([decimal_milli(523_560), decimal_milli(140_000), decimal_milli(12_000)], [1_910, 7_100, 83_000]);
        assert_eq!([ladder_step(523_000), ladder_step(19_000)], [Some((10, 11)), Some((50, 1))]);
    }
}
