//! Every mistake has an answer that names it.

use std::sync::Arc;

use http::Method;

use crate::board::{Boards, WorldBoard};
use crate::http::testing::{Fixture, NOW, local, request};
use crate::http::{Service, ServiceSettings};
use crate::model::{Maintenance, Timestamp, World};

#[test]
fn parameters_at_fault_are_named() {
    let fixture = Fixture::new();
    for (target, param) in [
        ("mma/odds?market=cards", "market"),
        ("mma/odds?bookmaker=nobody", "bookmaker"),
        ("mma/odds?regions=us,xx", "regions"),
        ("mma/odds?regions=us,", "regions"),
        ("mma/odds?regions=US", "regions"),
        ("mma/odds?regions=us&region=xx", "region"),
        ("mma/odds?odds_format=roman", "odds_format"),
        ("mma/odds?odd_format=decimal", "odd_format"),
        ("mma/odds?event_ids=a,,b", "event_ids"),
        ("mma/odds?limit=501", "limit"),
        ("mma/odds?limit=0", "limit"),
        ("mma/odds?limit=", "limit"),
        ("mma/odds?limit=5&limit=5", "limit"),
        ("mma/odds?limit=%zz", "limit"),
        ("mma/odds?after=nonsense", "after"),
        ("mma/odds?group=fight", "group"),
        ("tennis/odds?group=bout", "group"),
        ("mma/odds?group=bout&market=total_rounds", "market"),
        ("mma/odds?status=live", "status"),
        ("mma/scores?status=cancelled", "status"),
        ("mma/scores?market=spread", "market"),
        ("mma/events?status=over", "status"),
        ("mma/events?commence_from=tomorrow", "commence_from"),
        ("mma/events?commence_to=2026-11-15T01:29:00+02:00", "commence_to"),
        ("mma/events/mma-1?limit=5", "limit"),
    ] {
        let got = fixture.get(&format!("/v1/sports/{target}"));
        assert_eq!(got.error(), (400, "invalid_parameter".into()), "{target}");
        assert_eq!(got.json()["error"]["param"], param, "{target}");
    }
    for target in ["/v1/sports?a=1", "/v1/books?a=1", "/v1/status?a=1"] {
        assert_eq!(fixture.get(target).json()["error"]["param"], "a", "{target}");
    }
}

#[test]
fn error_body_has_the_request_id_and_is_not_cacheable() {
    let fixture = Fixture::new();
    let got = fixture.get_as(&fixture.sandbox, "/v1/sports/mma/odds?limit=501", &[("x-request-id", "job-7")]);
    assert_eq!(
        got.text(),
        r#"{"error":{"code":"invalid_parameter","message":"`limit` takes an integer from 1 to 500, not `501`.","#
            .to_owned()
            + r#""param":"limit","request_id":"job-7"}}"#
    );
    assert_eq!(got.header("x-request-id"), Some("job-7"));
    assert_eq!(got.header("cache-control"), Some("no-store"));
    assert_eq!(got.header("x-requests-used"), Some("1"));
}

#[test]
fn what_is_not_there() {
    let fixture = Fixture::new();
    for (target, code) in [
        ("/v1/sports/curling/odds", "sport_not_found"),
        ("/v1/sports//odds", "sport_not_found"),
        ("/v1/sports/mma/events/nobody", "event_not_found"),
        ("/v1/sports/tennis/events/mma-1", "event_not_found"),
        ("/v1/sports/mma", "not_found"),
        ("/v1", "not_found"),
        ("/favicon.ico", "not_found"),
    ] {
        assert_eq!(fixture.get(target).error(), (404, code.into()), "{target}");
    }
    assert_eq!(fixture.anonymous(Method::POST, "/favicon.ico").error(), (404, "not_found".into()));
}

#[test]
fn versioned_paths_without_a_key_get_401() {
    let fixture = Fixture::new();
    let mistyped = format!("{}x", fixture.sandbox);
    for target in ["/v1", "/v1/nothing", "/v1/books", "/v1/sports/curling/odds?limit=0"] {
        for (method, key) in
            [(Method::GET, None), (Method::DELETE, None), (Method::GET, Some(&*mistyped)), (Method::GET, Some(""))]
        {
            let headers: Vec<(&str, &str)> = key.map(|key| ("x-api-key", key)).into_iter().collect();
            let got = fixture.send(&request(method, target, &headers));
            assert_eq!(got.error(), (401, "authentication_failed".into()), "{target}");
            assert_eq!(got.header("www-authenticate"), Some("ApiKey header=\"X-API-Key\""));
            assert_eq!((got.header("x-requests-used"), got.header("ratelimit")), (None, None));
        }
    }
}

#[test]
fn keys_in_odd_places() {
    let fixture = Fixture::new();
    let key = &*fixture.sandbox;
    let in_query = format!("/v1/books?api_key={key}");
    let got = fixture.anonymous(Method::GET, &in_query);
    assert_eq!((got.status.as_u16(), got.header("deprecation")), (200, Some("@1767225600")));
    let both = fixture.get(&in_query);
    assert_eq!((both.status.as_u16(), both.header("deprecation")), (200, None));
    let header_wins = fixture.get_as("sk_test_ob_wrong", &in_query, &[]);
    assert_eq!((header_wins.error().0, header_wins.header("deprecation")), (401, None));
    assert_eq!(fixture.get_as(key, "/v1/books", &[("x-api-key", key)]).error().0, 401, "two headers are no key");
    let mut odd = request(Method::GET, "/v1/books", &[]);
    odd.headers_mut().insert("x-api-key", http::HeaderValue::from_bytes(b"sk_\xff").unwrap());
    assert_eq!(fixture.send(&odd).error(), (401, "authentication_failed".into()));

    let strict = Fixture::with_settings(ServiceSettings { allow_query_key: false, ..ServiceSettings::default() });
    assert_eq!(strict.anonymous(Method::GET, &format!("/v1/books?api_key={}", strict.sandbox)).error().0, 401);
    assert_eq!(strict.get(&format!("/v1/books?api_key={}", strict.sandbox)).status, 200);
}

