//! Errors: one shape, one table of codes, and the request id.

use super::fixture::{error, every_sport, limited, message, restricted};
use crate::harness::{Answer, Service};

/// The whole body, byte for byte, except for the message.
fn assert_shape(answer: &Answer, code: &str, param: Option<&str>, request_id: &str) {
    let message = serde_json::json!(message(answer));
    let param = param.map(|param| format!(r#","param":"{param}""#)).unwrap_or_default();
    let body = format!(r#"{{"error":{{"code":"{code}","message":{message}{param},"request_id":"{request_id}"}}}}"#);
    assert_eq!(answer.text(), body);
    assert_eq!(answer.header("content-type"), Some("application/json"));
    assert_eq!(answer.header("x-request-id"), Some(request_id));
    assert_eq!(answer.header("etag"), None);
    assert_eq!(answer.header("cache-control"), Some("no-store"));
}

#[tokio::test]
async fn every_error_code_has_its_status_and_the_common_shape() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let golf = restricted(&service, &["golf"]).await.secret;
    let live = service.live.as_str();
    let long = format!("/v1/books?x={}", "a".repeat(9000));
    for (number, (key, method, path, status, code, param)) in [
        ("", "GET", "/v1/books", 401, "authentication_failed", None),
        (&*golf, "GET", "/v1/sports/mma/odds", 403, "forbidden", None),
        (live, "GET", "/v1/nothing", 404, "not_found", None),
        ("", "GET", "/nothing", 404, "not_found", None),
        (live, "GET", "/v1/sports/curling/odds", 404, "sport_not_found", None),
        (live, "GET", "/v1/sports/mma/events/none", 404, "event_not_found", None),
        (live, "POST", "/v1/books", 405, "method_not_allowed", None),
        (live, "GET", "/v1/sports/mma/odds?limit=0", 400, "invalid_parameter", Some("limit")),
        (live, "GET", "/v1/sports/mma/odds?odd_format=decimal", 400, "invalid_parameter", Some("odd_format")),
        (live, "GET", &*long, 414, "uri_too_long", None),
    ]
    .into_iter()
    .enumerate()
    {
        let id = format!("req-{number}.A_b");
        let answer = service.send(method, path, &[("x-api-key", key), ("x-request-id", &id)]).await;
        assert_eq!(answer.status, status, "{path}");
        assert_shape(&answer, code, param, &id);
    }
}

#[tokio::test]
async fn exhausted_limits_have_the_common_error_shape() {
    let service = Service::start().await;
    let (burst, day) =
        (limited(&service, 1, Some(9), None).await.secret, limited(&service, 9, Some(1), None).await.secret);
    for (key, code) in [(burst, "rate_limited"), (day, "quota_exceeded")] {
        service.get_as(&key, "/v1/books").await;
        let answer = service.send("GET", "/v1/books", &[("x-api-key", &key), ("x-request-id", "r")]).await;
        assert_eq!(answer.status, 429);
        assert_shape(&answer, code, None, "r");
    }
}

#[tokio::test]
async fn url_beyond_8_kib_is_414_with_and_without_a_key() {
    let service = Service::start().await;
    let url = |bytes: usize| format!("/v1/books?{}", "a".repeat(bytes - "/v1/books?".len()));
    for bytes in [8300, 20_000, 60_000] {
        for headers in [&[][..], &[("x-api-key", service.live.as_str())]] {
            assert_eq!(
                error(&service.send("GET", &url(bytes), headers).await),
                (414, "uri_too_long".into()),
                "{bytes}"
            );
        }
    }
    assert_eq!(service.get(&url(8000)).await.status, 400, "an unknown parameter, but it was read");
    let open = format!("/healthz?{}", "a".repeat(9000));
    assert_eq!(service.send("GET", &open, &[]).await.status, 414);
}

#[tokio::test]
async fn headers_beyond_16_kib_or_64_are_431() {
    let service = Service::start().await;
    let large = "a".repeat(17_000);
    let answer = service.send("GET", "/v1/books", &[("x-api-key", &service.live), ("x-large", &large)]).await;
    assert_eq!(error(&answer), (431, "headers_too_large".into()));
    assert!(answer.header("x-request-id").is_some());
    let fits = "a".repeat(15_000);
    assert_eq!(service.get_with("/v1/books", &[("x-large", &fits)]).await.status, 200);
    let names: Vec<String> = (0..90).map(|number| format!("x-h{number}")).collect();
    let many: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "v")).collect();
    assert_eq!(error(&service.get_with("/v1/books", &many).await), (431, "headers_too_large".into()));
    assert_eq!(service.get_with("/v1/books", &many[..60]).await.status, 200);
}

#[tokio::test]
async fn well_formed_request_id_is_kept_and_any_other_is_replaced() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let longest = "a".repeat(128);
    for path in ["/v1/books", "/v1/status", "/v1/nothing", "/healthz", "/nowhere", "/v1/sports/mma/odds?limit=x"] {
        for id in ["job-7.A_b", "0", &longest] {
            assert_eq!(
                service.get_with(path, &[("x-request-id", id)]).await.header("x-request-id"),
                Some(id),
                "{path}"
            );
        }
        let too_long = "a".repeat(129);
        for id in ["", "a b", "a\"b", "ä", "a,b", "a/b", &too_long] {
            let answer = service.get_with(path, &[("x-request-id", id)]).await;
            let own = answer.header("x-request-id").unwrap();
            assert!(
                own != id && own.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte)),
                "{own}"
            );
        }
    }
}

#[tokio::test]
async fn request_without_an_id_gets_one_that_errors_repeat() {
    let service = Service::start().await;
    let mut ids = Vec::new();
    for path in ["/v1/books", "/v1/books", "/", "/v1/nothing", "/v1/sports/mma/odds?limit=0"] {
        let answer = service.get(path).await;
        let id = answer.header("x-request-id").unwrap().to_owned();
        if answer.status >= 400 {
            assert_eq!(answer.json()["error"]["request_id"], *id);
        }
        ids.push(id);
    }
    let etag = service.get("/v1/books").await.header("etag").unwrap().to_owned();
    let unchanged = service.get_with("/v1/books", &[("if-none-match", &etag)]).await;
    assert_eq!(unchanged.status, 304);
    ids.push(unchanged.header("x-request-id").unwrap().to_owned());
    let count = ids.len();
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), count, "no two the same");
}
