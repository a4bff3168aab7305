//! The tables of the file. Each is declared once, in the list of [`tables!`] or of [`indexes!`]; creating, copying,
//! checking, committing, the comparison after a failed commit and the removal of damaged rows all walk these lists, so
//! none of them can omit a table. To add one: a line in the list, its row type in `codec`, and a [`StoredRow`] for it.
//!
//! Keys hold numbers that are private to the file: sports, events, names and bookmakers are each numbered once and never
//! renumbered. Rows carry a checksum (see `codec`); index tables hold keys only and can be rebuilt from the rows.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;
use std::ops::RangeInclusive;

use redb::{Key, ReadTransaction, TableDefinition, Value, WriteTransaction};

use super::care::{CheckFindings, CheckedRows, RowNames};
use super::codec::{
    AuditRow, BookRow, BudgetRow, CatalogueRow, EventRow, FeederRow, KeyRow, MetaRow, NameRow, OddsRow, PollRow,
    ScoreRow, SourceRow, SportRow, UsageRow,
};
use super::error::StoreError;
use super::indexes;
use super::rows::StoredRow;
use crate::model::{Market, World};

/// The format of the files that this program writes.
pub(super) const FORMAT: u32 = 3;

/// Separate from the other rows and never encoded differently, so that every later program can read it.
pub(super) const FORMATS: TableDefinition<&str, u32> = TableDefinition::new(FORMATS_NAME);
const FORMATS_NAME: &str = "oddsbox";
pub(super) const FORMAT_KEY: &str = "format";

/// A table of checksummed rows.
pub(super) struct Table<K: TableKey, R> {
    pub(super) name: &'static str,
    pub(super) definition: TableDefinition<'static, K, &'static [u8]>,
    /// Describes the row of a key to people.
    pub(super) describe: for<'a> fn(&K::SelfType<'a>, &RowNames) -> String,
    /// What its rows refer to: see [`StoredRow::references`].
    pub(super) refers_to: &'static [ReferenceKind],
    /// Whether an index must follow every write of its rows, so that the generic write leaves it to `row_batch`.
    pub(super) updates_index: bool,
    row: PhantomData<fn() -> R>,
}

impl<K: TableKey, R> Table<K, R> {
    pub(super) const fn new(
        name: &'static str,
        describe: for<'a> fn(&K::SelfType<'a>, &RowNames) -> String,
        refers_to: &'static [ReferenceKind],
        updates_index: bool,
    ) -> Self {
        let definition = TableDefinition::new(name);
        Table { name, definition, describe, refers_to, updates_index, row: PhantomData }
    }
}

/// A table that lists the rows of another one in another order.
pub(super) struct Index<K: Key + 'static, V: Value + 'static> {
    pub(super) name: &'static str,
    pub(super) definition: TableDefinition<'static, K, V>,
    /// Compares it with the rows that a check has read, and returns how many entries it has.
    pub(super) check: fn(&ReadTransaction, &mut CheckedRows, &mut CheckFindings) -> Result<u64, StoreError>,
    /// Replaces its entries by those that the rows call for.
    pub(super) rebuild: fn(&WriteTransaction) -> Result<(), StoreError>,
    /// The bookmaker that a key names.
    pub(super) book_of: Option<for<'a> fn(&K::SelfType<'a>) -> BookKey>,
}

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
plain_keys!(u16, u32, u64, BookKey, EventKey, OddsKey, SourceKey);

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

/// A thing that a row refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reference<'a> {
    World(u8),
    Sport(u16),
    Event(EventKey),
    Book(BookKey),
    /// A bookmaker whose row may be gone. Its number still must not be given to another.
    BookIfPresent(BookKey),
    Market(u8),
    Name(u32),
    ApiKey(&'a str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReferenceKind {
    World,
    Sport,
    Event,
    Book,
    Market,
    Name,
    ApiKey,
}

