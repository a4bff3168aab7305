//! Sport names of version 4 of The Odds API, as its clients request them and its payloads contain them.
//!
//! In that API a sport key names either a whole sport (`mma_mixed_martial_arts`) or one competition of it
//! (`tennis_atp_wimbledon`, `golf_us_open_winner`). The names come from the catalogue; this module maps both ways.

use std::borrow::Cow;

use super::event::Contest;

/// The names of a sport in The Odds API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct V4Names {
    /// The group that its keys belong to: `Mixed Martial Arts`.
    pub group: Box<str>,
    pub keys: V4Keys,
}

/// How the keys of a sport are formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum V4Keys {
    /// One key for the whole sport.
    Whole { key: Box<str>, title: Box<str>, description: Box<str> },
    /// One key per competition: the key contains the competition's name as a slug, the title contains it unchanged.
    ByCompetition {
        key: Pattern,
        title: Pattern,
        /// Competitions whose key is not derived from their name: the name and the slug to use instead.
        irregular: Box<[(Box<str>, Box<str>)]>,
    },
}

/// A text with a placeholder: `golf_*_winner`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    prefix: Box<str>,
    suffix: Box<str>,
}

impl Pattern {
    /// Parses a text with exactly one `*`.
    pub fn parse(text: &str) -> Option<Self> {
        let (prefix, suffix) = text.split_once('*')?;
        (!suffix.contains('*')).then(|| Pattern { prefix: prefix.into(), suffix: suffix.into() })
    }

    pub fn fill(&self, middle: &str) -> String {
        [&*self.prefix, middle, &*self.suffix].concat()
    }

    /// The text at the placeholder, if `text` matches the pattern and the placeholder is not empty.
    pub fn middle<'t>(&self, text: &'t str) -> Option<&'t str> {
        let middle = text.strip_prefix(&*self.prefix)?.strip_suffix(&*self.suffix)?;
        (!middle.is_empty()).then_some(middle)
    }
}

impl V4Names {
    /// The names of a sport of which only the family is known: one key per competition.
    pub(super) fn of_family(family: &str, group: Box<str>) -> Self {
        let pattern = |prefix: Box<str>| Pattern { prefix, suffix: Box::default() };
        let key = pattern(format!("{family}_").into());
        V4Names {
            group,
            keys: V4Keys::ByCompetition { key, title: pattern(Box::default()), irregular: Box::default() },
        }
    }

    /// What its keys begin with: `soccer` of `soccer_epl`.
    pub fn prefix(&self) -> &str {
        let key = match &self.keys {
            V4Keys::Whole { key, .. } => key,
            V4Keys::ByCompetition { key, .. } => &key.prefix,
        };
        key.split_once('_').map_or(key, |(prefix, _)| prefix)
    }

    /// Whether a key belongs to this sport.
    pub fn has(&self, key: &str) -> bool {
        key.split_once('_').is_some_and(|(prefix, rest)| prefix == self.prefix() && !rest.is_empty())
    }

    /// Whether a competition that the catalogue does not list can have a key.
    pub fn can_be(&self, key: &str) -> bool {
        match &self.keys {
            V4Keys::Whole { key: whole, .. } => **whole == *key,
            V4Keys::ByCompetition { key: pattern, .. } => pattern.middle(key).is_some(),
        }
    }

    /// The key of a competition that the catalogue does not list. A field's title names it, else the competition's name.
    pub fn key_of(&self, name: &str, contest: &Contest) -> Cow<'_, str> {
        match &self.keys {
            V4Keys::Whole { key, .. } => Cow::Borrowed(key),
            V4Keys::ByCompetition { key, irregular, .. } => {
                let name = match contest {
                    Contest::Tournament { title } => title,
                    Contest::Sides { .. } => name,
                };
                let known = irregular.iter().find(|(known, _)| **known == *name);
                Cow::Owned(known.map_or_else(|| key.fill(&slug(name)), |(_, middle)| key.fill(middle)))
            }
        }
    }

    /// The title of a competition's key; `None` if the sport has one key for all of them.
    pub fn title_of(&self, name: &str) -> Option<String> {
        match &self.keys {
            V4Keys::Whole { .. } => None,
            V4Keys::ByCompetition { title, .. } => Some(title.fill(name)),
        }
    }

    /// The competition's name, extracted from the title in a payload.
    pub fn competition<'t>(&self, title: &'t str) -> &'t str {
        match &self.keys {
            V4Keys::Whole { .. } => title,
            V4Keys::ByCompetition { title: pattern, .. } => pattern.middle(title).unwrap_or(title),
        }
    }
}

/// A name as part of a key: letters and digits in lower case, with one `_` for everything in between.
fn slug(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("_")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn golf() -> V4Names {
        let keys = V4Keys::ByCompetition {
            key: Pattern::parse("golf_*_winner").unwrap(),
            title: Pattern::parse("* Winner").unwrap(),
            irregular: [("The Open".into(), "the_open_championship".into())].into(),
        };
        V4Names { group: "Golf".into(), keys }
    }

    #[test]
    fn competition_has_its_own_key_and_title() {
        for (title, key) in [
            ("US Open", "golf_us_open_winner"),
            ("St. Jude's Classic", "golf_st_jude_s_classic_winner"),
            ("The Open", "golf_the_open_championship_winner"),
        ] {
            assert_eq!(golf().key_of("Some Tour", &Contest::Tournament { title: title.into() }), key);
            assert!(golf().has(key));
            let named = golf().title_of(title).unwrap();
            assert_eq!(named, format!("{title} Winner"));
            assert_eq!(golf().competition(&named), title);
        }
    }

    #[test]
    fn keys_of_other_sports_do_not_match() {
        assert!(golf().has("golf_ryder_cup"));
        for key in ["golf", "golf_", "golfing_us_open", "tennis_us_open", ""] {
            assert!(!golf().has(key), "{key}");
        }
        for text in ["golf", "golf_*_*"] {
            assert_eq!(Pattern::parse(text), None);
        }
    }
}
