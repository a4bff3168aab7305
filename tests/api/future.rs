//! Messages dated in the future: a wrong clock upstream must never pin a price, an event or a score.

use oddsbox::model::World;

use super::fixture::{EVENING, event, fields, moneyline_at, odds_at, read, score};
use crate::harness::{START, Service};

/// The furthest time ahead that is clamped to now, and a second further.
const NEAR: &str = "2026-11-14T23:40:00Z";
const FAR: &str = "2026-11-14T23:40:01Z";

async fn reasons(service: &Service, lines: &str) -> Vec<(String, u64)> {
    let report = service.ingest_report(World::Live, lines).await;
    report.reasons().map(|(reason, count)| (reason.key().to_owned(), count)).collect()
}

async fn with_prices() -> Service {
    let service = Service::start().await;
    let lines = [
        event("tennis", "t1", EVENING),
        moneyline_at("tennis", "t1", "betmgm", "2026-11-14T23:38:00Z", -110, -110),
        score("tennis", "t1", "live", 1, 0, "2026-11-14T23:38:00Z"),
    ];
    service.ingest(&lines.concat()).await;
    service
}

#[tokio::test]
async fn lines_dated_in_the_future_are_rejected_whatever_their_type() {
    let service = with_prices().await;
    let odds = moneyline_at("tennis", "t1", "betmgm", "2026-11-14T23:38:00Z", 250, -300);
    let with = |line: &str, more: &str| line.trim_end().strip_suffix('}').expect("a line").to_owned() + more;
    let lines = [
        moneyline_at("tennis", "t1", "betmgm", FAR, 250, -300),
        odds_at("tennis", "t1", "betmgm", "moneyline", FAR, "[]"),
        score("tennis", "t1", "live", 2, 0, FAR),
        read("tennis", "betmgm", FAR, 5),
        with(&event("tennis", "t2", EVENING), &format!(r#","as_of":"{FAR}"}}"#)),
        with(&odds, &format!(r#","as_of":"{FAR}"}}"#)),
        with(&score("tennis", "t1", "live", 2, 0, START), &format!(r#","as_of":"{FAR}"}}"#)),
        format!(
            r#"{{"type":"closed","sport":"tennis","event":"t1","bookmaker":"betmgm","market":"moneyline","at":"{FAR}"}}"#
        ),
        format!(r#"{{"type":"source","sport":"tennis","bookmaker":"betmgm","at":"{FAR}","latency_ms":5}}"#),
        format!(
            r#"{{"type":"source","sport":"tennis","bookmaker":"betmgm","at":"{START}","latency_ms":5,"empty_since":"{FAR}"}}"#
        ),
    ];
    for line in lines {
        assert_eq!(reasons(&service, &line).await, [("in_future".to_owned(), 1)], "{line}");
    }
    // The stored values are unchanged, and correct messages of the next second are accepted.
    assert_eq!(fields(&service.get("/v1/sports/tennis/events").await, "id"), ["t1"]);
    assert_eq!(fields(&service.get("/v1/sports/tennis/scores").await, "home_score"), ["1"]);
    let odds = service.get("/v1/sports/tennis/odds").await;
    assert_eq!(fields(&odds, "last_update"), ["2026-11-14T23:38:00Z"]);
    let news = [
        moneyline_at("tennis", "t1", "betmgm", "2026-11-14T23:38:01Z", 120, -140),
        score("tennis", "t1", "live", 1, 1, "2026-11-14T23:38:01Z"),
        read("tennis", "betmgm", START, 5),
    ];
    service.ingest(&news.concat()).await;
}

#[tokio::test]
async fn rejected_line_does_not_affect_other_lines() {
    let service = Service::start().await;
    let lines = [
        event("tennis", "t1", EVENING),
        moneyline_at("tennis", "t1", "betmgm", "2030-01-01T00:00:00Z", -110, -110),
        moneyline_at("tennis", "t1", "fanduel", START, -110, -110),
    ];
    assert_eq!(reasons(&service, &lines.concat()).await, [("in_future".to_owned(), 1)]);
    assert_eq!(fields(&service.get("/v1/sports/tennis/odds").await, "bookmaker"), ["fanduel"]);
}

#[tokio::test]
async fn time_up_to_a_minute_ahead_is_clamped_to_now() {
    let service = with_prices().await;
    let lines = [
        moneyline_at("tennis", "t1", "betmgm", NEAR, 250, -300),
        score("tennis", "t1", "live", 2, 0, NEAR),
        read("tennis", "betmgm", NEAR, 5),
    ];
    service.ingest(&lines.concat()).await;
    service.advance(30).await;
    assert_eq!(fields(&service.get("/v1/sports/tennis/odds").await, "last_update"), [START]);
    assert_eq!(fields(&service.get("/v1/sports/tennis/scores").await, "updated_at"), [START]);
    // A correct price a second later is accepted.
    service.ingest(&moneyline_at("tennis", "t1", "betmgm", "2026-11-14T23:39:01Z", 120, -140)).await;
}
