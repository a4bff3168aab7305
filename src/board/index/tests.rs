//! An index finds what a sorted list finds, also where many events begin at the same time.

use proptest::prelude::*;

use super::*;
use crate::board::node::Draft;
use crate::model::{Bookmakers, Contest, Event};

/// Few times for many events: chunks then begin and end within one time.
const TIMES: u32 = 4;

fn node(id: u32, commence: u32) -> Arc<EventNode> {
    let event = Event {
        id: EventId::new(&format!("e{id:03}")).unwrap(),
        competition: "League".into(),
        competition_key: "some_key".into(),
        commence: Timestamp::from_unix(commence),
        contest: Contest::Sides { home: "A".into(), away: "B".into() },
        status: EventStatus::Scheduled,
        changed: Timestamp::from_unix(0),
    };
    Arc::new(Draft::new(Arc::new(event)).finish(&Bookmakers::default()))
}

proptest! {
    #[test]
    fn an_index_finds_what_a_sorted_list_finds(
        commences in prop::collection::vec(0..TIMES, 1..400),
        moved in prop::collection::vec((0..400_u32, prop::option::of(0..TIMES)), 0..40),
        (from_id, from_commence) in (0..400_u32, 0..TIMES + 1),
    ) {
        let mut list: Vec<_> = (0..).zip(commences).map(|(id, commence)| node(id, commence)).collect();
        list.sort_by(|one, other| one.key().cmp(&other.key()));
        let mut index = Index::from_sorted(list.clone());
        for (id, commence) in moved {
            let edit = Edit { id: node(id, 0).event().id.clone(), node: commence.map(|commence| node(id, commence)) };
            list.retain(|held| held.event().id != edit.id);
            list.extend(edit.node.clone());
            index = index.apply(&[edit]);
        }
        list.sort_by(|one, other| one.key().cmp(&other.key()));

        for held in &list {
            prop_assert!(index.get(held.event().id.as_str()).is_some_and(|found| Arc::ptr_eq(found, held)));
        }
        prop_assert!(index.get("e999").is_none());
        let from = node(from_id, from_commence);
        let mut visited = Vec::new();
        let _ = index.visit(Some(from.key()), &Filter::default(), |node| {
            visited.push(node.key());
            ControlFlow::Continue(())
        });
        let expected: Vec<_> = list.iter().map(|node| node.key()).filter(|key| *key >= from.key()).collect();
        prop_assert_eq!(visited, expected);
    }
}
