//! Owners of events and used quotas as the next start finds them.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;
use crate::model::{Bookmaker, EventOwner, FeederUse, Region, Regions};
use crate::store::Change;
use crate::writer::{Sender, Whole};

const DAY_MS: i64 = 86_400_000;

fn sender(name: &str) -> Sender {
    Sender { name: name.into(), removes_any: name == "drop" }
}

fn send(writer: &mut Writer, name: Option<&str>, news: Vec<News>) -> u64 {
    writer.ingest_charged(WORLD, news, true, None, name.map(sender)).unwrap().rejected()
}

fn declared(key: &str) -> News {
    News::Bookmaker(Bookmaker { key: key.into(), title: "Title".into(), regions: Regions::only(Region::Uk) })
}

fn remove(sport: SportId, id: &str) -> News {
    News::Remove { sport, event: event_id(id) }
}

/// The owners of the ids, and what each feeder has used as of a day.
fn owned(writer: &Writer, ids: &[String], day: u32) -> (Vec<EventOwner>, BTreeMap<String, FeederUse>) {
    let owners = &writer.worlds[WORLD.index()].owners;
    let uses = owners.uses().map(|(name, used)| (name.to_string(), used.on(day)));
    let uses = uses.filter(|(_, used)| !used.is_unused() || used.events > 0).collect();
    (ids.iter().map(|id| owners.owner(tennis(writer), &event_id(id))).collect(), uses)
}

#[test]
fn event_without_an_owner_is_stored_with_the_first_that_announces_it_again() {
    for (name, owner) in [(Some("token/a"), EventOwner::Feeder("token/a".into())), (None, EventOwner::Operator)] {
        let (directory, mut writer) = open();
        let sport = tennis(&writer);
        send(&mut writer, Some("token/b"), vec![event(sport, "a")]);
        let held = Arc::clone(writer.worlds[WORLD.index()].sports[sport.index()].current.get("a").unwrap().event());
        let change = Change::PutEvent { world: WORLD, sport, event: held, owner: EventOwner::Unknown };
        writer.store.commit(&[change]).unwrap();
        drop(writer);

        let mut writer = open_in(&directory, NOW_MS);
        assert_eq!(send(&mut writer, Some("token/b"), vec![remove(sport, "a")]), 1, "it has no owner");
        // The announcement changes nothing else of the event.
        assert_eq!(send(&mut writer, name, vec![event(sport, "a")]), 0);
        drop(writer);
        let mut writer = open_in(&directory, NOW_MS);
        assert_eq!(writer.worlds[WORLD.index()].owners.owner(sport, &event_id("a")), owner);
        assert_eq!(send(&mut writer, Some("token/b"), vec![event(sport, "a"), remove(sport, "a")]), 1);
    }
}

#[test]
fn drop_directory_without_a_token_keeps_its_used_quota() {
    let (directory, mut writer) = open();
    let sport = tennis(&writer);
    assert_eq!(send(&mut writer, Some("drop"), vec![declared("new"), event(sport, "a")]), 0);
    drop(writer);
    let writer = open_in(&directory, NOW_MS);
    let used: Vec<_> = writer.feeder_uses(WORLD).map(|(name, used)| (name.to_string(), used)).collect();
    let today = u32::try_from(NOW_MS / DAY_MS).unwrap();
    let expected = FeederUse {
        day: today,
        bookmakers_today: 1,
        bookmakers: 1,
        events_today: 1,
        events: 1,
        // The competition of the event.
        names_today: 1,
        names: 1,
    };
    assert_eq!(used, [("drop".to_owned(), expected)]);
    assert_eq!(writer.feeder_uses(World::Sandbox).count(), 0);
}

#[test]
fn rejected_strict_input_uses_nothing_of_the_stored_quota() {
    let (directory, mut writer) = open();
    let sport = tennis(&writer);
    let news = [declared("new"), event(sport, "a"), remove(sport, "none")].map(Ok);
    let report = writer.ingest_whole(WORLD, news.into_iter(), Whole::Taken, Some(sender("token/a")), |_| {}).unwrap();
    assert_eq!(report.rejected(), 1);
    drop(writer);
    assert_eq!(open_in(&directory, NOW_MS).feeder_uses(WORLD).count(), 0);
}

/// One message: what is done, and to which event or bookmaker.
fn news_of(sport: SportId, (kind, number): (u8, u8)) -> News {
    let id = format!("e{}", number % 5);
    match kind {
        0..=3 => event(sport, &id),
        4 | 5 => remove(sport, &id),
        6 => declared(&format!("book{number}")),
        _ => odds(sport, &id, "unibet", Some(["1.5", "2.5"])),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn next_start_finds_the_owners_and_uses_that_were_in_memory(
        batches in prop::collection::vec((0usize..4, 0i64..3, prop::collection::vec((0u8..8, 0u8..20), 1..8)), 1..6)
    ) {
        let (directory, mut writer) = open();
        let sport = tennis(&writer);
        let ids: Vec<String> = (0..5).map(|number| format!("e{number}")).collect();
        let mut now_ms = NOW_MS;
        for (who, days, batch) in batches {
            let name = [None, Some("drop"), Some("token/a"), Some("token/b")][who];
            send(&mut writer, name, batch.into_iter().map(|line| news_of(sport, line)).collect());
            now_ms += days * DAY_MS;
            let day = u32::try_from(now_ms / DAY_MS).unwrap();
            let before = owned(&writer, &ids, day);
            // Without the writes of an orderly stop.
            drop(writer);
            writer = open_in(&directory, now_ms);
            prop_assert_eq!(owned(&writer, &ids, day), before);
        }
        prop_assert!(writer.check(&Arc::default()).unwrap().is_clean());
    }
}
