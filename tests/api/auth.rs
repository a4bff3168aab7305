//! Authentication: every kind of key on every route.

use super::fixture::{ROUTES, error, every_sport, key, message, restricted};
use crate::harness::follower::Follower;
use crate::harness::{START, Service};
use oddsbox::keys::{KeyKind, Secret};
use oddsbox::model::Timestamp;
use serde_json::json;

const OPEN: [&str; 5] = ["/", "/docs", "/openapi.json", "/healthz", "/docs/"];

async fn with_data() -> Service {
    let service = Service::start_with_sandbox().await;
    service.ingest(&every_sport()).await;
    service
}

#[tokio::test]
async fn invalid_key_is_401_on_every_route() {
    let service = with_data().await;
    let unknown = Secret::generate(KeyKind::Production).unwrap().expose().to_owned();
    let revoked = key(&service, KeyKind::Production, |_| {}).await;
    service.writer().revoke_key(&revoked.id, "test").await.unwrap();
    let expires = Some(Timestamp::from_unix_ms(crate::harness::START_MS).plus_seconds(10));
    let outdated = key(&service, KeyKind::Production, |new| new.expires = expires).await.secret;
    let rotated = key(&service, KeyKind::Production, |_| {}).await;
    service.writer().rotate_key(&rotated.id, 0, "test").await.unwrap();
    service.pass(10);
    let truncated = &service.live[..service.live.len() - 1];
    let cases = [
        ("missing", None),
        ("empty", Some("")),
        ("malformed", Some("hello")),
        ("truncated", Some(truncated)),
        ("unknown", Some(&unknown)),
        ("revoked", Some(&revoked.secret)),
        ("expired", Some(&outdated)),
        ("rotated out", Some(&rotated.secret)),
    ];
    let elsewhere = ["/v1", "/v1/", "/v1/nothing", "/v1/sports/curling/odds"];
    for (name, secret) in cases {
        let header = secret.map(|secret| ("x-api-key", secret));
        for path in ROUTES.into_iter().chain(elsewhere) {
            let answer = service.send("GET", path, header.as_slice()).await;
            assert_eq!(error(&answer), (401, "authentication_failed".into()), "{name} {path}");
            assert_eq!(answer.header("x-requests-used"), None, "{name} {path}");
            assert!(secret.is_none_or(|secret| secret.is_empty() || !answer.text().contains(secret)), "{answer:?}");
        }
    }
}

/// A request for each operation that needs a key, about MMA wherever it is about a sport. The document has all of them.
async fn documented(service: &Service) -> Vec<(String, String)> {
    let document = service.send("GET", "/openapi.json", &[]).await.json();
    let mut requests = Vec::new();
    for (template, operations) in document["paths"].as_object().unwrap() {
        let (v1, v4) = ("mma", "mma_mixed_martial_arts");
        let path = template.replace("{sport_key}", v1).replace("{sport}", v4);
        let path = path.replace("{event_id}", "m1").replace("{hour}", "2026-11-14T22");
        let query = match path.rsplit('/').next().unwrap() {
            "stream" | "changes" => "?sports=mma".to_owned(),
            _ if path.starts_with("/v4") => format!("?regions=us&date={START}"),
            "odds" | "best" | "fair" => "?include=event".to_owned(),
            "edges" => "?kind=ev&min=0&include=event".to_owned(),
            "closing" => "?date=2026-11-15".to_owned(),
            _ => String::new(),
        };
        let methods =
            operations.as_object().unwrap().iter().filter(|(_, operation)| operation["responses"].is_object());
        let keyed = methods.filter(|(_, operation)| operation["security"] != json!([]));
        requests.extend(keyed.map(|(method, _)| (method.to_uppercase(), format!("{path}{query}"))));
    }
    assert!(requests.len() > 30, "{requests:?}");
    requests
}

