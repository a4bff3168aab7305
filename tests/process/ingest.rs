//! The failures that these prevent: an ingest that accepts nothing exits with 0, a file in another format is not
//! recognised, and a first ingest needs a server.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};

use super::backup::event;
use super::command::{Directory, Done, file_with, run};

const UNKNOWN_EVENT: &str = r#"{"type":"odds","sport":"mma","event":"nobody","bookmaker":"betmgm","market":"moneyline","last_update":"2026-01-01T00:00:00Z","format":"decimal","outcomes":[]}"#;

/// A response of The Odds API, pretty-printed by a tool.
fn payload() -> String {
    let outcomes = json!([{"name": "Ana Ruiz", "price": 1.91}, {"name": "Bea Holt", "price": 1.95}]);
    let markets = json!([{"key": "h2h", "last_update": "2026-01-01T00:00:00Z", "outcomes": outcomes}]);
    let events = json!([{
        "id": "e1", "sport_key": "mma_mixed_martial_arts", "sport_title": "MMA",
        "commence_time": "2099-01-01T00:00:00Z", "home_team": "Ana Ruiz", "away_team": "Bea Holt",
        "bookmakers": [{"key": "betmgm", "title": "BetMGM", "last_update": "2026-01-01T00:00:00Z", "markets": markets}]
    }]);
    serde_json::to_string_pretty(&events).expect("a document")
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

/// A directory with an empty file.
fn empty() -> Directory {
    let directory = Directory::new();
    directory.json("keys issue --sandbox --name app");
    directory
}

/// The command between backquotes in an error message, without the program and its data directory.
fn advised(done: &Done, data: &Path) -> String {
    let complaint = done.complaint();
    let command = complaint.split('`').nth(1).unwrap_or_else(|| panic!("no command: {complaint}"));
    let (_, line) = command.split_once(&format!("oddsbox --data {} ", data.display())).unwrap_or_else(|| {
        panic!("not to be pasted: {command}");
    });
    line.to_owned()
}

#[test]
fn ingest_that_accepts_nothing_is_exit_code_1() {
    let directory = empty();
    let (_kept, lines) = file_with(format!("{UNKNOWN_EVENT}\nnot JSON\n\n").as_bytes());
    let done = directory.run(&format!("ingest {} --json", lines.display()));
    assert_eq!(done.code, Some(1), "{done:?}");
    let message = done.complaint();
    assert!(message.contains("none of 2 lines was accepted"), "{message}");
    let report = done.document();
    assert_eq!((&report["lines"], &report["accepted"], &report["rejected"]), (&json!(2), &json!(0), &json!(2)));

    let (_kept, lines) = file_with(format!("{UNKNOWN_EVENT}\n{}", event(1)).as_bytes());
    assert_eq!(directory.json(&format!("ingest {}", lines.display()))["rejected"], 1, "one of two is exit code 0");
    let (_kept, nothing) = file_with(b"\n");
    assert_eq!(directory.json(&format!("ingest {}", nothing.display()))["lines"], 0, "no line is no failure");
}

#[test]
fn ingest_of_a_payload_without_its_format_names_the_command_that_works() {
    let directory = empty();
    let (_kept, file) = file_with(payload().as_bytes());
    let done = directory.run(&format!("ingest {}", file.display()));
    assert_eq!(done.code, Some(1), "{done:?}");
    let line = advised(&done, directory.path());
    assert_eq!(line, format!("ingest --format the-odds-api {}", file.display()));
    assert_eq!(directory.json(&line)["rejected"], 0);

    let done = directory.run(&format!("ingest --strict --world sandbox {}", file.display()));
    let line = advised(&done, directory.path());
    assert_eq!(line, format!("ingest --world sandbox --strict --format the-odds-api {}", file.display()));
}

#[test]
fn ingest_of_lines_as_a_payload_names_the_command_that_works() {
    let directory = empty();
    for lines in [event(1) + &event(2), event(1).lines().nth(1).expect("a line").to_owned()] {
        let (_kept, file) = file_with(lines.as_bytes());
        let done = directory.run(&format!("ingest --format the-odds-api {}", file.display()));
        assert_eq!(done.code, Some(1), "{done:?}");
        assert_eq!(advised(&done, directory.path()), format!("ingest {}", file.display()));
    }
}

#[test]
fn identical_rejections_are_shown_once() {
    let directory = empty();
    let (_kept, lines) = file_with(format!("{}{}\n{}", "?\n".repeat(30), UNKNOWN_EVENT, "?\n".repeat(30)).as_bytes());
    let report = directory.run(&format!("ingest {} --json", lines.display())).document();
    assert_eq!(report["rejected_by_reason"], json!({"bad_json": 60, "unknown_event": 1}));
    let lines = |report: &Value| -> Vec<u64> {
        let examples = report["examples"].as_array().expect("a list");
        examples.iter().map(|example| example["line"].as_u64().expect("a number")).collect()
    };
    assert_eq!(lines(&report), [1, 31], "{report}");

    let many = payload().replace("betmgm", "nobodys");
    let events: Vec<Value> = serde_json::from_str(&many).expect("a document");
    let again: Vec<&Value> = events.iter().cycle().take(20).collect();
    let (_kept, file) = file_with(&serde_json::to_vec(&again).expect("a document"));
    let report = directory.run(&format!("ingest --format the-odds-api {} --json", file.display())).document();
    assert_eq!(report["rejected_by_reason"]["unknown_bookmaker"], 20, "{report}");
    assert_eq!(lines(&report), [1], "{report}");
}

#[test]
fn ingest_and_restore_create_a_missing_data_directory() {
    let directory = Directory::new();
    let (made, restored) = (directory.path().join("made"), directory.path().join("below/restored"));
    let (_kept, lines) = file_with(event(1).as_bytes());
    let report = run(&made, &format!("ingest {} --json", lines.display())).succeeded().document();
    assert_eq!(report["rejected"], 0, "{report}");
    assert_eq!((mode(&made), mode(&made.join("oddsbox.redb"))), (0o700, 0o600));

    let backup = directory.path().join("backup");
    run(&made, &format!("backup {}", backup.display())).succeeded();
    run(&restored, &format!("restore {}", backup.display())).succeeded();
    assert_eq!(mode(&restored), 0o700);
    let exported = |data: &Path| run(data, "export").succeeded().stdout;
    assert!(exported(&made) == exported(&restored) && exported(&made).contains("\"odds\""));

    let empty = Directory::new();
    empty.run(&format!("restore {}", backup.display())).succeeded();
    let empty = Directory::new();
    assert_eq!(empty.json(&format!("ingest {} --strict", lines.display()))["rejected"], 0);
    let never = directory.path().join("never");
    run(&never, "ingest no-such-file").failed();
    assert!(!never.exists(), "an input that cannot be read makes nothing");
}
