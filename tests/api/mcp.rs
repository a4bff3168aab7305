//! The Model Context Protocol over a real socket.

use oddsbox::keys::KeyKind;
use serde_json::{Value, json};

use super::fixture::{error, every_sport, key, limited, restricted};
use crate::harness::{Answer, Service};

async fn post_as(service: &Service, headers: &[(&str, &str)], body: &str) -> Answer {
    let length = body.len().to_string();
    let mut text = format!("POST /mcp HTTP/1.1\r\nhost: oddsbox\r\nconnection: close\r\ncontent-length: {length}\r\n");
    for (name, value) in headers {
        text.extend([name, ": ", value, "\r\n"]);
    }
    text.extend(["\r\n", body]);
    Answer::parse(&service.exchange(text.as_bytes()).await)
}

async fn post(service: &Service, secret: &str, message: &Value) -> Answer {
    let headers = [("x-api-key", secret), ("accept", "application/json, text/event-stream")];
    post_as(service, &headers, &message.to_string()).await
}

async fn call_as(service: &Service, secret: &str, tool: &str, arguments: Value) -> Answer {
    let params = json!({ "name": tool, "arguments": arguments });
    post(service, secret, &json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params })).await
}

/// The data of a call that succeeds.
async fn call(service: &Service, tool: &str, arguments: Value) -> Value {
    let answer = call_as(service, &service.live, tool, arguments).await;
    assert_eq!((answer.status, &answer.json()["id"]), (200, &json!(7)), "{tool}: {answer:?}");
    let result = answer.json()["result"].clone();
    assert_eq!(result["isError"], false, "{tool}: {answer:?}");
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"], "{tool}: the text says the same");
    assert!(text["as_of"].is_string() && text["age_s"].is_u64(), "{tool}: {text}");
    text
}

