//! What a price is worth: against a fair probability, or together with the best prices of the other outcomes.

use super::millionths::Millionths;
use crate::model::Price;

/// The expected profit per unit staked at a price, if this is the outcome's probability.
pub fn expected_value(price: Price, probability: f64) -> f64 {
    let (profit, stake) = price.fraction();
    probability * (f64::from(profit) + f64::from(stake)) / f64::from(stake) - 1.0
}

/// Stakes on all outcomes of a bet that return the same, whichever win.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arbitrage {
    /// The profit per unit staked; negative where there is a margin.
    pub edge: Millionths,
    /// The share of each outcome. They sum to 1 exactly.
    pub stakes: Vec<Millionths>,
}

impl Arbitrage {
    /// For the best price of each outcome, `winners` of which win.
    pub fn new(prices: &[Price], winners: usize) -> Option<Self> {
        let implied: Vec<f64> = prices.iter().map(|price| price.chance()).collect();
        let book = super::WholeBook::new(&implied, winners)?;
        let edge = Millionths::of(book.winners() / book.sum() - 1.0);
        let exact: Vec<f64> = implied.iter().map(|probability| probability / book.sum()).collect();
        let mut stakes: Vec<Millionths> = exact.iter().map(|stake| Millionths::of(*stake)).collect();
        // What rounding added or took falls to the largest stake, where it weighs least.
        let rest = Millionths::ONE.count() - stakes.iter().map(|stake| stake.count()).sum::<i64>();
        let largest = stakes.iter_mut().max()?;
        *largest = Millionths::from_count(largest.count() + rest);
        Some(Arbitrage { edge, stakes })
    }
}
