//! What engines say of nodes, and which they refuse.

use std::sync::Arc;
use std::time::Duration;

use super::engines::{LOG, beat, on_every_engine};
use crate::cluster::engine::{Engine, EngineError, Heartbeat, LogIdentity, NewEntry};
use crate::model::EntryId;

on_every_engine! {
    nodes_are_seen_as_they_reported_themselves
    name_belongs_to_one_file_at_a_time
    nodes_with_leases_have_the_same_settings
    entries_that_a_node_with_a_lease_needs_are_not_removed
    log_is_begun_once_and_anew_only_in_place_of_a_known_one
}

async fn append(engine: &impl Engine) -> EntryId {
    engine.append(LOG, NewEntry { node: "a", number: 1, fence: None, bytes: b"entry" }).await.unwrap()
}

async fn nodes_are_seen_as_they_reported_themselves<E: Engine>(engine: Arc<E>) {
    let begun = engine.look(LOG).await.unwrap();
    assert_eq!((begun.nodes.len(), begun.last, begun.duty), (0, begun.trimmed, None));
    engine.beat(LOG, beat("b", begun.last, 0)).await.unwrap();
    let entry = append(&*engine).await;
    engine.beat(LOG, beat("b", begun.last, 0)).await.unwrap();
    let view = engine.beat(LOG, beat("a", entry, 5_000)).await.unwrap();
    assert_eq!(view.last, entry);
    let seen: Vec<_> = view.nodes.iter().map(|node| (&*node.node, node.applied, node.lease_ms > 0)).collect();
    assert_eq!(seen, [("a", entry, true), ("b", begun.last, false)]);
    let behind: Vec<_> = view.nodes.iter().map(|node| node.behind_ms).collect();
    assert_eq!(behind, [0, entry.ms - begun.last.ms]);
    let fence = engine.hold_duty(LOG, "a", Duration::from_secs(2)).await.unwrap();
    let duty = engine.look(LOG).await.unwrap().duty.unwrap();
    assert_eq!((&*duty.node, Some(duty.fence)), ("a", fence));
    assert!(engine.end_lease("b", true).await.unwrap() && !engine.end_lease("b", true).await.unwrap());
    assert_eq!(engine.look(LOG).await.unwrap().nodes.len(), 1);
}

async fn name_belongs_to_one_file_at_a_time<E: Engine>(engine: Arc<E>) {
    let last = engine.look(LOG).await.unwrap().last;
    engine.beat(LOG, beat("a", last, 5_000)).await.unwrap();
    let other = Heartbeat { file: 2, ..beat("a", last, 0) };
    assert_eq!(engine.beat(LOG, other.clone()).await.unwrap_err(), EngineError::NameTaken);
    engine.end_lease("a", false).await.unwrap();
    engine.beat(LOG, other).await.unwrap();
}

async fn nodes_with_leases_have_the_same_settings<E: Engine>(engine: Arc<E>) {
    let last = engine.look(LOG).await.unwrap().last;
    let with = |node, settings, lease_ms| Heartbeat { settings, ..beat(node, last, lease_ms) };
    engine.beat(LOG, with("a", "one", 5_000)).await.unwrap();
    engine.beat(LOG, with("b", "one", 5_000)).await.unwrap();
    engine.beat(LOG, with("c", "other", 0)).await.unwrap();
    assert_eq!(engine.beat(LOG, with("c", "other", 5_000)).await.unwrap_err(), EngineError::Disagrees);
    engine.end_lease("a", false).await.unwrap();
    engine.end_lease("b", false).await.unwrap();
    engine.beat(LOG, with("c", "other", 5_000)).await.unwrap();
    assert_eq!(engine.beat(LOG, with("a", "one", 5_000)).await.unwrap_err(), EngineError::Disagrees);
}

async fn entries_that_a_node_with_a_lease_needs_are_not_removed<E: Engine>(engine: Arc<E>) {
    let begun = engine.look(LOG).await.unwrap().last;
    engine.beat(LOG, beat("a", begun, 5_000)).await.unwrap();
    let first = append(&*engine).await;
    tokio::time::sleep(Duration::from_millis(2)).await;
    let last = append(&*engine).await;
    let trim = || engine.trim(LOG, Duration::ZERO, u64::MAX);
    let ids = async || {
        let entries = engine.read(begun, 10, Duration::from_millis(1)).await.unwrap();
        entries.iter().map(|entry| entry.id).collect::<Vec<_>>()
    };
    trim().await.unwrap();
    assert_eq!(ids().await, [first, last], "the node has applied none of them");
    engine.beat(LOG, beat("a", last, 5_000)).await.unwrap();
    tokio::time::sleep(Duration::from_millis(2)).await;
    trim().await.unwrap();
    let view = engine.look(LOG).await.unwrap();
    assert_eq!((view.trimmed, view.last), (first, last));
    assert_eq!(engine.read(first, 10, Duration::from_millis(1)).await.unwrap()[0].id, last);
    engine.end_lease("a", false).await.unwrap();
    tokio::time::sleep(Duration::from_millis(2)).await;
    trim().await.unwrap();
    let view = engine.look(LOG).await.unwrap();
    assert_eq!((view.trimmed, view.last), (last, last), "nobody needs them");
    let next = append(&*engine).await;
    let read = engine.read(last, 10, Duration::from_millis(1)).await.unwrap();
    assert_eq!((read[0].id, read[0].previous), (next, last));
}

async fn log_is_begun_once_and_anew_only_in_place_of_a_known_one<E: Engine>(engine: Arc<E>) {
    let next = LogIdentity { epoch: 2, ..LOG };
    assert!(engine.create(next).await.unwrap().is_some(), "nobody has followed the first one");
    assert_eq!(engine.identity().await.unwrap(), Some(next));
    assert_eq!(engine.look(LOG).await.unwrap_err(), EngineError::Lost);
    let last = engine.look(next).await.unwrap().last;
    engine.beat(next, beat("a", last, 5_000)).await.unwrap();
    assert_eq!(engine.create(LogIdentity { cluster: 8, epoch: 1 }).await.unwrap(), None);
    assert_eq!(engine.create_anew(LOG, LogIdentity { epoch: 3, ..LOG }).await.unwrap(), None);
    let mut begun = last;
    // Many of them within a millisecond.
    for epoch in 2..50 {
        let (of, to) = (LogIdentity { epoch, ..LOG }, LogIdentity { epoch: epoch + 1, ..LOG });
        let before = std::mem::replace(&mut begun, engine.create_anew(of, to).await.unwrap().unwrap());
        assert!(begun > before);
    }
    assert_eq!(engine.beat(next, beat("a", last, 0)).await.unwrap_err(), EngineError::Lost);
}
