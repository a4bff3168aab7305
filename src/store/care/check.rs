//! The check: every row of every table is read, every reference followed, every index compared with its rows, and
//! redb is asked about its own pages.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use foldhash::fast::RandomState;
use redb::{Database, DatabaseError, Key, ReadTransaction, ReadableDatabase, ReadableTableMetadata, Value};

use super::row_names::RowNames;
use super::snapshot::Progress;
use crate::store::codec::Flaw;
use crate::store::error::{DamageList, StoreError};
use crate::store::guard::guarded;
use crate::store::handle::Store;
use crate::store::rows::{Definition, StoredRow};
use crate::store::table_keys::{EventKey, OddsKey, TableKey, world_of};
use crate::store::tables::{IndexTable, RowReference, Table, TableVisitor, for_each_table};

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckReport {
    /// Each table with the number of its rows.
    pub rows: Vec<(&'static str, u64)>,
    pub problems: DamageList,
    pub integrity: Integrity,
}

/// What redb reports about its own pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Integrity {
    Sound,
    /// redb found something wrong and repaired it.
    Repaired,
    /// The file must be restored from a backup.
    Broken(String),
    /// Not checked, because others were using the file.
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
        self.check_with_progress(&Arc::default())
    }

    pub fn check_with_progress(&mut self, progress: &Arc<Progress>) -> Result<CheckReport, StoreError> {
        let found = self.reading(|_, file| check_rows(&file.db.begin_read()?, progress))?;
        if self.is_inspected() {
            let integrity = Integrity::Broken("its pages are not as they were written".to_owned());
            return Ok(CheckReport { rows: found.rows, problems: found.problems, integrity });
        }
        self.cancel_snapshots();
        self.close_history();
        let db = Arc::get_mut(&mut self.file_mut()?.db);
        let checked =
            guarded(|| match db.map_or(Err(DatabaseError::TransactionInProgress), Database::check_integrity) {
                // A cancelled reading has not released the file yet.
                Err(DatabaseError::TransactionInProgress) => Ok(Integrity::Unchecked),
                Ok(is_sound) => Ok(if is_sound { Integrity::Sound } else { Integrity::Repaired }),
                Err(error) => Err(StoreError::from(error)),
            });
        let integrity = match checked {
            Ok(integrity) => integrity,
            Err(error) => {
                self.stop_writing();
                Integrity::Broken(error.to_string())
            }
        };
        self.open_history();
        Ok(CheckReport { rows: found.rows, problems: found.problems, integrity })
    }
}

/// What reading every row found.
#[derive(Debug, Default)]
pub(in crate::store) struct CheckFindings {
    pub(in crate::store) rows: Vec<(&'static str, u64)>,
    pub(in crate::store) problems: DamageList,
    /// The damaged rows by table and key, as many as are dropped at a time.
    pub(in crate::store) damaged: Vec<(&'static str, Vec<u8>)>,
    /// Whether a page could not be read: the rows behind it are unknown.
    pub(in crate::store) has_ruined_page: bool,
}

/// The most damaged rows that are remembered for dropping at a time.
const DAMAGED_MAX: usize = 100_000;

impl CheckFindings {
    /// The keys of a table's damaged rows.
    pub(in crate::store) fn damaged_in<K, R>(&self, table: &Table<K, R>) -> impl Iterator<Item = K>
    where
        K: TableKey + for<'k> Key<SelfType<'k> = K>,
    {
        let name = table.name;
        self.damaged.iter().filter(move |(table, _)| *table == name).map(|(_, key)| K::from_bytes(key))
    }

    pub(in crate::store) fn problem(&mut self, table: &'static str, row: String, reason: &'static str) {
        self.problems.add(table, row, reason);
    }
}

/// What the rows read so far define, for the rows that refer to them and for the indexes.
#[derive(Debug, Default)]
pub(in crate::store) struct CheckedRows {
    pub(in crate::store) names: RowNames,
    /// With their commence times.
    pub(in crate::store) events: HashMap<EventKey, u32, RandomState>,
    pub(in crate::store) open_records: HashSet<OddsKey, RandomState>,
    pub(in crate::store) api_keys: BTreeSet<String>,
}

/// Reads every row. A ruined page ends the reading, not the report.
pub(in crate::store) fn check_rows(txn: &ReadTransaction, progress: &Progress) -> Result<CheckFindings, StoreError> {
    let mut counter = RowCounter { txn, rows: 0 };
    let mut checker = Checker { txn, progress, findings: CheckFindings::default(), checked: CheckedRows::default() };
    let walked = guarded(|| {
        for_each_table(&mut counter)?;
        progress.expect(counter.rows);
        for_each_table(&mut checker)
    });
    let mut findings = checker.findings;
    match walked {
        Err(StoreError::Damaged(reason)) => {
            findings.problems.add("file", "a page".to_owned(), reason);
            findings.has_ruined_page = true;
        }
        walked => walked?,
    }
    Ok(findings)
}

/// Counts the rows that a check reads; those of indexes do not count.
struct RowCounter<'t> {
    txn: &'t ReadTransaction,
    rows: u64,
}

impl TableVisitor for RowCounter<'_> {
    type Error = StoreError;

