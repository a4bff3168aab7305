//! The failure that this prevents: a bit of the file flips, and a wrong price is served or the process crashes.
//!
//! One bit at a time is flipped in a closed file, or its end is truncated. A file that opens serves exactly what was
//! there before; any other is rejected, and the check, which inspects it anyway, reports the damage.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use oddsbox::clock::Clock;
use oddsbox::keys::KeyRecord;
use oddsbox::model::World;
use oddsbox::store::{Integrity, Loaded, OpenError};

use super::disk::Disk;
use super::writer_run::{Keys, NOON_MS, WriterRun};
use crate::process::seed::{Random, short_or_long};

/// Everything that can be served, piece by piece.
fn pieces(loaded: &Loaded) -> BTreeSet<String> {
    let mut pieces = BTreeSet::new();
    for world in World::ALL {
        let stored = loaded.world(world);
        // A catalogue bookmaker whose row is lost gets another number.
        pieces.extend(stored.bookmakers.iter().map(|(_, book)| format!("{world} {book:?}")));
        for (number, sport) in stored.sports.iter().enumerate() {
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
        // The time of last use is in another table, whose rows may be lost separately.
        let key = KeyRecord { last_used: None, ..key.clone() };
        pieces.insert(format!("{key:?} {:?}", key.hash.0));
    }
    pieces.extend(loaded.maintenance.map(|maintenance| format!("{maintenance:?}")));
    pieces
}

/// A closed file with every kind of record.
fn closed_file(random: &mut Random) -> Vec<u8> {
    let mut run = WriterRun::begin(Disk::new(Vec::new()), Clock::manual(NOON_MS), Keys::new());
    for _ in 0..60 {
        run.act(random);
    }
    let disk = run.disk.clone();
    drop(run);
    disk.bytes()
}

#[derive(Debug, Default)]
struct Count {
    /// Not even the check could open it.
    unreadable: u64,
    /// Rejected, with damaged records reported by the check.
    named: u64,
    /// Rejected without a damaged record: the damage is between rows, or in pages without rows.
    unnamed: u64,
    harmless: u64,
}

/// Opens a damaged file, which must serve what was there before or be rejected. Returns whether it was rejected.
fn suffer(bytes: Vec<u8>, whole: &BTreeSet<String>, what: &str, count: &mut Count) -> bool {
    let disk = Disk::new(bytes);
    match disk.open() {
        Ok(mut store) => {
            let loaded = store.load().unwrap_or_else(|error| panic!("{what}: opened, and not loaded: {error}"));
            assert!(loaded.damage.is_empty(), "{what}: {:?}", loaded.damage);
            let found = pieces(&loaded);
            let differs: Vec<_> = found.symmetric_difference(whole).collect();
            assert!(differs.is_empty(), "{what}: {differs:?} is served wrong or missing without an error");
            let report = store.check().unwrap_or_else(|error| panic!("{what}: the check itself failed: {error}"));
            assert!(report.is_clean(), "{what}: {report:?}");
            count.harmless += 1;
            return false;
        }
        Err(error) => assert_told(&error, what),
    }
    let kept = disk.bytes();
    look(&disk, what, count);
    assert_eq!(disk.bytes(), kept, "{what}: a file that was refused is left as it is");
    true
}

/// The result of the check on a rejected file.
fn look(disk: &Disk, what: &str, count: &mut Count) {
    let mut store = match disk.look() {
        Ok(store) => store,
        Err(error) => {
            assert_told(&error, what);
            count.unreadable += 1;
            return;
        }
    };
    // A restore that replaces it reads it this far: it may report damage, and nothing else.
    if store.load().is_err() {
        // redb reads nothing more after a page that lies beyond the end of the file.
        drop(store);
        store = disk.look().unwrap_or_else(|error| panic!("{what}: it opened before: {error}"));
    }
    let report = store.check().unwrap_or_else(|error| panic!("{what}: the check itself failed: {error}"));
    assert!(matches!(report.integrity, Integrity::Broken(_)), "{what}: {report:?}");
    let is_named = report.problems.listed().iter().all(|damage| !damage.key.is_empty() && !damage.reason.is_empty());
    assert!(is_named, "{what}: {report:?}");
    if report.problems.is_empty() {
        count.unnamed += 1;
    } else {
        count.named += 1;
    }
}

/// Asserts a message of one line that says what to do.
fn assert_told(error: &OpenError, what: &str) {
    let line = error.to_string();
    let says_what_to_do = ["restore a backup", "move that file away", "use a newer oddsbox"];
    assert!(!line.contains('\n') && says_what_to_do.iter().any(|advice| line.contains(advice)), "{what}: {line}");
}

fn index(random: &mut Random, len: usize) -> usize {
    usize::try_from(random.below(len as u64)).expect("a small file")
}

#[test]
fn corrupt_file_never_serves_wrong_values() {
    let mut random = Random::new();
    let whole_bytes = closed_file(&mut random);
    let whole = pieces(&Disk::new(whole_bytes.clone()).open().expect("a sound file").load().expect("a sound file"));
    // Most of a file is free space: only flips in used pages matter.
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
            // Unreferenced pages are harmless: half of the flips go near one that mattered before.
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
