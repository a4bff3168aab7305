//! The catalogue of sports and bookmakers, a TOML file: the built-in one, or the operator's own in its place.
//!
//! Parsing is strict: an unknown field, kind or region, a duplicate key or an empty title is an error that names the
//! line, so that a typo never silently drops an entry.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::model::v4::Pattern;
use crate::model::{Bookmaker, Catalogue, CatalogueError, Region, Regions, Sport, SportKind, V4Keys, V4Names};

/// The text of the built-in catalogue.
pub const BUILTIN: &str = include_str!("../../data/catalogue.toml");

/// The maximum length of a name, the same throughout the service.
const TITLE_BYTES_MAX: usize = 200;

/// Why a text is not a valid catalogue.
#[derive(Debug, thiserror::Error)]
pub enum CatalogueFileError {
    /// The parser's message has the line and the field.
    #[error("the catalogue does not parse: {0}")]
    Syntax(#[from] toml::de::Error),
    #[error("the catalogue, line {line}: {problem}")]
    Entry { line: usize, problem: EntryProblem },
    #[error("the catalogue cannot be used: {0}")]
    Whole(CatalogueError),
}

/// Why an entry is invalid.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum EntryProblem {
    #[error("{0:?} has a bad field `title`: 1 to 200 bytes without control characters")]
    BadTitle(Box<str>),
    #[error("{key:?} has a bad field `group`: {group:?} is not a valid key: use 1 to 40 of a to z, 0 to 9 and _")]
    BadGroup { key: Box<str>, group: Box<str> },
    #[error("{0:?} has an empty field `regions`: name at least one of us, uk, eu, au")]
    NoRegion(Box<str>),
    #[error("{key:?} has the region {region} twice in its field `regions`")]
    RegionTwice { key: Box<str>, region: Region },
    #[error("{0:?} has a bad field `v4`: key and title are plain names, or both have one `*` for the competition's")]
    BadV4(Box<str>),
    #[error("bad field `key`: {0}")]
    Key(CatalogueError),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogueFile {
    sports: Vec<SportLine>,
    #[serde(default)]
    bookmakers: Vec<BookmakerLine>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SportLine {
    key: Spanned<Box<str>>,
    title: Box<str>,
    group: Box<str>,
    kind: KindName,
    v4: Option<V4Line>,
}

/// The names of a sport in The Odds API; `*` in the key and the title is a placeholder for the competition's name.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct V4Line {
    key: Box<str>,
    group: Box<str>,
    title: Box<str>,
    #[serde(default)]
    description: Box<str>,
    #[serde(default)]
    irregular: BTreeMap<Box<str>, Box<str>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BookmakerLine {
    key: Spanned<Box<str>>,
    title: Box<str>,
    regions: Vec<RegionName>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum KindName {
    HeadToHead,
    Fight,
    Tournament,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum RegionName {
    Us,
    Uk,
    Eu,
    Au,
}

/// The built-in catalogue.
#[expect(clippy::expect_used, reason = "the text is part of the program, and a test parses it")]
pub fn builtin() -> Catalogue {
    parse(BUILTIN).expect("the built-in catalogue is valid")
}

/// Parses a catalogue.
pub fn parse(text: &str) -> Result<Catalogue, CatalogueFileError> {
    let file: CatalogueFile = toml::from_str(text)?;
    let positions: Vec<KeyPosition> = file
        .sports
        .iter()
        .map(|sport| position(&sport.key))
        .chain(file.bookmakers.iter().map(|book| position(&book.key)))
        .collect();
    let at = |start: usize, problem| CatalogueFileError::Entry { line: line_of(text, start), problem };

    let mut sports = Vec::with_capacity(file.sports.len());
    for line in file.sports {
        let start = line.key.span().start;
        sports.push(sport(line).map_err(|problem| at(start, problem))?);
    }
    let mut bookmakers = Vec::with_capacity(file.bookmakers.len());
    for line in file.bookmakers {
        let start = line.key.span().start;
        bookmakers.push(bookmaker(line).map_err(|problem| at(start, problem))?);
    }
    Catalogue::new(sports, bookmakers).map_err(|error| match last_position(&positions, &error) {
        Some(start) => at(start, EntryProblem::Key(error)),
        None => CatalogueFileError::Whole(error),
    })
}

/// A key and its offset in the text.
type KeyPosition = (Box<str>, usize);

fn position(key: &Spanned<Box<str>>) -> KeyPosition {
    (key.get_ref().clone(), key.span().start)
}

/// The last offset of the key that an error names.
fn last_position(positions: &[KeyPosition], error: &CatalogueError) -> Option<usize> {
    let (CatalogueError::Duplicate(named) | CatalogueError::BadKey(named)) = error else { return None };
    positions.iter().rev().find(|(key, _)| key == named).map(|(_, start)| *start)
}

fn sport(line: SportLine) -> Result<Sport, EntryProblem> {
    let key = line.key.into_inner();
    check_title(&key, &line.title)?;
    if !crate::model::sport::is_key(&line.group) {
        return Err(EntryProblem::BadGroup { key, group: line.group });
    }
    let kind = match line.kind {
        KindName::HeadToHead => SportKind::HeadToHead,
        KindName::Fight => SportKind::Fight,
        KindName::Tournament => SportKind::Tournament,
    };
    let v4 = line.v4.map(|line| v4_names(&key, line)).transpose()?;
    Ok(Sport { key, title: line.title, group: line.group, kind, v4 })
}

fn v4_names(sport: &str, line: V4Line) -> Result<V4Names, EntryProblem> {
    check_title(sport, &line.title)?;
    check_title(sport, &line.group)?;
    let keys = match (Pattern::parse(&line.key), Pattern::parse(&line.title)) {
        (Some(key), Some(title)) => {
            V4Keys::ByCompetition { key, title, irregular: line.irregular.into_iter().collect() }
        }
        (None, None) if crate::model::sport::is_key(&line.key) && line.irregular.is_empty() => {
            V4Keys::Whole { key: line.key, title: line.title, description: line.description }
        }
        _ => return Err(EntryProblem::BadV4(sport.into())),
    };
    Ok(V4Names { group: line.group, keys })
}

fn bookmaker(line: BookmakerLine) -> Result<Bookmaker, EntryProblem> {
    let key = line.key.into_inner();
    check_title(&key, &line.title)?;
    let mut regions = Regions::NONE;
    for name in line.regions {
        let region = match name {
            RegionName::Us => Region::Us,
            RegionName::Uk => Region::Uk,
            RegionName::Eu => Region::Eu,
            RegionName::Au => Region::Au,
        };
        if regions.contains(region) {
            return Err(EntryProblem::RegionTwice { key, region });
        }
        regions = regions.with(region);
    }
    if regions.is_empty() {
        return Err(EntryProblem::NoRegion(key));
    }
    Ok(Bookmaker { key, title: line.title, regions })
}

fn check_title(key: &str, title: &str) -> Result<(), EntryProblem> {
    let fits = !title.trim().is_empty() && title.len() <= TITLE_BYTES_MAX;
    if fits && !title.chars().any(char::is_control) { Ok(()) } else { Err(EntryProblem::BadTitle(key.into())) }
}

fn line_of(text: &str, start: usize) -> usize {
    1 + text.bytes().take(start).filter(|byte| *byte == b'\n').count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    const SPORT: &str = "sports = [{ key = \"mma\", title = \"MMA\", group = \"combat\", kind = \"fight\" }]\n";

    #[test]
    fn builtin_catalogue_covers_every_region() {
        let catalogue = builtin();
        let keys: Vec<&str> = catalogue.sports().map(|(_, sport)| &*sport.key).collect();
        assert_eq!(keys, ["mma", "boxing", "tennis", "american_football", "golf"]);
        assert_eq!(catalogue.groups(), ["combat", "tennis", "american_football", "golf"]);
        assert!(catalogue.bookmakers().len() >= 30);
        for region in Region::ALL {
            let books = catalogue.bookmakers().iter().filter(|book| book.regions.contains(region)).count();
            assert!(books >= 8, "{region}: {books}");
        }
    }

    #[test]
    fn unknown_field_is_reported_with_its_line() {
        let text = format!("{SPORT}bookmakers = [\n  {{ key = \"a\", title = \"A\", region = [\"us\"] }},\n]");
        let error = error(&text);
        assert!(error.contains("line 3") && error.contains("`region`"), "{error}");
    }

    #[test]
    fn unknown_region_is_reported_with_the_known_ones() {
        let text = format!("{SPORT}bookmakers = [\n\n  {{ key = \"a\", title = \"A\", regions = [\"usa\"] }},\n]");
        let error = error(&text);
        for part in ["line 4", "`usa`", "`us`", "`uk`", "`eu`", "`au`"] {
            assert!(error.contains(part), "{part} in {error}");
        }
    }

    #[test]
    fn duplicate_key_is_reported_with_its_second_line() {
        let line = "  { key = \"a\", title = \"A\", regions = [\"us\"] },\n";
        let error = error(&format!("{SPORT}bookmakers = [\n{line}{line}]"));
        assert_eq!(error, "the catalogue, line 4: bad field `key`: the key \"a\" is listed twice");
    }

    #[test]
    fn invalid_entry_is_reported_with_its_field() {
        for (entry, part) in [
            ("{ key = \"A\", title = \"A\", regions = [\"us\"] }", "\"A\" is not a valid key"),
            ("{ key = \"a\", title = \" \", regions = [\"us\"] }", "`title`"),
            ("{ key = \"a\", title = \"A\", regions = [] }", "`regions`"),
            ("{ key = \"a\", title = \"A\", regions = [\"us\", \"us\"] }", "region us twice"),
        ] {
            let error = error(&format!("{SPORT}bookmakers = [\n{entry}]"));
            assert!(error.contains(part) && error.contains("line 3"), "{error}");
        }
        for v4 in ["key = \"mma_*\", group = \"MMA\", title = \"MMA\"", "key = \"M\", group = \"MMA\", title = \"MMA\""]
        {
            let error = error(&SPORT.replace("kind", &format!("v4 = {{ {v4} }}, kind")));
            assert!(error.contains("`v4`"), "{error}");
        }
        assert!(error("sports = []").contains("no sport"));
        assert!(error(&SPORT.replace("fight", "duel")).contains("`head_to_head`"));
    }
}
