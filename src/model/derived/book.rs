//! All outcomes of one bet at their prices, and the margin that is in them.

/// The implied probabilities of all outcomes of a bet, `winners` of which win.
///
/// Invariant: each is above 0 and below 1, and at least one outcome loses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WholeBook<'p> {
    implied: &'p [f64],
    winners: f64,
    sum: f64,
}

impl<'p> WholeBook<'p> {
    pub fn new(implied: &'p [f64], winners: usize) -> Option<Self> {
        let are_probabilities = implied.iter().all(|probability| *probability > 0.0 && *probability < 1.0);
        let winners_count = u32::try_from(winners).ok().filter(|winners| *winners > 0)?;
        let book = WholeBook { implied, winners: winners_count.into(), sum: implied.iter().sum() };
        (are_probabilities && implied.len() > winners).then_some(book)
    }

    pub fn implied(&self) -> &'p [f64] {
        self.implied
    }

    /// What the probabilities of a fair book sum to.
    pub fn winners(&self) -> f64 {
        self.winners
    }

    pub fn sum(&self) -> f64 {
        self.sum
    }

    pub fn margin(&self) -> Margin {
        Margin { ratio: self.sum / self.winners }
    }
}

/// How the implied probabilities of a book relate to a fair one.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Margin {
    /// Their sum for each winner: 1 in a fair book.
    ratio: f64,
}

impl Margin {
    /// By how much the implied probabilities exceed a fair book.
    pub fn overround(self) -> f64 {
        self.ratio - 1.0
    }

    /// The share of all stakes that a bookmaker with balanced stakes holds.
    pub fn hold(self) -> f64 {
        1.0 - 1.0 / self.ratio
    }

    /// Whether there is a margin at all.
    pub fn is_positive(self) -> bool {
        self.ratio > 1.0
    }
}
