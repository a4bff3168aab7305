//! The three indexes: what each must list, for the check, and how each is rebuilt from its rows.

use std::collections::{BTreeSet, HashSet};

use foldhash::fast::RandomState;
use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use super::care::{CheckFindings, CheckedRows};
use super::codec::is_closed_mark;
use super::error::StoreError;
use super::table_keys::{CoverageKey, EventKey, OddsKey, ScheduleKey, coverage_key};
use super::tables::{COVERAGE, EVENTS, KEY_ORDER, KEYS, ODDS, SCHEDULE};

pub(super) fn check_schedule(
    txn: &ReadTransaction,
    rows: &mut CheckedRows,
    findings: &mut CheckFindings,
) -> Result<u64, StoreError> {
    // A damaged row does not say where its event belongs in the index.
    let damaged: HashSet<EventKey, RandomState> = findings.damaged_in(&EVENTS).collect();
    let mut scheduled: HashSet<EventKey, RandomState> = HashSet::default();
    let mut count = 0;
    for row in txn.open_table(SCHEDULE.definition)?.range::<ScheduleKey>(..)? {
        let (world, sport, commence, number) = row?.0.value();
        let event = (world, sport, number);
        count += 1;
        let is_right = rows.events.get(&event) == Some(&commence) || damaged.contains(&event);
        if !is_right || !scheduled.insert(event) {
            let entry = format!("{} at {commence}", rows.names.event(event));
            findings.problem(SCHEDULE.name, entry, "it points to no event");
        }
    }
    for event in rows.events.keys().filter(|event| !scheduled.contains(*event)) {
        findings.problem(EVENTS.name, rows.names.event(*event), "it is not in the schedule");
    }
    Ok(count)
}

pub(super) fn check_coverage(
    txn: &ReadTransaction,
    rows: &mut CheckedRows,
    findings: &mut CheckFindings,
) -> Result<u64, StoreError> {
    let damaged: HashSet<OddsKey, RandomState> = findings.damaged_in(&ODDS).collect();
    let odds = txn.open_table(ODDS.definition)?;
    let mut count = 0;
    for row in txn.open_table(COVERAGE.definition)?.range::<CoverageKey>(..)? {
        let (world, sport, book, event, market) = row?.0.value();
        let record: OddsKey = (world, sport, event, book, market);
        count += 1;
        if rows.open_records.remove(&record) || damaged.contains(&record) {
            continue;
        }
        // Either way it is the index that is wrong, and not the record.
        let (table, reason) = match odds.get(record)? {
            Some(_) => (ODDS.name, "it is closed and in the coverage"),
            None => (COVERAGE.name, "it points to no record"),
        };
        findings.problem(table, rows.names.odds(record), reason);
    }
    for record in &rows.open_records {
        findings.problem(ODDS.name, rows.names.odds(*record), "it is not in the coverage");
    }
    Ok(count)
}

pub(super) fn check_key_order(
    txn: &ReadTransaction,
    rows: &mut CheckedRows,
    findings: &mut CheckFindings,
) -> Result<u64, StoreError> {
    let mut count = 0;
    let mut unordered: BTreeSet<&str> = rows.api_keys.iter().map(String::as_str).collect();
    for row in txn.open_table(KEY_ORDER.definition)?.range::<u64>(..)? {
        unordered.remove(row?.1.value());
        count += 1;
    }
    for id in unordered {
        findings.problem(KEY_ORDER.name, id.to_owned(), "the key is not in the order of issue");
    }
    Ok(count)
}

pub(super) fn rebuild_schedule(txn: &WriteTransaction) -> Result<(), StoreError> {
    let mut schedule = txn.open_table(SCHEDULE.definition)?;
    schedule.retain(|_: ScheduleKey, ()| false)?;
    for row in txn.open_table(EVENTS.definition)?.range::<EventKey>(..)? {
        let (key, row) = row?;
        let key = key.value();
        if let Ok(row) = EVENTS.unseal(&key, row.value()) {
            schedule.insert((key.0, key.1, row.commence, key.2), ())?;
        }
    }
    Ok(())
}

pub(super) fn rebuild_coverage(txn: &WriteTransaction) -> Result<(), StoreError> {
    let mut coverage = txn.open_table(COVERAGE.definition)?;
    coverage.retain(|_: CoverageKey, ()| false)?;
    for row in txn.open_table(ODDS.definition)?.range::<OddsKey>(..)? {
        let (key, row) = row?;
        if ODDS.is_sound(&key.value(), row.value()) && !is_closed_mark(row.value()) {
            coverage.insert(coverage_key(key.value()), ())?;
        }
    }
    Ok(())
}

/// Keeps the order of the keys that exist, and appends those that it lacks.
pub(super) fn rebuild_key_order(txn: &WriteTransaction) -> Result<(), StoreError> {
    let mut ids: BTreeSet<String> = BTreeSet::new();
    for row in txn.open_table(KEYS.definition)?.range::<&str>(..)? {
        ids.insert(row?.0.value().to_owned());
    }
    let mut order = txn.open_table(KEY_ORDER.definition)?;
    order.retain(|_, id| ids.remove(id))?;
    let mut next = order.last()?.map_or(0, |(last, _)| last.value().saturating_add(1));
    for id in &ids {
        order.insert(next, &**id)?;
        next = next.saturating_add(1);
    }
    Ok(())
}
