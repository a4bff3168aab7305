//! Edges: prices above what is fair, and best prices that together leave a profit.

use super::best::{Offer, best};
use super::bet::{Bet, BetSide};
use super::fair::FairRow;
use crate::board::coverage::BookSet;
use crate::model::derived::{Arbitrage, Millionths, expected_value};
use crate::model::{BookId, Price, Timestamp};

/// One bet to place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Leg<'a> {
    pub side: BetSide<'a>,
    pub offer: Offer,
    pub stake: Millionths,
}

#[derive(Debug)]
pub(crate) struct EdgeRow<'a> {
    /// The expected or certain profit per unit staked.
    pub edge: Millionths,
    pub legs: Vec<Leg<'a>>,
    /// Of the only leg's outcome, by the reference.
    pub probability: Option<f64>,
    /// All bookmakers whose prices the edge follows from.
    pub books: Vec<BookId>,
    /// When the oldest of these prices was updated.
    pub oldest: Timestamp,
}

/// A price above what is fair: its place in the bet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ValueAt {
    pub at: usize,
    pub column: usize,
    pub edge: Millionths,
}

/// The prices of some bookmakers that are worth at least `min` by fair probabilities.
pub(crate) fn values(
    bet: &Bet<'_>,
    fair: &FairRow,
    books: Option<&BookSet>,
    min: Millionths,
    mut visit: impl FnMut(ValueAt),
) {
    for at in bet.places(books) {
        for (column, (price, probability)) in bet.row(at).iter().zip(&fair.probabilities).enumerate() {
            let Some(price) = price else { continue };
            let edge = Millionths::of(expected_value(*price, *probability));
            if edge >= min {
                visit(ValueAt { at, column, edge });
            }
        }
    }
}

/// The row of a price above what is fair.
pub(crate) fn value_row<'a>(
    bet: &Bet<'a>,
    fair: &FairRow,
    ValueAt { at, column, edge }: ValueAt,
) -> Option<EdgeRow<'a>> {
    let price = bet.row(at).get(column).copied().flatten()?;
    let leg = Leg { side: bet.sides[column], offer: Offer { price, at }, stake: Millionths::ONE };
    let own = bet.books[at];
    let mut books = fair.books.clone();
    if !books.contains(&own.book) {
        books.push(own.book);
    }
    Some(EdgeRow {
        edge,
        legs: vec![leg],
        probability: fair.probabilities.get(column).copied(),
        books,
        oldest: fair.oldest.min(own.updated),
    })
}

/// The best prices of a bet, if they return at least `min` more than what is staked.
pub(crate) fn arbitrage<'a>(bet: &Bet<'a>, books: Option<&BookSet>, min: Millionths) -> Option<EdgeRow<'a>> {
    let row = best(bet, books)?;
    row.margin?;
    let prices: Vec<Price> = row.outcomes.iter().map(|outcome| outcome.best.price).collect();
    let Arbitrage { edge, stakes } = Arbitrage::new(&prices, bet.winners).filter(|found| found.edge >= min)?;
    let legs = row.outcomes.iter().zip(stakes);
    let legs = legs.map(|(outcome, stake)| Leg { side: outcome.side, offer: outcome.best, stake }).collect();
    let mut books: Vec<BookId> = Vec::with_capacity(row.outcomes.len());
    for outcome in &row.outcomes {
        let book = bet.books[outcome.best.at].book;
        if !books.contains(&book) {
            books.push(book);
        }
    }
    Some(EdgeRow { edge, legs, probability: None, books, oldest: row.oldest })
}
