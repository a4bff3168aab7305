//! What must be the same on all nodes, and what must not.

use super::engine::RedisServer;
use super::nodes::Node;
use crate::process::command::until;
use crate::process::deploy::{metrics, missing_for_dashboard};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn node_with_other_settings_or_the_same_name_is_refused() {
    let Some(engine) = RedisServer::start("node_with_other_settings_or_the_same_name_is_refused") else { return };
    let mut a = Node::new(&engine, "a", &[]);
    let early = Node::new(&engine, "early", &[]);
    let refused = early.refused();
    assert!(refused.contains("holds no cluster named \"oddsbox\"") && refused.contains("cluster init"), "{refused}");
    a.run("cluster init").succeeded();
    engine.command(&["config", "set", "appendonly", "no"]);
    a.serve();
    until("it warns", async || a.server().log().contains("set appendonly yes")).await;
    let mut other = Node::new(&engine, "other", &[("ODDSBOX_REFRESH", "5s")]);
    let refused = other.refused();
    assert!(refused.contains("refresh is 5s here and 1s on node a"), "{refused}");
    let twin = Node::new(&engine, "a", &[]);
    let refused = twin.refused();
    assert!(refused.contains("another node has the name of this one"), "{refused}");
    assert!(refused.contains("cluster.node"), "{refused}");

    // Once nobody else runs, the settings are those of whoever is started first.
    a.stop();
    other.serve();
    let refused = a.refused();
    assert!(refused.contains("refresh is 1s here and 5s on node other"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_are_listed_and_removed() {
    let Some(engine) = RedisServer::start("nodes_are_listed_and_removed") else { return };
    let mut a = Node::new(&engine, "a", &[]);
    a.run("cluster init").succeeded();
    assert!(a.run("cluster").failed().contains("no server runs"));
    a.serve();
    let mut b = Node::new(&engine, "b", &[]);
    b.serve();
    b.stop();
    // As of the last contact.
    until("it has ended", async || a.run("cluster").succeeded().stdout.contains("\nb\tended\t")).await;
    let listed = a.run("cluster").succeeded().stdout;
    assert!(listed.starts_with("This is a: following, at "), "{listed}");
    let first = &a.cluster()["nodes"][0];
    assert_eq!(first["on_duty"], true, "{listed}");
    assert_eq!(first["address"], a.address().to_string(), "{listed}");
    assert_eq!(missing_for_dashboard(&metrics(&a.directory)), Vec::<String>::new());
    a.run("cluster remove b").succeeded();
    assert!(a.run("cluster remove b").failed().contains("no node \"b\""));
    let names = |node: &Node| node.cluster()["nodes"].as_array().expect("nodes").len();
    until("it is gone", async || names(&a) == 1).await;
}