    fn table<K: TableKey, R: StoredRow<K>>(&mut self, table: &Table<K, R>) -> Result<(), StoreError> {
        self.rows += self.txn.open_table(table.definition)?.len()?;
        Ok(())
    }

    fn index<K: Key + 'static, V: Value + 'static>(&mut self, _: &IndexTable<K, V>) -> Result<(), StoreError> {
        Ok(())
    }
}

struct Checker<'t> {
    txn: &'t ReadTransaction,
    progress: &'t Progress,
    findings: CheckFindings,
    checked: CheckedRows,
}

impl TableVisitor for Checker<'_> {
    type Error = StoreError;

    fn table<K: TableKey, R: StoredRow<K>>(&mut self, table: &Table<K, R>) -> Result<(), StoreError> {
        let mut count = 0;
        for entry in self.txn.open_table(table.definition)?.range::<K::SelfType<'_>>(..)? {
            let (key, value) = entry?;
            count += 1;
            self.progress.step()?;
            let checked = table.unseal(&key.value(), value.value());
            if let Err(flaw) = checked.and_then(|row| self.checked.take(&key.value(), row)) {
                let description = (table.describe)(&key.value(), &self.checked.names);
                self.findings.problems.add(table.name, description, flaw);
                if self.findings.damaged.len() < DAMAGED_MAX {
                    self.findings.damaged.push((table.name, K::as_bytes(&key.value()).as_ref().to_vec()));
                }
            }
        }
        self.findings.rows.push((table.name, count));
        Ok(())
    }

    fn index<K: Key + 'static, V: Value + 'static>(&mut self, index: &IndexTable<K, V>) -> Result<(), StoreError> {
        let count = (index.check)(self.txn, &mut self.checked, &mut self.findings)?;
        self.findings.rows.push((index.name, count));
        Ok(())
    }
}

impl CheckedRows {
    pub(in crate::store) fn describe_line(&self, (world, sport, event): EventKey) -> String {
        self.names.line((world, sport, event, None))
    }

    /// Checks a row against those before it, and remembers what it defines.
    fn take<K: TableKey, R: StoredRow<K>>(&mut self, key: &K::SelfType<'_>, row: R) -> Result<(), Flaw> {
        let definition = row.defines(key);
        // A sport, bookmaker or name that is invalid still exists: the rows that refer to it are not at fault.
        let definition = definition.and_then(|definition| match definition {
            Definition::Sport { number, key } => {
                self.names.sports.insert(number, key);
                None
            }
            Definition::Book { key, name } => {
                self.names.books.insert(key, name);
                None
            }
            Definition::Name { number, text } => {
                self.names.texts.insert(number, text);
                None
            }
            other => Some(other),
        });
        let mut followed = Ok(());
        row.references(key, &mut |reference| {
            if followed.is_ok() {
                followed = self.follow(reference);
            }
        });
        followed?;
        row.validate(key, &self.names.texts)?;
        match definition {
            Some(Definition::Event { key, id, commence }) => {
                self.names.event_ids.insert(key, id.into());
                self.events.insert(key, commence);
            }
            Some(Definition::OpenRecord(key)) => drop(self.open_records.insert(key)),
            Some(Definition::ApiKey(id)) => drop(self.api_keys.insert(id)),
            _ => {}
        }
        Ok(())
    }

    fn follow(&self, reference: RowReference<'_>) -> Result<(), Flaw> {
        let (is_there, otherwise) = match reference {
            RowReference::World(number) => (world_of(number).is_some(), "its world is unknown"),
            RowReference::Sport(number) => (self.names.sports.contains_key(&number), "its sport is missing"),
            RowReference::Event(key) => (self.events.contains_key(&key), "its event is missing"),
            RowReference::Book(key) => (self.names.books.contains_key(&key), "its bookmaker is missing"),
            RowReference::ApiKey(id) => (self.api_keys.contains(id), "its key is missing"),
            // Validation resolves names, and reports the number of one that is missing.
            RowReference::Name(_) | RowReference::BookIfPresent(_) => return Ok(()),
        };
        if is_there { Ok(()) } else { Err(Flaw::Invalid(otherwise)) }
    }
}
