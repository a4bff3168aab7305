//! The sport keys that a feed asks for: those that are configured and, for a sport with a key for each competition, those
//! that the upstream lists as active.

use std::collections::BTreeMap;

use crate::model::{Catalogue, SportId, V4Keys};

/// A configured sport that does not exist.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct UnknownSport(pub(super) String);

#[derive(Debug)]
pub(super) struct SportKeys {
    configured: BTreeMap<Box<str>, SportId>,
    /// Sports whose keys the upstream lists.
    open: Vec<SportId>,
    found: BTreeMap<Box<str>, SportId>,
    are_found: bool,
}

impl SportKeys {
    pub(super) fn new(sports: &[String], catalogue: &Catalogue) -> Result<Self, UnknownSport> {
        let mut keys =
            SportKeys { configured: BTreeMap::new(), open: Vec::new(), found: BTreeMap::new(), are_found: false };
        for name in sports {
            if let Some((sport, _)) = catalogue.find_v4(name) {
                keys.configured.insert(name.as_str().into(), sport);
                continue;
            }
            let sport = catalogue.find(name).ok_or_else(|| UnknownSport(name.clone()))?;
            match catalogue[sport].v4.as_ref().map(|names| &names.keys) {
                Some(V4Keys::Whole { key, .. }) => drop(keys.configured.insert(key.clone(), sport)),
                Some(V4Keys::ByCompetition { .. }) => keys.open.push(sport),
                None => return Err(UnknownSport(name.clone())),
            }
        }
        Ok(keys)
    }

    /// Whether the upstream has to be asked for some of them.
    pub(super) fn are_asked_for(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the upstream has listed them.
    pub(super) fn are_found(&self) -> bool {
        self.are_found
    }

    /// Picks the competitions of the open sports from the keys that the upstream lists as active.
    pub(super) fn expand<'k>(&mut self, active: impl Iterator<Item = &'k str>, catalogue: &Catalogue) {
        let sport_of = |key: &str| catalogue.find_v4(key).map(|(sport, _)| sport);
        self.are_found = true;
        // A key becomes a part of a path: only plain ones are used.
        let plain = active.filter(|key| key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'));
        let known = plain.filter_map(|key| Some((key, sport_of(key)?)));
        self.found =
            known.filter(|(_, sport)| self.open.contains(sport)).map(|(key, sport)| (key.into(), sport)).collect();
    }

    /// Every key with its sport, once.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, SportId)> {
        let more = self.found.iter().filter(|(key, _)| !self.configured.contains_key(*key));
        self.configured.iter().chain(more).map(|(key, sport)| (&**key, *sport))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::catalogue;

    fn keys(sports: &[&str]) -> Result<SportKeys, UnknownSport> {
        SportKeys::new(&sports.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>(), &catalogue::builtin())
    }

    #[test]
    fn a_sport_of_competitions_is_asked_for_by_those_that_are_on() {
        let mut all = keys(&["mma", "golf", "tennis_atp_wimbledon"]).unwrap();
        assert!(all.are_asked_for());
        let list = |keys: &SportKeys| keys.iter().map(|(key, _)| key.to_owned()).collect::<Vec<_>>().join(" ");
        assert_eq!(list(&all), "mma_mixed_martial_arts tennis_atp_wimbledon");
        let active = ["golf_us_open_winner", "golf_a/../b_winner", "tennis_wta_us_open", "icehockey_nhl"];
        all.expand(active.into_iter(), &catalogue::builtin());
        assert_eq!(list(&all), "mma_mixed_martial_arts tennis_atp_wimbledon golf_us_open_winner");
        all.expand(std::iter::empty(), &catalogue::builtin());
        assert_eq!(list(&all), "mma_mixed_martial_arts tennis_atp_wimbledon");
    }

    #[test]
    fn a_sport_that_there_is_not_is_named() {
        assert_eq!(keys(&["mma", "chess"]).unwrap_err(), UnknownSport("chess".to_owned()));
        assert!(!keys(&["mma"]).unwrap().are_asked_for());
    }
}
