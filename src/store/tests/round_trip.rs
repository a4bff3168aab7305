//! Every change survives closing and reopening the file.

use std::sync::Arc;

use super::*;
use crate::keys::{Retired, Usage};
use crate::model::{Closed, Maintenance, Period, Score, ScoreStatus, Source};
use crate::store::{AuditNote, BookOrigin, LoadedPoll};

fn close(id: &str, book: u16, market: Market, seconds: u32) -> (Change, Closed) {
    let closed = Closed { bookmaker: BookId::from_number(book), market, at: at(seconds) };
    (Change::CloseOdds { world: World::Live, sport: sport_id(0), event: event_id(id), closed }, closed)
}

#[test]
fn events_come_in_commence_order_with_scores_and_sorted_records() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    let score = Arc::new(Score {
        status: ScoreStatus::Final,
        points: Some((1, 0)),
        periods: [Period { number: 1, home: 10, away: -9 }].into(),
        winner: Some("b home".into()),
        updated: at(7),
    });
    store
        .commit(&[
            put_event(World::Live, "c", 100),
            put_event(World::Live, "b", 200),
            put_event(World::Live, "a", 200),
            put_odds(World::Live, "b", 0, Market::MONEYLINE),
            put_odds(World::Live, "b", 0, Market::MATCHUP),
            put_odds(World::Live, "b", 1, Market::SPREAD),
            Change::PutScore {
                world: World::Live,
                sport: sport_id(0),
                event: event_id("b"),
                score: Arc::clone(&score),
            },
        ])
        .unwrap();
    drop(store);

    let loaded = memory.open().load().unwrap();
    assert!(loaded.damage.is_empty(), "{:?}", loaded.damage);
    let events = &loaded.world(World::Live).sports[0].events;
    let ids: Vec<&str> = events.iter().map(|event| event.event.id.as_str()).collect();
    assert_eq!(ids, ["c", "a", "b"]);
    assert_eq!(events[2].score, Some(score));
    let expected = [
        record("mma", "b", 1, Market::SPREAD, 5),
        record("mma", "b", 0, Market::MATCHUP, 5),
        record("mma", "b", 0, Market::MONEYLINE, 5),
    ];
    assert_eq!(events[2].records, expected, "by bookmaker key, then market key");
    assert!(loaded.world(World::Sandbox).sports[0].events.is_empty());
}

#[test]
fn postponed_event_moves_in_the_schedule() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    store.commit(&[put_event(World::Live, "a", 100), put_event(World::Live, "b", 200)]).unwrap();
    store.commit(&[put_event(World::Live, "a", 300)]).unwrap();
    let loaded = store.load().unwrap();
    let ids: Vec<&str> =
        loaded.world(World::Live).sports[0].events.iter().map(|event| event.event.id.as_str()).collect();
    assert_eq!(ids, ["b", "a"]);
    assert!(store.check().unwrap().is_clean());
}

#[test]
fn closed_market_stays_a_mark_until_a_newer_price() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    store.commit(&[put_event(World::Live, "a", 1), put_odds(World::Live, "a", 0, Market::MONEYLINE)]).unwrap();
    let (change, closed) = close("a", 0, Market::MONEYLINE, 9);
    store.commit(&[change]).unwrap();
    drop(store);

    let mut store = memory.open();
    let loaded = store.load().unwrap();
    let event = &loaded.world(World::Live).sports[0].events[0];
    assert_eq!((event.records.len(), &event.closed[..]), (0, &[closed][..]));
    assert!(store.check().unwrap().is_clean());

    store.commit(&[put_odds(World::Live, "a", 0, Market::MONEYLINE)]).unwrap();
    let loaded = store.load().unwrap();
    let event = &loaded.world(World::Live).sports[0].events[0];
    assert_eq!((event.records.len(), event.closed.len()), (1, 0));
    assert!(store.check().unwrap().is_clean());
}

