//! The rows of one commit, and how they are written: in one transaction, each table in the order of its keys (in
//! random order it takes seven times as long), each index together with its rows.

use std::collections::{BTreeMap, BTreeSet};

use redb::{Database, Durability, Key, ReadableTable, TableDefinition, WriteTransaction};

use super::codec::is_closed_mark;
use super::error::StoreError;
use super::history::{Revert, clear_logs, write_reverts, write_ticks};
use super::rows::StoredRow;
use super::table_keys::{
    BookKey, CoverageKey, EventKey, LineDayKey, LineEventKey, OddsKey, ScheduleKey, TableKey, TickKey, coverage_key,
    coverage_of, odds_of_event,
};
use super::tables::{
    COVERAGE, KEY_ORDER, KEYS, LINE_DAYS, LINE_EVENTS, ODDS, PendingRows, RowsVisitor, SCHEDULE, Table, TableRows,
};

/// Everything that one commit writes.
#[derive(Debug, Default)]
pub(super) struct RowBatch {
    pub(super) rows: TableRows,
    /// Entries of the schedule to insert or remove.
    pub(super) schedule: BTreeMap<ScheduleKey, bool>,
    /// The keys in `rows`, in the order in which they were first put.
    pub(super) keys_put: Vec<String>,
    /// Events all of whose records are removed, before any row is written.
    pub(super) gone_events: BTreeSet<EventKey>,
    /// Bookmakers all of whose open records are removed, before any row is written.
    pub(super) gone_books: BTreeSet<BookKey>,
    /// Ticks of the log.
    pub(super) ticks: BTreeMap<TickKey, u64>,
    /// Events that are new in the lines.
    pub(super) line_events: BTreeSet<LineEventKey>,
    /// The days on which events of the lines start, and on which they no longer do.
    pub(super) line_days: BTreeMap<LineDayKey, bool>,
    /// Entries of the log that are taken back, before any row is written.
    pub(super) reverts: Revert,
    /// Worlds whose log is deleted, before any row is written.
    pub(super) cleared_logs: BTreeSet<u8>,
}

/// A durable transaction. Quick repair: after a crash the file opens at once instead of being scanned.
pub(super) fn begin(db: &Database) -> Result<WriteTransaction, StoreError> {
    let mut txn = db.begin_write()?;
    txn.set_durability(Durability::Immediate).map_err(|error| StoreError::Damaged(error.to_string()))?;
    txn.set_quick_repair(true);
    Ok(txn)
}

impl RowBatch {
    /// Replaces what the batch has for an event by the removal of all its rows.
    pub(super) fn remove_event(&mut self, event: EventKey) {
        self.rows.events.insert(event, None);
        self.rows.scores.insert(event, None);
        let odds: Vec<OddsKey> = self.rows.odds.range(odds_of_event(event)).map(|(key, _)| *key).collect();
        for key in odds {
            self.rows.odds.remove(&key);
        }
        self.gone_events.insert(event);
    }

    /// Replaces what the batch has for a bookmaker by the removal of its sources and open records. Its closed marks
    /// stay: they do no harm, and no index leads to them. `sports` are the numbers of all sports in the file.
    pub(super) fn remove_book(&mut self, book: BookKey, sports: impl Iterator<Item = u16>) {
        for (_, row) in self.rows.odds.iter_mut().filter(|(key, _)| (key.0, key.3) == book) {
            if row.as_ref().is_some_and(|row| !is_closed_mark(row)) {
                *row = None;
            }
        }
        self.rows.sources.extend(sports.map(|sport| ((book.0, sport, book.1), None)));
        self.gone_books.insert(book);
    }

    /// Writes everything in one transaction. `sports` are the numbers of all sports in the file.
    ///
    /// The batch is destructured without `..`, here and in `commit_check`: a field that is not written, or not compared
    /// after a failed commit, does not compile.
    pub(super) fn commit(&self, db: &Database, sports: &[u16]) -> Result<(), StoreError> {
        let RowBatch {
            rows,
            schedule,
            keys_put,
            gone_events,
            gone_books,
            ticks,
            line_events,
            line_days,
            reverts,
            cleared_logs,
        } = self;
        let txn = begin(db)?;
        write_reverts(&txn, reverts)?;
        clear_logs(&txn, cleared_logs)?;
        remove_records(&txn, gone_events, gone_books, sports)?;
        rows.visit(&mut WriteRows { txn: &txn })?;
        write_index(&txn, SCHEDULE.definition, schedule.iter().map(|(key, is_there)| (*key, *is_there)))?;
        write_odds(&txn, &rows.odds)?;
        write_ticks(&txn, ticks)?;
        write_index(&txn, LINE_EVENTS.definition, line_events.iter().map(|key| (*key, true)))?;
        write_index(&txn, LINE_DAYS.definition, line_days.iter().map(|(key, is_there)| (*key, *is_there)))?;
        write_keys(&txn, &rows.keys, keys_put)?;
        require_keys(&txn, &rows.usage)?;
        txn.commit()?;
        Ok(())
    }
}