/// The message of a call that fails.
async fn failure(service: &Service, secret: &str, tool: &str, arguments: Value) -> String {
    let answer = call_as(service, secret, tool, arguments).await;
    let result = &answer.json()["result"];
    assert_eq!((answer.status, &result["isError"]), (200, &json!(true)), "{tool}: {answer:?}");
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

/// The code of a JSON-RPC error.
fn rpc_code(answer: &Answer) -> i64 {
    answer.json()["error"]["code"].as_i64().unwrap_or_else(|| panic!("{answer:?}"))
}

#[tokio::test]
async fn handshake_names_the_revision_the_tools_and_nothing_else() {
    let service = Service::start().await;
    for (asked, spoken) in [
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2025-11-25", "2025-11-25"),
        ("2024-11-05", "2025-11-25"),
        ("2099-01-01", "2025-11-25"),
    ] {
        let params =
            json!({ "protocolVersion": asked, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let message = json!({ "jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params });
        let answer = post(&service, &service.live, &message).await;
        assert_eq!((answer.status, answer.header("content-type")), (200, Some("application/json")));
        assert_eq!(answer.header("cache-control"), Some("no-store"));
        assert!(answer.header("mcp-session-id").is_none());
        let result = &answer.json()["result"];
        assert_eq!((&result["protocolVersion"], &answer.json()["id"]), (&json!(spoken), &json!("i")), "{asked}");
        assert_eq!(result["capabilities"], json!({ "tools": {} }));
        assert_eq!(result["serverInfo"]["name"], "oddsbox");
    }
    let done = post(&service, &service.live, &json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await;
    assert_eq!((done.status, done.body.len(), done.header("content-type")), (202, 0, None));
    let pong = post(&service, &service.live, &json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" })).await;
    assert_eq!(pong.json(), json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
    let listed =
        post(&service, &service.live, &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).await.json();
    let tools = listed["result"]["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let expected = [
        "list_sports",
        "find_events",
        "get_odds",
        "best_prices",
        "fair_odds",
        "edges",
        "line_history",
        "service_status",
    ];
    assert_eq!(names, expected);
    assert!(
        tools.iter().all(|tool| tool["annotations"]["readOnlyHint"] == true && tool["inputSchema"]["type"] == "object")
    );
}

#[tokio::test]
async fn tools_answer_what_the_api_answers_with_its_age() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    service.advance(30).await;
    service.pass(12);
    let odds =
        call(&service, "get_odds", json!({ "sport": "mma", "odds_format": "decimal", "market": ["moneyline"] })).await;
    let api = service.get("/v1/sports/mma/odds?include=event&odds_format=decimal&market=moneyline").await.json();
    assert_eq!(odds["data"], api);
    assert!(odds["age_s"].as_u64().unwrap() >= 12, "{odds}");
    let sports = call(&service, "list_sports", json!({})).await;
    assert_eq!((&sports["data"], &sports["age_s"]), (&service.get("/v1/sports").await.json(), &json!(0)));
    let events = call(&service, "find_events", json!({ "sport": "tennis", "status": "scheduled" })).await;
    assert_eq!(events["data"], service.get("/v1/sports/tennis/events?status=scheduled").await.json());
    for (tool, arguments, target) in [
        ("best_prices", json!({ "sport": "boxing" }), "/v1/sports/boxing/best?include=event"),
        (
            "fair_odds",
            json!({ "sport": "boxing", "method": "shin" }),
            "/v1/sports/boxing/fair?include=event&method=shin",
        ),
        (
            "edges",
            json!({ "sport": "boxing", "kind": "ev", "min": 0 }),
            "/v1/sports/boxing/edges?include=event&kind=ev&min=0",
        ),
        ("line_history", json!({ "sport": "mma", "event_id": "m1" }), "/v1/sports/mma/events/m1/lines"),
        ("service_status", json!({}), "/v1/status"),
    ] {
        assert_eq!(call(&service, tool, arguments).await["data"], service.get(target).await.json(), "{tool}");
    }
}

#[tokio::test]
async fn rows_are_bounded_and_the_rest_can_be_asked_for() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let first = call(&service, "get_odds", json!({ "sport": "mma", "limit": 1 })).await;
    let next = first["next"].as_str().unwrap();
    let second = call(&service, "get_odds", json!({ "sport": "mma", "limit": 1, "after": next })).await;
    let market = |page: &Value| page["data"][0]["market"].as_str().unwrap().to_owned();
    assert_eq!((market(&first), market(&second)), ("moneyline".into(), "total_rounds".into()));
    assert!(second.get("next").is_none(), "{second}");
    let message = failure(&service, &service.live, "get_odds", json!({ "sport": "mma", "limit": 101 })).await;
    assert_eq!(message, "`limit` takes an integer from 1 to 100.");
}

#[tokio::test]
async fn arguments_are_no_longer_than_a_url_may_be() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let ids = |count: usize| (0..count).map(|at| format!("{at:090}")).collect::<Vec<_>>();
    let few = call(&service, "find_events", json!({ "sport": "mma", "event_ids": ids(80) })).await;
    assert_eq!(few["data"], json!([]));
    let many = failure(&service, &service.live, "find_events", json!({ "sport": "mma", "event_ids": ids(100) })).await;
    assert!(many.contains("longer than 8 KiB"), "{many}");
    let api = service.get(&format!("/v1/sports/mma/events?event_ids={}", ids(100).join(","))).await;
    assert_eq!(error(&api), (414, "uri_too_long".into()));
}

#[tokio::test]
async fn errors_of_tools_have_the_message_of_the_api() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let golf_only = restricted(&service, &["golf"]).await;
    let api = async |secret: &str, target: &str| super::fixture::message(&service.get_as(secret, target).await);
    let of = |sport: &str| json!({ "sport": sport });
    let refused = failure(&service, &golf_only.secret, "get_odds", of("mma")).await;
    assert_eq!(refused, api(&golf_only.secret, "/v1/sports/mma/odds").await, "its groups are kept to");
    let unknown = failure(&service, &service.live, "best_prices", of("curling")).await;
    assert_eq!(unknown, api(&service.live, "/v1/sports/curling/best").await);
    let market = failure(&service, &service.live, "get_odds", json!({ "sport": "mma", "market": ["monyline"] })).await;
    assert_eq!(market, api(&service.live, "/v1/sports/mma/odds?market=monyline").await);
    let event =
        failure(&service, &service.live, "line_history", json!({ "sport": "mma", "event_id": "../../x" })).await;
    assert_eq!(event, api(&service.live, "/v1/sports/mma/events/no/lines").await, "an id leads to no other path");
    let closed = oddsbox::model::Maintenance { since: service.clock.now().timestamp(), until: None };
    service.writer().set_maintenance(Some(closed), "test").await.unwrap();
    let before = service.get("/v1/usage").await.json()["day"]["used"].clone();
    let message = failure(&service, &service.live, "get_odds", of("mma")).await;
    assert!(message.contains("maintenance"), "{message}");
    assert_eq!(service.get("/v1/usage").await.json()["day"]["used"], before, "what the service could not do is free");
}

#[tokio::test]
async fn keys_of_each_world_read_their_own() {
    let service = Service::start_with_sandbox().await;
    service.ingest(&every_sport()).await;
    let events = async |secret: &str| call_as(&service, secret, "find_events", json!({ "sport": "mma" })).await.json();
    assert!(events(&service.live).await.to_string().contains("Home m1"));
    assert!(!events(&service.sandbox).await.to_string().contains("Home m1"));
}

#[tokio::test]
async fn call_counts_once_and_everything_else_for_the_burst_only() {
    let service = Service::start().await;
    service.ingest(&every_sport()).await;
    let own = limited(&service, 9, Some(2), None).await;
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let answer = post(&service, &own.secret, &ping).await;
    assert_eq!((answer.header("x-requests-used"), answer.header("x-requests-remaining")), (Some("0"), Some("2")));
    for used in ["1", "2"] {
        let answer = call_as(&service, &own.secret, "edges", json!({ "sport": "mma", "kind": "ev" })).await;
        assert_eq!(answer.header("x-requests-used"), Some(used), "also one that has to be computed: {answer:?}");
    }
    let message = failure(&service, &own.secret, "get_odds", json!({ "sport": "mma" })).await;
    assert!(message.starts_with("Usage limit reached: this key's requests per day are used up."), "{message}");
    for _ in 0..6 {
        assert_eq!(post(&service, &own.secret, &ping).await.status, 200, "the call that was refused is not counted");
    }
    let refused = post(&service, &own.secret, &ping).await;
    assert_eq!(error(&refused), (429, "rate_limited".into()));
    assert!(refused.header("retry-after").is_some());
}

#[tokio::test]
async fn key_comes_in_a_header_and_the_request_from_no_other_origin() {
    let service = Service::start().await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let bearer = format!("Bearer {}", service.live);
    assert_eq!(post_as(&service, &[("authorization", &bearer)], ping).await.status, 200);
    assert_eq!(error(&post_as(&service, &[], ping).await), (401, "authentication_failed".into()));
    let in_query = format!("POST /mcp?api_key={} HTTP/1.1\r\nhost: o\r\nconnection: close\r\n\r\n", service.live);
    assert_eq!(Answer::parse(&service.exchange(in_query.as_bytes()).await).status, 401);
    let foreign = post_as(&service, &[("x-api-key", &service.live), ("origin", "http://evil.example")], ping).await;
    assert_eq!(error(&foreign), (403, "forbidden".into()));
    let own = [("x-api-key", service.live.as_str()), ("origin", "http://oddsbox")];
    assert_eq!(post_as(&service, &own, ping).await.status, 200);
    for method in ["GET", "HEAD", "DELETE", "OPTIONS"] {
        let got = service.send(method, "/mcp", &[("x-api-key", &service.live)]).await;
        assert_eq!((got.status, got.header("allow")), (405, Some("POST")), "{method}");
    }
    let revoked = key(&service, KeyKind::Production, |_| {}).await;
    service.writer().revoke_key(&revoked.id, "test").await.unwrap();
    assert_eq!(post_as(&service, &[("x-api-key", &revoked.secret)], ping).await.status, 401);
}

#[tokio::test]
async fn what_is_no_message_gets_the_code_that_json_rpc_has_for_it() {
    let service = Service::start().await;
    let sent = async |body: &str| post_as(&service, &[("x-api-key", &service.live)], body).await;
    for (body, status, code) in [
        ("", 400, -32_700),
        ("{", 400, -32_700),
        ("[]", 400, -32_600),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, 400, -32_600),
        (r#"{"id":1,"method":"ping"}"#, 400, -32_600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#, 200, -32_601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#, 200, -32_602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"burn"}}"#, 200, -32_602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"edges","arguments":[]}}"#, 200, -32_602),
    ] {
        let answer = sent(body).await;
        assert_eq!((answer.status, rpc_code(&answer)), (status, code), "{body}");
    }
    let batch = sent("[]").await;
    assert!(batch.text().contains("Batches are not supported"), "{batch:?}");
    let padded = |bytes: usize| format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","x":"{}"}}"#, "x".repeat(bytes));
    assert_eq!(sent(&padded((64 << 10) - 60)).await.status, 200);
    let long = sent(&padded(64 << 10)).await;
    assert_eq!((long.status, rpc_code(&long)), (413, -32_600));
    let chunked = format!(
        "POST /mcp HTTP/1.1\r\nhost: o\r\nconnection: close\r\nx-api-key: {}\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{}\r\n0\r\n\r\n",
        service.live,
        70_000,
        "x".repeat(70_000)
    );
    assert_eq!(Answer::parse(&service.exchange(chunked.as_bytes()).await).status, 413);
    let revision = [("x-api-key", service.live.as_str()), ("mcp-protocol-version", "2099-01-01")];
    let refused = post_as(&service, &revision, r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).await;
    assert_eq!((refused.status, rpc_code(&refused)), (400, -32_022));
    assert_eq!(refused.json()["error"]["data"]["supported"][0], "2025-11-25");
}
