//! Taking out what cannot be trusted, so that a file is sound again with what is left in it.
//!
//! A row that is dropped may be one that others refer to: an event's records go with it. The indexes are then made anew
//! from the rows. Nothing here makes a copy first: whoever calls it does.

use std::collections::BTreeSet;
use std::sync::Arc;

use redb::{Key, ReadableDatabase, ReadableTable, WriteTransaction};

use super::batch::begin;
use super::check::{CheckReport, checked};
use super::codec::is_closed_mark;
use super::error::StoreError;
use super::handle::Store;
use super::progress::Progress;
use super::tables::{
    AUDIT, BOOKS, BUDGETS, CATALOGUE, COVERAGE, CoverageKey, EVENTS, EventKey, FEEDERS, KEY_ORDER, KEYS, META, NAMES,
    ODDS, OddsKey, POLLS, SCHEDULE, SCORES, SOURCES, SPORTS, ScheduleKey, Table, USAGE, coverage_key,
};

/// Each pass drops what the one before left without what it refers to.
const PASSES_MAX: usize = 64;

impl Store {
    /// Drops every damaged row and makes the indexes anew; what was wrong, and how many rows are gone. The file is
    /// then checked again: see [`Store::check`]. A page that cannot be read ends it: only a backup helps then.
    pub fn drop_damaged(&mut self) -> Result<u64, StoreError> {
        let mut dropped = 0;
        for _ in 0..PASSES_MAX {
            let progress: Arc<Progress> = Arc::default();
            let found = self.reading(|_, file| checked(&file.db.begin_read()?, &progress))?;
            if found.has_ruined_page {
                return Err(StoreError::Damaged("one of its pages cannot be read".to_owned()));
            }
            if found.problems.is_empty() {
                break;
            }
            dropped += found.damaged.len() as u64;
            self.writing(|store| {
                store.mirror = None;
                let txn = begin(&store.file()?.db)?;
                for (table, key) in &found.damaged {
                    remove(&txn, table, key)?;
                }
                index_anew(&txn)?;
                Ok(txn.commit()?)
            })?;
        }
        Ok(dropped)
    }
}

impl CheckReport {
    /// Whether dropping rows can make the file sound.
    pub fn can_be_mended(&self) -> bool {
        !self.problems.listed().iter().any(|problem| problem.table == "file")
    }
}

fn remove(txn: &WriteTransaction, table: &str, key: &[u8]) -> Result<(), StoreError> {
    fn from<K: Key + 'static, R>(txn: &WriteTransaction, table: &Table<K, R>, key: &[u8]) -> Result<(), StoreError> {
        txn.open_table(table.definition)?.remove(K::from_bytes(key))?;
        Ok(())
    }
    match table {
        name if name == META.name => from(txn, &META, key),
        name if name == CATALOGUE.name => from(txn, &CATALOGUE, key),
        name if name == SPORTS.name => from(txn, &SPORTS, key),
        name if name == BOOKS.name => from(txn, &BOOKS, key),
        name if name == NAMES.name => from(txn, &NAMES, key),
        name if name == EVENTS.name => from(txn, &EVENTS, key),
        name if name == SCORES.name => from(txn, &SCORES, key),
        name if name == ODDS.name => from(txn, &ODDS, key),
        name if name == SOURCES.name => from(txn, &SOURCES, key),
        name if name == POLLS.name => from(txn, &POLLS, key),
        name if name == KEYS.name => from(txn, &KEYS, key),
        name if name == USAGE.name => from(txn, &USAGE, key),
        name if name == FEEDERS.name => from(txn, &FEEDERS, key),
        name if name == BUDGETS.name => from(txn, &BUDGETS, key),
        name if name == AUDIT.name => from(txn, &AUDIT, key),
        other => Err(StoreError::Refused(format!("there is no table {other}"))),
    }
}

/// Makes each index anew from the rows that it is an index of.
fn index_anew(txn: &WriteTransaction) -> Result<(), StoreError> {
    let mut schedule = txn.open_table(SCHEDULE)?;
    schedule.retain(|_: ScheduleKey, ()| false)?;
    for row in txn.open_table(EVENTS.definition)?.range::<EventKey>(..)? {
        let (key, row) = row?;
        let key = key.value();
        if let Ok(row) = EVENTS.unseal(&key, row.value()) {
            schedule.insert((key.0, key.1, row.commence, key.2), ())?;
        }
    }
    let mut coverage = txn.open_table(COVERAGE)?;
    coverage.retain(|_: CoverageKey, ()| false)?;
    for row in txn.open_table(ODDS.definition)?.range::<OddsKey>(..)? {
        let (key, row) = row?;
        if ODDS.is_sound(&key.value(), row.value()) && !is_closed_mark(row.value()) {
            coverage.insert(coverage_key(key.value()), ())?;
        }
    }
    order_keys_anew(txn)
}

/// Keeps the order of the keys that are there; those that it does not know come last.
fn order_keys_anew(txn: &WriteTransaction) -> Result<(), StoreError> {
    let mut ids: BTreeSet<String> = BTreeSet::new();
    for row in txn.open_table(KEYS.definition)?.range::<&str>(..)? {
        ids.insert(row?.0.value().to_owned());
    }
    let mut order = txn.open_table(KEY_ORDER)?;
    order.retain(|_, id| ids.remove(id))?;
    let mut next = order.last()?.map_or(0, |(last, _)| last.value().saturating_add(1));
    for id in &ids {
        order.insert(next, &**id)?;
        next = next.saturating_add(1);
    }
    Ok(())
}
