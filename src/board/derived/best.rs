//! The best price of each outcome of a bet, and what margin is left if all of them are taken together.

use std::cmp::Ordering;

use super::bet::{Bet, BetSide};
use crate::board::coverage::BookSet;
use crate::model::derived::{Margin, WholeBook};
use crate::model::{BookId, Price, Timestamp};

/// A price and who has it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer {
    pub price: Price,
    /// The place in the bet's bookmakers.
    pub at: usize,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct BestOutcome<'a> {
    pub side: BetSide<'a>,
    pub best: Offer,
    /// The best price of any other bookmaker.
    pub next: Option<Offer>,
}

#[derive(Debug)]
pub(crate) struct BestRow<'a> {
    /// Those that anybody prices.
    pub outcomes: Vec<BestOutcome<'a>>,
    /// Of the best prices together; `None` unless they are all outcomes of the bet.
    pub margin: Option<Margin>,
    /// Those whose prices were compared.
    pub books: Vec<BookId>,
    /// When the oldest of the best prices was updated.
    pub oldest: Timestamp,
}

/// The best prices of a bet among some bookmakers; `None` if they have none.
pub(crate) fn best<'a>(bet: &Bet<'a>, books: Option<&BookSet>) -> Option<BestRow<'a>> {
    let mut outcomes: Vec<BestOutcome<'a>> = Vec::with_capacity(bet.sides.len());
    for (column, side) in bet.sides.iter().enumerate() {
        let mut found: [Option<Offer>; 2] = [None, None];
        for at in bet.places(books) {
            let Some(price) = bet.row(at)[column] else { continue };
            let offer = Offer { price, at };
            match found {
                [Some(best), next] if compare(price, best.price).is_le() => {
                    let is_next = next.is_none_or(|next| compare(price, next.price).is_gt());
                    found = [Some(best), if is_next { Some(offer) } else { next }];
                }
                [best, _] => found = [Some(offer), best],
            }
        }
        if let [Some(best), next] = found {
            outcomes.push(BestOutcome { side: *side, best, next });
        }
    }
    let oldest = outcomes.iter().map(|outcome| bet.books[outcome.best.at].updated).min()?;
    let implied: Vec<f64> = outcomes.iter().map(|outcome| outcome.best.price.chance()).collect();
    let is_whole = implied.len() == bet.sides.len() && bet.has_all_sides();
    let margin = WholeBook::new(&implied, bet.winners).filter(|_| is_whole).map(|book| book.margin());
    let books = bet.places(books).map(|at| bet.books[at].book).collect();
    Some(BestRow { outcomes, margin, books, oldest })
}

/// By their exact profit.
pub(super) fn compare(one: Price, other: Price) -> Ordering {
    let ((profit, stake), (other_profit, other_stake)) = (one.fraction(), other.fraction());
    (u64::from(profit) * u64::from(other_stake)).cmp(&(u64::from(other_profit) * u64::from(stake)))
}