#[test]
fn removing_an_event_removes_its_rows() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    let score = Score { status: ScoreStatus::Live, points: None, periods: [].into(), winner: None, updated: at(1) };
    let (change, _) = close("a", 1, Market::SPREAD, 9);
    let remove = Change::RemoveEvent { world: World::Live, sport: sport_id(0), event: event_id("a") };
    store
        .commit(&[
            put_event(World::Live, "a", 1),
            put_event(World::Live, "b", 1),
            put_odds(World::Live, "a", 0, Market::MONEYLINE),
            put_odds(World::Live, "b", 0, Market::MONEYLINE),
            Change::PutScore { world: World::Live, sport: sport_id(0), event: event_id("a"), score: Arc::new(score) },
            change,
        ])
        .unwrap();
    store.commit(&[remove.clone(), remove.clone()]).unwrap();
    let report = store.check().unwrap();
    assert!(report.is_clean(), "{report:?}");
    let rows = |table: &str| report.rows.iter().find(|(name, _)| *name == table).unwrap().1;
    assert_eq!(["events", "schedule", "scores", "odds", "coverage"].map(rows), [1, 1, 0, 1, 1]);

    // The same id again is another row: nothing of the old event comes back.
    store.commit(&[put_event(World::Live, "a", 1)]).unwrap();
    let loaded = memory_reloaded(store, &memory);
    assert_eq!(loaded.world(World::Live).sports[0].events[0].records.len(), 0);
}

fn memory_reloaded(store: Store, memory: &Memory) -> Loaded {
    drop(store);
    memory.open().load().unwrap()
}

#[test]
fn batch_is_applied_in_order() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    let remove = Change::RemoveEvent { world: World::Live, sport: sport_id(0), event: event_id("a") };
    store
        .commit(&[
            put_event(World::Live, "a", 1),
            put_odds(World::Live, "a", 0, Market::MONEYLINE),
            remove.clone(),
            put_event(World::Live, "a", 2),
            put_odds(World::Live, "a", 1, Market::MONEYLINE),
        ])
        .unwrap();
    assert!(store.check().unwrap().is_clean());
    let loaded = store.load().unwrap();
    let event = &loaded.world(World::Live).sports[0].events[0];
    assert_eq!(event.records, [record("mma", "a", 1, Market::MONEYLINE, 5)]);
    assert_eq!(event.event.commence, at(2));
}

#[test]
fn dangling_reference_is_refused_with_its_whole_batch() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    let before = picture(&store.load().unwrap());
    for stray in [
        put_odds(World::Sandbox, "a", 0, Market::MONEYLINE),
        put_odds(World::Live, "nowhere", 0, Market::MONEYLINE),
        Change::PutUsage { key: key("k").id.clone(), usage: Usage::default(), last_used: None },
    ] {
        let refused = store.commit(&[put_event(World::Live, "a", 1), stray]).unwrap_err();
        assert!(!refused.needs_reopen(), "{refused}");
        assert_eq!(picture(&store.load().unwrap()), before);
    }
    store.commit(&[put_event(World::Live, "a", 1)]).unwrap();
}

#[test]
fn keys_usage_maintenance_sources_and_bookmakers_are_loaded() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    let mut rotated = (*key("a")).clone();
    rotated.retired = [Retired { hash: SecretHash([9; 32]), until: at(3) }].into();
    let usage = Usage { day: 20_000, day_used: u64::MAX, month: 600, month_used: 5 };
    let source = Source { last_read: at(5), latency_ms: 250, empty_since: Some(at(6)) };
    let declared = Arc::new(book("newcomer"));
    let id = BookId::from_number(3);
    let maintenance = Maintenance { since: at(1), until: Some(at(2)) };
    store
        .commit(&[
            Change::PutKey(Arc::new(rotated.clone())),
            Change::PutKey(key("b")),
            Change::PutUsage { key: rotated.id.clone(), usage, last_used: Some(at(8)) },
            Change::PutBookmaker { world: World::Live, id, bookmaker: declared, origin: BookOrigin::Declared },
            Change::PutSource { world: World::Live, sport: sport_id(1), bookmaker: id, source },
            Change::PutFeeder(Arc::new(feeder())),
            Change::SetMaintenance(Some(maintenance)),
        ])
        .unwrap();
    let loaded = memory_reloaded(store, &memory);
    rotated.last_used = Some(at(8));
    assert_eq!(loaded.keys, [(rotated, usage), ((*key("b")).clone(), Usage::default())]);
    assert_eq!(loaded.feeders, [feeder()]);
    assert_eq!(loaded.maintenance, Some(maintenance));
    let live = loaded.world(World::Live);
    assert_eq!(live.bookmakers.find("newcomer"), Some(id));
    assert_eq!(live.sports[1].sources, [(id, source)]);

    let mut store = memory.open();
    store
        .commit(&[
            Change::RemoveSource { world: World::Live, sport: sport_id(1), bookmaker: id },
            Change::SetMaintenance(None),
        ])
        .unwrap();
    let loaded = memory_reloaded(store, &memory);
    assert_eq!(loaded.maintenance, None);
    assert!(loaded.world(World::Live).sports[1].sources.is_empty());
}

