//! The events of one index under the keys that The Odds API has for them.

use foldhash::{HashMap, HashMapExt};

use crate::board::index::Index;
use crate::model::{Event, V4Keys, V4Names};

/// One key: a whole sport, or one competition of it.
#[derive(Debug)]
pub(crate) struct Competition {
    pub key: Box<str>,
    pub title: Box<str>,
    pub description: Box<str>,
    pub index: Index,
}

/// Every key that an index has events for, in order. A sport with one key has it always.
#[derive(Debug)]
pub(crate) struct Competitions(Box<[Competition]>);

impl Competitions {
    pub(crate) fn of(index: &Index, names: &V4Names) -> Self {
        match &names.keys {
            V4Keys::Whole { key, title, description } => Competitions(Box::new([Competition {
                key: key.clone(),
                title: title.clone(),
                description: description.clone(),
                index: index.clone(),
            }])),
            V4Keys::ByCompetition { .. } => Competitions::split(index, names),
        }
    }

    /// Groups events by name first, so that a key is derived once for each name and not once for each event. Two names
    /// with the same key share it, under the title of the one whose event comes first.
    fn split(index: &Index, names: &V4Names) -> Self {
        let mut by_name: HashMap<(&str, Option<&str>), usize> = HashMap::new();
        let mut by_key: HashMap<Box<str>, usize> = HashMap::new();
        let mut groups: Vec<(Box<str>, &Event, Vec<_>)> = Vec::new();
        for node in index.iter() {
            let event = &**node.event();
            let name = (&*event.competition, event.title().map(|title| &**title));
            let at = *by_name.entry(name).or_insert_with(|| {
                let key: Box<str> = names.key_of(event).into();
                *by_key.entry(key.clone()).or_insert_with(|| {
                    groups.push((key, event, Vec::new()));
                    groups.len() - 1
                })
            });
            groups[at].2.push(node.clone());
        }
        groups.sort_unstable_by(|(one, ..), (other, ..)| one.cmp(other));
        let competition = |(key, event, nodes): (Box<str>, &Event, Vec<_>)| Competition {
            key,
            title: names.title_of(event).into(),
            description: (&*event.competition).into(),
            index: index.subset(nodes),
        };
        Competitions(groups.into_iter().map(competition).collect())
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Competition> {
        let at = self.0.binary_search_by(|own| (*own.key).cmp(key)).ok()?;
        Some(&self.0[at])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Competition> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::board::node::Draft;
    use crate::model::v4::Pattern;
    use crate::model::{Bookmakers, Contest, EventId, EventStatus, Timestamp};

    fn index(events: &[(&str, &str)]) -> Index {
        let node = |(at, (id, competition)): (u32, &(&str, &str))| {
            let event = Event {
                id: EventId::new(id).unwrap(),
                competition: (*competition).into(),
                commence: Timestamp::from_unix(at),
                contest: Contest::Sides { home: "A".into(), away: "B".into() },
                status: EventStatus::Scheduled,
                changed: Timestamp::from_unix(0),
            };
            Arc::new(Draft::new(Arc::new(event)).finish(&Bookmakers::default()))
        };
        Index::from_sorted((0..).zip(events).map(node).collect())
    }

    fn tennis() -> V4Names {
        let keys = V4Keys::ByCompetition {
            key: Pattern::parse("tennis_*").unwrap(),
            title: Pattern::parse("*").unwrap(),
            irregular: Box::default(),
        };
        V4Names { group: "Tennis".into(), keys }
    }

    #[test]
    fn each_key_has_its_own_events_and_no_others() {
        let index = index(&[("e1", "WTA Rome"), ("e2", "ATP Rome"), ("e3", "WTA Rome"), ("e4", "W.T.A. Rome")]);
        let competitions = Competitions::of(&index, &tennis());
        let keys: Vec<&str> = competitions.iter().map(|own| &*own.key).collect();
        assert_eq!(keys, ["tennis_atp_rome", "tennis_w_t_a_rome", "tennis_wta_rome"]);
        let rome = competitions.get("tennis_wta_rome").unwrap();
        assert_eq!((&*rome.title, rome.index.event_count()), ("WTA Rome", 2));
        assert!(rome.index.get("e3").is_some());
        assert!(rome.index.get("e2").is_none(), "an event of another key is not there");
        assert!(competitions.get("tennis_wta").is_none());
    }

    #[test]
    fn two_names_of_one_key_share_it() {
        let index = index(&[("e1", "WTA Rome"), ("e2", "WTA  Rome!")]);
        let competitions = Competitions::of(&index, &tennis());
        let all: Vec<_> = competitions.iter().map(|own| (&*own.title, own.index.event_count())).collect();
        assert_eq!(all, [("WTA Rome", 2)]);
        let rome = competitions.get("tennis_wta_rome").unwrap();
        assert!(rome.index.get("e1").is_some() && rome.index.get("e2").is_some());
    }
}
