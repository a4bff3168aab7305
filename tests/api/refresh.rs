//! Publication: prices at ticks, everything else immediately.

use std::time::Duration;

use super::fixture::{
    EVENING, event, event_with, every_sport, fields, first_price, moneyline, moneyline_at, odds_at, read, records,
    remove, score,
};
use crate::harness::Service;
use oddsbox::config::catalogue;
use oddsbox::ingest::wire;
use oddsbox::model::World;

const ODDS: &str = "/v1/sports/mma/odds";
const BOUTS: &str = "/v1/sports/mma/odds?group=bout";

async fn with_fight() -> Service {
    let service = Service::start().await;
    service.ingest(&[event("mma", "m1", EVENING), moneyline("mma", "m1", "betmgm", -110, -110)].concat()).await;
    service
}

/// The price of the fight `step` seconds after the start.
fn change(step: u32, price: i32) -> String {
    moneyline_at("mma", "m1", "betmgm", &format!("2026-11-14T23:39:{step:02}Z"), price, -150)
}

/// Messages in the middle of a stream.
async fn stream(service: &Service, lines: &str) {
    let catalogue = catalogue::builtin();
    let news = lines.lines().map(|line| wire::read(line.as_bytes(), &catalogue).unwrap().news).collect();
    service.writer().ingest(World::Live, news, false).await.unwrap();
}

#[tokio::test]
async fn between_two_ticks_the_payload_is_byte_for_byte_the_same() {
    let service = with_fight().await;
    let paths = [ODDS, BOUTS, "/v1/sports/mma/odds?odds_format=decimal&regions=us,uk", "/v1/sports/mma/odds?limit=1"];
    let mut before = Vec::new();
    for path in paths {
        before.push(service.get(path).await);
    }
    for step in [1, 10, 20, 29] {
        let now = service.clock.now().unix_ms;
        let passed = u32::try_from((now - crate::harness::START_MS) / 1000).unwrap();
        service.advance(u64::from(step - passed)).await;
        service.ingest(&change(step, 200 + i32::try_from(step).unwrap())).await;
        service.ingest(&read("mma", "betmgm", &format!("2026-11-14T23:39:{step:02}Z"), step)).await;
        for (path, before) in paths.iter().zip(&before) {
            let answer = service.get(path).await;
            assert_eq!((&answer.body, answer.header("etag")), (&before.body, before.header("etag")), "{path} {step}");
        }
    }
    service.advance(1).await;
    for (path, before) in paths.iter().zip(&before) {
        assert_ne!(service.get(path).await.body, before.body, "{path}: on the tick");
    }
    assert_eq!(first_price(&service.get(ODDS).await), "229", "the newest price");
    assert_eq!(service.get(BOUTS).await.json()["generated_at"], "2026-11-14T23:39:30.000Z");
}

#[tokio::test]
async fn ticks_are_aligned_to_the_wall_clock() {
    let service = Service::start().await;
    service.advance(17).await;
    service.ingest(&[event("mma", "m1", EVENING), moneyline("mma", "m1", "betmgm", -110, -110)].concat()).await;
    service.ingest(&change(18, 210)).await;
    service.clock.advance(Duration::from_millis(12_999));
    service.writer().tick().await.unwrap();
    assert_eq!(first_price(&service.get(ODDS).await), "-110", "23:39:29.999");
    service.clock.advance(Duration::from_millis(1));
    service.writer().tick().await.unwrap();
    assert_eq!(first_price(&service.get(ODDS).await), "210", "23:39:30");
}

#[tokio::test]
async fn refresh_is_a_setting() {
    let service = Service::start_with(&[("refresh", "5s")]).await;
    service.ingest(&[event("mma", "m1", EVENING), moneyline("mma", "m1", "betmgm", -110, -110)].concat()).await;
    service.ingest(&change(1, 210)).await;
    service.advance(4).await;
    assert_eq!(first_price(&service.get(ODDS).await), "-110");
    service.advance(1).await;
    assert_eq!(first_price(&service.get(ODDS).await), "210");
}

