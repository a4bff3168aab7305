//! The same head again: answered as before, in order, and never in place of what it only looks like.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use proptest::prelude::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::sockets::{PATIENCE, short};
use crate::http::again::Head;
use crate::http::client_address::Peer;
use crate::http::listener::{Options, Summary, run};
use crate::http::service::{IncomingRequest, Respond};
use crate::http::testing::Fixture;
use crate::metrics::Traffic;

/// Says what it was asked, and counts how often it was asked in either way.
struct Echo {
    led: AtomicUsize,
    again: AtomicUsize,
    answer_bytes: usize,
    traffic: Arc<Traffic>,
}

impl Echo {
    fn new(answer_bytes: usize) -> Self {
        let traffic = Arc::new(Traffic::new(&[], &[]));
        Echo { led: AtomicUsize::new(0), again: AtomicUsize::new(0), answer_bytes, traffic }
    }

    fn answer<B>(&self, request: &Request<B>) -> Bytes {
        let mut told = format!("{} {}", request.method(), request.uri()).into_bytes();
        told.resize(told.len().max(self.answer_bytes), b' ');
        told.into()
    }

    fn counts(&self) -> (usize, usize) {
        (self.led.load(Ordering::SeqCst), self.again.load(Ordering::SeqCst))
    }
}

impl Respond for Echo {
    type Body = Full<Bytes>;

    fn respond_at_once(&self, request: &IncomingRequest, _: &Peer) -> Option<Response<Full<Bytes>>> {
        self.led.fetch_add(1, Ordering::SeqCst);
        Some(Response::new(Full::new(self.answer(request))))
    }

    fn answer_again(&self, request: &Request<()>, _: &Peer, head: &mut Head) -> Option<Bytes> {
        self.again.fetch_add(1, Ordering::SeqCst);
        let body = self.answer(request);
        head.begin(StatusCode::OK);
        head.end(Some(body.len()), 0);
        Some(body)
    }

    async fn respond(&self, _: IncomingRequest, _: &Peer) -> Response<Full<Bytes>> {
        unreachable!("everything is answered at once")
    }

    fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }
}

struct Running {
    address: SocketAddr,
    stop: oneshot::Sender<()>,
    running: JoinHandle<Summary>,
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

#[tokio::test]
async fn from_the_third_time_on_the_library_is_not_asked() {
    let echo = Arc::new(Echo::new(0));
    let server = start(&echo, Options::default()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    for round in 0..5 {
        for target in ["/a", "/b?x=1", "/c", "/d"] {
            assert_eq!(ask(&mut stream, &get(target)).await.1, format!("GET {target}"));
        }
        let led = 4 * 2.min(round + 1);
        assert_eq!(echo.counts(), (led, 4 * (round + 1) - led));
    }
    // A fifth takes the place of the first.
    for _ in 0..3 {
        assert_eq!(ask(&mut stream, &get("/e")).await.1, "GET /e");
    }
    assert_eq!(echo.counts(), (10, 13));
    ask(&mut stream, &get("/b?x=1")).await;
    ask(&mut stream, &get("/a")).await;
    assert_eq!(echo.counts(), (11, 14));
}

/// What differs from answer to answer is blanked out.
fn blanked(head: &str) -> String {
    let varies = ["date: ", "x-request-id: ", "x-requests-used: ", "x-requests-remaining: ", "ratelimit: "];
    let blank = |line: &str| {
        varies.iter().find(|name| line.starts_with(**name)).map_or_else(|| line.to_owned(), |name| (*name).to_owned())
    };
    head.lines().map(blank).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn the_bytes_are_those_that_the_library_sends() {
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
async fn the_date_is_written_as_the_library_writes_it() {
    let mut head = Head::default();
    for (unix_s, date) in
        [(784_111_777, "Sun, 06 Nov 1994 08:49:37 GMT"), (1_794_787_199, "Sun, 15 Nov 2026 23:59:59 GMT")]
    {
        head.begin(StatusCode::NOT_MODIFIED);
        head.end(None, unix_s);
        assert_eq!(head.bytes(), format!("HTTP/1.1 304 Not Modified\r\ndate: {date}\r\n\r\n").as_bytes());
    }
}

#[tokio::test]
async fn every_answer_is_charged_and_a_spent_key_opens_nothing_more() {
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
async fn a_known_head_that_has_to_wait_is_charged_once_and_stays_known() {
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
    // A new day: the lease for it has to be stored before anyone is answered.
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
async fn a_body_is_not_taken_for_a_request() {
    let echo = Arc::new(Echo::new(0));
    let server = start(&echo, Options::default()).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let known = get("/known");
    for _ in 0..3 {
        ask(&mut stream, &known).await;
    }
    assert_eq!(echo.counts(), (2, 1));
    let length = format!("GET /long HTTP/1.1\r\nHost: test\r\nContent-Length: {}\r\n\r\n", known.len());
    assert_eq!(ask(&mut stream, &length).await.1, "GET /long");
    // The body comes when the answer is out, and alone. The library closes where a body was not read.
    let _ = stream.write_all(known.as_bytes()).await;
    let mut more = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut more)).await.unwrap();
    assert_eq!((String::from_utf8(more).unwrap().as_str(), echo.counts()), ("", (3, 1)));
}

#[tokio::test]
async fn what_looks_like_one_head_and_is_two_is_two() {
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
        assert_eq!(echo.counts(), (8, 0));
    }
}

#[tokio::test]
async fn an_older_version_and_an_expectation_stay_the_librarys() {
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
        assert_eq!(echo.counts(), (4, 0), "{request}");
    }
}

const LARGE: usize = 4 << 20;

/// A connection whose third answer, a large one given from memory, is stuck on its way.
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

async fn until(echo: &Echo, counts: (usize, usize)) {
    let reached = async {
        while echo.counts() != counts {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(PATIENCE, reached).await.unwrap();
}

#[tokio::test]
async fn a_stop_waits_until_an_answer_is_out() {
    let echo = Arc::new(Echo::new(LARGE));
    let server = start(&echo, Options { drain: PATIENCE, ..Options::default() }).await;
    let mut stream = stuck(&server).await;
    until(&echo, (2, 1)).await;
    server.stop.send(()).unwrap();
    let (head, body) = read(&mut stream).await;
    assert!(head.starts_with("HTTP/1.1 200 OK") && body.len() == LARGE);
    assert_eq!(stream.read(&mut [0]).await.unwrap(), 0, "and then it ends");
    assert_eq!(server.running.await.unwrap().dropped, 0);
}

#[tokio::test]
async fn a_client_that_takes_nothing_is_dropped() {
    let echo = Arc::new(Echo::new(LARGE));
    let server = start(&echo, short(60_000, 60_000)).await;
    let mut stream = stuck(&server).await;
    until(&echo, (2, 1)).await;
    // Its connection is gone when there is nothing more to wait for.
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
            let (led, again) = echo.counts();
            assert_eq!(led + again, asked.len());
        });
    }
}