#[tokio::test]
async fn no_documented_operation_is_for_an_invalid_key() {
    let service = with_data().await;
    let unknown = Secret::generate(KeyKind::Production).unwrap().expose().to_owned();
    let revoked = key(&service, KeyKind::Production, |new| new.self_service = true).await;
    service.writer().revoke_key(&revoked.id, "test").await.unwrap();
    let expires = Some(Timestamp::from_unix_ms(crate::harness::START_MS).plus_seconds(10));
    let outdated = key(&service, KeyKind::Production, |new| new.expires = expires).await.secret;
    service.pass(10);
    for secret in [None, Some(&unknown), Some(&revoked.secret), Some(&outdated)] {
        let header = secret.map(|secret| ("x-api-key", secret.as_str()));
        for (method, target) in documented(&service).await {
            let answer = service.send(&method, &target, header.as_slice()).await;
            assert_eq!((answer.status, answer.header("x-requests-used")), (401, None), "{method} {target}");
            assert!(secret.is_none_or(|secret| !answer.text().contains(secret.as_str())), "{answer:?}");
        }
    }
}

#[tokio::test]
async fn documented_operations_have_nothing_of_other_groups_for_a_restricted_key() {
    let service = with_data().await;
    let golf = restricted(&service, &["golf"]).await.secret;
    for (method, target) in documented(&service).await.into_iter().filter(|(method, _)| method == "GET") {
        let answer = service.get_as(&golf, &target).await;
        let expected = if target.contains("mma") { 403 } else { 200 };
        assert_eq!(answer.status, expected, "{method} {target}");
        assert!(!answer.text().contains("Home m1"), "{method} {target}");
    }
}

#[tokio::test]
async fn documented_operations_have_nothing_of_the_live_world_for_a_sandbox_key() {
    let service = with_data().await;
    let mut seen = 0;
    for (method, target) in documented(&service).await.into_iter().filter(|(method, _)| method == "GET") {
        let texts = if target.starts_with("/v1/stream") {
            let read = async |secret: &str| {
                let mut follower = Follower::open_as(&service, secret, &format!("{target}&include=event"), None).await;
                format!("{:?}", follower.until("ready").await)
            };
            [read(&service.live).await, read(&service.sandbox).await]
        } else {
            let read = async |secret: &str| service.get_as(secret, &target).await.text().to_owned();
            [read(&service.live).await, read(&service.sandbox).await]
        };
        let [live, sandbox] = texts.map(|text| text.contains("Home m1"));
        assert!(!sandbox, "{method} {target}");
        seen += u32::from(live);
    }
    assert!(seen >= 12, "the live key gets it from {seen} of them");
}

#[tokio::test]
async fn valid_key_is_200_on_every_route() {
    let service = with_data().await;
    let expires = Some(Timestamp::from_unix_ms(crate::harness::START_MS).plus_seconds(10));
    let expiring = key(&service, KeyKind::Production, |new| new.expires = expires).await.secret;
    let rotated = key(&service, KeyKind::Production, |_| {}).await;
    let renewed = service.writer().rotate_key(&rotated.id, 60, "test").await.unwrap().secret.expose().to_owned();
    service.pass(9);
    let combat = restricted(&service, &["combat"]).await.secret;
    for (name, secret) in [
        ("production", &service.live),
        ("about to expire", &expiring),
        ("rotated, in its grace", &rotated.secret),
        ("renewed", &renewed),
        ("restricted, inside", &combat),
    ] {
        for path in ROUTES {
            assert_eq!(service.get_as(secret, path).await.status, 200, "{name} {path}");
        }
    }
    for path in &ROUTES[..6] {
        assert_eq!(service.get_as(&service.sandbox, path).await.status, 200, "sandbox {path}");
    }
    let other = service.get_as(&service.sandbox, ROUTES[6]).await;
    assert_eq!(error(&other), (404, "event_not_found".into()), "an event of the live world");
}

#[tokio::test]
async fn a_restricted_key_outside_its_groups_is_403_on_the_routes_of_a_sport() {
    let service = with_data().await;
    let golf = restricted(&service, &["golf"]).await.secret;
    for path in ROUTES {
        let answer = service.get_as(&golf, path).await;
        if path.contains("/mma") {
            assert_eq!(error(&answer), (403, "forbidden".into()), "{path}");
            assert!(answer.header("x-requests-used").is_some());
        } else {
            assert_eq!(answer.status, 200, "{path}");
        }
    }
}

