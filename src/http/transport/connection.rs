//! One connection: which protocol it speaks, and speaking it until it ends.
//!
//! 1. The protocol is recognised by the first bytes; under TLS, the handshake agrees on it. Both have the time that a
//!    head has.
//! 2. Requests are served until the client leaves, the pulse stands still or the service stops.
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
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tracing::Level;

use super::client_address::Peer;
use super::deadline::{Deadlines, Pulse, watch};
use super::frames::PREFACE;
use super::heads::{HEAD_BYTES_MAX, Heads};
use super::respond::{IncomingRequest, Respond};
use super::shutdown::Phases;
use super::stream::PulsedStream;
use super::wake_filter::WakeFilter;
use crate::log::{LineKind, limited};
use crate::tls::{self, Acceptor, TlsStream};

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

/// The bounds of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bounds {
    pub deadlines: Deadlines,
    pub heads: Arc<Heads>,
}

/// What a connection can be told while it serves.
enum Summons {
    Leave,
    Drain,
}

/// Serves a connection in plain text until it ends.
pub(crate) async fn run<S>(mut stream: S, peer: Peer, service: Arc<impl Respond>, bounds: Bounds, mut phases: Phases)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let recognised = tokio::select! {
        recognised = tokio::time::timeout(bounds.deadlines.head, recognise(&mut stream)) => recognised,
        () = phases.draining() => return,
    };
    // A connection that says nothing, or not enough, is closed without a word, as one that ends is.
    if let Ok(Ok((protocol, ahead))) = recognised {
        serve(stream, ahead, protocol, peer, service, bounds, phases).await;
    }
}

/// Serves a connection under TLS until it ends.
pub(crate) async fn run_tls<S>(
    stream: S,
    peer: Peer,
    acceptor: &Acceptor,
    service: Arc<impl Respond>,
    bounds: Bounds,
    mut phases: Phases,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let begun = tokio::select! {
        begun = begin(stream, &peer, acceptor, &*service, bounds.deadlines.head) => begun,
        () = phases.draining() => return,
    };
    if let Some((stream, ahead)) = begun {
        let protocol = if tls::agreed_on_h2(&stream) { Protocol::Http2 } else { Protocol::Http1 };
        serve(stream, ahead, protocol, peer, service, bounds, phases).await;
    }
}

/// Shakes hands and reads the first bytes, as a connection in plain text has to bring some too.
async fn begin<S>(
    stream: S,
    peer: &Peer,
    acceptor: &Acceptor,
    service: &impl Respond,
    within: Duration,
) -> Option<(TlsStream<S>, Bytes)>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let deadline = tokio::time::Instant::now() + within;
    let accepted = tokio::time::timeout_at(deadline, acceptor.accept(stream)).await;
    let mut stream = match accepted.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into())) {
        Ok(stream) => stream,
        // Whoever only looks whether the door is there leaves without a word.
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return None,
        Err(error) => {
            service.traffic().count_failed_handshake();
            // Anyone can cause this, so it is of interest only while debugging.
            limited!(LineKind::TlsHandshake, Level::DEBUG, peer = %peer.address(), %error, "TLS handshake failed");
            return None;
        }
    };
    let mut ahead = BytesMut::with_capacity(1024);
    let read = tokio::time::timeout_at(deadline, stream.read_buf(&mut ahead)).await;
    matches!(read, Ok(Ok(1..))).then(|| (stream, ahead.freeze()))
}

/// Reads until the first bytes tell the protocols apart.
async fn recognise(stream: &mut (impl AsyncRead + Unpin)) -> io::Result<(Protocol, Bytes)> {
    let mut ahead = BytesMut::with_capacity(1024);
    loop {
        let compared = ahead.len().min(PREFACE.len());
        if ahead[..compared] != PREFACE[..compared] {
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
async fn serve<S>(
    stream: S,
    ahead: Bytes,
    protocol: Protocol,
    peer: Peer,
    service: Arc<impl Respond>,
    bounds: Bounds,
    mut phases: Phases,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let Bounds { deadlines, heads } = bounds;
    let pulse = Arc::new(Pulse::new(heads));
    let stream = PulsedStream::new(stream, ahead, Arc::clone(&pulse), protocol);
    let (address, progress) = (peer.address(), Arc::clone(&pulse));
    let respond = service_fn(move |request: IncomingRequest| {
        let answer = if let Some(response) = service.respond_at_once(&request, &peer) {
            progress.has_answered();
            recognise_client(&*service, &progress, &response);
            Ok(response)
        } else {
            // Boxed: most requests need not wait, and should not pay for the size of this future.
            Err(Box::pin(respond_in_time(Arc::clone(&service), peer.clone(), Arc::clone(&progress), request)))
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
                let summons = pin!(async {
                    tokio::select! {
                        () = watch.as_mut() => Summons::Leave,
                        () = phases.draining() => Summons::Drain,
                    }
                });
                tokio::select! {
                    biased;
                    ended = connection.as_mut() => return note_end(address, ended),
                    summons = WakeFilter::new(summons) => match summons {
                        Summons::Leave => return,
                        Summons::Drain => connection.as_mut().graceful_shutdown(),
                    },
                }
            }
            tokio::select! {
                biased;
                ended = connection.as_mut() => note_end(address, ended),
                () = watch.as_mut() => {}
                () = phases.closed() => {}
            }
        }};
    }
    match protocol {
        Protocol::Http1 => drive!(http1_builder().serve_connection(TokioIo::new(stream), respond)),
        Protocol::Http2 => drive!(http2_builder().serve_connection(TokioIo::new(stream), respond)),
    }
}

/// Answers a request that has to wait for something.
async fn respond_in_time<R: Respond>(
    service: Arc<R>,
    peer: Peer,
    pulse: Arc<Pulse>,
    request: IncomingRequest,
) -> Response<R::Body> {
    let _in_flight = pulse.request();
    let response = service.respond(request, &peer).await;
    recognise_client(&*service, &pulse, &response);
    response
}

/// Notes the first response to a valid key.
fn recognise_client<R: Respond>(service: &R, pulse: &Pulse, response: &Response<R::Body>) {
    if !pulse.head.is_known() && service.is_authenticated(response) {
        pulse.head.set_known();
    }
}

fn http1_builder() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        // Our own deadline for heads does not run while the connection rests; the library's would.
        .header_read_timeout(None)
        // The bound on the number of headers stays at its hundred: any other number costs each request two allocations.
        .max_header_size(HEAD_BYTES_MAX)
        .pipeline_flush(false);
    builder
}

fn http2_builder() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX))
        .max_pending_accept_reset_streams(RESETS_MAX)
        .max_local_error_reset_streams(RESETS_MAX)
        .keep_alive_interval(PING_EVERY)
        .keep_alive_timeout(PING_TIMEOUT);
    builder
}

/// Clients break connections off all the time, so it is of interest only while debugging.
fn note_end(peer: IpAddr, ended: hyper::Result<()>) {
    if let Err(error) = ended {
        limited!(LineKind::Connection, Level::DEBUG, %peer, %error, "connection broke off");
    }
}
