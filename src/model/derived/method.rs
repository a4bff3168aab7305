//! Fair probabilities: implied ones with the margin taken out, by four published methods.
//!
//! Where `k` outcomes win, probabilities sum to `k`. The power method solves for that sum itself; Shin's model knows one
//! winner, so it is applied to the probabilities divided by `k`, and its result is multiplied by `k`.

use std::fmt;

use super::book::WholeBook;

/// How the margin is taken out of prices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FairMethod {
    /// Each implied probability raised to the same power.
    #[default]
    Power,
    /// Shin's model of insider trading.
    Shin,
    /// Each divided by the same number.
    Multiplicative,
    /// The same subtracted from each.
    Additive,
}

/// Newton's method gains digits with each step: more steps than this are never needed for a float.
const NEWTON_STEPS_MAX: usize = 60;
/// Half the interval each time, so that this reaches the precision of a float.
const BISECTIONS: usize = 54;

impl FairMethod {
    pub const ALL: [FairMethod; 4] =
        [FairMethod::Power, FairMethod::Shin, FairMethod::Multiplicative, FairMethod::Additive];

    pub const fn key(self) -> &'static str {
        match self {
            FairMethod::Power => "power",
            FairMethod::Shin => "shin",
            FairMethod::Multiplicative => "multiplicative",
            FairMethod::Additive => "additive",
        }
    }

    pub fn parse(text: &str) -> Option<FairMethod> {
        FairMethod::ALL.into_iter().find(|method| method.key() == text)
    }

    /// Appends the fair probabilities of a book and returns the method that found them: the multiplicative one where this
    /// one has no solution. Nothing is appended if that has none either.
    pub fn append_fair(self, book: &WholeBook<'_>, out: &mut Vec<f64>) -> Option<FairMethod> {
        let start = out.len();
        for method in [self, FairMethod::Multiplicative] {
            method.append(book, out);
            let found = &out[start..];
            if found.len() == book.implied().len() && found.iter().all(|fair| *fair > 0.0 && *fair < 1.0) {
                return Some(method);
            }
            out.truncate(start);
        }
        None
    }

    /// Appends what the method's formula gives, or nothing where it does not apply.
    fn append(self, book: &WholeBook<'_>, out: &mut Vec<f64>) {
        let (implied, has_margin) = (book.implied(), book.margin().is_positive());
        match self {
            FairMethod::Multiplicative => {
                let factor = book.winners() / book.sum();
                out.extend(implied.iter().map(|probability| probability * factor));
            }
            FairMethod::Additive => {
                let share = (book.sum() - book.winners()) / count(implied);
                out.extend(implied.iter().map(|probability| probability - share));
            }
            FairMethod::Power if has_margin => {
                let power = power(book);
                out.extend(implied.iter().map(|probability| probability.powf(power)));
            }
            FairMethod::Shin if has_margin => {
                let shin = Shin::new(book);
                let insiders = shin.insiders();
                out.extend(implied.iter().map(|probability| shin.fair(*probability, insiders)));
            }
            FairMethod::Power | FairMethod::Shin => {}
        }
    }
}

impl fmt::Display for FairMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.key())
    }
}

fn count(implied: &[f64]) -> f64 {
    u32::try_from(implied.len()).unwrap_or(u32::MAX).into()
}

/// The power that makes the probabilities of a book with a margin sum to the number of winners. The logarithm of their sum
/// is convex and falls with the power, so Newton's steps from 1 approach the solution from one side.
pub(super) fn power(book: &WholeBook<'_>) -> f64 {
    let target = book.winners().ln();
    let mut power = 1.0;
    for _ in 0..NEWTON_STEPS_MAX {
        let (mut sum, mut slope) = (0.0, 0.0);
        for probability in book.implied() {
            let logarithm = probability.ln();
            let raised = (power * logarithm).exp();
            sum += raised;
            slope += raised * logarithm;
        }
        let step = (sum.ln() - target) * sum / slope;
        power -= step;
        if step.abs() <= power * 1e-15 {
            break;
        }
    }
    power
}

/// Shin's model of a book: a share of all bets is placed by insiders, who know the winner.
pub(super) struct Shin<'b> {
    book: &'b WholeBook<'b>,
    /// The sum of the implied probabilities as of one winner.
    sum: f64,
}

impl<'b> Shin<'b> {
    pub(super) fn new(book: &'b WholeBook<'b>) -> Self {
        Shin { book, sum: book.sum() / book.winners() }
    }

    /// The fair probability if this share of bets is placed by insiders. The usual form of it, with the difference of two nearly
    /// equal numbers over a small one, loses digits; this one does not.
    fn fair(&self, probability: f64, insiders: f64) -> f64 {
        let single = probability / self.book.winners();
        let squared = single * single / self.sum;
        let root = (insiders * insiders + 4.0 * (1.0 - insiders) * squared).sqrt();
        self.book.winners() * 2.0 * squared / (root + insiders)
    }

    /// The share for which the probabilities sum to the number of winners: their sum falls as it grows. By bisection, as the
    /// usual iteration to a fixed point does not converge for every book.
    pub(super) fn insiders(&self) -> f64 {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..BISECTIONS {
            let middle = f64::midpoint(low, high);
            let sum: f64 = self.book.implied().iter().map(|probability| self.fair(*probability, middle)).sum();
            if sum > self.book.winners() {
                low = middle;
            } else {
                high = middle;
            }
        }
        f64::midpoint(low, high)
    }
}
