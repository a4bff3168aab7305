//! The competitions that a feed polls: those that are configured by their keys and, of the sports that are configured,
//! those that the upstream lists as active.

use std::collections::BTreeMap;

use crate::ingest::the_odds_api::SportEntry;
use crate::model::sport::is_competition_key;
use crate::model::{Catalogue, Competitions, SportId, SportKind, UnknownSport, V4Keys};
use crate::nearest::nearest;

/// A competition that is polled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PolledCompetition {
    pub(super) key: Box<str>,
    pub(super) sport: SportId,
    pub(super) kind: SportKind,
    /// Whether its events have a field instead of two sides: it has prices of the winner only.
    pub(super) has_field: bool,
}

/// What the upstream says of a competition.
#[derive(Clone, Copy, Debug)]
struct ListedCompetition {
    is_active: bool,
    has_outrights: Option<bool>,
}

#[derive(Debug)]
pub(super) struct PolledCompetitions {
    /// Those that are configured one by one.
    named: BTreeMap<Box<str>, SportId>,
    /// Sports of which the upstream lists the competitions.
    open: Vec<SportId>,
    /// `None` until the upstream has listed them.
    listed: Option<BTreeMap<Box<str>, ListedCompetition>>,
}

impl PolledCompetitions {
    /// Fails on the first name that is neither a sport nor a competition of one; the error says what to do.
    pub(super) fn new(names: &[String], catalogue: &Catalogue) -> Result<Self, UnknownSport> {
        let mut all = PolledCompetitions { named: BTreeMap::new(), open: Vec::new(), listed: None };
        for name in names {
            if let Some(sport) = catalogue.find(name) {
                match only_competition(sport, catalogue) {
                    Some(key) => drop(all.named.insert(key, sport)),
                    None => all.open.push(sport),
                }
                continue;
            }
            match catalogue.find_v4(name).filter(|_| is_competition_key(name)) {
                Some((sport, _)) => drop(all.named.insert(name.as_str().into(), sport)),
                None => return Err(catalogue.unknown_sport(name)),
            }
        }
        Ok(all)
    }

    /// Whether the upstream has to be asked for its list.
    pub(super) fn are_asked_for(&self) -> bool {
        !self.open.is_empty()
    }

    /// Whether the upstream has listed them.
    pub(super) fn are_found(&self) -> bool {
        self.listed.is_some()
    }

    /// Takes over the upstream's list.
    pub(super) fn list(&mut self, entries: &[SportEntry]) {
        // A key becomes a part of a path: only plain ones are used.
        let plain = entries.iter().filter(|entry| is_competition_key(&entry.key));
        let listed = plain.map(|entry| {
            let SportEntry { key, active, has_outrights } = entry;
            (key.clone(), ListedCompetition { is_active: *active, has_outrights: *has_outrights })
        });
        self.listed = Some(listed.take(Competitions::MAX).collect());
    }

    /// Every competition that is polled, once. A list of the upstream says which are active; without one, those that are
    /// configured one by one count as active.
    pub(super) fn polled(&self, catalogue: &Catalogue) -> Vec<PolledCompetition> {
        let Some(listed) = &self.listed else {
            return self.named.iter().map(|(key, sport)| competition(key, *sport, None, catalogue)).collect();
        };
        let active = listed.iter().filter(|(_, listed)| listed.is_active);
        let of_feed = active.filter_map(|(key, listed)| {
            let (sport, _) = catalogue.find_v4(key)?;
            let is_asked = self.named.contains_key(key) || self.open.contains(&sport);
            is_asked.then(|| competition(key, sport, listed.has_outrights, catalogue))
        });
        of_feed.collect()
    }

