//! Usage of a key.

use super::fixture::limited;
use crate::harness::Service;

#[tokio::test]
async fn usage_has_limits_and_what_was_used_by_hour_and_by_day() {
    let service = Service::start().await;
    let own = limited(&service, 7, Some(70), Some(700)).await;
    for _ in 0..3 {
        assert_eq!(service.get_as(&own.secret, "/v1/books").await.status, 200);
    }
    let answer = service.get_as(&own.secret, "/v1/usage").await;
    assert_eq!((answer.status, answer.header("x-requests-used")), (200, Some("3")), "it counts for the minute only");
    let usage = answer.json();
    assert_eq!(usage["key_id"], own.id.as_str());
    assert_eq!((&usage["kind"], &usage["expires_at"]), (&"production".into(), &serde_json::Value::Null));
    assert_eq!(usage["minute"].to_string(), r#"{"limit":7,"remaining":3,"reset_s":60}"#);
    assert_eq!(usage["day"].to_string(), r#"{"limit":70,"remaining":67,"reset_s":1260,"used":3}"#);
    assert_eq!((&usage["month"]["limit"], &usage["month"]["used"]), (&700.into(), &3.into()));
    assert_eq!(usage["streams"].to_string(), r#"{"limit":10,"open":0}"#);
    let (hours, days) = (usage["hours"].as_array().unwrap(), usage["days"].as_array().unwrap());
    assert_eq!((hours.len(), days.len()), (24, 31));
    assert_eq!(hours[23].to_string(), r#"{"requests":3,"start":"2026-11-14T23:00:00Z"}"#);
    assert_eq!(hours[22].to_string(), r#"{"requests":0,"start":"2026-11-14T22:00:00Z"}"#);
    assert_eq!(days[30].to_string(), r#"{"date":"2026-11-14","requests":3}"#);
}

#[tokio::test]
async fn recent_use_survives_a_restart() {
    let service = Service::start().await;
    let own = limited(&service, 100, Some(70), None).await;
    let used = |usage: &serde_json::Value, from_end: usize| usage["hours"][23 - from_end]["requests"].as_u64().unwrap();
    service.get_as(&own.secret, "/v1/books").await;
    let service = service.restart().await;
    service.get_as(&own.secret, "/v1/books").await;
    let usage = service.get_as(&own.secret, "/v1/usage").await.json();
    assert_eq!(used(&usage, 0), 2, "a stop stores what was used");
    service.advance(3_600).await;
    service.get_as(&own.secret, "/v1/books").await;
    let usage = service.get_as(&own.secret, "/v1/usage").await.json();
    assert_eq!((used(&usage, 0), used(&usage, 1)), (1, 2));
    assert_eq!(usage["days"][30]["requests"], 1, "another day has begun");
    assert_eq!(usage["days"][29]["requests"], 2);
}

#[tokio::test]
async fn usage_is_of_the_own_key_and_takes_no_parameters() {
    let service = Service::start().await;
    let (one, other) = (limited(&service, 100, Some(70), None).await, limited(&service, 100, Some(70), None).await);
    service.get_as(&one.secret, "/v1/books").await;
    let usage = service.get_as(&other.secret, "/v1/usage").await.json();
    assert_eq!((&usage["key_id"], &usage["day"]["used"]), (&other.id.as_str().into(), &0.into()));
    assert_eq!(service.get_as(&one.secret, "/v1/usage?key_id=x").await.status, 400);
    assert_eq!(service.send("GET", "/v1/usage", &[]).await.status, 401);
}
