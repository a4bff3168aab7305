//! Streams of a real process: none outlives its key, and whoever was killed with the server continues where it was.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::command::{Directory, file_with, until};
use crate::harness::tls::{Certificates, connect_trusting};

/// A connection with a stream on it, of which nothing was read.
fn open(address: SocketAddr, key: &str, headers: &str) -> TcpStream {
    let mut connection = TcpStream::connect(address).expect("a connection");
    connection.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let request = format!("GET /v1/stream HTTP/1.1\r\nhost: oddsbox\r\nx-api-key: {key}\r\n{headers}\r\n");
    connection.write_all(request.as_bytes()).expect("a request");
    connection
}

/// Reads until a text has come; returns everything up to then.
fn read_until(connection: &mut TcpStream, text: &str) -> String {
    let mut all = Vec::new();
    let mut bytes = [0; 4096];
    while !String::from_utf8_lossy(&all).contains(text) {
        let count = connection.read(&mut bytes).expect("more of the stream");
        assert!(count > 0, "the stream ended before {text}: {}", String::from_utf8_lossy(&all));
        all.extend_from_slice(&bytes[..count]);
    }
    String::from_utf8_lossy(&all).into_owned()
}

/// The id of the last event that has come as a whole.
fn last_id(text: &str) -> String {
    let (whole, _) = text.rsplit_once("\n\n").expect("a whole event");
    whole.lines().rev().find_map(|line| line.strip_prefix("id: ")).expect("an event with an id").to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_has_ended_when_the_revocation_returns() {
    let directory = Directory::new();
    let server = directory.serve_with(&[("ODDSBOX_LOG", "warn"), ("ODDSBOX_REFRESH", "1s")]);
    let key = directory.json("keys issue --sandbox --name streams --streams 3");
    let (id, secret) = (key["id"].as_str().expect("an id"), key["key"].as_str().expect("a key"));
    let mut reading = open(server.address(), secret, "");
    read_until(&mut reading, "event: ready");
    // This one never reads: more and more is written to it, until nothing fits any more.
    let deaf = open(server.address(), secret, "");
    until("both are open", async || directory.json(&format!("keys show {id}"))["open_streams"] == 2).await;
    let begun = Instant::now();
    let revoked = directory.json(&format!("keys revoke {id}"));
    assert_eq!(revoked["open_streams"], 0, "it says what is so when it returns");
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
    let rest = read_until(&mut reading, "\r\n0\r\n\r\n");
    assert!(rest.contains("event: bye\n"), "{rest}");
    assert!(rest.contains(r#""why":"revoked""#), "{rest}");
    drop(deaf);
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn client_of_a_killed_server_continues_where_it_was() {
    let directory = Directory::new();
    let variables = [("ODDSBOX_LOG", "warn"), ("ODDSBOX_REFRESH", "1s")];
    let server = directory.serve_with(&variables);
    let key = directory.json("keys issue --sandbox --name streams");
    let secret = key["key"].as_str().expect("a key");
    let mut before = open(server.address(), secret, "");
    let mut seen = read_until(&mut before, "event: odds");
    seen.push_str(&read_until(&mut before, "event: beat"));
    assert!(seen.contains("event: ready"));
    let last = last_id(&seen);
    server.kill();
    let server = directory.serve_with(&variables);
    let mut after = open(server.address(), secret, &format!("last-event-id: {last}\r\n"));
    let text = read_until(&mut after, "event: beat");
    assert!(text.contains("event: hello"), "{text}");
    assert!(!text.contains("event: reset") && !text.contains("event: snapshot"), "{text}");
    server.stop();
}

const EVENT: &str = r#"{"type":"event","sport":"mma","id":"m1","competition":"Cup","commence_time":"2099-01-01T00:00:00Z","home":"Ana","away":"Bea","status":"scheduled"}"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_begins_anew_once_an_event_is_forgotten() {
    let directory = Directory::new();
    let server = directory.serve_with(&[("ODDSBOX_LOG", "warn"), ("ODDSBOX_REFRESH", "1s")]);
    let ingest = |line: &str| {
        let (_kept, feed) = file_with(line.as_bytes());
        directory.json(&format!("ingest {}", feed.display()));
    };
    ingest(EVENT);
    let key = directory.json("keys issue --live --name streams --approved-by sam");
    let secret = key["key"].as_str().expect("a key");
    let mut open_before = open(server.address(), secret, "");
    let seen = read_until(&mut open_before, "event: beat");
    ingest(r#"{"type":"remove","sport":"mma","event":"m1"}"#);
    directory.json("history forget m1 --yes");
    let rest = read_until(&mut open_before, "event: reset");
    let rest = rest + &read_until(&mut open_before, "event: beat");
    assert!(rest.contains(r#""why":"epoch""#), "{rest}");
    // A position from before is one of another log.
    let mut resumed = open(server.address(), secret, &format!("last-event-id: {}\r\n", last_id(&seen)));
    let text = read_until(&mut resumed, "event: beat");
    assert!(text.contains(r#""why":"epoch""#) && !text.contains("m1"), "{text}");
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_is_the_same_over_tls_and_http2() {
    let directory = Directory::new();
    let (files, trusted) = Certificates::made();
    let [certificate, private] = files.variables();
    let variables = [
        ("ODDSBOX_LOG", "warn"),
        ("ODDSBOX_REFRESH", "1s"),
        (certificate.0, certificate.1.as_str()),
        (private.0, private.1.as_str()),
    ];
    let server = directory.serve_with(&variables);
    let key = directory.json("keys issue --sandbox --name streams");
    let (id, secret) = (key["id"].as_str().expect("an id"), key["key"].as_str().expect("a key"));

    let mut first = connect_trusting(&trusted, server.address(), &["http/1.1"]).await.expect("a handshake");
    let request = format!("GET /v1/stream HTTP/1.1\r\nhost: localhost\r\nx-api-key: {secret}\r\n\r\n");
    first.write_all(request.as_bytes()).await.expect("a request");
    let mut text = Vec::new();
    while !String::from_utf8_lossy(&text).contains("event: beat") {
        assert!(first.read_buf(&mut text).await.expect("more of the stream") > 0);
    }

    let second = connect_trusting(&trusted, server.address(), &["h2"]).await.expect("a handshake");
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(second)).await;
    let (mut sender, connection) = handshake.expect("a connection");
    tokio::spawn(connection);
    let request = |path: &str| {
        let request = Request::builder().uri(format!("https://localhost{path}")).header("x-api-key", secret);
        request.body(Empty::<bytes::Bytes>::new()).expect("a request")
    };
    let mut stream = sender.send_request(request("/v1/stream")).await.expect("a response").into_body();
    let beat = read_frames(&mut stream, "event: beat").await;
    assert!(beat.contains("event: ready"), "{beat}");
    // Others are answered on the same connection meanwhile.
    let status = sender.send_request(request("/v1/status")).await.expect("a response");
    assert_eq!(status.status(), 200);
    directory.json(&format!("keys revoke {id}"));
    let rest = read_frames(&mut stream, "event: bye").await;
    assert!(rest.contains(r#""why":"revoked""#), "{rest}");
    server.stop();
}

async fn read_frames(body: &mut Incoming, text: &str) -> String {
    let mut all = Vec::new();
    while !String::from_utf8_lossy(&all).contains(text) {
        let frame = body.frame().await.expect("more of the stream").expect("a frame");
        all.extend_from_slice(frame.data_ref().expect("data"));
    }
    String::from_utf8_lossy(&all).into_owned()
}