#[tokio::test]
async fn revocation_is_effective_immediately() {
    let service = with_data().await;
    let issued = key(&service, KeyKind::Production, |_| {}).await;
    assert_eq!(service.get_as(&issued.secret, "/v1/books").await.status, 200);
    service.writer().revoke_key(&issued.id, "test").await.unwrap();
    assert_eq!(service.get_as(&issued.secret, "/v1/books").await.status, 401);
    assert_eq!(service.get_as(&issued.secret, "/v1/status").await.status, 401);
}

#[tokio::test]
async fn key_is_rejected_from_the_second_of_expiry() {
    let service = Service::start_with_sandbox().await;
    let expires = Some(Timestamp::from_unix_ms(crate::harness::START_MS).plus_seconds(10));
    let secret = key(&service, KeyKind::Sandbox, |new| new.expires = expires).await.secret;
    service.clock.advance(std::time::Duration::from_millis(9_999));
    assert_eq!(service.get_as(&secret, "/v1/books").await.status, 200);
    service.clock.advance(std::time::Duration::from_millis(1));
    assert_eq!(service.get_as(&secret, "/v1/books").await.status, 401);
}

#[tokio::test]
async fn api_key_in_the_query_is_accepted_on_every_route_with_a_deprecation_header() {
    let service = with_data().await;
    for path in ROUTES {
        let answer = service.send("GET", &format!("{path}?api_key={}", service.live), &[]).await;
        assert_eq!(answer.status, 200, "{path} {answer:?}");
        assert!(answer.header("deprecation").is_some(), "{path}");
        let by_header = service.get(path).await;
        assert_eq!((by_header.status, by_header.header("deprecation")), (200, None), "{path}");
        assert_eq!(by_header.body, answer.body, "{path}");
    }
    let mistake = service.send("GET", &format!("/v1/sports/mma/odds?limit=0&api_key={}", service.live), &[]).await;
    assert_eq!(mistake.status, 400);
    assert!(mistake.header("deprecation").is_some(), "on errors too");
    let encoded = service.live.replace('_', "%5F");
    assert_eq!(service.send("GET", &format!("/v1/books?api_key={encoded}"), &[]).await.status, 200);
}

#[tokio::test]
async fn the_header_wins_over_the_query() {
    let service = with_data().await;
    let bad = "/v1/books?api_key=nonsense";
    assert_eq!(service.get(bad).await.status, 200);
    let good = format!("/v1/books?api_key={}", service.live);
    assert_eq!(error(&service.get_as("nonsense", &good).await), (401, "authentication_failed".into()));
    // The keys are of different worlds: the header's key decides.
    let path = format!("/v1/sports/mma/events/m1?api_key={}", service.sandbox);
    let answer = service.get(&path).await;
    assert_eq!((answer.status, answer.header("deprecation")), (200, None));
}

#[tokio::test]
async fn allow_query_key_false_refuses_the_key_in_the_query() {
    let service = Service::start_with(&[("allow_query_key", "false")]).await;
    service.ingest(&every_sport()).await;
    for path in ROUTES {
        let answer = service.send("GET", &format!("{path}?api_key={}", service.live), &[]).await;
        assert_eq!(error(&answer), (401, "authentication_failed".into()), "{path}");
        assert!(!answer.text().contains(&service.live));
        assert_eq!(service.get(path).await.status, 200);
    }
}

#[tokio::test]
async fn public_routes_need_no_key() {
    let service = with_data().await;
    for path in OPEN {
        for headers in [&[][..], &[("x-api-key", "nonsense")]] {
            let answer = service.send("GET", path, headers).await;
            assert_eq!(answer.status, 200, "{path}");
            assert_eq!(answer.header("x-requests-used"), None, "{path}");
        }
    }
    assert_eq!(service.send("GET", "/healthz", &[]).await.json()["status"], "ok");
    let openapi = service.send("GET", "/openapi.json", &[]).await;
    for path in [
        "/v1/sports",
        "/v1/books",
        "/v1/status",
        "/v1/sports/{sport_key}/odds",
        "/v1/sports/{sport_key}/scores",
        "/v1/sports/{sport_key}/events",
        "/v1/sports/{sport_key}/events/{event_id}",
    ] {
        assert!(openapi.json()["paths"][path]["get"].is_object(), "{path}");
    }
}

