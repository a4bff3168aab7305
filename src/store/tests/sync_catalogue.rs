//! What happens to a file when it is opened with another catalogue than before.

use super::*;
use crate::store::BookOrigin;

fn books(loaded: &Loaded, world: World) -> Vec<(u16, String)> {
    loaded.world(world).bookmakers.iter().map(|(id, book)| (id.number(), book.key.to_string())).collect()
}

fn names(expected: &[(u16, &str)]) -> Vec<(u16, String)> {
    expected.iter().map(|(number, key)| (*number, (*key).to_owned())).collect()
}

#[test]
fn every_bookmaker_of_the_catalogue_has_a_number_in_both_worlds() {
    let memory = Memory::new(Vec::new());
    let loaded = memory.open().load().unwrap();
    for world in World::ALL {
        assert_eq!(books(&loaded, world), names(&[(1, "betmgm"), (2, "coral"), (0, "unibet")]));
    }
}

#[test]
fn bookmaker_that_left_the_catalogue_is_removed_without_prices_and_keeps_its_number() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    store.commit(&[put_event(World::Live, "a", 1), put_odds(World::Live, "a", 2, Market::MONEYLINE)]).unwrap();
    drop(store);

    let smaller = catalogue_of(&["mma", "tennis"], &["unibet"]);
    let mut store = memory.open_with(&smaller).unwrap();
    let loaded = store.load().unwrap();
    assert_eq!(books(&loaded, World::Live), names(&[(2, "coral"), (0, "unibet")]), "coral holds a price");
    assert_eq!(books(&loaded, World::Sandbox), names(&[(0, "unibet")]));
    assert_eq!(loaded.world(World::Sandbox).bookmakers.next_id(), Some(BookId::from_number(3)));
    drop(store);

    let grown = catalogue_of(&["mma", "tennis"], &["bet365", "betmgm", "unibet"]);
    let mut store = memory.open_with(&grown).unwrap();
    let loaded = store.load().unwrap();
    assert_eq!(books(&loaded, World::Sandbox), names(&[(3, "bet365"), (1, "betmgm"), (0, "unibet")]));
    assert!(store.check().unwrap().is_clean());
}

#[test]
fn declared_bookmaker_stays() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    let (world, id) = (World::Live, BookId::from_number(3));
    let bookmaker = Arc::new(book("newcomer"));
    store.commit(&[Change::PutBookmaker { world, id, bookmaker, origin: BookOrigin::Declared }]).unwrap();
    drop(store);
    let loaded = memory.open().load().unwrap();
    assert_eq!(loaded.world(world).bookmakers.find("newcomer"), Some(id));
}

#[test]
fn declaration_of_a_catalogue_bookmaker_stays() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    let (world, id) = (World::Live, BookId::from_number(0));
    let declared = Arc::new(Bookmaker { title: "As the feed says".into(), ..book("unibet") });
    store
        .commit(&[Change::PutBookmaker { world, id, bookmaker: Arc::clone(&declared), origin: BookOrigin::Declared }])
        .unwrap();
    drop(store);
    let loaded = memory.open().load().unwrap();
    assert_eq!(loaded.world(world).bookmakers.get(id), Some(&declared));
    assert_ne!(loaded.world(World::Sandbox).bookmakers.get(id), Some(&declared));
}

#[test]
fn title_of_a_payload_stays_and_regions_follow_the_catalogue() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    let (world, id) = (World::Live, BookId::from_number(0));
    let elsewhere = Regions::only(crate::model::Region::Au);
    assert_ne!(elsewhere, book("unibet").regions);
    let titled = Arc::new(Bookmaker { title: "Of a payload".into(), regions: elsewhere, ..book("unibet") });
    store.commit(&[Change::PutBookmaker { world, id, bookmaker: titled, origin: BookOrigin::Titled }]).unwrap();
    drop(store);
    let expected = Bookmaker { title: "Of a payload".into(), ..book("unibet") };
    for _ in 0..2 {
        let loaded = memory.open().load().unwrap();
        assert_eq!(loaded.world(world).bookmakers.get(id).map(|book| &**book), Some(&expected));
    }
    // Without a price it goes with the catalogue's line, like every other.
    let loaded = memory.open_with(&catalogue_of(&["mma", "tennis"], &["betmgm"])).unwrap().load().unwrap();
    assert_eq!(loaded.world(world).bookmakers.find("unibet"), None);
}

#[test]
fn file_without_a_feeders_table_gets_one() {
    let memory = Memory::new(Vec::new());
    drop(memory.open());
    let db = memory.raw();
    let txn = db.begin_write().unwrap();
    txn.delete_table(crate::store::tables::FEEDERS.definition).unwrap();
    txn.commit().unwrap();
    drop(db);
    let mut store = memory.open();
    store.commit(&[Change::PutFeeder(Arc::new(feeder()))]).unwrap();
    assert_eq!(store.load().unwrap().feeders, [feeder()]);
}

