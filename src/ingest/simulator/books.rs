//! The bookmakers of the simulated world, each with its own margin, delay, format of odds and gaps in what it covers.
//! One of them has an outage of five minutes in every hour.
//!
//! They are a list of the simulator's own. All that makes a bookmaker's prices comes from its key and its row, so a new
//! bookmaker, sport or region changes no price of another.

use std::sync::Arc;

use super::markets::{Bet, Reach, SimulatedMarket};
use super::noise::Seed;
use super::sports::SPORTS;
use crate::model::{Bookmaker, OddsFormat, Region};

/// What a bookmaker offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Range {
    /// Main markets.
    Main,
    /// Also alternate lines, parts of a game and players.
    Deep,
    /// Players only, as in daily fantasy sports.
    Players,
}

struct BookRow {
    key: &'static str,
    format: OddsFormat,
    range: Range,
    /// The keys of its sports, separated by spaces.
    sports: &'static str,
}

const fn row(key: &'static str, format: OddsFormat, range: Range, sports: &'static str) -> BookRow {
    BookRow { key, format, range, sports }
}

use OddsFormat::{American, Decimal, Fractional};
use Range::{Deep, Main, Players};

const US_TEAMS: &str = "american_football basketball baseball ice_hockey";

/// The bookmakers by how they quote. In each of the regions us, uk, eu and au every sport has four or more.
#[rustfmt::skip]
const ROWS: [BookRow; 38] = [
    row("draftkings", American, Deep, "mma boxing tennis american_football golf soccer basketball baseball ice_hockey"),
    row("fanduel", American, Deep, "mma boxing tennis american_football golf soccer basketball baseball ice_hockey"),
    row("betmgm", American, Deep, "mma boxing tennis american_football golf soccer basketball baseball ice_hockey"),
    row("williamhill_us", American, Main, "mma boxing american_football golf basketball baseball ice_hockey"),
    row("betrivers", American, Main, "mma tennis american_football golf soccer basketball baseball ice_hockey"),
    row("fanatics", American, Main, "mma boxing tennis golf soccer"),
    row("bovada", American, Main, "boxing tennis american_football golf soccer basketball baseball ice_hockey"),
    row("betonlineag", American, Main, "mma boxing tennis american_football soccer"),
    row("mybookieag", American, Main, "mma boxing tennis golf american_football"),
    row("espnbet", American, Main, US_TEAMS),
    row("hardrockbet", American, Main, US_TEAMS),
    row("novig", American, Main, US_TEAMS),
    row("prophetx", American, Main, US_TEAMS),
    row("prizepicks", American, Players, US_TEAMS),
    row("underdog", American, Players, US_TEAMS),
    row("paddypower", Fractional, Deep, "mma boxing tennis golf soccer american_football basketball ice_hockey"),
    row("skybet", Fractional, Main, "mma boxing tennis american_football golf soccer basketball"),
    row("ladbrokes_uk", Fractional, Main, "mma boxing tennis golf soccer"),
    row("coral", Fractional, Main, "boxing tennis american_football golf soccer"),
    row("williamhill", Fractional, Main, "mma tennis american_football golf soccer baseball ice_hockey"),
    row("betvictor", Decimal, Main, "mma boxing tennis american_football soccer basketball baseball ice_hockey"),
    row("sport888", Decimal, Main, "mma boxing american_football golf soccer basketball baseball ice_hockey"),
    row("matchbook", Decimal, Main, "mma boxing tennis american_football golf baseball"),
    row("pinnacle", Decimal, Deep, "mma boxing tennis american_football golf soccer basketball baseball ice_hockey"),
    row("betsson", Decimal, Main, "mma boxing tennis golf soccer ice_hockey"),
    row("marathonbet", Decimal, Main, "mma boxing tennis american_football soccer basketball"),
    row("onexbet", Decimal, Main, "boxing tennis american_football golf"),
    row("winamax_fr", Decimal, Main, "tennis soccer basketball"),
    row("betclic_fr", Decimal, Main, "tennis soccer basketball"),
    row("unibet_se", Decimal, Deep, "tennis soccer ice_hockey"),
    row("leovegas_se", Decimal, Main, "soccer ice_hockey"),
    row("sportsbet", Decimal, Deep, "mma boxing tennis american_football golf soccer basketball baseball ice_hockey"),
    row("tab", Decimal, Main, "mma boxing tennis golf soccer basketball baseball ice_hockey"),
    row("ladbrokes_au", Decimal, Main, "mma boxing american_football golf soccer"),
    row("neds", Decimal, Main, "mma tennis american_football golf basketball"),
    row("pointsbetau", Decimal, Main, "boxing tennis american_football golf baseball ice_hockey"),
    row("unibet", Decimal, Main, "mma boxing tennis american_football soccer basketball baseball ice_hockey"),
    row("bet365_au", Decimal, Main, "mma boxing tennis american_football golf soccer"),
];

