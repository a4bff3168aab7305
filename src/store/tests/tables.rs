//! The failure that this prevents: a table that a copy, a check or the comparison after a failed commit leaves out.

use std::collections::{BTreeMap, BTreeSet};

use redb::{Key, ReadTransaction, ReadableDatabase, ReadableTableMetadata, TableDefinition, TableHandle, Value};

use super::damage::filled;
use super::*;
use crate::model::{Score, ScoreStatus};
use crate::store::Existing;
use crate::store::row_batch::RowBatch;
use crate::store::rows::StoredRow;
use crate::store::table_keys::TableKey;
use crate::store::tables::{FORMATS, IndexTable, ReferenceKind, Table, TableVisitor, for_each_table, table_names};

/// The rows of every table, as bytes.
#[derive(Debug, Default, PartialEq, Eq)]
struct RawRows(BTreeMap<&'static str, Vec<RawRow>>);

/// Key and value.
type RawRow = (Vec<u8>, Vec<u8>);

struct ReadRaw<'t> {
    txn: &'t ReadTransaction,
    raw: RawRows,
}

impl ReadRaw<'_> {
    fn read<K: Key + 'static, V: Value + 'static>(
        &mut self,
        name: &'static str,
        table: TableDefinition<'static, K, V>,
    ) {
        let rows = self.txn.open_table(table).unwrap();
        let rows = rows.range::<K::SelfType<'_>>(..).unwrap().map(|row| {
            let (key, value) = row.unwrap();
            (K::as_bytes(&key.value()).as_ref().to_vec(), V::as_bytes(&value.value()).as_ref().to_vec())
        });
        assert!(self.raw.0.insert(name, rows.collect()).is_none(), "{name} is listed twice");
    }
}

impl TableVisitor for ReadRaw<'_> {
    type Error = ();

    fn table<K: TableKey, R: StoredRow<K>>(&mut self, table: &Table<K, R>) -> Result<(), ()> {
        self.read(table.name, table.definition);
        Ok(())
    }

    fn index<K: Key + 'static, V: Value + 'static>(&mut self, index: &IndexTable<K, V>) -> Result<(), ()> {
        self.read(index.name, index.definition);
        Ok(())
    }

    fn format_number(&mut self) -> Result<(), ()> {
        self.read("oddsbox", FORMATS);
        Ok(())
    }
}

fn raw_rows(db: &redb::Database) -> RawRows {
    let txn = db.begin_read().unwrap();
    let mut reading = ReadRaw { txn: &txn, raw: RawRows::default() };
    for_each_table(&mut reading).unwrap();
    reading.raw
}

#[test]
fn file_has_exactly_the_tables_of_the_list() {
    let db = filled().raw();
    let txn = db.begin_read().unwrap();
    let stored: BTreeSet<String> = txn.list_tables().unwrap().map(|table| table.name().to_owned()).collect();
    let listed: BTreeSet<String> = table_names().map(str::to_owned).collect();
    assert_eq!(stored, listed);
    let visited: BTreeSet<String> = raw_rows(&db).0.keys().map(|name| (*name).to_owned()).collect();
    assert_eq!(visited, listed);
}

#[test]
fn every_table_is_copied() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("copy.redb");
    let memory = filled();
    memory.open().snapshot(&Arc::default()).unwrap().copy_to(&path, Existing::Refuse).unwrap();
    let original = raw_rows(&memory.raw());
    for (table, rows) in &original.0 {
        assert!(!rows.is_empty(), "{table}: a table without a row proves nothing");
    }
    assert_eq!(raw_rows(&redb::Database::open(&path).unwrap()), original);
}

#[test]
fn every_table_is_checked() {
    let memory = filled();
    let report = memory.open().check().unwrap();
    let counted: BTreeMap<&str, u64> = report.rows.iter().copied().collect();
    let raw = raw_rows(&memory.raw());
    let stored: BTreeMap<&str, u64> = raw.0.iter().map(|(name, rows)| (*name, rows.len() as u64)).collect();
    for name in table_names().filter(|name| *name != "oddsbox") {
        assert_eq!(counted.get(name), stored.get(name), "{name}");
    }
}

