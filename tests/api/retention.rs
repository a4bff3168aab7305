//! Retention: how long finished events stay listed.

use super::fixture::{EVENING, error, event, event_with, fields, moneyline, score};
use crate::harness::Service;

const HOUR: u64 = 3600;

async fn listed(service: &Service) -> String {
    let events = fields(&service.get("/v1/sports/tennis/events").await, "id").join(" ");
    let scores = fields(&service.get("/v1/sports/tennis/scores").await, "event_id").join(" ");
    format!("{events} / {scores}")
}

fn matches() -> String {
    [
        event("tennis", "cancelled", "2026-11-14T20:00:00Z"),
        event("tennis", "final", "2026-11-14T20:00:00Z"),
        event("tennis", "live", "2026-11-14T20:00:00Z"),
        event("tennis", "scheduled", "2026-11-14T20:00:00Z"),
        moneyline("tennis", "scheduled", "betmgm", -110, -110),
        score("tennis", "live", "live", 1, 0, "2026-11-14T23:38:00Z"),
        score("tennis", "final", "final", 2, 0, "2026-11-14T23:38:00Z"),
        event_with("tennis", "cancelled", "2026-11-14T20:00:00Z", "cancelled"),
    ]
    .concat()
}

#[tokio::test]
async fn only_finished_events_are_removed_72_hours_after_their_last_change() {
    let service = Service::start().await;
    service.ingest(&matches()).await;
    assert_eq!(listed(&service).await, "cancelled final live scheduled / final live scheduled");
    service.advance(72 * HOUR - 61).await;
    assert_eq!(listed(&service).await, "cancelled final live scheduled / final live scheduled");
    service.advance(61).await;
    assert_eq!(listed(&service).await, "live scheduled / live scheduled", "never by commence time alone");
    for id in ["final", "cancelled"] {
        let answer = service.get(&format!("/v1/sports/tennis/events/{id}")).await;
        assert_eq!(error(&answer), (404, "event_not_found".into()));
    }
    assert_eq!(fields(&service.get("/v1/sports/tennis/odds").await, "event_id"), ["scheduled"]);
}

#[tokio::test]
async fn retention_is_a_setting_and_counts_from_the_last_change() {
    let service = Service::start_with(&[("retention", "1h")]).await;
    service.ingest(&matches()).await;
    service.advance(HOUR / 2).await;
    service.ingest(&score("tennis", "final", "final", 2, 1, "2026-11-15T00:00:00Z")).await;
    service.advance(HOUR / 2).await;
    assert_eq!(listed(&service).await, "final live scheduled / final live scheduled", "the score was corrected");
    service.advance(HOUR / 2).await;
    assert_eq!(listed(&service).await, "live scheduled / live scheduled");
}

#[tokio::test]
async fn a_final_events_markets_close() {
    let service = Service::start().await;
    service.ingest(&[event("tennis", "t1", EVENING), moneyline("tennis", "t1", "betmgm", -110, -110)].concat()).await;
    service.ingest(&score("tennis", "t1", "final", 2, 0, "2026-11-14T23:38:59Z")).await;
    service.advance(30).await;
    assert_eq!(service.get("/v1/sports/tennis/odds").await.text(), "[]");
    let sport = service.get("/v1/sports").await.json()["sports"][2].clone();
    assert_eq!((&sport["events"], &sport["books"]), (&0.into(), &0.into()));
    assert_eq!(listed(&service).await, "t1 / t1");
}
