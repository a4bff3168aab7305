//! The failure that this prevents: a new version of the program that loses, or half changes, the file of the old one.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use redb::{ReadableDatabase, ReadableTable};

use super::*;
use crate::model::SeenCompetition;
use crate::store::OpenError;
use crate::store::care::upgrade::{COVERAGE_BEFORE, ODDS_BEFORE, OddsKeyBefore, UPGRADES};
use crate::store::codec::{
    self, BincodeRow, ContestRow, EventRow, Flaw, OddsRow, OwnerRow, PollRow, PollRowBefore, Row,
};
use crate::store::table_keys::{EventKey, PollKey, TableKey, world_number};
use crate::store::tables::{
    BUDGETS, CATALOGUE, COMPETITIONS, COVERAGE, EVENTS, FORMAT, FORMAT_KEY, FORMATS, KEY_ORDER, KEYFRAMES, LOG,
    MARKETS, META, NAMES, ODDS, POLLS, TICKS, Table, meta_log_key,
};

/// Everything but the log, which an upgraded file begins.
fn content(loaded: &Loaded) -> String {
    picture(&Loaded { log_heads: Default::default(), ..loaded.clone() })
}

fn fill(store: &mut Store) {
    let mut late = (*key("a")).clone();
    late.created = at(9);
    store
        .commit(&[
            Change::PutCompetition {
                world: World::Live,
                key: "mma".into(),
                competition: SeenCompetition { sport: sport_id(0), title: "Open".into() },
            },
            put_event(World::Live, "a", 1),
            put_odds(World::Live, "a", 0, Market::MONEYLINE),
            put_odds(World::Live, "a", 1, Market::ROUND_LEADER),
            Change::PutPoll {
                world: World::Live,
                scope: "feed".into(),
                sport: sport_id(0),
                stale_after_s: 300,
                books: [BookId::from_number(0)].into(),
            },
            Change::PutPolled {
                world: World::Live,
                scope: "feed".into(),
                event: event_id("a"),
                records: [(BookId::from_number(0), Market::MONEYLINE)].into(),
            },
            Change::PutKey(Arc::new(late)),
            Change::PutKey(key("b")),
        ])
        .unwrap();
}

/// The row of an event as format 2 had it.
#[derive(bincode::Encode, bincode::Decode)]
struct EventWithoutOwner {
    id: String,
    competition: u32,
    commence: u32,
    contest: ContestRow,
    status: u8,
    changed: u32,
}

impl BincodeRow for EventWithoutOwner {}

fn forget_owners(txn: &redb::WriteTransaction) {
    let first = Table::<EventKey, EventWithoutOwner>::new(EVENTS.name, |_, _| String::new(), &[], false);
    let mut table = txn.open_table(EVENTS.definition).unwrap();
    let rows = table.range::<EventKey>(..).unwrap().map(|row| {
        let (key, row) = row.unwrap();
        (key.value(), EVENTS.unseal(&key.value(), row.value()).unwrap())
    });
    for (key, row) in rows.collect::<Vec<_>>() {
        let EventRow { id, competition, competition_key: _, commence, contest, status, changed, owner: _ } = row;
        let row = EventWithoutOwner { id, competition, commence, contest, status, changed };
        table.insert(key, &*first.seal(&key, &row).unwrap()).unwrap();
    }
}

/// The row of an event as format 3 had it.
#[derive(bincode::Encode, bincode::Decode)]
struct EventWithoutKey {
    id: String,
    competition: u32,
    commence: u32,
    contest: ContestRow,
    status: u8,
    changed: u32,
    owner: OwnerRow,
}

impl BincodeRow for EventWithoutKey {
    const VERSION: u8 = 2;
}

/// Makes the file what format 4 was: without a log.
fn make_fourth_format(db: &redb::Database) {
    let txn = db.begin_write().unwrap();
    txn.delete_table(LOG.definition).unwrap();
    txn.delete_table(KEYFRAMES.definition).unwrap();
    txn.delete_table(TICKS.definition).unwrap();
    for world in World::ALL {
        txn.open_table(META.definition).unwrap().remove(&*meta_log_key(world_number(world))).unwrap();
    }
    txn.open_table(FORMATS).unwrap().insert(FORMAT_KEY, 4).unwrap();
    txn.commit().unwrap();
}

