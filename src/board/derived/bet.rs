//! One bet: the outcomes of a market that settle together, with every bookmaker's prices for them.

use crate::board::coverage::BookSet;
use crate::model::{BookId, Market, OutcomeName, Point, Price, Timestamp};

/// Whether the outcomes of a bet are all there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sides {
    /// They are, by the shape of the market.
    All,
    /// A field: as many as any bookmaker lists, and perhaps there are more.
    Field,
    /// They are not: prices can be compared, but there is no margin.
    Some,
}

/// One outcome of a bet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BetSide<'a> {
    pub name: &'a OutcomeName,
    pub point: Option<Point>,
}

/// A bookmaker that prices some outcome of a bet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BetBook {
    pub book: BookId,
    pub updated: Timestamp,
}

/// What identifies a bet within its event and market.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BetKey<'a> {
    /// Of the first outcome, where outcomes have points.
    pub point: Option<Point>,
    pub description: Option<&'a str>,
    /// The first name, and a hash of all names, where a market has many bets without points.
    pub name: &'a str,
    pub hash: u64,
}

#[derive(Debug)]
pub(crate) struct Bet<'a> {
    pub market: Market,
    pub key: BetKey<'a>,
    pub winners: usize,
    pub kind: Sides,
    pub sides: Vec<BetSide<'a>>,
    /// In the order of the bookmakers' keys.
    pub books: Vec<BetBook>,
    /// A row for each bookmaker, a column for each side.
    pub prices: Vec<Option<Price>>,
}

impl Bet<'_> {
    /// The prices of a bookmaker, by its place in `books`.
    pub(crate) fn row(&self, at: usize) -> &[Option<Price>] {
        &self.prices[at * self.sides.len()..][..self.sides.len()]
    }

    /// Replaces `implied` by the implied probabilities of a bookmaker, if it prices every outcome of the bet. A list of a field
    /// that sums to less than the number of winners is not the whole field.
    pub(crate) fn whole_book(&self, at: usize, implied: &mut Vec<f64>) -> bool {
        implied.clear();
        implied.extend(self.row(at).iter().flatten().map(|price| price.chance()));
        if implied.len() != self.sides.len() || implied.len() <= self.winners {
            return false;
        }
        match self.kind {
            Sides::All => true,
            Sides::Some => false,
            Sides::Field => {
                let sum: f64 = implied.iter().sum();
                sum >= u32::try_from(self.winners).unwrap_or(u32::MAX).into()
            }
        }
    }

    /// Whether its outcomes are all there are. Of a field, that is what a bookmaker that prices all of them says.
    pub(crate) fn has_all_sides(&self) -> bool {
        match self.kind {
            Sides::All => true,
            Sides::Some => false,
            Sides::Field => {
                let mut implied = Vec::new();
                (0..self.books.len()).any(|at| self.whole_book(at, &mut implied))
            }
        }
    }

    /// The places of the bookmakers in a set; `None` stands for all.
    pub(crate) fn places<'b>(&'b self, books: Option<&'b BookSet>) -> impl Iterator<Item = usize> + 'b {
        let is_in = move |at: &usize| books.is_none_or(|books| books.contains(self.books[*at].book));
        (0..self.books.len()).filter(is_in)
    }
}