#[test]
fn polls_are_loaded_and_a_file_without_their_table_gets_one() {
    let memory = Memory::new(Vec::new());
    drop(memory.open());
    let raw = memory.raw();
    let txn = raw.begin_write().unwrap();
    txn.delete_table(crate::store::tables::POLLS.definition).unwrap();
    txn.commit().unwrap();
    drop(raw);

    let mut store = memory.open();
    let (world, sport) = (World::Live, sport_id(1));
    let (first, second) = (BookId::from_number(0), BookId::from_number(1));
    let put = |scope: &str, event: &str, records: &[(BookId, Market)]| Change::PutPolled {
        world,
        scope: scope.into(),
        event: event_id(event),
        records: records.into(),
    };
    let scope =
        |scope: &str| Change::PutPoll { world, scope: scope.into(), sport, stale_after_s: 9, books: [first].into() };
    let pairs = [(first, Market::MONEYLINE), (second, Market::SPREAD)];
    store
        .commit(&[
            scope("a/x"),
            put("a/x", "e1", &pairs),
            put("a/x", "e2", &pairs[..1]),
            scope("a/y"),
            put("a/y", "e1", &pairs),
        ])
        .unwrap();
    let loaded = memory_reloaded(store, &memory);
    let poll = |scope: &str, events: &[(&str, &[(BookId, Market)])]| LoadedPoll {
        scope: scope.into(),
        sport,
        stale_after_s: 9,
        books: vec![first],
        events: events.iter().map(|(event, pairs)| (event_id(event), (*pairs).into())).collect(),
    };
    let all: [(&str, &[_]); 2] = [("e1", &pairs), ("e2", &pairs[..1])];
    assert_eq!(loaded.world(world).polls, [poll("a/x", &all), poll("a/y", &[("e1", &pairs)])]);

    let mut store = memory.open();
    let gone = Change::RemovePoll { world, scope: "a/y".into() };
    store.commit(&[put("a/x", "e1", &[]), put("a/y", "e1", &[]), gone]).unwrap();
    assert!(store.check().unwrap().is_clean());
    let loaded = memory_reloaded(store, &memory);
    assert_eq!(loaded.world(world).polls, [poll("a/x", &all[1..])]);
}

#[test]
fn audit_log_is_read_in_pages_and_from_its_end() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    let note = |action: &str| AuditNote {
        at: at(1),
        who: "ada".into(),
        action: action.into(),
        subject: "key_1".into(),
        detail: "".into(),
    };
    store.commit(&[Change::Audit(note("one")), Change::Audit(note("two"))]).unwrap();
    drop(store);
    let mut store = memory.open();
    store.commit(&[Change::Audit(note("three"))]).unwrap();
    let actions = |entries: Vec<crate::store::AuditEntry>| {
        entries.into_iter().map(|entry| (entry.sequence, entry.note.action)).collect::<Vec<_>>()
    };
    assert_eq!(actions(store.audit(None, 2).unwrap()), [(1, "one".into()), (2, "two".into())]);
    assert_eq!(actions(store.audit(Some(2), 2).unwrap()), [(3, "three".into())]);
    assert_eq!(actions(store.audit_tail(2).unwrap()), [(2, "two".into()), (3, "three".into())]);
    assert_eq!(store.audit(Some(u64::MAX), 2).unwrap(), []);
}

#[test]
fn equal_names_share_their_text() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    store
        .commit(&[
            put_event(World::Live, "a", 1),
            put_odds(World::Live, "a", 0, Market::MONEYLINE),
            put_odds(World::Live, "a", 1, Market::SPREAD),
        ])
        .unwrap();
    let loaded = store.load().unwrap();
    let event = &loaded.world(World::Live).sports[0].events[0];
    let home = event.event.home().unwrap();
    for record in &event.records {
        assert!(Arc::ptr_eq(home, record.outcomes[0].name.as_stored()));
    }
}
