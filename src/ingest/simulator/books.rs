//! The bookmakers of the simulated world: a few of each region from the catalogue, each with its own margin, delay, way
//! of quoting and gaps in what it covers. One of them is slow: for five minutes of every hour nothing is heard of it.

use std::sync::Arc;

use super::noise::Dice;
use super::schedule::Discipline;
use crate::model::{Bookmaker, Market, OddsFormat, Region};

/// As many of each region as make a full board; a catalogue may hold far more.
const PER_REGION: usize = 7;

const HOUR: i64 = 3_600;
const SILENCE: i64 = 300;

#[derive(Debug)]
pub(super) struct Book {
    pub key: Arc<str>,
    pub dice: Dice,
    pub format: OddsFormat,
    /// What it keeps of each stake, in millionths.
    pub margin: i64,
    /// By how many seconds its prices trail the truth.
    pub lag: i64,
    number: i64,
    /// By market.
    offered: [bool; Market::COUNT],
    /// When in the hour its silence begins; `None` for all but the slow one.
    silent_from: Option<i64>,
}

/// The world's bookmakers, in the order of the catalogue. One that is offered in two regions counts for the first of
/// them that still has room.
pub(super) fn choose(catalogue: &[Bookmaker], dice: Dice) -> Vec<Book> {
    let mut room = Region::ALL.map(|region| (region, PER_REGION));
    let mut books = Vec::new();
    for bookmaker in catalogue {
        let free = room.iter_mut().find(|(region, left)| *left > 0 && bookmaker.regions.contains(*region));
        if let Some((_, left)) = free {
            *left -= 1;
            books.push(Book::new(bookmaker, i64::try_from(books.len()).unwrap_or(0), dice));
        }
    }
    let slow = dice.of("slow").pick(books.len());
    if let Some(book) = books.get_mut(slow) {
        book.silent_from = Some(dice.of("silence").below(HOUR));
    }
    books
}

impl Book {
    fn new(bookmaker: &Bookmaker, number: i64, dice: Dice) -> Self {
        // By its key, so that a book keeps its character when the catalogue around it changes.
        let dice = dice.of("book").of(&bookmaker.key);
        let format = format(bookmaker, dice);
        // The steps between traditional fractions add to the margin, so those books ask for less of their own.
        let margin_max = if format == OddsFormat::Fractional { 50_000 } else { 80_000 };
        Book {
            key: Arc::from(&*bookmaker.key),
            dice,
            format,
            margin: dice.of("margin").within(20_000, margin_max),
            lag: dice.of("lag").within(1, 40),
            number,
            offered: Market::ALL.map(|market| offered(market, dice)),
            silent_from: None,
        }
    }

    /// Each book leaves out one sport or none; neighbours leave out different ones, so no region loses a sport.
    pub(super) fn covers(&self, discipline: Discipline) -> bool {
        self.number % 6 != discipline.number()
    }

    pub(super) const fn offers(&self, market: Market) -> bool {
        self.offered[market.index()]
    }

    /// The latest moment whose news has come from this book by `at`.
    pub(super) fn heard(&self, at: i64) -> i64 {
        match self.silent_from {
            None => at,
            Some(from) => {
                let silent_for = (at - from).rem_euclid(HOUR);
                if silent_for < SILENCE { at - silent_for } else { at }
            }
        }
    }

    /// The first moment at which news of `at` has come from this book.
    pub(super) fn heard_from(&self, at: i64) -> i64 {
        match self.silent_from.map(|from| (at - from).rem_euclid(HOUR)) {
            Some(silent_for @ 1..SILENCE) => at - silent_for + SILENCE,
            _ => at,
        }
    }

    pub(super) fn latency_ms(&self, discipline: Discipline, at: i64) -> u32 {
        let usual = self.dice.of("latency").within(40, 260);
        let now = usual + self.dice.of("latency").nth(discipline.number()).wave(at, 90) * usual / 2_500;
        u32::try_from(now).unwrap_or(0)
    }
}

/// Everyone prices winners; of the other markets, each book leaves out some.
fn offered(market: Market, dice: Dice) -> bool {
    let always = matches!(market, Market::Moneyline | Market::Outright);
    always || !dice.of("offers").of(market.key()).one_in(9)
}

/// As books quote where they are at home.
fn format(bookmaker: &Bookmaker, dice: Dice) -> OddsFormat {
    if bookmaker.regions.contains(Region::Us) {
        OddsFormat::American
    } else if bookmaker.regions.contains(Region::Uk) && !dice.of("format").one_in(3) {
        OddsFormat::Fractional
    } else {
        OddsFormat::Decimal
    }
}
