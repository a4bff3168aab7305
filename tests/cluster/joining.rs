//! How nodes come together, come back, and part.

use super::engine::RedisServer;
use super::nodes::{Cluster, Node, answers};
use crate::process::command::{file_with, until};

const LINES: &str = r#"{"type":"bookmaker","key":"acme","title":"Acme","regions":["us"]}
{"type":"event","sport":"mma","id":"e1","competition":"c","commence_time":"2036-11-15T00:00:00Z","home":"A","away":"B","status":"scheduled"}
{"type":"odds","sport":"mma","event":"e1","bookmaker":"acme","market":"moneyline","last_update":"2026-01-14T11:59:00Z","format":"decimal","outcomes":[{"name":"A","price":1.91},{"name":"B","price":2.0}]}
"#;

/// Removes from the log, as a node on duty does after an hour.
fn trim_log(engine: &RedisServer) {
    let script = include_str!("../../src/cluster/engine/redis/trim.lua");
    let identity = engine.command(&["hget", "oddsbox:cluster", "log"]);
    let done = engine.command(&["eval", script, "1", "oddsbox", &identity, "0", "1000000000"]);
    assert_eq!(done, "1");
}

/// What each node would export, and its audit log.
fn exports(cluster: &Cluster) -> Vec<(String, String)> {
    let export = |node: &Node| {
        let world = node.run("export --world live").succeeded().stdout;
        (world, node.run("audit --json").succeeded().stdout)
    };
    cluster.nodes.iter().map(export).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_join_from_empty_directories_and_answer_the_same() {
    let Some(mut cluster) = Cluster::start("nodes_join_from_empty_directories_and_answer_the_same") else { return };
    let (_kept, lines) = file_with(LINES.as_bytes());
    cluster.node("b").json(&format!("ingest {}", lines.display()));
    let key = cluster.node("c").issue("--burst 100000");
    for path in [
        "/v1/sports/mma/odds",
        "/v1/sports/mma/events?limit=3",
        "/v1/sports/tennis/odds?odds_format=american",
        "/v1/sports",
    ] {
        cluster.same(path, &key).await;
    }
    let production = cluster.node("a").json("keys issue --live --name live --approved-by tests --burst 100000");
    let live = (&production).into();
    until("the price is published", async || {
        cluster.same("/v1/sports/mma/odds", &live).await.text().contains("\"acme\"")
    })
    .await;

    // One that was killed goes on where it was, and one that was stopped, too.
    cluster.node("b").kill();
    cluster.node("a").json("keys issue --sandbox --name meanwhile");
    cluster.node("b").serve();
    cluster.node("c").stop();
    cluster.node("c").serve();
    until("all have the same", async || {
        let exports = exports(&cluster);
        exports.iter().all(|export| *export == exports[0]) && exports[0].1.contains("meanwhile")
    })
    .await;
    cluster.same("/v1/sports/mma/odds", &live).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn single_node_becomes_the_first_of_a_cluster_and_a_single_node_again() {
    let test = "single_node_becomes_the_first_of_a_cluster_and_a_single_node_again";
    let Some(engine) = RedisServer::start(test) else { return };
    let mut first = Node::new(&engine, "first", &[]);
    let (_kept, lines) = file_with(LINES.as_bytes());
    let single = first.directory.serve_with(&[]);
    first.directory.json(&format!("ingest {}", lines.display()));
    let key = (&first.directory.json("keys issue --sandbox --name old")).into();
    assert!(first.run("cluster init").failed().contains("a server runs on"));
    assert!(first.run("cluster").failed().contains("a single node"));
    single.stop();

    let (_, _, refused) = first.directory.spawn_with(&[]).terminated();
    assert!(!refused.contains("error"), "it is a single node so far: {refused}");
    let refused = first.refused();
    assert!(refused.contains("does not belong to a cluster") && refused.contains("oddsbox cluster init"), "{refused}");
    first.run("cluster init").succeeded();
    assert!(first.run("cluster init").failed().contains("belongs to a cluster already"));
    let refused = first.directory.spawn_with(&[]).failed();
    assert!(refused.contains("cluster.url is not set"), "{refused}");
    first.serve();
    answers(&first, "/v1/sports", &key, 200).await;
    first.stop();

    first.run("cluster leave").succeeded();
    let single = first.directory.serve();
    let exported = first.directory.run("export --world live").succeeded().stdout;
    assert!(exported.contains("\"e1\""), "{exported}");
    let actions = first.directory.run("audit --json").succeeded().stdout;
    assert!(actions.contains("cluster init") && actions.contains("cluster leave"), "{actions}");
    single.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_that_was_away_for_longer_than_the_log_reaches_back_takes_a_copy() {
    let test = "node_that_was_away_for_longer_than_the_log_reaches_back_takes_a_copy";
    let Some(mut cluster) = Cluster::start(test) else { return };
    let key = cluster.node("a").issue("--burst 100000");
    cluster.same("/v1/sports", &key).await;
    cluster.node("c").kill();
    let last = cluster.engine.command(&["hget", "oddsbox:cluster", "last"]);
    let later = cluster.node("a").issue("--burst 100000");
    until("the log begins after what it has applied", async || {
        // Keeps what a node that runs has yet to apply. The lease of the one that was killed has to end first.
        cluster.node("a").issue("");
        trim_log(&cluster.engine);
        cluster.engine.command(&["hget", "oddsbox:cluster", "trimmed"]) > last
    })
    .await;
    let log = cluster.node("c").serve().log();
    assert!(log.contains("waiting for another node to send a copy") && log.contains("in place"), "{log}");
    cluster.same("/v1/sports", &later).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn restored_backup_takes_the_place_of_a_cluster_only_when_asked_to() {
    let test = "restored_backup_takes_the_place_of_a_cluster_only_when_asked_to";
    let Some(mut cluster) = Cluster::start(test) else { return };
    let key = cluster.node("a").issue("--burst 100000");
    let file = cluster.node("a").directory.path().join("backup").display().to_string();
    cluster.node("a").run(&format!("backup {file}")).succeeded();
    for name in ["a", "b", "c"] {
        cluster.node(name).stop();
    }
    // A node that does not run can be copied, too.
    cluster.node("b").run(&format!("backup --force {file}")).succeeded();
    cluster.node("a").run(&format!("restore {file}")).succeeded();
    let refused = cluster.node("a").refused();
    assert!(refused.contains("does not belong to a cluster"), "{refused}");
    assert!(cluster.node("a").run("cluster init").failed().contains("--replace"));
    cluster.node("a").run("cluster init --replace").succeeded();
    cluster.node("a").serve();
    answers(cluster.node("a"), "/v1/sports", &key, 200).await;
    // The others are of a cluster that is gone.
    let refused = cluster.node("b").refused();
    assert!(refused.contains("holds another cluster"), "{refused}");
}