#[test]
fn the_header_wins_whatever_key_the_query_holds() {
    let fixture = Fixture::new();
    let good = &*fixture.sandbox;
    for query in ["api_key=", "api_key", "api_key=%FF", "api_key=a&api_key=b", "api_key=&api_key=", "api_key=wrong"] {
        for target in ["/v1/books", "/v1/sports/mma/odds", "/v1/status"] {
            let got = fixture.get(&format!("{target}?{query}"));
            assert_eq!((got.status.as_u16(), got.header("deprecation")), (200, None), "{target}?{query}");
        }
    }
    let twice = fixture.anonymous(Method::GET, &format!("/v1/books?api_key={good}&api_key={good}"));
    assert_eq!(
        (twice.error(), &twice.json()["error"]["param"]),
        ((400, "invalid_parameter".into()), &"api_key".into())
    );
    let missing = fixture.anonymous(Method::GET, "/v1/books?api_key=");
    assert_eq!(missing.error(), (401, "authentication_failed".into()));
}

#[test]
fn checks_are_in_the_documented_order() {
    let fixture = Fixture::new();
    let send =
        |key: &str, method: Method, target: &str| fixture.send(&request(method, target, &[("x-api-key", key)])).error();
    let restricted = &*fixture.golf_only;
    assert_eq!(send(restricted, Method::GET, "/v1/sports/mma/odds?limit=0"), (403, "forbidden".into()));
    assert_eq!(send(restricted, Method::GET, "/v1/sports/curling/odds"), (404, "sport_not_found".into()));
    assert_eq!(send(restricted, Method::POST, "/v1/sports/mma/odds"), (405, "method_not_allowed".into()));
    assert_eq!(send(restricted, Method::POST, "/v1/nothing"), (404, "not_found".into()));
    assert_eq!(send(restricted, Method::GET, "/v1/sports/golf/odds?limit=0"), (400, "invalid_parameter".into()));
    assert_eq!(fixture.get_as(restricted, "/v1/sports/golf/events", &[]).status, 200);
    assert_eq!(fixture.get_as(restricted, "/v1/sports", &[]).json()["sports"].as_array().unwrap().len(), 5);
}

#[test]
fn bounds_are_checked_before_the_key() {
    let fixture = Fixture::new();
    let long = format!("/v1/books?a={}", "x".repeat(9000));
    assert_eq!(fixture.anonymous(Method::GET, &long).error(), (414, "uri_too_long".into()));
    // With the `Host` of every request, one too many.
    let name_count: Vec<String> = (0..64).map(|number| format!("x-{number}")).collect();
    let many: Vec<(&str, &str)> = name_count.iter().map(|name| (&**name, "1")).collect();
    assert_eq!(fixture.send(&request(Method::GET, "/", &many)).error(), (431, "headers_too_large".into()));
    assert_eq!(fixture.send(&request(Method::GET, "/", &many[..63])).status, 200);
    let large = "x".repeat(17 << 10);
    assert_eq!(fixture.send(&request(Method::GET, "/docs", &[("cookie", &large)])).error().0, 431);
}

#[test]
fn maintenance_rejects_data_requests_and_charges_nothing() {
    let fixture = Fixture::new();
    let condition = fixture.service.boards.condition();
    let since = Timestamp::from_unix(NOW - 5);
    condition.set_maintenance(Some(Maintenance { since, until: Some(Timestamp::from_unix(NOW + 90)) }));
    for target in ["/v1/sports", "/v1/books", "/v1/sports/mma/odds?limit=0", "/v1/sports/mma/events/mma-1"] {
        let got = fixture.get(target);
        assert_eq!(got.error(), (503, "maintenance".into()), "{target}");
        assert_eq!((got.header("retry-after"), got.header("x-requests-used")), (Some("90"), Some("0")));
    }
    assert_eq!(fixture.get("/v1/sports/curling/odds").error().0, 404);
    assert_eq!(fixture.get("/v1/status").json()["status"], "maintenance");
    condition.set_maintenance(Some(Maintenance { since, until: None }));
    assert_eq!(fixture.get("/v1/books").header("retry-after"), Some("60"));
    condition.set_maintenance(None);
    assert_eq!(fixture.get("/v1/books").status, 200);
}

#[tokio::test]
async fn panic_fails_one_request_only() {
    let mut fixture = Fixture::new();
    // A world without boards: reading one of its sports panics.
    let empty = WorldBoard::new(Box::default(), Arc::clone(fixture.service.boards.load(World::Live).register()));
    let boards = Boards::new(Arc::clone(fixture.service.boards.catalogue()), [empty.clone(), empty]);
    let keyring = Arc::clone(&fixture.service.keyring);
    fixture.service =
        Arc::new(Service::new(Arc::new(boards), keyring, fixture.clock.clone(), ServiceSettings::default()));
    let asked = request(Method::GET, "/v1/sports/mma/odds", &[("x-api-key", &fixture.sandbox)]);
    let response = fixture.service.respond(&asked, &local()).await;
    assert_eq!(
        (response.status().as_u16(), &response.headers()["content-type"]),
        (500, &"application/json".parse().unwrap())
    );
    assert_eq!(fixture.get("/v1/books").header("x-requests-used"), Some("1"), "the broken one was given back");
}
