//! The failure that this prevents: misbehaving clients deny the service to others.
//!
//! Each kind of abuse runs against the real binary next to a few good clients, which must all be answered. Their
//! waiting times are printed, not asserted; the memory used must be released within a bound.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustls_pki_types::CertificateDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::{JoinHandle, JoinSet};

use super::frames;
use crate::harness::Figures;
use crate::harness::tls::{Certificates, Wire, connect_trusting};
use crate::process::client::Connection;
use crate::process::command::{Directory, Issued, Server, issue, sandbox, until};
use crate::process::deploy::metrics;
use crate::process::seed::short_or_long;

/// How much memory an abuse may add, in kilobytes.
const GROWTH_KB_MAX: u64 = 250_000;

/// Good clients, which poll until they are stopped.
struct Good {
    is_over: Arc<AtomicBool>,
    clients: Vec<JoinHandle<Vec<Duration>>>,
}

impl Good {
    fn come(access: &AdminAccess, key: &Issued) -> Good {
        let is_over = Arc::new(AtomicBool::new(false));
        let client = |path: &'static str| {
            let (is_over, secret, access) = (Arc::clone(&is_over), key.secret.clone(), access.clone());
            tokio::spawn(async move {
                let mut waits = Vec::new();
                let mut connection = Connection::over(access.connect(&["http/1.1"]).await);
                while !is_over.load(Ordering::Relaxed) || waits.is_empty() {
                    let began = Instant::now();
                    let answer = connection.get(path, &secret).await.expect("a good client is answered");
                    assert_eq!(answer.status, 200, "{answer:?}");
                    waits.push(began.elapsed());
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
                waits
            })
        };
        let clients = ["/v1/sports", "/v1/sports/tennis/odds", "/v1/status", "/v1/books"].map(client);
        Good { is_over, clients: clients.into() }
    }

    /// Asserts that all were answered; returns the 99th percentile of their waiting times.
    async fn go(self) -> (usize, Duration) {
        self.is_over.store(true, Ordering::Relaxed);
        let mut waits = Vec::new();
        for client in self.clients {
            waits.extend(client.await.expect("a good client"));
        }
        waits.sort_unstable();
        (waits.len(), waits[(waits.len() - 1) * 99 / 100])
    }
}

/// The server's address, and its certificate if it uses TLS.
#[derive(Clone)]
struct AdminAccess {
    address: SocketAddr,
    trusted: Option<CertificateDer<'static>>,
}

impl AdminAccess {
    async fn connect(&self, speaks: &[&str]) -> Box<dyn Wire> {
        match &self.trusted {
            Some(trusted) => connect_trusting(trusted, self.address, speaks).await.expect("a handshake"),
            None => Box::new(connect(self.address).await),
        }
    }
}

/// The resident memory of a process, in kilobytes.
fn memory_kb(server: &Server) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse().expect("a number")
}

/// Runs an abuse next to good clients, which must still be answered after it.
async fn endure(what: &str, settings: &[(&str, &str)], abuse: impl AsyncFnOnce(SocketAddr)) -> (Server, Directory) {
    endure_at(what, settings, None, async |access| abuse(access.address).await).await
}

/// The same, optionally under TLS.
async fn endure_at(
    what: &str,
    settings: &[(&str, &str)],
    trusted: Option<CertificateDer<'static>>,
    abuse: impl AsyncFnOnce(&AdminAccess),
) -> (Server, Directory) {
    let directory = Directory::new();
    let mut quiet = vec![("ODDSBOX_LOG", "warn"), ("ODDSBOX_CONNECTIONS_PER_ADDRESS", "0")];
    quiet.extend(settings);
    let server = directory.serve_with(&quiet);
    let key = issue(&directory.access().await, sandbox(10_000_000)).await.expect("a key");
    let access = AdminAccess { address: server.address(), trusted };
    let idle = Good::come(&access, &key);
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (_, idle_p99) = idle.go().await;
    let before_kb = memory_kb(&server);
    let good = Good::come(&access, &key);
    abuse(&access).await;
    let during_kb = memory_kb(&server);
    let (answers, p99) = good.go().await;
    let growth_kb = during_kb.saturating_sub(before_kb);
    assert!(growth_kb < GROWTH_KB_MAX, "{what}: it grew by {growth_kb} kB");
    until("the memory comes back", async || memory_kb(&server) < before_kb + GROWTH_KB_MAX / 2).await;
    println!("{what}: {answers} good answers, p99 {p99:?} (idle {idle_p99:?}), memory {before_kb} + {growth_kb} kB");
    (server, directory)
}

async fn connect(address: SocketAddr) -> TcpStream {
    TcpStream::connect(address).await.expect("a connection")
}

