//! Repeated requests on one connection: each is parsed, charged and answered by itself, in order.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::Response;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::sockets::{PATIENCE, short};
use crate::http::Peer;
use crate::http::testing::Fixture;
use crate::http::{IncomingRequest, Respond, ResponseBody, ResponseFuture};
use crate::http::{ListenerSummary, Options, run};
use crate::keys::KeyRecord;
use crate::metrics::Traffic;

/// Answers with the method and target of the request, padded to `answer_bytes`, and counts requests.
struct Echo {
    requests: AtomicUsize,
    answer_bytes: usize,
    traffic: Arc<Traffic>,
}

impl Echo {
    fn new(answer_bytes: usize) -> Self {
        Echo { requests: AtomicUsize::new(0), answer_bytes, traffic: Arc::new(Traffic::new(&[], &[])) }
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

impl Respond for Echo {
    fn respond_at_once(&self, request: &IncomingRequest, _: &Peer) -> Option<Response<ResponseBody>> {
        self.requests.fetch_add(1, Ordering::SeqCst);
        let mut body = format!("{} {}", request.method(), request.uri()).into_bytes();
        body.resize(body.len().max(self.answer_bytes), b' ');
        Some(Response::new(body.into()))
    }

    fn respond<'a>(&'a self, _: IncomingRequest, _: &'a Peer) -> ResponseFuture<'a> {
        unreachable!("everything is answered at once")
    }

    fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }
}

struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    running: JoinHandle<ListenerSummary>,
}

async fn start(service: &Arc<impl Respond>, options: Options) -> Running {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel();
    let shutdown = async {
        let _ = stopped.await;
    };
    let service = Arc::clone(service);
    // The sender stays with the task: options do not change here.
    let running = tokio::spawn(async move {
        let options = watch::Sender::new(options);
        run(listener, service, options.subscribe(), shutdown, pending()).await
    });
    Running { address, stop, running }
}

/// One answer: its head and its body.
async fn read(stream: &mut TcpStream) -> (String, String) {
    let answer = async {
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            head.push(stream.read_u8().await.unwrap());
        }
        let head = String::from_utf8(head).unwrap();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
        let mut body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut body).await.unwrap();
        (head, String::from_utf8_lossy(&body).into_owned())
    };
    tokio::time::timeout(PATIENCE, answer).await.unwrap()
}

async fn ask(stream: &mut TcpStream, request: &str) -> (String, String) {
    stream.write_all(request.as_bytes()).await.unwrap();
    read(stream).await
}

fn get(target: &str) -> String {
    format!("GET {target} HTTP/1.1\r\nHost: test\r\nAccept: */*\r\n\r\n")
}

/// A head without the values that differ between answers.
fn blanked(head: &str) -> String {
    let varies = ["date: ", "x-request-id: ", "x-requests-used: ", "x-requests-remaining: ", "ratelimit: "];
    let blank = |line: &str| {
        varies.iter().find(|name| line.starts_with(**name)).map_or_else(|| line.to_owned(), |name| (*name).to_owned())
    };
    head.lines().map(blank).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn repeated_request_gets_the_same_response_bytes() {
    let fixture = Fixture::new();
    let server = start(&fixture.service, Options::default()).await;
    let etag = fixture.get("/v1/sports/mma/odds").header("etag").unwrap().to_owned();
    let (key, production) = (&fixture.sandbox, &fixture.production);
    for (target, headers, status) in [
        ("/v1/sports/mma/odds", format!("X-API-Key: {key}\r\n"), "200 OK"),
        ("/v1/sports/mma/odds?limit=1", format!("X-API-Key: {key}\r\nAccept-Encoding: gzip\r\n"), "200 OK"),
        ("/v1/sports/mma/odds", format!("X-API-Key: {key}\r\nIf-None-Match: {etag}\r\n"), "304 Not Modified"),
        ("/v1/sports/mma/odds", format!("X-API-Key: {production}\r\nX-Request-Id: job-1\r\n"), "200 OK"),
        ("/v1/sports/mma/odds?format=wrong", format!("X-API-Key: {key}\r\n"), "400 Bad Request"),
        ("/v1/nothing", format!("X-API-Key: {key}\r\n"), "404 Not Found"),
        ("/v1/books", "X-API-Key: wrong\r\nConnection: keep-alive\r\n".to_owned(), "401 Unauthorized"),
        ("/v1/books", String::new(), "401 Unauthorized"),
        ("/docs", "Accept-Encoding: zstd\r\n".to_owned(), "200 OK"),
        ("/healthz", String::new(), "200 OK"),
    ] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let request = format!("GET {target} HTTP/1.1\r\nHost: test\r\n{headers}\r\n");
        let (first, body) = ask(&mut stream, &request).await;
        assert!(first.starts_with(&format!("HTTP/1.1 {status}\r\n")), "{first}");
        for _ in 0..3 {
            // Errors have the request's id in their body.
            fixture.clock.advance(Duration::from_secs(60));
            let (head, again) = ask(&mut stream, &request).await;
            assert_eq!((blanked(&head), again.len()), (blanked(&first), body.len()));
            assert!(again == body || status.starts_with('4'), "{target}");
        }
    }
}

