//! The check: every row of every table is read, every reference followed, every index compared with its rows, and
//! redb is asked about its own pages.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::RangeFull;
use std::sync::Arc;

use foldhash::fast::RandomState;
use redb::{DatabaseError, Key, ReadTransaction, ReadableDatabase, ReadableTableMetadata, TableDefinition, Value};

use super::called::Known;
use super::codec::{Flaw, PollRow, Row};
use super::error::{DamageList, StoreError};
use super::handle::Store;
use super::names::NamesByNumber;
use super::progress::Progress;
use super::scan::{guarded, scan_telling};
use super::tables::{
    AUDIT, BOOKS, BUDGETS, CATALOGUE, COVERAGE, CoverageKey, EVENTS, EventKey, FEEDERS, KEY_ORDER, KEYS, META,
    META_MAINTENANCE, NAMES, ODDS, OddsKey, POLLS, SCHEDULE, SCORES, SOURCES, SPORTS, ScheduleKey, Table, USAGE,
    coverage_key, describe_world, meta_use_of, world_of,
};
use crate::model::Market;
use crate::model::sport::is_key;

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// Each table with the number of its rows.
    pub rows: Vec<(&'static str, u64)>,
    pub problems: DamageList,
    pub integrity: Integrity,
}

/// What redb says of its own pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Integrity {
    Sound,
    /// Something was wrong that redb could put right.
    Repaired,
    /// The file must be restored from a backup.
    Broken(String),
    /// It was not asked, as others were using the file.
    Unchecked,
}

impl CheckReport {
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty() && matches!(self.integrity, Integrity::Sound | Integrity::Unchecked)
    }
}

impl Store {
    /// Checks the whole file. After [`Integrity::Broken`] it takes no writes before a [`Store::reopen`].
    pub fn check(&mut self) -> Result<CheckReport, StoreError> {
        self.check_telling(&Arc::default())
    }

    /// The same, while somebody watches.
    pub fn check_telling(&mut self, progress: &Arc<Progress>) -> Result<CheckReport, StoreError> {
        let found = self.reading(|_, file| checked(&file.db.begin_read()?, progress))?;
        if self.is_looked_into() {
            let integrity = Integrity::Broken("its pages are not as they were written".to_owned());
            return Ok(CheckReport { rows: found.rows, problems: found.problems, integrity });
        }
        self.break_off_readings();
        let db = &mut self.file_mut()?.db;
        let looked = guarded(|| match db.check_integrity() {
            // A reading that was broken off has not let go of the file yet.
            Err(DatabaseError::TransactionInProgress) => Ok(Integrity::Unchecked),
            Ok(is_sound) => Ok(if is_sound { Integrity::Sound } else { Integrity::Repaired }),
            Err(error) => Err(StoreError::from(error)),
        });
        let integrity = match looked {
            Ok(integrity) => integrity,
            Err(error) => {
                self.stop_writing();
                Integrity::Broken(error.to_string())
            }
        };
        Ok(CheckReport { rows: found.rows, problems: found.problems, integrity })
    }
}

