//! Keys on several nodes: all nodes together let exactly as many requests pass as the limits allow.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::task::{JoinHandle, JoinSet};

use super::engines::{LOG, beat, on_every_engine};
use super::{Random, two_sports};
use crate::clock::Clock;
use crate::cluster::engine::Engine;
use crate::cluster::engine::memory::MemoryEngine;
use crate::cluster::shares::EngineShares;
use crate::keys::issue::{self, NewKey};
use crate::keys::{
    Cost, KeyEntry, KeyId, KeyKind, KeyRecord, Keyring, LeaseQueue, LimitSet, Limits, Refusal, Secret, ShareSource,
    Usage, lease_size, shares,
};
use crate::model::{EntryId, Timestamp};
use crate::testing::short_or_long;

on_every_engine! {
    exactly_the_limit_passes_however_requests_are_spread
    node_that_stops_gives_back_what_it_has_not_used
    node_that_dies_loses_at_most_one_lease
    reset_begins_anew_on_every_node
    limit_can_be_raised_and_lowered
}

const KEY_LEASE_MS: u64 = 600_000;
const NODES: [&str; 3] = ["a", "b", "c"];

fn key(limits: Limits) -> KeyRecord {
    let (id, secret) = (KeyId::generate().unwrap(), Secret::generate(KeyKind::Sandbox).unwrap());
    let new = NewKey {
        kind: KeyKind::Sandbox,
        name: "key".into(),
        groups: Vec::new(),
        limits,
        expires: None,
        approved_by: None,
        self_service: false,
    };
    issue::issue(new, (id, secret.stored()), &two_sports(), Timestamp::from_unix(1_794_657_600)).unwrap()
}

fn daily(per_day: u64) -> Limits {
    Limits { burst_per_minute: 1_000_000, per_day: Some(per_day), per_month: None, streams: 1 }
}

/// A node with one key.
struct Metered<E> {
    source: Arc<EngineShares<E>>,
    key: Arc<KeyEntry>,
    clock: Clock,
    stop: oneshot::Sender<()>,
    tasks: [JoinHandle<()>; 2],
}

impl<E: Engine> Metered<E> {
    async fn start(engine: &Arc<E>, name: &str, record: &KeyRecord) -> Self {
        engine.beat(LOG, beat(name, EntryId::default(), KEY_LEASE_MS)).await.unwrap();
        let (queue, requests) = LeaseQueue::open_shared();
        let keyring = Arc::new(Keyring::new(two_sports(), [(record.clone(), Usage::default())], queue));
        let (clock, source) = (Clock::system(), Arc::new(EngineShares::new(Arc::clone(engine), LOG, name)));
        let (sender, recalls) = mpsc::channel(16);
        let (stop, stopped) = oneshot::channel::<()>();
        let stopped = async { drop(stopped.await) };
        let (reading, after) = (Arc::clone(&source), source.begin().await.unwrap());
        let tasks = [
            tokio::spawn(async move { reading.read_recalls(after, sender).await }),
            tokio::spawn(shares::serve(
                requests,
                recalls,
                Arc::clone(&keyring),
                clock.clone(),
                Arc::clone(&source),
                stopped,
            )),
        ];
        let key = keyring.get(&record.id).unwrap();
        Metered { source, key, clock, stop, tasks }
    }

    /// Ends without another word.
    async fn die(self) {
        for task in self.tasks {
            task.abort();
            let _ = task.await;
        }
    }

    async fn stop(self) {
        let [reading, serving] = self.tasks;
        drop(self.stop);
        serving.await.unwrap();
        reading.abort();
    }

    /// Sends requests one after the other; returns how many have passed.
    async fn send(&self, count: u64) -> u64 {
        send(&self.key, &self.clock, count).await
    }
}

async fn send(key: &KeyEntry, clock: &Clock, count: u64) -> u64 {
    let mut passed = 0;
    for _ in 0..count {
        passed += u64::from(passes(key, clock).await);
    }
    passed
}

async fn passes(key: &KeyEntry, clock: &Clock) -> bool {
    loop {
        match key.meter().charge(Cost::Full, clock.now()) {
            Ok(_) => return true,
            Err(Refusal::NeedsLease) => key.meter().lease_arrives(clock.now()).await.unwrap(),
            Err(_) => return false,
        }
    }
}

async fn start_all<E: Engine>(engine: &Arc<E>, record: &KeyRecord) -> Vec<Metered<E>> {
    let mut nodes = Vec::new();
    for name in NODES {
        nodes.push(Metered::start(engine, name, record).await);
    }
    nodes
}

fn set_limits<E>(nodes: &[Metered<E>], limits: Limits) {
    for node in nodes {
        node.key.meter().set_limits(limits);
    }
}

/// Sends requests to all nodes at once, of which some get more than others; returns how many have passed.
async fn send_everywhere<E: Engine>(nodes: &[Metered<E>], counts: &[u64]) -> u64 {
    let mut clients = JoinSet::new();
    for (node, count) in nodes.iter().zip(counts) {
        for client in 0..4 {
            let (key, clock) = (Arc::clone(&node.key), node.clock.clone());
            let count = count / 4 + u64::from(client < count % 4);
            clients.spawn(async move { send(&key, &clock, count).await });
        }
    }
    clients.join_all().await.into_iter().sum()
}

