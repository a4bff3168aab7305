//! The drop directory, scanned explicitly on a manual clock.

mod attacks;

use std::fs;
use std::path::Path;
use std::time::Duration;

use super::{DropDirectory, DropError};
use crate::ingest::tests::{BOOK, EVENT, Fixture, odds};
use crate::model::World;

struct Watched {
    fixture: Fixture,
    directory: DropDirectory,
    path: std::path::PathBuf,
}

impl Watched {
    fn new() -> Self {
        let fixture = Fixture::new();
        let path = fixture.directory.path().join("drop");
        fs::create_dir(&path).unwrap();
        let directory = DropDirectory::open(&path).unwrap();
        Watched { fixture, directory, path }
    }

    async fn scan(&mut self) {
        self.directory.scan(&self.fixture.context).await;
    }

    /// A file is first seen, then found unchanged.
    async fn scan_twice(&mut self) {
        self.scan().await;
        self.scan().await;
    }

    fn records(&self) -> usize {
        self.fixture.context.boards.load(World::Live).record_count()
    }

    async fn end(self) {
        self.fixture.end().await;
    }
}

fn names(path: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn report(path: &Path) -> serde_json::Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

#[tokio::test]
async fn files_are_taken_in_order_once_complete_and_put_away_with_a_report() {
    let mut watched = Watched::new();
    let path = watched.path.clone();
    // The second needs what the first declares.
    fs::write(path.join("2.ndjson"), odds("e1", "1.9", 1) + "\nnonsense\n").unwrap();
    fs::write(path.join("1.ndjson"), format!("{EVENT}\n{BOOK}\n")).unwrap();
    fs::write(path.join(".3.ndjson"), "not yet").unwrap();
    fs::write(path.join("4.ndjson.tmp"), "not yet").unwrap();
    fs::create_dir(path.join("5.ndjson")).unwrap();
    watched.scan().await;
    assert_eq!(watched.records(), 0, "seen once, and perhaps still growing");
    fs::write(path.join("2.ndjson"), odds("e1", "1.9", 1) + "\nnonsense\n\n").unwrap();
    watched.scan().await;
    assert_eq!(names(&path), [".3.ndjson", "2.ndjson", "4.ndjson.tmp", "5.ndjson", "done", "failed"]);
    watched.scan().await;
    assert_eq!((watched.records(), names(&path.join("failed")).len()), (1, 0));
    let done = names(&path.join("done"));
    let kept = ["1.ndjson", "1.ndjson.report.json", "2.ndjson", "2.ndjson.report.json"];
    assert_eq!(done, kept.map(|name| format!("20261114T120000Z-{name}")));
    let reported = report(&path.join("done").join(&done[3]));
    assert_eq!((reported["file"].as_str().unwrap(), &reported["report"]["accepted"]), ("2.ndjson", &1.into()));
    assert_eq!(reported["report"]["rejected_by_reason"]["bad_json"], 1);
    let account = &watched.fixture.context.ledger.accounts()[0];
    assert_eq!((&*account.0, account.1.accepted), ("drop", 3));
    watched.end().await;
}

#[tokio::test]
async fn a_file_of_which_nothing_can_be_taken_is_kept_apart() {
    let mut watched = Watched::new();
    let path = watched.path.clone();
    for round in 0..2 {
        fs::write(path.join("wrong.ndjson"), "[1]\n[2]\n").unwrap();
        watched.scan_twice().await;
        assert_eq!(names(&path.join("failed")).len(), 2 * (round + 1), "a name may come again");
    }
    let failed = names(&path.join("failed"));
    assert_eq!(report(&path.join("failed").join(&failed[3]))["report"]["rejected"], 2);
    fs::write(path.join("empty.ndjson"), "").unwrap();
    watched.scan_twice().await;
    assert_eq!(names(&path.join("done")).len(), 2, "an empty file says nothing wrong");
    watched.end().await;
}

#[tokio::test]
async fn a_payload_of_the_odds_api_is_taken_as_well() {
    let mut watched = Watched::new();
    let path = watched.path.clone();
    let payload = r#"[{"id":"v1","sport_key":"mma_mixed_martial_arts","sport_title":"MMA","commence_time":"2026-11-15T00:00:00Z","home_team":"A","away_team":"B","bookmakers":[{"key":"betmgm","title":"BetMGM","last_update":"2026-11-14T11:59:00Z","markets":[{"key":"h2h","last_update":"2026-11-14T11:59:00Z","outcomes":[{"name":"A","price":1.91},{"name":"B","price":2.05}]}]}]}]"#;
    fs::write(path.join("1.json"), payload).unwrap();
    fs::write(path.join("2.json"), "{\"message\":\"no\"}").unwrap();
    watched.scan_twice().await;
    assert_eq!(watched.records(), 1);
    assert_eq!(
        names(&path.join("done")),
        ["1.json", "1.json.report.json"].map(|name| format!("20261114T120000Z-{name}"))
    );
    let failed = names(&path.join("failed"));
    assert!(report(&path.join("failed").join(&failed[1]))["error"].as_str().unwrap().contains("payload"), "{failed:?}");
    let account = &watched.fixture.context.ledger.accounts()[0].1;
    assert!(account.accepted >= 2 && account.last_failure.is_some(), "{account:?}");
    watched.end().await;
}

/// A file is read again if the server was killed while reading it, or before moving it.
#[tokio::test]
async fn a_file_that_was_taken_in_part_is_taken_again_without_harm() {
    let lines = [
        BOOK.to_owned(),
        EVENT.to_owned(),
        odds("e1", "1.5", 1),
        odds("e1", "1.6", 2),
        EVENT.replace("e1", "e2"),
        odds("e2", "1.7", 3),
        r#"{"type":"remove","sport":"mma","event":"e2"}"#.to_owned(),
        EVENT.replace("e1", "e3"),
        odds("e3", "1.8", 4),
    ];
    let mut worlds = Vec::new();
    for taken_before in 0..=lines.len() {
        let mut watched = Watched::new();
        let path = watched.path.join("file.ndjson");
        for part in [&lines[..taken_before], &lines[..]] {
            fs::write(&path, part.join("\n")).unwrap();
            watched.scan_twice().await;
        }
        worlds.push(watched.fixture.export().await);
        watched.end().await;
    }
    assert!(worlds.iter().all(|world| *world == worlds[0]));
}

#[tokio::test]
async fn the_newest_hundred_are_kept() {
    let mut watched = Watched::new();
    let path = watched.path.clone();
    fs::write(path.join("done").join("mine.txt"), "not ours").unwrap();
    for round in 0..6 {
        for file in 0..20 {
            fs::write(path.join(format!("{file}.ndjson")), BOOK).unwrap();
        }
        watched.fixture.context.clock.advance(Duration::from_secs(60));
        watched.scan_twice().await;
        assert_eq!(names(&path).len(), 2, "round {round}");
    }
    let done = names(&path.join("done"));
    assert_eq!(done.len(), 201);
    assert!(done[0].starts_with("20261114T1202"), "{}", done[0]);
    assert_eq!(done[200], "mine.txt");
    watched.end().await;
}

#[test]
fn a_directory_that_is_not_there_is_an_error_with_advice() {
    let error = DropDirectory::open(Path::new("/nowhere/at/all")).unwrap_err();
    assert!(matches!(error, DropError::Missing(_)) && error.to_string().contains("make it, or set ingest.drop"));
}
