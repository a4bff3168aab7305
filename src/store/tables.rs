//! The tables of the file, their keys, and how a row is named when it is damaged.
//!
//! Keys hold numbers that are private to the file: sports, events, names and bookmakers are each numbered once and
//! for ever. Rows carry a checksum (see `codec`); index tables hold keys only and can be rebuilt from the rows.

use std::fmt::Write;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

use redb::{Key, TableDefinition};

use super::codec::{
    AuditRow, BookRow, BudgetRow, CatalogueRow, EventRow, FeederRow, Flaw, KeyRow, MetaRow, NameRow, OddsRow, PollRow,
    ScoreRow, SourceRow, SportRow, UsageRow,
};
use crate::model::{Market, World};

/// The format of the files that this program writes.
pub(super) const FORMAT: u32 = 3;

/// Kept apart from the other rows and never encoded differently, so that every later program can read it.
pub(super) const FORMATS: TableDefinition<&str, u32> = TableDefinition::new("oddsbox");
pub(super) const FORMAT_KEY: &str = "format";

/// A table of checksummed rows.
pub(super) struct Table<K: Key + 'static, R> {
    pub(super) name: &'static str,
    pub(super) definition: TableDefinition<'static, K, &'static [u8]>,
    /// Says in words which row a key names.
    pub(super) describe: for<'a> fn(&K::SelfType<'a>) -> String,
    row: PhantomData<fn() -> R>,
}

impl<K: Key + 'static, R> Table<K, R> {
    pub(super) const fn new(name: &'static str, describe: for<'a> fn(&K::SelfType<'a>) -> String) -> Self {
        Table { name, definition: TableDefinition::new(name), describe, row: PhantomData }
    }
}

/// World and number.
pub(super) type BookKey = (u8, u16);
/// World, sport and event.
pub(super) type EventKey = (u8, u16, u32);
/// World, sport, event, bookmaker and market.
pub(super) type OddsKey = (u8, u16, u32, u16, u8);
/// World, sport and bookmaker.
pub(super) type SourceKey = (u8, u16, u16);
/// World, scope and event; the event's id is empty in the row of the scope itself.
pub(super) type PollKey = (u8, &'static str, &'static str);
/// World, sport, commence time and event.
pub(super) type ScheduleKey = (u8, u16, u32, u32);
/// World, sport, bookmaker, event and market.
pub(super) type CoverageKey = (u8, u16, u16, u32, u8);

pub(super) const META: Table<&str, MetaRow> = Table::new("meta", |key| (*key).to_owned());
pub(super) const CATALOGUE: Table<u16, CatalogueRow> = Table::new("catalogue", |piece| format!("piece {piece}"));
pub(super) const SPORTS: Table<u16, SportRow> = Table::new("sports", |number| format!("sport {number}"));
pub(super) const BOOKS: Table<BookKey, BookRow> = Table::new("books", |key| describe_book(*key));
pub(super) const NAMES: Table<u32, NameRow> = Table::new("names", |number| format!("name {number}"));
pub(super) const EVENTS: Table<EventKey, EventRow> = Table::new("events", |key| describe_event(*key));
pub(super) const SCORES: Table<EventKey, ScoreRow> = Table::new("scores", |key| describe_event(*key));
pub(super) const ODDS: Table<OddsKey, OddsRow> = Table::new("odds", |key| describe_odds(*key));
pub(super) const SOURCES: Table<SourceKey, SourceRow> = Table::new("sources", |key| describe_source(*key));
pub(super) const POLLS: Table<PollKey, PollRow> = Table::new("polls", |key| describe_poll(*key));
pub(super) const KEYS: Table<&str, KeyRow> = Table::new("keys", |key| (*key).to_owned());
pub(super) const USAGE: Table<&str, UsageRow> = Table::new("usage", |key| (*key).to_owned());
pub(super) const FEEDERS: Table<&str, FeederRow> = Table::new("feeders", |name| (*name).to_owned());
pub(super) const BUDGETS: Table<&str, BudgetRow> = Table::new("budgets", |feed| (*feed).to_owned());
pub(super) const AUDIT: Table<u64, AuditRow> = Table::new("audit", |sequence| format!("entry {sequence}"));

/// The events of a sport in the order of their commence times.
pub(super) const SCHEDULE: TableDefinition<ScheduleKey, ()> = TableDefinition::new("schedule");
/// The open records of a bookmaker in a sport.
pub(super) const COVERAGE: TableDefinition<CoverageKey, ()> = TableDefinition::new("coverage");

