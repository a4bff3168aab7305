//! The events of one index under the keys of their competitions.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::board::index::Index;
use crate::board::node::EventNode;
use crate::model::Competitions;

/// The events of one competition.
#[derive(Debug)]
pub(crate) struct CompetitionView {
    pub key: Box<str>,
    pub title: Box<str>,
    pub index: Index,
}

/// Every competition that an index has events of, in the order of keys.
#[derive(Debug)]
pub(crate) struct CompetitionViews(Box<[CompetitionView]>);

impl CompetitionViews {
    pub(crate) fn of(index: &Index, seen: &Competitions) -> Self {
        let mut by_key: BTreeMap<&str, Vec<Arc<EventNode>>> = BTreeMap::new();
        for node in index.iter() {
            by_key.entry(&node.event().competition_key).or_default().push(Arc::clone(node));
        }
        let view = |(key, nodes): (&str, Vec<Arc<EventNode>>)| {
            let name = || nodes.first().map_or(key, |node| &node.event().competition);
            let title = seen.get(key).map_or_else(name, |competition| &competition.title);
            CompetitionView { key: key.into(), title: title.into(), index: index.subset(nodes) }
        };
        CompetitionViews(by_key.into_iter().map(view).collect())
    }

    pub(crate) fn get(&self, key: &str) -> Option<&CompetitionView> {
        let at = self.0.binary_search_by(|own| (*own.key).cmp(key)).ok()?;
        Some(&self.0[at])
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &CompetitionView> {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::node::Draft;
    use crate::model::{Bookmakers, Contest, Event, EventId, EventStatus, Timestamp};

    fn index(events: &[(&str, &str)]) -> Index {
        let node = |(at, (id, key)): (u32, &(&str, &str))| {
            let event = Event {
                id: EventId::new(id).unwrap(),
                competition: "A name".into(),
                competition_key: (*key).into(),
                commence: Timestamp::from_unix(at),
                contest: Contest::Sides { home: "A".into(), away: "B".into() },
                status: EventStatus::Scheduled,
                changed: Timestamp::from_unix(0),
            };
            Arc::new(Draft::new(Arc::new(event)).finish(&Bookmakers::default()))
        };
        Index::from_sorted((0..).zip(events).map(node).collect())
    }

    #[test]
    fn each_key_has_its_own_events_and_no_others() {
        let index = index(&[("e1", "tennis_wta_rome"), ("e2", "tennis_atp_rome"), ("e3", "tennis_wta_rome")]);
        let views = CompetitionViews::of(&index, &Competitions::default());
        let keys: Vec<&str> = views.iter().map(|own| &*own.key).collect();
        assert_eq!(keys, ["tennis_atp_rome", "tennis_wta_rome"]);
        let rome = views.get("tennis_wta_rome").unwrap();
        assert_eq!((&*rome.title, rome.index.event_count()), ("A name", 2));
        assert!(rome.index.get("e3").is_some());
        assert!(rome.index.get("e2").is_none(), "an event of another key is not there");
        assert!(views.get("tennis_wta").is_none());
    }
}
