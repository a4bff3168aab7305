//! `/`: a page for browsers and JSON for programs; and the keys that only a demo offers in its documentation.

use crate::harness::{Answer, OFFERED_KEYS, Service};

const JSON: &str = r#"{"service":"oddsbox","docs":"/docs","openapi":"/openapi.json","status":"/v1/status"}"#;

/// As Chrome sends it.
const BROWSER: &str =
    "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8,application/signed-exchange";

async fn root(service: &Service, method: &str, headers: &[(&str, &str)]) -> Answer {
    service.send(method, "/", headers).await
}

#[tokio::test]
async fn root_is_a_page_for_browsers_and_json_for_programs() {
    let service = Service::start().await;
    for accept in [None, Some("*/*"), Some("application/json"), Some("application/json, text/html"), Some("image/png")]
    {
        let headers = accept.map(|accept| ("accept", accept));
        let got = root(&service, "GET", headers.as_slice()).await;
        assert_eq!((got.status, got.text()), (200, JSON), "{accept:?}");
        assert_eq!(got.header("content-type"), Some("application/json"), "{accept:?}");
        assert_eq!(got.header("vary"), Some("accept, accept-encoding"), "{accept:?}");
        assert_eq!(got.header("content-security-policy"), None, "{accept:?}");
    }
    let docs = service.send("GET", "/docs", &[]).await;
    for accept in [BROWSER, "text/html", "text/html, application/json;q=0.9"] {
        let got = root(&service, "GET", &[("accept", accept)]).await;
        assert_eq!((got.status, got.header("vary")), (200, Some("accept, accept-encoding")), "{accept}");
        for name in ["content-type", "cache-control", "content-security-policy", "referrer-policy"] {
            assert_eq!(got.header(name), docs.header(name), "{accept} {name}");
        }
        for part in ["<h1>oddsbox</h1>", "href=\"/docs\"", "href=\"/docs/guide\"", "href=\"/openapi.json\"", "curl -H"]
        {
            assert!(got.text().contains(part), "{accept}: no {part}");
        }
    }
}

#[tokio::test]
async fn both_forms_of_the_root_have_their_own_validator_and_head() {
    let service = Service::start().await;
    let (json, page) = (root(&service, "GET", &[]).await, root(&service, "GET", &[("accept", BROWSER)]).await);
    let (json_tag, page_tag) = (json.header("etag").unwrap(), page.header("etag").unwrap());
    assert_ne!(json_tag, page_tag);
    for (accept, tag, other, length) in
        [("*/*", json_tag, page_tag, json.body.len()), (BROWSER, page_tag, json_tag, page.body.len())]
    {
        let held = root(&service, "GET", &[("accept", accept), ("if-none-match", tag)]).await;
        assert_eq!((held.status, held.body.len(), held.header("etag")), (304, 0, Some(tag)), "{accept}");
        assert_eq!(held.header("vary"), Some("accept, accept-encoding"), "{accept}");
        assert_eq!(
            root(&service, "GET", &[("accept", accept), ("if-none-match", other)]).await.status,
            200,
            "{accept}"
        );
        let head = root(&service, "HEAD", &[("accept", accept)]).await;
        assert_eq!((head.status, head.body.len(), head.header("etag")), (200, 0, Some(tag)), "{accept}");
        assert_eq!(head.header("content-length"), Some(&*length.to_string()), "{accept}");
    }
    let packed = root(&service, "GET", &[("accept", BROWSER), ("accept-encoding", "gzip")]).await;
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
}

#[tokio::test]
async fn only_the_documentation_of_a_demo_offers_keys() {
    let (sandbox, live) = OFFERED_KEYS;
    let demo = Service::start_demo().await;
    let keys = demo.send("GET", "/docs/demo.json", &[]).await;
    assert_eq!((keys.status, keys.json()), (200, serde_json::json!({"sandbox": sandbox, "live": live})));
    assert_eq!(keys.header("cache-control"), Some("no-store"));
    assert!(demo.send("GET", "/docs/getOdds", &[]).await.text().contains("data-demo-keys=\"/docs/demo.json\""));

    // The harness offers the keys to every server: one that does not simulate its live world ignores them.
    let service = Service::start().await;
    let refused = service.send("GET", "/docs/demo.json", &[]).await;
    assert_eq!((refused.status, refused.code()), (404, "not_found".to_owned()));
    for path in ["/", "/docs", "/docs/getOdds", "/docs/docs.js", "/docs/guide/api", "/docs/search.json"] {
        let page = service.send("GET", path, &[("accept", "text/html")]).await;
        assert_eq!(page.status, 200, "{path}");
        let text = page.text();
        assert!(!text.contains("data-demo-keys=") && !text.contains(sandbox) && !text.contains(live), "{path}");
    }
}
