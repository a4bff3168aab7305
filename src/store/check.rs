//! The check: every row of every table is read, every reference followed, every index compared with its rows, and
//! redb is asked about its own pages.

use std::collections::{BTreeSet, HashMap, HashSet};

use foldhash::fast::RandomState;
use redb::{ReadTransaction, ReadableDatabase};

use super::codec::Flaw;
use super::error::{DamageList, StoreError};
use super::handle::Store;
use super::names::NamesByNumber;
use super::scan::{guarded, scan};
use super::tables::{
    AUDIT, BOOKS, BookKey, COVERAGE, CoverageKey, EVENTS, EventKey, FEEDERS, KEYS, META, META_MAINTENANCE, NAMES, ODDS,
    OddsKey, SCHEDULE, SCORES, SOURCES, SPORTS, ScheduleKey, USAGE, coverage_key, describe_event, describe_odds,
    describe_schedule, world_number,
};
use crate::model::sport::is_key;
use crate::model::{Market, World};

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
}

impl CheckReport {
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty() && self.integrity == Integrity::Sound
    }
}

impl Store {
    /// Checks the whole file. After [`Integrity::Broken`] it takes no writes before a [`Store::reopen`].
    pub fn check(&mut self) -> Result<CheckReport, StoreError> {
        let mut checker = Checker::default();
        let walked = self.reading(|_, file| checker.walk(&file.db.begin_read()?));
        if let Err(StoreError::Damaged(reason)) = &walked {
            checker.problems.add("file", "a page".to_owned(), reason);
        } else {
            walked?;
        }
        let db = &mut self.file_mut()?.db;
        let integrity = match guarded(|| db.check_integrity().map_err(StoreError::from)) {
            Ok(true) => Integrity::Sound,
            Ok(false) => Integrity::Repaired,
            Err(error) => {
                self.stop_writing();
                Integrity::Broken(error.to_string())
            }
        };
        Ok(CheckReport { rows: checker.rows, problems: checker.problems, integrity })
    }
}

#[derive(Default)]
struct Checker {
    rows: Vec<(&'static str, u64)>,
    problems: DamageList,
    names: NamesByNumber,
    sports: BTreeSet<u16>,
    books: BTreeSet<BookKey>,
    /// With their commence times.
    events: HashMap<EventKey, u32, RandomState>,
}

impl Checker {
    fn walk(&mut self, txn: &ReadTransaction) -> Result<(), StoreError> {
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
        let count = scan(&META, txn, .., &mut self.problems, |key, row| {
            if key == META_MAINTENANCE { row.maintenance().map(|_| ()) } else { Ok(()) }
        })?;
        self.rows.push((META.name, count));
        let count = scan(&AUDIT, txn, .., &mut self.problems, |_, _| Ok(()))?;
        self.rows.push((AUDIT.name, count));
        Ok(())
    }

    fn catalogue(&mut self, txn: &ReadTransaction) -> Result<(), StoreError> {
        let Checker { rows, problems, sports, books, .. } = self;
        let count = scan(&SPORTS, txn, .., problems, |number, row| {
            sports.insert(number);
            if is_key(&row.key) { Ok(()) } else { Err(Flaw::Invalid("its key is not one")) }
        })?;
        rows.push((SPORTS.name, count));
        let count = scan(&BOOKS, txn, .., problems, |key, row| {
            books.insert(key);
            known_world(key.0)?;
            row.bookmaker().map(|_| ())
        })?;
        rows.push((BOOKS.name, count));
        let names_before = problems.count();
        self.names = NamesByNumber::read(txn, problems)?;
        let damaged = problems.count() - names_before;
        rows.push((NAMES.name, self.names.len() + damaged));
        Ok(())
    }

    fn events(&mut self, txn: &ReadTransaction) -> Result<(), StoreError> {
        let Checker { problems, names, sports, events, .. } = self;
        let count = scan(&EVENTS, txn, .., problems, |key, row| {
            known_world(key.0)?;
            known(sports.contains(&key.1), "its sport is missing")?;
            events.insert(key, row.event(names)?.commence.unix());
            Ok(())
        })?;
        self.rows.push((EVENTS.name, count));
        Ok(())
    }