/// Reads until the server closes; returns what it sent.
async fn rest(mut stream: impl Wire) -> Vec<u8> {
    let mut bytes = Vec::new();
    let reading = tokio::time::timeout(Duration::from_secs(60), stream.read_to_end(&mut bytes)).await;
    // A reset is an end too.
    drop(reading.expect("the server closes it"));
    bytes
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_and_silent_connections_are_closed_and_others_are_served() {
    let settings = [("ODDSBOX_HEADER_TIMEOUT", "1s"), ("ODDSBOX_IDLE_TIMEOUT", "2s")];
    let (server, _directory) = endure("slow heads and silence", &settings, async |address| {
        let mut slow = JoinSet::new();
        for number in 0..short_or_long(60, 1_000) {
            slow.spawn(async move {
                let mut stream = connect(address).await;
                if number % 2 == 0 {
                    // Endless headers, byte by byte, until the server closes the connection.
                    let closed = async {
                        while stream.write_all(b"G").await.is_ok() {
                            tokio::time::sleep(Duration::from_millis(50)).await;
                        }
                    };
                    tokio::time::timeout(Duration::from_secs(60), closed).await.expect("the server closes it");
                }
                drop(rest(stream).await);
            });
        }
        while let Some(done) = slow.join_next().await {
            done.expect("a slow client is closed");
        }
    })
    .await;
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_readers_are_dropped_and_cost_little_memory() {
    let settings = [("ODDSBOX_WRITE_TIMEOUT", "1s"), ("ODDSBOX_IDLE_TIMEOUT", "3s")];
    let (server, _directory) = endure("slow readers", &settings, async |address| {
        let mut streams = Vec::new();
        for _ in 0..short_or_long(40, 400) {
            let mut stream = connect(address).await;
            // Far more responses than any socket buffers, none of them read.
            let requests = "GET /openapi.json HTTP/1.1\r\nhost: oddsbox\r\n\r\n".repeat(400);
            let _ = tokio::time::timeout(Duration::from_millis(100), stream.write_all(requests.as_bytes())).await;
            streams.push(stream);
        }
        // The server gives up on each connection, after which a write fails.
        for mut stream in streams {
            until("a stalled reader is dropped", async || stream.write_all(b"GET / HTTP/1.1\r\n").await.is_err()).await;
        }
    })
    .await;
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_idle_connections_are_accepted_and_released() {
    let wanted = short_or_long(500, 10_000);
    let (server, _directory) = endure("idle connections", &[], async |address| {
        let mut idle = Vec::new();
        for _ in 0..wanted {
            let mut connection = Connection::open(address).await.expect("a connection");
            // Each has been answered once and is idle since.
            let answer = connection.send("GET /healthz HTTP/1.1\r\nhost: oddsbox\r\n\r\n").await.expect("an answer");
            assert_eq!(answer.status, 200);
            idle.push(connection);
        }
    })
    .await;
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn flood_of_wrong_keys_is_rejected_and_does_not_fill_the_log() {
    let per_client: usize = short_or_long(500, 20_000);
    let began = Instant::now();
    let (server, _directory) = endure("wrong keys", &[("ODDSBOX_LOG", "access=info")], async |address| {
        let mut flood = JoinSet::new();
        for client in 0..8 {
            flood.spawn(async move {
                let mut connection = Connection::open(address).await.expect("a connection");
                for number in 0..per_client {
                    let wrong = format!("sk_test_ob_{client:015}{number:021}");
                    assert_eq!(connection.get("/v1/sports", &wrong).await.expect("an answer").status, 401);
                }
            });
        }
        while let Some(done) = flood.join_next().await {
            done.expect("a client without a key is answered");
        }
    })
    .await;
    let seconds = usize::try_from(began.elapsed().as_secs()).expect("a short test") + 2;
    let log = server.stop();
    let refused = log.lines().filter(|line| line.contains("\"status\":401")).count();
    println!("{} wrong keys left {refused} lines in the log", 8 * per_client);
    assert!(refused > 0 && refused <= 51 * seconds, "{refused} lines in {seconds} s");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn huge_requests_and_endless_pipelines_are_bounded() {
    let (server, _directory) = endure("huge requests and pipelines", &[], async |address| {
        for _ in 0..short_or_long(20, 500) {
            let long = "x".repeat(1 << 20);
            for request in [
                format!("GET /{long} HTTP/1.1\r\nhost: oddsbox\r\n\r\n"),
                format!("GET / HTTP/1.1\r\nhost: oddsbox\r\nx-api-key: {long}\r\n\r\n"),
                format!("GET / HTTP/1.1\r\nhost: oddsbox\r\n{}\r\n", "a: b\r\n".repeat(50_000)),
                format!("GET /v1/sports?{} HTTP/1.1\r\nhost: oddsbox\r\n\r\n", "market=x&".repeat(10_000)),
            ] {
                let mut stream = connect(address).await;
                // It may be rejected before everything is sent.
                let _ = stream.write_all(request.as_bytes()).await;
                let answer = String::from_utf8_lossy(&rest(stream).await).into_owned();
                let is_refused = ["", "HTTP/1.1 414", "HTTP/1.1 431", "HTTP/1.1 400"]
                    .iter()
                    .any(|start| answer.starts_with(start) && (!start.is_empty() || answer.is_empty()));
                assert!(is_refused, "{}", answer.chars().take(200).collect::<String>());
            }
            let mut stream = connect(address).await;
            let piped = "GET /healthz HTTP/1.1\r\nhost: oddsbox\r\n\r\n".repeat(99)
                + "GET /healthz HTTP/1.1\r\nhost: oddsbox\r\nconnection: close\r\n\r\n";
            stream.write_all(piped.as_bytes()).await.expect("a hundred requests");
            let answers = String::from_utf8_lossy(&rest(stream).await).into_owned();
            assert_eq!(answers.matches("HTTP/1.1 200").count(), 100);
        }
    })
    .await;
    server.stop();
}

/// Without a bound these would take 360 MB.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_of_unfinished_heads_is_bounded_over_all_connections() {
    const CONNECTIONS: usize = 6000;
    let settings = [("ODDSBOX_HEADER_TIMEOUT", "80s")];
    let mut streams = Vec::new();
    let (server, directory) = endure("unfinished heads", &settings, async |address| {
        let head = format!("GET /v1/sports HTTP/1.1\r\nhost: oddsbox\r\nx-pad: {}", "a".repeat(60 << 10));
        for _ in 0..CONNECTIONS {
            let mut stream = connect(address).await;
            // It may be closed before everything is sent.
            let _ = stream.write_all(&head.as_bytes()[..30 << 10]).await;
            let _ = stream.write_all(&head.as_bytes()[30 << 10..]).await;
            streams.push(stream);
        }
    })
    .await;
    let figures = Figures::parse(&metrics(&directory));
    let of = |name| figures.get(name, "").expect("a figure");
    assert!(of("oddsbox_http_unfinished_heads_bytes") <= of("oddsbox_http_unfinished_heads_max_bytes"));
    assert!(of("oddsbox_http_heads_refused_total") > 0.0);
    drop(streams);
    server.stop();
}

/// Streams that are opened and reset in one write, so that the server reads the reset before it can respond.
async fn resets(what: &str, settings: &[(&str, &str)], trusted: Option<CertificateDer<'static>>) {
    const AT_ONCE: u32 = 200;
    let (server, _directory) = endure_at(what, settings, trusted, async |access| {
        for _ in 0..short_or_long(100, 2_000) {
            let mut stream = access.connect(&["h2"]).await;
            let mut bytes = frames::hello();
            for number in 0..AT_ONCE {
                let id = 2 * number + 1;
                bytes.extend(frames::get(id, "/openapi.json"));
                bytes.extend(frames::frame(frames::RST_STREAM, 0, id, &frames::CANCEL.to_be_bytes()));
            }
            // It may be closed before everything is sent.
            let _ = stream.write_all(&bytes).await;
            // The client is disconnected; its GOAWAY may be lost with the connection.
            let said = frames::Said::read(&rest(stream).await);
            assert!(matches!(said.goodbye, None | Some(frames::ENHANCE_YOUR_CALM)), "{said:?}");
        }
    })
    .await;
    server.stop();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rapid_reset_client_is_disconnected() {
    resets("HTTP/2 resets", &[], None).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rapid_reset_client_is_disconnected_under_tls() {
    let (files, trusted) = Certificates::made();
    let [(certificate, chain), (key, secret)] = &files.variables();
    resets("HTTP/2 resets under TLS", &[(certificate, chain), (key, secret)], Some(trusted)).await;
}

/// Headers that never end, or that exceed every limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn endless_headers_are_rejected_under_tls() {
    let (files, trusted) = Certificates::made();
    let [(certificate, chain), (key, secret)] = &files.variables();
    let settings = [(*certificate, chain.as_str()), (*key, secret.as_str())];
    let (server, _directory) = endure_at("HTTP/2 heads", &settings, Some(trusted), async |access| {
        for round in 0..short_or_long(30, 900) {
            let piece = match round % 3 {
                // Empty continuations, a small header, and a large one.
                0 => Vec::new(),
                1 => frames::field("a", "b"),
                _ => frames::field("a", &"x".repeat(16_000)),
            };
            let mut stream = access.connect(&["h2"]).await;
            let begun = frames::frame(frames::HEADERS, frames::END_STREAM, 1, &frames::get_fields("/"));
            let _ = stream.write_all(&[frames::hello(), begun].concat()).await;
            let on = frames::frame(frames::CONTINUATION, 0, 1, &piece).repeat(20);
            // Far more than any limit, and than the sockets buffer for a server that reads slowly.
            let mut sent = 0;
            while sent < 4_000_000 && stream.write_all(&on).await.is_ok() {
                sent += 20;
            }
            assert!(sent < 4_000_000, "{sent} pieces of {} bytes were taken", piece.len());
        }
    })
    .await;
    server.stop();
}
