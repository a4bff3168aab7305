//! Maintenance mode.

use super::fixture::{ROUTES, error, every_sport, limited, restricted};
use crate::harness::{START_MS, Service};
use oddsbox::model::{Maintenance, Timestamp};

async fn closed_until(seconds: Option<u32>) -> Service {
    let service = Service::start_with_sandbox().await;
    service.ingest(&every_sport()).await;
    let since = Timestamp::from_unix_ms(START_MS);
    let maintenance = Maintenance { since, until: seconds.map(|seconds| since.plus_seconds(seconds)) };
    service.writer().set_maintenance(Some(maintenance), "test").await.unwrap();
    service
}

#[tokio::test]
async fn data_is_503_with_retry_after_and_status_is_200() {
    let service = closed_until(Some(90)).await;
    for path in ROUTES {
        let answer = service.get(path).await;
        if path == "/v1/status" {
            assert_eq!((answer.status, &answer.json()["status"]), (200, &"maintenance".into()));
            continue;
        }
        assert_eq!((error(&answer), answer.header("retry-after")), ((503, "maintenance".into()), Some("90")), "{path}");
    }
    let sandbox = service.get_as(&service.sandbox, "/v1/status").await;
    assert_eq!(sandbox.json()["status"], "maintenance", "of the service, so of both worlds");
    for path in ["/", "/docs", "/openapi.json", "/healthz"] {
        assert_eq!(service.send("GET", path, &[]).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn refused_requests_are_not_charged() {
    let service = closed_until(None).await;
    let key = limited(&service, 5, Some(5), Some(5)).await.secret;
    for _ in 0..20 {
        let answer = service.get_as(&key, "/v1/books").await;
        assert_eq!(
            (answer.status, answer.header("x-requests-used"), answer.header("x-requests-remaining")),
            (503, Some("0"), Some("5"))
        );
        assert!(answer.header("ratelimit").is_some_and(|left| left.starts_with(r#""burst";r=5"#)), "{answer:?}");
        assert!(answer.header("retry-after").is_some());
    }
}

#[tokio::test]
async fn maintenance_ends_automatically_or_by_command() {
    let service = closed_until(Some(90)).await;
    service.pass(89);
    assert_eq!(service.get("/v1/books").await.header("retry-after"), Some("1"));
    service.pass(1);
    assert_eq!(service.get("/v1/books").await.status, 200);
    assert_ne!(service.get("/v1/status").await.json()["status"], "maintenance");

    let service = closed_until(None).await;
    assert_eq!(service.get("/v1/books").await.status, 503);
    service.writer().set_maintenance(None, "test").await.unwrap();
    assert_eq!(service.get("/v1/books").await.status, 200);
    assert_eq!(service.get("/v1/status").await.json()["status"], "ok");
}

#[tokio::test]
async fn key_route_and_permission_are_checked_during_maintenance() {
    let service = closed_until(None).await;
    assert_eq!(service.send("GET", "/v1/books", &[]).await.status, 401);
    assert_eq!(error(&service.get("/v1/nothing").await), (404, "not_found".into()));
    assert_eq!(service.send("POST", "/v1/books", &[("x-api-key", &service.live)]).await.status, 405);
    let golf = restricted(&service, &["golf"]).await.secret;
    assert_eq!(service.get_as(&golf, "/v1/sports/mma/odds").await.status, 403);
}

#[tokio::test]
async fn maintenance_survives_a_restart() {
    let service = closed_until(Some(90)).await.restart().await;
    assert_eq!(service.get("/v1/books").await.header("retry-after"), Some("90"));
}