/// Whose prices stop coming for a while in every hour.
const SLOW: &str = "mybookieag";
const HOUR: i64 = 3_600;
const OUTAGE: i64 = 300;
/// How many of an operator's own bookmakers are simulated.
const OWN_MAX: usize = 40;

#[derive(Debug)]
pub(super) struct Book {
    pub key: Arc<str>,
    pub seed: Seed,
    pub format: OddsFormat,
    /// In millionths of the stakes.
    pub margin: i64,
    /// By how many seconds its prices are behind the score.
    pub lag: i64,
    range: Range,
    /// By position in [`SPORTS`].
    covered: [bool; SPORTS.len()],
    /// When in the hour its outage begins; `None` for all but one.
    outage_start: Option<i64>,
}

/// The bookmakers of the list that the catalogue has. An operator's own catalogue that has none of them has prices too: of
/// its own bookmakers, in all sports.
pub(super) fn books(catalogue: &[Bookmaker], seed: Seed) -> Vec<Book> {
    let has = |row: &&BookRow| catalogue.iter().any(|bookmaker| *bookmaker.key == *row.key);
    let listed: Vec<Book> = ROWS.iter().filter(has).map(|row| Book::listed(row, seed)).collect();
    if !listed.is_empty() {
        return listed;
    }
    let mut own: Vec<&Bookmaker> = catalogue.iter().collect();
    own.sort_unstable_by_key(|bookmaker| &bookmaker.key);
    own.into_iter().take(OWN_MAX).map(|bookmaker| Book::own(bookmaker, seed)).collect()
}

impl Book {
    fn listed(row: &BookRow, seed: Seed) -> Self {
        let covered = std::array::from_fn(|at| row.sports.split(' ').any(|sport| sport == SPORTS[at].key));
        let outage_start = (row.key == SLOW).then(|| seed.named("outage").below(HOUR));
        Book { covered, outage_start, ..Book::new(row.key, row.format, row.range, seed) }
    }

    fn own(bookmaker: &Bookmaker, seed: Seed) -> Self {
        let format = if bookmaker.regions.contains(Region::Us) { American } else { Decimal };
        Book::new(&bookmaker.key, format, Main, seed)
    }

    fn new(key: &str, format: OddsFormat, range: Range, seed: Seed) -> Self {
        let seed = seed.named("book").named(key);
        // Rounding to traditional fractions adds to the margin.
        let (margin_min, margin_max) = if format == Fractional { (20_000, 38_000) } else { (25_000, 58_000) };
        Book {
            key: key.into(),
            seed,
            format,
            margin: seed.named("margin").within(margin_min, margin_max),
            lag: seed.named("lag").within(1, 40),
            range,
            covered: [true; SPORTS.len()],
            outage_start: None,
        }
    }

    /// Whether it has a sport, by position.
    pub(super) const fn covers(&self, sport: usize) -> bool {
        self.covered[sport]
    }

    /// Every book has moneylines and outrights; one that has main markets only leaves out some of the others.
    pub(super) fn offers(&self, market: &SimulatedMarket) -> bool {
        let in_range = match market.reach {
            Reach::Main => self.range != Players,
            Reach::Deep => self.range == Deep,
            Reach::Players => self.range != Main,
        };
        let always = self.range != Main || matches!(market.bet, Bet::Ways | Bet::Outright);
        in_range && (always || !self.seed.named("offers").named(market.key).one_in(9))
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

    /// The end of an outage after `from`, up to `to`, if there is one: everything missed comes in then.
    pub(super) fn outage_end(&self, from: i64, to: i64) -> Option<i64> {
        let end = self.outage_start? + OUTAGE;
        let last = to - (to - end).rem_euclid(HOUR);
        (last > from).then_some(last)
    }

    pub(super) fn latency_ms(&self, sport: &str, at: i64) -> u32 {
        let seed = self.seed.named("latency");
        let usual = seed.within(40, 260);
        let now = usual + seed.named(sport).wave(at, 90) * usual / 2_500;
        u32::try_from(now).unwrap_or(0)
    }
}

#[cfg(test)]
pub(super) fn keys() -> impl Iterator<Item = &'static str> {
    ROWS.iter().map(|row| row.key)
}
