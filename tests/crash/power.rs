//! The failure that this prevents: after a power loss, an acknowledged change is gone, a change is applied partially,
//! or a quota is available again.
//!
//! A run of random operations is recorded. Then the power is cut after any of the disk's operations, any number of
//! times: the file must open in the last acknowledged state, or with the one operation in progress.

use std::any::Any;
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use oddsbox::clock::Clock;

use super::disk::{Disk, Step, apply, cut_power, cut_power_in_order};
use super::writer_run::{Charged, Keys, Mark, NOON_MS, WriterRun, charge, check_secrets, lease, open_writer, picture};
use crate::process::seed::{Random, short_or_long};

/// Power losses per recorded run, and runs per disk.
const CUTS_PER_RUN: u64 = 25;
const RUNS_PER_DISK: u64 = 4;
const OPERATIONS_PER_RUN: u64 = 16;

/// A recorded run.
struct Record {
    base: Vec<u8>,
    steps: Vec<Step>,
    marks: Vec<Mark>,
    clock: Clock,
}

#[derive(Default)]
struct Count {
    losses: u64,
    again: u64,
    under_way: u64,
}

#[test]
fn power_loss_loses_no_acknowledged_change_and_refunds_no_quota() {
    let mut random = Random::new();
    let wanted = short_or_long(600, 100_000);
    let mut count = Count::default();
    let mut doing = BTreeSet::new();
    while count.losses < wanted {
        let (mut disk, clock, mut keys) = (Disk::new(Vec::new()), Clock::manual(NOON_MS), Keys::new());
        for _ in 0..RUNS_PER_DISK {
            let record = record(disk, clock.clone(), keys, &mut random);
            doing.extend(record.marks.iter().map(|mark| mark.done));
            let mut left = None;
            for _ in 0..CUTS_PER_RUN {
                left = Some(lose(&record, cut_power, &mut random, &mut count));
            }
            (disk, keys) = left.expect("a loss at least");
        }
    }
    assert!(doing.len() >= 10, "too little was under way: {doing:?}");
    let Count { losses, again, under_way } = count;
    println!("{losses} power losses, {again} of them again while recovering; {under_way} kept what was under way");
}

fn record(disk: Disk, clock: Clock, keys: Keys, random: &mut Random) -> Record {
    let mut run = WriterRun::begin(disk, clock.clone(), keys);
    let base = run.disk.bytes();
    for _ in 0..OPERATIONS_PER_RUN {
        run.act(random);
    }
    Record { base, steps: run.disk.take_steps(), marks: run.marks, clock }
}

/// A function that returns what is left of a disk after so many operations.
type CutPower = fn(&[u8], &[Step], usize, &mut Random) -> Vec<u8>;

/// Cuts the power somewhere and recovers; returns the disk and its keys.
fn lose(record: &Record, cut_power: CutPower, random: &mut Random, count: &mut Count) -> (Disk, Keys) {
    count.losses += 1;
    let cut = usize::try_from(random.below(record.steps.len() as u64 + 1)).expect("a small number");
    let known = record.marks.iter().rposition(|mark| mark.steps <= cut).expect("a first mark");
    let mut image = cut_power(&record.base, &record.steps, cut, random);
    let mut crashes = 1;
    if random.below(2) == 0 {
        // Recovery writes too, and the power is cut again.
        let disk = Disk::new(image.clone());
        let found = picture(&mut disk.open().expect("a disk that opens after a power loss"));
        accept(record, known, cut, &found);
        let steps = disk.take_steps();
        let cut = usize::try_from(random.below(steps.len() as u64 + 1)).expect("a small number");
        image = cut_power(&image, &steps, cut, random);
        crashes += 1;
        count.again += 1;
    }
    let disk = Disk::new(image);
    let mut store = disk.open().expect("a disk that opens after a power loss");
    let found = picture(&mut store);
    let mut keys = accept(record, known, cut, &found);
    count.under_way += u64::from(found != record.marks[known].picture);
    if random.below(8) == 0 {
        let report = store.check().expect("a check");
        assert!(report.is_clean(), "{report:?}");
    }
    drop(store);
    for state in keys.values_mut() {
        state.crashes += crashes;
    }
    let left = Disk::new(disk.bytes());
    spend(disk, &keys, &record.clock);
    (left, keys)
}

/// Asserts that the file is in the acknowledged state or has the one operation in progress; returns its keys.
fn accept(record: &Record, known: usize, cut: usize, found: &str) -> Keys {
    let acknowledged = &record.marks[known];
    if acknowledged.picture == found {
        return acknowledged.keys.clone();
    }
    let next = record.marks.get(known + 1).filter(|_| cut > acknowledged.steps);
    let next = next.unwrap_or_else(|| panic!("{} is not as it was acknowledged", acknowledged.done));
    let is_between = || {
        let mut bytes = record.base.clone();
        record.steps[..next.steps].iter().enumerate().any(|(at, step)| {
            apply(&mut bytes, step);
            let is_commit = at >= acknowledged.steps && matches!(step, Step::Sync);
            is_commit && picture(&mut Disk::new(bytes.clone()).open().expect("a disk that opens")) == found
        })
    };
    let is_allowed = next.picture == found || !next.is_one_commit && is_between();
    assert!(is_allowed, "{} was cut short and is neither there nor not there", next.done);
    let mut keys = next.keys.clone();
    for (number, state) in &mut keys {
        state.passed = acknowledged.keys.get(number).map_or(0, |before| before.passed);
    }
    keys
}

/// Exhausts every key: in all, it gets no more than its quota, and loses at most one lease per power loss.
fn spend(disk: Disk, keys: &Keys, clock: &Clock) {
    let mut writer = open_writer(disk.open().expect("a disk that opens"), clock);
    check_secrets(&writer.keyring().clone(), keys, clock);
    for state in keys.values().filter(|state| !state.revoked) {
        let id = &state.id;
        let mut passed = state.passed;
        // A lease is for at least one request.
        for _ in 0..=2 * state.quota {
            match charge(&writer, clock, id) {
                Charged::Passed => passed += 1,
                Charged::NeedsLease => lease(&mut writer, clock, id),
                Charged::Spent => break,
            }
        }
        assert!(passed <= state.quota, "{id}: {passed} of {} were let through", state.quota);
        let lost = state.quota - passed;
        let lease = oddsbox::keys::lease_size(state.quota);
        assert!(lost <= state.crashes * lease, "{id}: {lost} lost in {} crashes", state.crashes);
    }
}

/// The message of a panic.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or_default()
}

/// Tests the test. A disk that acknowledges syncs without performing them, and then keeps everything up to some point,
/// has an intact but outdated file: that must be detected.
#[test]
fn simulated_disk_that_ignores_syncs_is_detected() {
    let mut random = Random::new();
    let mut count = Count::default();
    let mut lost = 0;
    for _ in 0..8 {
        let record = record(Disk::lying(), Clock::manual(NOON_MS), Keys::new(), &mut random);
        assert!(!record.steps.iter().any(|step| matches!(step, Step::Sync)));
        for _ in 0..CUTS_PER_RUN {
            let lose = || lose(&record, cut_power_in_order, &mut random, &mut count);
            let Err(panic) = catch_unwind(AssertUnwindSafe(lose)) else { continue };
            let said = said(&*panic);
            let messages = ["is not as it was acknowledged", "is neither there nor not there"];
            lost += u64::from(messages.iter().any(|message| said.contains(message)));
        }
    }
    println!("{} power losses on a disk that lies: {lost} lost what was acknowledged", count.losses);
    assert!(lost > 0, "nothing was missed after {} power losses on a disk that lies", count.losses);
}