#[tokio::test]
async fn quiet_sport_publishes_immediately_at_the_end_of_an_ingest() {
    let service = with_fight().await;
    assert_eq!(first_price(&service.get(ODDS).await), "-110", "the first prices do not wait for a tick");
    service.advance(40).await;
    service.ingest(&change(38, 250)).await;
    let bouts = service.get(BOUTS).await.json();
    assert_eq!(
        (first_price(&service.get(ODDS).await), &bouts["generated_at"]),
        ("250".into(), &"2026-11-14T23:39:40.000Z".into())
    );
    service.advance(5).await;
    service.ingest(&change(39, 260)).await;
    assert_eq!(first_price(&service.get(ODDS).await), "250", "it is no longer quiet");
    service.advance(15).await;
    assert_eq!(first_price(&service.get(ODDS).await), "260", "23:40:00 is a tick");
}

#[tokio::test]
async fn a_quiet_sport_publishes_a_stream_one_second_after_its_first_change() {
    let service = Service::start().await;
    stream(&service, &[event("mma", "m1", EVENING), moneyline("mma", "m1", "betmgm", -110, -110)].concat()).await;
    assert_eq!(service.get(ODDS).await.text(), "[]");
    service.clock.advance(Duration::from_millis(600));
    stream(&service, &change(0, 220)).await;
    service.clock.advance(Duration::from_millis(399));
    service.writer().tick().await.unwrap();
    assert_eq!(service.get(ODDS).await.text(), "[]");
    service.clock.advance(Duration::from_millis(1));
    service.writer().tick().await.unwrap();
    assert_eq!(first_price(&service.get(ODDS).await), "220");
}

#[tokio::test]
async fn sports_publish_independently() {
    let service = with_fight().await;
    service.advance(10).await;
    service.ingest(&[event("tennis", "t1", EVENING), moneyline("tennis", "t1", "betmgm", 130, -150)].concat()).await;
    assert_eq!(first_price(&service.get("/v1/sports/tennis/odds").await), "130", "tennis was quiet, mma was not");
    service.ingest(&change(10, 210)).await;
    assert_eq!(first_price(&service.get(ODDS).await), "-110");
}

#[tokio::test]
async fn removed_event_disappears_immediately_and_nothing_else_changes() {
    let service = Service::start().await;
    let lines = [
        event("mma", "m1", EVENING),
        moneyline("mma", "m1", "betmgm", -110, -110),
        event("mma", "m2", EVENING),
        moneyline("mma", "m2", "betmgm", 120, -140),
    ];
    service.ingest(&lines.concat()).await;
    service.advance(5).await;
    service.ingest(&moneyline_at("mma", "m2", "betmgm", "2026-11-14T23:39:04Z", 300, -400)).await;
    let (odds, bouts) = (
        service.get("/v1/sports/mma/odds?event_ids=m2").await,
        service.get("/v1/sports/mma/odds?group=bout&event_ids=m2").await,
    );
    service.ingest(&remove("mma", "m1")).await;
    assert_eq!(service.get(ODDS).await.body, odds.body, "m2 with its price as of the publication");
    assert_eq!(service.get(BOUTS).await.body, bouts.body, "generated_at and sources included");
    assert_eq!(fields(&service.get("/v1/sports/mma/events").await, "id"), ["m2"]);
    assert_eq!(fields(&service.get("/v1/sports/mma/scores").await, "event_id"), ["m2"]);
    service.advance(25).await;
    assert_eq!(first_price(&service.get(ODDS).await), "300");
}

#[tokio::test]
async fn event_announced_again_after_removal_starts_empty() {
    let service = with_fight().await;
    service.ingest(&(remove("mma", "m1") + &event("mma", "m1", EVENING))).await;
    assert_eq!(service.get(ODDS).await.text(), "[]", "its old prices are gone at once");
    assert_eq!(service.get("/v1/sports/mma/events/m1").await.json()["markets"].to_string(), "[]");
    service.advance(30).await;
    assert_eq!(service.get(ODDS).await.text(), "[]");
    // Older than the event's former prices, which were removed with it.
    service.ingest(&moneyline_at("mma", "m1", "betmgm", "2026-11-14T23:38:00Z", 180, -200)).await;
    service.advance(30).await;
    assert_eq!(first_price(&service.get(ODDS).await), "180");
}

