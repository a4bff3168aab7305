//! Sports, their kinds and groups.
//!
//! A sport is a row of data. Its kind is code: it decides what its events usually look like.

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

impl Sport {
    /// The sport of a family of The Odds API that the catalogue has no line for: two sides, a group of its own.
    pub fn of_family(family: &str) -> Self {
        let title: Box<str> = match family.split_at_checked(1) {
            Some((first, rest)) => [&first.to_ascii_uppercase(), rest].concat().into(),
            None => family.into(),
        };
        Sport {
            key: family.into(),
            title: title.clone(),
            group: family.into(),
            kind: SportKind::HeadToHead,
            hides_fields: false,
            v4: Some(V4Names::of_family(family, title)),
        }
    }
}

/// The position of a sport in this process's catalogue. Never stored or sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SportId(pub(super) u8);

impl SportId {
    /// Every position, in order.
    pub(crate) fn all() -> impl Iterator<Item = SportId> {
        (0..=u8::MAX).map(SportId)
    }

    pub const fn index(self) -> usize {
        self.0 as usize
    }
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

    pub const fn contains_all(self, other: SportSet) -> bool {
        other.0 & !self.0 == 0
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Longer than those of sports, which they begin with.
pub(super) const COMPETITION_KEY_MAX: usize = 80;

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
