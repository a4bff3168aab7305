//! One connection: which protocol it speaks, and speaking it until it ends.
//!
//! 1. The protocol is recognised by the first bytes; under TLS, the handshake agrees on it. Both are under the deadline for
//!    heads.
//! 2. Requests are served until the client leaves, a deadline passes or the service stops.
//! 3. When the service drains, the connection finishes what it has begun; when it closes, it is dropped.

use std::convert::Infallible;
use std::io;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::Response;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::AsyncReadExt;
use tracing::Level;

use super::client_address::Peer;
use super::deadline::{Deadlines, Pulse, watch};
use super::frames::PREFACE;
use super::heads::{HEAD_BYTES_MAX, Heads};
use super::respond::{AbortConnection, IncomingRequest, Respond, ResponseBody};
use super::shutdown::Phases;
use super::stream::{BoxedStream, PulsedStream};
use super::wake_filter::WakeFilter;
use crate::log::{LineKind, limited};
use crate::tls::{self, Acceptor};

const STREAMS_MAX: u32 = 64;
/// A client that opens streams only to reset them is dropped after this many.
const RESETS_MAX: usize = 20;
const PING_EVERY: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Http1,
    Http2,
}

/// The bounds of a connection, and how HTTP is served on it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConnectionBounds {
    pub deadlines: Deadlines,
    pub heads: Arc<Heads>,
    pub http: HttpOptions,
}

/// How HTTP is served on the connections of an interface.
#[derive(Clone, Copy, Debug)]
pub struct HttpOptions {
    pub http2: bool,
    /// Whether a connection serves more than one request.
    pub keep_alive: bool,
    /// The HTTP library's bound on a head, which it enforces without a body in our shape.
    pub head_bytes_max: usize,
}

impl Default for HttpOptions {
    fn default() -> Self {
        HttpOptions { http2: true, keep_alive: true, head_bytes_max: HEAD_BYTES_MAX }
    }
}

/// What a connection can be asked to do while it serves.
enum Signal {
    Close,
    Drain,
}

/// What answers the requests of one connection, and who sends them.
pub(crate) struct Handler {
    pub peer: Peer,
    pub service: Arc<dyn Respond>,
}

/// Serves a connection until it ends.
pub(crate) async fn run(
    stream: BoxedStream,
    tls: Option<Arc<Acceptor>>,
    handler: Handler,
    bounds: ConnectionBounds,
    mut phases: Phases,
) {
    let within = bounds.deadlines.head;
    let begun = tokio::select! {
        begun = async {
            match tls {
                None => begin(stream, within, bounds.http.http2).await,
                Some(acceptor) => begin_tls(stream, &acceptor, &handler, within).await,
            }
        } => begun,
        () = phases.draining() => return,
    };
    // A connection that sends nothing, or not enough, is closed without a response, as one that ends is.
    if let Some(begun) = begun {
        serve(begun, handler, bounds, phases).await;
    }
}

/// A connection whose protocol is known.
struct Begun {
    stream: BoxedStream,
    /// What was read to recognise the protocol.
    ahead: Bytes,
    protocol: Protocol,
}

async fn begin(mut stream: BoxedStream, within: Duration, http2: bool) -> Option<Begun> {
    let recognised = tokio::time::timeout(within, recognise(&mut stream, http2)).await;
    let (protocol, ahead) = recognised.ok()?.ok()?;
    Some(Begun { stream, ahead, protocol })
}

/// Completes the handshake and reads the first bytes, which a connection in plain text must send too.
async fn begin_tls(stream: BoxedStream, acceptor: &Acceptor, handler: &Handler, within: Duration) -> Option<Begun> {
    let deadline = tokio::time::Instant::now() + within;
    let accepted = tokio::time::timeout_at(deadline, acceptor.accept(stream)).await;
    let mut stream = match accepted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(stream) => stream,
        // A port scan or a health check connects and leaves.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return None,
        Err(error) => {
            handler.service.traffic().count_failed_handshake();
            let peer = handler.peer.address();
            // Anyone can cause this, so it is of interest only while debugging.
            limited!(LineKind::TlsHandshake, Level::DEBUG, %peer, %error, "TLS handshake failed");
            return None;
        }
    };
    let mut ahead = BytesMut::with_capacity(1024);
    let read = tokio::time::timeout_at(deadline, stream.read_buf(&mut ahead)).await;
    let protocol = if tls::negotiated_h2(&stream) { Protocol::Http2 } else { Protocol::Http1 };
    matches!(read, Ok(Ok(1..))).then(|| Begun { stream: Box::new(stream), ahead: ahead.freeze(), protocol })
}

