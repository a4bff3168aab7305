//! The listener over real sockets: keep-alive, pipelining, HTTP/2, bounds and the orderly stop.

use std::future::{pending, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use crate::http::Deadlines;
use crate::http::Heads;
use crate::http::Peer;
use crate::http::testing::Fixture;
use crate::http::{IncomingRequest, Respond, ResponseFuture};
use crate::http::{ListenerSummary, Options, listen, run};
use crate::metrics::Traffic;

/// Far beyond what any of these tests takes when it works.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

pub(super) struct Server {
    fixture: Fixture,
    pub(super) address: SocketAddr,
    changes: watch::Sender<Options>,
    stop: oneshot::Sender<()>,
    running: JoinHandle<ListenerSummary>,
}

impl Server {
    pub(super) async fn start(options: Options) -> Self {
        let fixture = Fixture::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let changes = watch::Sender::new(options);
        let (stop, stopped) = oneshot::channel();
        let shutdown = async {
            let _ = stopped.await;
        };
        let service = Arc::clone(&fixture.service);
        let running = tokio::spawn(run(listener, service, changes.subscribe(), shutdown, pending()));
        Server { fixture, address, changes, stop, running }
    }

    pub(super) async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.unwrap()
    }

    pub(super) fn key(&self) -> &str {
        &self.fixture.sandbox
    }

    pub(super) fn head(&self, target: &str) -> String {
        format!("GET {target} HTTP/1.1\r\nHost: test\r\nX-API-Key: {}\r\n\r\n", self.fixture.sandbox)
    }

    /// Asserts that `waiting`, whose request was sent before, is not served while others are on `open`.
    async fn assert_unanswered(&self, open: &mut TcpStream, waiting: &TcpStream) {
        for _ in 0..5 {
            open.write_all(self.head("/v1/books").as_bytes()).await.unwrap();
            read_answer(open).await;
        }
        let read = waiting.try_read(&mut [0]);
        assert!(read.as_ref().is_err_and(|error| error.kind() == std::io::ErrorKind::WouldBlock), "{read:?}");
        assert_eq!(self.fixture.service.traffic().connections(), 1);
    }

    pub(super) async fn stop(self) -> ListenerSummary {
        self.stop.send(()).unwrap();
        tokio::time::timeout(PATIENCE, self.running).await.unwrap().unwrap()
    }
}

pub(super) fn short(head: u64, idle: u64) -> Options {
    let deadlines = Deadlines {
        head: Duration::from_millis(head),
        idle: Duration::from_millis(idle),
        write: Duration::from_millis(200),
    };
    Options { deadlines, ..Options::default() }
}

/// Reads one answer with a known length; its head and its body.
async fn read_answer(stream: &mut TcpStream) -> (String, String) {
    tokio::time::timeout(PATIENCE, read_answer_unbounded(stream)).await.unwrap()
}

async fn read_answer_unbounded(stream: &mut TcpStream) -> (String, String) {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).await.unwrap();
    (head, String::from_utf8(body).unwrap())
}

/// Everything until the other side closes.
async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut text = String::new();
    tokio::time::timeout(PATIENCE, stream.read_to_string(&mut text)).await.unwrap().unwrap();
    text
}

#[tokio::test]
async fn keep_alive_and_pipelining() {
    let server = Server::start(Options::default()).await;
    let mut stream = server.connect().await;
    for _ in 0..2 {
        stream.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
        let (head, body) = read_answer(&mut stream).await;
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && body.starts_with("[{\"key\":\"bet365\""), "{head}");
    }
    let both = server.head("/v1/sports") + &server.head("/v1/nothing");
    stream.write_all(both.as_bytes()).await.unwrap();
    assert!(read_answer(&mut stream).await.1.starts_with("{\"sports\":"));
    assert!(read_answer(&mut stream).await.1.contains("\"not_found\""));
    drop(stream);
    assert_eq!(server.stop().await, ListenerSummary { accepted: 1, rejected: 0, dropped: 0 });
}

