//! Sorts the records of an event into bets, by the shape of their markets.
//!
//! A side is an outcome with its description and point. Sides of the same description and point are one bet; of a spread, those
//! with opposite points. Which sides a bet has is read from all bookmakers that are not stale, whatever a query asks for: one
//! that leaves an outcome out must not look like a market without it.

use foldhash::{HashMap, HashMapExt};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::bet::{Bet, BetBook, BetKey, BetSide, Sides};
use crate::board::coverage::BookSet;
use crate::board::node::EventNode;
use crate::board::snapshot::Published;
use crate::model::market::{KeyParts, MarketShape};
use crate::model::{Event, Market, MarketFamilies, MarketFilter, MarketTraits, Outcome, Point, Price, Record};

/// More sides of named ways than any market has; a list with more is not compared.
const WAYS_MAX: usize = 64;

/// Finds the bets of events. What it allocates is used again for the next event.
#[derive(Debug)]
pub(crate) struct Pairing<'a> {
    families: &'a MarketFamilies,
    stale: BookSet,
    /// What is known of each market, and its records in the event at hand.
    markets: HashMap<Market, (Option<BetTraits>, Vec<&'a Record>)>,
    sides: Vec<FoundSide<'a>>,
    places: HashMap<(&'a str, Option<Point>), usize>,
    quotes: Vec<Quote>,
}

/// What is known of a market's bets.
#[derive(Clone, Copy, Debug)]
pub(super) struct BetTraits {
    pub(super) traits: MarketTraits,
    /// How many named ways there must be, where the key says so.
    pub(super) ways: Option<u32>,
}

impl BetTraits {
    /// `None` for markets that take no part: lay prices, unknown shapes, and shapes that their key changes.
    pub(super) fn of(families: &MarketFamilies, market: Market) -> Option<Self> {
        let (parts, traits) = (KeyParts::split(market.key())?, families.traits(market.key())?);
        let is_changed = parts.is_three_way && traits.shape != MarketShape::Ways;
        let ways = parts.is_three_way.then_some(3);
        let is_known = !parts.is_lay && !market.is_lay() && !is_changed && traits.settlement.winners > 0;
        is_known.then_some(BetTraits { traits, ways })
    }
}

/// A side that some bookmaker prices.
#[derive(Clone, Copy, Debug)]
struct FoundSide<'a> {
    side: BetSide<'a>,
    /// The last record that had it, counted from 1.
    last_record: usize,
}

#[derive(Clone, Copy, Debug)]
struct Quote {
    /// Its place in the list of the market.
    record: usize,
    side: usize,
    price: Price,
}

impl<'a> Pairing<'a> {
    pub(crate) fn new(published: &Published, families: &'a MarketFamilies) -> Self {
        let stale = published.sources().iter().filter(|source| source.stale).map(|source| source.bookmaker).collect();
        Pairing {
            families,
            stale,
            markets: HashMap::new(),
            sides: Vec::new(),
            places: HashMap::new(),
            quotes: Vec::new(),
        }
    }

    /// The bets of an event in these markets: markets in the order of records, then by key.
    pub(crate) fn bets(&mut self, node: &'a EventNode, markets: &MarketFilter, bets: &mut Vec<Bet<'a>>) {
        bets.clear();
        let families = self.families;
        let mut found: Vec<Market> = Vec::new();
        for record in node.records_of(markets, |book| !self.stale.contains(book)) {
            let market = record.market;
            let known = self.markets.entry(market).or_insert_with(|| (BetTraits::of(families, market), Vec::new()));
            if known.1.is_empty() {
                found.push(market);
            }
            known.1.push(record);
        }
        found.sort_unstable_by(|one, other| one.cmp_in_records(*other));
        for market in found {
            let Some((traits, records)) = self.markets.get_mut(&market) else { continue };
            let (traits, mut records) = (*traits, std::mem::take(records));
            let start = bets.len();
            match traits.map(|traits| (traits, traits.traits.settlement.group)) {
                Some((traits, Some(size))) => rows_of_bets(market, &records, (size, traits), bets),
                Some((traits, None)) => self.market_bets(node.event(), market, &records, traits, bets),
                None => {}
            }
            bets[start..].sort_by_key(|bet| bet.key);
            records.clear();
            if let Some((_, kept)) = self.markets.get_mut(&market) {
                *kept = records;
            }
        }
    }

