//! redb's file header is not part of its API, and the store reads it to detect truncated and unfinished files. These
//! tests fail if another version of redb lays it out differently, or writes where the store relies on it not to.

use redb::TableDefinition;

use super::damage::filled;
use super::*;
use crate::store::deferred_backend::{DeferredBackend, MAGIC, expected_len, unfinished_file};
use crate::store::open::abandon;

const ROWS: TableDefinition<u64, &[u8]> = TableDefinition::new("rows");

fn expected(bytes: &[u8]) -> u64 {
    expected_len(&Memory::new(bytes.to_vec()), bytes.len() as u64).unwrap()
}

#[test]
fn header_of_a_closed_file_implies_its_length() {
    let memory = Memory::new(Vec::new());
    let mut lengths = Vec::new();
    for rows in [1, 100, 2_000] {
        let db = memory.raw();
        let txn = db.begin_write().unwrap();
        for row in 0..rows {
            txn.open_table(ROWS).unwrap().insert(row, &[7; 4_000][..]).unwrap();
        }
        txn.commit().unwrap();
        drop(db);
        let bytes = memory.bytes();
        assert!(bytes.starts_with(&MAGIC));
        assert_eq!(expected(&bytes), bytes.len() as u64, "{rows} rows");
        lengths.push(bytes.len());
    }
    assert!(lengths[0] != lengths[1] && lengths[1] != lengths[2], "{lengths:?}");
}

#[test]
fn header_of_a_file_in_use_implies_no_more_than_its_length() {
    let memory = filled();
    let mut store = memory.open();
    for number in 0..200 {
        store.commit(&[put_event(World::Live, &format!("event{number}"), 1)]).unwrap();
        let bytes = memory.bytes();
        let expected = expected(&bytes);
        assert!(expected > 4096 && expected <= bytes.len() as u64, "{expected} of {}", bytes.len());
    }
}

#[test]
fn redb_leaves_the_mark_of_our_files_alone() {
    let memory = filled();
    let mark = unfinished_file();
    let offset = mark.iter().position(|byte| *byte != 0).unwrap();
    for _ in 0..3 {
        memory.open().check().unwrap();
        assert_eq!(memory.bytes()[offset..mark.len()], mark[offset..]);
    }
}

#[test]
fn abandoned_database_writes_nothing() {
    let open = |memory: &Memory| {
        let backend = DeferredBackend::new(Box::new(memory.clone()));
        let db = redb::Database::builder().create_with_backend(backend.clone()).unwrap();
        backend.release().unwrap();
        let txn = db.begin_write().unwrap();
        txn.open_table(ROWS).unwrap().insert(1, &b"row"[..]).unwrap();
        txn.commit().unwrap();
        (db, backend)
    };
    let closed = Memory::new(Vec::new());
    let (db, _) = open(&closed);
    let before = closed.bytes();
    drop(db);
    assert_ne!(closed.bytes(), before, "closing a database writes to its file");

    let abandoned = Memory::new(Vec::new());
    let (db, backend) = open(&abandoned);
    let before = abandoned.bytes();
    abandon(db, &backend);
    assert_eq!(abandoned.bytes(), before);
}

#[test]
fn inspection_of_any_file_writes_nothing() {
    let whole = filled().bytes();
    let crashed = {
        let memory = filled();
        let mut store = memory.open();
        store.commit(&[put_event(World::Live, "c", 1)]).unwrap();
        memory.bytes()
    };
    let mut ruined = whole.clone();
    ruined[4096..].fill(0x41);
    for bytes in [whole, crashed, ruined] {
        let memory = Memory::new(bytes.clone());
        if let Ok(mut store) = memory.inspect() {
            let _ = store.check();
        }
        assert_eq!(memory.bytes(), bytes);
    }
}
