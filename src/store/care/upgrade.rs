//! Upgrades from an older format to this one.
//!
//! Opening a file of an older format first copies it beside itself (`oddsbox.redb.v1-backup`), then takes every step to
//! the present format in one transaction, the new format's number included: a crash leaves the old file or the new one.
//! A newer format is refused.
//!
//! To change the format: raise [`FORMAT`] by one, add a step from the number before to [`UPGRADES`], and let the tests
//! write a file as it was. Tables that the older format lacks are created first. A row that only gains a field needs an
//! empty step and a new version of that row (see `codec`).

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use redb::{
    Database, Key, ReadTransaction, ReadableTable, TableDefinition, TableError, TableHandle, Value, WriteTransaction,
};

use crate::durable::sync_parent;
use crate::keys::KeyKind;
use crate::model::Market;
use crate::store::codec::{self, Flaw, MetaRow, NameRow, OddsRow, PollRow, PollRowBefore};
use crate::store::error::StoreError;
use crate::store::indexes;
use crate::store::row_batch::begin;
use crate::store::rows::StoredRow;
use crate::store::table_keys::{PollKey, TableKey};
use crate::store::tables::{
    AUDIT, FORMAT, FORMAT_KEY, FORMATS, IndexTable, KEY_ORDER, KEYS, META, META_COUNTERS, META_SIMULATED, NAMES, ODDS,
    POLLS, Table, TableVisitor, for_each_table, table_names,
};

type UpgradeStep = fn(&WriteTransaction) -> Result<(), StoreError>;

/// Each format with the step to the one after it. Format 5 has the log of changes, in tables that begin empty: the next
/// start logs what is there. Format 6 has the lines of events, which upkeep writes from the log.
pub(in crate::store) const UPGRADES: &[(u32, UpgradeStep)] =
    &[(1, add_key_order), (2, mark_simulated_world), (3, name_markets), (4, |_| Ok(())), (5, |_| Ok(()))];

/// The most copies of one file that are kept beside it.
const COPIES_MAX: u32 = 9;

/// Whether a format can be upgraded to the present one.
pub(in crate::store) fn is_known(format: u32) -> bool {
    UPGRADES.iter().any(|(from, _)| *from == format)
}

/// Takes every step from `format` on, all or none.
pub(in crate::store) fn upgrade(db: &Database, format: u32) -> Result<(), StoreError> {
    let txn = begin(db)?;
    // What has other types of keys now makes room for the tables of today.
    if format < MARKETS_BY_NAME {
        set_prices_aside(&txn)?;
    }
    create_tables(&txn)?;
    for (_, step) in UPGRADES.iter().filter(|(from, _)| *from >= format) {
        step(&txn)?;
    }
    Ok(txn.commit()?)
}

/// Creates the tables that the file lacks, and gives it the present format's number.
pub(in crate::store) fn create_tables(txn: &WriteTransaction) -> Result<(), StoreError> {
    for_each_table(&mut CreateTables { txn })
}

struct CreateTables<'t> {
    txn: &'t WriteTransaction,
}

impl TableVisitor for CreateTables<'_> {
    type Error = StoreError;

    fn table<K: TableKey, R: StoredRow<K>>(&mut self, table: &Table<K, R>) -> Result<(), StoreError> {
        self.txn.open_table(table.definition)?;
        Ok(())
    }

    fn index<K: Key + 'static, V: Value + 'static>(&mut self, index: &IndexTable<K, V>) -> Result<(), StoreError> {
        self.txn.open_table(index.definition)?;
        Ok(())
    }

    fn format_number(&mut self) -> Result<(), StoreError> {
        self.txn.open_table(FORMATS)?.insert(FORMAT_KEY, FORMAT)?;
        Ok(())
    }
}

/// Whether the file has every table: some were added without a change of format.
pub(in crate::store) fn has_all_tables(txn: &ReadTransaction) -> Result<bool, StoreError> {
    let present: BTreeSet<String> = txn.list_tables()?.map(|table| table.name().to_owned()).collect();
    Ok(table_names().all(|name| present.contains(name)))
}

