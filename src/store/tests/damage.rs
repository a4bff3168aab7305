//! Damage is reported and left out: it is never served, and never stops the rest from being served.

use redb::{Key, ReadableDatabase, ReadableTable, Value};

use super::*;
use crate::model::{EntryId, FeedBudget, FeederUse, Membership, Score, ScoreStatus, Source};
use crate::store::care::check_rows;
use crate::store::codec::{EventRow, Flaw, MetaRow, OddsRow, OutcomeRow, PointsRow, QuotedRow, Row};
use crate::store::rows::{NumberNames, StoredRow};
use crate::store::table_keys::{EventKey, TableKey};
use crate::store::tables::{self, IndexTable, Table, TableVisitor, for_each_table};
use crate::store::{Integrity, OpenError};

/// Two events with a price each, and one row at least in every table.
/// The number that the name of the moneyline has in the file of [`filled`].
const MONEYLINE: u32 = 6;

pub(super) fn filled() -> Memory {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    let score = Score { status: ScoreStatus::Live, points: None, periods: [].into(), winner: None, updated: at(1) };
    let source = Source { last_read: at(5), latency_ms: 1, empty_since: None };
    let (world, sport) = (World::Live, sport_id(0));
    let used = FeederUse { bookmakers: 1, ..FeederUse::default() };
    store
        .commit(&[
            put_event(world, "a", 1),
            put_event(world, "b", 2),
            put_competition("mma"),
            Change::PutMarket { world, market: Market::MONEYLINE },
            put_odds(world, "a", 0, Market::MONEYLINE),
            put_odds(world, "b", 1, Market::SPREAD),
            Change::PutScore { world, sport, event: event_id("a"), score: Arc::new(score) },
            Change::PutSource { world, sport, bookmaker: BookId::from_number(0), source },
            Change::PutKey(key("k")),
            Change::PutUsage { key: key("k").id.clone(), usage: crate::keys::Usage::default(), last_used: None },
            Change::PutRecentUse { key: key("k").id.clone(), recent: Box::default() },
            Change::PutFeeder(Arc::new(feeder())),
            Change::PutFeedBudget { feed: "feed".into(), budget: FeedBudget::default() },
            Change::PutFeederUse { world, feed: "token/a".into(), used },
            Change::SetSimulated(true),
            Change::SetMembership(Some(Membership {
                cluster: 1,
                epoch: 2,
                file: 6,
                applied: EntryId { ms: 3, number: 4 },
                fence: 5,
            })),
            Change::SetMaintenance(Some(crate::model::Maintenance { since: at(1), until: None })),
            put_poll("feed/mma"),
            put_polled("feed/mma", "a", &[(0, Market::MONEYLINE)]),
            put_polled("feed/mma", "b", &[(1, Market::SPREAD)]),
            log_tick(world),
            Change::Audit(note("issue")),
        ])
        .unwrap();
    // Writes the epochs.
    store.load().unwrap();
    store.store_catalogue("sports and bookmakers").unwrap();
    write_lines(&mut store, world);
    drop(store);
    memory
}

/// Writes the lines of everything that the log has.
pub(super) fn write_lines(store: &mut Store, world: World) {
    // A keyframe is due after some hours.
    assert!(store.write_due_keyframe(at(7 * 3600)).unwrap());
    while let Some(prepared) = store.history().prepare_lines(world.into()).unwrap() {
        store.write_lines(&prepared).unwrap();
    }
}

/// Rewrites the first row of a table.
pub(super) fn spoil<K: TableKey, R>(memory: &Memory, table: &Table<K, R>, spoil: impl Fn(&mut [u8])) {
    let db = memory.raw();
    let txn = db.begin_write().unwrap();
    {
        let mut table = txn.open_table(table.definition).unwrap();
        let (key, mut bytes) = {
            let (key, value) = table.first().unwrap().unwrap();
            (K::as_bytes(&key.value()).as_ref().to_vec(), value.value().to_vec())
        };
        spoil(&mut bytes);
        table.insert(K::from_bytes(&key), &*bytes).unwrap();
    }
    txn.commit().unwrap();
}

/// Puts a sealed row under a key.
fn plant<K: TableKey, R: Row>(memory: &Memory, table: &Table<K, R>, key: &K::SelfType<'_>, row: &R) {
    let bytes = table.seal(key, row).unwrap();
    let db = memory.raw();
    let txn = db.begin_write().unwrap();
    txn.open_table(table.definition).unwrap().insert(key, &*bytes).unwrap();
    txn.commit().unwrap();
}

