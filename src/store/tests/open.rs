//! A file that cannot be used is refused with a one-line error, and stays byte for byte what it was.

use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use tempfile::TempDir;

use super::*;
use crate::store::OpenError;
use crate::store::deferred_backend::unfinished_file;
use crate::store::open::create_file;
use crate::store::tables::{FORMAT, FORMAT_KEY, FORMATS};

fn open(path: &Path) -> Result<Store, OpenError> {
    Store::open(path, catalogue(), OPTIONS)
}

/// The error of opening `path`, after checking that it is one line, names the file, and changed nothing.
fn refusal(path: &Path) -> OpenError {
    let before = fs::read(path).ok();
    let error = open(path).unwrap_err();
    assert_eq!(fs::read(path).ok(), before, "the file was changed: {error}");
    let line = error.to_string();
    assert!(!line.contains('\n'), "{line}");
    assert!(line.contains(path.to_str().unwrap()), "{line}");
    error
}

/// A file with something in it, closed properly.
fn closed_file() -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("oddsbox.redb");
    let mut store = open(&path).unwrap();
    fill(&mut store);
    (dir, path)
}

/// A file as a crash leaves it: copied while it was open.
fn crashed_file() -> (TempDir, PathBuf) {
    let (dir, path) = closed_file();
    let crashed = dir.path().join("crashed.redb");
    let mut store = open(&path).unwrap();
    fill(&mut store);
    fs::copy(&path, &crashed).unwrap();
    (dir, crashed)
}

fn fill(store: &mut Store) {
    let ids: Vec<String> = (0..400).map(|number| format!("event{number}")).collect();
    for id in &ids {
        let changes = [put_event(World::Live, id, 1), put_odds(World::Live, id, 0, Market::MONEYLINE)];
        let world = World::Sandbox;
        let sandbox = [put_event(world, id, 1), put_odds(world, id, 1, Market::SPREAD)];
        if id.ends_with('0') {
            store.commit(&[changes, sandbox].concat()).unwrap();
        }
    }
}

#[test]
fn directory_and_file_are_made_for_their_owner_only() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("var/data/oddsbox.redb");
    drop(open(&path).unwrap());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(mode(path.parent().unwrap().parent().unwrap()), 0o700);
}

#[test]
fn an_empty_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("oddsbox.redb");
    File::create(&path).unwrap();
    let error = refusal(&path);
    assert!(matches!(error, OpenError::Empty { .. }), "{error}");
    assert!(matches!(Store::open_or_inspect(&path, catalogue(), OPTIONS), Err(OpenError::Empty { .. })));
    assert!(error.to_string().contains("oddsbox restore"), "{error}");
    fs::remove_file(&path).unwrap();
    assert!(open(&path).unwrap().check().unwrap().is_clean());
}

#[test]
fn unfinished_file_is_not_empty_and_is_created_again() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("oddsbox.redb");
    create_file(&path).unwrap();
    assert!(fs::metadata(&path).unwrap().len() > 0);
    // A second process that begins the same file changes nothing.
    fill(&mut open(&path).unwrap());
    let whole = fs::read(&path).unwrap();
    create_file(&path).unwrap();
    assert_eq!(fs::read(&path).unwrap(), whole);
    let names: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["oddsbox.redb"]);
    assert!(open(&path).unwrap().check().unwrap().is_clean());
}

#[test]
fn interrupted_creation_never_leaves_an_empty_file() {
    // From one that was only begun, and from one whose first making got half way.
    let half_made = Memory::new(unfinished_file());
    half_made.fail_after(6);
    assert!(half_made.open_with(&catalogue()).is_err());
    for begun in [unfinished_file(), half_made.bytes()] {
        for writes in 0..WRITES_MAX {
            let attempt = Memory::new(begun.clone());
            attempt.fail_after(writes);
            if attempt.open_with(&catalogue()).is_ok() {
                assert!(writes > 5);
                break;
            }
            assert!(!attempt.bytes().is_empty(), "after {writes} writes");
            assert!(Memory::new(attempt.bytes()).open().check().unwrap().is_clean(), "after {writes} writes");
            attempt.lose_unsynced();
            assert!(Memory::new(attempt.bytes()).open().check().unwrap().is_clean(), "after {writes} writes, unsynced");
        }
    }
}

#[test]
fn file_whose_creation_was_interrupted_is_created_again() {
    let mut writes = 0;
    loop {
        assert!(writes < WRITES_MAX);
        let attempt = Memory::new(Vec::new());
        attempt.fail_after(writes);
        let opened = attempt.open_with(&catalogue());
        if opened.is_ok() {
            break;
        }
        for lose_unsynced in [false, true] {
            let left = Memory::new(attempt.bytes());
            if lose_unsynced {
                attempt.lose_unsynced();
                *left.0.now.lock().unwrap() = attempt.bytes();
            }
            assert!(left.open().check().unwrap().is_clean(), "after {writes} writes");
        }
        writes += 1;
    }
    assert!(writes > 5);
}

