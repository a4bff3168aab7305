//! A commit that fails leaves the state before it or the state after it, never anything between, and the process can
//! go on once the file is reopened. This is what keeps a full disk from costing more than the batch.

use super::*;
use crate::store::StoreError;

fn base() -> Memory {
    let memory = Memory::new(Vec::new());
    let mut store = memory.open();
    store
        .commit(&[
            put_event(World::Live, "a", 1),
            put_event(World::Live, "b", 2),
            put_odds(World::Live, "a", 0, Market::MONEYLINE),
            put_odds(World::Live, "b", 1, Market::SPREAD),
        ])
        .unwrap();
    drop(store);
    memory
}

/// New names and events, a removal, a moved event, a changed price: every table and index is touched.
fn batch() -> Vec<Change> {
    vec![
        put_event(World::Live, "c", 3),
        put_odds(World::Live, "c", 0, Market::MONEYLINE),
        put_odds(World::Live, "c", 1, Market::MONEYLINE),
        put_event(World::Live, "b", 9),
        Change::RemoveEvent { world: World::Live, sport: sport_id(0), event: event_id("a") },
        Change::PutKey(key("k")),
    ]
}

fn state(store: &mut Store) -> String {
    let loaded = store.load().unwrap();
    assert!(loaded.damage.is_empty(), "{:?}", loaded.damage);
    picture(&loaded)
}

#[test]
fn commit_is_all_or_nothing_wherever_it_fails() {
    let base = base();
    let before = state(&mut base.open());
    let base = Memory::new(base.bytes());
    let after = {
        let memory = Memory::new(base.bytes());
        let mut store = memory.open();
        store.commit(&batch()).unwrap();
        state(&mut store)
    };
    assert_ne!(before, after);
    let (mut failures, mut kept) = (0, 0);
    for writes in 0.. {
        let mut done = false;
        for lose_unsynced in [false, true] {
            let memory = Memory::new(base.bytes());
            let mut store = memory.open();
            memory.fail_after(writes);
            let result = store.commit(&batch());
            memory.fail_after(u64::MAX);
            let Err(error) = result else {
                done = true;
                break;
            };
            failures += 1;
            assert!(matches!(error, StoreError::DiskFull), "{error}");
            assert!(matches!(store.commit(&batch()).unwrap_err(), StoreError::NeedsReopen));
            if lose_unsynced {
                memory.lose_unsynced();
            }
            store.reopen().unwrap();
            let found = state(&mut store);
            assert!(found == before || found == after, "a mixture after {writes} writes");
            kept += u32::from(found == after);
            // The same batch goes through now, whether or not it had reached the disk.
            store.commit(&batch()).unwrap();
            assert_eq!(state(&mut store), after, "after {writes} writes");
            assert!(store.check().unwrap().is_clean());
        }
        if done {
            break;
        }
    }
    assert!(failures > 10, "{failures} failures, {kept} of them kept");
}

#[test]
fn names_and_events_of_a_failed_commit_do_not_count_as_stored() {
    let memory = base();
    let mut store = memory.open();
    store.load().unwrap();
    memory.fail_after(0);
    store.commit(&batch()).unwrap_err();
    memory.fail_after(u64::MAX);
    memory.lose_unsynced();
    store.reopen().unwrap();
    // Event c was in the failed batch only.
    let stray = store.commit(&[put_odds(World::Live, "c", 0, Market::MONEYLINE)]).unwrap_err();
    assert!(matches!(stray, StoreError::Refused(_)), "{stray}");
    store.commit(&batch()).unwrap();
    let report = store.check().unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[test]
fn store_survives_a_full_disk_at_reopening() {
    let memory = base();
    let mut store = memory.open();
    memory.fail_after(3);
    store.commit(&batch()).unwrap_err();
    for writes in 0..3 {
        memory.fail_after(writes);
        let reopened = store.reopen();
        if reopened.is_err() {
            assert!(!store.is_writable());
            assert!(store.commit(&batch()).unwrap_err().needs_reopen());
        }
    }
    memory.fail_after(u64::MAX);
    store.reopen().unwrap();
    store.commit(&batch()).unwrap();
    assert!(store.check().unwrap().is_clean());
}

#[test]
fn refused_batch_needs_no_reopening() {
    let memory = base();
    let mut store = memory.open();
    store.commit(&[put_odds(World::Live, "nowhere", 0, Market::MONEYLINE)]).unwrap_err();
    assert!(store.is_writable());
    store.commit(&batch()).unwrap();
}
