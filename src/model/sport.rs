//! Sports, their kinds and groups, and the catalogue that lists them with their competitions.
//!
//! A sport is a row of data. Its kind is code: it decides what its events usually look like.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::bookmaker::Bookmaker;
use super::competition::Competition;
use super::event::Contest;
use super::market::MarketFamilies;
use super::v4::V4Names;

/// The shape of a sport's events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SportKind {
    /// Two sides compete.
    HeadToHead,
    /// Two fighters compete: results can be grouped by bout, and a score may name a winner.
    Fight,
    /// A field competes under a title; there are no sides.
    Tournament,
}

/// A sport in the catalogue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sport {
    pub key: Box<str>,
    pub title: Box<str>,
    /// The unit to which production keys can be restricted.
    pub group: Box<str>,
    pub kind: SportKind,
    /// Whether lists leave out its events with a field unless a request names them: clients of the first version expect two
    /// sides.
    pub hides_fields: bool,
    /// Its names in The Odds API; `None` if it has none.
    pub v4: Option<V4Names>,
}

/// The position of a sport in this process's catalogue. Never stored or sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SportId(u8);

impl SportId {
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

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

/// Longer than those of sports, which they begin with.
const COMPETITION_KEY_MAX: usize = 80;

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
            if !is_key_of(&key, COMPETITION_KEY_MAX) {
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

    pub fn competition(&self, key: &str) -> Option<&Competition> {
        self.competitions.get(key)
    }

    /// The key of an event's competition, for a feed that does not give one: of the listed competition with that title, else
    /// as the sport forms its keys.
    pub fn competition_key(&self, sport: SportId, name: &str, contest: &Contest) -> Cow<'_, str> {
        let Sport { key, v4, .. } = &self[sport];
        let Some(names) = v4 else { return Cow::Borrowed(key) };
        let listed = |title: &str| {
            let mut own = self.competitions().filter(|listed| names.has(&listed.key));
            own.find(|listed| *listed.title == *title.trim()).map(|listed| Cow::Borrowed(&*listed.key))
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

/// Whether a text is a valid key of a sport or a bookmaker.
pub fn is_key(text: &str) -> bool {
    is_key_of(text, 40)
}

/// Whether a text is a valid key of a competition.
pub fn is_competition_key(text: &str) -> bool {
    is_key_of(text, COMPETITION_KEY_MAX)
}

fn is_key_of(text: &str, bytes_max: usize) -> bool {
    (1..=bytes_max).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

/// A set of sports of one catalogue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SportSet(u64);

impl SportSet {
    pub const NONE: SportSet = SportSet(0);
    pub const ALL: SportSet = SportSet(u64::MAX);

    #[must_use]
    pub const fn with(self, sport: SportId) -> Self {
        SportSet(self.0 | 1 << sport.0)
    }

    #[must_use]
    pub const fn union(self, other: SportSet) -> Self {
        SportSet(self.0 | other.0)
    }

    pub const fn contains(self, sport: SportId) -> bool {
        self.0 & (1 << sport.0) != 0
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}