pub(super) fn flip_last(bytes: &mut [u8]) {
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
}

fn spoiled<K: TableKey, R>(table: &Table<K, R>) -> (Memory, Loaded) {
    let memory = filled();
    spoil(&memory, table, flip_last);
    let mut store = memory.open();
    let loaded = store.load().unwrap();
    let listed = loaded.damage.listed();
    assert!(listed.iter().any(|damage| damage.table == table.name), "{}: {listed:?}", table.name);
    let report = store.check().unwrap();
    assert!(!report.problems.is_empty(), "{}", table.name);
    assert_eq!(report.integrity, Integrity::Sound);
    (memory, loaded)
}

#[test]
fn flipped_bit_in_any_table_is_found_by_loading_and_by_the_check() {
    let count = |loaded: &Loaded| {
        let events = &loaded.world(World::Live).sports[0].events;
        (events.len(), events.iter().map(|event| event.records.len()).sum::<usize>())
    };
    assert_eq!(count(&spoiled(&tables::ODDS).1), (2, 1));
    assert_eq!(count(&spoiled(&tables::EVENTS).1), (1, 1));
    assert_eq!(count(&spoiled(&tables::SCORES).1), (2, 2));
    assert_eq!(count(&spoiled(&tables::NAMES).1), (0, 0), "both events are of the competition whose name is lost");
    assert_eq!(count(&spoiled(&tables::SOURCES).1), (2, 2));
    assert_eq!(count(&spoiled(&tables::USAGE).1), (2, 2));
    assert_eq!(spoiled(&tables::RECENT_USE).1.recent_use, []);
    assert_eq!(spoiled(&tables::POLLS).1.world(World::Live).polls.len(), 0, "events of a scope that is lost");
    assert_eq!(count(&spoiled(&tables::META).1), (2, 2));
    assert_eq!(spoiled(&tables::KEYS).1.keys.len(), 0);
    assert_eq!(spoiled(&tables::FEEDERS).1.feeders.len(), 0);
    assert_eq!(spoiled(&tables::BUDGETS).1.feed_budgets.len(), 0);
    assert_eq!(count(&spoiled(&tables::SPORTS).1), (0, 0), "events of a lost sport cannot be found");
    assert_eq!(count(&spoiled(&tables::BOOKS).1), (2, 2), "the first row is the sandbox's");
}

#[test]
fn damaged_use_of_a_quota_is_found_and_dropped_and_the_feeder_begins_anew() {
    let used = FeederUse { bookmakers: 1, ..FeederUse::default() };
    for (key, row) in [
        ("use/live/token/a", MetaRow::Simulated),
        ("use/nowhere/token/b", MetaRow::of_use(used)),
        ("use/", MetaRow::of_use(used)),
    ] {
        let memory = filled();
        plant(&memory, &tables::META, &key, &row);
        let mut store = memory.open();
        let loaded = store.load().unwrap();
        assert!(loaded.damage.listed().iter().any(|damage| damage.key == key), "{:?}", loaded.damage);
        assert_eq!(loaded.world(World::Live).feeder_uses.is_empty(), key == "use/live/token/a");
        assert!(!store.check().unwrap().is_clean(), "{key}");
        assert_eq!(store.drop_damaged().unwrap(), 1, "{key}");
        assert!(store.check().unwrap().is_clean(), "{key}");
    }
}

#[test]
fn every_flipped_byte_of_a_row_and_every_wrong_key_is_found() {
    let names = &mut Fixed;
    let record = record("mma", "a", 0, Market::SPREAD, 5);
    let key = (1, 2, 3, 4, 5);
    let bytes = tables::ODDS.seal(&key, &OddsRow::of(&record, names)).unwrap();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut flipped = bytes.clone();
            flipped[at] ^= 1 << bit;
            assert_eq!(tables::ODDS.unseal(&key, &flipped).unwrap_err(), Flaw::Checksum, "byte {at} bit {bit}");
        }
    }
    for length in 0..bytes.len() {
        tables::ODDS.unseal(&key, &bytes[..length]).unwrap_err();
    }
    for wrong in [(0, 2, 3, 4, 5), (1, 2, 3, 4, 6), (1, 2, 4, 4, 5)] {
        assert_eq!(tables::ODDS.unseal(&wrong, &bytes).unwrap_err(), Flaw::Checksum);
    }
    assert!(tables::ODDS.unseal(&key, &bytes).is_ok());
}

/// Every name has the same number.
struct Fixed;

