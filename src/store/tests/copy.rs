//! A copy has the state of one moment, or does not exist.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::damage::{filled, flip_last, spoil};
use super::*;
use crate::store::tables::ODDS;
use crate::store::{CopyError, CopyReport, Existing, Integrity, Progress, StoreError};

fn copy(store: &mut Store, path: &Path) -> Result<CopyReport, CopyError> {
    store.snapshot(&Arc::default()).unwrap().copy_to(path, Existing::Refuse)
}

fn names_in(dir: &Path) -> Vec<String> {
    fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn copy_has_the_state_of_its_snapshot() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("copy.redb");
    let memory = filled();
    let mut store = memory.open();
    let before = picture(&store.load().unwrap());
    let progress: Arc<Progress> = Arc::default();
    let snapshot = store.snapshot(&progress).unwrap();
    store.commit(&[put_event(World::Live, "later", 9)]).unwrap();
    let report = snapshot.copy_to(&path, Existing::Refuse).unwrap();
    assert_eq!((report.damaged, report.bytes), (0, fs::metadata(&path).unwrap().len()));
    assert_eq!(progress.rows(), (report.rows * 2, report.rows * 2), "written and read back");
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(names_in(dir.path()), ["copy.redb"]);

    let mut copied = Store::open(&path, catalogue(), OPTIONS).unwrap();
    assert_eq!(picture(&copied.load().unwrap()), before);
    assert_eq!(copied.audit(None, 10).unwrap(), store.audit(None, 10).unwrap());
    let checked = copied.check().unwrap();
    assert!(checked.is_clean());
    assert_eq!(checked.rows, filled().open().check().unwrap().rows, "of every table");
    copied.commit(&[put_event(World::Live, "later", 9)]).unwrap();
    assert_eq!(picture(&copied.load().unwrap()), picture(&store.load().unwrap()), "it goes on as the file does");
}

#[test]
fn existing_file_is_replaced_only_on_request() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("copy.redb");
    fs::write(&path, "precious").unwrap();
    let memory = filled();
    let mut store = memory.open();
    assert!(matches!(copy(&mut store, &path), Err(CopyError::Exists(_))));
    assert_eq!(fs::read(&path).unwrap(), b"precious");
    store.snapshot(&Arc::default()).unwrap().copy_to(&path, Existing::Replace).unwrap();
    assert!(Store::open(&path, catalogue(), OPTIONS).unwrap().check().unwrap().is_clean());
    assert_eq!(names_in(dir.path()), ["copy.redb"]);
    assert!(matches!(copy(&mut store, &dir.path().join("none/copy.redb")), Err(CopyError::Target { .. })));
}

#[test]
fn damaged_row_is_copied_unchanged_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("copy.redb");
    let memory = filled();
    spoil(&memory, &ODDS, flip_last);
    assert_eq!(copy(&mut memory.open(), &path).unwrap().damaged, 1);
    let report = Store::open(&path, catalogue(), OPTIONS).unwrap().check().unwrap();
    assert_eq!(report.problems.count(), 1);
}

#[test]
fn cancelled_copy_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("copy.redb");
    let memory = filled();
    let mut store = memory.open();
    let progress: Arc<Progress> = Arc::default();
    let snapshot = store.snapshot(&progress).unwrap();
    progress.cancel();
    let error = snapshot.copy_to(&path, Existing::Refuse).unwrap_err();
    assert!(matches!(error, CopyError::Source(StoreError::Cancelled)), "{error}");
    assert!(names_in(dir.path()).is_empty());
    assert!(store.is_writable());
}

#[test]
fn reopening_cancels_snapshots_and_does_not_wait_for_them() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("oddsbox.redb");
    let patient = StoreOptions { wait_for_lock: Duration::from_secs(30), ..OPTIONS };
    let mut store = Store::open(&path, catalogue(), patient).unwrap();
    store.commit(&[put_event(World::Live, "a", 1)]).unwrap();
    let progress: Arc<Progress> = Arc::default();
    let snapshot = store.snapshot(&progress).unwrap();
    let reading = std::thread::spawn({
        let copy = dir.path().join("copy.redb");
        move || {
            while progress.rows().1 == 0 && !progress.is_cancelled() {
                std::thread::yield_now();
            }
            snapshot.copy_to(&copy, Existing::Refuse)
        }
    });
    store.reopen().unwrap();
    assert!(matches!(reading.join().unwrap(), Err(CopyError::Source(StoreError::Cancelled))));
    store.commit(&[put_event(World::Live, "b", 1)]).unwrap();
}

#[test]
fn check_of_a_snapshot_finds_the_same_as_a_whole_check() {
    let memory = filled();
    spoil(&memory, &ODDS, flip_last);
    let mut store = memory.open();
    let whole = store.check().unwrap();
    let snapshot = store.snapshot(&Arc::default()).unwrap();
    store.commit(&[put_event(World::Live, "later", 9)]).unwrap();
    let beside = snapshot.check().unwrap();
    assert_eq!((&beside.rows, &beside.problems), (&whole.rows, &whole.problems));
    assert_eq!(beside.integrity, Integrity::Unchecked);
    let listed = beside.problems.listed();
    assert_eq!(listed[0].key, "live mma event a bookmaker unibet moneyline");
}