#[test]
fn file_of_another_kind_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("oddsbox.redb");
    for garbage in [vec![0; 1], vec![0; 100_000], b"SQLite format 3\0".repeat(300), vec![0xAA; 4096], b"redx".into()] {
        fs::write(&path, garbage).unwrap();
        assert!(matches!(refusal(&path), OpenError::NotOurs { .. }));
    }
}

#[test]
fn redb_file_of_another_program_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("other.redb");
    let db = redb::Database::create(&path).unwrap();
    let txn = db.begin_write().unwrap();
    txn.open_table(redb::TableDefinition::<u64, u64>::new("theirs")).unwrap().insert(1, 2).unwrap();
    txn.commit().unwrap();
    drop(db);
    assert!(matches!(refusal(&path), OpenError::NotOurs { .. }));
}

#[test]
fn newer_format_is_refused() {
    let (_dir, path) = closed_file();
    let db = redb::Database::open(&path).unwrap();
    let txn = db.begin_write().unwrap();
    txn.open_table(FORMATS).unwrap().insert(FORMAT_KEY, FORMAT + 1).unwrap();
    txn.commit().unwrap();
    drop(db);
    let error = refusal(&path);
    let OpenError::NewerFormat { found, known, .. } = error else { panic!("{error}") };
    assert_eq!((found, known), (FORMAT + 1, FORMAT));
}

#[test]
fn truncated_file_is_refused_whether_it_was_closed_or_crashed() {
    for (kind, (_dir, path)) in [("closed", closed_file()), ("crashed", crashed_file())] {
        let whole = fs::read(&path).unwrap();
        let len = whole.len();
        let lengths =
            [1, 4, 9, 100, 319, 320, 4095, 4096, 8192, len / 4096 / 2 * 4096, len / 2 + 1, len - 4096, len - 1];
        for length in lengths {
            fs::write(&path, &whole[..length]).unwrap();
            let error = refusal(&path);
            assert!(matches!(error, OpenError::Damaged { .. }), "{kind}, {length} of {len}: {error}");
        }
        fs::write(&path, &whole).unwrap();
        assert!(open(&path).unwrap().check().unwrap().is_clean(), "{kind}");
    }
}

#[test]
fn ruined_header_is_refused() {
    let (_dir, path) = closed_file();
    let whole = fs::read(&path).unwrap();
    for range in [9..12, 12..16, 20..24, 64..320] {
        let mut ruined = whole.clone();
        ruined[range].fill(0xFF);
        fs::write(&path, ruined).unwrap();
        let error = refusal(&path);
        assert!(matches!(error, OpenError::Damaged { .. }), "{error}");
    }
}

#[test]
fn open_waits_for_a_file_in_use() {
    let (_dir, path) = closed_file();
    let store = open(&path).unwrap();
    let waiting = StoreOptions { wait_for_lock: Duration::from_millis(150), ..OPTIONS };
    let began = Instant::now();
    let error = Store::open(&path, catalogue(), waiting).unwrap_err();
    assert!(matches!(error, OpenError::InUse { .. }), "{error}");
    assert!(began.elapsed() >= Duration::from_millis(150));
    assert!(matches!(refusal(&path), OpenError::InUse { .. }));

    let patient = StoreOptions { wait_for_lock: Duration::from_secs(20), ..OPTIONS };
    let waiter = std::thread::spawn({
        let path = path.clone();
        move || Store::open(&path, catalogue(), patient).map(|_| ())
    });
    std::thread::sleep(Duration::from_millis(100));
    drop(store);
    waiter.join().unwrap().unwrap();
}

#[test]
fn errors_distinguish_directories_from_wrong_paths() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(refusal(dir.path()), OpenError::IsADirectory { .. }));
    let file = dir.path().join("file");
    fs::write(&file, "text").unwrap();
    assert!(matches!(refusal(&file.join("oddsbox.redb")), OpenError::NotADirectory { .. }));
    assert!(matches!(refusal(&file.join("deep/oddsbox.redb")), OpenError::NotADirectory { .. }));
    assert!(matches!(refusal(Path::new("/dev/null")), OpenError::NotOurs { .. }));
}

#[test]
fn missing_permission_is_reported() {
    // Nobody can create a directory there, not even root, as which the tests run in a container.
    if Path::new("/sys/kernel").exists() {
        assert!(matches!(refusal(Path::new("/sys/kernel/oddsbox/oddsbox.redb")), OpenError::Permission { .. }));
    }
    let (_dir, path) = closed_file();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    if File::open(&path).is_err() {
        assert!(matches!(open(&path).unwrap_err(), OpenError::Permission { .. }));
    }
    let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
    assert!(matches!(OpenError::from_io("x", denied), OpenError::Permission { .. }));
}

#[test]
fn store_is_send() {
    fn is_send<T: Send>() {}
    is_send::<Store>();
}

#[test]
fn reopening_never_creates_a_file() {
    let (_dir, path) = closed_file();
    let mut store = open(&path).unwrap();
    fs::remove_file(&path).unwrap();
    assert!(matches!(store.reopen().unwrap_err(), OpenError::Gone { .. }));
    assert!(!path.exists());
    assert!(store.commit(&[put_event(World::Live, "a", 1)]).unwrap_err().needs_reopen());
}