impl Reference<'_> {
    #[cfg(test)]
    pub(super) fn kind(self) -> ReferenceKind {
        match self {
            Reference::World(_) => ReferenceKind::World,
            Reference::Sport(_) => ReferenceKind::Sport,
            Reference::Event(_) => ReferenceKind::Event,
            Reference::Book(_) | Reference::BookIfPresent(_) => ReferenceKind::Book,
            Reference::Market(_) => ReferenceKind::Market,
            Reference::Name(_) => ReferenceKind::Name,
            Reference::ApiKey(_) => ReferenceKind::ApiKey,
        }
    }
}

/// What is done with each table, whatever the types of its keys and rows.
pub(super) trait TableVisitor {
    type Error;

    fn table<K: TableKey, R: StoredRow<K>>(&mut self, table: &Table<K, R>) -> Result<(), Self::Error>;

    fn index<K: Key + 'static, V: Value + 'static>(&mut self, index: &Index<K, V>) -> Result<(), Self::Error>;

    /// The table of the format's number, which has no checksum.
    fn format_number(&mut self) -> Result<(), Self::Error> {
        Ok(())
    }
}

/// Visits every table of the file: those that others refer to before those that refer to them, then the indexes.
pub(super) fn for_each_table<V: TableVisitor>(visitor: &mut V) -> Result<(), V::Error> {
    visitor.format_number()?;
    visit_tables(visitor)?;
    visit_indexes(visitor)
}

/// The names of all tables, as redb lists them.
pub(super) fn table_names() -> impl Iterator<Item = &'static str> {
    TABLE_NAMES.iter().chain(INDEX_NAMES).copied().chain([FORMATS_NAME])
}

/// The rows of one table that a batch writes: `None` removes a row.
pub(super) type PendingRows<K> = BTreeMap<<K as TableKey>::Owned, Option<Vec<u8>>>;

/// What is done with the rows that a batch has for each table.
pub(super) trait RowsVisitor {
    type Error;

    fn rows<K: TableKey, R: StoredRow<K>>(
        &mut self,
        table: &Table<K, R>,
        rows: &PendingRows<K>,
    ) -> Result<(), Self::Error>;
}

macro_rules! tables {
    ($(
        $constant:ident $name:ident: $key:ty => $row:ty {
            describe: $describe:expr,
            refers_to: [$($kind:ident),*],
            updates_index: $updates_index:literal
        }
    )*) => {
        $(pub(super) const $constant: Table<$key, $row> =
            Table::new(stringify!($name), $describe, &[$(ReferenceKind::$kind),*], $updates_index);)*

        const TABLE_NAMES: &[&str] = &[$(stringify!($name)),*];

        fn visit_tables<V: TableVisitor>(visitor: &mut V) -> Result<(), V::Error> {
            $(visitor.table(&$constant)?;)*
            Ok(())
        }

        /// Encoded rows for every table.
        #[derive(Debug, Default)]
        pub(super) struct TableRows {
            $(pub(super) $name: PendingRows<$key>,)*
        }

        impl TableRows {
            pub(super) fn visit<V: RowsVisitor>(&self, visitor: &mut V) -> Result<(), V::Error> {
                $(visitor.rows(&$constant, &self.$name)?;)*
                Ok(())
            }

            /// Puts a row into the table of that name.
            #[cfg(test)]
            pub(super) fn put(&mut self, table: &str, key: &[u8], row: Option<Vec<u8>>) {
                match table {
                    $(stringify!($name) => {
                        let key = <$key as TableKey>::owned(&<$key as Value>::from_bytes(key));
                        self.$name.insert(key, row);
                    })*
                    other => panic!("no table {other}"),
                }
            }
        }
    };
}

