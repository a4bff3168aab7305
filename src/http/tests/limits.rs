//! Limits and the headers that report them.

use std::time::Duration;

use http::Method;

use crate::http::ServiceSettings;
use crate::http::testing::{Fixture, local, request};
use crate::http::{Handled, handle};

#[test]
fn every_answer_to_a_valid_key_has_its_usage() {
    let fixture = Fixture::new();
    let got = fixture.get("/v1/books");
    assert_eq!((got.header("x-requests-used"), got.header("x-requests-remaining")), (Some("1"), Some("9999")));
    assert_eq!(got.header("ratelimit-policy"), Some(r#""burst";q=60;w=60, "day";q=10000;w=86400"#));
    assert_eq!(got.header("ratelimit"), Some(r#""burst";r=59;t=60, "day";r=9999;t=1260"#));
    let month = fixture.get_as(&fixture.monthly, "/v1/nothing", &[]);
    assert_eq!((month.header("x-requests-used"), month.header("x-requests-remaining")), (Some("1"), Some("99")));
    assert_eq!(month.header("ratelimit-policy"), Some(r#""burst";q=60;w=60, "month";q=100;w=2592000"#));
}

#[test]
fn a_spent_minute_and_a_spent_day() {
    let fixture = Fixture::new();
    let ask = |target: &str| fixture.get_as(&fixture.tiny, target, &[]);
    assert_eq!(ask("/v1/books").status, 200);
    assert_eq!(ask("/v1/sports/curling/odds").status, 404);
    let spent = ask("/v1/books");
    assert_eq!(spent.error(), (429, "rate_limited".into()));
    assert_eq!((spent.header("retry-after"), spent.header("x-requests-used")), (Some("60"), Some("2")));
    assert_eq!(spent.header("ratelimit"), Some(r#""burst";r=0;t=60, "day";r=1;t=1260"#));

    fixture.clock.advance(Duration::from_mins(1));
    assert_eq!(ask("/v1/books").status, 200);
    let spent = ask("/v1/books");
    assert_eq!(spent.error(), (429, "quota_exceeded".into()));
    assert_eq!((spent.header("retry-after"), spent.header("x-requests-remaining")), (Some("1200"), Some("0")));
    assert_eq!(ask("/v1/status").status, 200, "health checks are free of the day");
}

#[test]
fn status_counts_for_the_minute_only() {
    let fixture = Fixture::new();
    let got = fixture.get("/v1/status");
    assert_eq!(got.header("x-requests-used"), Some("0"));
    assert_eq!(got.header("ratelimit"), Some(r#""burst";r=59;t=60, "day";r=10000;t=1260"#));
}

#[test]
fn a_304_counts() {
    let fixture = Fixture::new();
    let etag = fixture.get("/v1/books").header("etag").unwrap().to_owned();
    let got = fixture.get_as(&fixture.sandbox, "/v1/books", &[("if-none-match", &etag)]);
    assert_eq!((got.status.as_u16(), got.header("x-requests-used")), (304, Some("2")));
}

#[test]
fn a_key_without_a_lease_waits() {
    let fixture = Fixture::new();
    // A new day: the lease of the old one is void.
    fixture.clock.advance(Duration::from_hours(1));
    let asked = request(Method::GET, "/v1/books", &[("x-api-key", &fixture.sandbox)]);
    assert!(matches!(handle(&fixture.service, &asked, fixture.clock.now()), Handled::NeedsLease(_)));
    assert_eq!(fixture.send(&asked).header("x-requests-used"), Some("1"));
}

#[tokio::test(start_paused = true)]
async fn request_whose_lease_does_not_come_in_time_gets_503_and_is_not_charged() {
    let fixture = Fixture::new();
    fixture.clock.advance(Duration::from_hours(1));
    let asked = request(Method::GET, "/v1/books", &[("x-api-key", &fixture.sandbox)]);
    let started = tokio::time::Instant::now();
    let response = fixture.service.respond(&asked, &local()).await;
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["x-requests-used"], "0");
    assert_eq!(response.headers()["retry-after"], "5");
    assert!(started.elapsed() >= ServiceSettings::default().lease_patience);
}

#[tokio::test]
async fn a_lease_that_comes_lets_the_request_pass() {
    let mut fixture = Fixture::new();
    fixture.clock.advance(Duration::from_hours(1));
    let asked = request(Method::GET, "/v1/books", &[("x-api-key", &fixture.sandbox)]);
    let (service, peer) = (std::sync::Arc::clone(&fixture.service), local());
    let grants = async {
        loop {
            for id in fixture.requests.next().await {
                let entry = service.keyring.get(&id).unwrap();
                entry.meter().plan_lease(fixture.clock.now()).into_iter().for_each(|lease| entry.meter().grant(lease));
            }
        }
    };
    tokio::select! {
        response = service.respond(&asked, &peer) => assert_eq!(response.status(), 200),
        () = grants => {}
    }
}
