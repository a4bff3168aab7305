//! Competitions: what The Odds API calls a sport.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::sport::SportId;

/// A competition of the catalogue. Its sport is the one that its key begins with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Competition {
    /// `soccer_epl`.
    pub key: Box<str>,
    pub title: Box<str>,
    pub description: Box<str>,
    /// Whether its events have a field instead of two sides.
    pub has_field: bool,
}

/// A competition that a world has had an event of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenCompetition {
    pub sport: SportId,
    /// As the feed gave it, else as the catalogue lists it.
    pub title: Arc<str>,
}

/// The competitions that a world has had events of, by key.
#[derive(Clone, Debug, Default)]
pub struct Competitions(BTreeMap<Arc<str>, SeenCompetition>);

impl Competitions {
    /// More than there are in all of The Odds API, many times over.
    pub const MAX: usize = 4096;

    pub fn get(&self, key: &str) -> Option<&SeenCompetition> {
        self.0.get(key)
    }

    pub fn put(&mut self, key: Arc<str>, competition: SeenCompetition) {
        self.0.insert(key, competition);
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &SeenCompetition)> {
        self.0.iter()
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
