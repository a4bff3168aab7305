//! Paths and methods.

use super::fixture::{ROUTES, error, every_sport};
use crate::harness::{Answer, Service};

async fn with_data() -> Service {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    service
}

#[tokio::test]
async fn trailing_slash_is_ignored_without_a_redirect() {
    let service = with_data().await;
    for path in ROUTES.into_iter().chain(["/docs", "/openapi.json", "/healthz"]) {
        let (plain, slashed) = (service.get(path).await, service.get(&format!("{path}/")).await);
        assert_eq!((slashed.status, &slashed.body), (200, &plain.body), "{path}");
    }
    assert_eq!(service.get("/v1/sports/mma/odds/?limit=1").await.status, 200);
}

#[tokio::test]
async fn an_unknown_path_is_404_not_found() {
    let service = with_data().await;
    for path in [
        "/v1",
        "/v1/",
        "/v1/odds",
        "/v1/sports/mma",
        "/v1/sports/mma/",
        "/v1/sports/mma/prices",
        "/v1/sports/mma/odds/m1",
        "/v1/sports/mma/odds//",
        "/v1//sports",
        "/v1/Sports",
        "/v1/sports/mma/events/m1/odds",
        "/v2/sports",
        "/V1/sports",
        "/nothing",
        "/healthz/x",
    ] {
        assert_eq!(error(&service.get(path).await), (404, "not_found".into()), "{path}");
    }
}

#[tokio::test]
async fn bad_percent_encoding_in_a_path_is_400_after_authentication() {
    let service = with_data().await;
    for path in [
        "/v1/sports/%FF/odds",
        "/v1/sports/mma/events/%zz",
        "/v1/%",
        "/v1/nothing/%2",
        "/v1/sports/mma/odds/a/b/c/d/e/%zz",
    ] {
        let answer = service.get(path).await;
        assert_eq!((error(&answer), answer.param()), ((400, "invalid_parameter".into()), String::new()), "{path}");
        assert!(super::fixture::message(&answer).contains("path"), "{answer:?}");
        assert!(answer.header("x-requests-used").is_some(), "{path} is charged as every answered request is");
        assert_eq!(service.send("GET", path, &[]).await.status, 401, "{path}");
    }
    for path in ["/%zz", "/v%FF/sports", "/docs/%"] {
        assert_eq!(error(&service.send("GET", path, &[]).await), (400, "invalid_parameter".into()), "{path}");
    }
}

/// RFC 9112, section 3.2.
#[tokio::test]
async fn http_1_1_needs_exactly_one_valid_host() {
    let service = with_data().await;
    let (live, books) = (&service.live, "/v1/books");
    let send = async |version: &str, path: &str, hosts: &str| {
        let text = format!("GET {path} HTTP/{version}\r\n{hosts}x-api-key: {live}\r\nconnection: close\r\n\r\n");
        Answer::parse(&service.exchange(text.as_bytes()).await)
    };
    let used = async || send("1.1", "/v1/status", "host: a\r\n").await.header("x-requests-used").map(str::to_owned);
    let before = used().await;
    for hosts in [
        "",
        "host: a\r\nhost: a\r\n",
        "host: a\r\nHost: b\r\n",
        "host: a b\r\n",
        "host: a/b\r\n",
        "host: u@a\r\n",
        "host: a,b\"\r\n",
        "host: a:port\r\n",
        "host: [::1\r\n",
        "host: a%zz\r\n",
        "host: \r\n",
        "host: \u{e9}\r\n",
    ] {
        for path in [books, "/v1/nothing", "/", "/docs", "/openapi.json", "/healthz", "/nothing"] {
            let answer = send("1.1", path, hosts).await;
            assert_eq!(error(&answer), (400, "invalid_parameter".into()), "{path} {hosts:?}");
            assert!(super::fixture::message(&answer).contains("`Host`"), "{answer:?}");
            assert!(answer.header("x-request-id").is_some() && answer.header("x-requests-used").is_none());
        }
    }
    let v4 = send("1.1", "/v4/sports", "").await;
    assert_eq!((v4.status, v4.json()["error_code"].as_str().unwrap()), (400, "INVALID_REQUEST"));
    assert_eq!(used().await, before, "none of them was charged");
    for hosts in [
        "host: a\r\n",
        "host: a-b.example:8080\r\n",
        "host: [2001:db8::1]:80\r\n",
        "host: 127.0.0.1\r\n",
        "host: a:\r\n",
    ] {
        assert_eq!(send("1.1", books, hosts).await.status, 200, "{hosts:?}");
    }
    assert_eq!(send("1.0", books, "").await.status, 200, "HTTP/1.0 knew no such header");
    assert_eq!(send("1.0", books, "host: a\r\nhost: b\r\n").await.status, 400);
}

