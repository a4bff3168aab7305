//! What is kept of the log, and what is answered about the time before.

use std::time::Duration;

use proptest::prelude::*;
use redb::ReadableTable as _;

use super::log::{
    HOUR, begin, fresh, head, keep, open_on, open_with, price_at, price_in, price_of, publish, publish_in,
};
use super::*;
use crate::store::{Entries, HistoryError};
use crate::writer::HistoryOptions;

/// Empties the index of ticks.
fn lose_ticks(directory: &TempDir) {
    let db = redb::Database::open(directory.path().join("oddsbox.redb")).unwrap();
    let txn = db.begin_write().unwrap();
    let ticks = redb::TableDefinition::<(u8, u16, u32), u64>::new("ticks");
    txn.open_table(ticks).unwrap().retain(|_, _| false).unwrap();
    txn.commit().unwrap();
}

#[test]
fn old_history_goes_and_the_rest_is_read_as_before() {
    let history = HistoryOptions { keep_s: 86_400, resume_s: 3600, ..HistoryOptions::default() };
    let (directory, clock, mut writer) = fresh(history);
    begin(&mut writer);
    let mut prices = Vec::new();
    for hour in 0..72_u32 {
        let price = format!("{}.{:02}", 2 + hour % 5, hour);
        publish(&mut writer, &clock, &price);
        prices.push((clock.now().timestamp(), price));
        clock.advance(Duration::from_secs(3570));
        writer.tick();
        keep(&mut writer, &clock);
    }
    assert!(writer.check(&Arc::default()).unwrap().is_clean());
    let (old, kept) = prices.split_at(72 - 24);
    for (at, price) in kept {
        assert_eq!(price_at(&writer, *at).unwrap().as_ref(), Some(price), "{at}");
    }
    assert!(matches!(price_at(&writer, old[20].0), Err(HistoryError::Gone)));
    let since = writer.boards().condition().history_since(WORLD).unwrap();
    assert!(since > old[32].0 && since <= kept[0].0, "{since}");
    let first = writer.history().entries_after(WORLD.into(), 3, 10);
    assert!(matches!(first, Err(HistoryError::Gone)), "{first:?}");
    let before = head(&writer);
    assert!(before.changes < 40, "{before:?}");
    drop(writer);
    let mut writer = open_on(&directory, &clock, history);
    assert_eq!(head(&writer), before);
    publish(&mut writer, &clock, "9.99");
    assert_eq!(price_at(&writer, Timestamp::MAX).unwrap().as_deref(), Some("9.99"));
}

#[test]
fn price_of_a_moment_is_the_one_of_then_or_gone() {
    let history = HistoryOptions { keep_s: 7200, resume_s: 3600, ..HistoryOptions::default() };
    let (directory, clock) = (tempfile::tempdir().unwrap(), Clock::manual(NOW_MS));
    // Packs that keyframes are in the middle of.
    let options = StoreOptions { loose_bytes_max: 1 << 10, ..StoreOptions::default() };
    let mut writer = open_with(&directory, &clock, history, options);
    begin(&mut writer);
    let mut prices = Vec::new();
    for round in 0..2_u32 {
        // More ticks than a step of the upkeep removes, in fewer rows of the log.
        for number in 0..1500_u32 {
            let price = format!("{}.{:02}", 2 + round, number % 100);
            publish(&mut writer, &clock, &price);
            prices.push((clock.now().timestamp(), price));
            if number % 40 == 0 {
                keep(&mut writer, &clock);
            }
        }
        clock.advance(7 * HOUR);
        keep(&mut writer, &clock);
        let report = writer.check(&Arc::default()).unwrap();
        assert!(report.is_clean(), "{report:?}");
        let (_, ticks) = report.rows.iter().find(|(table, _)| *table == "ticks").unwrap();
        assert!((2..200).contains(ticks), "{ticks}: those of what is kept, and one before");
        for (at, price) in prices.iter().step_by(7) {
            match price_at(&writer, *at) {
                Ok(found) => assert_eq!(found.as_ref(), Some(price), "as of {at}"),
                Err(error) => assert!(matches!(error, HistoryError::Gone), "{error}"),
            }
        }
    }
    let prices_of = |writer: &Writer| prices.iter().step_by(7).map(|(at, _)| price_at(writer, *at).ok()).collect();
    let before: Vec<_> = prices_of(&writer);
    assert!(before[0].is_none() && before[before.len() - 1].is_some(), "{before:?}");
    drop(writer);
    lose_ticks(&directory);
    let mut writer = open_with(&directory, &clock, history, options);
    assert!(!writer.check(&Arc::default()).unwrap().is_clean());
    writer.store.drop_damaged().unwrap();
    assert!(writer.check(&Arc::default()).unwrap().is_clean());
    assert_eq!(prices_of(&writer), before, "with an index that was built again");
}