#[test]
fn file_without_a_log_gets_an_empty_one() {
    let memory = Memory::new(Vec::new());
    fill(&mut memory.open());
    make_fourth_format(&memory.raw());
    let mut store = memory.open();
    let loaded = store.load().unwrap();
    assert!(loaded.log_heads.iter().all(|head| head.next == 1 && head.epoch != 0), "{:?}", loaded.log_heads);
    assert!(store.check().unwrap().is_clean());
    assert_eq!(store.load().unwrap().log_heads, loaded.log_heads, "the epoch is stored");
    store.commit(&[log_tick(World::Live)]).unwrap();
    assert_eq!(store.log_head(World::Live).unwrap().next, 2);
}

/// Makes the file what format 3 was: eleven markets by position, and nothing that says what a world has had.
fn make_third_format(db: &redb::Database) {
    make_fourth_format(db);
    let txn = db.begin_write().unwrap();
    let markets = market_positions(&txn);
    let odds: Vec<_> = rows_of(&txn, &ODDS);
    txn.delete_table(ODDS.definition).unwrap();
    txn.delete_table(COVERAGE.definition).unwrap();
    let before = Table::<OddsKeyBefore, OddsRow>::new("odds", |_, _| String::new(), &[], false);
    for ((world, sport, event, book, market), row) in odds {
        let key = (world, sport, event, book, markets[&market]);
        if !row.outcomes.is_empty() {
            let coverage = (world, sport, book, event, markets[&market]);
            txn.open_table(COVERAGE_BEFORE).unwrap().insert(coverage, ()).unwrap();
        }
        txn.open_table(ODDS_BEFORE).unwrap().insert(key, &*before.seal(&key, &row).unwrap()).unwrap();
    }
    forget_competition_keys(&txn);
    forget_names_of_polled_markets(&txn, &markets);
    txn.delete_table(COMPETITIONS.definition).unwrap();
    txn.delete_table(MARKETS.definition).unwrap();
    txn.open_table(FORMATS).unwrap().insert(FORMAT_KEY, 3).unwrap();
    txn.commit().unwrap();
}

/// Deletes the names of markets, and returns the position of each by the number of its name.
fn market_positions(txn: &redb::WriteTransaction) -> BTreeMap<u32, u8> {
    let mut names = txn.open_table(NAMES.definition).unwrap();
    let mut positions = BTreeMap::new();
    names
        .retain(|number, row| {
            let name = NAMES.unseal(&number, row).unwrap().0;
            let position = Market::FEATURED.iter().position(|market| market.key() == name);
            positions.extend(position.map(|position| (number, u8::try_from(position).unwrap())));
            position.is_none()
        })
        .unwrap();
    positions
}

fn forget_competition_keys(txn: &redb::WriteTransaction) {
    let before = Table::<EventKey, EventWithoutKey>::new(EVENTS.name, |_, _| String::new(), &[], false);
    for (key, row) in rows_of(txn, &EVENTS) {
        let EventRow { id, competition, competition_key: _, commence, contest, status, changed, owner } = row;
        let row = EventWithoutKey { id, competition, commence, contest, status, changed, owner };
        txn.open_table(EVENTS.definition).unwrap().insert(key, &*before.seal(&key, &row).unwrap()).unwrap();
    }
}

fn forget_names_of_polled_markets(txn: &redb::WriteTransaction, markets: &BTreeMap<u32, u8>) {
    let before = Table::<PollKey, PollRowBefore>::new(POLLS.name, |_, _| String::new(), &[], false);
    for (key, row) in rows_of(txn, &POLLS) {
        let row = match row {
            PollRow::Scope { sport, stale_after_s, books } => PollRowBefore::Scope { sport, stale_after_s, books },
            PollRow::Event { records } => PollRowBefore::Event {
                records: records.into_iter().map(|(book, market)| (book, markets[&market])).collect(),
            },
        };
        let key = PollKey::borrowed(&key);
        txn.open_table(POLLS.definition).unwrap().insert(key, &*before.seal(&key, &row).unwrap()).unwrap();
    }
}

/// Every row of a table.
fn rows_of<K: TableKey, R: Row>(txn: &redb::WriteTransaction, table: &Table<K, R>) -> Vec<(K::Owned, R)> {
    let rows = txn.open_table(table.definition).unwrap();
    let rows = rows.iter().unwrap().map(|row| {
        let (key, row) = row.unwrap();
        (K::owned(&key.value()), table.unseal(&key.value(), row.value()).unwrap())
    });
    rows.collect()
}