impl NumberNames for Fixed {
    fn number(&mut self, _: &Arc<str>) -> u32 {
        0
    }
}

fn odds_row(outcomes: Vec<OutcomeRow>, quoted: QuotedRow, points: PointsRow) -> OddsRow {
    OddsRow { outcomes, last_update: [0; 4], quoted, points, bookmaker_later_s: 0 }
}

fn one(name: u32, profit: u32, stake: u32) -> Vec<OutcomeRow> {
    vec![OutcomeRow { name, profit, stake }]
}

#[test]
fn row_that_the_model_refuses_is_damage_although_its_checksum_matches() {
    let sound = || one(0, 1, 1);
    let (american, none) = (|| QuotedRow::American, || PointsRow::None);
    let many = (0..501).map(|_| OutcomeRow { name: 0, profit: 1, stake: 1 }).collect();
    let bad = [
        odds_row(one(0, 0, 1), american(), none()),
        odds_row(one(0, 1, 0), american(), none()),
        odds_row(one(0, u32::MAX, 1), american(), none()),
        odds_row(one(9999, 1, 1), american(), none()),
        odds_row(sound(), QuotedRow::Each(vec![3]), none()),
        odds_row(sound(), QuotedRow::Each(vec![]), none()),
        odds_row(sound(), american(), PointsRow::All(vec![])),
        odds_row(sound(), american(), PointsRow::All(vec![i32::MAX])),
        odds_row(many, american(), none()),
    ];
    for row in bad {
        let memory = filled();
        plant(&memory, &tables::ODDS, &(1, 0, 0, 0, MONEYLINE), &row);
        let loaded = memory.open().load().unwrap();
        assert_eq!(loaded.damage.count(), 1, "{row:?}");
        assert_eq!(
            loaded.damage.listed()[0].key,
            "live sport number 0 event number 0 bookmaker number 0 market number 6"
        );
        assert_eq!(loaded.world(World::Live).sports[0].events[0].records.len(), 0);
    }
}

#[test]
fn dangling_references_are_damage() {
    let record = record("mma", "a", 0, Market::SPREAD, 5);
    let row = || OddsRow::of(&record, &mut Fixed);
    for (key, reason) in [
        ((1, 0, 77, 0, MONEYLINE), "its event is missing"),
        ((1, 0, 0, 77, MONEYLINE), "its bookmaker is missing"),
        ((1, 0, 0, 0, 77), "its name 77 is missing"),
        ((1, 77, 0, 0, MONEYLINE), "they belong to no known sport"),
        ((7, 0, 0, 0, MONEYLINE), "they belong to no known sport"),
    ] {
        let memory = filled();
        plant(&memory, &tables::ODDS, &key, &row());
        let mut store = memory.open();
        let loaded = store.load().unwrap();
        assert_eq!(loaded.damage.listed()[0].reason, reason);
        assert!(!store.check().unwrap().is_clean());
    }
}

#[test]
fn mismatches_of_index_and_rows_are_found() {
    let with = |change: &dyn Fn(&redb::WriteTransaction)| {
        let memory = filled();
        let db = memory.raw();
        let txn = db.begin_write().unwrap();
        change(&txn);
        txn.commit().unwrap();
        drop(db);
        let mut store = memory.open();
        let report = store.check().unwrap();
        assert_eq!(report.problems.count(), 1, "{report:?}");
        let events = store.load().unwrap().world(World::Live).sports[0].events.len();
        (report.problems.listed()[0].reason.clone(), events)
    };
    let uncovered = with(&|txn| {
        txn.open_table(tables::COVERAGE.definition).unwrap().remove((1, 0, 0, 0, MONEYLINE)).unwrap().unwrap();
    });
    assert_eq!(uncovered, ("it is not in the coverage".to_owned(), 2));
    let dangling = with(&|txn| {
        txn.open_table(tables::COVERAGE.definition).unwrap().insert((1, 0, 2, 0, MONEYLINE), ()).unwrap();
    });
    assert_eq!(dangling, ("it points to no record".to_owned(), 2));
    let unscheduled = with(&|txn| {
        txn.open_table(tables::SCHEDULE.definition).unwrap().remove((1, 0, at(1).unix(), 0)).unwrap().unwrap();
    });
    assert_eq!(unscheduled, ("it is not in the schedule".to_owned(), 2), "it is served all the same");
    let scheduled_twice = with(&|txn| {
        txn.open_table(tables::SCHEDULE.definition).unwrap().insert((1, 0, 3, 0), ()).unwrap();
    });
    assert_eq!(scheduled_twice, ("it points to no event".to_owned(), 2));
}

