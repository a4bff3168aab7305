//! Bursts, quotas and their headers.

use std::sync::Arc;
use std::time::Duration;

use super::fixture::{ROUTES, error, every_sport, limited, restricted};
use crate::harness::{Answer, Service};
use tokio::task::JoinSet;

/// From the start of every test to the next UTC midnight, and to the next month.
const TO_MIDNIGHT: &str = "1260";
const TO_DECEMBER: &str = "1383660";

fn usage(answer: &Answer) -> (Option<&str>, Option<&str>) {
    (answer.header("x-requests-used"), answer.header("x-requests-remaining"))
}

#[tokio::test]
async fn exactly_n_pass_in_a_window_that_opens_with_the_first_request() {
    let service = Service::start_with_sandbox().await;
    let key = limited(&service, 3, Some(1000), None).await.secret;
    let ask = async || service.get_as(&key, "/v1/books").await;
    // The window opens now, not with the clock's minute or when the key was issued.
    service.pass(45);
    assert_eq!(ask().await.status, 200);
    service.pass(40);
    assert_eq!(ask().await.status, 200);
    assert_eq!(ask().await.status, 200);
    let spent = ask().await;
    assert_eq!((error(&spent), spent.header("retry-after")), ((429, "rate_limited".into()), Some("20")));
    service.clock.advance(Duration::from_millis(19_001));
    assert_eq!((ask().await.status, ask().await.header("retry-after")), (429, Some("1")));
    service.clock.advance(Duration::from_millis(999));
    for status in [200, 200, 200, 429] {
        assert_eq!(ask().await.status, status, "a new window");
    }
}

#[tokio::test]
async fn exactly_n_concurrent_requests_pass_the_burst() {
    let service = Arc::new(Service::start_with_sandbox().await);
    let key = limited(&service, 20, Some(1000), None).await.secret;
    let mut clients = JoinSet::new();
    for _ in 0..50 {
        let (service, key) = (Arc::clone(&service), key.clone());
        clients.spawn(async move { service.get_as(&key, "/v1/books").await.status });
    }
    let statuses = clients.join_all().await;
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 20);
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 30);
}

#[tokio::test]
async fn exactly_the_daily_quota_of_concurrent_requests_passes() {
    let service = Arc::new(Service::start_with_sandbox().await);
    let key = limited(&service, 1000, Some(20), None).await.secret;
    let mut clients = JoinSet::new();
    for _ in 0..50 {
        let (service, key) = (Arc::clone(&service), key.clone());
        clients.spawn(async move { service.get_as(&key, "/v1/books").await.status });
    }
    let statuses = clients.join_all().await;
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 20);
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 30);
}

#[tokio::test]
async fn exhausted_day_is_quota_exceeded_until_utc_midnight() {
    let service = Service::start_with_sandbox().await;
    let key = limited(&service, 100, Some(2), None).await.secret;
    let ask = async || service.get_as(&key, "/v1/books").await;
    assert_eq!(usage(&ask().await), (Some("1"), Some("1")));
    assert_eq!(usage(&ask().await), (Some("2"), Some("0")));
    let spent = ask().await;
    assert_eq!((error(&spent), spent.header("retry-after")), ((429, "quota_exceeded".into()), Some(TO_MIDNIGHT)));
    assert_eq!(usage(&spent), (Some("2"), Some("0")), "a 429 does not count");
    service.pass(1259);
    assert_eq!(ask().await.header("retry-after"), Some("1"));
    service.pass(1);
    let next = ask().await;
    assert_eq!((next.status, usage(&next)), (200, (Some("1"), Some("1"))), "a new day");
}