/// Makes the file what format 2 was: without the budgets of polled feeds and the owners of events.
fn make_second_format(db: &redb::Database) {
    make_third_format(db);
    let txn = db.begin_write().unwrap();
    forget_owners(&txn);
    txn.delete_table(BUDGETS.definition).unwrap();
    txn.open_table(FORMATS).unwrap().insert(FORMAT_KEY, 2).unwrap();
    txn.commit().unwrap();
}

/// Makes the file what format 1 was: without the catalogue's text and the order of keys as well.
fn make_first_format(db: &redb::Database) {
    make_second_format(db);
    let txn = db.begin_write().unwrap();
    txn.delete_table(CATALOGUE.definition).unwrap();
    txn.delete_table(KEY_ORDER.definition).unwrap();
    txn.open_table(FORMATS).unwrap().insert(FORMAT_KEY, 1).unwrap();
    txn.commit().unwrap();
}

fn format_of(db: &redb::Database) -> u32 {
    let table = db.begin_read().unwrap().open_table(FORMATS).unwrap();
    table.get(FORMAT_KEY).unwrap().unwrap().value()
}

/// A file of format 1, and what it holds. Its keys were issued in the order of their seconds.
fn first_format(path: &Path) -> String {
    let mut store = Store::open(path, catalogue(), OPTIONS).unwrap();
    fill(&mut store);
    let mut loaded = store.load().unwrap();
    loaded.keys.reverse();
    drop(store);
    make_first_format(&redb::Database::open(path).unwrap());
    content(&loaded)
}

#[test]
fn every_format_has_a_step_to_the_next() {
    let from: Vec<u32> = UPGRADES.iter().map(|(from, _)| *from).collect();
    assert_eq!(from, (1..FORMAT).collect::<Vec<_>>());
}

#[test]
fn older_file_is_copied_and_then_upgraded_without_loss() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("oddsbox.redb");
    let stored = first_format(&path);
    let before = fs::read(&path).unwrap();

    let mut store = Store::open(&path, catalogue(), OPTIONS).unwrap();
    assert_eq!(content(&store.load().unwrap()), stored);
    assert!(store.check().unwrap().is_clean());
    store.store_catalogue("text").unwrap();
    drop(store);
    let copy = dir.path().join("oddsbox.redb.v1-backup");
    assert_eq!(fs::read(&copy).unwrap(), before, "byte for byte what it was");
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);

    fs::copy(&copy, &path).unwrap();
    drop(Store::open(&path, catalogue(), OPTIONS).unwrap());
    assert!(dir.path().join("oddsbox.redb.v1-backup-2").exists(), "the first copy is not replaced");
    drop(Store::open(&path, catalogue(), OPTIONS).unwrap());
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 3, "nothing is left to upgrade");
}

#[test]
fn live_world_of_a_0_1_demo_is_marked_as_simulated() {
    let issued = |who: &str, kind: &str| {
        let memory = Memory::new(Vec::new());
        let note = AuditNote {
            who: who.into(),
            action: "issue".into(),
            detail: format!("{kind} key \"demo\", 600 a minute").into(),
            ..note("issue")
        };
        memory.open().commit(&[Change::Audit(note)]).unwrap();
        make_second_format(&memory.raw());
        let mut store = memory.open();
        let is_marked = store.load().unwrap().simulated_live;
        assert!(store.check().unwrap().is_clean());
        drop(store);
        assert_eq!(format_of(&memory.raw()), FORMAT);
        is_marked
    };
    assert!(issued("oddsbox demo", "production"));
    assert!(!issued("oddsbox demo", "sandbox"));
    assert!(!issued("ada", "production"));
}

#[test]
fn event_of_an_older_file_belongs_to_nobody_until_it_is_put_with_an_owner() {
    let memory = Memory::new(Vec::new());
    let owner = EventOwner::Feeder("token/a".into());
    let put = Change::PutEvent { world: World::Live, sport: sport_id(0), event: event("a", 1), owner: owner.clone() };
    memory.open().commit(std::slice::from_ref(&put)).unwrap();
    let owner_of = |store: &mut Store| store.load().unwrap().world(World::Live).sports[0].events[0].owner.clone();
    assert_eq!(owner_of(&mut memory.open()), owner);
    make_second_format(&memory.raw());
    assert_eq!(owner_of(&mut memory.open()), EventOwner::Unknown);
    memory.open().commit(&[put]).unwrap();
    assert_eq!(owner_of(&mut memory.open()), owner);
    assert!(memory.open().check().unwrap().is_clean());
}