#[tokio::test]
async fn head_has_the_length_and_no_body() {
    let server = Server::start(Options::default()).await;
    let mut stream = server.connect().await;
    let head = server.head("/v1/books").replace("GET", "HEAD")
        + "GET /healthz HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).await.unwrap();
    let text = read_to_end(&mut stream).await;
    let (first, second) = text.split_once("\r\n\r\n").unwrap();
    assert!(first.contains("content-length: 229"), "{first}");
    assert!(second.starts_with("HTTP/1.1 200 OK") && second.ends_with("{\"status\":\"ok\"}"), "{second}");
}

#[tokio::test]
async fn http2_with_prior_knowledge() {
    let server = Server::start(Options::default()).await;
    let io = TokioIo::new(server.connect().await);
    let (mut client, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
    let driven = tokio::spawn(connection);
    for (method, length) in [("GET", 229), ("HEAD", 0)] {
        let request = http::Request::builder()
            .method(method)
            .uri(format!("http://{}/v1/books", server.address))
            .header("x-api-key", &server.fixture.sandbox)
            .body(Empty::<Bytes>::new())
            .unwrap();
        let response = client.send_request(request).await.unwrap();
        assert_eq!((response.status(), response.version()), (http::StatusCode::OK, http::Version::HTTP_2));
        assert_eq!(response.headers()["content-length"], "229");
        assert_eq!(response.into_body().collect().await.unwrap().to_bytes().len(), length);
    }
    assert_eq!(server.stop().await.dropped, 0, "an idle connection closes on shutdown");
    driven.await.unwrap().unwrap();
}

#[tokio::test]
async fn oversize_requests_get_an_error_body() {
    let server = Server::start(Options::default()).await;
    let header = |count: usize, length: usize| -> String {
        let line = |number| format!("X-{number}: {}\r\n", "v".repeat(length));
        (0..count).map(line).collect::<Vec<_>>().concat()
    };
    for (request, code) in [
        (format!("GET /{} HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n", "a".repeat(60_000)), "uri_too_long"),
        (format!("GET / HTTP/1.1\r\nConnection: close\r\n{}\r\n", header(90, 5)), "headers_too_large"),
        (format!("GET / HTTP/1.1\r\nConnection: close\r\n{}\r\n", header(10, 6000)), "headers_too_large"),
    ] {
        let mut stream = server.connect().await;
        stream.write_all(request.as_bytes()).await.unwrap();
        let text = read_to_end(&mut stream).await;
        assert!(text.contains(&format!("{{\"error\":{{\"code\":\"{code}\"")), "{text}");
        assert!(text.contains("\r\nx-request-id: "), "{text}");
    }
}

#[tokio::test]
async fn head_beyond_64_kib_is_answered_only_where_a_valid_key_was_used() {
    let server = Server::start(Options::default()).await;
    let long = format!("GET / HTTP/1.1\r\nHost: t\r\nConnection: close\r\nX-Pad: {}\r\n\r\n", "a".repeat(80_000));
    let mut unknown = server.connect().await;
    // It may be closed before everything is sent, and the answer may be lost with it.
    let _ = unknown.write_all(long.as_bytes()).await;
    let mut text = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, unknown.read_to_end(&mut text)).await.unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 431"), "{text}");
    let mut known = server.connect().await;
    known.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
    read_answer(&mut known).await;
    known.write_all(long.as_bytes()).await.unwrap();
    assert!(read_to_end(&mut known).await.contains("{\"error\":{\"code\":\"headers_too_large\""));
}

/// An unfinished head that is larger than the buffer that hyper allocates for each connection.
fn unfinished(bytes: usize) -> Vec<u8> {
    let mut head = b"GET /v1/books HTTP/1.1\r\nHost: t\r\nX-Pad: ".to_vec();
    head.resize(bytes, b'a');
    head
}

