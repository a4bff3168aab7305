//! An event whose history is deleted leaves every table of the log, and nothing else does.

use super::lines::{WORLD, lines, logged, write};
use super::*;
use crate::store::{ForgetOutcome, PreparedForget};

const DAY_S: u32 = 86_400;

fn removal() -> Change {
    let sports =
        vec![SportChanges { sport: sport_id(0), events: vec![EventChange::Removed(event_id("a"))], tick: None }];
    Change::Log { world: WORLD, entry: Arc::new(LogEntry { at: at(99), sports }) }
}

/// The steps that are left, each prepared when the one before it is committed.
fn forget(store: &mut Store) -> Vec<ForgetOutcome> {
    let (event, mut progress) = store.history().begin_forget(WORLD, sport_id(0), &event_id("a")).unwrap();
    let mut outcomes = Vec::new();
    while let Some(prepared) = store.history().prepare_forget(&event, &mut progress).unwrap() {
        outcomes.push(store.forget(&prepared).unwrap());
    }
    assert!(!progress.is_damaged);
    store.forget_lines(&event).unwrap();
    outcomes
}

fn first_step(store: &Store) -> PreparedForget {
    let (event, mut progress) = store.history().begin_forget(WORLD, sport_id(0), &event_id("a")).unwrap();
    store.history().prepare_forget(&event, &mut progress).unwrap().unwrap()
}

#[test]
fn forgotten_event_leaves_every_table_and_entries_keep_their_places() {
    for is_written in [false, true] {
        let (memory, mut store) = logged();
        store.commit(&[removal()]).unwrap();
        if is_written {
            write(&mut store);
        }
        let before = store.history().entries_after(WORLD.into(), 0, 100).unwrap();
        let outcomes = forget(&mut store);
        assert_eq!(
            outcomes,
            vec![ForgetOutcome::Done; 6],
            "a keyframe after each publication, and one before the first"
        );
        assert_eq!(lines(&store).unwrap(), None);
        assert_eq!(store.line_bytes(WORLD).unwrap().total(), 0);
        let after = store.history().entries_after(WORLD.into(), 0, 100).unwrap();
        let places = |entries: &[crate::store::LoggedEntry]| {
            entries.iter().map(|entry| (entry.sequence, entry.at)).collect::<Vec<_>>()
        };
        assert_eq!(places(&after), places(&before));
        for tick in 0..5 {
            let (found, state) = store.history().as_of(WORLD, sport_id(0), at(10 + tick)).unwrap();
            assert_eq!((found.at, state.events().count()), (at(10 + tick), 0));
        }
        let head = store.log_head(WORLD).unwrap();
        assert_eq!(head.changes, 0);
        assert!(store.check().unwrap().is_clean());
        drop(store);
        // What was kept in memory is what the file says.
        let mut store = memory.open();
        store.load().unwrap();
        assert_eq!(store.log_head(WORLD).unwrap(), head);
        assert!(forget(&mut store).is_empty(), "a second time there is nothing to do");
        store.commit(&[log_tick(WORLD)]).unwrap();
        assert_eq!(lines(&store).unwrap().unwrap().lines[0].points.len(), 1, "it may be seen again");
    }
}

#[test]
fn event_on_the_board_is_not_forgotten() {
    let (_memory, mut store) = logged();
    let before = lines(&store).unwrap();
    let prepared = first_step(&store);
    assert_eq!(store.forget(&prepared).unwrap(), ForgetOutcome::OnBoard);
    assert_eq!(lines(&store).unwrap(), before);
}

#[test]
fn step_is_not_committed_over_rows_that_have_changed() {
    let (_memory, mut store) = logged();
    store.commit(&[removal()]).unwrap();
    let prepared = first_step(&store);
    assert_eq!(store.forget(&prepared).unwrap(), ForgetOutcome::Done);
    assert_eq!(store.forget(&prepared).unwrap(), ForgetOutcome::Outdated);
    assert!(store.check().unwrap().is_clean());
}

/// A keyframe that only refers to another: a later one is written from that state.
#[test]
fn keyframe_written_between_two_steps_does_not_have_the_event() {
    let (_memory, mut store) = logged();
    // Nothing changed since the last one.
    assert!(!store.write_due_keyframe(at(5 * 7 * 3600)).unwrap());
    let other = SportChanges { sport: sport_id(1), events: Vec::new(), tick: None };
    let other = Change::Log { world: WORLD, entry: Arc::new(LogEntry { at: at(98), sports: vec![other] }) };
    store.commit(&[other]).unwrap();
    assert!(store.write_due_keyframe(at(2 * DAY_S)).unwrap());
    store.commit(&[removal()]).unwrap();
    let prepared = first_step(&store);
    assert_eq!(store.forget(&prepared).unwrap(), ForgetOutcome::Done);
    while store.write_due_keyframe(at(3 * DAY_S)).unwrap() {}
    assert_eq!(store.history().last_state(WORLD, sport_id(0)).unwrap().events().count(), 0);
    forget(&mut store);
    assert_eq!(store.history().last_state(WORLD, sport_id(0)).unwrap().events().count(), 0);
    assert_eq!(lines(&store).unwrap(), None);
}
