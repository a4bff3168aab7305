//! Responses are the same after a restart.

use super::fixture::{ROUTES, bookmaker, closed, every_sport, key, limited, moneyline, score_with};
use crate::harness::Service;
use oddsbox::keys::KeyKind;

const PATHS: [&str; 8] = [
    "/v1/sports/mma/odds",
    "/v1/sports/mma/odds?group=bout&odds_format=fractional",
    "/v1/sports/boxing/scores",
    "/v1/sports/tennis/odds?odds_format=decimal",
    "/v1/sports/american_football/events",
    "/v1/sports/golf/events/g1",
    "/v1/sports/golf/odds",
    "/v1/sports",
];

#[tokio::test]
async fn ids_prices_scores_events_and_bookmakers_are_the_same() {
    let service = Service::start_with_sandbox().await;
    let end = score_with("boxing", "b1", "final", 1, 0, "2026-11-14T23:38:50Z", r#","winner":"Home b1""#);
    let own = bookmaker("newbook", "New Book", r#"["us"]"#) + &moneyline("mma", "m1", "newbook", 300, -400);
    service.ingest(&(every_sport() + &own + &end)).await;
    service.ingest(&closed("mma", "m1", "draftkings", "total_rounds", "2026-11-14T23:38:40Z")).await;
    // Everything is published before the stop: a restart begins at the same moment.
    let service = service.restart().await;
    let mut before = Vec::new();
    for path in PATHS.into_iter().chain(ROUTES) {
        before.push((path, service.get(path).await));
    }
    let service = service.restart().await;
    for (path, before) in before {
        let after = service.get(path).await;
        assert_eq!((after.status, after.text()), (200, before.text()), "{path}");
        assert_eq!(after.header("etag"), before.header("etag"), "{path}");
    }
    let late = moneyline("mma", "m1", "draftkings", 999, -999).replace("23:38:30Z", "23:38:29Z");
    let report = service.ingest_report(oddsbox::model::World::Live, &late).await;
    assert_eq!(report.rejected(), 1, "what is late is known too");
}

#[tokio::test]
async fn keys_and_their_usage_survive_a_restart() {
    let service = Service::start_with_sandbox().await;
    let own = limited(&service, 100, Some(10), None).await;
    let revoked = key(&service, KeyKind::Production, |_| {}).await;
    service.writer().revoke_key(&revoked.id, "test").await.unwrap();
    for _ in 0..3 {
        service.get_as(&own.secret, "/v1/books").await;
    }
    let service = service.restart().await;
    let answer = service.get_as(&own.secret, "/v1/books").await;
    assert_eq!((answer.status, answer.header("x-requests-used")), (200, Some("4")));
    assert_eq!(service.get_as(&revoked.secret, "/v1/books").await.status, 401);
}

#[tokio::test]
async fn a_removed_event_stays_removed() {
    let service = Service::start_with_sandbox().await;
    service.ingest(&every_sport()).await;
    service.ingest(&super::fixture::remove("mma", "m1")).await;
    let service = service.restart().await;
    assert_eq!(service.get("/v1/sports/mma/events/m1").await.code(), "event_not_found");
    assert_eq!(service.get("/v1/sports/mma/odds").await.text(), "[]");
}

#[tokio::test]
async fn sandbox_continues_after_a_restart() {
    let service = Service::start_with_sandbox().await;
    let path = "/v1/sports/tennis/events?limit=500";
    let before = service.get_as(&service.sandbox, path).await;
    let service = service.restart().await;
    assert_eq!(service.get_as(&service.sandbox, path).await.text(), before.text());
}

#[tokio::test]
async fn payload_after_a_restart_is_unchanged_until_the_tick() {
    let service = Service::start_with_sandbox().await;
    service.ingest(&every_sport()).await;
    let service = service.restart().await;
    let before = service.get("/v1/sports/mma/odds?group=bout").await;
    assert!(before.text().contains(r#""generated_at":"2026-11-14T23:39:00.000Z""#), "published at the start");
    service.advance(5).await;
    service.ingest(&moneyline("mma", "m1", "draftkings", 300, -400).replace("23:38:30Z", "23:39:04Z")).await;
    assert_eq!(service.get("/v1/sports/mma/odds?group=bout").await.text(), before.text(), "23:39:05");
}
