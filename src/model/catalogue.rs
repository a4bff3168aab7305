//! The catalogue: the sports of the service, their competitions and markets, and the bookmakers that it knows from the
//! start.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::bookmaker::Bookmaker;
use super::competition::Competition;
use super::event::Contest;
use super::market::MarketFamilies;
use super::sport::{COMPETITION_KEY_MAX, Sport, SportId, SportSet, is_competition_key, is_key};
use super::v4::V4Names;
use crate::nearest::nearest;

/// The sports of the service with their competitions and markets, and its predefined bookmakers. Built once, then shared.
#[derive(Clone, Debug)]
pub struct Catalogue {
    sports: Box<[Sport]>,
    bookmakers: Box<[Bookmaker]>,
    competitions: BTreeMap<Box<str>, Competition>,
    markets: MarketFamilies,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CatalogueError {
    #[error("it lists no sport")]
    NoSport,
    #[error("it lists {0} sports; {max} are possible", max = Catalogue::SPORTS_MAX)]
    TooManySports(usize),
    #[error("the key {0:?} is listed twice")]
    Duplicate(Box<str>),
    #[error(
        "{0:?} is not a valid key: use 1 to 40 (a competition's up to {COMPETITION_KEY_MAX}) of a to z, 0 to 9 and _"
    )]
    BadKey(Box<str>),
    #[error("the key {0:?} begins with no listed sport's v4 key")]
    NoSportOf(Box<str>),
}

impl Catalogue {
    /// The number of bits in a [`SportSet`].
    pub const SPORTS_MAX: usize = 64;

    pub fn new(sports: Vec<Sport>, bookmakers: Vec<Bookmaker>) -> Result<Self, CatalogueError> {
        if sports.is_empty() {
            return Err(CatalogueError::NoSport);
        }
        if sports.len() > Self::SPORTS_MAX {
            return Err(CatalogueError::TooManySports(sports.len()));
        }
        unique_keys(sports.iter().map(|sport| &sport.key))?;
        unique_keys(bookmakers.iter().map(|book| &book.key))?;
        Ok(Catalogue {
            sports: sports.into(),
            bookmakers: bookmakers.into(),
            competitions: BTreeMap::new(),
            markets: MarketFamilies::default(),
        })
    }

    /// Adds competitions. The sport of each is the one that its key begins with.
    pub fn with_competitions(mut self, competitions: Vec<Competition>) -> Result<Self, CatalogueError> {
        for competition in competitions {
            if self.find_v4(&competition.key).is_none() {
                return Err(CatalogueError::NoSportOf(competition.key));
            }
            let key = competition.key.clone();
            if !is_competition_key(&key) {
                return Err(CatalogueError::BadKey(key));
            }
            if self.competitions.insert(key.clone(), competition).is_some() {
                return Err(CatalogueError::Duplicate(key));
            }
        }
        Ok(self)
    }

    #[must_use]
    pub fn with_markets(self, markets: MarketFamilies) -> Self {
        Catalogue { markets, ..self }
    }

    pub fn markets(&self) -> &MarketFamilies {
        &self.markets
    }

    /// In the order of their keys.
    pub fn competitions(&self) -> impl Iterator<Item = &Competition> {
        self.competitions.values()
    }

    /// The listed competitions of a sport, in the order of their keys.
    pub fn competitions_of(&self, sport: SportId) -> impl Iterator<Item = &Competition> {
        let names = self[sport].v4.as_ref();
        self.competitions().filter(move |listed| names.is_some_and(|names| names.has(&listed.key)))
    }

    pub fn competition(&self, key: &str) -> Option<&Competition> {
        self.competitions.get(key)
    }

