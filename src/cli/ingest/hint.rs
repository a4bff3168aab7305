//! Guesses the format of an input from which no line was accepted: most often it is not the one that the command names.

use std::path::Path;

use super::Format;
use crate::cli::session::{Session, quoted};
use crate::model::World;

/// How much of the beginning of an input is looked at.
pub(super) const START_BYTES_MAX: usize = 64 << 10;

/// What an input seems to be, by its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Looks {
    Lines,
    /// JSON, but not one object a line.
    Document,
    Payload,
    Gzip,
}

/// The command that was given, as far as a hint repeats it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Given<'a> {
    pub(super) format: Format,
    pub(super) file: &'a Path,
    pub(super) world: World,
    pub(super) strict: bool,
}

/// What to do instead, if the input looks like something else than what the command says it is.
pub(super) fn hint(start: &[u8], given: Given<'_>, session: &Session) -> Option<String> {
    let file = quoted(&given.file.display().to_string());
    let world = if given.world == World::Live { "" } else { " --world sandbox" };
    let strict = if given.strict { " --strict" } else { "" };
    let ingest = format!("{} ingest{world}{strict}", session.command());
    match (looks(start)?, given.format) {
        (Looks::Payload, Format::Lines) => {
            Some(format!("the input looks like an answer of The Odds API: try `{ingest} --format the-odds-api {file}`"))
        }
        (Looks::Lines, Format::TheOddsApi) => {
            Some(format!("the input looks like feed lines: leave --format out, as in `{ingest} {file}`"))
        }
        (Looks::Document, Format::Lines) => {
            Some("the input is JSON, but not feed lines, which are one JSON object on each line".to_owned())
        }
        (Looks::Gzip, _) => Some("the input is compressed: decompress it first, with `gunzip`".to_owned()),
        (Looks::Lines, Format::Lines) | (Looks::Payload | Looks::Document, Format::TheOddsApi) => None,
    }
}

fn looks(start: &[u8]) -> Option<Looks> {
    if start.starts_with(&[0x1F, 0x8B]) {
        return Some(Looks::Gzip);
    }
    let text = String::from_utf8_lossy(start);
    let text = text.trim_start_matches('\u{FEFF}').trim();
    let is_empty_list = || text.strip_prefix('[').is_some_and(|rest| rest.trim_start().starts_with(']'));
    let first = text.lines().next()?;
    let is_line = |value: serde_json::Value| value.get("type").is_some_and(serde_json::Value::is_string);
    if serde_json::from_str(first).is_ok_and(is_line) {
        Some(Looks::Lines)
    } else if !text.starts_with(['[', '{']) {
        None
    } else if text.contains("\"sport_key\"") || is_empty_list() {
        Some(Looks::Payload)
    } else if text.starts_with('[') || text.contains("\"type\"") {
        Some(Looks::Document)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn format_is_recognised_by_the_beginning_of_the_input() {
        let cases: [(&str, Option<Looks>); 12] = [
            ("", None),
            ("no JSON", None),
            ("{\"message\":\"an error\"}", None),
            ("\n{\"type\":\"event\",\"id\":\"e1\"}\n{\"type\"", Some(Looks::Lines)),
            ("{\"type\":\"read\"}", Some(Looks::Lines)),
            ("[{\"type\":\"event\"}]", Some(Looks::Document)),
            ("{\n  \"type\": \"event\"\n}", Some(Looks::Document)),
            ("[{\"key\":\"mma\"}]", Some(Looks::Document)),
            ("[{\"id\":\"e1\",\"sport_key\":\"mma_mixed_martial_arts\",\"book", Some(Looks::Payload)),
            ("{\"timestamp\":\"x\",\"data\":[{\"sport_key\":", Some(Looks::Payload)),
            ("{\n \"id\": \"e1\",\n \"sport_key\": \"mma\"", Some(Looks::Payload)),
            (" [ ] \n", Some(Looks::Payload)),
        ];
        for (start, expected) in cases {
            assert_eq!(looks(start.as_bytes()), expected, "{start}");
        }
        assert_eq!(looks(&[0x1F, 0x8B, 8, 0]), Some(Looks::Gzip));
    }
}
