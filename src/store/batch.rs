//! The rows of one commit, and how they are written: in one transaction, each table in the order of its keys (in
//! random order it takes seven times as long), each index together with the rows that it is an index of.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use redb::{Database, Durability, Key, TableDefinition, WriteTransaction};

use super::codec::is_closed_mark;
use super::error::StoreError;
use super::tables::{
    AUDIT, BOOKS, BUDGETS, BookKey, COVERAGE, CoverageKey, EVENTS, EventKey, FEEDERS, KEY_ORDER, KEYS, META, NAMES,
    ODDS, OddsKey, POLLS, SCHEDULE, SCORES, SOURCES, ScheduleKey, SourceKey, USAGE, coverage_key, coverage_of,
    odds_of_event,
};

/// Sealed rows by table and key; where a row may also go away, `None` takes it away.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub(super) meta: BTreeMap<Cow<'static, str>, Option<Vec<u8>>>,
    pub(super) names: BTreeMap<u32, Vec<u8>>,
    pub(super) books: BTreeMap<BookKey, Vec<u8>>,
    pub(super) events: BTreeMap<EventKey, Vec<u8>>,
    pub(super) schedule: BTreeMap<ScheduleKey, bool>,
    pub(super) scores: BTreeMap<EventKey, Vec<u8>>,
    pub(super) odds: BTreeMap<OddsKey, Option<Vec<u8>>>,
    pub(super) sources: BTreeMap<SourceKey, Option<Vec<u8>>>,
    pub(super) polls: BTreeMap<(u8, String, String), Option<Vec<u8>>>,
    pub(super) keys: BTreeMap<String, Vec<u8>>,
    /// In the order in which they first came.
    pub(super) keys_put: Vec<String>,
    /// Taken away, with what they used.
    pub(super) gone_keys: BTreeSet<String>,
    pub(super) usage: BTreeMap<String, Vec<u8>>,
    pub(super) feeders: BTreeMap<String, Vec<u8>>,
    pub(super) budgets: BTreeMap<String, Option<Vec<u8>>>,
    pub(super) audit: BTreeMap<u64, Vec<u8>>,
    /// Taken away with all that hangs on them, before anything is put.
    pub(super) gone_events: BTreeSet<EventKey>,
    pub(super) gone_books: BTreeSet<BookKey>,
}

/// A durable transaction. Quick repair: after a crash the file opens at once instead of being walked through.
pub(super) fn begin(db: &Database) -> Result<WriteTransaction, StoreError> {
    let mut txn = db.begin_write()?;
    txn.set_durability(Durability::Immediate).map_err(|error| StoreError::Damaged(error.to_string()))?;
    txn.set_quick_repair(true);
    Ok(txn)
}

impl Batch {
    /// Drops what the batch had for an event, and notes that the file's rows of it go.
    pub(super) fn forget_event(&mut self, event: EventKey) {
        self.events.remove(&event);
        self.scores.remove(&event);
        let odds: Vec<OddsKey> = self.odds.range(odds_of_event(event)).map(|(key, _)| *key).collect();
        for key in odds {
            self.odds.remove(&key);
        }
        self.gone_events.insert(event);
    }

    /// Drops what the batch had for a bookmaker, and notes that the file's rows of it go. Its closed marks stay: they
    /// do no harm, and no index leads to them.
    pub(super) fn forget_book(&mut self, book: BookKey) {
        for (_, row) in self.odds.iter_mut().filter(|(key, _)| (key.0, key.3) == book) {
            if row.as_ref().is_some_and(|row| !is_closed_mark(row)) {
                *row = None;
            }
        }
        self.sources.retain(|key, _| (key.0, key.2) != book);
        self.gone_books.insert(book);
    }

    /// Writes everything in one transaction. `sports` are the numbers of all sports in the file.
    ///
    /// The batch is taken apart without `..`, here and in `commit_check`: a field that is not written, or not compared
    /// after a failed commit, does not compile.
    pub(super) fn commit(&self, db: &Database, sports: &[u16]) -> Result<(), StoreError> {
        let Batch {
            meta,
            names,
            books,
            events,
            schedule,
            scores,
            odds,
            sources,
            polls,
            keys,
            keys_put,
            gone_keys,
            usage,
            feeders,
            budgets,
            audit,
            gone_events,
            gone_books,
        } = self;
        let txn = begin(db)?;
        remove(&txn, gone_events, gone_books, sports)?;
        put(&txn, NAMES.definition, names.iter().map(|(key, row)| (*key, &**row)))?;
        put(&txn, BOOKS.definition, books.iter().map(|(key, row)| (*key, &**row)))?;
        put(&txn, EVENTS.definition, events.iter().map(|(key, row)| (*key, &**row)))?;
        put(&txn, SCORES.definition, scores.iter().map(|(key, row)| (*key, &**row)))?;
        put(&txn, FEEDERS.definition, feeders.iter().map(|(key, row)| (&**key, &**row)))?;
        change(&txn, BUDGETS.definition, budgets.iter().map(|(key, row)| (&**key, row.as_deref())))?;
        put(&txn, AUDIT.definition, audit.iter().map(|(key, row)| (*key, &**row)))?;
        change(&txn, META.definition, meta.iter().map(|(key, row)| (&**key, row.as_deref())))?;
        change(&txn, SOURCES.definition, sources.iter().map(|(key, row)| (*key, row.as_deref())))?;
        let polls = polls.iter().map(|((world, scope, event), row)| ((*world, &**scope, &**event), row.as_deref()));
        change(&txn, POLLS.definition, polls)?;
        index(&txn, SCHEDULE, schedule.iter().map(|(key, there)| (*key, *there)))?;
        put_odds(&txn, odds)?;
        put_keys(&txn, keys, keys_put, gone_keys)?;
        put_usage(&txn, usage)?;
        txn.commit()?;
        Ok(())
    }
}