#[test]
fn damaged_price_is_replaced_by_the_next_one() {
    let (memory, _) = spoiled(&tables::ODDS);
    let mut store = memory.open();
    store.commit(&[put_odds(World::Live, "a", 0, Market::MONEYLINE)]).unwrap();
    let report = store.check().unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn no_name_is_deleted_from_a_damaged_file() {
    let (memory, _) = spoiled(&tables::EVENTS);
    let names = |store: &mut Store| store.check().unwrap().rows.iter().find(|row| row.0 == "names").unwrap().1;
    let mut store = memory.open();
    let before = names(&mut store);
    store.load().unwrap();
    assert_eq!(store.sweep_names().unwrap(), 0);
    assert_eq!(names(&mut store), before);
}

#[test]
fn damaged_counter_assigns_no_number_twice() {
    let memory = filled();
    spoil(&memory, &tables::META, flip_last);
    let mut store = memory.open();
    store.commit(&[put_event(World::Live, "c", 1)]).unwrap();
    let loaded = store.load().unwrap();
    assert_eq!(loaded.world(World::Live).sports[0].events.len(), 3);
}

#[test]
fn hostile_lengths_are_refused_without_allocating() {
    let key = (1, 0, 0);
    let mut bytes = vec![1, 253];
    bytes.extend_from_slice(&u64::MAX.to_le_bytes());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(<EventKey as redb::Value>::as_bytes(&key).as_ref());
    hasher.update(&bytes);
    bytes.extend_from_slice(&hasher.finalize().to_le_bytes());
    let refused: Result<EventRow, Flaw> = tables::EVENTS.unseal(&key, &bytes);
    assert_eq!(refused.unwrap_err(), Flaw::Malformed);
}

#[test]
fn ruined_pages_never_stop_the_process_and_are_never_served_as_sound() {
    let whole = filled().bytes();
    let sound = picture(&Memory::new(whole.clone()).open().load().unwrap());
    let (mut refused, mut reported, mut unharmed) = (0, 0, 0);
    for at in (4096..whole.len()).filter(|at| whole[*at] != 0).step_by(89) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x41;
        let memory = Memory::new(bytes);
        let Ok(mut store) = memory.open_with(&catalogue()) else {
            refused += 1;
            continue;
        };
        let Ok(loaded) = store.load() else {
            refused += 1;
            continue;
        };
        let is_same = picture(&loaded) == sound;
        let report = store.check();
        let is_reported = !loaded.damage.is_empty() || !report.is_ok_and(|report| report.is_clean());
        assert!(is_same || is_reported, "byte {at} changed what is served, and no damage was reported");
        if is_reported {
            reported += 1;
        } else {
            unharmed += 1;
        }
    }
    assert!(refused + reported > 10, "{refused} refused, {reported} reported, {unharmed} unharmed");
}

#[test]
fn check_announces_how_many_rows_it_reads() {
    let progress = Arc::default();
    let report = filled().open().check_with_progress(&progress).unwrap();
    let indexes = ["schedule", "coverage", "key_order", "ticks", "line_events", "line_days"];
    let sealed: u64 = report.rows.iter().filter(|(table, _)| !indexes.contains(table)).map(|(_, count)| count).sum();
    assert_eq!(progress.rows(), (sealed, sealed));
}

/// Both the check and dropping damaged rows cover every row.
#[test]
fn check_reports_every_damaged_row_of_every_table() {
    fn named<K: TableKey, R>(table: &Table<K, R>) {
        let memory = filled();
        let db = memory.raw();
        let txn = db.begin_write().unwrap();
        let mut spoiled = 0;
        {
            let mut rows = txn.open_table(table.definition).unwrap();
            let all: Vec<(Vec<u8>, Vec<u8>)> = rows
                .range::<K::SelfType<'_>>(..)
                .unwrap()
                .map(|row| row.unwrap())
                .map(|(key, row)| (K::as_bytes(&key.value()).as_ref().to_vec(), row.value().to_vec()))
                .collect();
            for (key, mut row) in all {
                flip_last(&mut row);
                rows.insert(K::from_bytes(&key), &*row).unwrap();
                spoiled += 1;
            }
        }
        txn.commit().unwrap();
        drop(db);
        // Opening makes some rows anew: this looks at the file as it is.
        let found = check_rows(&memory.raw().begin_read().unwrap(), &Arc::default()).unwrap();
        let here: Vec<_> = found.damaged.iter().filter(|(name, _)| *name == table.name).collect();
        assert!(spoiled > 0 && here.len() == spoiled, "{}: {} of {spoiled}", table.name, here.len());
        let reported = found.problems.listed().iter().filter(|problem| problem.reason == Flaw::Checksum.to_string());
        assert_eq!(reported.count(), spoiled, "{}", table.name);
    }
    struct EachTable;

    impl TableVisitor for EachTable {
        type Error = ();

        fn table<K: TableKey, R: StoredRow<K>>(&mut self, table: &Table<K, R>) -> Result<(), ()> {
            named(table);
            Ok(())
        }

        fn index<K: Key + 'static, V: Value + 'static>(&mut self, _: &IndexTable<K, V>) -> Result<(), ()> {
            Ok(())
        }
    }

    for_each_table(&mut EachTable).unwrap();
}

