//! API Status.

use super::fixture::{EVENING, event, every_sport, limited, moneyline, read};
use crate::harness::Service;

#[tokio::test]
async fn the_status_is_exact_and_names_the_limits_of_the_calling_key() {
    let service = Service::start_with_sandbox().await;
    assert_eq!(
        service.get("/v1/status").await.text(),
        r#"{"status":"ok","api_version":"v1","server_time":"2026-11-14T23:39:00Z","rate_limit":{"burst_per_minute":600,"requests_per_day":1000000},"sports_active":0,"history_since":null}"#
    );
    service.ingest(&every_sport()).await;
    service.clock.advance(std::time::Duration::from_millis(1999));
    assert_eq!(
        service.get("/v1/status").await.text(),
        r#"{"status":"ok","api_version":"v1","server_time":"2026-11-14T23:39:01Z","rate_limit":{"burst_per_minute":600,"requests_per_day":1000000},"sports_active":5,"history_since":"2026-11-14T23:39:00Z"}"#
    );
    let own = limited(&service, 7, Some(70), Some(700)).await.secret;
    let json = service.get_as(&own, "/v1/status").await.json();
    assert_eq!(json["rate_limit"].to_string(), r#"{"burst_per_minute":7,"requests_per_day":70}"#);
    let sandbox = service.get_as(&service.sandbox, "/v1/status").await.json();
    assert_eq!(sandbox["rate_limit"].to_string(), r#"{"burst_per_minute":60,"requests_per_day":10000}"#);
}

#[tokio::test]
async fn degraded_while_any_source_is_stale_and_ok_again_after_a_good_read() {
    let service = Service::start_with_sandbox().await;
    let lines = [
        event("mma", "m1", EVENING),
        moneyline("mma", "m1", "betmgm", -110, -110),
        event("tennis", "t1", EVENING),
        moneyline("tennis", "t1", "fanduel", -110, -110),
    ];
    service.ingest(&lines.concat()).await;
    let status = async || {
        let json = service.get("/v1/status").await.json();
        (json["status"].as_str().unwrap().to_owned(), json["sports_active"].as_u64())
    };
    assert_eq!(status().await, ("ok".into(), Some(2)));
    service.pass(100);
    assert_eq!(status().await, ("degraded".into(), Some(0)), "by time alone");
    service.ingest(&read("tennis", "fanduel", "2026-11-14T23:40:40Z", 5)).await;
    assert_eq!(status().await, ("degraded".into(), Some(1)), "the other is still stale");
    service.ingest(&read("mma", "betmgm", "2026-11-14T23:40:40Z", 5)).await;
    assert_eq!(status().await, ("ok".into(), Some(2)));
}