/// A batch with one row, for each table that has rows of its own.
struct Batches<'t> {
    raw: &'t RawRows,
    /// By table: the stored row, one that differs, and its removal.
    batches: Vec<(&'static str, [RowBatch; 3])>,
}

impl TableVisitor for Batches<'_> {
    type Error = ();

    fn table<K: TableKey, R: StoredRow<K>>(&mut self, table: &Table<K, R>) -> Result<(), ()> {
        let (key, stored) = &self.raw.0[table.name][0];
        let mut other = stored.clone();
        *other.last_mut().unwrap() ^= 1;
        let batch = |row: Option<&Vec<u8>>| {
            let mut batch = RowBatch::default();
            batch.rows.put(table.name, key, row.cloned());
            if table.name == "keys" && row.is_some() {
                batch.keys_put.push(String::from_utf8(key.clone()).unwrap());
            }
            batch
        };
        self.batches.push((table.name, [batch(Some(stored)), batch(Some(&other)), batch(None)]));
        Ok(())
    }

    fn index<K: Key + 'static, V: Value + 'static>(&mut self, _: &IndexTable<K, V>) -> Result<(), ()> {
        Ok(())
    }
}

#[test]
fn rows_of_every_table_are_committed_and_compared_after_a_failed_commit() {
    let bytes = filled().bytes();
    let raw = raw_rows(&Memory::new(bytes.clone()).raw());
    let mut all = Batches { raw: &raw, batches: Vec::new() };
    for_each_table(&mut all).unwrap();
    for (table, [stored, other, removed]) in all.batches {
        let db = Memory::new(bytes.clone()).raw();
        let is_stored = |batch: &RowBatch| batch.is_stored(&db.begin_read().unwrap(), &[0, 1]).unwrap();
        assert_eq!([is_stored(&stored), is_stored(&other), is_stored(&removed)], [true, false, false], "{table}");
        other.commit(&db, &[0, 1]).unwrap();
        assert_eq!([is_stored(&stored), is_stored(&other), is_stored(&removed)], [false, true, false], "{table}");
        removed.commit(&db, &[0, 1]).unwrap();
        assert_eq!([is_stored(&stored), is_stored(&other), is_stored(&removed)], [false, false, true], "{table}");
    }
}

/// Compares what the rows of each table refer to with what the table declares.
struct References<'t> {
    txn: &'t ReadTransaction,
}

impl TableVisitor for References<'_> {
    type Error = ();

    fn table<K: TableKey, R: StoredRow<K>>(&mut self, table: &Table<K, R>) -> Result<(), ()> {
        let mut found: BTreeSet<ReferenceKind> = BTreeSet::new();
        let rows = self.txn.open_table(table.definition).unwrap();
        assert!(rows.len().unwrap() > 0, "{}", table.name);
        for row in rows.range::<K::SelfType<'_>>(..).unwrap() {
            let (key, value) = row.unwrap();
            let row = table.unseal(&key.value(), value.value()).unwrap();
            row.references(&key.value(), &mut |reference| {
                found.insert(reference.kind());
            });
        }
        assert_eq!(found, table.refers_to.iter().copied().collect(), "{}", table.name);
        Ok(())
    }

    fn index<K: Key + 'static, V: Value + 'static>(&mut self, _: &IndexTable<K, V>) -> Result<(), ()> {
        Ok(())
    }
}

#[test]
fn tables_declare_what_their_rows_refer_to() {
    let memory = filled();
    let winner = Some("a home".into());
    let score = Score { status: ScoreStatus::Final, points: None, periods: [].into(), winner, updated: at(2) };
    let (world, sport) = (World::Live, sport_id(0));
    memory.open().commit(&[Change::PutScore { world, sport, event: event_id("a"), score: Arc::new(score) }]).unwrap();
    let txn = memory.raw().begin_read().unwrap();
    for_each_table(&mut References { txn: &txn }).unwrap();
}