/// Format 2 has the order in which keys were issued. Of older keys only their second and their id are known.
fn add_key_order(txn: &WriteTransaction) -> Result<(), StoreError> {
    let mut keys: Vec<(u32, String)> = Vec::new();
    for row in txn.open_table(KEYS.definition)?.range::<&str>(..)? {
        let (id, row) = row?;
        // A damaged row is left alone; if it is ever restored, its key comes first.
        let created = KEYS.unseal(&id.value(), row.value()).map_or(0, |row| row.created);
        keys.push((created, id.value().to_owned()));
    }
    keys.sort_unstable();
    let mut order = txn.open_table(KEY_ORDER.definition)?;
    for (position, (_, id)) in (0_u64..).zip(&keys) {
        order.insert(position, &**id)?;
    }
    Ok(())
}

/// Format 3 has budgets of polled feeds, owners of events and used quotas of feeders, in tables and rows that need no
/// step, and marks a live world that the simulator filled. Version 0.1.0 left no mark: its demo is recognised by the
/// production key that it issued on its first run.
fn mark_simulated_world(txn: &WriteTransaction) -> Result<(), StoreError> {
    let production = KeyKind::Production.name();
    let mut is_demo = false;
    for row in txn.open_table(AUDIT.definition)?.range::<u64>(..)? {
        let (sequence, row) = row?;
        is_demo |= AUDIT
            .unseal(&sequence.value(), row.value())
            .is_ok_and(|row| row.who == "oddsbox demo" && row.action == "issue" && row.detail.starts_with(production));
    }
    if is_demo {
        let mark = META.seal(&META_SIMULATED, &MetaRow::Simulated);
        let mark = mark.map_err(|error| StoreError::Refused(error.to_string()))?;
        txn.open_table(META.definition)?.insert(META_SIMULATED, &*mark)?;
    }
    Ok(())
}

/// The first format in which prices refer to markets by their names: before, there were eleven, by position.
const MARKETS_BY_NAME: u32 = 4;

/// The eleven markets of format 3 and before, in the order of their numbers.
const MARKETS_BEFORE: [Market; 11] = Market::FEATURED;

pub(in crate::store) type OddsKeyBefore = (u8, u16, u32, u16, u8);
pub(in crate::store) const ODDS_BEFORE: TableDefinition<'static, OddsKeyBefore, &'static [u8]> =
    TableDefinition::new("odds");
const ODDS_ASIDE: TableDefinition<'static, OddsKeyBefore, &'static [u8]> = TableDefinition::new("odds_before_4");
pub(in crate::store) const COVERAGE_BEFORE: TableDefinition<'static, (u8, u16, u16, u32, u8), ()> =
    TableDefinition::new("coverage");

/// Renames the prices and deletes their index.
fn set_prices_aside(txn: &WriteTransaction) -> Result<(), StoreError> {
    match txn.rename_table(ODDS_BEFORE, ODDS_ASIDE) {
        Ok(()) | Err(TableError::TableDoesNotExist(_)) => {}
        Err(error) => return Err(error.into()),
    }
    txn.delete_table(COVERAGE_BEFORE)?;
    Ok(())
}

/// Format 4 has every price and every list of polled records under the names of their markets. A damaged row stays damaged.
/// The competitions follow when the file is opened with a catalogue.
fn name_markets(txn: &WriteTransaction) -> Result<(), StoreError> {
    let numbers = number_market_names(txn)?;
    let number = |market: u8| numbers.get(usize::from(market)).copied().unwrap_or(u32::MAX);
    {
        let (before, mut odds) = (txn.open_table(ODDS_ASIDE)?, txn.open_table(ODDS.definition)?);
        for row in before.range::<OddsKeyBefore>(..)? {
            let (key, row) = row?;
            let (world, sport, event, book, market) = key.value();
            let new = (world, sport, event, book, number(market));
            let sealed = codec::unseal_as::<OddsKeyBefore, OddsRow>(&key.value(), row.value());
            match sealed.and_then(|row| ODDS.seal(&new, &row).map_err(|_| Flaw::Malformed)) {
                Ok(row) => odds.insert(new, &*row)?,
                Err(_) => odds.insert(new, row.value())?,
            };
        }
    }
    txn.delete_table(ODDS_ASIDE)?;
    indexes::rebuild_coverage(txn)?;
    name_polled_markets(txn, number)
}

