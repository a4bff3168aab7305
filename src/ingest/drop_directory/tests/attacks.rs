//! The drop directory against another user who may write in it.

use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt, chown, symlink};
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::{Watched, names};
use crate::ingest::tests::{BOOK, EVENT};
use crate::ingest::{DropDirectory, DropError};
use crate::model::Reason;

fn make_fifo(path: &Path) {
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
}

impl Watched {
    fn unsafe_files(&self) -> u64 {
        let accounts = self.fixture.context.ledger.accounts();
        accounts.iter().map(|(_, account)| account.rejected.get(&Reason::UnsafeFile).copied().unwrap_or(0)).sum()
    }

    fn drop_good(&self, name: &str) {
        fs::write(self.path.join(name), format!("{EVENT}\n{BOOK}\n")).unwrap();
    }
}

#[test]
fn prepared_places_that_are_links_or_foreign_are_refused() {
    for prepared in ["done", "failed"] {
        let scratch = tempfile::tempdir().unwrap();
        let (path, elsewhere) = (scratch.path().join("drop"), scratch.path().join("elsewhere"));
        fs::create_dir(&path).unwrap();
        fs::create_dir(&elsewhere).unwrap();
        symlink(&elsewhere, path.join(prepared)).unwrap();
        let error = DropDirectory::open(&path).unwrap_err();
        assert!(matches!(error, DropError::Unusable { .. }));
        assert!(error.to_string().contains(&format!("{prepared} in it is a link")), "{error}");

        fs::remove_file(path.join(prepared)).unwrap();
        fs::create_dir(path.join(prepared)).unwrap();
        let is_root = fs::metadata(&path).unwrap().uid() == 0;
        // Only root can give a directory away.
        if is_root {
            chown(path.join(prepared), Some(12_345), None).unwrap();
            let error = DropDirectory::open(&path).unwrap_err().to_string();
            assert!(error.contains(&format!("{prepared} in it belongs to another user")), "{error}");
        }
    }
}

#[tokio::test]
async fn place_replaced_by_a_link_while_running_writes_nothing_through_it() {
    let mut watched = Watched::new();
    let path = watched.path.clone();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::remove_dir(path.join("done")).unwrap();
    symlink(elsewhere.path(), path.join("done")).unwrap();
    watched.drop_good("1.ndjson");
    watched.scan_twice().await;
    watched.scan().await;
    assert_eq!(names(elsewhere.path()), [] as [&str; 0]);
    assert_eq!(names(&path), ["1.ndjson", "done", "failed"], "it was taken, and could not be moved away");
    watched.end().await;
}

#[tokio::test]
async fn prepared_report_links_overwrite_nothing() {
    let mut watched = Watched::new();
    let path = watched.path.clone();
    let target = watched.path.join("target");
    fs::write(&target, "precious").unwrap();
    let done = path.join("done");
    symlink(&target, done.join(".report.tmp")).unwrap();
    symlink(&target, done.join("20261114T120000Z-1.ndjson")).unwrap();
    symlink(&target, done.join("20261114T120000Z-2-1.ndjson.report.json")).unwrap();
    watched.drop_good("1.ndjson");
    watched.scan_twice().await;
    assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
    let report = done.join("20261114T120000Z-3-1.ndjson.report.json");
    assert!(fs::symlink_metadata(&report).unwrap().is_file(), "{:?}", names(&done));
    assert!(done.join("20261114T120000Z-3-1.ndjson").is_file());
    watched.end().await;
}

#[tokio::test]
async fn links_pipes_and_hard_links_are_skipped_and_counted_and_other_files_are_taken() {
    let mut watched = Watched::new();
    let path = watched.path.clone();
    let secret = watched.fixture.directory.path().join("secret");
    fs::write(&secret, "{\"secret\":1}\n").unwrap();
    symlink(&secret, path.join("1.ndjson")).unwrap();
    make_fifo(&path.join("2.ndjson"));
    fs::hard_link(&secret, path.join("3.ndjson")).unwrap();
    symlink("/nowhere", path.join("4.json")).unwrap();
    watched.drop_good("5.ndjson");
    for _ in 0..4 {
        watched.scan().await;
    }
    assert_eq!(watched.unsafe_files(), 4, "each is counted once");
    assert_eq!(names(&path), ["1.ndjson", "2.ndjson", "3.ndjson", "4.json", "done", "failed"]);
    assert_eq!(names(&path.join("done")).len(), 2);
    assert_eq!(names(&path.join("failed")), [] as [&str; 0]);
    watched.end().await;
}

#[tokio::test]
async fn files_swapped_between_listing_and_opening_are_not_read() {
    let mut watched = Watched::new();
    let path = watched.path.clone();
    let secret = watched.fixture.directory.path().join("secret");
    fs::write(&secret, "secret\n").unwrap();
    for name in ["1.ndjson", "2.ndjson", "3.ndjson", "4.ndjson"] {
        watched.drop_good(name);
    }
    watched.scan().await;
    let (directory, found) = watched.directory.list().await.unwrap();
    for name in ["1.ndjson", "2.ndjson", "3.ndjson"] {
        fs::remove_file(path.join(name)).unwrap();
    }
    symlink(&secret, path.join("1.ndjson")).unwrap();
    make_fifo(&path.join("2.ndjson"));
    fs::write(path.join("3.ndjson"), "another file\n").unwrap();
    watched.directory.take_listed(&directory, found, &watched.fixture.context).await;
    assert_eq!(watched.unsafe_files(), 2);
    assert_eq!(names(&path), ["1.ndjson", "2.ndjson", "3.ndjson", "done", "failed"]);
    assert!(fs::symlink_metadata(path.join("2.ndjson")).unwrap().file_type().is_fifo());
    assert_eq!(names(&path.join("done")).len(), 2, "the file that was not swapped");
    watched.end().await;
}
