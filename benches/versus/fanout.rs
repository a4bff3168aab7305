//! The programs of `fanout.py`: bare hyper handing out shared bytes to everybody who is connected, the subscribers of
//! every server that is compared, and clients of Get Odds beside them.
//!
//! - `fanout serve ADDRESS`: whoever sends `GET /` gets every body that is posted from then on.
//! - `fanout subscribe ADDRESS COUNT TARGET MARK [HEADER...]`: so many connections, which count what has the mark in it.
//!   Writes a line of JSON when all are connected, and one when all have got their first, second, ... of them.
//! - `fanout read ADDRESS CONNECTIONS SECONDS TARGET [HEADER...]`: so many connections, each of which sends its next request
//!   when it has the answer to the last. Writes a line of JSON with how long answers took.
#![allow(clippy::expect_used, clippy::print_stdout, reason = "a program of the benchmarks may stop and speaks to them")]

use std::cell::RefCell;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Either, Full};
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use memchr::memmem::Finder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::{JoinHandle, LocalSet};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// So many connections are opened at a time.
const OPENING_MAX: usize = 64;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match &arguments[..] {
        ["serve", address] => {
            let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
            runtime.block_on(serve(address));
        }
        ["subscribe", address, count, target, mark, headers @ ..] => {
            let request = format!("GET {target} HTTP/1.1\r\nhost: versus\r\n{}\r\n", headers.concat());
            let count = count.parse().expect("a number of connections");
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            LocalSet::new().block_on(&runtime, subscribe((*address).to_owned(), count, request, mark));
        }
        ["read", address, connections, seconds, target, headers @ ..] => {
            let request = format!("GET {target} HTTP/1.1\r\nhost: versus\r\n{}\r\n", headers.concat());
            let connections = connections.parse().expect("a number of connections");
            let until = Instant::now() + Duration::from_secs(seconds.parse().expect("a number of seconds"));
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            LocalSet::new().block_on(&runtime, read((*address).to_owned(), connections, request, until));
        }
        // `cargo bench` runs every benchmark: this one is for benches/versus/fanout.py.
        _ => println!(
            "usage: fanout serve ADDRESS | fanout subscribe ADDRESS COUNT TARGET MARK [HEADER...] |\
             fanout read ADDRESS CONNECTIONS SECONDS TARGET [HEADER...]"
        ),
    }
}

/// What one connection gets next, and whom to wake for it.
type Waiting = Mutex<(VecDeque<Bytes>, Option<Waker>)>;

/// A body that goes on for ever.
struct Followed(Arc<Waiting>);

impl Body for Followed {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let mut waiting = self.0.lock().expect("a lock");
        if let Some(bytes) = waiting.0.pop_front() {
            return Poll::Ready(Some(Ok(Frame::data(bytes))));
        }
        waiting.1 = Some(task.waker().clone());
        Poll::Pending
    }
}