    fn schedule(&mut self, txn: &ReadTransaction) -> Result<(), StoreError> {
        let mut scheduled: HashSet<EventKey, RandomState> = HashSet::default();
        let mut count = 0;
        for row in txn.open_table(SCHEDULE)?.range::<ScheduleKey>(..)? {
            let key = row?.0.value();
            let event = (key.0, key.1, key.3);
            count += 1;
            if self.events.get(&event) != Some(&key.2) || !scheduled.insert(event) {
                self.problems.add("schedule", describe_schedule(key), "it points to no event");
            }
        }
        self.rows.push(("schedule", count));
        for event in self.events.keys().filter(|event| !scheduled.contains(*event)) {
            self.problems.add(EVENTS.name, describe_event(*event), "it is not in the schedule");
        }
        Ok(())
    }

    fn scores(&mut self, txn: &ReadTransaction) -> Result<(), StoreError> {
        let Checker { rows, problems, names, events, .. } = self;
        let count = scan(&SCORES, txn, .., problems, |key, row| {
            known(events.contains_key(&key), "its event is missing")?;
            row.score(names).map(|_| ())
        })?;
        rows.push((SCORES.name, count));
        Ok(())
    }

    fn odds(&mut self, txn: &ReadTransaction) -> Result<(), StoreError> {
        let Checker { rows, problems, names, books, events, .. } = self;
        let mut coverage: HashSet<CoverageKey, RandomState> = HashSet::default();
        for row in txn.open_table(COVERAGE)?.range::<CoverageKey>(..)? {
            coverage.insert(row?.0.value());
        }
        rows.push(("coverage", coverage.len() as u64));
        let count = scan(&ODDS, txn, .., problems, |key: OddsKey, row| {
            let is_covered = coverage.remove(&coverage_key(key));
            known(events.contains_key(&(key.0, key.1, key.2)), "its event is missing")?;
            known(books.contains(&(key.0, key.3)), "its bookmaker is missing")?;
            known(Market::from_index(usize::from(key.4)).is_some(), "its market is unknown")?;
            let is_open = !row.outcomes(names)?.is_empty();
            known(is_open || !is_covered, "it is closed and stands in the coverage")?;
            known(!is_open || is_covered, "it is not in the coverage")
        })?;
        rows.push((ODDS.name, count));
        for (world, sport, book, event, market) in coverage {
            let key = (world, sport, event, book, market);
            problems.add("coverage", describe_odds(key), "it points to no record");
        }
        Ok(())
    }

    fn sources(&mut self, txn: &ReadTransaction) -> Result<(), StoreError> {
        let Checker { rows, problems, sports, books, .. } = self;
        let count = scan(&SOURCES, txn, .., problems, |key, _| {
            known(sports.contains(&key.1), "its sport is missing")?;
            known(books.contains(&(key.0, key.2)), "its bookmaker is missing")
        })?;
        rows.push((SOURCES.name, count));
        Ok(())
    }

    fn keys(&mut self, txn: &ReadTransaction) -> Result<(), StoreError> {
        let mut ids: BTreeSet<String> = BTreeSet::new();
        let count = scan(&KEYS, txn, .., &mut self.problems, |id, row| {
            ids.insert(id.to_owned());
            row.key(id).map(|_| ())
        })?;
        self.rows.push((KEYS.name, count));
        let count = scan(&USAGE, txn, .., &mut self.problems, |id, _| known(ids.contains(id), "its key is missing"))?;
        self.rows.push((USAGE.name, count));
        let count = scan(&FEEDERS, txn, .., &mut self.problems, |name, row| row.feeder(name).map(|_| ()))?;
        self.rows.push((FEEDERS.name, count));
        Ok(())
    }
}

fn known(is_known: bool, otherwise: &'static str) -> Result<(), Flaw> {
    if is_known { Ok(()) } else { Err(Flaw::Invalid(otherwise)) }
}

fn known_world(number: u8) -> Result<(), Flaw> {
    known(World::ALL.map(world_number).contains(&number), "its world is unknown")
}
