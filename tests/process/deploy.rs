//! What `examples/deploy` says of the settings is what the binary knows of them.

use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

use super::command::{Directory, file_with};

fn deployed(name: &str) -> PathBuf {
    [env!("CARGO_MANIFEST_DIR"), "examples", "deploy", name].iter().collect()
}

#[test]
fn the_annotated_settings_are_taken_as_they_stand() {
    let shown = Directory::new().json(&format!("config show --config {}", deployed("oddsbox.toml").display()));
    assert!(shown.as_array().is_some_and(|settings| !settings.is_empty()), "{shown}");
}

/// A setting that is added, renamed or given another default must not leave the file behind.
#[test]
fn the_annotated_settings_are_all_there_are_each_with_its_default() {
    let text = fs::read_to_string(deployed("oddsbox.toml")).expect("a file");
    // `#name = value` is a setting at its default; `# A sentence` is a sentence.
    let is_setting = |line: &str| line.starts_with('#') && line[1..].starts_with(|first: char| first.is_lowercase());
    let everything = text.lines().fold(String::new(), |mut whole, line| {
        let line = if is_setting(line) { &line[1..] } else { line };
        writeln!(whole, "{line}").expect("a text takes any line");
        whole
    });
    let (_kept, path) = file_with(everything.as_bytes());
    let shown = Directory::new().json(&format!("config show --config {}", path.display()));
    let mut wrong = String::new();
    for setting in shown.as_array().expect("a list") {
        let is_named = setting["from"] == path.display().to_string();
        if !is_named || setting["value"] != setting["default"] {
            writeln!(wrong, "# {}\n#{} = {}", setting["help"], setting["name"], setting["default"]).expect("a text");
        }
    }
    assert_eq!(wrong, "", "examples/deploy/oddsbox.toml needs these");
}