async fn serve(address: &str) {
    let listener = TcpListener::bind(address).await.expect("an address to listen on");
    let everybody: Arc<Mutex<Vec<Arc<Waiting>>>> = Arc::default();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        let _ = stream.set_nodelay(true);
        let everybody = Arc::clone(&everybody);
        tokio::spawn(async move {
            let service = service_fn(|request| answer(request, Arc::clone(&everybody)));
            let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

async fn answer(
    request: Request<Incoming>,
    everybody: Arc<Mutex<Vec<Arc<Waiting>>>>,
) -> Result<Response<Either<Full<Bytes>, Followed>>, hyper::Error> {
    if request.method() == Method::POST {
        let bytes = request.into_body().collect().await?.to_bytes();
        for waiting in everybody.lock().expect("a lock").iter() {
            let mut waiting = waiting.lock().expect("a lock");
            waiting.0.push_back(bytes.clone());
            if let Some(waker) = waiting.1.take() {
                waker.wake();
            }
        }
        return Ok(Response::new(Either::Left(Full::default())));
    }
    let waiting = Arc::<Waiting>::default();
    everybody.lock().expect("a lock").push(Arc::clone(&waiting));
    let response = Response::builder().header("content-type", "text/event-stream");
    Ok(response.body(Either::Right(Followed(waiting))).expect("a response"))
}

/// How far the subscribers are.
struct Tally {
    count: usize,
    connected: usize,
    /// Of each marked event: how many have got it, and when the first and the last did.
    arrived: Vec<(usize, u128, u128)>,
}

impl Tally {
    fn connect(&mut self) {
        self.connected += 1;
        if self.connected == self.count {
            println!("{{\"connected\":{}}}", self.count);
        }
    }

    fn arrive(&mut self, number: usize) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_micros();
        if self.arrived.len() == number {
            self.arrived.push((0, now, now));
        }
        let (count, first, last) = &mut self.arrived[number];
        *count += 1;
        *last = now;
        if *count == self.count {
            println!("{{\"number\":{number},\"first_micros\":{first},\"last_micros\":{last}}}");
        }
    }
}

async fn subscribe(address: String, count: usize, request: String, mark: &str) {
    let tally = Rc::new(RefCell::new(Tally { count, connected: 0, arrived: Vec::new() }));
    let buffer = Rc::new(RefCell::new(vec![0; 64 << 10]));
    let (opening, finder) = (Rc::new(Semaphore::new(OPENING_MAX)), Rc::new(Finder::new(mark).into_owned()));
    let (address, request): (Rc<str>, Rc<str>) = (address.into(), request.into());
    let mut connections: Vec<JoinHandle<()>> = Vec::with_capacity(count);
    for _ in 0..count {
        let (tally, buffer, finder) = (Rc::clone(&tally), Rc::clone(&buffer), Rc::clone(&finder));
        let (opening, address, request) = (Rc::clone(&opening), Rc::clone(&address), Rc::clone(&request));
        connections.push(tokio::task::spawn_local(async move {
            let permit = opening.acquire().await.expect("a permit");
            let (connection, rest) = open(&address, &request).await.expect("a connection");
            drop(permit);
            tally.borrow_mut().connect();
            let ended = follow(connection, rest, (&finder, &tally, &buffer)).await;
            panic!("a stream ended: {ended:?}");
        }));
    }
    for connection in connections {
        connection.await.expect("a connection");
    }
}

/// A connection whose head was read, and what came after the head.
async fn open(address: &str, request: &str) -> io::Result<(TcpStream, Vec<u8>)> {
    let mut connection = TcpStream::connect(address).await?;
    let mut read = Vec::new();
    let end = exchange(&mut connection, request, &mut read).await?;
    Ok((connection, read.split_off(end)))
}

/// Sends a request and reads the head of its answer. Returns where the head ends.
async fn exchange(connection: &mut TcpStream, request: &str, read: &mut Vec<u8>) -> io::Result<usize> {
    connection.write_all(request.as_bytes()).await?;
    loop {
        if let Some(end) = memchr::memmem::find(read, b"\r\n\r\n") {
            assert!(read.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(read));
            return Ok(end + 4);
        }
        if connection.read_buf(read).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

async fn follow(
    connection: TcpStream,
    mut last: Vec<u8>,
    (finder, tally, buffer): (&Finder<'_>, &RefCell<Tally>, &RefCell<Vec<u8>>),
) -> io::Result<()> {
    let mut number = 0;
    let mut find = |last: &mut Vec<u8>| {
        for _ in finder.find_iter(last) {
            tally.borrow_mut().arrive(number);
            number += 1;
        }
        // A mark may begin in one read and end in the next.
        last.drain(..last.len().saturating_sub(finder.needle().len() - 1));
    };
    find(&mut last);
    loop {
        connection.readable().await?;
        let mut buffer = buffer.borrow_mut();
        match connection.try_read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => {
                last.extend_from_slice(&buffer[..count]);
                find(&mut last);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Sends the same request again and again until a time.
async fn read(address: String, connections: usize, request: String, until: Instant) {
    let (address, request): (Rc<str>, Rc<str>) = (address.into(), request.into());
    let mut running = Vec::new();
    for _ in 0..connections {
        let (address, request) = (Rc::clone(&address), Rc::clone(&request));
        running.push(tokio::task::spawn_local(async move {
            let mut connection = TcpStream::connect(&*address).await.expect("a connection");
            let (mut took, mut answer) = (Vec::new(), Vec::new());
            loop {
                let began = Instant::now();
                if began > until {
                    return took;
                }
                answer.clear();
                let head = exchange(&mut connection, &request, &mut answer).await.expect("an answer");
                let length = content_length(&answer[..head]);
                while answer.len() < head + length {
                    assert_ne!(connection.read_buf(&mut answer).await.expect("an answer"), 0, "an answer broke off");
                }
                took.push(began.elapsed());
            }
        }));
    }
    let mut took: Vec<Duration> = Vec::new();
    for connection in running {
        took.extend(connection.await.expect("a connection"));
    }
    took.sort_unstable();
    let at = |percent: usize| took[(took.len() - 1) * percent / 100].as_micros();
    println!("{{\"requests\":{},\"p50\":{},\"p99\":{},\"max\":{}}}", took.len(), at(50), at(99), at(100));
}

fn content_length(head: &[u8]) -> usize {
    let head = String::from_utf8_lossy(head).to_ascii_lowercase();
    let value = head.lines().find_map(|line| line.strip_prefix("content-length: ")).expect("a length");
    value.parse().expect("a number of bytes")
}
