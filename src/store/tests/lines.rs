//! Lines repeat the log: whatever happens to them, or to a part of the log, they are written again from what there is.

use redb::ReadableTable;

use super::damage::{flip_last, spoil};
use super::*;
use crate::model::{EventLines, Line, LinePoint};
use crate::store::table_keys::{LogKey, world_number};
use crate::store::tables::{
    ENDS, FORMAT_KEY, FORMATS, LINE_DAYS, LINE_EVENTS, LINE_KEYS, LINES, LOG, META, meta_lines_key,
};
use crate::store::{HistoryError, LineRange};

pub(super) const WORLD: World = World::Live;

/// A publication of another price of the same record.
fn next_tick(number: u32) -> Change {
    let Change::PutOdds { sport, event, record: first, .. } = put_odds(WORLD, "a", 0, Market::MONEYLINE) else {
        panic!("a price")
    };
    let priced = |number: u32| {
        let mut record = (*first).clone();
        record.outcomes[0].price = Price::from_american(100 + i64::from(number)).unwrap();
        Arc::new(record)
    };
    let before = if number == 1 { Arc::clone(&first) } else { priced(number - 1) };
    let change = RecordChange {
        event,
        bookmaker: "fanduel".into(),
        market: first.market,
        before: Some(before),
        after: Some(priced(number)),
    };
    let tick = Some(TickChanges { at: at(10 + number), stale: Vec::new(), records: vec![change] });
    let sports = vec![SportChanges { sport, events: Vec::new(), tick }];
    Change::Log { world: WORLD, entry: Arc::new(LogEntry { at: at(9 + number), sports }) }
}

/// A log of one record that changed some times, with a keyframe after each.
pub(super) fn logged() -> (Memory, Store) {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    store.load().unwrap();
    for number in 0..5 {
        let change = if number == 0 { log_tick(WORLD) } else { next_tick(number) };
        store.commit(&[change]).unwrap();
        assert!(store.write_due_keyframe(at((number + 1) * 7 * 3600)).unwrap());
    }
    (memory, store)
}

pub(super) fn lines(store: &Store) -> Result<Option<EventLines>, HistoryError> {
    store.history().lines(WORLD, sport_id(0), &event_id("a"), |_, _| true)
}

pub(super) fn write(store: &mut Store) {
    while let Some(prepared) = store.history().prepare_lines(WORLD.into()).unwrap() {
        store.write_lines(&prepared).unwrap();
    }
    assert!(store.log_without_lines().unwrap().is_none());
}

#[test]
fn lines_are_the_same_from_the_log_and_after_each_step() {
    let (_memory, mut store) = logged();
    let from_log = lines(&store).unwrap().unwrap();
    assert_eq!(from_log.lines[0].points.len(), 5);
    let mut steps = 0;
    while let Some(prepared) = store.history().prepare_lines(WORLD.into()).unwrap() {
        store.write_lines(&prepared).unwrap();
        assert_eq!(lines(&store).unwrap().unwrap(), from_log, "step {steps}");
        steps += 1;
    }
    assert_eq!(steps, 5);
    assert!(store.check().unwrap().is_clean());
}

#[test]
fn step_that_was_prepared_before_the_log_was_cleared_is_not_committed() {
    let (_memory, mut store) = logged();
    let prepared = store.history().prepare_lines(WORLD.into()).unwrap().unwrap();
    store.commit(&[Change::ClearLog { world: WORLD, epoch: 77 }]).unwrap();
    store.write_lines(&prepared).unwrap();
    assert_eq!(store.line_bytes(WORLD).unwrap().total(), 0);
    assert_eq!(lines(&store).unwrap(), None);
    assert!(store.check().unwrap().is_clean());
}

#[test]
fn cleared_log_has_no_lines() {
    let (_memory, mut store) = logged();
    write(&mut store);
    assert!(store.line_bytes(WORLD).unwrap().total() > 0);
    store.commit(&[Change::ClearLog { world: WORLD, epoch: 77 }]).unwrap();
    assert_eq!((store.line_bytes(WORLD).unwrap().total(), lines(&store).unwrap()), (0, None));
}

#[test]
fn damaged_lines_are_reported_dropped_and_written_again() {
    fn test<K: crate::store::table_keys::TableKey, R>(table: &crate::store::tables::Table<K, R>) {
        let (memory, mut store) = logged();
        write(&mut store);
        let before = lines(&store).unwrap().unwrap();
        drop(store);
        spoil(&memory, table, flip_last);
        let mut store = memory.open();
        assert!(matches!(lines(&store), Err(HistoryError::Damaged(_))), "{}", table.name);
        assert!(!store.check().unwrap().is_clean(), "{}", table.name);
        store.drop_damaged().unwrap();
        assert!(store.check().unwrap().is_clean(), "{}", table.name);
        assert_eq!(lines(&store).unwrap().unwrap(), before, "{}", table.name);
        write(&mut store);
        assert_eq!(lines(&store).unwrap().unwrap(), before, "{}", table.name);
    }
    test(&LINE_KEYS);
    test(&ENDS);
    test(&LINES);
}

