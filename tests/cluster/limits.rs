//! The limits of keys hold for all nodes together.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use super::nodes::{Cluster, answers};
use crate::process::client::Connection;
use crate::process::command::{Issued, until};
use crate::process::seed::{short_or_long, within_a_day};

const CLIENTS: usize = 24;

/// Sends so many requests, spread over all nodes; how many were answered with each status.
async fn send(cluster: &Cluster, key: &Issued, count: i64) -> BTreeMap<u16, u64> {
    let left = Arc::new(AtomicI64::new(count));
    let client = |number: usize| {
        let (left, secret) = (Arc::clone(&left), key.secret.clone());
        let address = cluster.nodes[number % cluster.nodes.len()].address();
        tokio::spawn(async move {
            let mut connection = Connection::open(address).await.expect("a connection");
            let mut statuses = BTreeMap::<u16, u64>::new();
            while left.fetch_sub(1, Ordering::Relaxed) > 0 {
                let answer = connection.get("/v1/sports", &secret).await.expect("an answer");
                *statuses.entry(answer.status).or_default() += 1;
            }
            statuses
        })
    };
    let clients: Vec<_> = (0..CLIENTS).map(client).collect();
    let mut all = BTreeMap::new();
    for client in clients {
        for (status, count) in client.await.expect("a client") {
            *all.entry(status).or_default() += count;
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn exactly_the_limit_passes_on_three_nodes() {
    within_a_day(check_exactly_the_limit_passes_on_three_nodes).await;
}

async fn check_exactly_the_limit_passes_on_three_nodes() {
    let Some(mut cluster) = Cluster::start("exactly_the_limit_passes_on_three_nodes") else { return };
    for round in 0..short_or_long(3, 20) {
        let key = cluster.node("a").issue("--burst 10000000 --per-day 3000");
        let statuses = send(&cluster, &key, 3_500).await;
        assert_eq!(statuses, BTreeMap::from([(200, 3_000), (429, 500)]), "round {round}");
        let minute = cluster.node("b").issue("--burst 400 --per-day 1000000");
        let statuses = send(&cluster, &minute, 900).await;
        assert_eq!(statuses, BTreeMap::from([(200, 400), (429, 500)]), "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_hold_when_nodes_and_the_engine_are_killed() {
    within_a_day(check_limits_hold_when_nodes_and_the_engine_are_killed).await;
}

async fn check_limits_hold_when_nodes_and_the_engine_are_killed() {
    let Some(mut cluster) = Cluster::start("limits_hold_when_nodes_and_the_engine_are_killed") else { return };
    let key = cluster.node("a").issue("--burst 10000000 --per-day 4000");
    let passed = send(&cluster, &key, 1_000).await;
    assert_eq!(passed, BTreeMap::from([(200, 1_000)]));
    cluster.node("b").kill();
    cluster.engine.kill();
    cluster.engine.start_again();
    cluster.node("b").serve();
    for node in &cluster.nodes {
        answers(node, "/v1/sports", &key, 200).await;
    }
    let mut passed = 1_000 + 3;
    loop {
        let statuses = send(&cluster, &key, 500).await;
        passed += statuses.get(&200).copied().unwrap_or_default();
        if !statuses.contains_key(&200) {
            break;
        }
    }
    // The node that was killed has lost one share at most, which is at most a fortieth of a limit for each of three nodes.
    assert!(passed <= 4_000, "{passed} passed");
    assert!(passed >= 3_500, "only {passed} passed");
}

fn open_stream(cluster: &Cluster, node: usize, key: &Issued) -> (TcpStream, String) {
    let mut stream = TcpStream::connect(cluster.nodes[node].address()).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let request = format!("GET /v1/stream HTTP/1.1\r\nhost: oddsbox\r\nx-api-key: {}\r\n\r\n", key.secret);
    stream.write_all(request.as_bytes()).expect("a request");
    let mut head = [0; 15];
    stream.read_exact(&mut head).expect("an answer");
    (stream, String::from_utf8_lossy(&head[9..12]).into_owned())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_are_counted_over_all_nodes() {
    let Some(mut cluster) = Cluster::start("streams_are_counted_over_all_nodes") else { return };
    let key = cluster.node("a").issue("--burst 100000 --streams 2");
    for node in &cluster.nodes {
        answers(node, "/v1/sports", &key, 200).await;
    }
    let (first, status) = open_stream(&cluster, 0, &key);
    assert_eq!(status, "200");
    let (_second, status) = open_stream(&cluster, 1, &key);
    assert_eq!(status, "200");
    assert_eq!(open_stream(&cluster, 2, &key).1, "429");
    assert_eq!(open_stream(&cluster, 0, &key).1, "429");
    drop(first);
    until("there is room for one", async || open_stream(&cluster, 2, &key).1 == "200").await;
    // A node that was killed has none open once its lease has ended.
    cluster.node("b").kill();
    until("there is room for another", async || {
        let (_one, first) = open_stream(&cluster, 0, &key);
        let (_two, second) = open_stream(&cluster, 2, &key);
        first == "200" && second == "200"
    })
    .await;
}
