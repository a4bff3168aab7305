//! The names that version 4 of The Odds API has for sports: its clients come with them, its payloads carry them.
//!
//! There a sport key names either a whole sport (`mma_mixed_martial_arts`) or one competition of it
//! (`tennis_atp_wimbledon`, `golf_us_open_winner`). The names are data of the catalogue, and are mapped both ways here.

use std::borrow::Cow;

use super::event::{Contest, Event};

/// What a sport is called there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct V4Names {
    /// The heading that its keys stand under: `Mixed Martial Arts`.
    pub group: Box<str>,
    pub keys: V4Keys,
}

/// How the keys of a sport are made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum V4Keys {
    /// One key for the whole sport.
    Whole { key: Box<str>, title: Box<str>, description: Box<str> },
    /// A key for each competition: its name as a slug in the middle of the key, and as it is in the title.
    ByCompetition {
        key: Pattern,
        title: Pattern,
        /// Competitions whose key is not made of their name: the name and the middle of the key.
        irregular: Box<[(Box<str>, Box<str>)]>,
    },
}

/// A text with a gap: `golf_*_winner`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    prefix: Box<str>,
    suffix: Box<str>,
}

impl Pattern {
    /// Reads a text with exactly one `*`.
    pub fn parse(text: &str) -> Option<Self> {
        let (prefix, suffix) = text.split_once('*')?;
        (!suffix.contains('*')).then(|| Pattern { prefix: prefix.into(), suffix: suffix.into() })
    }

    pub fn fill(&self, middle: &str) -> String {
        [&*self.prefix, middle, &*self.suffix].concat()
    }

    /// What stands in the gap, if the text is of this pattern and something does.
    pub fn middle<'t>(&self, text: &'t str) -> Option<&'t str> {
        let middle = text.strip_prefix(&*self.prefix)?.strip_suffix(&*self.suffix)?;
        (!middle.is_empty()).then_some(middle)
    }
}

impl V4Names {
    /// Whether a key names this sport or a competition of it.
    pub fn has(&self, key: &str) -> bool {
        match &self.keys {
            V4Keys::Whole { key: own, .. } => **own == *key,
            V4Keys::ByCompetition { key: pattern, .. } => pattern.middle(key).is_some(),
        }
    }

    /// The key that an event stands under.
    pub fn key_of(&self, event: &Event) -> Cow<'_, str> {
        match &self.keys {
            V4Keys::Whole { key, .. } => Cow::Borrowed(key),
            V4Keys::ByCompetition { key, irregular, .. } => {
                let name = name_of(event);
                let known = irregular.iter().find(|(known, _)| **known == *name);
                Cow::Owned(known.map_or_else(|| key.fill(&slug(name)), |(_, middle)| key.fill(middle)))
            }
        }
    }

    /// The title of that key.
    pub fn title_of(&self, event: &Event) -> Cow<'_, str> {
        match &self.keys {
            V4Keys::Whole { title, .. } => Cow::Borrowed(title),
            V4Keys::ByCompetition { title, .. } => Cow::Owned(title.fill(name_of(event))),
        }
    }

    /// The competition's own name, from the title that a payload carries.
    pub fn competition<'t>(&self, title: &'t str) -> &'t str {
        match &self.keys {
            V4Keys::Whole { .. } => title,
            V4Keys::ByCompetition { title: pattern, .. } => pattern.middle(title).unwrap_or(title),
        }
    }
}

/// What tells a sport's competitions apart: the tournament where a field plays under a title, else the competition.
fn name_of(event: &Event) -> &str {
    match &event.contest {
        Contest::Tournament { title } => title,
        Contest::Sides { .. } => &event.competition,
    }
}

/// A name as a part of a key: letters and digits in lower case, everything between them one `_`.
fn slug(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect::<Vec<_>>().join("_")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{EventId, EventStatus, Timestamp};

    fn golf() -> V4Names {
        let keys = V4Keys::ByCompetition {
            key: Pattern::parse("golf_*_winner").unwrap(),
            title: Pattern::parse("* Winner").unwrap(),
            irregular: [("The Open".into(), "the_open_championship".into())].into(),
        };
        V4Names { group: "Golf".into(), keys }
    }

    fn tournament(title: &str) -> Event {
        Event {
            id: EventId::new("e1").unwrap(),
            competition: "Some Tour".into(),
            commence: Timestamp::from_unix(0),
            contest: Contest::Tournament { title: title.into() },
            status: EventStatus::Scheduled,
            changed: Timestamp::from_unix(0),
        }
    }

    #[test]
    fn a_competition_has_its_own_key_and_title() {
        for (title, key) in [
            ("US Open", "golf_us_open_winner"),
            ("St. Jude's Classic", "golf_st_jude_s_classic_winner"),
            ("The Open", "golf_the_open_championship_winner"),
        ] {
            let event = tournament(title);
            assert_eq!(golf().key_of(&event), key);
            assert!(golf().has(key));
            let named = golf().title_of(&event).into_owned();
            assert_eq!(named, format!("{title} Winner"));
            assert_eq!(golf().competition(&named), title);
        }
    }

    #[test]
    fn another_sports_keys_are_not_ours() {
        for key in ["golf_winner", "golf__winner", "tennis_us_open", "golf_us_open", ""] {
            assert!(!golf().has(key), "{key}");
        }
        for text in ["golf", "golf_*_*"] {
            assert_eq!(Pattern::parse(text), None);
        }
    }
}