#[tokio::test]
async fn unfinished_heads_are_bounded_over_all_connections() {
    const COUNTED_EACH: usize = 16 << 10;
    let heads = Arc::new(Heads::new(16 * COUNTED_EACH));
    let server = Server::start(Options { heads: Arc::clone(&heads), ..short(60_000, 60_000) }).await;
    let mut good = server.connect().await;
    let mut unknown = Vec::new();
    for number in 0..100 {
        let mut stream = server.connect().await;
        let _ = stream.write_all(&unfinished(COUNTED_EACH + (8 << 10))).await;
        unknown.push(stream);
        if number % 10 == 0 {
            good.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
            assert!(read_answer(&mut good).await.0.starts_with("HTTP/1.1 200"));
        }
        assert!(heads.bytes() <= heads.max());
    }
    // A quarter of the bytes is reserved for clients with a key: twelve of the others share the rest.
    let closed = async {
        while server.fixture.service.traffic().connections() > 1 + 12 || heads.refused() < 88 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, closed).await.expect("the others are closed");
    assert!(heads.bytes() <= 12 * COUNTED_EACH, "{}", heads.bytes());
    // Clients with a key may use that quarter, also for long heads.
    let long = server.head("/v1/books").replace("Host", &format!("X-Pad: {}\r\nHost", "a".repeat(14 << 10)));
    good.write_all(long.as_bytes()).await.unwrap();
    assert!(read_answer(&mut good).await.0.starts_with("HTTP/1.1 200"));
    drop((unknown, good));
    server.stop().await;
    assert_eq!(heads.bytes(), 0, "all bytes are released");
}

#[tokio::test]
async fn headers_without_an_end_are_bounded_in_http2() {
    let heads = Arc::new(Heads::default());
    let server = Server::start(Options { heads: Arc::clone(&heads), ..short(60_000, 60_000) }).await;
    let frame = |kind: u8, payload: &[u8]| {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[kind, 0, 0, 0, 0, u8::from(kind != 4)], payload].concat()
    };
    // One literal field, of a value that is longer than what is sent of it.
    let mut fields = vec![0, 1, b'a', 0x7f, 0x91, 0xbe, 0x05];
    fields.resize(16_000, b'a');
    let mut stream = server.connect().await;
    let hello = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(4, &[]), &frame(1, &fields)].concat();
    stream.write_all(&hello).await.unwrap();
    let counted = async {
        while heads.bytes() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, counted).await.expect("unfinished heads are counted");
    for _ in 0..4 {
        let _ = stream.write_all(&frame(9, &vec![b'a'; 16_000])).await;
    }
    let mut rest = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut rest)).await.expect("it is closed");
    assert_eq!(heads.refused(), 1);
    server.stop().await;
    assert_eq!(heads.bytes(), 0);
}

