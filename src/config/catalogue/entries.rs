//! The entries of a catalogue by key, of one file or of one on top of another.

use std::collections::BTreeMap;

use toml::Spanned;

use super::lines::{CatalogueFile, bookmaker, competition, market_families, props, sport, sport_family};
use super::{EntryProblem, KeyPosition};
use crate::model::{Bookmaker, Catalogue, CatalogueError, Competition, MarketFamilies, MarketTraits, Sport, V4Names};

/// A problem and its offset in the text.
pub(super) type Misplaced = (usize, EntryProblem);

#[derive(Debug, Default)]
pub(super) struct Entries {
    pub sports: Vec<Sport>,
    /// Families of The Odds API that are sports without a line of their own.
    pub families: Vec<Box<str>>,
    pub competitions: Vec<Competition>,
    pub market_families: BTreeMap<Box<str>, MarketTraits>,
    pub props: BTreeMap<Box<str>, MarketTraits>,
    pub bookmakers: Vec<Bookmaker>,
    positions: Vec<KeyPosition>,
}

impl Entries {
    pub(super) fn read(file: CatalogueFile) -> Result<Self, Misplaced> {
        let mut positions = Vec::new();
        let sports = file.sports.into_iter().map(|line| (line.key.clone(), line));
        let competitions = file.competitions.into_iter().map(|line| (line.key.clone(), line));
        let bookmakers = file.bookmakers.into_iter().map(|line| (line.key.clone(), line));
        let families = file.families.into_iter().map(|key| (key.clone(), key.into_inner()));
        Ok(Entries {
            sports: read_lines(sports, sport, &mut positions)?,
            families: read_lines(families, sport_family, &mut positions)?,
            competitions: read_lines(competitions, competition, &mut positions)?,
            market_families: market_families(file.market_families)?,
            props: props(file.props)?,
            bookmakers: read_lines(bookmakers, bookmaker, &mut positions)?,
            positions,
        })
    }

    /// Where the keys are in the text.
    pub(super) fn positions(&self) -> Vec<KeyPosition> {
        self.positions.clone()
    }

    /// These entries with those of another file added, or in place of the entries with the same key.
    pub(super) fn with(mut self, other: Entries) -> Self {
        override_by_key(&mut self.sports, other.sports, |sport| &sport.key);
        override_by_key(&mut self.bookmakers, other.bookmakers, |book| &book.key);
        // A competition whose sport lost its names in The Odds API goes with them.
        let sports = &self.sports;
        self.competitions.retain(|listed| has_sport(sports, &listed.key));
        override_by_key(&mut self.competitions, other.competitions, |listed| &listed.key);
        self.market_families.extend(other.market_families);
        self.props.extend(other.props);
        self.families.extend(other.families);
        self
    }

    pub(super) fn into_catalogue(self) -> Result<Catalogue, CatalogueError> {
        let mut sports = self.sports;
        for family in &self.families {
            if !sports.iter().any(|sport| *sport.key == **family || prefix_of(sport) == Some(family)) {
                sports.push(Sport::of_family(family));
            }
        }
        let catalogue = Catalogue::new(sports, self.bookmakers)?.with_competitions(self.competitions)?;
        Ok(catalogue.with_markets(MarketFamilies::new(self.market_families, self.props)))
    }
}

fn prefix_of(sport: &Sport) -> Option<&str> {
    sport.v4.as_ref().map(V4Names::prefix)
}

fn has_sport(sports: &[Sport], competition: &str) -> bool {
    sports.iter().filter_map(|sport| sport.v4.as_ref()).any(|names| names.has(competition))
}

/// What each line of a list becomes. A key may be in it once.
fn read_lines<L, T>(
    lines: impl Iterator<Item = (Spanned<Box<str>>, L)>,
    read: impl Fn(L) -> Result<T, EntryProblem>,
    positions: &mut Vec<KeyPosition>,
) -> Result<Vec<T>, Misplaced> {
    let first = positions.len();
    let mut entries = Vec::new();
    for (key, line) in lines {
        let (start, key) = (key.span().start, key.into_inner());
        if positions[first..].iter().any(|(listed, _)| *listed == key) {
            return Err((start, EntryProblem::Key(CatalogueError::Duplicate(key))));
        }
        entries.push(read(line).map_err(|problem| (start, problem))?);
        positions.push((key, start));
    }
    Ok(entries)
}

fn override_by_key<T>(entries: &mut Vec<T>, others: Vec<T>, key: impl Fn(&T) -> &str) {
    for other in others {
        match entries.iter_mut().find(|entry| key(entry) == key(&other)) {
            Some(entry) => *entry = other,
            None => entries.push(other),
        }
    }
}
