//! The keys of the tables: their types, the numbers in them, and the ranges of keys that belong together.

use std::fmt;
use std::ops::RangeInclusive;

use redb::Key;

use crate::model::World;

/// World and number.
pub(super) type BookKey = (u8, u16);
/// World, sport and event.
pub(super) type EventKey = (u8, u16, u32);
/// World, sport, event, bookmaker and the number of the market's name.
pub(super) type OddsKey = (u8, u16, u32, u16, u32);
/// World, sport and bookmaker.
pub(super) type SourceKey = (u8, u16, u16);
/// World, scope and event; the event's id is empty in the row of the scope itself.
pub(super) type PollKey = (u8, &'static str, &'static str);
/// World, sport, commence time and event.
pub(super) type ScheduleKey = (u8, u16, u32, u32);
/// World, sport, bookmaker, event and the number of the market's name.
pub(super) type CoverageKey = (u8, u16, u16, u32, u32);
/// World and a key of the interface.
pub(super) type NamedKey = (u8, &'static str);

/// The number of a log: each world's own has the number of the world, and each imported history has another.
pub(super) type LogNumber = u8;
/// Log and sequence number.
pub(super) type LogKey = (LogNumber, u64);
/// Log, sport and the sequence number of the entry that it follows.
pub(super) type KeyframeKey = (LogNumber, u16, u64);
/// Log, sport, the event's number in the lines, and the block with the piece of it.
pub(super) type LineKey = (LogNumber, u16, u32, u32);
/// Log, sport, the hash of the event's id and its number in the lines.
pub(super) type LineEventKey = (LogNumber, u16, u64, u32);
/// Log, sport, the UTC day on which the event starts, counted from 1970, and its number in the lines.
pub(super) type LineDayKey = (LogNumber, u16, u32, u32);
/// Log, sport and time.
pub(super) type TickKey = (LogNumber, u16, u32);

/// A key of a table, and the form in which a batch owns it.
pub(super) trait TableKey: Key + 'static {
    type Owned: Ord + Clone + fmt::Debug;

    fn borrowed(owned: &Self::Owned) -> Self::SelfType<'_>;

    #[cfg(test)]
    fn owned(key: &Self::SelfType<'_>) -> Self::Owned;
}

macro_rules! plain_keys {
    ($($key:ty),*) => {$(
        impl TableKey for $key {
            type Owned = $key;

            fn borrowed(owned: &$key) -> $key {
                *owned
            }

            #[cfg(test)]
            fn owned(key: &$key) -> $key {
                *key
            }
        }
    )*};
}
plain_keys!(u16, u32, u64, BookKey, EventKey, OddsKey, SourceKey, LogKey, KeyframeKey, LineKey);
#[cfg(test)]
plain_keys!((u8, u16, u32, u16, u8));

impl TableKey for &'static str {
    type Owned = String;

    fn borrowed(owned: &String) -> &str {
        owned
    }

    #[cfg(test)]
    fn owned(key: &&str) -> String {
        (*key).to_owned()
    }
}

impl TableKey for NamedKey {
    type Owned = (u8, String);

    fn borrowed((world, key): &Self::Owned) -> (u8, &str) {
        (*world, key)
    }

    #[cfg(test)]
    fn owned((world, key): &(u8, &str)) -> Self::Owned {
        (*world, (*key).to_owned())
    }
}

impl TableKey for PollKey {
    type Owned = (u8, String, String);

    fn borrowed((world, scope, event): &Self::Owned) -> (u8, &str, &str) {
        (*world, scope, event)
    }

    #[cfg(test)]
    fn owned((world, scope, event): &(u8, &str, &str)) -> Self::Owned {
        (*world, (*scope).to_owned(), (*event).to_owned())
    }
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

/// Every event of a sport.
pub(super) const fn events_of(world: u8, sport: u16) -> RangeInclusive<EventKey> {
    (world, sport, 0)..=(world, sport, u32::MAX)
}

/// Every record of an event.
pub(super) const fn odds_of_event(event: EventKey) -> RangeInclusive<OddsKey> {
    (event.0, event.1, event.2, 0, 0)..=(event.0, event.1, event.2, u16::MAX, u32::MAX)
}

/// Every record of a sport.
pub(super) const fn odds_of_sport(world: u8, sport: u16) -> RangeInclusive<OddsKey> {
    (world, sport, 0, 0, 0)..=(world, sport, u32::MAX, u16::MAX, u32::MAX)
}

/// Every open record of a bookmaker in a sport.
pub(super) const fn coverage_of(world: u8, sport: u16, book: u16) -> RangeInclusive<CoverageKey> {
    (world, sport, book, 0, 0)..=(world, sport, book, u32::MAX, u32::MAX)
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

pub(super) fn world_name(number: u8) -> &'static str {
    world_of(number).map_or("unknown world", World::name)
}

pub(super) fn log_name(number: LogNumber) -> &'static str {
    world_of(number).map_or("imported", World::name)
}
