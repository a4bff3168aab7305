//! Guesses the format of an input from which no line was accepted: most often it is not the one given to the command.

use std::path::Path;

use super::InputFormat;
use crate::cli::invocation::{Invocation, quoted};
use crate::model::World;

/// How much of the beginning of the input is inspected.
pub(super) const START_BYTES_MAX: usize = 64 << 10;

/// The apparent format of an input, judged by its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Detected {
    Lines,
    /// JSON, but not one object per line.
    Document,
    Payload,
    Gzip,
}

/// The arguments that a hint repeats.
#[derive(Clone, Copy, Debug)]
pub(super) struct GivenCommand<'a> {
    pub(super) format: InputFormat,
    pub(super) history: bool,
    pub(super) file: &'a Path,
    pub(super) world: World,
    pub(super) strict: bool,
}

/// What to do instead, if the input looks like another format.
pub(super) fn hint(start: &[u8], given: GivenCommand<'_>, invocation: &Invocation) -> Option<String> {
    let file = quoted(&given.file.display().to_string());
    let world = if given.world == World::Live { "" } else { " --world sandbox" };
    let strict = if given.strict { " --strict" } else { "" };
    let history = if given.history { " --history" } else { "" };
    let ingest = format!("{} ingest{history}{world}{strict}", invocation.command());
    match (detect(start)?, given.format) {
        (Detected::Payload, InputFormat::Lines) => Some(format!(
            "the input looks like a response of The Odds API: try `{ingest} --format the-odds-api {file}`"
        )),
        (Detected::Lines, InputFormat::TheOddsApi) => {
            Some(format!("the input looks like feed lines: leave out --format, as in `{ingest} {file}`"))
        }
        (Detected::Document, InputFormat::Lines) => {
            Some("the input is JSON, but not feed lines, which are one JSON object on each line".to_owned())
        }
        (Detected::Gzip, _) => Some("the input is compressed: decompress it first, with `gunzip`".to_owned()),
        (Detected::Lines, InputFormat::Lines) | (Detected::Payload | Detected::Document, InputFormat::TheOddsApi) => {
            None
        }
    }
}

fn detect(start: &[u8]) -> Option<Detected> {
    if start.starts_with(&[0x1F, 0x8B]) {
        return Some(Detected::Gzip);
    }
    let text = String::from_utf8_lossy(start);
    let text = text.trim_start_matches('\u{FEFF}').trim();
    let is_empty_list = || text.strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with(']'));
    let first = text.lines().next()?;
    let is_line = |value: serde_json::Value| value.get("type").is_some_and(serde_json::Value::is_string);
    if serde_json::from_str(first).is_ok_and(is_line) {
        Some(Detected::Lines)
    } else if !text.starts_with(['[', '{']) {
        None
    } else if text.contains("\"sport_key\"") || is_empty_list() {
        Some(Detected::Payload)
    } else if text.starts_with('[') || text.contains("\"type\"") {
        Some(Detected::Document)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_is_detected_from_the_beginning_of_the_input() {
        let cases: [(&str, Option<Detected>); 12] = [
            ("", None),
            ("no JSON", None),
            ("{\"message\":\"an error\"}", None),
            ("\n{\"type\":\"event\",\"id\":\"e1\"}\n{\"type\"", Some(Detected::Lines)),
            ("{\"type\":\"read\"}", Some(Detected::Lines)),
            ("[{\"type\":\"event\"}]", Some(Detected::Document)),
            ("{\n  \"type\": \"event\"\n}", Some(Detected::Document)),
            ("[{\"key\":\"mma\"}]", Some(Detected::Document)),
            ("[{\"id\":\"e1\",\"sport_key\":\"mma_mixed_martial_arts\",\"book", Some(Detected::Payload)),
            ("{\"timestamp\":\"x\",\"data\":[{\"sport_key\":", Some(Detected::Payload)),
            ("{\n \"id\": \"e1\",\n \"sport_key\": \"mma\"", Some(Detected::Payload)),
            (" [ ] \n", Some(Detected::Payload)),
        ];
        for (start, expected) in cases {
            assert_eq!(detect(start.as_bytes()), expected, "{start}");
        }
        assert_eq!(detect(&[0x1F, 0x8B, 8, 0]), Some(Detected::Gzip));
    }
}
