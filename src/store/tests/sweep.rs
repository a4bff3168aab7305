//! Names that nothing uses do not stay in the file.

use super::*;

fn name_count(store: &mut Store) -> u64 {
    store.check().unwrap().rows.iter().find(|(table, _)| *table == "names").unwrap().1
}

fn filled() -> (Memory, Store) {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    store
        .commit(&[
            put_event(World::Live, "a", 1),
            put_event(World::Live, "b", 1),
            put_odds(World::Live, "b", 0, Market::MONEYLINE),
        ])
        .unwrap();
    assert_eq!(name_count(&mut store), 7);
    (memory, store)
}

fn remove(id: &str) -> Change {
    Change::RemoveEvent { world: World::Live, sport: sport_id(0), event: event_id(id) }
}

#[test]
fn running_store_deletes_unused_names() {
    let (_memory, mut store) = filled();
    assert_eq!(store.sweep_names().unwrap(), 0);
    store.commit(&[remove("a")]).unwrap();
    assert_eq!(store.sweep_names().unwrap(), 2);
    assert_eq!(name_count(&mut store), 5);
    assert_eq!(store.sweep_names().unwrap(), 0);

    // A swept name can come back, under a new number.
    store.commit(&[put_event(World::Live, "a", 1)]).unwrap();
    let report = store.check().unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn names_shared_in_memory_are_not_searched_in_the_file() {
    let (_memory, mut store) = filled();
    let loaded = store.load().unwrap();
    store.commit(&[remove("a")]).unwrap();
    assert_eq!(store.sweep_names().unwrap(), 0);
    drop(loaded);
    assert_eq!(store.sweep_names().unwrap(), 2);
}

#[test]
fn loading_deletes_unused_names_and_their_numbers_are_not_reused() {
    let (memory, mut store) = filled();
    store.commit(&[remove("a"), remove("b")]).unwrap();
    drop(store);
    let mut store = memory.open();
    store.load().unwrap();
    assert_eq!(name_count(&mut store), 0);
    drop(store);

    let mut store = memory.open();
    store.commit(&[put_event(World::Live, "c", 1)]).unwrap();
    let maps = store.id_maps.as_ref().unwrap();
    assert!(maps.names.values().all(|number| *number >= 5), "{:?}", maps.names);
    assert_eq!(maps.next.event, 3);
}