#[tokio::test]
async fn shutdown_waits_for_a_request_in_flight() {
    let server = Server::start(Options { drain: PATIENCE, ..Options::default() }).await;
    let (address, mut stream) = (server.address, server.connect().await);
    // A new day: the request waits for a lease while the service stops.
    server.fixture.clock.advance(Duration::from_hours(1));
    stream.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
    let Server { mut fixture, stop, running, .. } = server;
    let wanting = fixture.requests.next().await;
    stop.send(()).unwrap();
    // The listener is closed before anything else happens.
    let closed = async {
        while TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, closed).await.unwrap();
    for id in wanting {
        let entry = fixture.service.keyring.get(&id).unwrap();
        let lease = entry.meter().plan_lease(fixture.clock.now()).unwrap();
        entry.meter().grant(lease);
    }
    let text = read_to_end(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 200 OK") && text.contains("connection: close"), "{text}");
    assert_eq!(running.await.unwrap().dropped, 0);
}

#[tokio::test]
async fn request_that_outlasts_the_drain_is_dropped() {
    // Shorter than the wait for a lease.
    let server = Server::start(Options { drain: Duration::from_secs(1), ..Options::default() }).await;
    server.fixture.clock.advance(Duration::from_hours(1));
    let mut stream = server.connect().await;
    stream.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
    let Server { mut fixture, stop, running, .. } = server;
    fixture.requests.next().await;
    // Only the drain is left to wait for.
    tokio::time::pause();
    stop.send(()).unwrap();
    assert_eq!(running.await.unwrap().dropped, 1);
    assert_eq!(read_to_end(&mut stream).await, "");
}

#[tokio::test]
async fn connections_beyond_the_bound_wait_in_the_accept_queue() {
    let server = Server::start(Options { connections_max: 1, ..Options::default() }).await;
    let mut first = server.connect().await;
    first.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
    read_answer(&mut first).await;
    let mut second = server.connect().await;
    second.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
    server.assert_unanswered(&mut first, &second).await;
    drop(first);
    assert!(read_answer(&mut second).await.0.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn connections_that_come_at_once_wait_in_the_accept_queue() {
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let connecting = async {
        let mut waiting = Vec::new();
        for _ in 0..300 {
            waiting.push(TcpStream::connect(address).await.unwrap());
        }
        waiting
    };
    assert_eq!(tokio::time::timeout(PATIENCE, connecting).await.unwrap().len(), 300);
}

#[tokio::test]
async fn loopback_has_no_bound_per_address() {
    let server = Server::start(Options { connections_per_address_max: Some(1), ..Options::default() }).await;
    let mut streams = [server.connect().await, server.connect().await];
    for stream in &mut streams {
        stream.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
        read_answer(stream).await;
    }
    drop(streams);
    assert_eq!(server.stop().await, ListenerSummary { accepted: 2, rejected: 0, dropped: 0 });
}

#[tokio::test]
async fn changed_bounds_apply_to_new_connections() {
    let server = Server::start(Options { connections_max: 1, ..short(60_000, 60_000) }).await;
    let mut first = server.connect().await;
    first.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
    read_answer(&mut first).await;
    let mut second = server.connect().await;
    second.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
    server.assert_unanswered(&mut first, &second).await;
    server.changes.send_modify(|options| options.connections_max = 2);
    tokio::time::timeout(PATIENCE, read_answer(&mut second)).await.unwrap();
    // Open connections keep their deadlines; the next one has shorter ones.
    server.changes.send_replace(Options { connections_max: 3, ..short(100, 100) });
    let mut third = server.connect().await;
    tokio::time::pause();
    assert_eq!(read_to_end(&mut third).await, "");
    tokio::time::resume();
    for stream in [&mut first, &mut second] {
        stream.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
        read_answer(stream).await;
    }
    assert_eq!(server.fixture.service.traffic().connections(), 2);
    drop((first, second));
    assert_eq!(server.stop().await, ListenerSummary { accepted: 3, rejected: 0, dropped: 0 });
}

/// A handler that synchronises with the test twice: when it has begun, and before it ends.
struct Midway {
    meeting: Barrier,
    has_answered: AtomicBool,
    traffic: Arc<Traffic>,
}

impl Respond for Midway {
    fn respond<'a>(&'a self, _: IncomingRequest, _: &'a Peer) -> ResponseFuture<'a> {
        Box::pin(async {
            self.meeting.wait();
            self.meeting.wait();
            self.has_answered.store(true, Ordering::SeqCst);
            Response::default()
        })
    }

    fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hurried_shutdown_waits_for_a_running_handler() {
    let traffic = Arc::new(Traffic::new(&[], &[]));
    let midway = Arc::new(Midway { meeting: Barrier::new(2), has_answered: AtomicBool::new(false), traffic });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").await.unwrap();
    let shutdown = async {
        let met = Arc::clone(&midway);
        tokio::task::spawn_blocking(move || met.meeting.wait()).await.unwrap();
    };
    let has_hurried = AtomicBool::new(false);
    let hurry = async { has_hurried.store(true, Ordering::SeqCst) };
    let options = watch::Sender::new(Options::default());
    let mut running = pin!(run(listener, midway.clone(), options.subscribe(), shutdown, hurry));
    // A listener that does not wait is done in the poll in which it is to hurry.
    let waits = poll_fn(|context| match running.as_mut().poll(context) {
        Poll::Ready(summary) => Poll::Ready(Err(summary)),
        Poll::Pending if has_hurried.load(Ordering::SeqCst) => Poll::Ready(Ok(())),
        Poll::Pending => Poll::Pending,
    });
    assert_eq!(tokio::time::timeout(PATIENCE, waits).await.unwrap(), Ok(()));
    midway.meeting.wait();
    let summary = tokio::time::timeout(PATIENCE, running).await.unwrap();
    assert_eq!((summary.accepted, summary.dropped), (1, 1));
    assert!(midway.has_answered.load(Ordering::SeqCst), "its counters are final");
}
