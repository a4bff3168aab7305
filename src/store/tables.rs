//! The tables of the file. Each is declared once, in the list of `tables!` or of `indexes!`; creating, copying,
//! checking, committing, the comparison after a failed commit and the removal of damaged rows all walk these lists, so
//! none of them can omit a table. To add one: a line in the list, its row type in `codec`, and a `StoredRow` for it.
//!
//! Keys hold numbers that are private to the file: sports, events, names and bookmakers are each numbered once and never
//! renumbered. Rows carry a checksum (see `codec`); index tables hold keys only and can be rebuilt from the rows.

use std::collections::BTreeMap;
use std::marker::PhantomData;

use redb::{Key, ReadTransaction, TableDefinition, Value, WriteTransaction};

use super::care::{CheckFindings, CheckedRows, RowNames};
use super::codec::{
    AuditRow, BookRow, BudgetRow, CatalogueRow, CompetitionRow, EventRow, FeederRow, Flaw, KeyRow, LineKeyRow,
    MarketRow, MetaRow, NameRow, OddsRow, PollRow, RecentUseRow, ScoreRow, SourceRow, SportRow, UsageRow,
};
use super::error::StoreError;
use super::history::{self, EndsRow, KeyframeRow, LineRow, LogRow};
use super::indexes;
use super::rows::StoredRow;
use super::table_keys::{
    BookKey, CoverageKey, EventKey, KeyframeKey, LineDayKey, LineEventKey, LineKey, LogKey, LogNumber, NamedKey,
    OddsKey, PollKey, ScheduleKey, SourceKey, TableKey, TickKey, log_name, world_name, world_of,
};
use crate::model::World;

/// The format of the files that this program writes.
pub(super) const FORMAT: u32 = 6;

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
pub(super) struct IndexTable<K: Key + 'static, V: Value + 'static> {
    pub(super) name: &'static str,
    pub(super) definition: TableDefinition<'static, K, V>,
    /// Compares it with the rows that a check has read, and returns how many entries it has.
    pub(super) check: fn(&ReadTransaction, &mut CheckedRows, &mut CheckFindings) -> Result<u64, StoreError>,
    /// Replaces its entries by those that the rows call for.
    pub(super) rebuild: fn(&WriteTransaction) -> Result<(), StoreError>,
    /// The bookmaker that a key names.
    pub(super) book_of: Option<for<'a> fn(&K::SelfType<'a>) -> BookKey>,
}

/// A thing that a row refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowReference<'a> {
    World(u8),
    Sport(u16),
    Event(EventKey),
    Book(BookKey),
    /// A bookmaker whose row may be gone. Its number still must not be given to another.
    BookIfPresent(BookKey),
    Name(u32),
    ApiKey(&'a str),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum ReferenceKind {
    World,
    Sport,
    Event,
    Book,
    Name,
    ApiKey,
}

impl RowReference<'_> {
    #[cfg(test)]
    pub(super) fn kind(self) -> ReferenceKind {
        match self {
            RowReference::World(_) => ReferenceKind::World,
            RowReference::Sport(_) => ReferenceKind::Sport,
            RowReference::Event(_) => ReferenceKind::Event,
            RowReference::Book(_) | RowReference::BookIfPresent(_) => ReferenceKind::Book,
            RowReference::Name(_) => ReferenceKind::Name,
            RowReference::ApiKey(_) => ReferenceKind::ApiKey,
        }
    }
}

/// What is done with each table, whatever the types of its keys and rows.
pub(super) trait TableVisitor {
    type Error;

    fn table<K: TableKey, R: StoredRow<K>>(&mut self, table: &Table<K, R>) -> Result<(), Self::Error>;