async fn exactly_the_limit_passes_however_requests_are_spread<E: Engine>(engine: Arc<E>) {
    let mut random = Random(1);
    for round in 0..short_or_long(12, 400) {
        let limit = [7, 60, 500, 3_000][usize::try_from(round % 4).unwrap()] + random.below(5);
        let limits = match round % 3 {
            0 => daily(limit),
            1 => Limits { per_month: Some(limit), ..daily(limit * 2) },
            _ => Limits { burst_per_minute: u32::try_from(limit).unwrap(), ..daily(limit * 2) },
        };
        let record = key(limits);
        let nodes = start_all(&engine, &record).await;
        let (first, second) = (random.below(limit + 9), random.below(limit + 9));
        let third = (limit + 9).saturating_sub(first + second) + random.below(30);
        let passed = send_everywhere(&nodes, &[first, second, third]).await;
        assert_eq!(passed, limit, "round {round}: {first}, {second}, {third} of {limits:?}");
        assert_eq!(nodes[0].send(3).await + nodes[1].send(3).await, 0, "round {round}");
        for node in nodes {
            node.die().await;
        }
    }
}

async fn node_that_stops_gives_back_what_it_has_not_used<E: Engine>(engine: Arc<E>) {
    let record = key(Limits { per_month: Some(450), ..daily(400) });
    let [first, second, third] = start_all(&engine, &record).await.try_into().unwrap_or_else(|_| panic!());
    assert_eq!(first.send(10).await + second.send(10).await, 20);
    first.stop().await;
    second.stop().await;
    for name in &NODES[..2] {
        assert!(engine.end_lease(name, false).await.unwrap());
    }
    assert_eq!(third.send(500).await, 380);
    third.die().await;
}

async fn node_that_dies_loses_at_most_one_lease<E: Engine>(engine: Arc<E>) {
    let record = key(daily(1_000));
    let [first, second, third] = start_all(&engine, &record).await.try_into().unwrap_or_else(|_| panic!());
    assert_eq!(first.send(10).await + second.send(10).await, 20);
    first.die().await;
    engine.end_lease(NODES[0], false).await.unwrap();
    // It comes back, and does not know what it had.
    let again = Metered::start(&engine, NODES[0], &record).await;
    let passed = 20 + send_everywhere(&[again, second, third], &[500, 500, 500]).await;
    assert!(passed <= 1_000 && passed >= 1_000 - lease_size(1_000), "{passed}");
}

async fn reset_begins_anew_on_every_node<E: Engine>(engine: Arc<E>) {
    let record = key(daily(100));
    let nodes = start_all(&engine, &record).await;
    assert_eq!(send_everywhere(&nodes, &[50, 50, 50]).await, 100);
    assert!(nodes[1].source.reset(&record.id).await.unwrap());
    assert_eq!(send_everywhere(&nodes, &[50, 50, 50]).await, 100);
    assert_eq!(nodes[2].send(1).await, 0);
    assert_eq!(nodes[2].key.meter().standing(nodes[2].clock.now()).day.remaining(), Some(0));
}

async fn limit_can_be_raised_and_lowered<E: Engine>(engine: Arc<E>) {
    let record = key(daily(60));
    let nodes = start_all(&engine, &record).await;
    assert_eq!(send_everywhere(&nodes, &[40, 40, 40]).await, 60);
    set_limits(&nodes, daily(90));
    assert_eq!(send_everywhere(&nodes, &[40, 40, 40]).await, 30);
    set_limits(&nodes, daily(80));
    assert_eq!(send_everywhere(&nodes, &[5, 5, 5]).await, 0);
}

/// An engine that has lost what it gave learns it again from the nodes.
#[tokio::test]
async fn limits_that_the_engine_has_lost_are_not_given_again() {
    let engine = super::engines::memory().await;
    let record = key(daily(2_000));
    let nodes = start_all::<MemoryEngine>(&engine, &record).await;
    let before = send_everywhere(&nodes, &[300, 300, 300]).await;
    engine.lose_limits();
    let passed = before + send_everywhere(&nodes, &[900, 900, 900]).await;
    assert_eq!((before, passed), (900, 2_000));
}

/// A node that does not answer a recall keeps what it has, and holds the others up for a moment only.
#[tokio::test(start_paused = true)]
async fn recall_does_not_wait_for_a_node_that_does_not_answer() {
    let clock = Clock::manual(1_794_657_600_000);
    let engine = Arc::new(MemoryEngine::new(clock));
    engine.create(LOG).await.unwrap();
    for name in NODES {
        engine.beat(LOG, beat(name, EntryId::default(), KEY_LEASE_MS)).await.unwrap();
    }
    let shares = EngineShares::new(Arc::clone(&engine), LOG, NODES[0]);
    let begun = tokio::time::Instant::now();
    shares.recall(&key(daily(1)).id, LimitSet::ALL).await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(1));
}