#[test]
fn old_history_goes_although_lines_are_behind() {
    let history = HistoryOptions { keep_s: 3 * 86_400, resume_s: 3600, ..HistoryOptions::default() };
    let (_directory, clock, mut writer) = fresh(history);
    begin(&mut writer);
    for number in 0..24 {
        publish(&mut writer, &clock, &format!("2.{number:02}"));
        // So long that whenever something can be kept, it is a keyframe.
        clock.advance(7 * HOUR);
    }
    let first = writer.store.first_logged(WORLD).unwrap();
    let now = clock.now().timestamp();
    for _ in 0..4 {
        writer.keep_history(now).unwrap();
    }
    assert!(writer.store.first_logged(WORLD).unwrap() > first);
    assert!(writer.store.log_without_lines().unwrap().is_some(), "no line was left to write");
    keep(&mut writer, &clock);
    assert!(writer.store.log_without_lines().unwrap().is_none());
    assert_eq!(price_at(&writer, now).unwrap().as_deref(), Some("2.23"));
    let lines = writer.history().lines(WORLD, tennis(&writer), &event_id("a"), |_, _| true).unwrap().unwrap();
    assert!(lines.lines[0].points.len() >= 10, "{lines:?}");
    assert!(writer.check(&Arc::default()).unwrap().is_clean());
}

#[test]
fn sport_that_is_quiet_for_longer_than_history_keeps_its_state() {
    let history = HistoryOptions { keep_s: 7200, resume_s: 3600, ..HistoryOptions::default() };
    let (directory, clock, mut writer) = fresh(history);
    begin(&mut writer);
    publish(&mut writer, &clock, "2.0");
    let golf = writer.catalogue.find("golf").unwrap();
    for hour in 0..12 {
        // Another sport goes on.
        let title = Contest::Tournament { title: format!("Open {hour}").into() };
        let News::Event(news) = event(golf, "g") else { panic!("no event") };
        writer.ingest(WORLD, vec![News::Event(EventNews { contest: title, ..news })], true).unwrap();
        clock.advance(HOUR);
        writer.tick();
        keep(&mut writer, &clock);
    }
    assert_eq!(price_at(&writer, clock.now().timestamp()).unwrap().as_deref(), Some("2.00"));
    assert!(writer.check(&Arc::default()).unwrap().is_clean());
    let entries = writer.history().entries_after(WORLD.into(), head(&writer).next - 2, 10).unwrap();
    assert_eq!(entries.len(), 1);
    let path = writer.history().path(WORLD, tennis(&writer), clock.now().timestamp()).unwrap();
    assert_eq!((price_in(&path.state).as_deref(), path.changes.len()), (Some("2.00"), 0));
    drop(writer);
    let mut writer = open_on(&directory, &clock, history);
    assert_eq!(price_at(&writer, clock.now().timestamp()).unwrap().as_deref(), Some("2.00"));
    publish(&mut writer, &clock, "3.0");
    assert_eq!(price_at(&writer, Timestamp::MAX).unwrap().as_deref(), Some("3.00"));
}