    /// The key of an event's competition, for a feed that does not give one: of the listed competition with that title, else
    /// as the sport forms its keys.
    pub fn competition_key(&self, sport: SportId, name: &str, contest: &Contest) -> Cow<'_, str> {
        let Sport { key, v4, .. } = &self[sport];
        let Some(names) = v4 else { return Cow::Borrowed(key) };
        let listed = |title: &str| {
            let found = self.competitions_of(sport).find(|listed| *listed.title == *title.trim());
            found.map(|listed| Cow::Borrowed(&*listed.key))
        };
        let by_field = match contest {
            Contest::Sides { .. } => None,
            Contest::Tournament { title } => listed(title).or_else(|| listed(&names.title_of(title)?)),
        };
        by_field.or_else(|| listed(name)).unwrap_or_else(|| names.key_of(name, contest))
    }

    /// The title of a competition that no feed gave one for: the listed one, else as the sport forms them.
    pub fn title_of(&self, sport: SportId, key: &str, name: &str, contest: &Contest) -> Arc<str> {
        if let Some(listed) = self.competition(key) {
            return (*listed.title).into();
        }
        let named = match contest {
            Contest::Tournament { title } => title,
            Contest::Sides { .. } => name,
        };
        let formed = self[sport].v4.as_ref().and_then(|names| names.title_of(named));
        formed.map_or_else(|| name.into(), Arc::from)
    }

    pub fn sports(&self) -> impl Iterator<Item = (SportId, &Sport)> {
        (0..).map(SportId).zip(&self.sports)
    }

    pub fn sport_ids(&self) -> impl Iterator<Item = SportId> + use<> {
        (0..u8::try_from(self.sports.len()).unwrap_or(u8::MAX)).map(SportId)
    }

    pub fn sport_count(&self) -> usize {
        self.sports.len()
    }

    pub fn find(&self, key: &str) -> Option<SportId> {
        self.sports().find(|(_, sport)| *sport.key == *key).map(|(id, _)| id)
    }

    /// The sport that a key of The Odds API belongs to.
    pub fn find_v4(&self, key: &str) -> Option<(SportId, &V4Names)> {
        self.sports().find_map(|(id, sport)| sport.v4.as_ref().filter(|names| names.has(key)).map(|names| (id, names)))
    }

    /// The sport that a key of ours or of The Odds API belongs to.
    pub fn find_any(&self, key: &str) -> Result<SportId, UnknownSport> {
        let found = self.find(key).or_else(|| self.find_v4(key).map(|(sport, _)| sport));
        found.ok_or_else(|| self.unknown_sport(key))
    }

    /// What a key that belongs to no sport probably means.
    pub fn unknown_sport(&self, key: &str) -> UnknownSport {
        let advice = match (self.nearest_key(key), family_of(key)) {
            (Some(nearest), _) => Advice::Meant(nearest),
            (None, Some(family)) => Advice::AddFamily(family.into()),
            (None, None) => Advice::List,
        };
        UnknownSport { key: key.into(), advice }
    }

    /// The family of The Odds API that an operator's key names, if the catalogue lacks it and the key is no mistyped one.
    pub fn new_family<'k>(&self, key: &'k str) -> Option<&'k str> {
        let is_known = self.find(key).is_some() || self.find_v4(key).is_some();
        family_of(key).filter(|_| !is_known && self.nearest_key(key).is_none())
    }

    /// The sport or competition nearest to a mistyped key. A competition that is not listed may have a mistyped family.
    fn nearest_key(&self, typed: &str) -> Option<Box<str>> {
        let sports = self.sports.iter().map(|sport| &*sport.key);
        let listed = nearest(typed, sports.chain(self.competitions.keys().map(|key| &**key)));
        let by_family = || {
            let (family, rest) = typed.split_once('_')?;
            let families = self.sports.iter().filter_map(|sport| sport.v4.as_ref()).map(V4Names::prefix);
            Some(format!("{}_{rest}", nearest(family, families)?))
        };
        listed.map(Box::from).or_else(|| by_family().map(Box::from))
    }

    /// The sports of a group; empty if no sport is in it.
    pub fn group(&self, group: &str) -> SportSet {
        self.sports().filter(|(_, sport)| *sport.group == *group).fold(SportSet::NONE, |set, (id, _)| set.with(id))
    }

    /// All groups without duplicates, in catalogue order.
    pub fn groups(&self) -> Vec<&str> {
        let mut groups: Vec<&str> = Vec::new();
        for sport in &self.sports {
            if !groups.contains(&&*sport.group) {
                groups.push(&sport.group);
            }
        }
        groups
    }

    pub fn bookmakers(&self) -> &[Bookmaker] {
        &self.bookmakers
    }
}

impl std::ops::Index<SportId> for Catalogue {
    type Output = Sport;

    fn index(&self, id: SportId) -> &Sport {
        &self.sports[id.index()]
    }
}

/// What The Odds API calls the family of a key: its first word.
fn family_of(key: &str) -> Option<&str> {
    let family = key.split_once('_').map_or(key, |(family, _)| family);
    (is_competition_key(key) && is_key(family)).then_some(family)
}

/// A key that belongs to no sport of the catalogue. Its text says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no sport or competition {key:?}: {advice}")]
pub struct UnknownSport {
    key: Box<str>,
    advice: Advice,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
enum Advice {
    #[error("did you mean {0:?}?")]
    Meant(Box<str>),
    #[error("to carry it, add families = [{0:?}] to the file that the setting catalogue names, and restart")]
    AddFamily(Box<str>),
    #[error("`oddsbox catalogue` lists those there are")]
    List,
}

fn unique_keys<'a>(keys: impl Iterator<Item = &'a Box<str>>) -> Result<(), CatalogueError> {
    let mut seen = std::collections::HashSet::new();
    for key in keys {
        if !is_key(key) {
            return Err(CatalogueError::BadKey(key.clone()));
        }
        if !seen.insert(key) {
            return Err(CatalogueError::Duplicate(key.clone()));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use crate::config::catalogue::builtin;

    #[test]
    fn unknown_sport_says_what_to_do() {
        let catalogue = builtin();
        for (key, advice) in [
            ("socer", "did you mean \"soccer\"?"),
            ("soccer_elp", "did you mean"),
            ("socer_iceland_cup", "did you mean \"soccer_iceland_cup\"?"),
            ("darts_pdc", "add families = [\"darts\"]"),
            ("darts", "add families = [\"darts\"]"),
            ("Darts!", "`oddsbox catalogue` lists"),
        ] {
            let message = catalogue.unknown_sport(key).to_string();
            assert!(message.contains(advice), "{key}: {message}");
        }
        assert_eq!(catalogue.find_any("soccer_iceland_cup"), Ok(catalogue.find("soccer").unwrap()));
    }

    #[test]
    fn new_family_is_neither_known_nor_mistyped() {
        let catalogue = builtin();
        let families = ["darts_pdc", "darts", "soccer_iceland_cup", "soccer", "socer_epl", "tenis", "", "darts pdc"];
        let new: Vec<_> = families.iter().filter_map(|key| catalogue.new_family(key)).collect();
        assert_eq!(new, ["darts", "darts"]);
    }
}
