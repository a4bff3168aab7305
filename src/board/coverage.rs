//! Which bookmaker prices which market: one bit each, for an event, a run of events or a whole sport.
//!
//! A query tests the coverage of a group before it looks at its events, and so skips what cannot match.

use crate::model::{BookId, Market};

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

/// For each market, the bookmakers that price it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Coverage {
    /// Words of a market's row; rows follow each other in the order of the markets.
    width: usize,
    rows: Box<[u64]>,
}

impl Coverage {
    pub(crate) fn of(pairs: impl Iterator<Item = (BookId, Market)> + Clone) -> Self {
        let books = pairs.clone().map(|(book, _)| book.index() + 1).max().unwrap_or(0);
        let mut coverage = Coverage::with_width(books.div_ceil(WORD_BITS));
        for (book, market) in pairs {
            let word = market.index() * coverage.width + book.index() / WORD_BITS;
            coverage.rows[word] |= 1 << (book.index() % WORD_BITS);
        }
        coverage
    }

    pub(crate) fn union<'a>(parts: impl Iterator<Item = &'a Coverage> + Clone) -> Self {
        let mut union = Coverage::with_width(parts.clone().map(|part| part.width).max().unwrap_or(0));
        let width = union.width;
        for part in parts.filter(|part| part.width > 0) {
            for (row, own) in part.rows.chunks_exact(part.width).zip(union.rows.chunks_exact_mut(width)) {
                for (word, own) in row.iter().zip(own) {
                    *own |= word;
                }
            }
        }
        union
    }

    fn with_width(width: usize) -> Self {
        Coverage { width, rows: vec![0; width * Market::COUNT].into() }
    }

    fn row(&self, market: Market) -> &[u64] {
        &self.rows[market.index() * self.width..][..self.width]
    }

    /// Whether any of the bookmakers (all if `None`) prices the market (any if `None`).
    pub(crate) fn meets(&self, market: Option<Market>, books: Option<&BookSet>) -> bool {
        let meets = |market| match books {
            None => self.row(market).iter().any(|word| *word != 0),
            Some(books) => self.row(market).iter().zip(&books.0).any(|(word, book)| word & book != 0),
        };
        match market {
            Some(market) => meets(market),
            None => Market::ALL.into_iter().any(meets),
        }
    }

    /// The markets that have a price, in the order in which the API lists them.
    pub(crate) fn markets(&self) -> impl Iterator<Item = Market> {
        Market::ALL.into_iter().filter(|market| self.meets(Some(*market), None))
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
        let pairs = [(book(3), Market::Spread), (book(130), Market::Moneyline)];
        let coverage = Coverage::of(pairs.into_iter());
        let late = BookSet::from_iter([book(130)]);
        assert!(coverage.meets(Some(Market::Moneyline), Some(&late)));
        assert!(!coverage.meets(Some(Market::Spread), Some(&late)));
        assert!(coverage.meets(Some(Market::Spread), None));
        assert!(!coverage.meets(Some(Market::Top5), None));
        assert_eq!(coverage.book_count(), 2);
        assert!(coverage.has_book(book(130)) && !coverage.has_book(book(131)) && !coverage.has_book(book(4000)));
        assert_eq!(coverage.markets().collect::<Vec<_>>(), [Market::Moneyline, Market::Spread]);
    }

    #[test]
    fn a_union_covers_parts_of_any_width() {
        let narrow = Coverage::of([(book(1), Market::Spread)].into_iter());
        let wide = Coverage::of([(book(100), Market::Spread)].into_iter());
        let union = Coverage::union([&narrow, &wide, &Coverage::default()].into_iter());
        assert_eq!(union.book_count(), 2);
        assert!(union.meets(Some(Market::Spread), Some(&BookSet::from_iter([book(1)]))));
    }
}
