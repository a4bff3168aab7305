//! The failure that this prevents: SECURITY.md names a test that does not exist.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn sources(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { sources(&path) } else { vec![path] }).collect()
}

#[test]
fn every_test_named_in_security_md_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("SECURITY.md")).expect("the page");
    let is_name =
        |word: &&str| word.matches('_').count() >= 3 && word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let named: BTreeSet<&str> = page.split('`').filter(is_name).collect();
    assert!(named.len() > 30, "{named:?}");
    let files = [sources(&root.join("tests")), sources(&root.join("src"))].concat();
    let files = files.iter().filter(|path| path.extension().is_some_and(|ending| ending == "rs"));
    let code: String = files.map(|path| fs::read_to_string(path).expect("a source file")).collect();
    let missing: Vec<_> = named.iter().filter(|name| !code.contains(&format!("fn {name}("))).collect();
    assert_eq!(missing, Vec::<&&str>::new());
}
