//! The listener over real sockets: keep-alive, pipelining, HTTP/2, deadlines, bounds and the orderly stop.

use std::future::pending;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Barrier};
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
    assert_eq!(server.stop().await.dropped, 0, "an idle connection goes away when asked");
    driven.await.unwrap().unwrap();
}

#[tokio::test]
async fn slow_heads_are_closed_and_rest_is_allowed_for_longer() {
    let server = Server::start(short(60, 10_000)).await;
    let mut silent = server.connect().await;
    assert_eq!(read_to_end(&mut silent).await, "");
    let mut preface = server.connect().await;
    preface.write_all(b"PRI * HT").await.unwrap();
    assert_eq!(read_to_end(&mut preface).await, "");
    let mut slow = server.connect().await;
    slow.write_all(b"GET /v1/books HTTP/1.1\r\nHost:").await.unwrap();
    assert_eq!(read_to_end(&mut slow).await, "");

    let mut resting = server.connect().await;
    resting.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
    read_answer(&mut resting).await;
    assert!(tokio::time::timeout(Duration::from_millis(300), resting.read_u8()).await.is_err(), "still open");
    resting.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
    read_answer(&mut resting).await;
    assert_eq!(server.stop().await.dropped, 0);
}

#[tokio::test]
async fn a_connection_that_rests_too_long_is_closed() {
    let server = Server::start(short(60, 80)).await;
    let mut stream = server.connect().await;
    stream.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
    read_answer(&mut stream).await;
    assert_eq!(read_to_end(&mut stream).await, "");
}

#[tokio::test]
async fn a_reader_that_takes_nothing_is_dropped() {
    let server = Server::start(short(60_000, 60_000)).await;
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    let mut stream = socket.connect(server.address).await.unwrap();
    // Pipelines pages without reading until the way back is full; then the server gives up, and so does our write.
    let docs = "GET /docs HTTP/1.1\r\nHost: test\r\n\r\n".repeat(50);
    let flood = async { while stream.write_all(docs.as_bytes()).await.is_ok() {} };
    tokio::time::timeout(PATIENCE, flood).await.unwrap();
    assert_eq!(server.stop().await.dropped, 0);
}

#[tokio::test]
async fn oversize_requests_get_an_answer_in_our_shape() {
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
    let mut stranger = server.connect().await;
    // It may be closed before it is all sent, and what was answered may be lost with it.
    let _ = stranger.write_all(long.as_bytes()).await;
    let mut text = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stranger.read_to_end(&mut text)).await.unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.is_empty() || text.starts_with("HTTP/1.1 431"), "{text}");
    let mut known = server.connect().await;
    known.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
    read_answer(&mut known).await;
    known.write_all(long.as_bytes()).await.unwrap();
    assert!(read_to_end(&mut known).await.contains("{\"error\":{\"code\":\"headers_too_large\""));
}

/// Bytes that begin a request, and more of the same headers than the library allocates room for anyway.
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
    let mut strangers = Vec::new();
    for number in 0..100 {
        let mut stream = server.connect().await;
        let _ = stream.write_all(&unfinished(COUNTED_EACH + (8 << 10))).await;
        strangers.push(stream);
        if number % 10 == 0 {
            good.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
            assert!(read_answer(&mut good).await.0.starts_with("HTTP/1.1 200"));
        }
        assert!(heads.bytes() <= heads.max());
    }
    // A quarter of the bytes is not for strangers: twelve of them have the rest.
    let closed = async {
        while server.fixture.service.traffic().connections() > 1 + 12 || heads.refused() < 88 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, closed).await.expect("the others are closed");
    assert!(heads.bytes() <= 12 * COUNTED_EACH, "{}", heads.bytes());
    // Known clients have that quarter, also for long heads.
    let long = server.head("/v1/books").replace("Host", &format!("X-Pad: {}\r\nHost", "a".repeat(14 << 10)));
    good.write_all(long.as_bytes()).await.unwrap();
    assert!(read_answer(&mut good).await.0.starts_with("HTTP/1.1 200"));
    drop((strangers, good));
    server.stop().await;
    assert_eq!(heads.bytes(), 0, "all is given back");
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
    let held = async {
        while heads.bytes() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, held).await.expect("unfinished heads are counted");
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
async fn a_stop_lets_a_request_end() {
    let server = Server::start(Options { drain: PATIENCE, ..Options::default() }).await;
    let (address, mut stream) = (server.address, server.connect().await);
    // A new day: the request waits for a lease while the service stops.
    server.fixture.clock.advance(Duration::from_hours(1));
    stream.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
    let Server { mut fixture, stop, running, .. } = server;
    let wanting = fixture.requests.next().await;
    stop.send(()).unwrap();
    // The listener is closed before anything else happens.
    while TcpStream::connect(address).await.is_ok() {
        tokio::task::yield_now().await;
    }
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
async fn what_does_not_end_in_time_is_dropped() {
    let server = Server::start(Options { drain: Duration::from_millis(50), ..Options::default() }).await;
    server.fixture.clock.advance(Duration::from_hours(1));
    let mut stream = server.connect().await;
    stream.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
    let Server { mut fixture, stop, running, .. } = server;
    fixture.requests.next().await;
    stop.send(()).unwrap();
    assert_eq!(running.await.unwrap().dropped, 1);
    assert_eq!(read_to_end(&mut stream).await, "");
}

#[tokio::test]
async fn connections_beyond_the_bound_wait_their_turn() {
    let server = Server::start(Options { connections_max: 1, ..Options::default() }).await;
    let mut first = server.connect().await;
    first.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
    read_answer(&mut first).await;
    let mut second = server.connect().await;
    second.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(100), second.read_u8()).await.is_err(), "no place yet");
    drop(first);
    assert!(read_answer(&mut second).await.0.starts_with("HTTP/1.1 200"));
}

