//! Module boundaries: the crate's modules depend on each other in one direction only. Checked on the `use` lines of the
//! source.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Each module and the modules that it may use, besides the leaves.
const MAY_USE: &[(&str, &[&str])] = &[
    ("model", &[]),
    ("clock", &["model"]),
    ("attachment", &[]),
    ("durable", &[]),
    ("metrics", &[]),
    ("log", &[]),
    ("nearest", &[]),
    ("networks", &[]),
    ("supervise", &[]),
    ("tls", &[]),
    ("wake", &[]),
    ("config", &["model"]),
    ("keys", &["model"]),
    ("store", &["model", "keys"]),
    ("board", &["model"]),
    ("writer", &["model", "store", "keys", "board"]),
    ("http", &["model", "keys", "board"]),
    // The listener in front of the push interface is that of the public one.
    ("ingest", &["model", "keys", "board", "writer", "config", "http"]),
    ("cluster", &["model", "store", "keys", "board", "writer", "ingest", "config"]),
    // The console shares the listener and the content negotiation of the public API.
    ("admin", &["model", "store", "keys", "board", "ingest", "writer", "config", "http", "cluster"]),
    ("server", &["model", "store", "keys", "board", "ingest", "writer", "config", "http", "admin", "cluster"]),
    ("cli", &["admin", "board", "cluster", "config", "http", "keys", "model", "server", "store", "writer", "ingest"]),
];
/// Modules that every module may use.
const LEAVES: &[&str] =
    &["attachment", "clock", "durable", "log", "metrics", "nearest", "networks", "supervise", "tls", "wake"];

/// Crates that only some modules may use, so that replacing one means changing few modules.
const ONLY_IN: &[(&str, &[&str])] = &[
    ("redb", &["store"]),
    ("bincode", &["store"]),
    ("clap", &["cli"]),
    ("anyhow", &["cli"]),
    ("indicatif", &["cli"]),
    ("redis", &["cluster"]),
    ("hyper", &["http", "admin", "ingest"]),
    ("hyper_util", &["http", "admin", "ingest"]),
    ("serde", &["http", "ingest", "admin", "config", "cli", "cluster"]),
];

#[test]
fn modules_import_only_allowed_modules() {
    let allowed: BTreeMap<&str, &[&str]> = MAY_USE.iter().copied().collect();
    let mut wrong = BTreeSet::new();
    for (module, file, line) in source_lines() {
        let Some(used) = line.strip_prefix("use crate::") else { continue };
        let used = used.split([':', ';', ',']).next().unwrap_or_default();
        let may = allowed.get(module.as_str()).unwrap_or_else(|| panic!("{module} is not listed: add it to MAY_USE"));
        if used != module && !may.contains(&used) && !LEAVES.contains(&used) {
            wrong.insert(format!("{}: {line}", file.display()));
        }
    }
    assert_eq!(wrong, BTreeSet::new());
}

#[test]
fn crates_are_used_only_in_their_modules() {
    let mut wrong = BTreeSet::new();
    for (module, file, line) in source_lines() {
        for (name, modules) in ONLY_IN {
            let used = line.strip_prefix("use ").is_some_and(|path| path.starts_with(&format!("{name}::")));
            if used && !modules.contains(&module.as_str()) {
                wrong.insert(format!("{}: {line}", file.display()));
            }
        }
    }
    assert_eq!(wrong, BTreeSet::new());
}

/// Every line of every source file outside tests, with its top-level module and file.
fn source_lines() -> Vec<(String, PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut lines = Vec::new();
    for file in sources(&root) {
        let inside = file.strip_prefix(&root).expect("a file in src");
        let module = inside.components().next().expect("a name").as_os_str().to_string_lossy().replace(".rs", "");
        if module == "lib" || module == "main" || is_test(inside) {
            continue;
        }
        let text = fs::read_to_string(&file).expect("a source file");
        let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
        lines.extend(
            code.lines().map(|line| {
                (module.clone(), inside.to_owned(), line.trim_start().trim_start_matches("pub ").to_owned())
            }),
        );
    }
    assert!(lines.len() > 1000, "the source was not found");
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
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .collect()
}