#[tokio::test]
async fn public_routes_contain_no_prices() {
    let service = with_data().await;
    for path in OPEN {
        let text = service.send("GET", path, &[]).await;
        assert!(!text.text().contains("Home m1") && !text.text().contains("A. Ames"), "{path}");
    }
}

#[tokio::test]
async fn two_key_headers_are_rejected() {
    let service = Service::start_with_sandbox().await;
    let headers = [("x-api-key", service.live.as_str()), ("x-api-key", service.sandbox.as_str())];
    assert_eq!(service.send("GET", "/v1/books", &headers).await.status, 401);
}

#[tokio::test]
async fn a_401_says_how_to_send_a_key_and_challenges() {
    let service = Service::start_with_sandbox().await;
    let answer = service.send("GET", "/v1/books", &[]).await;
    assert!(message(&answer).contains("X-API-Key"), "{answer:?}");
    assert!(answer.header("www-authenticate").is_some());
}

#[tokio::test]
async fn encoded_path_prefix_does_not_bypass_authentication() {
    let service = with_data().await;
    for path in ["/%76%31/books", "/v%31/sports/mma/odds", "/%761/nothing"] {
        assert_eq!(error(&service.send("GET", path, &[]).await), (401, "authentication_failed".into()), "{path}");
    }
    for target in ["http://oddsbox/v1/books", "http://oddsbox/v1/sports/mma/odds"] {
        assert_eq!(service.send("GET", target, &[]).await.status, 401, "{target}");
        assert_eq!(service.get(target).await.status, 200, "{target}");
    }
}

#[tokio::test]
async fn a_key_that_is_not_text_is_401() {
    let service = Service::start_with_sandbox().await;
    for secret in ["ä", "sk_live_ob_ä", " ", "\t"] {
        assert_eq!(
            error(&service.get_as(secret, "/v1/books").await),
            (401, "authentication_failed".into()),
            "{secret:?}"
        );
    }
}

#[tokio::test]
async fn revoked_key_is_rejected_on_open_connection() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let service = Service::start_with_sandbox().await;
    let issued = key(&service, KeyKind::Production, |_| {}).await;
    let mut stream = tokio::net::TcpStream::connect(service.address).await.unwrap();
    let request = format!("GET /v1/nothing HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\n\r\n", issued.secret);
    let mut answered = async || {
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut head = vec![0; 12];
        stream.read_exact(&mut head).await.unwrap();
        // The rest of the response must be consumed: the body of an error ends with two braces.
        let mut byte = [0];
        let mut tail = [0; 2];
        while &tail != b"}}" {
            stream.read_exact(&mut byte).await.unwrap();
            tail = [tail[1], byte[0]];
        }
        String::from_utf8(head).unwrap()
    };
    assert_eq!(answered().await, "HTTP/1.1 404", "the key opens");
    service.writer().revoke_key(&issued.id, "test").await.unwrap();
    assert_eq!(answered().await, "HTTP/1.1 401");
}

#[tokio::test]
async fn query_key_gets_a_deprecation_header_on_every_response() {
    let service = with_data().await;
    let spent = super::fixture::limited(&service, 2, Some(9), None).await.secret;
    let path = format!("/v1/sports/mma/odds?api_key={spent}");
    let etag = service.send("GET", &path, &[]).await.header("etag").unwrap().to_owned();
    for (headers, status) in [(&[("if-none-match", &*etag)][..], 304), (&[], 429)] {
        let answer = service.send("GET", &path, headers).await;
        assert_eq!((answer.status, answer.header("deprecation").is_some()), (status, true));
        assert!(!format!("{answer:?}").contains(&spent), "the key is repeated nowhere");
    }
}
