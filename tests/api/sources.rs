//! Stale sources and retired sources.

use super::fixture::{EVENING, closed, event, moneyline, moneyline_at, read, records, strings};
use crate::harness::Service;

const BOUTS: &str = "/v1/sports/mma/odds?group=bout";

async fn with_two_books() -> Service {
    let service = Service::start().await;
    let lines = [
        event("mma", "m1", EVENING),
        moneyline_at("mma", "m1", "betmgm", "2026-11-14T23:39:00Z", -110, -110),
        moneyline_at("mma", "m1", "fanduel", "2026-11-14T23:39:00Z", -110, -110),
    ];
    service.ingest(&lines.concat()).await;
    service
}

async fn status(service: &Service) -> String {
    service.get("/v1/status").await.json()["status"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_source_is_stale_after_120_seconds_without_a_good_read() {
    let service = with_two_books().await;
    service.pass(120);
    assert_eq!(status(&service).await, "ok");
    service.pass(1);
    assert_eq!(status(&service).await, "degraded");
}

#[tokio::test]
async fn stale_after_is_a_setting() {
    let service = Service::start_with(&[("stale_after", "10s")]).await;
    let lines = [event("mma", "m1", EVENING), moneyline_at("mma", "m1", "betmgm", "2026-11-14T23:39:00Z", -110, -110)];
    service.ingest(&lines.concat()).await;
    service.pass(10);
    assert_eq!(status(&service).await, "ok");
    service.pass(1);
    assert_eq!(status(&service).await, "degraded");
}

#[tokio::test]
async fn a_stale_books_prices_are_still_served() {
    let service = with_two_books().await;
    service.advance(600).await;
    assert_eq!(status(&service).await, "degraded");
    assert_eq!(records(&service.get("/v1/sports/mma/odds").await), ["m1 betmgm moneyline", "m1 fanduel moneyline"]);
    let json = service.get(BOUTS).await.json();
    assert_eq!(strings(&json["sources"], "stale"), ["true", "true"]);
    assert_eq!(strings(&json["bouts"][0]["books"], "book"), ["betmgm", "fanduel"]);
}

#[tokio::test]
async fn source_without_a_price_is_never_stale_and_is_retired_after_24_hours() {
    let service = with_two_books().await;
    service.ingest(&closed("mma", "m1", "fanduel", "moneyline", "2026-11-14T23:39:00Z")).await;
    service.advance(86_399).await;
    service.ingest(&read("mma", "betmgm", "2026-11-15T23:38:59Z", 1)).await;
    assert_eq!(status(&service).await, "ok", "nothing that is served is old");
    service.advance(1).await;
    let sources = service.get(BOUTS).await.json()["sources"].clone();
    assert_eq!((strings(&sources, "book"), strings(&sources, "stale")), two("betmgm", "fanduel", "false"));
    service.advance(60).await;
    service.ingest(&read("mma", "betmgm", "2026-11-15T23:40:00Z", 1)).await;
    service.advance(30).await;
    assert_eq!(strings(&service.get(BOUTS).await.json()["sources"], "book"), ["betmgm"]);
}

/// Two bookmakers and the `stale` value of both.
fn two(one: &str, other: &str, stale: &str) -> (Vec<String>, Vec<String>) {
    (vec![one.to_owned(), other.to_owned()], vec![stale.to_owned(), stale.to_owned()])
}

#[tokio::test]
async fn sport_whose_only_fresh_source_is_without_a_price_is_inactive() {
    let service = with_two_books().await;
    let active = async || service.get("/v1/sports").await.json()["sports"][0]["active"].clone();
    service.ingest(&closed("mma", "m1", "fanduel", "moneyline", "2026-11-14T23:39:00Z")).await;
    service.advance(150).await;
    service.ingest(&read("mma", "fanduel", "2026-11-14T23:41:30Z", 1)).await;
    assert_eq!((active().await, status(&service).await), (false.into(), "degraded".to_owned()), "betmgm is stale");
    service.ingest(&closed("mma", "m1", "betmgm", "moneyline", "2026-11-14T23:41:30Z")).await;
    assert_eq!((active().await, status(&service).await), (false.into(), "ok".to_owned()), "no price at all");
    service.ingest(&moneyline_at("mma", "m1", "betmgm", "2026-11-14T23:41:30Z", -110, -110)).await;
    assert_eq!((active().await, status(&service).await), (true.into(), "ok".to_owned()));
}

#[tokio::test]
async fn source_with_prices_is_never_retired() {
    let service = with_two_books().await;
    service.advance(2 * 86_400).await;
    service.advance(60).await;
    assert_eq!(strings(&service.get(BOUTS).await.json()["sources"], "book"), ["betmgm", "fanduel"]);
    assert_eq!(status(&service).await, "degraded");
}

#[tokio::test]
async fn sources_are_separate_by_sport() {
    let service = with_two_books().await;
    let lines = [event("boxing", "b1", EVENING), moneyline("boxing", "b1", "betmgm", -110, -110)];
    service.ingest(&lines.concat()).await;
    service.advance(120).await;
    service
        .ingest(
            &[read("mma", "betmgm", "2026-11-14T23:41:00Z", 1), read("mma", "fanduel", "2026-11-14T23:41:00Z", 1)]
                .concat(),
        )
        .await;
    service.advance(30).await;
    assert_eq!(strings(&service.get(BOUTS).await.json()["sources"], "stale"), ["false", "false"]);
    let boxing = service.get("/v1/sports/boxing/odds?group=bout").await.json();
    assert_eq!(strings(&boxing["sources"], "stale"), ["true"]);
}