fn name_polled_markets(txn: &WriteTransaction, number: impl Fn(u8) -> u32) -> Result<(), StoreError> {
    let mut polls = txn.open_table(POLLS.definition)?;
    let mut rewritten: Vec<(<PollKey as TableKey>::Owned, Vec<u8>)> = Vec::new();
    for row in polls.range::<PollKey>(..)? {
        let (key, row) = row?;
        let Ok(before) = codec::unseal_as::<PollKey, PollRowBefore>(&key.value(), row.value()) else { continue };
        let row = match before {
            PollRowBefore::Scope { sport, stale_after_s, books } => PollRow::Scope { sport, stale_after_s, books },
            PollRowBefore::Event { records } => {
                PollRow::Event { records: records.into_iter().map(|(book, market)| (book, number(market))).collect() }
            }
        };
        let sealed = POLLS.seal(&key.value(), &row).map_err(|error| StoreError::Refused(error.to_string()))?;
        let (world, scope, event) = key.value();
        rewritten.push(((world, scope.to_owned(), event.to_owned()), sealed));
    }
    for (key, row) in &rewritten {
        polls.insert(PollKey::borrowed(key), &**row)?;
    }
    Ok(())
}

/// Gives the eleven markets numbers among the names; those that a name of the file equals take its number.
fn number_market_names(txn: &WriteTransaction) -> Result<Vec<u32>, StoreError> {
    let mut names = txn.open_table(NAMES.definition)?;
    let mut known: BTreeMap<String, u32> = BTreeMap::new();
    let mut next = 0;
    for row in names.range::<u32>(..)? {
        let (number, row) = row?;
        next = next.max(number.value().saturating_add(1));
        if let Ok(name) = NAMES.unseal(&number.value(), row.value()) {
            known.entry(name.0).or_insert(number.value());
        }
    }
    let mut meta = txn.open_table(META.definition)?;
    let counters = meta.get(META_COUNTERS)?.and_then(|row| META.unseal(&META_COUNTERS, row.value()).ok());
    let (mut next_event, mut next_audit) = (0, 1);
    if let Some(MetaRow::Counters { next_name, next_event: event, next_audit: audit }) = counters {
        (next, next_event, next_audit) = (next.max(next_name), event, audit);
    }
    let refused = |error: codec::TooLong| StoreError::Refused(error.to_string());
    let mut numbers = Vec::with_capacity(MARKETS_BEFORE.len());
    for market in MARKETS_BEFORE {
        let number = known.get(market.key()).copied().unwrap_or(next);
        if number == next {
            next = next.saturating_add(1);
            let row = NAMES.seal(&number, &NameRow(market.key().to_owned())).map_err(refused)?;
            names.insert(number, &*row)?;
        }
        numbers.push(number);
    }
    let counters = MetaRow::Counters { next_name: next, next_event, next_audit };
    let row = META.seal(&META_COUNTERS, &counters).map_err(refused)?;
    meta.insert(META_COUNTERS, &*row)?;
    Ok(numbers)
}

/// Copies a file beside itself under a name with its format, and returns that name.
pub(in crate::store) fn copy_beside(path: &Path, format: u32) -> io::Result<PathBuf> {
    let beside = |ending: String| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    let partial = beside(format!(".v{format}-backup.partial"));
    let copied = copy_durably(path, &partial).and_then(|()| {
        for number in 1..=COPIES_MAX {
            let ending = if number == 1 { String::new() } else { format!("-{number}") };
            let copy = beside(format!(".v{format}-backup{ending}"));
            match fs::hard_link(&partial, &copy) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                linked => return linked.map(|()| copy),
            }
        }
        Err(io::Error::other("there are too many copies of it beside it: move them away"))
    });
    // Removes the temporary name, and after a failure the copy itself.
    fs::remove_file(&partial).or_else(|error| if copied.is_ok() { Err(error) } else { Ok(()) })?;
    let copied = copied?;
    sync_parent(&copied)?;
    Ok(copied)
}

fn copy_durably(from: &Path, to: &Path) -> io::Result<()> {
    let mut source = File::open(from)?;
    let mut copy = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(to)?;
    io::copy(&mut source, &mut copy)?;
    copy.sync_all()
}