#[test]
fn removing_a_bookmaker_removes_its_prices() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    store.commit(&[put_event(World::Live, "a", 1), put_odds(World::Live, "a", 2, Market::MONEYLINE)]).unwrap();
    let remove = Change::RemoveBookmaker { world: World::Live, id: BookId::from_number(2) };
    store.commit(&[put_odds(World::Live, "a", 2, Market::SPREAD), remove]).unwrap();
    let loaded = store.load().unwrap();
    assert!(loaded.damage.is_empty());
    assert!(loaded.world(World::Live).sports[0].events[0].records.is_empty());
    assert!(store.check().unwrap().is_clean());
    let refused = store.commit(&[put_odds(World::Live, "a", 2, Market::SPREAD)]).unwrap_err();
    assert!(!refused.needs_reopen());
}

#[test]
fn titles_and_regions_follow_the_catalogue() {
    let memory = Memory::new(Vec::new());
    drop(memory.open());
    let mut renamed = book("unibet");
    renamed.title = "Unibet UK".into();
    let sports = vec![sport("mma", SportKind::Fight)];
    let catalogue = Arc::new(Catalogue::new(sports, vec![renamed.clone()]).unwrap());
    let loaded = memory.open_with(&catalogue).unwrap().load().unwrap();
    for world in World::ALL {
        assert_eq!(**loaded.world(world).bookmakers.get(BookId::from_number(0)).unwrap(), renamed);
    }
}

#[test]
fn sports_keep_their_data_when_the_catalogue_is_reordered_or_omits_them() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    store.commit(&[put_event(World::Live, "a", 1), put_odds(World::Live, "a", 0, Market::MONEYLINE)]).unwrap();
    drop(store);

    let without = catalogue_of(&["tennis"], &BOOKS);
    let mut store = memory.open_with(&without).unwrap();
    let loaded = store.load().unwrap();
    assert!(loaded.damage.is_empty());
    assert_eq!(loaded.unserved, [super::super::UnservedSport { key: "mma".into(), events: 1, records: 1 }]);
    assert_eq!(store.sweep_names().unwrap(), 0, "its names are still used");
    assert!(store.check().unwrap().is_clean());
    drop(store);

    let reordered = catalogue_of(&["tennis", "golf", "mma"], &BOOKS);
    let loaded = memory.open_with(&reordered).unwrap().load().unwrap();
    assert!(loaded.unserved.is_empty());
    let event = &loaded.world(World::Live).sports[2].events[0];
    assert_eq!(event.records, [record("mma", "a", 0, Market::MONEYLINE, 5)]);
}

fn declare(world: World, numbers: std::ops::Range<u16>) -> Vec<Change> {
    let declared = |number: u16| {
        let (id, bookmaker) = (BookId::from_number(number), Arc::new(book(&format!("declared{number}"))));
        Change::PutBookmaker { world, id, bookmaker, origin: BookOrigin::Declared }
    };
    numbers.map(declared).collect()
}

/// A price of a bookmaker that was declared.
fn price_of(number: u16) -> Change {
    let mut priced = crate::model::Record::clone(&record("mma", "a", 0, Market::MONEYLINE, 5));
    priced.bookmaker = BookId::from_number(number);
    if number >= 3 {
        priced.id = RecordId::new("mma", &event_id("a"), &format!("declared{number}"), Market::MONEYLINE);
    }
    Change::PutOdds { world: World::Live, sport: sport_id(0), event: event_id("a"), record: Arc::new(priced) }
}

#[test]
fn declared_bookmakers_that_nothing_names_give_way_when_numbers_run_out() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    store.commit(&declare(World::Live, 3..4096)).unwrap();
    store.commit(&[put_event(World::Live, "a", 1), price_of(40)]).unwrap();
    drop(store);

    let grown = catalogue_of(&["mma", "tennis"], &["bet365", "betmgm", "coral", "unibet"]);
    let mut store = memory.open_with(&grown).unwrap();
    let loaded = store.load().unwrap();
    let live = &loaded.world(World::Live).bookmakers;
    assert_eq!((live.len(), live.find("declared40")), (5, Some(BookId::from_number(40))), "it holds a price");
    assert_eq!((live.find("bet365"), live.find("declared4")), (Some(BookId::from_number(41)), None));
    assert!(live.next_id().is_some(), "feeders can declare others again");
    assert!(store.check().unwrap().is_clean());
}

#[test]
fn file_opens_when_every_number_is_in_use() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    store.commit(&declare(World::Live, 3..4096)).unwrap();
    store.commit(&[put_event(World::Live, "a", 1)]).unwrap();
    let odds: Vec<_> = (0..4096).map(price_of).collect();
    store.commit(&odds).unwrap();
    drop(store);

    let grown = catalogue_of(&["mma", "tennis"], &["bet365", "betmgm", "coral", "unibet"]);
    let mut store = memory.open_with(&grown).unwrap();
    let loaded = store.load().unwrap();
    let live = &loaded.world(World::Live).bookmakers;
    assert_eq!((live.len(), live.find("bet365")), (4096, None));
    assert!(loaded.world(World::Sandbox).bookmakers.find("bet365").is_some());
}

#[test]
fn declared_bookmakers_stay_while_numbers_are_free() {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    store.commit(&declare(World::Live, 3..2000)).unwrap();
    drop(store);
    assert_eq!(memory.open().load().unwrap().world(World::Live).bookmakers.len(), 2000);
}