/// What reading every row found.
#[derive(Debug, Default)]
pub(super) struct Found {
    pub(super) rows: Vec<(&'static str, u64)>,
    pub(super) problems: DamageList,
    /// The rows that are wrong, by table and key, as many as are dropped in one go.
    pub(super) damaged: Vec<(&'static str, Vec<u8>)>,
    /// Whether a page could not be read: nothing is known of what is behind it.
    pub(super) has_ruined_page: bool,
    progress: Arc<Progress>,
}

/// As many damaged rows as are noted for dropping at a time.
const DAMAGED_MAX: usize = 100_000;

/// Reads every row. A ruined page ends the reading, not the report.
pub(super) fn checked(txn: &ReadTransaction, progress: &Arc<Progress>) -> Result<Found, StoreError> {
    let mut checker = Checker::default();
    checker.found.progress = Arc::clone(progress);
    match guarded(|| checker.walk(txn)) {
        Err(StoreError::Damaged(reason)) => {
            checker.found.problems.add("file", "a page".to_owned(), reason);
            checker.found.has_ruined_page = true;
        }
        walked => walked?,
    }
    Ok(checker.found)
}

impl Found {
    /// The keys of a table's rows that are wrong.
    fn damaged_in<K, R>(&self, table: &Table<K, R>) -> impl Iterator<Item = K>
    where
        K: for<'k> Key<SelfType<'k> = K> + 'static,
    {
        let name = table.name;
        self.damaged.iter().filter(move |(held, _)| *held == name).map(|(_, key)| K::from_bytes(key))
    }

    /// Reads a table, and notes what is wrong in the words of `name`.
    fn scan<K: Key + 'static, R: Row>(
        &mut self,
        table: &Table<K, R>,
        txn: &ReadTransaction,
        name: impl Fn(&K::SelfType<'_>) -> String,
        mut each: impl FnMut(K::SelfType<'_>, R) -> Result<(), Flaw>,
    ) -> Result<(), StoreError> {
        let Found { problems, damaged, progress, .. } = self;
        let mut broken_off = Ok(());
        let count = scan_telling::<K, R>(
            table,
            txn,
            RangeFull,
            |key, row| {
                broken_off = progress.step();
                each(key, row)
            },
            |key, flaw| {
                problems.add(table.name, name(key), flaw);
                if damaged.len() < DAMAGED_MAX {
                    damaged.push((table.name, K::as_bytes(key).as_ref().to_vec()));
                }
                progress.step()
            },
        )?;
        broken_off?;
        self.rows.push((table.name, count));
        Ok(())
    }
}

#[derive(Default)]
struct Checker {
    found: Found,
    names: NamesByNumber,
    known: Known,
    /// With their commence times.
    events: HashMap<EventKey, u32, RandomState>,
}

impl Checker {
    fn walk(&mut self, txn: &ReadTransaction) -> Result<(), StoreError> {
        self.found.progress.expect(sealed_rows(txn)?);
        self.meta(txn)?;
        self.catalogue(txn)?;
        self.events(txn)?;
        self.schedule(txn)?;
        self.scores(txn)?;
        self.odds(txn)?;
        self.sources(txn)?;
        self.keys(txn)
    }

    fn meta(&mut self, txn: &ReadTransaction) -> Result<(), StoreError> {
        self.found.scan(&META, txn, META.describe, |key, row| match meta_use_of(key) {
            Some(feeder) => feeder.and_then(|_| row.feeder_use().map(|_| ())),
            None if key == META_MAINTENANCE => row.maintenance().map(|_| ()),
            None => Ok(()),
        })?;
        self.found.scan(&CATALOGUE, txn, CATALOGUE.describe, |_, _| Ok(()))?;
        self.found.scan(&AUDIT, txn, AUDIT.describe, |_, _| Ok(()))
    }

    fn catalogue(&mut self, txn: &ReadTransaction) -> Result<(), StoreError> {
        let Checker { found, known: Known { sports, books, .. }, .. } = self;
        found.scan(&SPORTS, txn, SPORTS.describe, |number, row| {
            let is_one = is_key(&row.key);
            sports.insert(number, row.key);
            if is_one { Ok(()) } else { Err(Flaw::Invalid("its key is not one")) }
        })?;
        found.scan(&BOOKS, txn, BOOKS.describe, |key, row| {
            books.insert(key, row.key.clone());
            known_world(key.0)?;
            row.bookmaker().map(|_| ())
        })?;
        let names = &mut self.names;
        self.found.scan(&NAMES, txn, NAMES.describe, |number, row| {
            names.insert(number, row.0);
            Ok(())
        })
    }

    fn events(&mut self, txn: &ReadTransaction) -> Result<(), StoreError> {
        let Checker { found, names, known: Known { sports, event_ids, .. }, events } = self;
        let sport = |number| sports.get(&number).cloned().unwrap_or_else(|| format!("sport number {number}"));
        let name = |key: &EventKey| format!("{} {} event number {}", describe_world(key.0), sport(key.1), key.2);
        found.scan(&EVENTS, txn, name, |key, row| {
            known_world(key.0)?;
            known(sports.contains_key(&key.1), "its sport is missing")?;
            row.owner(names)?;
            let event = row.event(names)?;
            event_ids.insert(key, event.id.as_str().into());
            events.insert(key, event.commence.unix());
            Ok(())
        })
    }

    fn schedule(&mut self, txn: &ReadTransaction) -> Result<(), StoreError> {
        let Checker { found, known, events, .. } = self;
        // The index cannot be held against a row that says nothing.
        let damaged: HashSet<EventKey, RandomState> = found.damaged_in(&EVENTS).collect();
        let mut scheduled: HashSet<EventKey, RandomState> = HashSet::default();
        let mut count = 0;
        for row in txn.open_table(SCHEDULE)?.range::<ScheduleKey>(..)? {
            let key = row?.0.value();
            let event = (key.0, key.1, key.3);
            count += 1;
            let is_right = events.get(&event) == Some(&key.2) || damaged.contains(&event);
            if !is_right || !scheduled.insert(event) {
                found.problems.add("schedule", format!("{} at {}", known.event(event), key.2), "it points to no event");
            }
        }
        found.rows.push(("schedule", count));
        for event in events.keys().filter(|event| !scheduled.contains(*event)) {
            found.problems.add(EVENTS.name, known.event(*event), "it is not in the schedule");
        }
        Ok(())
    }

    fn scores(&mut self, txn: &ReadTransaction) -> Result<(), StoreError> {
        let Checker { found, names, known: called, events } = self;
        found.scan(
            &SCORES,
            txn,
            |key| called.event(*key),
            |key, row| {
                known(events.contains_key(&key), "its event is missing")?;
                row.score(names).map(|_| ())
            },
        )
    }

    fn odds(&mut self, txn: &ReadTransaction) -> Result<(), StoreError> {
        let Checker { found, names, known: called, events } = self;
        let mut coverage: HashSet<CoverageKey, RandomState> = HashSet::default();
        for row in txn.open_table(COVERAGE)?.range::<CoverageKey>(..)? {
            coverage.insert(row?.0.value());
        }
        found.rows.push(("coverage", coverage.len() as u64));
        let mut uncovered: Vec<(OddsKey, &str)> = Vec::new();
        found.scan(
            &ODDS,
            txn,
            |key| called.odds(*key),
            |key: OddsKey, row| {
                let is_covered = coverage.remove(&coverage_key(key));
                known(events.contains_key(&(key.0, key.1, key.2)), "its event is missing")?;
                known(called.books.contains_key(&(key.0, key.3)), "its bookmaker is missing")?;
                known(Market::from_index(usize::from(key.4)).is_some(), "its market is unknown")?;
                // The index is wrong then, and not the record.
                match (!row.outcomes(names)?.is_empty(), is_covered) {
                    (false, true) => uncovered.push((key, "it is closed and stands in the coverage")),
                    (true, false) => uncovered.push((key, "it is not in the coverage")),
                    _ => {}
                }
                Ok(())
            },
        )?;
        // The index cannot be held against a row that says nothing.
        for key in found.damaged_in(&ODDS) {
            coverage.remove(&coverage_key(key));
        }
        for (key, reason) in uncovered {
            found.problems.add(ODDS.name, called.odds(key), reason);
        }
        for (world, sport, book, event, market) in coverage {
            found.problems.add("coverage", called.odds((world, sport, event, book, market)), "it points to no record");
        }
        Ok(())
    }

    fn sources(&mut self, txn: &ReadTransaction) -> Result<(), StoreError> {
        let Checker { found, known: called, .. } = self;
        found.scan(
            &SOURCES,
            txn,
            |key| called.source(*key),
            |key, _| {
                known(called.sports.contains_key(&key.1), "its sport is missing")?;
                known(called.books.contains_key(&(key.0, key.2)), "its bookmaker is missing")
            },
        )?;
        found.scan(&POLLS, txn, POLLS.describe, |(world, _, event), row| {
            known_world(world)?;
            known(matches!(row, PollRow::Scope { .. }) == event.is_empty(), "it is not what its key says")
        })
    }

    fn keys(&mut self, txn: &ReadTransaction) -> Result<(), StoreError> {
        let mut ids: BTreeSet<String> = BTreeSet::new();
        self.found.scan(&KEYS, txn, KEYS.describe, |id, row| {
            row.key(id)?;
            ids.insert(id.to_owned());
            Ok(())
        })?;
        self.found.scan(&FEEDERS, txn, FEEDERS.describe, |name, row| row.feeder(name).map(|_| ()))?;
        self.found.scan(&BUDGETS, txn, BUDGETS.describe, |_, _| Ok(()))?;
        self.found.scan(&USAGE, txn, USAGE.describe, |id, _| known(ids.contains(id), "its key is missing"))?;
        let mut count = 0;
        for row in txn.open_table(KEY_ORDER)?.range::<u64>(..)? {
            ids.remove(row?.1.value());
            count += 1;
        }
        self.found.rows.push(("key_order", count));
        for id in ids {
            self.found.problems.add("key_order", id, "the key is not in the order of issue");
        }
        Ok(())
    }
}

/// How many rows there are to be read.
fn sealed_rows(txn: &ReadTransaction) -> Result<u64, StoreError> {
    fn rows<K: Key, V: Value>(txn: &ReadTransaction, table: TableDefinition<'_, K, V>) -> Result<u64, StoreError> {
        Ok(txn.open_table(table)?.len()?)
    }
    let small = rows(txn, META.definition)?
        + rows(txn, CATALOGUE.definition)?
        + rows(txn, SPORTS.definition)?
        + rows(txn, BOOKS.definition)?
        + rows(txn, SOURCES.definition)?
        + rows(txn, POLLS.definition)?
        + rows(txn, FEEDERS.definition)?
        + rows(txn, BUDGETS.definition)?
        + rows(txn, KEYS.definition)?
        + rows(txn, USAGE.definition)?
        + rows(txn, AUDIT.definition)?;
    let large = rows(txn, NAMES.definition)?
        + rows(txn, EVENTS.definition)?
        + rows(txn, SCORES.definition)?
        + rows(txn, ODDS.definition)?;
    Ok(small + large)
}

fn known(is_known: bool, otherwise: &'static str) -> Result<(), Flaw> {
    if is_known { Ok(()) } else { Err(Flaw::Invalid(otherwise)) }
}

fn known_world(number: u8) -> Result<(), Flaw> {
    known(world_of(number).is_some(), "its world is unknown")
}