#[tokio::test]
async fn exhausted_month_is_quota_exceeded_until_the_next_and_headers_report_the_month() {
    let service = Service::start_with_sandbox().await;
    let key = limited(&service, 100, None, Some(2)).await.secret;
    let ask = async || service.get_as(&key, "/v1/books").await;
    assert_eq!(usage(&ask().await), (Some("1"), Some("1")));
    // The next day is in the same month.
    service.pass(1260);
    assert_eq!(usage(&ask().await), (Some("2"), Some("0")));
    let spent = ask().await;
    assert_eq!((error(&spent), spent.header("retry-after")), ((429, "quota_exceeded".into()), Some("1382400")));
    assert_eq!(usage(&spent), (Some("2"), Some("0")));
    assert_eq!(spent.header("ratelimit-policy"), Some(r#""burst";q=100;w=60, "month";q=2;w=2592000"#));
    service.pass(1_382_400);
    let next = ask().await;
    assert_eq!((next.status, usage(&next)), (200, (Some("1"), Some("1"))), "December");
    assert_eq!(next.header("ratelimit-policy"), Some(r#""burst";q=100;w=60, "month";q=2;w=2678400"#));
}

#[tokio::test]
async fn with_day_and_month_the_headers_report_the_day_and_the_fields_all_limits() {
    let service = Service::start_with_sandbox().await;
    let key = limited(&service, 100, Some(10), Some(2)).await.secret;
    let first = service.get_as(&key, "/v1/books").await;
    assert_eq!(usage(&first), (Some("1"), Some("9")));
    let policy = r#""burst";q=100;w=60, "day";q=10;w=86400, "month";q=2;w=2592000"#;
    assert_eq!(first.header("ratelimit-policy"), Some(policy));
    let left = format!(r#""burst";r=99;t=60, "day";r=9;t={TO_MIDNIGHT}, "month";r=1;t={TO_DECEMBER}"#);
    assert_eq!(first.header("ratelimit"), Some(left.as_str()));
    service.get_as(&key, "/v1/books").await;
    let spent = service.get_as(&key, "/v1/books").await;
    assert_eq!((error(&spent), spent.header("retry-after")), ((429, "quota_exceeded".into()), Some(TO_DECEMBER)));
    assert_eq!(usage(&spent), (Some("2"), Some("8")), "what the month refused is not charged to the day");
    let left = format!(r#""burst";r=98;t=60, "day";r=8;t={TO_MIDNIGHT}, "month";r=0;t={TO_DECEMBER}"#);
    assert_eq!(spent.header("ratelimit"), Some(left.as_str()), "nor to the burst");
}

#[tokio::test]
async fn with_day_and_month_exhausted_retry_after_is_the_later_reset() {
    let service = Service::start_with_sandbox().await;
    let key = limited(&service, 100, Some(1), Some(1)).await.secret;
    service.get_as(&key, "/v1/books").await;
    let spent = service.get_as(&key, "/v1/books").await;
    assert_eq!((error(&spent), spent.header("retry-after")), ((429, "quota_exceeded".into()), Some(TO_DECEMBER)));
}

#[tokio::test]
async fn status_counts_for_the_burst_only() {
    let service = Service::start_with_sandbox().await;
    let key = limited(&service, 4, Some(1), None).await.secret;
    let status = async || service.get_as(&key, "/v1/status").await;
    assert_eq!(usage(&status().await), (Some("0"), Some("1")));
    assert_eq!(usage(&service.get_as(&key, "/v1/books").await), (Some("1"), Some("0")));
    assert_eq!(service.get_as(&key, "/v1/books").await.code(), "quota_exceeded");
    let free = status().await;
    assert_eq!((free.status, usage(&free)), (200, (Some("1"), Some("0"))), "health checks are free of the day");
    assert_eq!(status().await.status, 200, "what the day refused left room in the burst");
    assert_eq!(error(&status().await), (429, "rate_limited".into()), "but not of the burst");
}

#[tokio::test]
async fn every_authenticated_response_has_usage_headers() {
    let service = Service::start_with_sandbox().await;
    service.ingest(&every_sport()).await;
    let golf = restricted(&service, &["golf"]).await.secret;
    let mut used = 0;
    for (method, path, status) in [
        ("GET", "/v1/sports", 200),
        ("GET", "/v1/books", 200),
        ("GET", "/v1/sports/golf/odds", 200),
        ("GET", "/v1/sports/golf/scores", 200),
        ("GET", "/v1/sports/golf/events", 200),
        ("GET", "/v1/sports/golf/events/g1", 200),
        ("HEAD", "/v1/sports/golf/odds", 200),
        ("GET", "/v1/sports/golf/odds?limit=0", 400),
        ("GET", "/v1/sports/mma/odds", 403),
        ("GET", "/v1/nothing", 404),
        ("GET", "/v4/nothing", 404),
        ("GET", "/v1/sports/curling/odds", 404),
        ("GET", "/v1/sports/golf/events/none", 404),
        ("POST", "/v1/sports/golf/odds", 405),
    ] {
        let answer = service.send(method, path, &[("x-api-key", &golf)]).await;
        used += 1;
        let (is_used, is_left) = (used.to_string(), (1_000_000 - used).to_string());
        assert_eq!((answer.status, usage(&answer)), (status, (Some(&*is_used), Some(&*is_left))), "{method} {path}");
        assert_eq!(answer.header("ratelimit-policy"), Some(r#""burst";q=600;w=60, "day";q=1000000;w=86400"#));
        let left = format!(r#""burst";r={};t=60, "day";r={is_left};t={TO_MIDNIGHT}"#, 600 - used);
        assert_eq!(answer.header("ratelimit"), Some(left.as_str()), "{method} {path}");
    }
}

#[tokio::test]
async fn burst_refusal_reports_usage_and_is_not_charged() {
    let service = Service::start_with_sandbox().await;
    let key = limited(&service, 2, Some(10), None).await.secret;
    for path in [ROUTES[0], ROUTES[1]] {
        service.get_as(&key, path).await;
    }
    for _ in 0..3 {
        let spent = service.get_as(&key, "/v1/books").await;
        assert_eq!((spent.status, usage(&spent)), (429, (Some("2"), Some("8"))));
        let left = format!(r#""burst";r=0;t=60, "day";r=8;t={TO_MIDNIGHT}"#);
        assert_eq!(spent.header("ratelimit"), Some(left.as_str()));
    }
    service.pass(60);
    assert_eq!(usage(&service.get_as(&key, "/v1/books").await), (Some("3"), Some("7")));
}

#[tokio::test]
async fn the_defaults_are_60_and_10000_for_sandbox_and_600_and_1000000_for_production() {
    let service = Service::start_with_sandbox().await;
    for (key, policy) in [
        (&service.sandbox, r#""burst";q=60;w=60, "day";q=10000;w=86400"#),
        (&service.live, r#""burst";q=600;w=60, "day";q=1000000;w=86400"#),
    ] {
        assert_eq!(service.get_as(key, "/v1/books").await.header("ratelimit-policy"), Some(policy));
    }
    for number in 1..=61 {
        let answer = service.get_as(&service.sandbox, "/v1/status").await;
        // One of the sixty was used by the request above.
        assert_eq!(answer.status, if number <= 59 { 200 } else { 429 }, "request {number}");
    }
}

#[tokio::test]
async fn limits_are_separate_by_key() {
    let service = Service::start_with_sandbox().await;
    let (one, other) =
        (limited(&service, 1, Some(10), None).await.secret, limited(&service, 1, Some(10), None).await.secret);
    assert_eq!(service.get_as(&one, "/v1/books").await.status, 200);
    assert_eq!(service.get_as(&one, "/v1/books").await.status, 429);
    assert_eq!(service.get_as(&other, "/v1/books").await.status, 200);
}

#[tokio::test]
async fn a_clock_that_is_set_back_refunds_nothing() {
    let service = Service::start_with_sandbox().await;
    let (burst, day) =
        (limited(&service, 1, Some(9), None).await.secret, limited(&service, 9, Some(1), None).await.secret);
    for key in [&burst, &day] {
        assert_eq!(service.get_as(key, "/v1/books").await.status, 200);
    }
    service.clock.set_unix_ms(crate::harness::START_MS - 86_400_000);
    assert_eq!(error(&service.get_as(&burst, "/v1/books").await), (429, "rate_limited".into()));
    assert_eq!(error(&service.get_as(&day, "/v1/books").await), (429, "quota_exceeded".into()));
}
