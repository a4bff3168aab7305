//! Whatever a client sends, it gets a well-formed answer or a clean close: never a panic, and never a server error.

use std::time::Duration;

use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::http::testing::{Fixture, local};
use crate::http::transport::connection::{self, ConnectionBounds, Handler};
use crate::http::transport::shutdown::Stop;

/// Sends bytes over a connection in memory and closes it; returns the response.
async fn exchange(fixture: &Fixture, sent: &[u8]) -> Vec<u8> {
    let (mut client, server) = tokio::io::duplex(256 << 10);
    let (stop, phases) = Stop::new();
    let handler = Handler { peer: local(), service: fixture.service.clone() };
    let serving = tokio::spawn(connection::run(Box::new(server), None, handler, ConnectionBounds::default(), phases));
    let mut got = Vec::new();
    let talk = async {
        // The server may close first: what it sent before counts.
        let _ = client.write_all(sent).await;
        let _ = client.shutdown().await;
        let _ = client.read_to_end(&mut got).await;
    };
    tokio::time::timeout(Duration::from_secs(20), talk).await.expect("the connection ends");
    serving.await.expect("no panic");
    drop(stop);
    got
}

/// Whether bytes are empty, or begin with a response that is no server error.
fn is_sound(got: &[u8]) -> bool {
    if got.is_empty() {
        return true;
    }
    let status = got.strip_prefix(b"HTTP/1.1 ").or(got.strip_prefix(b"HTTP/1.0 ")).and_then(|rest| rest.first());
    let is_http1 = matches!(status, Some(b'2'..=b'4')) && got.windows(4).any(|end| end == b"\r\n\r\n");
    // An HTTP/2 answer begins with a settings frame.
    let is_http2 = got.len() >= 9 && got[3] == 4;
    is_http1 || is_http2
}

fn check(sent: &[u8]) -> Result<(), TestCaseError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let fixture = Fixture::new();
    let with_key = String::from_utf8_lossy(sent).replace("$KEY", &fixture.sandbox);
    for sent in [sent, with_key.as_bytes()] {
        let got = runtime.block_on(exchange(&fixture, sent));
        prop_assert!(is_sound(&got), "{:?}", String::from_utf8_lossy(&got));
    }
    Ok(())
}

/// Something like a request.
fn near_requests() -> impl Strategy<Value = Vec<u8>> {
    let method = prop_oneof!["GET", "HEAD", "POST", "OPTIONS", "CONNECT", "[A-Z]{1,9}"];
    let name = "(apiKey|markets|bookmakers|eventIds|daysFrom|dateFormat|market|limit|regions|event_ids|after|group|status|api_key|commence_from|[a-z_%]{1,9})";
    let value = "(us|bout|live|5|\\$KEY|[!-~]{0,12})";
    let path = prop_oneof![
        "/v1/sports/(mma|golf|[a-z%]{0,6})/(odds|scores|events|events/[!-~]{0,9})",
        "/v4/sports/(upcoming|boxing_boxing|golf_[a-z%]{0,6}_winner)/(odds|scores|events|events/[!-~]{0,9}/odds)",
        "/(v1|v4|docs|healthz)?(/[!-~]{0,9}){0,5}",
        "[!-~]{1,30}",
        (8_100..9_000_usize).prop_map(|length| format!("/{}", "a".repeat(length))),
    ];
    let query = prop::collection::vec((name, value), 0..5);
    let header = prop_oneof![
        Just("X-API-Key: $KEY".to_owned()),
        "X-API-Key: [ -~]{0,50}",
        "(If-None-Match|Accept-Encoding|X-Request-Id|Connection|Content-Length|Transfer-Encoding|Expect): [ -~]{0,20}",
        "[A-Za-z-]{1,12}: [ -~]{0,40}",
        "[ -~]{0,20}",
        (15_000..20_000_usize).prop_map(|length| format!("Big: {}", "a".repeat(length))),
    ];
    let headers = prop_oneof![prop::collection::vec(header.clone(), 0..8), prop::collection::vec(header, 95..130)];
    let version = prop_oneof!["HTTP/1.1", "HTTP/1.0", "HTTP/2.0", "[ -~]{0,9}"];
    (method, path, query, version, headers).prop_map(|(method, path, query, version, headers)| {
        let query: Vec<String> = query.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        let mut text = format!("{method} {path}{query} {version}\r\nHost: test\r\n{}\r\n\r\n", headers.join("\r\n"));
        text.truncate(64 << 10);
        text.into_bytes()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn near_requests_are_answered(sent in near_requests()) {
        check(&sent)?;
    }

    #[test]
    fn bytes_are_survived(sent in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&sent)?;
    }

    #[test]
    fn http2_frames_are_survived(frames in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&[&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frames].concat())?;
    }
}

#[test]
fn a_head_of_64_kb_is_survived() {
    let line = format!("GET /{} HTTP/1.1\r\n", "%41".repeat(20_000));
    let lines = "X-Pad: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\n".repeat(1000);
    for sent in [line, format!("GET / HTTP/1.1\r\n{lines}\r\n"), "A".repeat(64 << 10)] {
        check(sent.as_bytes()).unwrap();
    }
}
