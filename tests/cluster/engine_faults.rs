//! An engine that is restarted, loses what it had, is full, is slow, or is replaced by its replica.

use std::time::Duration;

use super::engine::RedisServer;
use super::nodes::{Cluster, Node, answers};
use crate::process::command::until;

async fn all_follow(cluster: &Cluster) {
    until("all follow", async || cluster.nodes.iter().all(|node| node.standing() == "following")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_that_is_cut_off_answers_503_after_its_lease_and_catches_up_by_itself() {
    let test = "node_that_is_cut_off_answers_503_after_its_lease_and_catches_up_by_itself";
    let Some(mut cluster) = Cluster::start(test) else { return };
    let key = cluster.node("a").issue("--burst 100000");
    answers(cluster.node("b"), "/v1/sports", &key, 200).await;
    cluster.node("b").link.cut();
    answers(cluster.node("b"), "/v1/sports", &key, 503).await;
    let answer = cluster.node("b").get("/v1/sports", &key).await;
    assert!(answer.header("retry-after").is_some(), "{answer:?}");
    until("it says so", async || cluster.node("b").standing() == "cut off").await;
    assert_eq!(cluster.node("b").json("status")["status"], "degraded");
    // At once, unless the engine's disk is busy for as long as a lease.
    until("the others go on", async || cluster.node("a").json("status")["status"] == "ok").await;
    answers(cluster.node("a"), "/v1/sports", &key, 200).await;
    let later = cluster.node("a").issue("--burst 100000");
    cluster.node("b").link.mend();
    answers(cluster.node("b"), "/v1/sports", &later, 200).await;
    cluster.same("/v1/sports/mma/odds", &later).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_acknowledged_is_lost_when_the_engine_is_killed() {
    let Some(mut cluster) = Cluster::start("nothing_acknowledged_is_lost_when_the_engine_is_killed") else { return };
    let keys: Vec<_> = (0..5).map(|number| cluster.nodes[number % 3].issue("--burst 100000")).collect();
    cluster.engine.kill();
    let refused = cluster.node("a").run("keys issue --sandbox --name refused");
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.complaint().contains("the engine"), "{refused:?}");
    cluster.engine.start_again();
    all_follow(&cluster).await;
    for node in &cluster.nodes {
        for key in &keys {
            answers(node, "/v1/sports", key, 200).await;
        }
    }
    let key = cluster.node("b").issue("--burst 100000");
    cluster.same("/v1/sports/mma/odds", &key).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_refuse_to_go_back_when_the_engine_has_lost_its_data() {
    let Some(mut cluster) = Cluster::start("nodes_refuse_to_go_back_when_the_engine_has_lost_its_data") else { return };
    let key = cluster.node("a").issue("--burst 100000");
    for node in &cluster.nodes {
        answers(node, "/v1/sports", &key, 200).await;
    }
    assert!(cluster.node("a").run("cluster reseed").failed().contains("a server runs on"));
    cluster.engine.kill();
    cluster.engine.lose_data();
    cluster.engine.start_again();
    for node in &cluster.nodes {
        answers(node, "/v1/sports", &key, 503).await;
        until("it says so", async || node.standing() == "lost").await;
        let detail = node.cluster()["detail"].as_str().expect("a detail").to_owned();
        assert!(detail.contains("oddsbox cluster reseed"), "{detail}");
    }
    let refused = cluster.node("a").run("keys issue --sandbox --name refused").failed();
    assert!(refused.contains("has lost what this node has applied"), "{refused}");
    for name in ["a", "b", "c"] {
        cluster.node(name).take().terminated();
    }
    let refused = cluster.node("b").refused();
    assert!(refused.contains("oddsbox cluster reseed"), "{refused}");
    cluster.node("a").run("cluster reseed").succeeded();
    cluster.node("a").serve();
    answers(cluster.node("a"), "/v1/sports", &key, 200).await;
    let refused = cluster.node("b").refused();
    assert!(refused.contains("begun anew from another node"), "{refused}");
    for name in ["b", "c"] {
        std::fs::remove_file(cluster.node(name).directory.file()).expect("its file");
        cluster.node(name).serve();
    }
    cluster.same("/v1/sports/mma/odds", &key).await;
    assert!(cluster.node("a").take().terminated().0 == Some(0));
    let refused = cluster.node("a").run("cluster reseed").failed();
    assert!(refused.contains("nothing to begin anew"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_that_has_lost_the_last_entries_is_not_followed() {
    let Some(mut cluster) = Cluster::start("engine_that_has_lost_the_last_entries_is_not_followed") else { return };
    let key = cluster.node("a").issue("--burst 100000");
    for node in &cluster.nodes {
        answers(node, "/v1/sports", &key, 200).await;
    }
    // As one that wrote to its disk once a second does: it is back with what was on its disk.
    for node in &cluster.nodes {
        node.link.cut();
    }
    let last = cluster.engine.command(&["hget", "oddsbox:cluster", "last"]);
    let entries = cluster.engine.command(&["xrevrange", "oddsbox:log", "+", "-", "count", "2"]);
    let before =
        entries.lines().filter(|line| line.starts_with(|first: char| first.is_ascii_digit()) && line.contains('-'));
    let before = before.map(str::trim).find(|id| *id != last).expect("an entry before the last one").to_owned();
    cluster.engine.command(&["xdel", "oddsbox:log", &last]);
    // Somebody had not come as far, and has gone on from there.
    let fork = ["xadd", "oddsbox:log", "*", "after", &before, "node", "d", "number", "1", "fence", "", "entry", "{}"];
    let fork = cluster.engine.command(&fork);
    cluster.engine.command(&["hset", "oddsbox:cluster", "last", &fork]);
    for node in &cluster.nodes {
        node.link.mend();
    }
    for node in &cluster.nodes {
        until("it goes no further", async || node.standing() == "lost").await;
        answers(node, "/v1/sports", &key, 503).await;
    }
    for name in ["a", "b", "c"] {
        cluster.node(name).take().terminated();
    }
    cluster.node("c").run("cluster reseed").succeeded();
    cluster.node("c").serve();
    answers(cluster.node("c"), "/v1/sports", &key, 200).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn engine_that_is_full_is_named_and_all_goes_on_when_there_is_room() {
    let test = "engine_that_is_full_is_named_and_all_goes_on_when_there_is_room";
    let Some(mut cluster) = Cluster::start(test) else { return };
    let key = cluster.node("a").issue("--burst 100000");
    cluster.engine.command(&["config", "set", "maxmemory", "1mb"]);
    until("it is refused", async || {
        let refused = cluster.nodes[0].run("keys issue --sandbox --name refused");
        refused.code == Some(1) && refused.complaint().contains("maxmemory")
    })
    .await;
    for node in &cluster.nodes {
        answers(node, "/v1/sports", &key, 503).await;
    }
    cluster.engine.command(&["config", "set", "maxmemory", "0"]);
    for node in &cluster.nodes {
        answers(node, "/v1/sports", &key, 200).await;
    }
    cluster.node("b").issue("");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_engine_slows_commands_and_nothing_else() {
    let Some(mut cluster) = Cluster::start("slow_engine_slows_commands_and_nothing_else") else { return };
    let key = cluster.node("a").issue("--burst 100000");
    for node in &cluster.nodes {
        answers(node, "/v1/sports", &key, 200).await;
        node.link.delay(Duration::from_millis(150));
    }
    for _ in 0..20 {
        for node in &cluster.nodes {
            assert_eq!(node.get("/v1/sports", &key).await.status, 200, "{}", node.name);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    cluster.node("b").run(&format!("keys revoke {}", key.id)).succeeded();
    for node in &cluster.nodes {
        assert_eq!(node.get("/v1/sports", &key).await.status, 401, "{}", node.name);
    }
}

#[test]
fn node_starts_when_the_engine_does_not_confirm_its_start_in_time() {
    let Some(engine) = RedisServer::start("node_starts_when_the_engine_does_not_confirm_its_start_in_time") else {
        return;
    };
    let mut node = Node::new(&engine, "a", &[]);
    node.run("cluster init").succeeded();
    node.link.lose(r#""action":"start""#);
    node.serve();
    assert!(node.link.has_lost());
    assert!(node.server().log().contains("the start of this node is not in the audit log yet; trying again"));
    let audit = node.json("audit");
    let starts = audit.as_array().expect("entries").iter().filter(|entry| entry["action"] == "start");
    assert_eq!(starts.count(), 1, "{audit:#}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replica_takes_over() {
    let Some(mut cluster) = Cluster::start("replica_takes_over") else { return };
    let replica = RedisServer::start("replica_takes_over").expect("a second server");
    let (primary_port, own_port) = (cluster.engine.port().to_string(), replica.port());
    replica.command(&["replicaof", "127.0.0.1", &primary_port]);
    until("it has everything", async || replica.command(&["info", "replication"]).contains("master_link_status:up"))
        .await;
    let key = cluster.node("a").issue("--burst 100000");
    let last = cluster.engine.command(&["hget", "oddsbox:cluster", "last"]);
    until("it has that, too", async || replica.command(&["hget", "oddsbox:cluster", "last"]) >= last).await;
    for node in &cluster.nodes {
        node.link.cut();
    }
    let last = cluster.engine.command(&["hget", "oddsbox:cluster", "last"]);
    until("it has all", async || replica.command(&["hget", "oddsbox:cluster", "last"]) == last).await;
    cluster.engine.kill();
    replica.command(&["replicaof", "no", "one"]);
    for node in &cluster.nodes {
        node.link.lead_to(own_port);
        node.link.mend();
    }
    all_follow(&cluster).await;
    for node in &cluster.nodes {
        answers(node, "/v1/sports", &key, 200).await;
    }
    cluster.node("b").run(&format!("keys revoke {}", key.id)).succeeded();
    for node in &cluster.nodes {
        assert_eq!(node.get("/v1/sports", &key).await.status, 401, "{}", node.name);
    }
}
