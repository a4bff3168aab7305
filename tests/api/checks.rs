//! The order of checks: key, burst, quota, route, permission, parameters.

use super::fixture::{error, every_sport, key, limited, restricted};
use crate::harness::Service;
use oddsbox::keys::{KeyKind, Limits};

#[tokio::test]
async fn key_is_checked_first() {
    let service = Service::start().await;
    for (method, path) in [
        ("GET", "/v1/nothing"),
        ("POST", "/v1/books"),
        ("GET", "/v1/sports/curling/odds"),
        ("GET", "/v1/sports/mma/odds?limit=0"),
        ("GET", "/v1/sports/mma/events/none"),
    ] {
        let answer = service.send(method, path, &[("x-api-key", "nonsense")]).await;
        assert_eq!(error(&answer), (401, "authentication_failed".into()), "{method} {path}");
    }
}

#[tokio::test]
async fn burst_is_checked_before_the_quota() {
    let service = Service::start().await;
    let key = limited(&service, 1, Some(1), Some(1)).await.secret;
    assert_eq!(service.get_as(&key, "/v1/books").await.status, 200);
    assert_eq!(error(&service.get_as(&key, "/v1/books").await), (429, "rate_limited".into()));
    service.pass(60);
    assert_eq!(error(&service.get_as(&key, "/v1/books").await), (429, "quota_exceeded".into()));
}

#[tokio::test]
async fn burst_and_quota_are_checked_before_route_permission_and_parameters() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    for (burst, day, code) in [(1, 9, "rate_limited"), (9, 1, "quota_exceeded")] {
        let spent = key(&service, KeyKind::Production, |new| {
            new.groups = vec!["golf".into()];
            new.limits = Limits { burst_per_minute: burst, per_day: Some(day), per_month: None, streams: 10 };
        })
        .await
        .secret;
        assert_eq!(service.get_as(&spent, "/v1/books").await.status, 200);
        for (method, path) in [
            ("GET", "/v1/nothing"),
            ("POST", "/v1/books"),
            ("GET", "/v1/sports/curling/odds"),
            ("GET", "/v1/sports/mma/odds"),
            ("GET", "/v1/sports/golf/odds?limit=0"),
        ] {
            let answer = service.send(method, path, &[("x-api-key", &spent)]).await;
            assert_eq!(error(&answer), (429, code.into()), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn route_is_checked_before_permission_and_permission_before_parameters() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let golf = restricted(&service, &["golf"]).await.secret;
    for (method, path, status, code) in [
        ("POST", "/v1/sports/mma/odds", 405, "method_not_allowed"),
        ("GET", "/v1/sports/mma/prices", 404, "not_found"),
        ("GET", "/v1/sports/curling/odds?limit=0", 404, "sport_not_found"),
        ("GET", "/v1/sports/mma/odds?limit=0", 403, "forbidden"),
        ("GET", "/v1/sports/mma/events/none", 403, "forbidden"),
        ("GET", "/v1/sports/mma/odds?nonsense=1", 403, "forbidden"),
        ("GET", "/v1/sports/golf/odds?limit=0", 400, "invalid_parameter"),
        ("GET", "/v1/sports/golf/events/none?limit=1", 400, "invalid_parameter"),
    ] {
        let answer = service.send(method, path, &[("x-api-key", &golf)]).await;
        assert_eq!(error(&answer), (status, code.into()), "{method} {path}");
    }
}
