//! Log lines that clients cause: bounded in number, with the client's address, and impossible to forge.

use std::net::SocketAddr;
use std::time::Instant;

use oddsbox::admin::{Command, StatusAnswer};
use serde_json::Value;

use super::client::Connection;
use super::command::{Directory, issue, revoke, sandbox};
use super::deploy::metrics;
use crate::harness::Figures;

const REQUESTS: u32 = 3_000;

/// The failure that this prevents: a client with a revoked or exhausted key, or without a feed token, fills the disk.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_requests_of_any_kind_do_not_fill_the_log() {
    let directory = Directory::new();
    let server = directory.serve_with(&[("ODDSBOX_INGEST_LISTEN", "127.0.0.1:0"), ("ODDSBOX_LOG", "info")]);
    let access = directory.access().await;
    let status = access.ask::<StatusAnswer>(Command::Status).await.expect("a status");
    let ingest = status.server.and_then(|server| server.ingest_address).expect("an address for feeders");
    let revoked = issue(&access, sandbox(1_000_000)).await.expect("a key");
    revoke(&access, &revoked.id).await.expect("a revocation");
    let spent = issue(&access, sandbox(1)).await.expect("a key");
    let began = Instant::now();
    let ask = |secret: &str| format!("GET /v1/sports HTTP/1.1\r\nhost: oddsbox\r\nx-api-key: {secret}\r\n\r\n");
    flood(server.address(), &ask(&revoked.secret), 401).await;
    flood(server.address(), &ask(&spent.secret), 429).await;
    let push = "POST /ingest HTTP/1.1\r\nhost: oddsbox\r\nauthorization: Bearer ft_ob_no\r\ncontent-length: 0\r\n\r\n";
    flood(ingest, push, 401).await;
    let seconds = usize::try_from(began.elapsed().as_secs()).expect("a short test") + 2;
    let figures = Figures::parse(&metrics(&directory));
    let log = server.stop();
    for (part, kind) in [
        ("\"refused\":\"revoked\"", "unauthenticated"),
        ("\"refused\":\"day\"", "refused"),
        ("feed token", "feed_token"),
    ] {
        let lines = log.lines().filter(|line| line.contains(part)).count();
        println!("{REQUESTS} rejected requests ({kind}) left {lines} lines in at most {seconds} s");
        assert!(lines > 0 && lines <= 51 * seconds, "{lines} lines of {kind} in {seconds} s");
        let suppressed = figures.get("oddsbox_log_lines_suppressed_total", &format!("kind={kind}"));
        let total = f64::from(u32::try_from(lines).expect("few lines")) + suppressed.expect("a metric");
        assert!((total - f64::from(REQUESTS)).abs() <= 1.0, "{lines} lines and {suppressed:?} suppressed");
    }
}

async fn flood(address: SocketAddr, request: &str, status: u16) {
    let mut connection = Connection::open(address).await.expect("a connection");
    let mut rejected = 0;
    while rejected < REQUESTS {
        let answer = connection.send(request).await.expect("an answer");
        // A key with a quota of one is answered once.
        assert!(answer.status == status || (answer.status == 200 && rejected == 0), "{answer:?}");
        rejected += u32::from(answer.status == status);
    }
}

#[tokio::test]
async fn access_lines_have_the_forwarded_address_only_from_trusted_proxies() {
    let directory = Directory::new();
    let request = "GET /healthz HTTP/1.1\r\nhost: oddsbox\r\nx-forwarded-for: 203.0.113.7, 198.51.100.1\r\n\r\n";
    for (trusted, client, peer) in [
        ("", "127.0.0.1", Value::Null),
        ("127.0.0.0/8", "198.51.100.1", "127.0.0.1".into()),
        ("127.0.0.1, 198.51.100.0/24", "203.0.113.7", "127.0.0.1".into()),
    ] {
        let server = directory.serve_with(&[("ODDSBOX_TRUSTED_PROXIES", trusted), ("ODDSBOX_LOG", "info")]);
        let mut connection = Connection::open(server.address()).await.expect("a connection");
        // The third one is a repeated request.
        for _ in 0..3 {
            assert_eq!(connection.send(request).await.expect("an answer").status, 200);
        }
        let log = server.stop();
        let lines = log.lines().filter(|line| line.contains("/healthz"));
        let lines: Vec<Value> = lines.map(|line| serde_json::from_str(line).expect("a line")).collect();
        assert_eq!(lines.len(), 3, "{log}");
        for line in lines {
            assert_eq!((&line["client"], &line["peer"]), (&client.into(), &peer), "{line}");
        }
    }
}

/// The failure that this prevents: a value with a newline in it forges a line of the log.
#[tokio::test]
async fn control_characters_are_escaped_in_text_logs() {
    let directory = Directory::new();
    let feeds = tempfile::tempdir().expect("a directory");
    let variables = [
        ("ODDSBOX_INGEST_DROP", feeds.path().to_str().expect("a path")),
        ("ODDSBOX_LOG", "info"),
        ("ODDSBOX_LOG_FORMAT", "text"),
    ];
    let server = directory.serve_with(&variables);
    // The message contains the name of a file that cannot be moved away.
    for place in ["done", "failed"] {
        std::fs::remove_dir(feeds.path().join(place)).expect("an empty directory");
        std::fs::write(feeds.path().join(place), "").expect("a file in its place");
    }
    let name = "a\n2026-01-01T00:00:00Z ERROR forged: \u{1b}[2J\r.ndjson";
    std::fs::write(feeds.path().join(name), "").expect("a file");
    super::command::until("the file is taken", async || server.log().contains("cannot be moved away")).await;
    let log = server.stop();
    assert!(!log.contains('\u{1b}') && !log.contains('\r'), "{log:?}");
    assert!(!log.lines().any(|line| line.contains("ERROR forged") && !line.contains("a\\n2026")), "{log}");
}
