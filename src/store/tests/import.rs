//! Imported history at the size of packs, keyframes and several commits, against a plain model of it.

use std::collections::BTreeMap;

use redb::ReadableDatabase;

use super::*;
use crate::model::{HistoryChange, HistoryPrice, LoggedPrice, Permanence};
use crate::store::history::{ImportBuilder, ImportProblem};
use crate::store::tables::{ENDS, KEYFRAMES, LINE_DAYS, LINE_EVENTS, LINES, LOG, TICKS};
use crate::store::{HistoryError, ImportedLog};

const WORLD: World = World::Live;
const EVENTS: u32 = 30;

/// The prices by event and bookmaker.
type Board = BTreeMap<(String, String), Arc<[Outcome]>>;

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u32::try_from(self.0 >> 33).unwrap() % end
    }
}

/// Changes of prices, and what the board was after each of their seconds.
fn changes(seconds: u32, numbers: &mut Numbers) -> (Vec<(Timestamp, HistoryChange)>, BTreeMap<Timestamp, Board>) {
    let (mut changes, mut boards, mut board) = (Vec::new(), BTreeMap::new(), Board::new());
    for number in 0..EVENTS {
        changes.push((at(0), HistoryChange::Event(event(&format!("e{number}"), 1_000_000))));
    }
    for second in 0..seconds {
        for _ in 0..=numbers.below(8) {
            let id = format!("e{}", numbers.below(EVENTS));
            let book = BOOKS[numbers.below(2) as usize];
            let is_open = numbers.below(10) > 0;
            let price = i64::from(100 + numbers.below(50));
            let mut outcomes = record("mma", &id, 0, Market::MONEYLINE, 5).outcomes.to_vec();
            outcomes[0].price = Price::from_american(price).unwrap();
            let outcomes: Arc<[Outcome]> = outcomes.into();
            let key = (id.clone(), book.to_owned());
            let price = is_open.then(|| LoggedPrice { last_update: at(second), outcomes: Arc::clone(&outcomes) });
            if is_open {
                board.insert(key, outcomes)
            } else {
                board.remove(&key)
            };
            let price = HistoryPrice { event: event_id(&id), bookmaker: book.into(), market: Market::MONEYLINE, price };
            changes.push((at(second), HistoryChange::Price(price)));
        }
        boards.insert(at(second), board.clone());
    }
    (changes, boards)
}

fn write_lines(store: &mut Store, log: ImportedLog) {
    while let Some(prepared) = store.history().prepare_lines(log.id()).unwrap() {
        store.write_lines(&prepared).unwrap();
    }
}

fn import(store: &mut Store, changes: &[(Timestamp, HistoryChange)]) -> ImportedLog {
    let (mut builder, before) = store.begin_import(WORLD, sport_id(0), &[]).unwrap();
    push(store, &mut builder, changes);
    let rows = builder.finish().unwrap();
    store.write_import(&rows).unwrap();
    write_lines(store, builder.log());
    assert!(store.finish_import(builder.log(), before).unwrap());
    builder.log()
}

fn push(store: &mut Store, builder: &mut ImportBuilder, changes: &[(Timestamp, HistoryChange)]) {
    for (time, change) in changes {
        assert_eq!(builder.push(*time, change.clone()).unwrap(), Ok(()));
        while let Some(rows) = builder.take_rows() {
            store.write_import(&rows).unwrap();
        }
    }
}

fn board_as_of(store: &Store, time: Timestamp) -> Board {
    let (_, state) = store.history().as_of(WORLD, sport_id(0), time).unwrap();
    let records = |event| {
        let id = |event: &crate::store::FoldedEvent| event.event.id.to_string();
        let record = move |(book, _, price): (&Arc<str>, Market, &LoggedPrice)| {
            ((id(event), book.to_string()), Arc::clone(&price.outcomes))
        };
        state.records(event).map(record).collect::<Vec<_>>()
    };
    state.events().flat_map(records).collect()
}

#[test]
fn every_second_is_read_back() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    store.load().unwrap();
    let mut numbers = Numbers(7);
    let (changes, boards) = changes(4_000, &mut numbers);
    let log = import(&mut store, &changes);
    let head = store.history().log_end(log.id()).unwrap();
    assert!(head.1 > 3_000, "an entry for nearly every second");
    for _ in 0..60 {
        let time = at(numbers.below(4_000));
        assert_eq!(board_as_of(&store, time), boards[&time], "{time}");
    }
    let last = *boards.keys().last().unwrap();
    assert_eq!(board_as_of(&store, last.plus_seconds(1_000_000)), boards[&last]);
    assert!(matches!(
        store.history().as_of(WORLD, sport_id(0), at(0).min(Timestamp::from_unix(1))),
        Err(HistoryError::Gone)
    ));
    let lines = store.history().lines(WORLD, sport_id(0), &event_id("e3"), |_, _| true).unwrap().unwrap();
    for line in &lines.lines {
        let key = ("e3".to_owned(), line.bookmaker.to_string());
        let mut points = line.points.iter();
        let mut last = None;
        for (time, board) in &boards {
            let now = board.get(&key);
            if now != last {
                let point = points.next().unwrap();
                assert_eq!((point.at, point.outcomes.as_ref()), (*time, now));
                last = now;
            }
        }
        assert_eq!(points.next(), None);
    }
    assert!(store.check().unwrap().is_clean());
    assert!(store.log_without_lines().unwrap().is_none());
    // The last entry has no neighbour yet: the own log may begin at any time.
    let entry = store.history().as_of(WORLD, sport_id(0), last).unwrap().0;
    assert_eq!((entry.next, entry.permanence), (None, Permanence::Current));
}