#[test]
fn crash_during_an_upgrade_leaves_the_old_file_or_the_new_one() {
    let old = Memory::new(Vec::new());
    fill(&mut old.open());
    let stored = {
        let mut loaded = old.open().load().unwrap();
        loaded.keys.reverse();
        content(&loaded)
    };
    make_first_format(&old.raw());
    let (mut writes, mut formats) = (0, std::collections::BTreeSet::new());
    loop {
        assert!(writes < WRITES_MAX);
        let attempt = Memory::new(old.bytes());
        attempt.fail_after(writes);
        let is_done = attempt.open_with(&catalogue()).is_ok();
        attempt.fail_after(u64::MAX);
        for lose_unsynced in [false, true] {
            let left = Memory::new(attempt.bytes());
            if lose_unsynced {
                attempt.lose_unsynced();
                *left.0.now.lock().unwrap() = attempt.bytes();
            }
            formats.insert(format_of(&Memory::new(left.bytes()).raw()));
            let mut store = left.open();
            assert_eq!(content(&store.load().unwrap()), stored, "after {writes} writes");
            assert!(store.check().unwrap().is_clean(), "after {writes} writes");
        }
        if is_done {
            break;
        }
        writes += 1;
    }
    assert!(writes > 5);
    assert_eq!(formats.into_iter().collect::<Vec<_>>(), [1, FORMAT]);
}

#[test]
fn unknown_format_is_refused_and_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("oddsbox.redb");
    drop(Store::open(&path, catalogue(), OPTIONS).unwrap());
    for (format, is_newer) in [(0, false), (FORMAT + 1, true)] {
        let db = redb::Database::open(&path).unwrap();
        let txn = db.begin_write().unwrap();
        txn.open_table(FORMATS).unwrap().insert(FORMAT_KEY, format).unwrap();
        txn.commit().unwrap();
        drop(db);
        let before = fs::read(&path).unwrap();
        let error = Store::open(&path, catalogue(), OPTIONS).unwrap_err();
        assert_eq!(matches!(error, OpenError::NewerFormat { .. }), is_newer, "{error}");
        assert_eq!(fs::read(&path).unwrap(), before);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1, "no copy is made of what is not upgraded");
    }
}

#[derive(Debug, PartialEq, bincode::Encode, bincode::Decode)]
struct Before {
    one: u32,
}

#[derive(Debug, PartialEq, bincode::Encode, bincode::Decode)]
struct After {
    one: u32,
    two: Option<u32>,
}

impl BincodeRow for Before {}

impl BincodeRow for After {
    const VERSION: u8 = 2;

    fn from_earlier(version: u8, row: &[u8]) -> Result<Self, Flaw> {
        match version {
            1 => codec::decode(row).map(|Before { one }| After { one, two: None }),
            other => Err(Flaw::Version(other)),
        }
    }
}

#[test]
fn earlier_version_of_a_row_is_read() {
    let before = Table::<u16, Before>::new("rows", |key, _| key.to_string(), &[], false);
    let after = Table::<u16, After>::new("rows", |key, _| key.to_string(), &[], false);
    let old = before.seal(&7, &Before { one: 1 }).unwrap();
    assert_eq!(after.unseal(&7, &old), Ok(After { one: 1, two: None }));
    let new = after.seal(&7, &After { one: 1, two: Some(2) }).unwrap();
    assert_eq!(after.unseal(&7, &new), Ok(After { one: 1, two: Some(2) }));
    assert_eq!(before.unseal(&7, &new), Err(Flaw::Version(2)), "an older program does not guess");
}

#[test]
fn catalogue_text_of_any_length_is_stored() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("oddsbox.redb");
    assert_eq!(Store::stored_catalogue(&path, OPTIONS).unwrap(), None);
    assert!(!path.exists());
    let long = "é".repeat(100_000);
    for text in ["short", long.as_str(), "shorter"] {
        let mut store = Store::open(&path, catalogue(), OPTIONS).unwrap();
        store.store_catalogue(text).unwrap();
        assert!(store.check().unwrap().is_clean());
        drop(store);
        assert_eq!(Store::stored_catalogue(&path, OPTIONS).unwrap().as_deref(), Some(text));
    }
}