#[tokio::test]
async fn an_unknown_sport_is_404_sport_not_found() {
    let service = with_data().await;
    for sport in ["curling", "MMA", "nfl", "combat", "mma%20"] {
        for list in ["odds", "scores", "events", "events/m1"] {
            let answer = service.get(&format!("/v1/sports/{sport}/{list}")).await;
            assert_eq!(error(&answer), (404, "sport_not_found".into()), "{sport}/{list}");
        }
    }
}

#[tokio::test]
async fn another_method_is_405_with_allow() {
    let service = with_data().await;
    for path in ROUTES.into_iter().chain(["/", "/docs", "/openapi.json", "/healthz"]) {
        for method in ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"] {
            let answer = service.send(method, path, &[("x-api-key", &service.live)]).await;
            assert_eq!(error(&answer), (405, "method_not_allowed".into()), "{method} {path}");
            assert_eq!(answer.header("allow"), Some("GET, HEAD"), "{method} {path}");
        }
    }
    for path in ["/v1/nothing", "/nothing"] {
        let answer = service.send("POST", path, &[("x-api-key", &service.live)]).await;
        assert_eq!(error(&answer), (404, "not_found".into()), "{path}");
    }
}

/// The headers that are the same for every request.
fn lasting(answer: &Answer) -> Vec<(String, String)> {
    let passing = ["x-request-id", "x-requests-used", "x-requests-remaining", "ratelimit", "date"];
    let mut headers = answer.headers.clone();
    headers.retain(|(name, _)| !passing.contains(&name.as_str()));
    headers.sort();
    headers
}

#[tokio::test]
async fn head_responds_as_get_without_the_body() {
    let service = with_data().await;
    let others = ["/", "/docs", "/openapi.json", "/healthz", "/v1/nothing", "/v1/sports/mma/odds?group=bout"];
    for path in ROUTES.into_iter().chain(others) {
        for encoding in ["identity", "gzip", "zstd"] {
            let headers = [("x-api-key", service.live.as_str()), ("accept-encoding", encoding), ("x-request-id", "r")];
            let (get, head) = (service.send("GET", path, &headers).await, service.send("HEAD", path, &headers).await);
            assert_eq!((head.status, lasting(&head)), (get.status, lasting(&get)), "{path} {encoding}");
            assert_eq!(head.header("content-length"), Some(get.body.len().to_string().as_str()), "{path}");
            assert!(head.body.is_empty(), "{path}");
        }
    }
    let refused = service.send("HEAD", "/v1/books", &[]).await;
    assert_eq!((refused.status, refused.body.is_empty()), (401, true));
}

#[tokio::test]
async fn head_counts_as_get_does() {
    let service = with_data().await;
    for used in ["1", "2"] {
        let answer = service.send("HEAD", "/v1/books", &[("x-api-key", &service.live)]).await;
        assert_eq!(answer.header("x-requests-used"), Some(used));
    }
}

#[tokio::test]
async fn many_requests_share_a_connection() {
    let service = with_data().await;
    let request =
        |path: &str, end: &str| format!("GET {path} HTTP/1.1\r\nhost: x\r\nx-api-key: {}\r\n{end}\r\n", service.live);
    let bytes = request("/v1/sports/mma/events/m1", "")
        + &request("/v1/nothing", "")
        + &request("/v1/sports/mma/events/m1", "connection: close\r\n");
    let answer = service.exchange(bytes.as_bytes()).await;
    let text = String::from_utf8_lossy(&answer);
    assert_eq!((text.matches("HTTP/1.1 200").count(), text.matches("HTTP/1.1 404").count()), (2, 1), "{text}");
}

#[tokio::test]
async fn malformed_request_targets_get_json_errors() {
    let service = with_data().await;
    assert_eq!(error(&service.send("OPTIONS", "*", &[]).await), (404, "not_found".into()));
    for path in ["//v1/books", "/.", "/v1/books/../status", "/%00", "/v1/%00"] {
        assert_eq!(error(&service.get(path).await), (404, "not_found".into()), "{path}");
    }
    let long = "a".repeat(200);
    assert_eq!(error(&service.get(&format!("/v1/sports/mma/events/{long}")).await), (404, "event_not_found".into()));
    assert_eq!(service.get(&format!("/v1/sports/mma/events?event_ids={long}")).await.text(), "[]");
}

#[tokio::test]
async fn request_body_is_ignored() {
    let service = with_data().await;
    let head = format!(
        "GET /v1/sports/mma/events/m1 HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-api-key: {}\r\n",
        service.live
    );
    let answer = service.exchange(format!("{head}content-length: 4\r\n\r\nbody").as_bytes()).await;
    assert_eq!(Answer::parse(&answer).body, service.get("/v1/sports/mma/events/m1").await.body);
}
