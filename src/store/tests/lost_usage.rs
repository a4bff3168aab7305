//! The failure that this prevents: a page is damaged, rows of counters are lost or cannot be read, and their keys begin with
//! a fresh quota. A key whose usage is unknown counts as exhausted.

use super::*;
use crate::keys::Usage;
use crate::store::Integrity;

const KEYS: u64 = 8;

/// What the key with a number has used.
fn used(number: u64) -> Usage {
    Usage { day: 20_700, day_used: 100 + number, month: 680, month_used: 1_000 + number }
}

fn name(number: u64) -> String {
    format!("k{number}")
}

/// A closed file of keys that have all used something, and as much of everything else as any file has.
fn closed_file() -> Vec<u8> {
    let memory = super::damage::filled();
    let mut store = memory.open();
    for number in 0..KEYS {
        let key = key(&name(number));
        let usage = Change::PutUsage { key: key.id.clone(), usage: used(number), last_used: Some(at(3)) };
        store.commit(&[Change::PutKey(key), usage]).unwrap();
    }
    drop(store);
    memory.bytes()
}

/// Loads a damaged file and returns how many of its keys count as exhausted. No key has a lower usage than before.
fn spent(bytes: Vec<u8>, what: &str) -> Option<usize> {
    let loaded = Memory::new(bytes).inspect().ok()?.load().ok()?;
    for number in 0..KEYS {
        let id = key(&name(number)).id.clone();
        let Some((_, usage)) = loaded.keys.iter().find(|(key, _)| key.id == id) else { continue };
        let is_known = *usage == used(number) || loaded.damaged_usage.contains(&id);
        assert!(is_known, "{what}: {id} has used {usage:?}, and it is not reported as lost");
    }
    Some(loaded.damaged_usage.len())
}

/// Where a page begins: what it is, and how many rows it holds.
fn beginnings(bytes: &[u8]) -> impl Iterator<Item = usize> + '_ {
    written_pages(bytes).flat_map(|page| page..page + 8)
}

#[test]
fn no_ruined_page_resets_the_usage_of_a_key() {
    let whole = closed_file();
    assert_eq!(spent(whole.clone(), "the whole file"), Some(0));
    let (mut refused, mut some_spent) = (0, 0);
    let others = written_pages(&whole).flat_map(|page| page..page + PAGE_BYTES).step_by(401);
    for at in beginnings(&whole).chain(others) {
        for change in [0xff, 1] {
            let mut bytes = whole.clone();
            bytes[at] ^= change;
            match spent(bytes, &format!("byte {at} changed by {change:#x}")) {
                None => refused += 1,
                Some(lost) => some_spent += usize::from(lost > 0),
            }
        }
    }
    assert!(some_spent > 0, "too little was hit: {refused} refused, {some_spent} with counters lost");
}

#[test]
fn check_of_a_ruined_file_ends_with_a_report() {
    let whole = closed_file();
    let mut broken = 0;
    for at in beginnings(&whole) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0xff;
        let Ok(mut store) = Memory::new(bytes).inspect() else { continue };
        let report = store.check().unwrap();
        broken += usize::from(matches!(report.integrity, Integrity::Broken(_)));
        // Closing it must not end the process.
        drop(store);
    }
    assert!(broken > 0);
}
