//! Feed lines through the admin interface.

use std::io;

use bytes::Bytes;
use serde_json::json;
use tokio::sync::mpsc;

use super::*;
use crate::ingest::{IngestOptions, IngestSummary, PayloadOptions};
use crate::model::{Region, Regions, World};

pub(super) const EVENT: &str = r#"{"type":"event","sport":"mma","id":"e1","competition":"c","commence_time":"2026-11-15T00:00:00Z","home":"A","away":"B","status":"scheduled"}"#;
pub(super) const BOOK: &str = r#"{"type":"bookmaker","key":"acme","title":"Acme","regions":["us"]}"#;

pub(super) fn odds(event: &str, price: &str, second: u32) -> String {
    format!(
        r#"{{"type":"odds","sport":"mma","event":"{event}","bookmaker":"acme","market":"moneyline","last_update":"2026-11-14T11:59:{second:02}Z","format":"decimal","outcomes":[{{"name":"A","price":{price}}},{{"name":"B","price":2.0}}]}}"#
    )
}

/// Far beyond what any wait here takes, also on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
const LIVE: IngestOptions = IngestOptions { world: World::Live, strict: false };
const STRICT: IngestOptions = IngestOptions { world: World::Live, strict: true };

/// Sends a text in pieces of `size` bytes.
async fn feed(
    fixture: &TestServer,
    options: IngestOptions,
    text: &str,
    size: usize,
) -> Result<IngestSummary, AdminError> {
    let access = fixture.find(Access::Create).await.unwrap();
    let (sender, source) = mpsc::channel(4);
    let text = text.to_owned();
    tokio::spawn(async move {
        for piece in text.as_bytes().chunks(size) {
            if sender.send(Ok(Bytes::copy_from_slice(piece))).await.is_err() {
                return;
            }
        }
    });
    let answer = access.ingest(options, source).await;
    access.close().await.unwrap();
    answer
}

async fn records(fixture: &TestServer) -> u64 {
    fixture.ask(Command::Status).await.unwrap()["worlds"]["live"]["records"].as_u64().unwrap()
}

/// A blank line, a broken one, an unknown event, a dropped outcome, something late, and no end of line at the end.
fn mixed() -> String {
    let lines = [
        EVENT.to_owned(),
        BOOK.to_owned(),
        String::new(),
        odds("e1", "1.91", 30),
        "{".to_owned(),
        odds("e2", "1.91", 30),
        odds("e1", "1.0", 40),
        odds("e1", "1.8", 20),
    ];
    lines.join("\n")
}

#[tokio::test]
async fn a_report_tells_every_line_with_and_without_a_server_however_it_is_cut() {
    let mut reports = Vec::new();
    for (size, is_served) in [(7, true), (100_000, true), (7, false), (100_000, false)] {
        let fixture = TestServer::new();
        let server = if is_served { Some(fixture.serve().await) } else { None };
        reports.push(serde_json::to_value(feed(&fixture, LIVE, &mixed(), size).await.unwrap()).unwrap());
        assert_eq!(records(&fixture).await, 1);
        if let Some(server) = server {
            server.stop().await;
        }
    }
    assert!(reports.iter().all(|report| *report == reports[0]), "{reports:#?}");
    let report = &reports[0];
    assert_eq!((&report["lines"], &report["accepted"], &report["rejected"]), (&json!(7), &json!(4), &json!(3)));
    assert_eq!(report["rejected_by_reason"], json!({"bad_json": 1, "late": 1, "unknown_event": 1}));
    assert_eq!(report["dropped_outcomes_by_reason"], json!({"price_too_short": 1}));
    let examples: Vec<_> = report["examples"].as_array().unwrap().iter().map(|e| (&e["line"], &e["reason"])).collect();
    let expected =
        [(5, "bad_json"), (6, "unknown_event"), (8, "late")].map(|(line, reason)| (json!(line), json!(reason)));
    assert_eq!(examples, expected.iter().map(|(line, reason)| (line, reason)).collect::<Vec<_>>());
}

#[tokio::test]
async fn a_long_stream_is_taken_in_batches() {
    let fixture = TestServer::new();
    let server = fixture.serve().await;
    let mut text = format!("{EVENT}\n{BOOK}\n");
    for number in 0..5_000 {
        text.push_str(&odds("e1", &format!("{}.5", 2 + number % 2), number % 60));
        text.push('\n');
    }
    let report = feed(&fixture, LIVE, &text, 4096).await.unwrap();
    assert_eq!(report.lines, 5_002);
    assert_eq!(report.accepted + report.rejected, 5_002);
    assert!(report.examples.len() <= 10 && report.rejected_by_reason.keys().eq(["late"]));
    server.stop().await;
}