/// Reads until the first bytes tell the protocols apart.
async fn recognise(stream: &mut BoxedStream, http2: bool) -> io::Result<(Protocol, Bytes)> {
    let mut ahead = BytesMut::with_capacity(1024);
    loop {
        let compared = ahead.len().min(PREFACE.len());
        if ahead[..compared] != PREFACE[..compared] || (!http2 && compared > 0) {
            return Ok((Protocol::Http1, ahead.freeze()));
        }
        if compared == PREFACE.len() {
            return Ok((Protocol::Http2, ahead.freeze()));
        }
        if stream.read_buf(&mut ahead).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
    }
}

/// Serves a connection whose protocol is known.
async fn serve(begun: Begun, handler: Handler, bounds: ConnectionBounds, mut phases: Phases) {
    let Begun { stream, ahead, protocol } = begun;
    let ConnectionBounds { deadlines, heads, http } = bounds;
    let pulse = Arc::new(Pulse::new(heads));
    let stream = TokioIo::new(PulsedStream::new(stream, ahead, Arc::clone(&pulse), protocol));
    let (address, progress, handler) = (handler.peer.address(), Arc::clone(&pulse), Arc::new(handler));
    let respond = service_fn(move |request: IncomingRequest| {
        let answer = if let Some(response) = handler.service.respond_at_once(&request, &handler.peer) {
            progress.has_answered();
            recognise_client(&handler, &progress, &response);
            Ok(response)
        } else {
            // Boxed: most requests need not wait, and should not pay for the size of this future.
            Err(Box::pin(respond_in_time(Arc::clone(&handler), Arc::clone(&progress), request)))
        };
        async move {
            Ok::<_, Infallible>(match answer {
                Ok(response) => response,
                Err(waiting) => waiting.await,
            })
        }
    });
    // The two connections have no type in common, only the same two calls.
    macro_rules! drive {
        ($connection:expr) => {{
            let mut connection = pin!($connection);
            let mut watch = pin!(watch(&pulse, &deadlines, address));
            {
                let signal = pin!(async {
                    tokio::select! {
                        () = watch.as_mut() => Signal::Close,
                        () = pulse.abort.notified() => Signal::Close,
                        () = phases.draining() => Signal::Drain,
                    }
                });
                tokio::select! {
                    biased;
                    ended = connection.as_mut() => return note_end(address, ended),
                    signal = WakeFilter::new(signal) => match signal {
                        Signal::Close => return,
                        Signal::Drain => connection.as_mut().graceful_shutdown(),
                    },
                }
            }
            tokio::select! {
                biased;
                ended = connection.as_mut() => note_end(address, ended),
                () = watch.as_mut() => {}
                () = pulse.abort.notified() => {}
                () = phases.closed() => {}
            }
        }};
    }
    match protocol {
        Protocol::Http1 => drive!(http1_builder(http).serve_connection(stream, respond)),
        Protocol::Http2 => drive!(http2_builder(http).serve_connection(stream, respond)),
    }
}

/// Answers a request that has to wait for something.
async fn respond_in_time(
    handler: Arc<Handler>,
    pulse: Arc<Pulse>,
    mut request: IncomingRequest,
) -> Response<ResponseBody> {
    let _in_flight = pulse.request();
    request.extensions_mut().insert(AbortConnection::new(&pulse.abort));
    let mut response = handler.service.respond(request, &handler.peer).await;
    response.body_mut().keep_in_use(&pulse);
    recognise_client(&handler, &pulse, &response);
    response
}

/// Notes the first response to a valid key.
fn recognise_client(handler: &Handler, pulse: &Pulse, response: &Response<ResponseBody>) {
    if !pulse.head.is_known() && handler.service.is_authenticated(response) {
        pulse.head.set_known();
    }
}

fn http1_builder(http: HttpOptions) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .keep_alive(http.keep_alive)
        // Our own deadline for heads does not run while the connection is idle; the library's would.
        .header_read_timeout(None)
        // The bound on the number of headers stays at its hundred: any other number costs each request two allocations.
        .max_header_size(http.head_bytes_max)
        .pipeline_flush(false);
    builder
}

fn http2_builder(http: HttpOptions) -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(http.head_bytes_max).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(RESETS_MAX)
        .max_local_error_reset_streams(RESETS_MAX)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT);
    builder
}

/// Clients reset connections all the time, so it is of interest only while debugging.
fn note_end(peer: IpAddr, ended: hyper::Result<()>) {
    if let Err(error) = ended {
        limited!(LineKind::Connection, Level::DEBUG, %peer, %error, "connection broke off");
    }
}