#[tokio::test]
async fn many_who_come_at_once_wait_until_they_are_accepted() {
    let listener = listen("127.0.0.1:0".parse().unwrap()).unwrap();
    let address = listener.local_addr().unwrap();
    let come = async {
        let mut waiting = Vec::new();
        for _ in 0..300 {
            waiting.push(TcpStream::connect(address).await.unwrap());
        }
        waiting
    };
    assert_eq!(tokio::time::timeout(PATIENCE, come).await.unwrap().len(), 300);
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
async fn bounds_that_change_are_those_of_the_next_connection() {
    let server = Server::start(Options { connections_max: 1, ..short(60_000, 60_000) }).await;
    let mut first = server.connect().await;
    first.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
    read_answer(&mut first).await;
    let mut second = server.connect().await;
    second.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
    assert!(tokio::time::timeout(Duration::from_millis(100), second.read_u8()).await.is_err(), "there is no place");
    server.changes.send_modify(|options| options.connections_max = 2);
    tokio::time::timeout(PATIENCE, read_answer(&mut second)).await.unwrap();
    // Both keep the time that they came with; the next one has less.
    server.changes.send_replace(Options { connections_max: 3, ..short(100, 100) });
    let mut third = server.connect().await;
    assert_eq!(read_to_end(&mut third).await, "");
    for stream in [&mut first, &mut second] {
        stream.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
        read_answer(stream).await;
    }
    assert_eq!(server.fixture.service.traffic().connections(), 2);
    drop((first, second));
    assert_eq!(server.stop().await, ListenerSummary { accepted: 3, rejected: 0, dropped: 0 });
}

/// A service in the middle of an answer: it meets the test twice, when it has begun and before it ends.
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
            // Long enough that a listener which does not wait is gone; one that does has this time on top.
            std::thread::sleep(Duration::from_millis(50));
            self.has_answered.store(true, Ordering::SeqCst);
            Response::default()
        })
    }

    fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_answers_when_it_hurries_is_waited_for() {
    let traffic = Arc::new(Traffic::new(&[], &[]));
    let midway = Arc::new(Midway { meeting: Barrier::new(2), has_answered: AtomicBool::new(false), traffic });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    client.write_all(b"GET / HTTP/1.1\r\nHost: test\r\n\r\n").await.unwrap();
    let shutdown = async {
        let met = Arc::clone(&midway);
        tokio::task::spawn_blocking(move || met.meeting.wait()).await.unwrap();
    };
    let hurry = async {
        midway.meeting.wait();
    };
    let options = watch::Sender::new(Options::default());
    let running = run(listener, midway.clone(), options.subscribe(), shutdown, hurry);
    let summary = tokio::time::timeout(PATIENCE, running).await.unwrap();
    assert_eq!((summary.accepted, summary.dropped), (1, 1));
    assert!(midway.has_answered.load(Ordering::SeqCst), "what it counts can be written now");
}
