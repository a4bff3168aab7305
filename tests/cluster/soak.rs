//! A cluster whose nodes are polled and followed all the time.
//!
//! The failure that this prevents: something grows a little every hour in a node or in the engine. The long form is as in
//! `crash::soak`.

use std::time::Duration;

use super::engine::RedisServer;
use super::nodes::{Cluster, Node, answers};
use crate::crash::soak::{SMALL_CACHE, poll_and_follow};

const TEST: &str = "polled_and_followed_cluster_does_not_grow";

fn used_memory(engine: &RedisServer) -> u64 {
    let info = engine.command(&["INFO", "memory"]);
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:")).expect("a line");
    used.trim().parse().expect("a number")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn polled_and_followed_cluster_does_not_grow() {
    let Some(mut cluster) = Cluster::start_with(TEST, &[("ODDSBOX_LOG", "warn"), SMALL_CACHE]) else { return };
    let key = cluster.node("a").issue("--burst 10000000 --per-day 1000000000000 --streams 100");
    for node in &cluster.nodes {
        answers(node, "/v1/sports", &key, 200).await;
    }
    let before = used_memory(&cluster.engine);
    let servers: Vec<_> = cluster.nodes.iter().map(Node::server).collect();
    // On a busy machine, a node may be cut off from the engine until its lease ends, and its streams with it.
    let ended = poll_and_follow(&servers, &key.secret, &["mma", "tennis", "golf"], Duration::from_millis(5)).await;
    assert!(ended <= 30, "{ended} streams were ended");
    let after = used_memory(&cluster.engine);
    println!("the engine had {before} bytes in memory, then {after}");
    assert!(after < 2 * before + (64 << 20), "the engine grows from {before} to {after}");
    cluster.same("/v1/sports/mma/odds", &key).await;
}