#[tokio::test]
async fn scores_and_events_are_published_immediately() {
    let service = with_fight().await;
    service.advance(5).await;
    service.ingest(&(event("mma", "m2", EVENING) + &score("mma", "m1", "live", 0, 0, "2026-11-14T23:39:04Z"))).await;
    assert_eq!(fields(&service.get("/v1/sports/mma/events").await, "status"), ["live", "scheduled"]);
    assert_eq!(fields(&service.get("/v1/sports/mma/scores?status=live").await, "event_id"), ["m1"]);
    assert_eq!(service.get("/v1/sports/mma/events/m2").await.status, 200);
    service.ingest(&event_with("mma", "m2", "2026-11-15T01:00:00Z", "scheduled")).await;
    assert_eq!(fields(&service.get("/v1/sports/mma/events").await, "id"), ["m2", "m1"]);
    stream(&service, &score("mma", "m1", "final", 1, 0, "2026-11-14T23:39:05Z")).await;
    assert_eq!(service.get("/v1/sports/mma/events/m1").await.json()["status"], "final", "within a stream too");
}

#[tokio::test]
async fn records_of_a_finished_event_are_removed_at_the_tick() {
    let service = with_fight().await;
    service.advance(5).await;
    let before = service.get(ODDS).await;
    service.ingest(&score("mma", "m1", "final", 1, 0, "2026-11-14T23:39:05Z")).await;
    assert_eq!(service.get(ODDS).await.body, before.body);
    service.advance(25).await;
    assert_eq!(service.get(ODDS).await.text(), "[]");
    assert_eq!(service.get("/v1/sports/mma/events/m1").await.json()["markets"].to_string(), "[]");
}

#[tokio::test]
async fn stale_and_generated_at_are_from_the_publication() {
    let service = with_fight().await;
    // The bookmaker was last read at 23:38:30, so it is stale from 23:40:31 on.
    service.advance(90).await;
    let before = service.get(BOUTS).await;
    assert_eq!(before.json()["sources"][0]["stale"], false, "23:40:30");
    service.advance(15).await;
    assert_eq!(service.get("/v1/status").await.json()["status"], "degraded", "status is computed per request");
    assert_eq!(service.get(BOUTS).await.body, before.body, "the payload is not");
    service.advance(15).await;
    let json = service.get(BOUTS).await.json();
    assert_eq!(
        (&json["sources"][0]["stale"], &json["generated_at"]),
        (&true.into(), &"2026-11-14T23:41:00.000Z".into())
    );
    assert_eq!(records(&service.get(ODDS).await), ["m1 betmgm moneyline"]);
}

#[tokio::test]
async fn markets_of_an_event_follow_the_published_prices() {
    let service = with_fight().await;
    service.advance(5).await;
    let rounds = r#"[{"name":"Over","price":-105,"point":2.5},{"name":"Under","price":-115,"point":2.5}]"#;
    service.ingest(&odds_at("mma", "m1", "betmgm", "total_rounds", "2026-11-14T23:39:04Z", rounds)).await;
    let markets = async || service.get("/v1/sports/mma/events/m1").await.json()["markets"].to_string();
    assert_eq!(markets().await, r#"["moneyline"]"#, "what Get Odds serves now");
    service.advance(25).await;
    assert_eq!(markets().await, r#"["moneyline","total_rounds"]"#);
}

#[tokio::test]
async fn polling_faster_than_the_refresh_returns_identical_payloads() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    for sport in ["mma", "boxing", "tennis", "american_football", "golf"] {
        let path = format!("/v1/sports/{sport}/odds");
        let first = service.get(&path).await;
        for _ in 0..3 {
            service.pass(1);
            assert_eq!(service.get(&path).await.body, first.body);
        }
    }
}
