//! The catalogue of sports, competitions, markets and bookmakers, a TOML file: the built-in one, or the operator's own
//! in its place.
//!
//! Parsing is strict: an unknown field, kind or region, a duplicate key or an empty title is an error that names the
//! line, so that a typo never silently drops an entry.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::model::market::{KeyParts, MarketShape};
use crate::model::v4::Pattern;
use crate::model::{
    Bookmaker, Catalogue, CatalogueError, Competition, MarketFamilies, MarketTraits, Region, Regions, Settlement,
    Sport, SportKind, V4Keys, V4Names,
};

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
    #[error("{0:?} has an empty field `regions`: name at least one of us, us2, us_dfs, us_ex, uk, eu, fr, se, au")]
    NoRegion(Box<str>),
    #[error("{key:?} has the region {region} twice in its field `regions`")]
    RegionTwice { key: Box<str>, region: Region },
    #[error("{0:?} has a bad field `v4`: key and title are plain names, or both have one `*` for the competition's")]
    BadV4(Box<str>),
    #[error("bad field `key`: {0}")]
    Key(CatalogueError),
    #[error("{0:?} is not a market family: use its name alone, in a to z, 0 to 9 and _")]
    BadFamily(Box<str>),
    #[error("{0:?} is not a prop: it begins with player_, batter_ or pitcher_ and has neither a period nor _alternate")]
    BadProp(Box<str>),
    #[error("{0:?} has a bad field `group` or `winners`: both are 1 or more")]
    BadSettlement(Box<str>),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CatalogueFile {
    sports: Vec<SportLine>,
    #[serde(default)]
    competitions: Vec<CompetitionLine>,
    #[serde(default)]
    market_families: Vec<FamilyLine>,
    /// Keys by shape.
    #[serde(default)]
    props: BTreeMap<ShapeName, Vec<Spanned<Box<str>>>>,
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
    #[serde(default)]
    hide_fields: bool,
    v4: Option<V4Line>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CompetitionLine {
    key: Spanned<Box<str>>,
    title: Box<str>,
    #[serde(default)]
    description: Box<str>,
    #[serde(default)]
    field: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FamilyLine {
    key: Spanned<Box<str>>,
    shape: ShapeName,
    #[serde(default = "one")]
    winners: usize,
    group: Option<usize>,
}

fn one() -> usize {
    1
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ShapeName {
    Ways,
    Spread,
    OverUnder,
    OverOnly,
    YesNo,
    Field,
}

impl From<ShapeName> for MarketShape {
    fn from(name: ShapeName) -> Self {
        match name {
            ShapeName::Ways => MarketShape::Ways,
            ShapeName::Spread => MarketShape::Spread,
            ShapeName::OverUnder => MarketShape::OverUnder,
            ShapeName::OverOnly => MarketShape::OverOnly,
            ShapeName::YesNo => MarketShape::YesNo,
            ShapeName::Field => MarketShape::Field,
        }
    }
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
    Us2,
    UsDfs,
    UsEx,
    Uk,
    Eu,
    Fr,
    Se,
    Au,
}

impl From<RegionName> for Region {
    fn from(name: RegionName) -> Self {
        match name {
            RegionName::Us => Region::Us,
            RegionName::Us2 => Region::Us2,
            RegionName::UsDfs => Region::UsDfs,
            RegionName::UsEx => Region::UsEx,
            RegionName::Uk => Region::Uk,
            RegionName::Eu => Region::Eu,
            RegionName::Fr => Region::Fr,
            RegionName::Se => Region::Se,
            RegionName::Au => Region::Au,
        }
    }
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
        .chain(file.competitions.iter().map(|competition| position(&competition.key)))
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
    let mut competitions = Vec::with_capacity(file.competitions.len());
    for line in file.competitions {
        let start = line.key.span().start;
        competitions.push(competition(line).map_err(|problem| at(start, problem))?);
    }
    // A file that says nothing of markets has the built-in ones.
    let markets = if file.market_families.is_empty() && file.props.is_empty() {
        let builtin: CatalogueFile = toml::from_str(BUILTIN)?;
        market_families(builtin.market_families, builtin.props)
    } else {
        market_families(file.market_families, file.props)
    };
    let markets = markets.map_err(|(start, problem)| at(start, problem))?;
    let catalogue = Catalogue::new(sports, bookmakers).and_then(|catalogue| catalogue.with_competitions(competitions));
    let catalogue = catalogue.map_err(|error| match last_position(&positions, &error) {
        Some(start) => at(start, EntryProblem::Key(error)),
        None => CatalogueFileError::Whole(error),
    })?;
    Ok(catalogue.with_markets(markets))
}

/// A key and its offset in the text.
type KeyPosition = (Box<str>, usize);

fn position(key: &Spanned<Box<str>>) -> KeyPosition {
    (key.get_ref().clone(), key.span().start)
}

/// The last offset of the key that an error names.
fn last_position(positions: &[KeyPosition], error: &CatalogueError) -> Option<usize> {
    let (CatalogueError::Duplicate(named) | CatalogueError::BadKey(named) | CatalogueError::NoSportOf(named)) = error
    else {
        return None;
    };
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
    Ok(Sport { key, title: line.title, group: line.group, kind, hides_fields: line.hide_fields, v4 })
}

fn competition(line: CompetitionLine) -> Result<Competition, EntryProblem> {
    let key = line.key.into_inner();
    check_title(&key, &line.title)?;
    let description = if line.description.is_empty() { line.title.clone() } else { line.description };
    check_title(&key, &description)?;
    Ok(Competition { key, title: line.title, description, has_field: line.field })
}

/// The families and the props, or the offset of the first bad one.
fn market_families(
    lines: Vec<FamilyLine>,
    shapes: BTreeMap<ShapeName, Vec<Spanned<Box<str>>>>,
) -> Result<MarketFamilies, (usize, EntryProblem)> {
    let mut families = BTreeMap::new();
    for FamilyLine { key, shape, winners, group } in lines {
        let (start, key) = (key.span().start, key.into_inner());
        if KeyParts::split(&key).is_none_or(|parts| parts.is_prop || parts.base != &*key) {
            return Err((start, EntryProblem::BadFamily(key)));
        }
        if winners == 0 || group == Some(0) {
            return Err((start, EntryProblem::BadSettlement(key)));
        }
        let traits = MarketTraits { shape: shape.into(), settlement: Settlement { group, winners } };
        if families.insert(key.clone(), traits).is_some() {
            return Err((start, EntryProblem::Key(CatalogueError::Duplicate(key))));
        }
    }
    let mut props = BTreeMap::new();
    for (shape, keys) in shapes {
        for key in keys {
            let (start, key) = (key.span().start, key.into_inner());
            if KeyParts::split(&key).is_none_or(|parts| !parts.is_prop || parts.base != &*key) {
                return Err((start, EntryProblem::BadProp(key)));
            }
            let traits = MarketTraits { shape: shape.into(), settlement: Settlement::ONE_WINNER };
            if props.insert(key.clone(), traits).is_some() {
                return Err((start, EntryProblem::Key(CatalogueError::Duplicate(key))));
            }
        }
    }
    Ok(MarketFamilies::new(families, props))
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
        let region = Region::from(name);
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
        assert_eq!(keys[..5], ["mma", "boxing", "tennis", "american_football", "golf"]);
        assert_eq!(keys.len(), 16);
        assert_eq!(catalogue.groups()[..4], ["combat", "tennis", "american_football", "golf"]);
        assert!(catalogue.bookmakers().len() >= 94);
        for region in Region::ALL {
            let books = catalogue.bookmakers().iter().filter(|book| book.regions.contains(region)).count();
            assert!(books >= 4, "{region}: {books}");
        }
        assert_eq!(catalogue.competitions().count(), 177);
        assert_eq!(catalogue.find_v4("soccer_epl").map(|(sport, _)| sport), catalogue.find("soccer"));
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
