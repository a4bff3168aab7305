//! Feed lines and their effect on the public API.

use super::fixture::{
    EVENING, bookmaker, closed, event, fields, first_price, message, moneyline, moneyline_at, read, records, score,
};
use crate::harness::Service;
use oddsbox::model::{Reason, World};

const ODDS: &str = "/v1/sports/mma/odds";

async fn with_fight() -> Service {
    let service = Service::start().await;
    service.ingest(&[event("mma", "m1", EVENING), moneyline("mma", "m1", "betmgm", -110, -110)].concat()).await;
    service
}

async fn reasons(service: &Service, lines: &str) -> Vec<(Reason, u64)> {
    service.ingest_report(World::Live, lines).await.reasons().collect()
}

fn at(second: u32, price: i32) -> String {
    moneyline_at("mma", "m1", "betmgm", &format!("2026-11-14T23:38:{second:02}Z"), price, -150)
}

#[tokio::test]
async fn a_late_price_is_counted_and_dropped() {
    let service = with_fight().await;
    assert_eq!(reasons(&service, &at(29, 200)).await, [(Reason::Late, 1)]);
    service.advance(30).await;
    assert_eq!(first_price(&service.get(ODDS).await), "-110");
    assert_eq!(reasons(&service, &at(30, 300)).await, [], "of the same second is not older");
    service.advance(30).await;
    assert_eq!(first_price(&service.get(ODDS).await), "300");
    assert_eq!(reasons(&service, &(at(40, 400) + &at(35, 350))).await, [(Reason::Late, 1)], "within one batch");
    service.advance(30).await;
    assert_eq!(first_price(&service.get(ODDS).await), "400");
}

#[tokio::test]
async fn a_late_price_does_not_reopen_a_closed_market() {
    let service = with_fight().await;
    assert_eq!(
        reasons(&service, &closed("mma", "m1", "betmgm", "moneyline", "2026-11-14T23:38:29Z")).await,
        [(Reason::Late, 1)]
    );
    service.ingest(&closed("mma", "m1", "betmgm", "moneyline", "2026-11-14T23:38:40Z")).await;
    assert_eq!(reasons(&service, &at(35, 200)).await, [(Reason::Late, 1)]);
    service.advance(30).await;
    assert_eq!(service.get(ODDS).await.text(), "[]");
    service.ingest(&at(41, 200)).await;
    service.advance(30).await;
    assert_eq!(first_price(&service.get(ODDS).await), "200", "a newer one does");
}

#[tokio::test]
async fn a_price_older_than_the_newest_close_does_not_reopen_the_market() {
    let service = with_fight().await;
    service.ingest(&closed("mma", "m1", "betmgm", "moneyline", "2026-11-14T23:38:40Z")).await;
    service.ingest(&closed("mma", "m1", "betmgm", "moneyline", "2026-11-14T23:38:50Z")).await;
    assert_eq!(reasons(&service, &at(45, 200)).await, [(Reason::Late, 1)]);
    service.advance(30).await;
    assert_eq!(service.get(ODDS).await.text(), "[]");
}

#[tokio::test]
async fn a_late_score_is_counted_and_dropped() {
    let service = with_fight().await;
    service.ingest(&score("mma", "m1", "final", 1, 0, "2026-11-14T23:38:50Z")).await;
    assert_eq!(reasons(&service, &score("mma", "m1", "live", 0, 0, "2026-11-14T23:38:49Z")).await, [(Reason::Late, 1)]);
    assert_eq!(fields(&service.get("/v1/sports/mma/scores").await, "status"), ["final"]);
    assert_eq!(service.get("/v1/sports/mma/events/m1").await.json()["status"], "final");
}

