//! Deadlines of a connection, over streams in memory and with tokio's clock paused: the deadlines are those of production,
//! and no test waits for them.

use std::sync::Arc;
use std::time::Duration;

use rustls::version;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, DuplexStream};
use tokio::time::Instant;

use super::tls::{acceptor, handshake};
use crate::http::Deadlines;
use crate::http::testing::{Fixture, local};
use crate::http::transport::connection::{self, ConnectionBounds, Handler};
use crate::http::transport::shutdown::{Phases, Stop};
use crate::tls::Acceptor;

/// Less than a page of the documentation, so that a response to a client that does not read blocks.
const BUFFER_BYTES: usize = 4096;

/// Far beyond every deadline. It costs no time, as the clock is paused.
const PATIENCE: Duration = Duration::from_hours(1);

/// A service without a listener: each connection is a stream in memory.
struct InMemory {
    fixture: Fixture,
    deadlines: Deadlines,
    tls: Option<Arc<Acceptor>>,
    _stop: Stop,
    phases: Phases,
}

impl InMemory {
    fn new(tls: Option<Arc<Acceptor>>) -> Self {
        let (stop, phases) = Stop::new();
        InMemory { fixture: Fixture::new(), deadlines: Deadlines::default(), tls, _stop: stop, phases }
    }

    fn connect(&self) -> DuplexStream {
        let (client, server) = tokio::io::duplex(BUFFER_BYTES);
        let handler = Handler { peer: local(), service: self.fixture.service.clone() };
        let bounds = ConnectionBounds { deadlines: self.deadlines, ..ConnectionBounds::default() };
        tokio::spawn(connection::run(Box::new(server), self.tls.clone(), handler, bounds, self.phases.clone()));
        client
    }

    fn head(&self, target: &str) -> String {
        format!("GET {target} HTTP/1.1\r\nHost: test\r\nX-API-Key: {}\r\n\r\n", self.fixture.sandbox)
    }

    /// One request and its response, which ends a list of JSON.
    async fn get_books(&self, stream: &mut DuplexStream) {
        stream.write_all(self.head("/v1/books").as_bytes()).await.unwrap();
        let mut text = Vec::new();
        while !text.ends_with(b"}]") {
            assert_ne!(stream.read_buf(&mut text).await.unwrap(), 0, "{}", String::from_utf8_lossy(&text));
        }
        assert!(text.starts_with(b"HTTP/1.1 200 OK\r\n"));
    }

    /// Asserts that `deadline` has passed since `began`, and not much more: deadlines are checked at intervals.
    fn assert_passed(&self, deadline: Duration, began: Instant) {
        let sampled_every = self.deadlines.head / 4;
        let elapsed = began.elapsed();
        assert!((deadline..=deadline + 2 * sampled_every).contains(&elapsed), "{elapsed:?} for {deadline:?}");
    }

    /// Sends requests for pages without reading the responses, until the connection is closed.
    async fn flood(&self, mut stream: impl AsyncRead + AsyncWrite + Unpin) {
        let docs = self.head("/docs").repeat(20);
        let began = Instant::now();
        let flood = async { while stream.write_all(docs.as_bytes()).await.is_ok() {} };
        tokio::time::timeout(PATIENCE, flood).await.expect("the server closes it");
        self.assert_passed(self.deadlines.write, began);
    }
}

/// Reads until the other side closes; no bytes if it resets the connection.
async fn read_to_end(stream: &mut (impl AsyncRead + Unpin)) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the server closes it");
    bytes
}

#[tokio::test(start_paused = true)]
async fn unfinished_head_is_closed_at_its_deadline() {
    let service = InMemory::new(None);
    for begun in ["", "PRI * HT", "GET /v1/books HTTP/1.1\r\nHost:"] {
        let began = Instant::now();
        let mut stream = service.connect();
        stream.write_all(begun.as_bytes()).await.unwrap();
        assert_eq!(read_to_end(&mut stream).await, b"", "{begun}");
        service.assert_passed(service.deadlines.head, began);
    }
}

#[tokio::test(start_paused = true)]
async fn idle_connection_is_closed_at_a_deadline_of_its_own() {
    let service = InMemory::new(None);
    let mut stream = service.connect();
    service.get_books(&mut stream).await;
    let within = service.deadlines.idle * 4 / 5;
    assert!(tokio::time::timeout(within, stream.read_u8()).await.is_err(), "still open");
    service.get_books(&mut stream).await;
    let began = Instant::now();
    assert_eq!(read_to_end(&mut stream).await, b"");
    service.assert_passed(service.deadlines.idle, began);
}

#[tokio::test(start_paused = true)]
async fn client_that_reads_nothing_is_closed() {
    let service = InMemory::new(None);
    service.flood(service.connect()).await;
}

#[tokio::test(start_paused = true)]
async fn tls_client_that_reads_nothing_is_closed() {
    let service = InMemory::new(Some(acceptor()));
    service.flood(handshake(service.connect(), &[&version::TLS13], &[]).await.unwrap()).await;
}

#[tokio::test(start_paused = true)]
async fn unfinished_tls_handshake_is_closed_at_the_deadline_for_heads() {
    let service = InMemory::new(Some(acceptor()));
    let half_a_hello = &[0x16, 0x03, 0x01, 0x01][..];
    for sent in [&[][..], half_a_hello] {
        let began = Instant::now();
        let mut stream = service.connect();
        stream.write_all(sent).await.unwrap();
        assert_eq!(read_to_end(&mut stream).await, b"");
        service.assert_passed(service.deadlines.head, began);
    }
    let began = Instant::now();
    let mut silent = handshake(service.connect(), &[&version::TLS13], &[b"h2"]).await.unwrap();
    assert_eq!(read_to_end(&mut silent).await, b"", "completed, but without a request");
    service.assert_passed(service.deadlines.head, began);
}

#[tokio::test(start_paused = true)]
async fn plain_text_to_a_tls_listener_is_closed_at_once() {
    let service = InMemory::new(Some(acceptor()));
    let began = Instant::now();
    let mut stream = service.connect();
    stream.write_all(service.head("/v1/books").as_bytes()).await.unwrap();
    assert!(!read_to_end(&mut stream).await.starts_with(b"HTTP/"));
    assert_eq!(began.elapsed(), Duration::ZERO);
}
