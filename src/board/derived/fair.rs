//! Fair probabilities of a bet: of one bookmaker, or of all that price every outcome of it.

use super::bet::Bet;
use super::pairing::BetTraits;
use super::query::{FairFrom, FairQuery};
use crate::board::coverage::BookSet;
use crate::model::derived::{Consensus, FairMethod, Margin, WholeBook};
use crate::model::market::{MarketShape, groups};
use crate::model::{BookId, Market, MarketFamilies, Outcome, Timestamp};

/// The fair probabilities of the outcomes of a bet.
#[derive(Debug, Default)]
pub(crate) struct FairRow {
    pub probabilities: Vec<f64>,
    /// Those whose prices they follow from.
    pub books: Vec<BookId>,
    /// Those for which the multiplicative method answered, as the requested one had no solution.
    pub fallback: Vec<BookId>,
    /// Of the bookmaker, if there is only one.
    pub margin: Option<Margin>,
    /// When the oldest of these prices was updated.
    pub oldest: Timestamp,
}

/// Computes fair probabilities. What it allocates is used again for the next bet.
#[derive(Debug, Default)]
pub(crate) struct FairPrices {
    row: FairRow,
    implied: Vec<f64>,
    /// The probabilities of one bookmaker after the other.
    by_book: Vec<f64>,
    consensus: Consensus,
}

impl FairPrices {
    /// `None` where nothing follows: fewer than three bookmakers for a consensus, or a bet that is not priced as a whole.
    /// `books` are those that a consensus may be of.
    pub(crate) fn of(&mut self, bet: &Bet<'_>, query: FairQuery, books: Option<&BookSet>) -> Option<&FairRow> {
        let FairPrices { row, implied, by_book, consensus } = self;
        row.clear();
        by_book.clear();
        for at in bet.places(books) {
            let book = bet.books[at];
            let is_asked = match query.from {
                FairFrom::Consensus => true,
                FairFrom::Bookmaker(asked) => asked == book.book,
            };
            if !is_asked || !bet.whole_book(at, implied) {
                continue;
            }
            let Some(whole) = WholeBook::new(implied, bet.winners) else { continue };
            let Some(method) = query.method.append_fair(&whole, by_book) else { continue };
            if method != query.method {
                row.fallback.push(book.book);
            }
            row.margin = Some(whole.margin());
            row.oldest = if row.books.is_empty() { book.updated } else { row.oldest.min(book.updated) };
            row.books.push(book.book);
        }
        match query.from {
            FairFrom::Bookmaker(_) => row.probabilities.extend_from_slice(by_book),
            FairFrom::Consensus => {
                row.margin = None;
                let winners = u32::try_from(bet.winners).unwrap_or(u32::MAX).into();
                consensus.append(by_book, bet.sides.len(), winners, &mut row.probabilities);
            }
        }
        (!row.probabilities.is_empty()).then_some(row)
    }

    /// The last row, to be kept.
    pub(crate) fn take(&mut self) -> FairRow {
        std::mem::take(&mut self.row)
    }
}

impl FairRow {
    fn clear(&mut self) {
        self.probabilities.clear();
        self.books.clear();
        self.fallback.clear();
        self.margin = None;
    }
}

/// The fair probabilities of one bet of a record.
#[derive(Debug)]
pub(crate) struct RecordFair<'a> {
    pub outcomes: Vec<&'a Outcome>,
    pub probabilities: Vec<f64>,
    /// The one that answered.
    pub method: FairMethod,
    pub margin: Margin,
}

/// The fair probabilities of a record on its own, bet by bet; `None` for a market that takes no part. What other bookmakers
/// list is not known here, so named ways and fields must have a margin to count as whole.
pub(crate) fn record_fair<'a>(
    families: &MarketFamilies,
    market: Market,
    outcomes: &'a [Outcome],
    method: FairMethod,
) -> Option<Vec<RecordFair<'a>>> {
    let BetTraits { traits, ways } = BetTraits::of(families, market)?;
    let fair = |group: Vec<usize>| {
        let outcomes: Vec<&Outcome> = group.iter().filter_map(|at| outcomes.get(*at)).collect();
        let implied: Vec<f64> = outcomes.iter().map(|outcome| outcome.price.chance()).collect();
        let whole = WholeBook::new(&implied, traits.settlement.winners)?;
        let is_whole = match (traits.settlement.group, traits.shape) {
            (Some(size), _) => outcomes.len() == size,
            (None, MarketShape::OverUnder | MarketShape::YesNo | MarketShape::Spread) => outcomes.len() == 2,
            (None, MarketShape::Ways) if ways.is_some() => ways == u32::try_from(outcomes.len()).ok(),
            (None, MarketShape::Ways | MarketShape::Field) => whole.margin().is_positive(),
            (None, MarketShape::OverOnly) => false,
        };
        let mut probabilities = Vec::with_capacity(implied.len());
        let answered = method.append_fair(&whole, &mut probabilities).filter(|_| is_whole)?;
        Some(RecordFair { outcomes, probabilities, method: answered, margin: whole.margin() })
    };
    Some(groups(traits, outcomes).into_iter().filter_map(fair).collect())
}