#[tokio::test]
async fn a_read_line_advances_the_source_but_not_last_update() {
    let service = with_fight().await;
    service.advance(20).await;
    service.ingest(&read("mma", "betmgm", "2026-11-14T23:39:15Z", 33)).await;
    assert_eq!(reasons(&service, &read("mma", "betmgm", "2026-11-14T23:39:10Z", 99)).await, [(Reason::Late, 1)]);
    service.advance(10).await;
    let bouts = service.get("/v1/sports/mma/odds?group=bout").await.json();
    assert_eq!(
        bouts["sources"].to_string(),
        r#"[{"book":"betmgm","last_update":"2026-11-14T23:39:15Z","latency_ms":33,"stale":false}]"#
    );
    assert_eq!(bouts["bouts"][0]["books"][0]["last_update"], "2026-11-14T23:38:30Z");
    assert_eq!(service.get(ODDS).await.json()[0]["last_update"], "2026-11-14T23:38:30Z");
}

#[tokio::test]
async fn last_read_of_a_source_is_never_in_the_future() {
    let service = Service::start().await;
    let lines = [event("mma", "m1", EVENING), moneyline_at("mma", "m1", "betmgm", "2026-11-14T23:40:00Z", -110, -110)];
    service.ingest(&lines.concat()).await;
    let source = service.get("/v1/sports/mma/odds?group=bout").await.json()["sources"][0]["last_update"].clone();
    assert_eq!(source, "2026-11-14T23:39:00Z");
    service.pass(121);
    assert_eq!(service.get("/v1/status").await.json()["status"], "degraded", "a clock ahead buys no freshness");
}

#[tokio::test]
async fn undeclared_bookmaker_is_rejected_until_a_bookmaker_line_adds_it() {
    let service = with_fight().await;
    let price = moneyline("mma", "m1", "newbook", 200, -250);
    assert_eq!(reasons(&service, &price).await, [(Reason::UnknownBookmaker, 1)]);
    assert_eq!(
        reasons(&service, &read("mma", "newbook", "2026-11-14T23:38:59Z", 1)).await,
        [(Reason::UnknownBookmaker, 1)]
    );
    let asked = service.get(&format!("{ODDS}?bookmaker=newbook")).await;
    assert_eq!((asked.status, asked.param()), (400, "bookmaker".into()));
    assert!(message(&asked).contains("/v1/books"));
    service.ingest(&(bookmaker("newbook", "New Book", r#"["us"]"#) + &price)).await;
    service.advance(30).await;
    assert_eq!(records(&service.get(&format!("{ODDS}?bookmaker=newbook")).await), ["m1 newbook moneyline"]);
    assert!(fields(&service.get("/v1/books").await, "key").contains(&"newbook".to_owned()));
}

#[tokio::test]
async fn prices_and_scores_of_an_unknown_event_are_rejected() {
    let service = with_fight().await;
    let lines =
        moneyline("mma", "nobody", "betmgm", 200, -250) + &score("mma", "nobody", "live", 0, 0, "2026-11-14T23:38:59Z");
    assert_eq!(reasons(&service, &lines).await, [(Reason::UnknownEvent, 2)]);
    assert_eq!(fields(&service.get("/v1/sports/mma/events").await, "id"), ["m1"], "never made up from a price");
}

#[tokio::test]
async fn finished_event_accepts_no_prices() {
    let service = with_fight().await;
    service.ingest(&score("mma", "m1", "final", 1, 0, "2026-11-14T23:38:50Z")).await;
    assert_eq!(reasons(&service, &at(55, 200)).await, [(Reason::EventOver, 1)]);
    service.advance(30).await;
    assert_eq!(service.get(ODDS).await.text(), "[]");
}

#[tokio::test]
async fn winner_who_is_not_a_side_is_rejected() {
    let service = with_fight().await;
    let line =
        super::fixture::score_with("mma", "m1", "final", 1, 0, "2026-11-14T23:38:50Z", r#","winner":"Somebody Else""#);
    assert_eq!(reasons(&service, &line).await, [(Reason::BadField, 1)]);
    assert_eq!(fields(&service.get("/v1/sports/mma/scores").await, "status"), ["scheduled"]);
}