    /// Configured competitions that the upstream does not list as active, and why they are not polled.
    pub(super) fn inactive(&self, catalogue: &Catalogue) -> Vec<(&str, String)> {
        let Some(listed) = &self.listed else { return Vec::new() };
        let idle = self.named.keys().filter_map(|key| match listed.get(key) {
            Some(listed) if listed.is_active => None,
            _ if catalogue.competition(key).is_some() => {
                Some((&**key, "the upstream does not list it as active".into()))
            }
            _ => {
                let meant = nearest(key, listed.keys().map(|key| &**key));
                let hint = meant.map(|meant| format!("; did you mean {meant}?")).unwrap_or_default();
                Some((&**key, format!("the upstream does not list it{hint}")))
            }
        });
        idle.collect()
    }
}

/// The key of a sport that has a single one, so that no list is needed.
fn only_competition(sport: SportId, catalogue: &Catalogue) -> Option<Box<str>> {
    let names = catalogue[sport].v4.as_ref()?;
    let V4Keys::Whole { key, .. } = &names.keys else { return None };
    let mut others = catalogue.competitions_of(sport).filter(|other| other.key != *key);
    others.next().is_none().then(|| key.clone())
}

fn competition(key: &str, sport: SportId, has_outrights: Option<bool>, catalogue: &Catalogue) -> PolledCompetition {
    let kind = catalogue[sport].kind;
    let by_name = || key.ends_with("_winner") || kind == SportKind::Tournament;
    let listed = catalogue.competition(key).map(|listed| listed.has_field);
    let has_field = listed.or(has_outrights).unwrap_or_else(by_name);
    PolledCompetition { key: key.into(), sport, kind, has_field }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::catalogue;

    fn competitions(names: &[&str]) -> Result<PolledCompetitions, UnknownSport> {
        PolledCompetitions::new(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>(), &catalogue::builtin())
    }

    fn entry(key: &str, active: bool, has_outrights: Option<bool>) -> SportEntry {
        SportEntry { key: key.into(), active, has_outrights }
    }

    fn polled(all: &PolledCompetitions) -> String {
        let shown = |polled: &PolledCompetition| format!("{}{}", polled.key, if polled.has_field { "*" } else { "" });
        all.polled(&catalogue::builtin()).iter().map(shown).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn sports_are_polled_by_the_competitions_that_are_active() {
        let mut all = competitions(&["mma", "golf", "american_football", "soccer_epl", "soccer_new_cup"]).unwrap();
        assert!(all.are_asked_for() && !all.are_found());
        assert_eq!(polled(&all), "mma_mixed_martial_arts soccer_epl soccer_new_cup");
        all.list(&[
            entry("golf_us_open_winner", true, None),
            entry("golf_a/../b_winner", true, None),
            entry("golf_ryder_cup", true, Some(false)),
            entry("golf_old_winner", false, None),
            entry("soccer_epl", true, Some(true)),
            entry("soccer_spain_la_liga", true, None),
            entry("americanfootball_nfl", true, None),
            entry("americanfootball_nfl_super_bowl_winner", true, None),
            entry("americanfootball_new_futures", true, Some(true)),
            entry("mma_mixed_martial_arts", false, None),
        ]);
        // Whether a competition has a field is what the catalogue says, else the upstream, else its name.
        assert_eq!(
            polled(&all),
            "americanfootball_new_futures* americanfootball_nfl americanfootball_nfl_super_bowl_winner* \
             golf_ryder_cup golf_us_open_winner* soccer_epl"
        );
        let catalogue = catalogue::builtin();
        let inactive = all.inactive(&catalogue);
        assert_eq!(
            inactive,
            [
                ("mma_mixed_martial_arts", "the upstream does not list it as active".to_owned()),
                ("soccer_new_cup", "the upstream does not list it".to_owned())
            ]
        );
    }

    #[test]
    fn configured_competition_needs_no_list() {
        let all = competitions(&["mma", "soccer_fifa_world_cup_winner", "tennis_new_cup_winner"]).unwrap();
        assert!(!all.are_asked_for());
        assert_eq!(polled(&all), "mma_mixed_martial_arts soccer_fifa_world_cup_winner* tennis_new_cup_winner*");
    }
}
