//! The failure that this prevents: a bit of the file flips, and a wrong price is served, or the process falls over.
//!
//! One bit at a time is flipped in a closed file, or its end is cut off. Whatever is then served is what was there
//! before, or less of it; what is missing, or older than the last commit, is told by the opening or by the check. That
//! nothing comes to stand under another name is tested where the rows are read, in the store.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use oddsbox::clock::Clock;
use oddsbox::keys::KeyRecord;
use oddsbox::model::World;
use oddsbox::store::{Integrity, Loaded, OpenError, Store};

use super::disk::Disk;
use super::life::{Keys, Life, NOON_MS};
use crate::process::seed::{Random, short_or_long};

/// Everything that can be served, piece by piece.
fn pieces(loaded: &Loaded) -> BTreeSet<String> {
    let mut pieces = BTreeSet::new();
    for world in World::ALL {
        let held = loaded.world(world);
        // One of the catalogue whose row is lost gets another number.
        pieces.extend(held.bookmakers.iter().map(|(_, book)| format!("{world} {book:?}")));
        for (number, sport) in held.sports.iter().enumerate() {
            for event in &sport.events {
                let id = &event.event.id;
                pieces.insert(format!("{world} {number} {:?}", event.event));
                pieces.extend(event.score.iter().map(|score| format!("{world} {number} {id} {score:?}")));
                pieces.extend(event.records.iter().map(|record| format!("{world} {number} {id} {record:?}")));
                pieces.extend(event.closed.iter().map(|closed| format!("{world} {number} {id} {closed:?}")));
            }
            pieces.extend(sport.sources.iter().map(|source| format!("{world} {number} {source:?}")));
        }
    }
    for (key, _) in &loaded.keys {
        // When it was last used stands in another table, whose rows may be lost without it.
        let key = KeyRecord { last_used: None, ..key.clone() };
        pieces.insert(format!("{key:?} {:?}", key.hash.0));
    }
    pieces.extend(loaded.maintenance.map(|maintenance| format!("{maintenance:?}")));
    pieces
}

/// A closed file with some of everything.
fn closed_file(random: &mut Random) -> Vec<u8> {
    let mut life = Life::begin(Disk::new(Vec::new()), Clock::manual(NOON_MS), Keys::new());
    for _ in 0..60 {
        life.act(random);
    }
    let disk = life.disk.clone();
    drop(life);
    disk.bytes()
}

#[derive(Debug, Default)]
struct Count {
    refused: u64,
    told_by_loading: u64,
    told_by_check: u64,
    harmless: u64,
}

/// Opens a spoilt file; what became of it must be told if it matters. Whether anybody noticed.
fn suffer(bytes: Vec<u8>, whole: &BTreeSet<String>, what: &str, count: &mut Count) -> bool {
    let disk = Disk::new(bytes);
    let mut store: Store = match disk.open() {
        Ok(store) => store,
        Err(error) => {
            assert_told(&error, what);
            count.refused += 1;
            return true;
        }
    };
    let Ok(loaded) = store.load() else {
        count.refused += 1;
        return true;
    };
    let found = pieces(&loaded);
    // A pointer that rots may lead to what a page held before, whose rows are sound: only redb's own checksums tell, and
    // only the check reads those.
    let other: Vec<_> = found.difference(whole).collect();
    let is_less = found.len() < whole.len();
    // Damage that only redb can see is told by the check.
    let report = store.check().unwrap_or_else(|error| panic!("{what}: the check itself failed: {error}"));
    let is_named = report.problems.listed().iter().all(|damage| !damage.key.is_empty() && !damage.reason.is_empty());
    assert!(is_named, "{what}: {report:?}");
    assert!(!is_less || !report.is_clean(), "{what}: the check does not say what is missing");
    assert!(other.is_empty() || !report.is_clean(), "{what}: {other:?} was not stored, and the check is silent");
    for damage in loaded.damage.listed() {
        // A key that is spoilt stands out of order, and a search for its neighbours may miss them: what hangs on those is
        // lost to loading, while the check, which reads row by row, names the one that is at fault.
        let names = |table: &str| report.problems.listed().iter().any(|found| found.table == table);
        let is_told = names(damage.table) || (damage.reason.contains("missing") && !report.problems.is_empty());
        let is_broken = matches!(report.integrity, Integrity::Broken(_));
        assert!(is_told || is_broken, "{what}: loading found {damage}, and the check only {report:?}");
    }
    if !loaded.damage.is_empty() {
        count.told_by_loading += 1;
    } else if !report.is_clean() {
        count.told_by_check += 1;
    } else {
        count.harmless += 1;
        return false;
    }
    true
}

/// One line that says what to do.
fn assert_told(error: &OpenError, what: &str) {
    let line = error.to_string();
    let says_what_to_do = ["restore a backup", "move that file away", "use a newer oddsbox"];
    assert!(!line.contains('\n') && says_what_to_do.iter().any(|advice| line.contains(advice)), "{what}: {line}");
}

fn index(random: &mut Random, len: usize) -> usize {
    usize::try_from(random.below(len as u64)).expect("a small file")
}

#[test]
fn a_rotten_file_never_serves_what_was_not_stored() {
    let mut random = Random::new();
    let whole_bytes = closed_file(&mut random);
    let whole = pieces(&Disk::new(whole_bytes.clone()).open().expect("a sound file").load().expect("a sound file"));
    // Most of a file is room for more: only what is written can rot to anyone's harm.
    let used: Vec<usize> = (0..whole_bytes.len()).filter(|at| whole_bytes[*at] != 0).collect();
    let flips: u64 = short_or_long(500, 10_000);
    let mut count = Count::default();
    let mut tender = used.clone();
    for flip in 0..flips {
        let mut bytes = whole_bytes.clone();
        let (what, at) = if flip % 20 == 19 {
            let len = index(&mut random, bytes.len());
            bytes.truncate(len);
            (format!("cut at {len}"), None)
        } else {
            // Pages that nothing leads to any more are harmless: half of the flips go where one has hurt before.
            let from = if flip % 2 == 0 { &used } else { &tender };
            let at = from[index(&mut random, from.len())];
            let bit = random.below(8);
            bytes[at] ^= 1 << bit;
            (format!("bit {bit} of byte {at}"), Some(at))
        };
        match catch_unwind(AssertUnwindSafe(|| suffer(bytes, &whole, &what, &mut count))) {
            Ok(false) => {}
            Ok(true) => {
                if tender.len() == used.len() {
                    tender.clear();
                }
                let near = at.into_iter().flat_map(|at| at.saturating_sub(100)..at + 100);
                tender.extend(near.filter(|at| whole_bytes.get(*at).is_some_and(|byte| *byte != 0)));
                if tender.is_empty() {
                    tender.clone_from(&used);
                }
            }
            Err(panic) => {
                eprintln!("{what}");
                std::panic::resume_unwind(panic);
            }
        }
    }
    println!("{flips} spoilt files of {} bytes, {} of them in use: {count:?}", whole_bytes.len(), used.len());
}