#[test]
fn sport_that_is_quiet_does_not_keep_the_log_of_others() {
    let by_age = HistoryOptions { keep_s: 86_400, resume_s: 3600, ..HistoryOptions::default() };
    let by_size = HistoryOptions { bytes_max: 8_000, resume_s: 3600, ..HistoryOptions::default() };
    for history in [by_age, by_size] {
        let (_directory, clock, mut writer) = fresh(history);
        begin(&mut writer);
        publish(&mut writer, &clock, "2.0");
        let boxing = writer.catalogue.find("boxing").unwrap();
        writer.ingest(WORLD, vec![event(boxing, "a")], true).unwrap();
        let mut prices = Vec::new();
        for hour in 0..120_u32 {
            for part in 0..8 {
                let price = format!("{}.{:02}", 2 + part, hour % 100);
                publish_in(&mut writer, &clock, boxing, &price);
                prices.push((clock.now().timestamp(), price));
            }
            clock.advance(HOUR);
            writer.tick();
            keep(&mut writer, &clock);
        }
        let age_s = clock.now().timestamp().seconds_since(writer.store.first_logged(WORLD).unwrap().unwrap());
        assert!(age_s < 60 * 3600, "{history:?}: the log begins {age_s} s ago");
        for (at, price) in &prices[8 * 108..] {
            assert_eq!(price_of(&writer, boxing, *at).unwrap().as_ref(), Some(price), "{at}");
        }
        assert_eq!(price_at(&writer, clock.now().timestamp()).unwrap().as_deref(), Some("2.00"));
        assert!(writer.check(&Arc::default()).unwrap().is_clean());
    }
}

/// Overwrites the last entry of the log.
fn damage_last_entry(directory: &TempDir) {
    let db = redb::Database::open(directory.path().join("oddsbox.redb")).unwrap();
    let txn = db.begin_write().unwrap();
    {
        let log = redb::TableDefinition::<(u8, u64), &[u8]>::new("log");
        let mut rows = txn.open_table(log).unwrap();
        let (world, last) = rows.last().unwrap().unwrap().0.value();
        rows.insert((world, last), &b"damaged"[..]).unwrap();
    }
    txn.commit().unwrap();
}