#[test]
fn own_log_and_lines_are_not_touched() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    store.load().unwrap();
    store.commit(&[log_tick(WORLD)]).unwrap();
    let own = store.history().entries_after(WORLD.into(), 0, 10).unwrap();
    let (changes, _) = changes(50, &mut Numbers(3));
    let early: Vec<_> =
        changes.iter().map(|(time, change)| (Timestamp::from_unix(time.unix() - 1_000), change.clone())).collect();
    import(&mut store, &early);
    assert_eq!(store.history().entries_after(WORLD.into(), 0, 10).unwrap(), own);
    let (entry, state) = store.history().as_of(WORLD, sport_id(0), at(100)).unwrap();
    assert_eq!((entry.log, state.events().count()), (WORLD.into(), 1));
    assert!(store.check().unwrap().is_clean());
}

/// How many rows the tables of the log have under numbers that are no world's.
fn imported_rows(memory: &Memory) -> usize {
    fn count<K: for<'k> redb::Key<SelfType<'k> = K> + 'static, V: redb::Value + 'static>(
        txn: &redb::ReadTransaction,
        table: redb::TableDefinition<'static, K, V>,
        number: impl Fn(&K) -> u8,
    ) -> usize {
        let rows = txn.open_table(table).unwrap();
        rows.range::<K>(..).unwrap().filter(|row| number(&row.as_ref().unwrap().0.value()) > 1).count()
    }
    let txn = memory.raw().begin_read().unwrap();
    count(&txn, LOG.definition, |key| key.0)
        + count(&txn, KEYFRAMES.definition, |key| key.0)
        + count(&txn, TICKS.definition, |key| key.0)
        + count(&txn, ENDS.definition, |key| key.0)
        + count(&txn, LINES.definition, |key| key.0)
        + count(&txn, LINE_EVENTS.definition, |key| key.0)
        + count(&txn, LINE_DAYS.definition, |key| key.0)
}

#[test]
fn what_is_not_listed_is_deleted_and_what_is_being_written_is_not() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    store.load().unwrap();
    let (changes, _) = changes(500, &mut Numbers(5));
    // One that was given up.
    let (mut given_up, _) = store.begin_import(WORLD, sport_id(0), &[]).unwrap();
    push(&mut store, &mut given_up, &changes);
    let rows = given_up.finish().unwrap();
    store.write_import(&rows).unwrap();
    let active = [given_up.log()];
    assert!(!store.delete_unlisted_history(&active).unwrap());
    let (other, _) = store.begin_import(WORLD, sport_id(0), &active).unwrap();
    assert_ne!(other.log(), given_up.log());
    while store.delete_unlisted_history(&[]).unwrap() {}
    drop(store);
    assert_eq!(imported_rows(&memory), 0);
    let mut store = memory.open();
    store.load().unwrap();
    import(&mut store, &changes);
    import(&mut store, &changes);
    while store.delete_unlisted_history(&[]).unwrap() {}
    assert!(store.check().unwrap().is_clean());
    let head = store.history().since(WORLD).unwrap();
    assert_eq!(head, Some(at(0)));
    drop(store);
    let rows = imported_rows(&memory);
    let mut store = memory.open();
    store.load().unwrap();
    let listed = store.history().imported(WORLD, sport_id(0)).unwrap().unwrap();
    assert!(rows > 0 && store.history().log_end(listed).unwrap().1 > 1);
}

#[test]
fn import_that_another_one_came_before_is_not_listed() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    store.load().unwrap();
    let (changes, _) = changes(20, &mut Numbers(1));
    let (mut slow, before) = store.begin_import(WORLD, sport_id(0), &[]).unwrap();
    push(&mut store, &mut slow, &changes);
    import(&mut store, &changes);
    let rows = slow.finish().unwrap();
    store.write_import(&rows).unwrap();
    assert!(!store.finish_import(slow.log(), before).unwrap());
}

#[test]
fn changes_in_a_wrong_order_are_refused() {
    let memory = Memory::new(Vec::new());
    let store = memory.open();
    let (mut builder, _) = store.begin_import(WORLD, sport_id(0), &[]).unwrap();
    let event = HistoryChange::Event(event("a", 100));
    assert_eq!(builder.push(at(10), event.clone()).unwrap(), Ok(()));
    assert_eq!(builder.push(at(9), event).unwrap(), Err(ImportProblem::OutOfOrder));
    let removed = |id: &str| HistoryChange::Removed(event_id(id));
    assert_eq!(builder.push(at(10), removed("b")).unwrap(), Err(ImportProblem::UnknownEvent));
    assert_eq!(builder.push(at(11), removed("a")).unwrap(), Ok(()));
    assert_eq!(builder.push(at(11), removed("a")).unwrap(), Err(ImportProblem::UnknownEvent));
}
