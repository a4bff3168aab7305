//! kill -9 during ingests: acknowledged batches are complete, and the next server is ready soon.
//! (Keys, revocations, rotations and quotas under kill -9 are covered by the tests of the binary.)

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use crate::api::fixture::{EVENING, event, moneyline_at};
use crate::process::client::Connection;
use crate::process::command::{Directory, Issued, Server, Started, file_with, until};
use crate::process::seed::{Random, short_or_long};

const EVENTS: u32 = 40;

/// Every event at the price of one round, as one batch: all of it or nothing.
fn round(number: i32) -> String {
    let at = format!("2026-11-14T{:02}:{:02}:{:02}Z", number / 3600, number / 60 % 60, number % 60);
    (0..EVENTS).fold(String::new(), |mut lines, id| {
        let id = format!("t{id}");
        let _ = write!(
            lines,
            "{}{}",
            event("tennis", &id, EVENING),
            moneyline_at("tennis", &id, "betmgm", &at, 100 + number, 200)
        );
        lines
    })
}

/// The price of every event, after asserting that they are equal.
async fn price(server: &Server, key: &Issued) -> Option<i64> {
    let mut connection = Connection::open(server.address()).await.expect("a connection");
    let odds = connection.get("/v1/sports/tennis/odds?limit=500", &key.secret).await.expect("an answer").json();
    let records = odds.as_array().expect("a list");
    let prices: Vec<i64> =
        records.iter().map(|record| record["outcomes"][0]["price"].as_i64().expect("a price")).collect();
    assert!(records.is_empty() || records.len() == EVENTS as usize, "{} of {EVENTS}", records.len());
    assert!(prices.windows(2).all(|pair| pair[0] == pair[1]), "a batch is there by half: {prices:?}");
    prices.first().copied()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ingested_batches_are_complete_after_a_kill() {
    let mut random = Random::new();
    let directory = Directory::new();
    // Each crash may cost a lease.
    let issue = "keys issue --live --approved-by me --name app --burst 1000000 --per-day 90000000";
    let key = Issued::from(&directory.json(issue));
    let (mut number, mut acknowledged) = (0, 0);
    for restart in 0..short_or_long(8, 200) {
        let mut server = directory.serve_with(&[("ODDSBOX_LOG", "error")]);
        let found = price(&server, &key).await.map_or(0, |price| price - 100);
        assert!(found >= acknowledged, "restart {restart}: round {found} after round {acknowledged} was acknowledged");
        // Some rounds are acknowledged; the server is killed during the next one.
        for _ in 0..random.below(3) {
            number += 1;
            let (_kept, feed) = file_with(round(number).as_bytes());
            directory.run(&format!("ingest {}", feed.display())).succeeded();
            acknowledged = i64::from(number);
        }
        number += 1;
        let (_kept, feed) = file_with(round(number).as_bytes());
        let mut command = Started::new(directory.path(), ["ingest".as_ref(), feed.as_os_str()]);
        tokio::time::sleep(Duration::from_micros(random.below(60_000))).await;
        assert!(!server.has_ended(), "{}", server.log());
        server.kill();
        until("the command ends", async || command.has_ended()).await;
        if command.done().code == Some(0) {
            acknowledged = i64::from(number);
        }
    }
    println!("{number} rounds, {acknowledged} acknowledged last");
    assert_eq!(directory.json("check")["clean"], true);
}

/// Run it by name: `cargo test --release --test integration ready_again -- --ignored --nocapture`. `ODDSBOX_RECORDS`
/// sets the number of records.
#[test]
#[ignore = "it measures, and takes a while"]
fn server_is_ready_again_after_a_kill() {
    let records: u32 = std::env::var("ODDSBOX_RECORDS").ok().and_then(|text| text.parse().ok()).unwrap_or(100_000);
    let directory = Directory::new();
    let books = ["betmgm", "draftkings", "unibet", "fanduel", "ladbrokes_uk"];
    let mut lines = String::new();
    for id in 0..records / 5 {
        let id = format!("t{id}");
        lines.push_str(&event("tennis", &id, EVENING));
        for book in books {
            lines.push_str(&moneyline_at("tennis", &id, book, "2026-11-14T23:00:00Z", 110, -120));
        }
    }
    let (_kept, feed) = file_with(lines.as_bytes());
    let server = directory.serve_with(&[("ODDSBOX_LOG", "error")]);
    directory.run(&format!("ingest {}", feed.display())).succeeded();
    server.kill();
    for _ in 0..5 {
        let began = Instant::now();
        let server = directory.serve_with(&[("ODDSBOX_LOG", "error")]);
        println!("ready {:?} after kill -9 with {records} records", began.elapsed());
        server.kill();
    }
}