#[test]
fn sport_that_is_gone_does_not_keep_the_log_after_entries_were_lost() {
    let history = HistoryOptions { keep_s: 86_400, resume_s: 3600, ..HistoryOptions::default() };
    let (directory, clock, mut writer) = fresh(history);
    begin(&mut writer);
    publish(&mut writer, &clock, "2.0");
    let (gone, boxing) = (tennis(&writer), writer.catalogue.find("boxing").unwrap());
    writer.ingest(WORLD, vec![News::Remove { sport: gone, event: event_id("a") }], true).unwrap();
    writer.ingest(WORLD, vec![event(boxing, "a")], true).unwrap();
    publish_in(&mut writer, &clock, boxing, "3.0");
    let lost = head(&writer);
    drop(writer);
    damage_last_entry(&directory);
    let mut writer = open_on(&directory, &clock, history);
    assert_ne!(head(&writer).epoch, lost.epoch);
    for hour in 0..72_u32 {
        publish_in(&mut writer, &clock, boxing, &format!("2.{hour:02}"));
        clock.advance(HOUR);
        writer.tick();
        keep(&mut writer, &clock);
    }
    let first = writer.store.first_logged(WORLD).unwrap().unwrap();
    assert!(clock.now().timestamp().seconds_since(first) < 40 * 3600, "the log begins at {first}");
    assert!(matches!(price_at(&writer, clock.now().timestamp()), Err(HistoryError::Gone)));
    assert_eq!(price_of(&writer, boxing, clock.now().timestamp()).unwrap().as_deref(), Some("2.71"));
    let report = writer.check(&Arc::default()).unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn log_beyond_its_size_loses_the_oldest_days() {
    let history = HistoryOptions { bytes_max: 4_000, resume_s: 3600, ..HistoryOptions::default() };
    let (_directory, clock, mut writer) = fresh(history);
    begin(&mut writer);
    for hour in 0..96_u32 {
        for part in 0..4 {
            publish(&mut writer, &clock, &format!("{}.{:02}", 2 + part % 7, hour % 100));
        }
        clock.advance(Duration::from_secs(3480));
        writer.tick();
        keep(&mut writer, &clock);
    }
    let head = head(&writer);
    assert!(head.bytes() < 8_000 && (20..300).contains(&head.changes), "{head:?}");
    assert!(price_at(&writer, clock.now().timestamp()).unwrap().is_some());
}

#[test]
fn entry_that_was_removed_after_it_was_found_is_gone() {
    let history = HistoryOptions { keep_s: 7200, resume_s: 3600, ..HistoryOptions::default() };
    let (_directory, clock, mut writer) = fresh(history);
    begin(&mut writer);
    publish(&mut writer, &clock, "2.0");
    let found = writer.history().entry_at(WORLD, tennis(&writer), Entries::Ticks, clock.now().timestamp()).unwrap();
    assert!(writer.history().state_at(tennis(&writer), found).is_ok());
    for hour in 0..24 {
        publish(&mut writer, &clock, &format!("3.{hour:02}"));
        clock.advance(HOUR);
        keep(&mut writer, &clock);
    }
    let state = writer.history().state_at(tennis(&writer), found);
    assert!(matches!(state, Err(HistoryError::Gone)), "{:?}", state.map(|state| price_in(&state)));
}

/// What is kept of a sport begins with a keyframe of its own.
#[test]
fn entries_are_gone_as_long_as_one_of_their_sports_has_no_keyframe() {
    let history = HistoryOptions { keep_s: 7200, resume_s: 3600, ..HistoryOptions::default() };
    let (directory, clock) = (tempfile::tempdir().unwrap(), Clock::manual(NOW_MS));
    let options = StoreOptions { loose_bytes_max: 1 << 10, frame_bytes_min: 64, ..StoreOptions::default() };
    let mut writer = open_with(&directory, &clock, history, options);
    let sports = ["tennis", "boxing"].map(|key| writer.catalogue.find(key).unwrap());
    for sport in sports {
        writer.ingest(WORLD, vec![event(sport, "a")], true).unwrap();
    }
    let (mut read, mut gone) = (0, 0);
    for hour in 0..48_u32 {
        for part in 0..40 {
            // One of them changes now and then.
            let sport = sports[usize::from(hour % 5 == 3 && part % 8 == 0)];
            publish_in(&mut writer, &clock, sport, &format!("{}.{:02}", 2 + part, hour));
        }
        clock.advance(HOUR);
        keep(&mut writer, &clock);
        let (_, start) = writer.history().log_start(WORLD.into()).unwrap();
        for sequence in start..head(&writer).next - 1 {
            match writer.history().entries_after(WORLD.into(), sequence, 5) {
                Ok(entries) => read += usize::from(entries[0].sequence == sequence + 1),
                Err(error) => {
                    assert!(matches!(error, HistoryError::Gone), "after {sequence}: {error}");
                    gone += 1;
                }
            }
        }
    }
    assert!(gone > 0 && read > gone, "{gone} gone, {read} read");
}

/// The price of one record at a time, of another event than `publish` has.
fn publish_other(writer: &mut Writer, clock: &Clock, price: &str) {
    let News::Odds(news) = odds(tennis(writer), "b", "betmgm", Some([price, "1.5"])) else { panic!("no odds") };
    let news = OddsNews { last_update: clock.now().timestamp(), ..news };
    assert_eq!(writer.ingest(WORLD, vec![News::Odds(news)], false).unwrap().rejected(), 0);
    clock.advance(Duration::from_secs(30));
    writer.tick();
}

#[test]
fn lines_of_an_event_go_when_it_has_not_changed_for_as_long_as_history_is_kept() {
    let history = HistoryOptions { keep_s: 24 * 3600, resume_s: 3600, ..HistoryOptions::default() };
    let (_directory, clock, mut writer) = fresh(history);
    begin(&mut writer);
    writer.ingest(WORLD, vec![event(tennis(&writer), "b")], true).unwrap();
    publish(&mut writer, &clock, "2.0");
    let lines = |writer: &Writer, id: &str| {
        let lines = writer.history().lines(WORLD, tennis(writer), &event_id(id), |_, _| true).unwrap();
        lines.map(|lines| lines.lines.iter().map(|line| line.points.len()).sum::<usize>())
    };
    writer.ingest(WORLD, vec![News::Remove { sport: tennis(&writer), event: event_id("a") }], true).unwrap();
    for hour in 0..72_u32 {
        publish_other(&mut writer, &clock, &format!("2.{:02}", hour % 100));
        clock.advance(HOUR);
        writer.tick();
        keep(&mut writer, &clock);
        if hour == 12 {
            assert_eq!(lines(&writer, "a"), Some(2), "a price, and its end");
        }
    }
    assert_eq!(lines(&writer, "a"), None);
    assert_eq!(lines(&writer, "b"), Some(72), "an event that goes on keeps all of its line");
    assert!(writer.check(&Arc::default()).unwrap().is_clean());
}

/// What happens to a file whose history is removed after a while.
#[derive(Clone, Debug)]
enum Step {
    Publish { sport: usize, times: u32 },
    Pause { hours: u32 },
    Upkeep { steps: u32 },
    Restart,
}

const SPORTS: [&str; 3] = ["tennis", "mma", "boxing"];

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0..SPORTS.len(), 1_u32..60).prop_map(|(sport, times)| Step::Publish { sport, times }),
        3 => (1_u32..12).prop_map(|hours| Step::Pause { hours }),
        4 => (1_u32..8).prop_map(|steps| Step::Upkeep { steps }),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8, ..ProptestConfig::default() })]

    /// Between any two steps of the upkeep, too.
    #[test]
    fn prices_since_what_is_kept_are_those_of_then_and_earlier_ones_may_be_gone(
        steps in prop::collection::vec(step(), 1..40),
        keep_h in 1_u32..30,
    ) {
        let history = HistoryOptions { keep_s: keep_h * 3600, resume_s: 3600, ..HistoryOptions::default() };
        let options = StoreOptions { loose_bytes_max: 1 << 10, frame_bytes_min: 64, ..StoreOptions::default() };
        let (directory, clock) = (tempfile::tempdir().unwrap(), Clock::manual(NOW_MS));
        let mut writer = open_with(&directory, &clock, history, options);
        let sports = SPORTS.map(|key| writer.catalogue.find(key).unwrap());
        for sport in sports {
            writer.ingest(WORLD, vec![event(sport, "a")], true).unwrap();
        }
        let mut published: Vec<(SportId, Timestamp, String)> = Vec::new();
        for step in steps {
            match step {
                Step::Publish { sport, times } => for _ in 0..times {
                    let (sport, number) = (sports[sport], published.len());
                    let price = format!("{}.{:02}", 2 + number / 100, number % 100);
                    publish_in(&mut writer, &clock, sport, &price);
                    published.push((sport, clock.now().timestamp(), price));
                },
                Step::Pause { hours } => clock.advance(HOUR * hours),
                Step::Upkeep { steps } => for _ in 0..steps {
                    writer.keep_history(clock.now().timestamp()).unwrap();
                },
                Step::Restart => {
                    drop(writer);
                    writer = open_with(&directory, &clock, history, options);
                }
            }
            let kept_since = writer.kept_since(WORLD, clock.now().timestamp());
            for (sport, at, price) in published.iter().rev().step_by(published.len() / 32 + 1) {
                match price_of(&writer, *sport, *at) {
                    Ok(found) => prop_assert_eq!(found.as_ref(), Some(price), "as of {}", at),
                    Err(HistoryError::Gone) => prop_assert!(*at < kept_since, "{} is gone, {} is kept", at, kept_since),
                    Err(error) => prop_assert!(false, "as of {}: {}", at, error),
                }
            }
        }
        let report = writer.check(&Arc::default()).unwrap();
        prop_assert!(report.is_clean(), "{:?}", report);
    }
}
