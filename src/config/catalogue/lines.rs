//! The lines of a catalogue file as they are written, and what each becomes.
//!
//! Parsing is strict: an unknown field, kind or region or an empty title is an error that names the line, so that a typo
//! never silently drops an entry.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use super::EntryProblem;
use super::entries::Misplaced;
use crate::model::market::{KeyParts, MarketShape};
use crate::model::v4::Pattern;
use crate::model::{
    Bookmaker, CatalogueError, Competition, MarketTraits, Region, Regions, Settlement, Sport, SportKind, V4Keys,
    V4Names,
};

/// The maximum length of a name, the same throughout the service.
const TITLE_BYTES_MAX: usize = 200;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CatalogueFile {
    /// Whether the built-in catalogue is left out.
    #[serde(default)]
    pub replace: bool,
    #[serde(default)]
    pub sports: Vec<SportLine>,
    /// Families of The Odds API that are sports without a line of their own.
    #[serde(default)]
    pub families: Vec<Spanned<Box<str>>>,
    #[serde(default)]
    pub competitions: Vec<CompetitionLine>,
    #[serde(default)]
    pub market_families: Vec<FamilyLine>,
    /// Keys by shape.
    #[serde(default)]
    pub props: BTreeMap<ShapeName, Vec<Spanned<Box<str>>>>,
    #[serde(default)]
    pub bookmakers: Vec<BookmakerLine>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SportLine {
    pub key: Spanned<Box<str>>,
    title: Box<str>,
    group: Box<str>,
    kind: KindName,
    #[serde(default)]
    hide_fields: bool,
    v4: Option<V4Line>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct CompetitionLine {
    pub key: Spanned<Box<str>>,
    title: Box<str>,
    #[serde(default)]
    description: Box<str>,
    #[serde(default)]
    field: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FamilyLine {
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
pub(super) enum ShapeName {
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
pub(super) struct BookmakerLine {
    pub key: Spanned<Box<str>>,
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

pub(super) fn sport(line: SportLine) -> Result<Sport, EntryProblem> {
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

/// A family of The Odds API: the first word of its keys.
pub(super) fn sport_family(family: Box<str>) -> Result<Box<str>, EntryProblem> {
    if crate::model::sport::is_key(&family) && !family.contains('_') {
        Ok(family)
    } else {
        Err(EntryProblem::BadSportFamily(family))
    }
}

pub(super) fn competition(line: CompetitionLine) -> Result<Competition, EntryProblem> {
    let key = line.key.into_inner();
    check_title(&key, &line.title)?;
    let description = if line.description.is_empty() { line.title.clone() } else { line.description };
    check_title(&key, &description)?;
    Ok(Competition { key, title: line.title, description, has_field: line.field })
}

/// The families by key.
pub(super) fn market_families(lines: Vec<FamilyLine>) -> Result<BTreeMap<Box<str>, MarketTraits>, Misplaced> {
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
    Ok(families)
}

/// The props by key.
pub(super) fn props(
    shapes: BTreeMap<ShapeName, Vec<Spanned<Box<str>>>>,
) -> Result<BTreeMap<Box<str>, MarketTraits>, Misplaced> {
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
    Ok(props)
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

pub(super) fn bookmaker(line: BookmakerLine) -> Result<Bookmaker, EntryProblem> {
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
