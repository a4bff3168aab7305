//! An hour of the archive.

use serde_json::{Value, json};

use super::fixture::{EVENING, closed, event, every_sport, moneyline_at, odds_in, remove, score, time};
use crate::harness::Service;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// Changes of an hour: it has begun at 23:39, and goes on for some minutes of the next hour.
async fn changed() -> Service {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    service.advance(30 * 60).await;
    service.ingest(&moneyline_at("mma", "m1", "draftkings", &time(1800), -120, 100)).await;
    service.advance(30).await;
    service.ingest(&closed("mma", "m1", "draftkings", "moneyline", &time(1830))).await;
    service.ingest(&event("mma", "m7", EVENING)).await;
    service.ingest(&score("mma", "m1", "live", 1, 0, &time(1830))).await;
    service.ingest(&moneyline_at("tennis", "t1", "fanduel", &time(1830), -120, 100)).await;
    service.advance(30).await;
    service.ingest(&remove("mma", "m7")).await;
    service.advance(30).await;
    service
}

#[tokio::test]
async fn hour_has_the_events_of_the_stream_with_their_positions() {
    let service = changed().await;
    let path = "/v1/sports/mma/archive/2026-11-15T00";
    assert_eq!(service.get(path).await.status, 404, "it is not over");
    service.advance(3600).await;
    let answer = service.get(path).await;
    assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/x-ndjson")));
    let lines = lines(answer.text());
    let types: Vec<&str> = lines.iter().map(|line| line["type"].as_str().unwrap()).collect();
    assert!(types.iter().all(|kind| ["odds", "event", "score", "source"].contains(kind)), "{types:?}");
    assert!(lines.iter().all(|line| line["sport_key"] == "mma"), "{lines:#?}");
    let of_kind = |kind: &str| lines.iter().filter(|line| line["type"] == kind).cloned().collect::<Vec<_>>();
    let odds = of_kind("odds");
    assert_eq!(odds[0]["records"][0]["outcomes"][0]["price"], -120);
    assert_eq!(odds[1]["closed"].as_array().unwrap().len(), 1);
    assert_eq!(of_kind("score").len(), 1);
    let removed = of_kind("event").pop().unwrap();
    assert_eq!((&removed["id"], &removed["status"]), (&json!("m7"), &json!("removed")));
    // A position of it is one of the log: what follows is what follows there.
    let position = odds[0]["position"].as_str().unwrap();
    let rest = service.get(&format!("/v1/changes?since={position}&sports=mma")).await.json();
    assert_eq!((&rest["closed"], &rest["removed"][0]["id"]), (&odds[1]["closed"], &json!("m7")));
}

#[tokio::test]
async fn hour_that_something_followed_never_changes() {
    let service = changed().await;
    service.advance(3600).await;
    let path = "/v1/sports/mma/archive/2026-11-15T00";
    let before = service.get(path).await;
    service.ingest(&moneyline_at("mma", "m1", "draftkings", &time(5490), -140, 120)).await;
    service.advance(60).await;
    let after = service.get(path).await;
    assert_eq!(after.header("cache-control"), Some("private, max-age=31536000, immutable"));
    assert_eq!(after.text(), before.text());
    let key = service.live.clone();
    let service = service.restart_now().await;
    assert_eq!(service.get_as(&key, path).await.text(), before.text());
}

#[tokio::test]
async fn prices_are_in_the_format_that_they_were_quoted_in() {
    let service = changed().await;
    let outcomes = r#"[{"name":"Home m1","price":"2.37"},{"name":"Away m1","price":"1.61"}]"#;
    service.ingest(&odds_in("decimal", "mma", "m1", "betmgm", "moneyline", &time(1920), outcomes)).await;
    service.advance(3600).await;
    let answer = service.get("/v1/sports/mma/archive/2026-11-15T00?bookmaker=betmgm").await;
    let lines = lines(answer.text());
    let record = lines.iter().rev().find_map(|line| line["records"].get(0)).expect("a record");
    assert_eq!(record["format"], "decimal");
    assert_eq!(record["outcomes"][0]["price"], 2.37);
}

#[tokio::test]
async fn hours_that_cannot_be_answered_say_why() {
    let service = changed().await;
    for (hour, status) in
        [("2026-11-14T22", 410), ("2026-11-14T23", 410), ("2099-01-01T00", 404), ("2026-11-15", 400), ("now", 400)]
    {
        let answer = service.get(&format!("/v1/sports/mma/archive/{hour}")).await;
        assert_eq!(answer.status, status, "{hour}: {}", answer.text());
    }
    assert_eq!(service.get("/v1/sports/mma/archive/2026-11-14T22?limit=5").await.status, 400);
    service.advance(3600).await;
    let unknown = service.get("/v1/sports/mma/archive/2026-11-15T00?bookmaker=nobody").await;
    assert_eq!((unknown.status, unknown.param()), (400, "bookmaker".into()));
    assert_eq!(service.get("/v1/sports/chess/archive/2026-11-14T22").await.status, 404);
}
