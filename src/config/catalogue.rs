//! The catalogue of sports, competitions, markets and bookmakers: the built-in TOML file, and the operator's file on top
//! of it.
//!
//! A line of the operator's file overrides the built-in line with the same key, or is added. With `replace = true` there
//! is nothing below it. A mistake is reported with its line.

mod changes;
mod entries;
mod lines;
#[cfg(test)]
mod tests;

use crate::model::{Catalogue, CatalogueError, Region};

use self::entries::Entries;
use self::lines::CatalogueFile;

pub use self::changes::{CatalogueChanges, ChangedKeys};

/// The text of the built-in catalogue.
pub const BUILTIN: &str = include_str!("../../data/catalogue.toml");

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
    #[error("{0:?} is not a family of sports: use the first word of its keys, such as darts of darts_pdc")]
    BadSportFamily(Box<str>),
}

/// The built-in catalogue.
#[expect(clippy::expect_used, reason = "the text is part of the program, and a test parses it")]
pub fn builtin() -> Catalogue {
    builtin_entries().into_catalogue().expect("the built-in catalogue is valid")
}

#[expect(clippy::expect_used, reason = "the text is part of the program, and a test parses it")]
fn builtin_entries() -> Entries {
    let (file, _) = read(BUILTIN).expect("the built-in catalogue is valid");
    file
}

/// Parses the operator's file.
pub fn parse(text: &str) -> Result<Catalogue, CatalogueFileError> {
    let (file, replaces) = read(text)?;
    let positions = file.positions();
    let catalogue = if replaces { file.into_catalogue() } else { builtin_entries().with(file).into_catalogue() };
    catalogue.map_err(|error| match last_position(&positions, &error) {
        Some(start) => CatalogueFileError::Entry { line: line_of(text, start), problem: EntryProblem::Key(error) },
        None => CatalogueFileError::Whole(error),
    })
}

/// What the operator's file adds and overrides.
pub fn changes(text: &str) -> Result<CatalogueChanges, CatalogueFileError> {
    parse(text)?;
    let (file, replaces) = read(text)?;
    let below = if replaces { Entries::default() } else { builtin_entries() };
    Ok(CatalogueChanges::new(&below, &file, replaces))
}

/// The same file with further families of sports.
pub fn with_families(text: &str, families: &[&str]) -> Result<String, CatalogueFileError> {
    let mut table: toml::Table = toml::from_str(text)?;
    let listed = table.entry("families").or_insert_with(|| toml::Value::Array(Vec::new()));
    if let toml::Value::Array(listed) = listed {
        listed.extend(families.iter().map(|family| toml::Value::from(*family)));
    }
    Ok(table.to_string())
}

/// The entries of a file, and whether it replaces the built-in ones.
fn read(text: &str) -> Result<(Entries, bool), CatalogueFileError> {
    let file: CatalogueFile = toml::from_str(text)?;
    let replaces = file.replace;
    let entries = Entries::read(file);
    let entries =
        entries.map_err(|(start, problem)| CatalogueFileError::Entry { line: line_of(text, start), problem })?;
    Ok((entries, replaces))
}

/// A key and its offset in the text.
type KeyPosition = (Box<str>, usize);

/// The last offset of the key that an error names.
fn last_position(positions: &[KeyPosition], error: &CatalogueError) -> Option<usize> {
    let (CatalogueError::Duplicate(named) | CatalogueError::BadKey(named) | CatalogueError::NoSportOf(named)) = error
    else {
        return None;
    };
    positions.iter().rev().find(|(key, _)| key == named).map(|(_, start)| *start)
}

fn line_of(text: &str, start: usize) -> usize {
    1 + text.bytes().take(start).filter(|byte| *byte == b'\n').count()
}