macro_rules! indexes {
    ($(
        $(#[$doc:meta])*
        $constant:ident $name:ident: $key:ty => $value:ty {
            check: $check:expr,
            rebuild: $rebuild:expr,
            book_of: $book_of:expr
        }
    )*) => {
        $($(#[$doc])* pub(super) const $constant: Index<$key, $value> = Index {
            name: stringify!($name),
            definition: TableDefinition::new(stringify!($name)),
            check: $check,
            rebuild: $rebuild,
            book_of: $book_of,
        };)*

        const INDEX_NAMES: &[&str] = &[$(stringify!($name)),*];

        fn visit_indexes<V: TableVisitor>(visitor: &mut V) -> Result<(), V::Error> {
            $(visitor.index(&$constant)?;)*
            Ok(())
        }
    };
}

tables! {
    META meta: &'static str => MetaRow {
        describe: |key, _| (*key).to_owned(),
        refers_to: [],
        updates_index: false
    }
    CATALOGUE catalogue: u16 => CatalogueRow {
        describe: |piece, _| format!("piece {piece}"),
        refers_to: [],
        updates_index: false
    }
    AUDIT audit: u64 => AuditRow {
        describe: |sequence, _| format!("entry {sequence}"),
        refers_to: [],
        updates_index: false
    }
    SPORTS sports: u16 => SportRow {
        describe: |number, _| format!("sport number {number}"),
        refers_to: [],
        updates_index: false
    }
    BOOKS books: BookKey => BookRow {
        describe: |(world, number), _| format!("{} bookmaker number {number}", world_name(*world)),
        refers_to: [World],
        updates_index: false
    }
    NAMES names: u32 => NameRow {
        describe: |number, _| format!("name {number}"),
        refers_to: [],
        updates_index: false
    }
    EVENTS events: EventKey => EventRow {
        describe: |key, names| names.event(*key),
        refers_to: [World, Sport, Name],
        updates_index: false
    }
    SCORES scores: EventKey => ScoreRow {
        describe: |key, names| names.event(*key),
        refers_to: [Event, Name],
        updates_index: false
    }
    ODDS odds: OddsKey => OddsRow {
        describe: |key, names| names.odds(*key),
        refers_to: [Event, Book, Market, Name],
        updates_index: true
    }
    SOURCES sources: SourceKey => SourceRow {
        describe: |key, names| names.source(*key),
        refers_to: [Sport, Book],
        updates_index: false
    }
    POLLS polls: PollKey => PollRow {
        describe: |(world, scope, event), _| format!("{} {scope} {event}", world_name(*world)).trim_end().to_owned(),
        refers_to: [World, Book],
        updates_index: false
    }
    KEYS keys: &'static str => KeyRow {
        describe: |id, _| (*id).to_owned(),
        refers_to: [],
        updates_index: true
    }
    FEEDERS feeders: &'static str => FeederRow {
        describe: |name, _| (*name).to_owned(),
        refers_to: [],
        updates_index: false
    }
    BUDGETS budgets: &'static str => BudgetRow {
        describe: |feed, _| (*feed).to_owned(),
        refers_to: [],
        updates_index: false
    }
    USAGE usage: &'static str => UsageRow {
        describe: |id, _| (*id).to_owned(),
        refers_to: [ApiKey],
        updates_index: false
    }
}

indexes! {
    /// The events of a sport in the order of their commence times.
    SCHEDULE schedule: ScheduleKey => () {
        check: indexes::check_schedule,
        rebuild: indexes::rebuild_schedule,
        book_of: None
    }
    /// The open records of a bookmaker in a sport.
    COVERAGE coverage: CoverageKey => () {
        check: indexes::check_coverage,
        rebuild: indexes::rebuild_coverage,
        book_of: Some(|(world, _, book, _, _)| (*world, *book))
    }
    /// The ids of the keys in the order of their issue.
    KEY_ORDER key_order: u64 => &'static str {
        check: indexes::check_key_order,
        rebuild: indexes::rebuild_key_order,
        book_of: None
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

pub(super) const META_COUNTERS: &str = "counters";
pub(super) const META_MAINTENANCE: &str = "maintenance";
/// Present while the live world holds simulated prices.
pub(super) const META_SIMULATED: &str = "simulated";

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

pub(super) fn world_name(number: u8) -> &'static str {
    world_of(number).map_or("unknown world", World::name)
}