/// Removes events with everything that belongs to them, and the prices and sources of bookmakers.
fn remove(
    txn: &WriteTransaction,
    gone_events: &BTreeSet<EventKey>,
    gone_books: &BTreeSet<BookKey>,
    sports: &[u16],
) -> Result<(), StoreError> {
    if gone_events.is_empty() && gone_books.is_empty() {
        return Ok(());
    }
    let mut coverage = txn.open_table(COVERAGE)?;
    let mut odds = txn.open_table(ODDS.definition)?;
    let mut events = txn.open_table(EVENTS.definition)?;
    let mut scores = txn.open_table(SCORES.definition)?;
    let mut sources = txn.open_table(SOURCES.definition)?;
    for event in gone_events {
        events.remove(event)?;
        scores.remove(event)?;
        for row in odds.extract_from_if(odds_of_event(*event), |_, _| true)? {
            coverage.remove(coverage_key(row?.0.value()))?;
        }
    }
    for (world, book) in gone_books {
        for sport in sports {
            sources.remove((*world, *sport, *book))?;
            for row in coverage.extract_from_if(coverage_of(*world, *sport, *book), |_, ()| true)? {
                let (world, sport, book, event, market) = row?.0.value();
                odds.remove((world, sport, event, book, market))?;
            }
        }
    }
    Ok(())
}

/// Puts the records. The index is touched only where one appears or goes, so a new price costs it nothing.
fn put_odds(txn: &WriteTransaction, rows: &BTreeMap<OddsKey, Option<Vec<u8>>>) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut covered: BTreeMap<CoverageKey, bool> = BTreeMap::new();
    let mut odds = txn.open_table(ODDS.definition)?;
    for (key, row) in rows {
        let is_open = row.as_ref().is_some_and(|row| !is_closed_mark(row));
        let before = match row {
            Some(row) => odds.insert(key, &**row)?,
            None => odds.remove(key)?,
        };
        let was_open = match before {
            None => false,
            // A damaged row cannot say whether it stands in the index: the index is then set right.
            Some(before) if !ODDS.is_sound(key, before.value()) => !is_open,
            Some(before) => !is_closed_mark(before.value()),
        };
        if was_open != is_open {
            covered.insert(coverage_key(*key), is_open);
        }
    }
    index(txn, COVERAGE, covered.into_iter())
}

/// Puts the keys; one that is new goes to the end of their order.
fn put_keys(
    txn: &WriteTransaction,
    rows: &BTreeMap<String, Vec<u8>>,
    keys_put: &[String],
    gone_keys: &BTreeSet<String>,
) -> Result<(), StoreError> {
    if rows.is_empty() && gone_keys.is_empty() {
        return Ok(());
    }
    let mut keys = txn.open_table(KEYS.definition)?;
    let mut order = txn.open_table(KEY_ORDER)?;
    for key in gone_keys {
        keys.remove(&**key)?;
        order.retain(|_, held| held != &**key)?;
        txn.open_table(USAGE.definition)?.remove(&**key)?;
    }
    let mut next = redb::ReadableTable::last(&order)?.map_or(0, |(last, _)| last.value().saturating_add(1));
    for key in keys_put {
        let Some(row) = rows.get(key) else { continue };
        if keys.insert(&**key, &**row)?.is_none() {
            order.insert(next, &**key)?;
            next = next.saturating_add(1);
        }
    }
    Ok(())
}

fn put_usage(txn: &WriteTransaction, rows: &BTreeMap<String, Vec<u8>>) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let keys = txn.open_table(KEYS.definition)?;
    for key in rows.keys() {
        if redb::ReadableTable::get(&keys, &**key)?.is_none() {
            return Err(StoreError::Refused(format!("there is no key {key}")));
        }
    }
    put(txn, USAGE.definition, rows.iter().map(|(key, row)| (&**key, &**row)))
}

fn put<'a, K: Key + 'static>(
    txn: &WriteTransaction,
    table: TableDefinition<'static, K, &'static [u8]>,
    rows: impl Iterator<Item = (K::SelfType<'a>, &'a [u8])>,
) -> Result<(), StoreError> {
    change(txn, table, rows.map(|(key, row)| (key, Some(row))))
}

fn change<'a, K: Key + 'static>(
    txn: &WriteTransaction,
    table: TableDefinition<'static, K, &'static [u8]>,
    rows: impl Iterator<Item = (K::SelfType<'a>, Option<&'a [u8]>)>,
) -> Result<(), StoreError> {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    let mut table = txn.open_table(table)?;
    for (key, row) in rows {
        match row {
            Some(row) => table.insert(key, row)?,
            None => table.remove(key)?,
        };
    }
    Ok(())
}

fn index<K: Key + 'static>(
    txn: &WriteTransaction,
    table: TableDefinition<'static, K, ()>,
    rows: impl Iterator<Item = (K::SelfType<'static>, bool)>,
) -> Result<(), StoreError> {
    let mut rows = rows.peekable();
    if rows.peek().is_none() {
        return Ok(());
    }
    let mut table = txn.open_table(table)?;
    for (key, is_there) in rows {
        if is_there {
            table.insert(key, ())?;
        } else {
            table.remove(key)?;
        }
    }
    Ok(())
}