/// The ids of the keys in the order of their issue.
pub(super) const KEY_ORDER: TableDefinition<u64, &str> = TableDefinition::new("key_order");

pub(super) const META_COUNTERS: &str = "counters";
pub(super) const META_MAINTENANCE: &str = "maintenance";
/// Present while the live world holds simulated prices.
pub(super) const META_SIMULATED: &str = "simulated";
/// What the keys of feeders' uses begin with; the world and the feeder's name follow.
const META_USE: &str = "use/";

/// The key of what a feeder has added in a world.
pub(super) fn meta_use_key(world: World, feed: &str) -> String {
    format!("{META_USE}{world}/{feed}")
}

/// The world and the feeder that such a key names; `None` for a key of anything else.
pub(super) fn meta_use_of(key: &str) -> Option<Result<(World, &str), Flaw>> {
    let (name, feed) = key.strip_prefix(META_USE)?.split_once('/').unwrap_or_default();
    let world = World::ALL.into_iter().find(|world| world.name() == name);
    Some(world.map(|world| (world, feed)).ok_or(Flaw::Invalid("its world is unknown")))
}

pub(super) fn world_number(world: World) -> u8 {
    match world {
        World::Sandbox => 0,
        World::Live => 1,
    }
}

pub(super) fn world_of(number: u8) -> Option<World> {
    World::ALL.into_iter().find(|world| world_number(*world) == number)
}

pub(super) fn market_number(market: Market) -> u8 {
    u8::try_from(market.index()).unwrap_or(u8::MAX)
}

/// Every event of a sport.
pub(super) const fn events_of(world: u8, sport: u16) -> RangeInclusive<EventKey> {
    (world, sport, 0)..=(world, sport, u32::MAX)
}

/// Every record of an event.
pub(super) const fn odds_of_event(event: EventKey) -> RangeInclusive<OddsKey> {
    (event.0, event.1, event.2, 0, 0)..=(event.0, event.1, event.2, u16::MAX, u8::MAX)
}

/// Every record of a sport.
pub(super) const fn odds_of_sport(world: u8, sport: u16) -> RangeInclusive<OddsKey> {
    (world, sport, 0, 0, 0)..=(world, sport, u32::MAX, u16::MAX, u8::MAX)
}

/// Every open record of a bookmaker in a sport.
pub(super) const fn coverage_of(world: u8, sport: u16, book: u16) -> RangeInclusive<CoverageKey> {
    (world, sport, book, 0, 0)..=(world, sport, book, u32::MAX, u8::MAX)
}

pub(super) const fn schedule_of(world: u8, sport: u16) -> RangeInclusive<ScheduleKey> {
    (world, sport, 0, 0)..=(world, sport, u32::MAX, u32::MAX)
}

pub(super) const fn sources_of(world: u8, sport: u16) -> RangeInclusive<SourceKey> {
    (world, sport, 0)..=(world, sport, u16::MAX)
}

/// The index row of an open record.
pub(super) const fn coverage_key((world, sport, event, book, market): OddsKey) -> CoverageKey {
    (world, sport, book, event, market)
}

pub(super) fn describe_book((world, book): BookKey) -> String {
    format!("{} bookmaker {book}", describe_world(world))
}

pub(super) fn describe_event((world, sport, event): EventKey) -> String {
    format!("{} sport {sport} event {event}", describe_world(world))
}

pub(super) fn describe_odds((world, sport, event, book, market): OddsKey) -> String {
    let mut text = format!("{} sport {sport} event {event} bookmaker {book} ", describe_world(world));
    // Writing to a string cannot fail.
    let _ = match Market::from_index(usize::from(market)) {
        Some(market) => write!(text, "{market}"),
        None => write!(text, "market {market}"),
    };
    text
}

pub(super) fn describe_schedule((world, sport, commence, event): ScheduleKey) -> String {
    format!("{} at {commence}", describe_event((world, sport, event)))
}

fn describe_source((world, sport, book): SourceKey) -> String {
    format!("{} sport {sport} bookmaker {book}", describe_world(world))
}

fn describe_poll((world, scope, event): (u8, &str, &str)) -> String {
    format!("{} {scope} {event}", describe_world(world)).trim_end().to_owned()
}

pub(super) fn describe_world(number: u8) -> &'static str {
    World::ALL.into_iter().find(|world| world_number(*world) == number).map_or("unknown world", World::name)
}