    /// The bets of a market whose outcomes belong together by what they are.
    fn market_bets(
        &mut self,
        event: &'a Event,
        market: Market,
        records: &[&'a Record],
        BetTraits { traits, ways }: BetTraits,
        bets: &mut Vec<Bet<'a>>,
    ) {
        self.collect(records);
        let mut keyed: Vec<(BetKey<'a>, usize)> = Vec::with_capacity(self.sides.len());
        let names = (traits.shape == MarketShape::Spread).then(|| self.spread_names(event)).flatten();
        for (at, FoundSide { side, .. }) in self.sides.iter().enumerate() {
            let point = match traits.shape {
                MarketShape::Spread => match names.and_then(|names| names.oriented(side)) {
                    Some(point) => Some(point),
                    None => continue,
                },
                _ => side.point,
            };
            keyed.push((BetKey { point, description: side.name.description(), name: "", hash: 0 }, at));
        }
        // Stable: the sides of a bet stay in the order in which they were found.
        keyed.sort_by_key(|(key, _)| *key);
        // For each side its bet and its column.
        let mut columns = vec![None; self.sides.len()];
        let start = bets.len();
        for group in keyed.chunk_by(|(one, _), (other, _)| one == other) {
            let mut places: Vec<usize> = group.iter().map(|(_, at)| *at).collect();
            if let Some(names) = names {
                places.sort_by_key(|at| **self.sides[*at].side.name != *names.first);
            }
            let Some(kind) = self.kind_of(traits.shape, ways, &mut places) else { continue };
            for (column, at) in places.iter().enumerate() {
                columns[*at] = Some((bets.len(), column));
            }
            let sides = places.iter().map(|at| self.sides[*at].side).collect();
            bets.push(Bet {
                market,
                key: group[0].0,
                winners: traits.settlement.winners,
                kind,
                sides,
                books: Vec::new(),
                prices: Vec::new(),
            });
        }
        self.fill(records, &columns, traits.shape, bets);
        let found = bets.split_off(start).into_iter().filter(|bet| !bet.books.is_empty());
        bets.extend(found);
    }

    /// Finds the sides of a market and who prices them. A record that has one of them twice is left out.
    fn collect(&mut self, records: &[&'a Record]) {
        self.sides.clear();
        self.places.clear();
        self.quotes.clear();
        for (at, &record) in records.iter().enumerate() {
            let (start, mut guess) = (self.quotes.len(), 0);
            for outcome in &record.outcomes {
                let is_side =
                    |found: &FoundSide<'_>| found.side.point == outcome.point && found.side.name.is(&outcome.name);
                // Most bookmakers list the same sides in the same order.
                let side = if self.sides.get(guess).is_some_and(is_side) {
                    guess
                } else {
                    let (sides, new) = (&mut self.sides, BetSide { name: &outcome.name, point: outcome.point });
                    *self.places.entry((&**outcome.name.as_stored(), outcome.point)).or_insert_with(|| {
                        sides.push(FoundSide { side: new, last_record: 0 });
                        sides.len() - 1
                    })
                };
                guess = side + 1;
                let last_record = std::mem::replace(&mut self.sides[side].last_record, at + 1);
                if last_record == at + 1 {
                    self.quotes.truncate(start);
                    break;
                }
                self.quotes.push(Quote { record: at, side, price: outcome.price });
            }
        }
    }

    /// The two names of a spread. Where the event has sides, only theirs count.
    fn spread_names(&self, event: &'a Event) -> Option<SpreadNames<'a>> {
        if let (Some(first), Some(second)) = (event.home(), event.away()) {
            return Some(SpreadNames { first, second });
        }
        let mut names: Vec<&'a str> = self.sides.iter().map(|found| found.side.name.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        match *names {
            [first, second] => Some(SpreadNames { first, second }),
            _ => None,
        }
    }

    /// Whether the sides of a bet are all there are; keeps those that are compared. `None` if they cannot be.
    fn kind_of(&self, shape: MarketShape, ways: Option<u32>, places: &mut Vec<usize>) -> Option<Sides> {
        match shape {
            MarketShape::OverUnder | MarketShape::YesNo | MarketShape::Spread => match places.len() {
                1 => Some(Sides::Some),
                2 => Some(Sides::All),
                _ => None,
            },
            MarketShape::Field if places.len() > 1 => Some(Sides::Field),
            MarketShape::Field | MarketShape::OverOnly => Some(Sides::Some),
            MarketShape::Ways => {
                let listed = self.common_ways(places)?;
                let mut column = 0;
                places.retain(|_| {
                    column += 1;
                    listed & (1 << (column - 1)) != 0
                });
                let is_all = ways.map_or(places.len() > 1, |ways| listed.count_ones() == ways);
                Some(if is_all { Sides::All } else { Sides::Some })
            }
        }
    }

    /// The named ways that most bookmakers list, as bits. A list that lacks a way that another one has is not compared: a home
    /// win is another bet where there is a draw.
    fn common_ways(&self, places: &[usize]) -> Option<u64> {
        if places.len() > WAYS_MAX {
            return None;
        }
        let mut lists: Vec<(u64, usize)> = Vec::new();
        for quotes in self.quotes.chunk_by(|one, other| one.record == other.record) {
            let mut listed = 0_u64;
            for quote in quotes {
                if let Some(column) = places.iter().position(|at| *at == quote.side) {
                    listed |= 1 << column;
                }
            }
            match lists.iter_mut().find(|(other, _)| *other == listed) {
                Some((_, books)) => *books += 1,
                None => lists.push((listed, 1)),
            }
        }
        let is_part =
            |(listed, _): &(u64, usize)| lists.iter().any(|(other, _)| other != listed && other & listed == *listed);
        let whole = lists.iter().filter(|list| list.0 != 0 && !is_part(list));
        // Of lists that as many bookmakers have, the one that was found first.
        whole.rev().max_by_key(|(listed, books)| (*books, listed.count_ones())).map(|(listed, _)| *listed)
    }

    /// Puts the prices into their bets. Of named ways, those of bookmakers that list all of them.
    fn fill(
        &self,
        records: &[&'a Record],
        columns: &[Option<(usize, usize)>],
        shape: MarketShape,
        bets: &mut [Bet<'a>],
    ) {
        for quotes in self.quotes.chunk_by(|one, other| one.record == other.record) {
            let record = records[quotes[0].record];
            let book = BetBook { book: record.bookmaker, updated: record.last_update };
            for quote in quotes {
                let Some((bet, column)) = columns[quote.side] else { continue };
                let bet = &mut bets[bet];
                if bet.books.last().is_none_or(|last| last.book != book.book) {
                    bet.books.push(book);
                    bet.prices.resize(bet.prices.len() + bet.sides.len(), None);
                }
                let row = bet.prices.len() - bet.sides.len();
                bet.prices[row + column] = Some(quote.price);
            }
        }
        if shape == MarketShape::Ways {
            bets.iter_mut().for_each(keep_whole_rows);
        }
    }
}

/// The bets of a market in which so many outcomes in a row are one: the same names are the same bet.
fn rows_of_bets<'a>(
    market: Market,
    records: &[&'a Record],
    (size, BetTraits { traits, .. }): (usize, BetTraits),
    bets: &mut Vec<Bet<'a>>,
) {
    let mut by_names: HashMap<Vec<&'a str>, usize> = HashMap::new();
    for &record in records {
        let book = BetBook { book: record.bookmaker, updated: record.last_update };
        // The same names twice in one record: which of the bets is which cannot be told.
        let (mut here, mut twice): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        for outcomes in record.outcomes.chunks_exact(size.max(1)) {
            let mut names: Vec<&str> = outcomes.iter().map(|outcome| &**outcome.name.as_stored()).collect();
            names.sort_unstable();
            if names.windows(2).any(|pair| pair[0] == pair[1]) {
                continue;
            }
            let hash = names.iter().fold(0, |hash, name| xxh3_64_with_seed(name.as_bytes(), hash));
            let at = *by_names.entry(names).or_insert_with(|| {
                bets.push(row_bet(market, outcomes, traits.settlement.winners, hash));
                bets.len() - 1
            });
            if here.contains(&at) {
                twice.push(at);
                continue;
            }
            here.push(at);
            let bet = &mut bets[at];
            let price = |side: &BetSide<'_>| outcomes.iter().find(|outcome| outcome.name == *side.name);
            let prices: Vec<Option<Price>> =
                bet.sides.iter().map(|side| price(side).map(|outcome| outcome.price)).collect();
            bet.books.push(book);
            bet.prices.extend(prices);
        }
        for at in twice {
            let bet = &mut bets[at];
            if bet.books.pop_if(|last| last.book == book.book).is_some() {
                bet.prices.truncate(bet.prices.len() - bet.sides.len());
            }
        }
    }
    bets.retain(|bet| !bet.books.is_empty());
}

/// A bet of some outcomes in a row, without prices.
fn row_bet(market: Market, outcomes: &[Outcome], winners: usize, hash: u64) -> Bet<'_> {
    let sides: Vec<_> = outcomes.iter().map(|outcome| BetSide { name: &outcome.name, point: outcome.point }).collect();
    let name = sides.iter().map(|side| side.name.as_str()).min().unwrap_or_default();
    let description = sides.first().and_then(|side| side.name.description());
    let key = BetKey { point: None, description, name, hash };
    Bet { market, key, winners, kind: Sides::All, sides, books: Vec::new(), prices: Vec::new() }
}

/// Leaves out the bookmakers that do not price every way.
fn keep_whole_rows(bet: &mut Bet<'_>) {
    let count = bet.sides.len();
    let is_whole: Vec<bool> = bet.prices.chunks(count).map(|row| row.iter().all(Option::is_some)).collect();
    if is_whole.iter().all(|is_whole| *is_whole) {
        return;
    }
    let mut at = 0;
    bet.prices.retain(|_| {
        at += 1;
        is_whole[(at - 1) / count]
    });
    let mut at = 0;
    bet.books.retain(|_| {
        at += 1;
        is_whole[at - 1]
    });
}

/// The two sides of a spread.
#[derive(Clone, Copy, Debug)]
struct SpreadNames<'a> {
    first: &'a str,
    second: &'a str,
}

impl SpreadNames<'_> {
    /// The point of the first side in the bet that a side belongs to.
    fn oriented(self, side: &BetSide<'_>) -> Option<Point> {
        let point = side.point?;
        if **side.name == *self.first {
            Some(point)
        } else if **side.name == *self.second {
            Point::from_milli(-point.milli())
        } else {
            None
        }
    }
}
