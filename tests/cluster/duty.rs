//! One node at a time polls and publishes.

use std::fs;
use std::time::{Duration, Instant};

use super::nodes::Cluster;
use crate::process::command::until;
use crate::pull::upstream::{Reply, Upstream};

const ODDS: &str = r#"[{"id":"e912304de2b2ce35b473ce2ecd3d1502","sport_key":"mma_mixed_martial_arts","sport_title":"MMA","commence_time":"2036-11-18T23:10:00Z","home_team":"A","away_team":"B","bookmakers":[{"key":"draftkings","title":"DraftKings","last_update":"2026-10-10T12:10:29Z","markets":[{"key":"h2h","last_update":"2026-10-10T12:10:29Z","outcomes":[{"name":"A","price":1.5},{"name":"B","price":2.5}]}]}]}]"#;

/// How long it may take until another node polls.
const TAKEOVER: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn upstream_is_polled_by_one_node_at_a_time_and_by_another_when_that_dies() {
    let test = "upstream_is_polled_by_one_node_at_a_time_and_by_another_when_that_dies";
    let upstream = Upstream::start(None).await;
    upstream.answer("/odds", Reply::Json(ODDS.to_owned()));
    upstream.set_latency(Duration::from_millis(200));
    let config = tempfile::tempdir().expect("a directory");
    let file = config.path().join("oddsbox.toml");
    let feed = format!(
        "[feeds.us]\nkind = \"the-odds-api\"\nurl = \"http://{}/v4\"\nkey = \"k\"\nsports = [\"mma_mixed_martial_arts\"]\ninterval = \"1s\"\n",
        upstream.address
    );
    fs::write(&file, feed).expect("a file");
    let path = file.to_str().expect("a text");
    let Some(mut cluster) = Cluster::start_with(test, &[("ODDSBOX_CONFIG", path)]) else { return };
    let polls = || upstream.requests().iter().filter(|request| request.contains("/odds")).count();
    until("it is polled", async || polls() >= 3).await;

    // Killed, paused and cut off, one after the other: another one polls.
    for fault in ["kill", "pause", "cut"] {
        let holder = cluster.on_duty().expect("a node that polls");
        match fault {
            "kill" => drop(cluster.node(&holder).kill()),
            "pause" => cluster.node(&holder).server().pause(),
            _ => cluster.node(&holder).link.cut(),
        }
        let (before, began) = (polls(), Instant::now());
        // One of the holder itself may be under way.
        until("another one polls", async || polls() >= before + 2).await;
        let took = began.elapsed();
        println!("after {fault}: polled again twice within {took:?}");
        assert!(took < TAKEOVER + Duration::from_secs(2), "{fault}: {took:?}");
        match fault {
            "kill" => drop(cluster.node(&holder).serve()),
            "pause" => cluster.node(&holder).server().resume(),
            _ => cluster.node(&holder).link.mend(),
        }
        until("all follow", async || cluster.nodes.iter().all(|node| node.standing() == "following")).await;
    }
    assert_eq!(upstream.in_flight_max(), 1, "it is never polled by two nodes at a time");
}