/// A publication of many records of an event, at prices that cannot be compressed to a page.
fn many_prices() -> Change {
    let Change::PutOdds { sport, event, record: first, .. } = put_odds(WORLD, "a", 0, Market::MONEYLINE) else {
        panic!("a price")
    };
    let mut random = 1_u64;
    let records = (0..3_000).map(|number| {
        let mut record = (*first).clone();
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        record.outcomes[0].price = Price::from_american(100 + i64::try_from(random >> 40).unwrap() % 9_000).unwrap();
        let bookmaker = format!("book_{number}").into();
        let (market, after) = (first.market, Some(Arc::new(record)));
        RecordChange { event: event.clone(), bookmaker, market, before: None, after }
    });
    let tick = Some(TickChanges { at: at(20), stale: Vec::new(), records: records.collect() });
    let sports = vec![SportChanges { sport, events: Vec::new(), tick }];
    Change::Log { world: WORLD, entry: Arc::new(LogEntry { at: at(20), sports }) }
}

#[test]
fn long_block_is_stored_in_pieces_none_of_which_may_be_missing() {
    let (memory, mut store) = logged();
    store.commit(&[many_prices()]).unwrap();
    assert!(store.write_due_keyframe(at(6 * 7 * 3600)).unwrap());
    let from_log = lines(&store).unwrap().unwrap();
    assert_eq!(from_log.lines.len(), 3_001);
    write(&mut store);
    assert_eq!(lines(&store).unwrap().unwrap(), from_log);
    assert!(store.check().unwrap().is_clean());
    drop(store);
    let db = memory.raw();
    let txn = db.begin_write().unwrap();
    let rows: Vec<_> = {
        let table = txn.open_table(LINES.definition).unwrap();
        table.iter().unwrap().map(|row| row.unwrap().0.value()).collect()
    };
    assert!(rows.len() > 2, "{rows:?}");
    txn.open_table(LINES.definition).unwrap().remove(rows[1]).unwrap();
    txn.commit().unwrap();
    drop(db);
    let mut store = memory.open();
    assert!(matches!(lines(&store), Err(HistoryError::Damaged(_))));
    assert!(!store.check().unwrap().is_clean());
    store.drop_damaged().unwrap();
    assert!(store.check().unwrap().is_clean());
    write(&mut store);
    assert_eq!(lines(&store).unwrap().unwrap(), from_log);
}

/// Nobody has to notice: the next step does.
#[test]
fn damaged_lines_are_written_again_by_the_next_step() {
    let (memory, mut store) = logged();
    write(&mut store);
    drop(store);
    spoil(&memory, &ENDS, flip_last);
    let mut store = memory.open();
    store.load().unwrap();
    store.commit(&[next_tick(5)]).unwrap();
    write_lines_after(&mut store, 6);
    assert_eq!(lines(&store).unwrap().unwrap().lines[0].points.len(), 6);
    assert!(store.check().unwrap().is_clean());
}

fn write_lines_after(store: &mut Store, number: u32) {
    assert!(store.write_due_keyframe(at((number + 1) * 7 * 3600)).unwrap());
    write(store);
}

/// Without it the lines would be appended to themselves.
#[test]
fn lines_of_which_it_is_not_known_how_far_they_go_are_written_again() {
    let (memory, mut store) = logged();
    write(&mut store);
    let before = lines(&store).unwrap().unwrap();
    drop(store);
    let db = memory.raw();
    let txn = db.begin_write().unwrap();
    txn.open_table(META.definition).unwrap().remove(&*meta_lines_key(world_number(WORLD))).unwrap();
    txn.commit().unwrap();
    drop(db);
    let mut store = memory.open();
    write(&mut store);
    assert_eq!(lines(&store).unwrap().unwrap(), before);
    assert!(store.check().unwrap().is_clean());
}

/// What a lost entry said is missing; what came after it is right.
#[test]
fn lines_go_on_after_an_entry_that_is_lost() {
    for written_before in [false, true] {
        let (memory, mut store) = logged();
        let before = lines(&store).unwrap().unwrap();
        if written_before {
            // One step, so that there is a block that must not be continued.
            let prepared = store.history().prepare_lines(WORLD.into()).unwrap().unwrap();
            store.write_lines(&prepared).unwrap();
        }
        drop(store);
        let db = memory.raw();
        let txn = db.begin_write().unwrap();
        {
            let mut log = txn.open_table(LOG.definition).unwrap();
            let lost: LogKey = (1, 2);
            let mut row = log.get(lost).unwrap().unwrap().value().to_vec();
            flip_last(&mut row);
            log.insert(lost, &*row).unwrap();
        }
        txn.commit().unwrap();
        drop(db);
        let mut store = memory.open();
        write(&mut store);
        let after = lines(&store).unwrap().unwrap();
        // The keyframe after the lost entry has the price that it published, and when.
        assert_eq!(after.lines[0].points, before.lines[0].points, "{written_before}");
    }
}