#[tokio::test]
async fn every_repetition_is_charged_until_the_key_is_spent() {
    let fixture = Fixture::new();
    let server = start(&fixture.service, Options::default()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!("GET /v1/books HTTP/1.1\r\nHost: test\r\nX-API-Key: {}\r\n\r\n", fixture.tiny);
    for (used, status) in [(1, 200), (2, 200), (2, 429), (3, 200), (3, 429), (3, 429)] {
        let (head, _) = ask(&mut stream, &request).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status} ")), "{used}: {head}");
        assert!(head.contains(&format!("x-requests-used: {used}\r\n")), "{used}: {head}");
        if status == 429 {
            fixture.clock.advance(Duration::from_secs(61));
        }
    }
}

#[tokio::test]
async fn revoked_key_is_rejected_on_open_connection() {
    let fixture = Fixture::new();
    let server = start(&fixture.service, Options::default()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!("GET /v1/books HTTP/1.1\r\nHost: test\r\nX-API-Key: {}\r\n\r\n", fixture.sandbox);
    for _ in 0..2 {
        assert!(ask(&mut stream, &request).await.0.starts_with("HTTP/1.1 200 "));
    }
    let keyring = &fixture.service.keyring;
    let keys = keyring.load();
    let grant = keys.authenticate(Some(&fixture.sandbox), fixture.clock.now()).unwrap();
    keyring.put(KeyRecord { revoked: Some(fixture.clock.now().timestamp()), ..grant.record().clone() });
    assert!(ask(&mut stream, &request).await.0.starts_with("HTTP/1.1 401 "));
}

#[tokio::test]
async fn keys_that_alternate_on_a_connection_are_charged_separately() {
    let fixture = Fixture::new();
    let server = start(&fixture.service, Options::default()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let (sandbox, production) = (&*fixture.sandbox, &*fixture.production);
    for (key, used) in [(sandbox, 1), (sandbox, 2), (production, 1), (sandbox, 3), (production, 2), (production, 3)] {
        let request = format!("GET /v1/books HTTP/1.1\r\nHost: test\r\nX-API-Key: {key}\r\n\r\n");
        let (head, _) = ask(&mut stream, &request).await;
        assert!(head.contains(&format!("x-requests-used: {used}\r\n")), "{used}: {head}");
    }
    let unknown = "GET /v1/books HTTP/1.1\r\nHost: test\r\nX-API-Key: wrong\r\n\r\n";
    assert!(ask(&mut stream, unknown).await.0.starts_with("HTTP/1.1 401 "));
}

#[tokio::test]
async fn repeated_request_that_waits_for_a_lease_is_charged_once() {
    let mut fixture = Fixture::new();
    let server = start(&fixture.service, Options::default()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = format!("GET /v1/books HTTP/1.1\r\nHost: test\r\nX-API-Key: {}\r\n\r\n", fixture.sandbox);
    let used = |head: &str| -> u32 {
        head.lines().find_map(|line| line.strip_prefix("x-requests-used: ")).unwrap().parse().unwrap()
    };
    for number in 1..=4 {
        assert_eq!(used(&ask(&mut stream, &request).await.0), number);
    }
    // A new day: its lease has to be stored before the request is answered.
    fixture.clock.advance(Duration::from_hours(1));
    stream.write_all(request.as_bytes()).await.unwrap();
    for id in fixture.requests.next().await {
        let entry = fixture.service.keyring.get(&id).unwrap();
        let lease = entry.meter().plan_lease(fixture.clock.now()).unwrap();
        entry.meter().grant(lease);
    }
    assert_eq!(used(&read(&mut stream).await.0), 1);
    for number in 2..=4 {
        assert_eq!(used(&ask(&mut stream, &request).await.0), number);
    }
}

#[tokio::test]
async fn body_that_looks_like_a_request_is_not_answered() {
    let echo = Arc::new(Echo::new(0));
    let server = start(&echo, Options::default()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let known = get("/known");
    for _ in 0..3 {
        ask(&mut stream, &known).await;
    }
    assert_eq!(echo.requests(), 3);
    let length = format!("GET /long HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", known.len());
    assert_eq!(ask(&mut stream, &length).await.1, "GET /long");
    // The body is sent after the answer, in a packet of its own. hyper closes a connection whose body was not read.
    let _ = stream.write_all(known.as_bytes()).await;
    let mut more = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut more)).await.unwrap();
    assert_eq!((String::from_utf8(more).unwrap().as_str(), echo.requests()), ("", 4));
}

#[tokio::test]
async fn two_requests_in_one_packet_get_two_answers() {
    for both in [
        "GET /a HTTP/1.1\nHost: test\n\nGET /b HTTP/1.1\r\nHost: test\r\n\r\n".to_owned(),
        get("/a") + &get("/b"),
        get("/a") + "GET /b HTTP/1.1\r\nHost: te",
    ] {
        let echo = Arc::new(Echo::new(0));
        let server = start(&echo, Options::default()).await;
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        for round in 0..4 {
            assert_eq!(ask(&mut stream, &both).await.1, "GET /a");
            if both.ends_with("te") {
                stream.write_all(b"st\r\n\r\n").await.unwrap();
            }
            assert_eq!(read(&mut stream).await.1, "GET /b", "{round}");
        }
        assert_eq!(echo.requests(), 8);
    }
}

#[tokio::test]
async fn requests_with_uncommon_heads_are_answered_every_time() {
    for request in [
        "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: test\r\nConnection: keep-alive, x\r\n\r\n",
        "HEAD / HTTP/1.1\r\nHost: test\r\n\r\n",
    ] {
        let echo = Arc::new(Echo::new(0));
        let server = start(&echo, Options::default()).await;
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        for _ in 0..4 {
            stream.write_all(request.as_bytes()).await.unwrap();
            let mut seen = [0; 512];
            let count = tokio::time::timeout(PATIENCE, stream.read(&mut seen)).await.unwrap().unwrap();
            assert!(seen[..count].starts_with(b"HTTP/1."), "{request}");
        }
        assert_eq!(echo.requests(), 4, "{request}");
    }
}

const LARGE: usize = 4 << 20;

/// A connection whose third response is larger than the socket buffers and is not read.
async fn stuck(server: &Running) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    for _ in 0..2 {
        ask(&mut stream, &get("/large")).await;
    }
    stream.write_all(get("/large").as_bytes()).await.unwrap();
    stream
}

async fn until(echo: &Echo, requests: usize) {
    let reached = async {
        while echo.requests() != requests {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.unwrap();
}

#[tokio::test]
async fn shutdown_waits_until_a_response_is_sent() {
    let echo = Arc::new(Echo::new(LARGE));
    let server = start(&echo, Options { drain: PATIENCE, ..Options::default() }).await;
    let mut stream = stuck(&server).await;
    until(&echo, 3).await;
    server.stop.send(()).unwrap();
    let (head, body) = read(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 200 OK") && body.len() == LARGE);
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0, "and then it ends");
    assert_eq!(server.running.await.unwrap().dropped, 0);
}

#[tokio::test]
async fn client_that_stops_reading_is_dropped() {
    let echo = Arc::new(Echo::new(LARGE));
    let server = start(&echo, short(60_000, 60_000)).await;
    let mut stream = stuck(&server).await;
    until(&echo, 3).await;
    // The write deadline passes well before the drain.
    tokio::time::pause();
    server.stop.send(()).unwrap();
    assert_eq!(tokio::time::timeout(PATIENCE, server.running).await.unwrap().unwrap().dropped, 0);
    let mut taken = Vec::new();
    let _ = stream.read_to_end(&mut taken).await;
    assert!(taken.len() < LARGE, "{}", taken.len());
}

/// Requests, each with the body of its answer; the first come more often than the others.
const REQUESTS: [(&str, &str); 6] = [
    ("GET /a HTTP/1.1\r\nHost: t\r\n\r\n", "GET /a"),
    ("GET /a HTTP/1.1\r\nHost: t\r\n\r\n", "GET /a"),
    ("GET /a HTTP/1.1\r\nHost: t\r\n\r\n", "GET /a"),
    ("GET /b HTTP/1.1\r\nHost: t\r\nAccept: */*\r\n\r\n", "GET /b"),
    ("GET /b HTTP/1.1\r\nHost: t\r\nAccept: */*\r\n\r\n", "GET /b"),
    ("GET /n HTTP/1.1\nHost: t\n\n", "GET /n"),
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// However requests are cut into pieces, and however many come at a time, each has its answer, in order.
    #[test]
    fn requests_in_any_pieces_are_answered_one_by_one(
        asked in prop::collection::vec((0..REQUESTS.len(), 1_usize..200, prop::bool::weighted(0.8)), 1..24),
    ) {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
        runtime.block_on(async {
            let echo = Arc::new(Echo::new(0));
            let server = start(&echo, Options::default()).await;
            let mut stream = TcpStream::connect(server.address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            let mut owed = Vec::new();
            for (which, piece, is_awaited) in &asked {
                let (request, answer) = REQUESTS[*which];
                owed.push(answer);
                for part in request.as_bytes().chunks(*piece) {
                    stream.write_all(part).await.unwrap();
                }
                if *is_awaited {
                    for answer in owed.drain(..) {
                        assert_eq!(read(&mut stream).await.1, answer);
                    }
                }
            }
            for answer in owed {
                assert_eq!(read(&mut stream).await.1, answer);
            }
            assert_eq!(echo.requests(), asked.len());
        });
    }
}
