//! Who may import whom. The rooms of the house depend on each other in one direction only, and this reads it off the
//! `use crate::` lines.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each room and the rooms that it may use. `clock`, `log`, `metrics`, `nearest`, `networks` and `tls` are leaves that all may use.
const MAY_USE: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("clock", &["model"]),
    ("metrics", &[]),
    ("log", &[]),
    ("nearest", &[]),
    ("networks", &[]),
    ("tls", &[]),
    ("config", &["model"]),
    ("keys", &["model"]),
    ("store", &["model", "keys"]),
    ("board", &["model"]),
    ("writer", &["model", "store", "keys", "board"]),
    ("http", &["model", "keys", "board"]),
    // The listener in front of the push interface is that of the public one.
    ("ingest", &["model", "keys", "board", "writer", "config", "http"]),
    // The console is an HTTP door of its own: it shares the deadlines and the negotiation of the public one.
    ("admin", &["model", "store", "keys", "board", "ingest", "writer", "config", "http"]),
    ("server", &["model", "store", "keys", "board", "ingest", "writer", "config", "http", "admin"]),
    ("cli", &["admin", "board", "config", "http", "keys", "model", "server", "store", "writer", "ingest"]),
];
const LEAVES: &[&str] = &["clock", "log", "metrics", "nearest", "networks", "tls"];

/// Crates that belong to one room, so that replacing one means changing one room.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("redb", &["store"]),
    ("bincode", &["store"]),
    ("clap", &["cli"]),
    ("anyhow", &["cli"]),
    ("indicatif", &["cli"]),
    ("hyper", &["http", "admin", "ingest"]),
    ("hyper_util", &["http", "admin", "ingest"]),
    ("serde", &["http", "ingest", "admin", "config", "cli"]),
];

#[test]
fn rooms_import_only_what_they_may() {
    let allowed: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let mut wrong = BTreeSet::new();
    for (room, file, line) in lines_of_the_house() {
        let Some(used) = line.strip_prefix("use crate::") else { continue };
        let used = used.split([':', ';', ',']).next().unwrap_or_default();
        let may = allowed.get(room.as_str()).unwrap_or_else(|| panic!("{room} has no place in the house: add it here"));
        if used != room && !may.contains(&used) && !LEAVES.contains(&used) {
            wrong.insert(format!("{}: {line}", file.display()));
        }
    }
    assert_eq!(wrong, BTreeSet::new());
}

#[test]
fn crates_stay_in_their_rooms() {
    let mut wrong = BTreeSet::new();
    for (room, file, line) in lines_of_the_house() {
        for (name, rooms) in ONLY_IN {
            let used = line.strip_prefix("use ").is_some_and(|path| path.starts_with(&format!("{name}::")));
            if used && !rooms.contains(&room.as_str()) {
                wrong.insert(format!("{}: {line}", file.display()));
            }
        }
    }
    assert_eq!(wrong, BTreeSet::new());
}

/// Every line of every source file outside tests, with its room and file.
fn lines_of_the_house() -> Vec<(String, PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut lines = Vec::new();
    for file in sources(&root) {
        let inside = file.strip_prefix(&root).expect("a file of the house");
        let room = inside.components().next().expect("a name").as_os_str().to_string_lossy().replace(".rs", "");
        if room == "lib" || room == "main" || is_test(inside) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file");
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        lines
            .extend(code.lines().map(|line| {
                (room.clone(), inside.to_owned(), line.trim_start().trim_start_matches("pub ").to_owned())
            }));
    }
    assert!(lines.len() > 1000, "the house was not found");
    lines
}

fn is_test(path: &Path) -> bool {
    path.components()
        .any(|part| matches!(part.as_os_str().to_str(), Some("tests" | "tests.rs" | "testing.rs" | "fixture.rs")))
}

fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    entries
        .flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] })
        .filter(|path| path.extension().is_some_and(|ending| ending == "rs"))
        .collect()
}
