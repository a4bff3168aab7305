//! Validators and cache lifetimes.

use std::time::Duration;

use super::fixture::{EVENING, ROUTES, event, every_sport, moneyline, moneyline_at};
use crate::harness::Service;

const ODDS: &str = "/v1/sports/mma/odds";

async fn with_data() -> Service {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    service
}

#[tokio::test]
async fn the_etag_is_strong_and_a_hash_of_the_content() {
    let (service, other) = (with_data().await, with_data().await);
    let mut tags = Vec::new();
    for path in ROUTES {
        let answer = service.get(path).await;
        let etag = answer.header("etag").unwrap().to_owned();
        assert!(etag.starts_with('"') && etag.ends_with('"') && etag.len() > 10, "{path} {etag}");
        assert_eq!(other.get(path).await.header("etag"), Some(&*etag), "{path}: the same bytes on another machine");
        tags.push(etag);
    }
    tags.sort();
    tags.dedup();
    assert_eq!(tags.len(), ROUTES.len());
    let before = service.get(ODDS).await.header("etag").unwrap().to_owned();
    service.ingest(&moneyline_at("mma", "m1", "draftkings", "2026-11-14T23:38:40Z", 200, -250)).await;
    assert_eq!(service.get(ODDS).await.header("etag"), Some(&*before), "until the tick");
    service.advance(30).await;
    assert_ne!(service.get(ODDS).await.header("etag"), Some(&*before));
}

#[tokio::test]
async fn if_none_match_is_304_in_every_form_of_the_header() {
    let service = with_data().await;
    for path in ROUTES.into_iter().chain(["/docs", "/openapi.json", "/healthz", "/"]) {
        let full = service.get(path).await;
        let etag = full.header("etag").unwrap();
        for sent in [
            etag.to_owned(),
            format!("W/{etag}"),
            format!("\"x\", {etag}"),
            format!("\"a,b\" , W/{etag},\"y\""),
            "*".to_owned(),
        ] {
            let answer = service.get_with(path, &[("if-none-match", &sent)]).await;
            assert_eq!((answer.status, answer.body.len()), (304, 0), "{path} {sent}");
            for name in ["etag", "cache-control", "vary"] {
                assert_eq!(answer.header(name), full.header(name), "{path} {name}");
            }
            assert_eq!(answer.header("content-type"), None);
        }
        for sent in ["\"other\"", "W/\"other\"", &etag[1..etag.len() - 1], ""] {
            assert_eq!(service.get_with(path, &[("if-none-match", sent)]).await.status, 200, "{path} {sent}");
        }
    }
}

#[tokio::test]
async fn not_modified_is_charged_and_also_returned_for_head() {
    let service = with_data().await;
    let etag = service.get(ODDS).await.header("etag").unwrap().to_owned();
    let unchanged = service.get_with(ODDS, &[("if-none-match", &etag)]).await;
    assert_eq!((unchanged.status, unchanged.header("x-requests-used")), (304, Some("2")));
    let head = service.send("HEAD", ODDS, &[("x-api-key", &service.live), ("if-none-match", &etag)]).await;
    assert_eq!((head.status, head.header("x-requests-used")), (304, Some("3")));
}

#[tokio::test]
async fn not_modified_needs_a_key_and_valid_parameters() {
    let service = with_data().await;
    let etag = service.get(ODDS).await.header("etag").unwrap().to_owned();
    assert_eq!(service.send("GET", ODDS, &[("if-none-match", &etag)]).await.status, 401);
    assert_eq!(service.get_with(&format!("{ODDS}?limit=0"), &[("if-none-match", "*")]).await.status, 400);
    assert_eq!(service.get_with("/v1/sports/mma/events/none", &[("if-none-match", "*")]).await.status, 404);
}

#[tokio::test]
async fn cache_control_is_private_for_the_seconds_to_the_next_tick() {
    let service = with_data().await;
    for (step_ms, seconds) in [(0, 30), (1, 29), (999, 29), (9_000, 20), (19_500, 0), (499, 0), (1, 30), (30_000, 30)] {
        service.clock.advance(Duration::from_millis(step_ms));
        let answer = service.get(ODDS).await;
        assert_eq!(answer.header("cache-control"), Some(format!("private, max-age={seconds}").as_str()));
        let bouts = service.get("/v1/sports/mma/odds?group=bout").await;
        assert_eq!(bouts.header("cache-control"), answer.header("cache-control"));
    }
}

#[tokio::test]
async fn cache_control_follows_the_refresh_and_is_30_at_most() {
    for (refresh, seconds) in [("10s", 10), ("5m", 30), ("1s", 1)] {
        let service = Service::start_with(&[("refresh", refresh)]).await;
        let answer = service.get(ODDS).await;
        assert_eq!(answer.header("cache-control"), Some(format!("private, max-age={seconds}").as_str()), "{refresh}");
    }
}

#[tokio::test]
async fn immediately_published_data_must_be_revalidated() {
    let service = with_data().await;
    for path in
        ["/v1/sports", "/v1/status", "/v1/sports/mma/scores", "/v1/sports/mma/events", "/v1/sports/mma/events/m1"]
    {
        assert_eq!(service.get(path).await.header("cache-control"), Some("private, max-age=0"), "{path}");
    }
}

#[tokio::test]
async fn answers_vary_by_accept_encoding() {
    let service = with_data().await;
    for path in ROUTES {
        let answer = service.get(path).await;
        assert!(answer.header("vary").is_some_and(|vary| vary.eq_ignore_ascii_case("accept-encoding")), "{path}");
    }
}

#[tokio::test]
async fn each_query_has_its_own_validator() {
    let service = Service::start().await;
    service.ingest(&[event("mma", "m1", EVENING), moneyline("mma", "m1", "betmgm", -110, 150)].concat()).await;
    let etag = service.get(ODDS).await.header("etag").unwrap().to_owned();
    let decimal = service.get_with(&format!("{ODDS}?odds_format=decimal"), &[("if-none-match", &etag)]).await;
    assert_eq!(decimal.status, 200);
}
