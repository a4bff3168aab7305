//! When a command returns, no node goes by what was before.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::nodes::{Cluster, LEASE, Node, answers};
use crate::process::client::Connection;
use crate::process::command::{Issued, until};
use crate::process::seed::short_or_long;

/// How long a command may take that waits for a lease to end.
const WITHIN: Duration = Duration::from_secs(10);

/// Asserts that a node lets a key in no more.
async fn refuses(node: &Node, key: &Issued) {
    let status = node.get("/v1/sports", key).await.status;
    assert!(status == 401 || status == 503, "{}: {status}", node.name);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revocation_and_rotation_are_in_force_on_all_nodes_when_they_return() {
    let test = "revocation_and_rotation_are_in_force_on_all_nodes_when_they_return";
    let Some(cluster) = Cluster::start(test) else { return };
    let mut took = Vec::new();
    for round in 0..short_or_long(12, 200) {
        let key = cluster.nodes[round % 3].issue("--burst 100000");
        for node in &cluster.nodes {
            assert_eq!(node.get("/v1/sports", &key).await.status, 200, "{}: a new key works everywhere", node.name);
        }
        let began = Instant::now();
        let other = &cluster.nodes[(round + 1) % 3];
        let kept = match round % 2 {
            0 => {
                other.run(&format!("keys revoke {}", key.id)).succeeded();
                None
            }
            _ => Some(Issued::from(&other.json(&format!("keys rotate {}", key.id)))),
        };
        took.push(began.elapsed());
        for node in &cluster.nodes {
            assert_eq!(node.get("/v1/sports", &key).await.status, 401, "{}", node.name);
            if let Some(kept) = &kept {
                assert_eq!(node.get("/v1/sports", kept).await.status, 200, "{}", node.name);
            }
        }
    }
    took.sort_unstable();
    println!("a revocation on three nodes took {:?}, at most {:?}", took[took.len() / 2], took[took.len() - 1]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revocation_waits_for_a_node_that_is_paused() {
    let Some(mut cluster) = Cluster::start("revocation_waits_for_a_node_that_is_paused") else { return };
    let key = cluster.node("a").issue("--burst 100000");
    for node in &cluster.nodes {
        answers(node, "/v1/sports", &key, 200).await;
    }
    // A connection on which the request is there before the node goes on.
    let mut waiting = Connection::open(cluster.node("b").address()).await.expect("a connection");
    cluster.node("b").server().pause();
    let request = format!("GET /v1/sports HTTP/1.1\r\nhost: oddsbox\r\nx-api-key: {}\r\n\r\n", key.secret);
    let began = Instant::now();
    cluster.node("c").run(&format!("keys revoke {}", key.id)).succeeded();
    let took = began.elapsed();
    assert!(took < WITHIN, "{took:?}");
    cluster.node("b").server().resume();
    let answer = waiting.send(&request).await.expect("an answer");
    assert!(answer.status == 401 || answer.status == 503, "{}", answer.status);
    answers(cluster.node("b"), "/v1/sports", &key, 401).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn revocation_waits_for_a_node_that_is_cut_off() {
    let Some(mut cluster) = Cluster::start("revocation_waits_for_a_node_that_is_cut_off") else { return };
    let key = cluster.node("a").issue("--burst 100000");
    for node in &cluster.nodes {
        answers(node, "/v1/sports", &key, 200).await;
    }
    cluster.node("b").link.cut();
    // It is asked all the time.
    let (address, secret) = (cluster.node("b").address(), key.secret.clone());
    let is_revoked = Arc::new(AtomicBool::new(false));
    let revoked = Arc::clone(&is_revoked);
    let asking = tokio::spawn(async move {
        let mut connection = Connection::open(address).await.expect("a connection");
        let mut refused = 0;
        while refused < 100 {
            let was_revoked = revoked.load(Ordering::SeqCst);
            let status = connection.get("/v1/sports", &secret).await.expect("an answer").status;
            assert!(!was_revoked || status != 200, "a key that was revoked before is let in");
            refused += u32::from(was_revoked);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    cluster.node("c").run(&format!("keys revoke {}", key.id)).succeeded();
    is_revoked.store(true, Ordering::SeqCst);
    asking.await.expect("nothing was let in");
    cluster.node("b").link.mend();
    answers(cluster.node("b"), "/v1/sports", &key, 401).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_that_is_restarted_during_a_revocation_does_not_undo_it() {
    let test = "node_that_is_restarted_during_a_revocation_does_not_undo_it";
    let Some(mut cluster) = Cluster::start(test) else { return };
    for _ in 0..short_or_long(2, 20) {
        let key = cluster.node("a").issue("--burst 100000");
        for node in &cluster.nodes {
            answers(node, "/v1/sports", &key, 200).await;
        }
        cluster.node("b").kill();
        let began = Instant::now();
        cluster.node("b").spawn();
        cluster.node("c").run(&format!("keys revoke {}", key.id)).succeeded();
        assert!(began.elapsed() < WITHIN, "{:?}", began.elapsed());
        cluster.node("b").wait_until_ready();
        for node in &cluster.nodes {
            refuses(node, &key).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_that_goes_on_when_it_is_cut_off_is_named() {
    let test = "node_that_goes_on_when_it_is_cut_off_is_named";
    let Some(mut cluster) = Cluster::start_with(test, &[("ODDSBOX_CLUSTER_WHEN_CUT_OFF", "serve")]) else { return };
    let key = cluster.node("a").issue("--burst 100000");
    let other = cluster.node("a").issue("--burst 90 --per-day 3000");
    for node in &cluster.nodes {
        answers(node, "/v1/sports", &key, 200).await;
    }
    cluster.node("b").link.cut();
    let rotated = cluster.node("c").run(&format!("keys rotate {} --json", key.id));
    assert_eq!(rotated.code, Some(1), "{rotated:?}");
    assert!(rotated.complaint().contains("not confirmed by b:"), "{rotated:?}");
    let answer = rotated.document();
    assert_eq!(answer["unconfirmed"], serde_json::json!(["b"]));
    let new = Issued::from(&answer);
    // It goes on by itself, and by the old secret alone.
    until("its lease has ended", async || cluster.node("b").standing() == "cut off").await;
    tokio::time::sleep(LEASE).await;
    let mut passed = 0;
    while cluster.node("b").get("/v1/sports", &other).await.status == 200 {
        passed += 1;
    }
    assert_eq!(passed, 30, "a third of its minute on one of three nodes");
    assert_eq!(cluster.node("b").get("/v1/sports", &key).await.status, 200);
    assert_eq!(cluster.node("a").get("/v1/sports", &key).await.status, 401);
    assert_eq!(cluster.node("a").get("/v1/sports", &new).await.status, 200);
    cluster.node("b").link.mend();
    answers(cluster.node("b"), "/v1/sports", &key, 401).await;
    let again = cluster.node("c").run(&format!("keys revoke {}", key.id)).succeeded();
    assert!(again.stdout.contains("is revoked"), "{again:?}");
}