#[test]
fn file_without_lines_gets_them_from_its_log() {
    let (memory, mut store) = logged();
    let before = lines(&store).unwrap().unwrap();
    write(&mut store);
    drop(store);
    let db = memory.raw();
    let txn = db.begin_write().unwrap();
    txn.delete_table(LINES.definition).unwrap();
    txn.delete_table(ENDS.definition).unwrap();
    txn.delete_table(LINE_KEYS.definition).unwrap();
    txn.delete_table(LINE_EVENTS.definition).unwrap();
    txn.delete_table(LINE_DAYS.definition).unwrap();
    txn.open_table(META.definition).unwrap().remove(&*meta_lines_key(world_number(WORLD))).unwrap();
    txn.open_table(FORMATS).unwrap().insert(FORMAT_KEY, 5).unwrap();
    txn.commit().unwrap();
    drop(db);
    let mut store = memory.open();
    assert_eq!(lines(&store).unwrap().unwrap(), before);
    write(&mut store);
    assert_eq!(lines(&store).unwrap().unwrap(), before);
    assert!(store.check().unwrap().is_clean());
}

fn long_tick(number: u32, is_closed: bool) -> Change {
    tick_of("fanduel", number, is_closed)
}

/// The same of another bookmaker.
fn other_tick(number: u32) -> Change {
    tick_of("pinnacle", number, false)
}

/// A record with many outcomes, so that a few changes fill a block.
fn tick_of(bookmaker: &str, number: u32, is_closed: bool) -> Change {
    let Change::PutOdds { sport, event, record: first, .. } = put_odds(WORLD, "a", 0, Market::OUTRIGHT) else {
        panic!("a price")
    };
    let priced = |number: u32| {
        let mut record = (*first).clone();
        let name = |place: u32| format!("{number} {place}");
        record.outcomes = (0..400).map(|place| outcome(&name(place), "-110", None)).collect();
        Arc::new(record)
    };
    let after = (!is_closed).then(|| priced(number));
    let change = RecordChange { event, bookmaker: bookmaker.into(), market: first.market, before: None, after };
    let tick = Some(TickChanges { at: at(10 + number), stale: Vec::new(), records: vec![change] });
    let sports = vec![SportChanges { sport, events: Vec::new(), tick }];
    Change::Log { world: WORLD, entry: Arc::new(LogEntry { at: at(9 + number), sports }) }
}

#[test]
fn range_of_a_line_has_its_points_and_the_price_before_it() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    store.load().unwrap();
    store.commit(&[log_tick(WORLD)]).unwrap();
    for number in 1..120 {
        // It is closed for a while, longer than a block.
        let is_closed = number == 40;
        let change = if (41..80).contains(&number) { other_tick(number) } else { long_tick(number, is_closed) };
        store.commit(&[change]).unwrap();
        store.write_due_keyframe(at(number * 7 * 3600)).unwrap();
    }
    write(&mut store);
    let read = |range: LineRange| {
        let is_wanted = |key: &str, market: Market| (key, market) == ("fanduel", Market::OUTRIGHT);
        store.history().lines_between(WORLD, sport_id(0), &event_id("a"), (is_wanted, range)).unwrap().unwrap()
    };
    let all = read(LineRange::default());
    for (from, to) in [(0, 200), (15, 30), (45, 60), (60, 100), (100, 110), (125, 130), (200, 300)] {
        let range = LineRange { from: Some(at(from)), to: Some(at(to)) };
        let found = read(range);
        for (line, whole) in found.lines.iter().zip(&all.lines) {
            let is_in_range = |point: &&LinePoint| (at(from)..=at(to)).contains(&point.at);
            let points = |line: &Line| line.points.iter().filter(is_in_range).cloned().collect::<Vec<_>>();
            assert_eq!(points(line), points(whole), "{from} to {to}");
            let before = |line: &Line| line.points.iter().rfind(|point| point.at <= at(from)).cloned();
            assert_eq!(before(line), before(whole), "{from} to {to}");
            let has_price = line.points.iter().any(|point| point.at <= at(from) && point.outcomes.is_some());
            assert_eq!(has_price, line.opening.at <= at(from), "{from} to {to}");
        }
        let count = |lines: &EventLines| lines.lines.iter().map(|line| line.points.len()).sum::<usize>();
        let is_at_an_end = from == 15 || from == 200;
        assert!(!is_at_an_end || count(&found) < count(&all), "{from} to {to}: all blocks were read");
    }
}
