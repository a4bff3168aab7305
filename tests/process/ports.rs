//! The failure that this prevents: `cargo test` fails because another process listens on port 8080.

use std::fs;
use std::path::{Path, PathBuf};

use super::command::Directory;

/// Texts with a port that no test listens on or connects to.
const NEVER_BOUND: &[&str] = &[
    // Rejected, as it is not on loopback.
    "0.0.0.0:9100",
    // Values of the Host and Origin headers.
    "http://127.0.0.1:1\"",
    "localhost:1234",
];

fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    let files = entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] });
    files.filter(|path| path.extension().is_some_and(|ending| ending == "rs")).collect()
}

/// Whether a line contains a local address with a port other than 0.
fn names_fixed_port(line: &str) -> bool {
    let line = NEVER_BOUND.iter().fold(line.to_owned(), |line, known| line.replace(known, ""));
    let hosts = ["127.0.0.1:", "0.0.0.0:", "localhost:", "[::1]:", "[::]:"];
    let is_port = |rest: &str| rest.starts_with(|digit: char| matches!(digit, '1'..='9'));
    hosts.iter().any(|host| line.split(host).skip(1).any(is_port))
}

#[test]
fn integration_tests_name_no_fixed_port() {
    assert!(names_fixed_port("bind(\"127.0.0.1:8080\")") && names_fixed_port("http://localhost:81/v4"));
    assert!(!names_fixed_port("bind(\"127.0.0.1:0\")") && !names_fixed_port("http://127.0.0.1:{port}"));
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let files = sources(&root);
    assert!(files.len() > 50, "the tests were not found");
    for file in files.iter().filter(|file| !file.ends_with("process/ports.rs")) {
        let text = fs::read_to_string(file).expect("a source file");
        let found = text.lines().find(|line| names_fixed_port(line));
        assert_eq!(found, None, "{}: bind port 0 and ask which it is", file.display());
    }
}

#[test]
#[should_panic(expected = "--listen 127.0.0.1:0")]
fn harness_refuses_a_server_on_the_default_port() {
    Directory::new().run("serve");
}