#[tokio::test]
async fn a_strict_input_is_written_whole_or_not_at_all() {
    for is_served in [true, false] {
        let fixture = TestServer::new();
        let server = if is_served { Some(fixture.serve().await) } else { None };
        let bad_line = format!("{EVENT}\n{BOOK}\n{}\nnonsense", odds("e1", "1.9", 1));
        let report = feed(&fixture, STRICT, &bad_line, 50).await.unwrap();
        assert_eq!((report.written, report.rejected, report.changed), (false, 1, 0));
        assert_eq!((report.examples[0].line, report.examples[0].reason.as_str()), (4, "bad_json"));
        // Every line can be read, but one of them does not fit the world.
        let bad_event = format!("{EVENT}\n\n{BOOK}\n\n{}\n{}\n", odds("e1", "1.9", 1), odds("e9", "1.9", 1));
        let report = feed(&fixture, STRICT, &bad_event, 50).await.unwrap();
        assert_eq!((report.written, report.rejected, report.accepted, report.changed), (false, 1, 3, 0));
        assert_eq!((report.examples[0].line, report.examples[0].reason.as_str()), (6, "unknown_event"));
        assert_eq!(records(&fixture).await, 0);
        let good = format!("{EVENT}\n{BOOK}\n{}", odds("e1", "1.9", 1));
        let report = feed(&fixture, STRICT, &good, 50).await.unwrap();
        assert_eq!((report.written, report.lines, report.accepted, report.changed), (true, 3, 3, 3));
        assert_eq!(records(&fixture).await, 1);
        let left: Vec<_> =
            std::fs::read_dir(fixture.data.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert!(left.iter().all(|name| !name.to_string_lossy().contains("ingest")), "{left:?}");
        if let Some(server) = server {
            server.stop().await;
        }
    }
}

/// A feeder that sends a line now and then must not wait for a batch to fill.
#[tokio::test]
async fn stream_that_pauses_is_stored_without_waiting_for_a_full_batch() {
    let fixture = TestServer::new();
    let server = fixture.serve().await;
    let access = fixture.find(Access::Existing).await.unwrap();
    let (sender, source) = mpsc::channel(4);
    let lines = format!("{EVENT}\n{BOOK}\n{}\n{{\"type\":\"remove\"", odds("e1", "1.9", 1));
    let watching = async {
        sender.send(Ok(Bytes::from(lines))).await.unwrap();
        let stored = async {
            while records(&fixture).await == 0 {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, stored).await.expect("the line is stored before the input ends");
        // The input breaks off in the middle of a line.
        sender.send(Err(io::Error::other("gone"))).await.unwrap();
    };
    let (answer, ()) = tokio::join!(access.ingest(LIVE, source), watching);
    assert!(answer.is_err());
    assert_eq!(records(&fixture).await, 1);
    server.stop().await;
}

/// One bout: an unknown bookmaker, a lay market, an invalid price.
fn payload() -> String {
    json!([{
        "id": "p1", "sport_key": "mma_mixed_martial_arts", "sport_title": "MMA",
        "commence_time": "2026-11-15T00:00:00Z", "home_team": "A", "away_team": "B",
        "bookmakers": [{"key": "newbook", "title": "New Book", "last_update": "2026-11-14T11:59:00Z", "markets": [
            {"key": "h2h", "outcomes": [{"name": "A", "price": 1.91}, {"name": "B", "price": 2}, {"name": "Draw", "price": 1.0}]},
            {"key": "winning margin", "outcomes": [{"name": "A", "price": 2.0}]},
        ]}],
    }])
    .to_string()
}

async fn feed_payload(fixture: &TestServer, options: &PayloadOptions, text: &str) -> Result<IngestSummary, AdminError> {
    let access = fixture.find(Access::Create).await.unwrap();
    let (sender, source) = mpsc::channel(4);
    sender.send(Ok(Bytes::copy_from_slice(text.as_bytes()))).await.unwrap();
    drop(sender);
    let answer = access.ingest_payload(options, source).await;
    access.close().await.unwrap();
    answer
}

fn payload_options() -> PayloadOptions {
    PayloadOptions {
        world: World::Live,
        strict: false,
        sport: None,
        odds_format: None,
        regions: Regions::only(Region::Us),
    }
}

#[tokio::test]
async fn a_payload_is_reported_alike_with_and_without_a_server() {
    let mut reports = Vec::new();
    for is_served in [true, false] {
        let fixture = TestServer::new();
        let server = if is_served { Some(fixture.serve().await) } else { None };
        let report = feed_payload(&fixture, &payload_options(), &payload()).await.unwrap();
        assert_eq!(records(&fixture).await, 1);
        reports.push(serde_json::to_value(report).unwrap());
        let again = feed_payload(&fixture, &payload_options(), &payload()).await.unwrap();
        assert_eq!((again.changed, again.unchanged), (0, 2), "the same again is no news");
        if let Some(server) = server {
            server.stop().await;
        }
    }
    assert_eq!(reports[0], reports[1]);
    let report = &reports[0];
    assert_eq!((&report["lines"], &report["accepted"], &report["changed"]), (&json!(4), &json!(3), &json!(3)));
    assert_eq!(report["rejected_by_reason"], json!({"unknown_market": 1}));
    assert_eq!(report["dropped_outcomes_by_reason"], json!({"price_too_short": 1}));
    assert_eq!(report["examples"][0]["line"], 1);
}

#[tokio::test]
async fn a_payloads_records_dated_in_the_future_are_rejected_one_by_one() {
    let fixture = TestServer::new();
    let mut events: serde_json::Value = serde_json::from_str(&payload()).unwrap();
    let mut ahead = events[0]["bookmakers"][0].clone();
    ahead["key"] = json!("ahead");
    ahead["last_update"] = json!("2026-11-14T12:01:01Z");
    events[0]["bookmakers"].as_array_mut().unwrap().push(ahead);
    let report = feed_payload(&fixture, &payload_options(), &events.to_string()).await.unwrap();
    assert_eq!(report.rejected_by_reason.get("in_future"), Some(&1), "{report:?}");
    assert!(report.examples.iter().any(|example| example.detail.contains("clock")), "{:?}", report.examples);
    assert_eq!(records(&fixture).await, 1);
    // An archive's own time counts for records that have none.
    let archive = json!({"timestamp": "2026-11-14T12:01:01Z", "data": events}).to_string();
    let archive = archive.replace("\"last_update\"", "\"unknown\"").replace("p1", "p2");
    let report = feed_payload(&fixture, &payload_options(), &archive).await.unwrap();
    assert_eq!(report.rejected_by_reason.get("in_future"), Some(&2), "{report:?}");
    assert_eq!(records(&fixture).await, 1);
}

#[tokio::test]
async fn an_imported_payload_gives_a_bookmaker_of_the_catalogue_its_title() {
    let fixture = TestServer::new();
    let known = payload().replace("newbook", "betmgm");
    feed_payload(&fixture, &PayloadOptions { regions: Regions::NONE, ..payload_options() }, &known).await.unwrap();
    let (context, stopped) = fixture.open();
    let board = context.boards.load_full(World::Live);
    let register = board.register().bookmakers();
    let book = register.get(register.find("betmgm").unwrap()).unwrap();
    assert_eq!((&*book.title, book.regions), ("New Book", Regions::only(Region::Us)));
    drop(context);
    tokio::task::spawn_blocking(|| stopped.join()).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_payload_that_cannot_be_taken_says_why() {
    let fixture = TestServer::new();
    let strict = PayloadOptions { strict: true, ..payload_options() };
    let report = feed_payload(&fixture, &strict, &payload()).await.unwrap();
    assert!(!report.written);
    let nowhere = PayloadOptions { regions: Regions::NONE, ..payload_options() };
    let report = feed_payload(&fixture, &nowhere, &payload()).await.unwrap();
    assert_eq!(report.rejected_by_reason["unknown_bookmaker"], 1);
    assert!(report.examples.iter().any(|example| example.detail.contains("--regions")));
    assert_eq!(records(&fixture).await, 0);
    let error_of = |answer: Result<IngestSummary, AdminError>| answer.unwrap_err().to_string();
    let unclear = payload().replace("1.91", "191").replace("1.0", "150");
    assert!(error_of(feed_payload(&fixture, &payload_options(), &unclear).await).contains("--odds-format"));
    let chess = PayloadOptions { sport: Some("chess".to_owned()), ..payload_options() };
    assert!(
        error_of(feed_payload(&fixture, &chess, &payload()).await)
            .contains("there is no sport or competition \"chess\"")
    );
    assert!(error_of(feed_payload(&fixture, &payload_options(), "[{").await).contains("no JSON"));
}
