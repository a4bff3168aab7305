//! Which bookmaker prices which market: one bit each, for an event, a run of events or a whole sport.
//!
//! A query tests the coverage of a group before it looks at its events, and so skips what cannot match.

use crate::model::{BookId, Market, MarketFilter};

const WORD_BITS: usize = 64;

/// A set of bookmakers of one world.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BookSet(Vec<u64>);

impl BookSet {
    pub(crate) fn insert(&mut self, book: BookId) {
        let word = book.index() / WORD_BITS;
        if self.0.len() <= word {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (book.index() % WORD_BITS);
    }

    pub(crate) fn contains(&self, book: BookId) -> bool {
        self.0.get(book.index() / WORD_BITS).is_some_and(|word| word & (1 << (book.index() % WORD_BITS)) != 0)
    }
}

impl FromIterator<BookId> for BookSet {
    fn from_iter<I: IntoIterator<Item = BookId>>(books: I) -> Self {
        let mut set = BookSet::default();
        for book in books {
            set.insert(book);
        }
        set
    }
}

/// For each market that has a price, the bookmakers that price it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage {
    /// In order, so that the featured markets come first.
    markets: Box<[Market]>,
    /// Words of a market's row; rows follow each other in the order of the markets.
    width: usize,
    rows: Box<[u64]>,
}

impl Coverage {
    pub(crate) fn of(pairs: impl Iterator<Item = (BookId, Market)> + Clone) -> Self {
        let books = pairs.clone().map(|(book, _)| book.index() + 1).max().unwrap_or(0);
        let mut coverage = Coverage::empty(pairs.clone().map(|(_, market)| market), books.div_ceil(WORD_BITS));
        for (book, market) in pairs {
            let Ok(row) = coverage.markets.binary_search(&market) else { continue };
            coverage.rows[row * coverage.width + book.index() / WORD_BITS] |= 1 << (book.index() % WORD_BITS);
        }
        coverage
    }

    pub(crate) fn union<'a>(parts: impl Iterator<Item = &'a Coverage> + Clone) -> Self {
        let width = parts.clone().map(|part| part.width).max().unwrap_or(0);
        let mut union = Coverage::empty(parts.clone().flat_map(|part| part.markets.iter().copied()), width);
        for part in parts {
            // Both lists are in order, so each search begins where the last one ended.
            let mut from = 0;
            for (market, row) in part.rows() {
                from += union.markets[from..].partition_point(|other| *other < market);
                for (word, own) in row.iter().zip(&mut union.rows[from * width..]) {
                    *own |= word;
                }
            }
        }
        union
    }

    fn empty(markets: impl Iterator<Item = Market>, width: usize) -> Self {
        let mut markets: Vec<Market> = markets.collect();
        markets.sort_unstable();
        markets.dedup();
        Coverage { rows: vec![0; width * markets.len()].into(), markets: markets.into(), width }
    }

    fn rows(&self) -> impl Iterator<Item = (Market, &[u64])> {
        self.markets.iter().copied().zip(self.rows.chunks_exact(self.width.max(1)))
    }

    /// Whether any of the bookmakers (all if `None`) prices one of the markets.
    pub(crate) fn meets(&self, markets: &MarketFilter, books: Option<&BookSet>) -> bool {
        let meets = |row: &[u64]| match books {
            None => true,
            Some(books) => row.iter().zip(&books.0).any(|(word, book)| word & book != 0),
        };
        match markets {
            MarketFilter::Only(only) => only.iter().any(|market| {
                let found = self.markets.binary_search(market);
                found.is_ok_and(|at| meets(&self.rows[at * self.width..][..self.width]))
            }),
            // The featured ones come first.
            MarketFilter::Featured => {
                self.rows().take_while(|(market, _)| market.is_featured()).any(|(_, row)| meets(row))
            }
            MarketFilter::All => self.rows().any(|(market, row)| !market.is_lay() && meets(row)),
        }
    }

    /// The markets that have a price, in order.
    pub(crate) fn markets(&self) -> &[Market] {
        &self.markets
    }

    /// How many bookmakers price anything.
    pub(crate) fn book_count(&self) -> usize {
        let any_market = |at: usize| self.rows.iter().skip(at).step_by(self.width).fold(0, |all, word| all | word);
        (0..self.width).map(|at| any_market(at).count_ones() as usize).sum()
    }

    /// Whether the bookmaker prices anything.
    pub(crate) fn has_book(&self, book: BookId) -> bool {
        let (word, bit) = (book.index() / WORD_BITS, book.index() % WORD_BITS);
        word < self.width && self.rows.iter().skip(word).step_by(self.width).any(|row| row & (1 << bit) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn book(number: u16) -> BookId {
        BookId::from_number(number)
    }

    #[test]
    fn matches_by_market_and_book_across_words() {
        let pairs = [(book(3), Market::SPREAD), (book(130), Market::MONEYLINE)];
        let coverage = Coverage::of(pairs.into_iter());
        let late = BookSet::from_iter([book(130)]);
        assert!(coverage.meets(&Market::MONEYLINE.into(), Some(&late)));
        assert!(!coverage.meets(&Market::SPREAD.into(), Some(&late)));
        assert!(coverage.meets(&Market::SPREAD.into(), None));
        assert!(!coverage.meets(&Market::TOP5.into(), None));
        assert!(coverage.meets(&MarketFilter::Featured, Some(&late)) && coverage.meets(&MarketFilter::All, None));
        assert_eq!(coverage.book_count(), 2);
        assert!(coverage.has_book(book(130)) && !coverage.has_book(book(131)) && !coverage.has_book(book(4000)));
        assert_eq!(coverage.markets(), [Market::MONEYLINE, Market::SPREAD]);
    }

    #[test]
    fn a_union_covers_parts_of_any_width() {
        let narrow = Coverage::of([(book(1), Market::SPREAD)].into_iter());
        let wide = Coverage::of([(book(100), Market::SPREAD)].into_iter());
        let union = Coverage::union([&narrow, &wide, &Coverage::default()].into_iter());
        assert_eq!(union.book_count(), 2);
        assert!(union.meets(&Market::SPREAD.into(), Some(&BookSet::from_iter([book(1)]))));
    }
}