    fn index<K: Key + 'static, V: Value + 'static>(&mut self, index: &IndexTable<K, V>) -> Result<(), Self::Error>;

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
        $($(#[$doc])* pub(super) const $constant: IndexTable<$key, $value> = IndexTable {
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
    COMPETITIONS competitions: NamedKey => CompetitionRow {
        describe: |(world, key), _| format!("{} competition {key}", world_name(*world)),
        refers_to: [World, Sport],
        updates_index: false
    }
    MARKETS markets: NamedKey => MarketRow {
        describe: |(world, key), _| format!("{} market {key}", world_name(*world)),
        refers_to: [World],
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
        refers_to: [Event, Book, Name],
        updates_index: true
    }
    SOURCES sources: SourceKey => SourceRow {
        describe: |key, names| names.source(*key),
        refers_to: [Sport, Book],
        updates_index: false
    }
    POLLS polls: PollKey => PollRow {
        describe: |(world, scope, event), _| format!("{} {scope} {event}", world_name(*world)).trim_end().to_owned(),
        refers_to: [World, Book, Name],
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
    RECENT_USE recent_use: &'static str => RecentUseRow {
        describe: |id, _| (*id).to_owned(),
        refers_to: [ApiKey],
        updates_index: false
    }
    LOG log: LogKey => LogRow {
        describe: |(world, sequence), _| format!("{} entry {sequence}", log_name(*world)),
        refers_to: [],
        updates_index: false
    }
    KEYFRAMES keyframes: KeyframeKey => KeyframeRow {
        describe: |key, names| names.keyframe(*key),
        refers_to: [Sport],
        updates_index: false
    }
    LINE_KEYS line_keys: u32 => LineKeyRow {
        describe: |number, _| format!("key number {number}"),
        refers_to: [],
        updates_index: false
    }
    ENDS ends: EventKey => EndsRow {
        describe: |(world, sport, event), names| names.line((*world, *sport, *event, None)),
        refers_to: [Sport],
        updates_index: false
    }
    LINES lines: LineKey => LineRow {
        describe: |(world, sport, event, row), names| names.line((*world, *sport, *event, Some(*row))),
        refers_to: [Sport],
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
    /// The entries of the log that publish prices of a sport, by their time.
    TICKS ticks: TickKey => u64 {
        check: history::check_ticks,
        rebuild: history::rebuild_ticks,
        book_of: None
    }
    /// The events that have lines, by the hash of their id.
    LINE_EVENTS line_events: LineEventKey => () {
        check: history::check_line_events,
        rebuild: history::rebuild_line_events,
        book_of: None
    }
    /// The same events by the day on which they start.
    LINE_DAYS line_days: LineDayKey => () {
        check: history::check_line_days,
        rebuild: history::rebuild_line_days,
        book_of: None
    }
}

pub(super) const META_COUNTERS: &str = "counters";
pub(super) const META_MAINTENANCE: &str = "maintenance";
/// Present while the live world holds simulated prices.
pub(super) const META_SIMULATED: &str = "simulated";
/// Present in the file of a node.
pub(super) const META_MEMBERSHIP: &str = "membership";
/// The histories that were imported.
pub(super) const META_IMPORTS: &str = "imports";
/// The prefix of the keys of logs; the world or the number of the log follows.
const META_LOG: &str = "log/";
/// The same of their lines.
const META_LINES: &str = "lines/";
/// The prefix of the keys of feeders' uses; the world and the feeder's name follow.
const META_USE: &str = "use/";

/// The key of what a feeder has added in a world.
pub(super) fn meta_use_key(world: World, feed: &str) -> String {
    format!("{META_USE}{world}/{feed}")
}

/// The world and the feeder that such a key names; `None` for any other key.
pub(super) fn meta_use_of(key: &str) -> Option<Result<(World, &str), Flaw>> {
    let (name, feed) = key.strip_prefix(META_USE)?.split_once('/').unwrap_or_default();
    let world = World::ALL.into_iter().find(|world| world.name() == name);
    Some(world.map(|world| (world, feed)).ok_or(Flaw::Invalid("its world is unknown")))
}

/// The key of a log's row.
pub(super) fn meta_log_key(log: LogNumber) -> String {
    format!("{META_LOG}{}", log_suffix(log))
}

/// The key of the row of a log's lines.
pub(super) fn meta_lines_key(log: LogNumber) -> String {
    format!("{META_LINES}{}", log_suffix(log))
}

/// The name of the world, or the number of an imported history.
fn log_suffix(log: LogNumber) -> String {
    world_of(log).map_or_else(|| log.to_string(), |world| world.name().to_owned())
}

pub(super) fn is_meta_lines(key: &str) -> bool {
    key.starts_with(META_LINES)
}

pub(super) fn is_meta_log(key: &str) -> bool {
    key.starts_with(META_LOG)
}
