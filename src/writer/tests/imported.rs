//! What is kept of imported history, and of the log beside it.

use std::time::Duration;

use super::log::{begin, fresh, head, keep, publish};
use super::*;
use crate::model::{Event, HistoryChange, HistoryPrice, LoggedPrice};
use crate::writer::HistoryOptions;

const DAY_S: u32 = 86_400;

fn days_ago(days: u32) -> Timestamp {
    Timestamp::from_unix(now().unix() - days * DAY_S)
}

fn appears(id: &str) -> HistoryChange {
    HistoryChange::Event(Arc::new(Event {
        id: event_id(id),
        competition: "Open".into(),
        competition_key: "tennis".into(),
        commence: now(),
        contest: Contest::Sides { home: "home".into(), away: "away".into() },
        status: EventStatus::Scheduled,
        changed: Timestamp::default(),
    }))
}

fn priced(id: &str, at: Timestamp, price: &str) -> HistoryChange {
    let price = LoggedPrice { last_update: at, outcomes: [outcome("home", price), outcome("away", "1.5")].into() };
    let (event, bookmaker) = (event_id(id), "betmgm".into());
    HistoryChange::Price(HistoryPrice { event, bookmaker, market: Market::MONEYLINE, price: Some(price) })
}

fn import(writer: &mut Writer, changes: Vec<(Timestamp, HistoryChange)>) {
    let sport = tennis(writer);
    let store = &mut writer.store;
    let (mut builder, before) = store.begin_import(WORLD, sport, &[]).unwrap();
    for (at, change) in changes {
        assert_eq!(builder.push(at, change).unwrap(), Ok(()));
        while let Some(rows) = builder.take_rows() {
            store.write_import(&rows).unwrap();
        }
    }
    let rows = builder.finish().unwrap();
    store.write_import(&rows).unwrap();
    while let Some(prepared) = store.history().prepare_lines(builder.log().id()).unwrap() {
        store.write_lines(&prepared).unwrap();
    }
    assert!(store.finish_import(builder.log(), before).unwrap());
    writer.read_log_heads().unwrap();
}

/// An import may be in one piece that is of many days: none of its entries can be removed until all of it is old.
#[test]
fn log_beyond_its_size_loses_its_oldest_days_beside_an_import_too() {
    let history = HistoryOptions { bytes_max: 6_000, resume_s: 3600, ..HistoryOptions::default() };
    let (_directory, clock, mut writer) = fresh(history);
    begin(&mut writer);
    let daily = (1..=20).rev().map(|day| (days_ago(day), priced("old", days_ago(day), &format!("2.{day:02}"))));
    import(&mut writer, [(days_ago(20), appears("old"))].into_iter().chain(daily).collect());
    for hour in 0..96_u32 {
        for part in 0..4 {
            publish(&mut writer, &clock, &format!("{}.{:02}", 2 + part % 7, hour % 100));
        }
        clock.advance(Duration::from_secs(3480));
        writer.tick();
        keep(&mut writer, &clock);
    }
    assert!(head(&writer).bytes() < 10_000, "{:?}", head(&writer));
    assert!(writer.log_bytes() < 12_000, "{}", writer.log_bytes());
}

#[test]
fn upkeep_of_an_import_ends_and_all_of_its_events_are_looked_at() {
    let history = HistoryOptions { keep_s: 10 * DAY_S, resume_s: 3600, ..HistoryOptions::default() };
    let (_directory, clock, mut writer) = fresh(history);
    begin(&mut writer);
    publish(&mut writer, &clock, "2.0");
    let mut changes = Vec::new();
    // More events that go on than are looked at in one step, and then some that do not.
    let (going_on, ended): (Vec<_>, Vec<_>) =
        (0..250).map(|number| format!("e{number:03}")).partition(|id| **id < *"e200");
    for id in going_on.iter().chain(&ended) {
        changes.push((days_ago(20), appears(id)));
    }
    for id in going_on.iter().chain(&ended) {
        changes.push((days_ago(20), priced(id, days_ago(20), "2.0")));
    }
    for id in &ended {
        changes.push((days_ago(19), HistoryChange::Removed(event_id(id))));
    }
    for id in &going_on {
        changes.push((days_ago(1), priced(id, days_ago(1), "3.0")));
    }
    import(&mut writer, changes);
    for now in [clock.now().timestamp(), clock.now().timestamp().plus_seconds(DAY_S)] {
        let mut steps = 0;
        while writer.keep_history(now).unwrap() {
            steps += 1;
            assert!(steps < 1_000, "the upkeep does not end");
        }
    }
    let points = |id: &str| {
        let lines = writer.history().lines(WORLD, tennis(&writer), &event_id(id), |_, _| true).unwrap();
        lines.map(|lines| lines.lines[0].points.len())
    };
    assert_eq!(points("e199"), Some(3), "two prices, and the end where the log of the world begins");
    assert_eq!(points("e249"), None);
}