/// Writes the rows of every table whose index does not depend on what was there before.
struct WriteRows<'t> {
    txn: &'t WriteTransaction,
}

impl RowsVisitor for WriteRows<'_> {
    type Error = StoreError;

    fn rows<K: TableKey, R: StoredRow<K>>(
        &mut self,
        table: &Table<K, R>,
        rows: &PendingRows<K>,
    ) -> Result<(), StoreError> {
        if rows.is_empty() || table.updates_index {
            return Ok(());
        }
        let mut stored = self.txn.open_table(table.definition)?;
        for (key, row) in rows {
            match row {
                Some(row) => stored.insert(K::borrowed(key), &**row)?,
                None => stored.remove(K::borrowed(key))?,
            };
        }
        Ok(())
    }
}

/// Removes all records of events, and the open records of bookmakers.
fn remove_records(
    txn: &WriteTransaction,
    gone_events: &BTreeSet<EventKey>,
    gone_books: &BTreeSet<BookKey>,
    sports: &[u16],
) -> Result<(), StoreError> {
    if gone_events.is_empty() && gone_books.is_empty() {
        return Ok(());
    }
    let mut coverage = txn.open_table(COVERAGE.definition)?;
    let mut odds = txn.open_table(ODDS.definition)?;
    for event in gone_events {
        for row in odds.extract_from_if(odds_of_event(*event), |_, _| true)? {
            coverage.remove(coverage_key(row?.0.value()))?;
        }
    }
    for (world, book) in gone_books {
        for sport in sports {
            for row in coverage.extract_from_if(coverage_of(*world, *sport, *book), |_, ()| true)? {
                let (world, sport, book, event, market) = row?.0.value();
                odds.remove((world, sport, event, book, market))?;
            }
        }
    }
    Ok(())
}

/// Writes the records. The index is touched only where one opens or closes, so a new price costs it nothing.
fn write_odds(txn: &WriteTransaction, rows: &PendingRows<OddsKey>) -> Result<(), StoreError> {
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
            // A damaged row does not say whether the index has it: the index is then corrected.
            Some(before) if !ODDS.is_sound(key, before.value()) => !is_open,
            Some(before) => !is_closed_mark(before.value()),
        };
        if was_open != is_open {
            covered.insert(coverage_key(*key), is_open);
        }
    }
    write_index(txn, COVERAGE.definition, covered.into_iter())
}

/// Writes the keys; a new one goes to the end of their order.
fn write_keys(txn: &WriteTransaction, rows: &PendingRows<&'static str>, keys_put: &[String]) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let mut keys = txn.open_table(KEYS.definition)?;
    let mut order = txn.open_table(KEY_ORDER.definition)?;
    for (key, _) in rows.iter().filter(|(_, row)| row.is_none()) {
        keys.remove(&**key)?;
        order.retain(|_, ordered| ordered != &**key)?;
    }
    let mut next = order.last()?.map_or(0, |(last, _)| last.value().saturating_add(1));
    for key in keys_put {
        let Some(row) = rows.get(key).and_then(Option::as_ref) else { continue };
        if keys.insert(&**key, &**row)?.is_none() {
            order.insert(next, &**key)?;
            next = next.saturating_add(1);
        }
    }
    Ok(())
}

/// Refuses counters of a key that does not exist.
fn require_keys(txn: &WriteTransaction, usage: &PendingRows<&'static str>) -> Result<(), StoreError> {
    if usage.is_empty() {
        return Ok(());
    }
    let keys = txn.open_table(KEYS.definition)?;
    for (key, _) in usage.iter().filter(|(_, row)| row.is_some()) {
        if keys.get(&**key)?.is_none() {
            return Err(StoreError::Refused(format!("there is no key {key}")));
        }
    }
    Ok(())
}

fn write_index<K: Key + 'static>(
    txn: &WriteTransaction,
    table: TableDefinition<'static, K, ()>,
    entries: impl Iterator<Item = (K::SelfType<'static>, bool)>,
) -> Result<(), StoreError> {
    let mut entries = entries.peekable();
    if entries.peek().is_none() {
        return Ok(());
    }
    let mut table = txn.open_table(table)?;
    for (key, is_there) in entries {
        if is_there {
            table.insert(key, ())?;
        } else {
            table.remove(key)?;
        }
    }
    Ok(())
}