#[test]
fn check_of_a_sound_file_counts_its_rows() {
    let memory = filled();
    let report = memory.open().check().unwrap();
    assert!(report.is_clean(), "{report:?}");
    let rows: std::collections::BTreeMap<_, _> = report.rows.iter().copied().collect();
    assert_eq!((rows["events"], rows["odds"], rows["coverage"], rows["names"]), (2, 2, 2, 8));
    assert_eq!(rows.len(), 29);
    assert!(rows.values().all(|count| *count > 0), "a table without a row proves nothing: {rows:?}");
    assert!(memory.raw().begin_read().is_ok());
    assert!(matches!(Memory::new(vec![1]).open_with(&catalogue()), Err(OpenError::NotOurs { .. })));
}

#[test]
fn keys_with_damaged_counters_are_reported_and_so_is_any_that_a_stray_row_may_belong_to() {
    let (_, loaded) = spoiled(&tables::USAGE);
    assert_eq!(loaded.damaged_usage, [key("k").id.clone()]);
    assert_eq!(memory_of_two_keys(None).damaged_usage, [], "a key that was never used has no row");
    let stray = memory_of_two_keys(Some("key_00000000000x"));
    assert_eq!(stray.damaged_usage, [key("n").id.clone()], "k has its own row");
}

/// Two keys, of which one was never used, and maybe a damaged row under another id.
fn memory_of_two_keys(stray: Option<&str>) -> Loaded {
    let memory = filled();
    memory.open().commit(&[Change::PutKey(key("n"))]).unwrap();
    if let Some(id) = stray {
        let db = memory.raw();
        let txn = db.begin_write().unwrap();
        txn.open_table(tables::USAGE.definition).unwrap().insert(id, &b"rotten"[..]).unwrap();
        txn.commit().unwrap();
    }
    memory.open().load().unwrap()
}

#[test]
fn dropping_damaged_rows_leaves_a_sound_file_with_the_rest() {
    fn mended<K: TableKey, R>(table: &Table<K, R>) -> (u64, Loaded) {
        let memory = filled();
        spoil(&memory, table, flip_last);
        let mut store = memory.open();
        let dropped = store.drop_damaged().unwrap();
        let report = store.check().unwrap();
        assert!(report.is_clean(), "{}: {report:?}", table.name);
        store.commit(&[put_event(World::Live, "new", 5), put_odds(World::Live, "new", 2, Market::SPREAD)]).unwrap();
        assert!(store.check().unwrap().is_clean(), "{}", table.name);
        assert!(memory.open().load().unwrap().damage.is_empty());
        (dropped, memory.open().load().unwrap())
    }
    let events = |loaded: &Loaded| loaded.world(World::Live).sports[0].events.len();
    let (dropped, loaded) = mended(&tables::EVENTS);
    assert_eq!((dropped, events(&loaded)), (3, 2), "an event with its record and its score");
    let (dropped, loaded) = mended(&tables::ODDS);
    assert_eq!((dropped, events(&loaded)), (1, 3));
    assert_eq!(mended(&tables::SCORES).0, 1);
    assert_eq!(mended(&tables::SOURCES).0, 1);
    let (dropped, loaded) = mended(&tables::KEYS);
    assert_eq!((dropped, loaded.keys.len()), (3, 0), "a key with its counters");
    let (dropped, loaded) = mended(&tables::RECENT_USE);
    assert_eq!((dropped, loaded.keys.len()), (1, 1));
    assert!(mended(&tables::NAMES).0 >= 1);
    assert!(mended(&tables::BOOKS).0 >= 1);
    assert!(mended(&tables::SPORTS).0 >= 1);
    assert_eq!(mended(&tables::META).0, 1);
    assert_eq!(filled().open().drop_damaged().unwrap(), 0);
}
