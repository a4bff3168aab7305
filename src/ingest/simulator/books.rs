//! The bookmakers of the simulated world, each with its own margin, delay, format of odds and gaps in what it covers.
//! One of them has an outage of five minutes in every hour.

use std::sync::Arc;

use super::noise::Seed;
use crate::model::{Bookmaker, Market, OddsFormat};

/// The keys of the bookmakers, by how they quote. A list of its own, so that the catalogue can grow without changing a
/// price. Keys and positions determine prices.
const KEYS: [(OddsFormat, &str); 3] = [
    (OddsFormat::American, "draftkings fanduel betmgm williamhill_us betrivers fanatics bovada betonlineag mybookieag"),
    (OddsFormat::Fractional, "paddypower skybet ladbrokes_uk coral williamhill"),
    (
        OddsFormat::Decimal,
        "betvictor sport888 matchbook pinnacle betsson marathonbet onexbet sportsbet tab ladbrokes_au neds pointsbetau \
         unibet bet365_au",
    ),
];
/// The number of [`KEYS`].
pub(super) const COUNT: usize = 28;

const HOUR: i64 = 3_600;
const OUTAGE: i64 = 300;

#[derive(Debug)]
pub(super) struct Book {
    pub key: Arc<str>,
    pub seed: Seed,
    pub format: OddsFormat,
    /// In millionths of the stakes.
    pub margin: i64,
    /// By how many seconds its prices are behind the score.
    pub lag: i64,
    number: usize,
    /// By market.
    offered: [bool; Market::FEATURED.len()],
    /// When in the hour its outage begins; `None` for all but one.
    outage_start: Option<i64>,
}

pub(super) fn keys() -> impl Iterator<Item = (OddsFormat, &'static str)> {
    KEYS.into_iter().flat_map(|(format, keys)| keys.split(' ').map(move |key| (format, key)))
}

/// The bookmakers of [`KEYS`]. Where the catalogue lacks one, another of its bookmakers takes the place, so that an
/// operator's own catalogue has prices too.
pub(super) fn books(catalogue: &[Bookmaker], seed: Seed) -> Vec<Book> {
    let mut others = catalogue.iter().filter(|other| keys().all(|(_, key)| *key != *other.key));
    let mut books = Vec::with_capacity(COUNT);
    for (number, (format, key)) in keys().enumerate() {
        let known = catalogue.iter().find(|bookmaker| *bookmaker.key == *key);
        let bookmaker = known.or_else(|| others.next());
        books.extend(bookmaker.map(|bookmaker| Book::new(&bookmaker.key, number, format, seed)));
    }
    books
}

impl Book {
    fn new(key: &str, number: usize, format: OddsFormat, seed: Seed) -> Self {
        let has_outages = number == seed.named("slow").pick(COUNT);
        let outage_start = has_outages.then(|| seed.named("silence").below(HOUR));
        let seed = seed.named("book").named(key);
        // Rounding to traditional fractions adds to the margin.
        let margin_max = if format == OddsFormat::Fractional { 50_000 } else { 80_000 };
        Book {
            key: key.into(),
            seed,
            format,
            margin: seed.named("margin").within(20_000, margin_max),
            lag: seed.named("lag").within(1, 40),
            number,
            offered: Market::FEATURED.map(|market| offered(market, seed)),
            outage_start,
        }
    }

    /// Whether it has a sport, by position. Each book leaves out one of the first six or none; neighbours leave out
    /// different ones, so no region loses a sport.
    pub(super) const fn covers(&self, sport: usize) -> bool {
        self.number % 6 != sport
    }

    pub(super) const fn offers(&self, market: Market) -> bool {
        self.offered[market.index()]
    }

    /// The latest second whose prices have been received by `at`.
    pub(super) fn received(&self, at: i64) -> i64 {
        match self.outage_start.map(|start| (at - start).rem_euclid(HOUR)) {
            Some(elapsed @ 0..OUTAGE) => at - elapsed,
            _ => at,
        }
    }

    /// The first second at which the prices of `at` have been received.
    pub(super) fn received_from(&self, at: i64) -> i64 {
        match self.outage_start.map(|start| (at - start).rem_euclid(HOUR)) {
            Some(elapsed @ 1..OUTAGE) => at - elapsed + OUTAGE,
            _ => at,
        }
    }

    pub(super) fn latency_ms(&self, sport: usize, at: i64) -> u32 {
        let seed = self.seed.named("latency");
        let usual = seed.within(40, 260);
        let now = usual + seed.nth(i64::try_from(sport).unwrap_or(0)).wave(at, 90) * usual / 2_500;
        u32::try_from(now).unwrap_or(0)
    }
}

/// Every book has moneylines and outrights; each leaves out some of the other markets.
fn offered(market: Market, seed: Seed) -> bool {
    let always = matches!(market, Market::MONEYLINE | Market::OUTRIGHT);
    always || !seed.named("offers").named(market.key()).one_in(9)
}
