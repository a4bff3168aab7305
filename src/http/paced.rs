//! HTTP/1.1 for another door than the public one, under the same deadlines and bounds.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};

use super::connection::{http1_builder, note_end};
use super::deadline::{Deadlines, Pulse, watch};
use super::stream::PulsedStream;

/// Serves a connection until its client leaves, it stands still, or `stop` is ready; then what has begun is finished.
pub(crate) async fn serve<S, R>(
    stream: S,
    deadlines: Deadlines,
    respond: impl Fn(Request<Incoming>) -> R,
    stop: impl Future<Output = ()>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    R: Future<Output = Response<Full<Bytes>>>,
{
    let pulse = Arc::new(Pulse::default());
    let io = TokioIo::new(PulsedStream::new(stream, Bytes::new(), Arc::clone(&pulse), true));
    let service = service_fn(|request| {
        let answered = respond(request);
        let pulse = Arc::clone(&pulse);
        async move {
            let _in_flight = pulse.request();
            Ok::<_, Infallible>(answered.await)
        }
    });
    let mut connection = pin!(http1_builder().serve_connection(io, service));
    let mut watch = pin!(watch(&pulse, &deadlines));
    tokio::select! {
        biased;
        ended = connection.as_mut() => return note_end(ended),
        () = watch.as_mut() => return,
        () = stop => connection.as_mut().graceful_shutdown(),
    }
    tokio::select! {
        biased;
        ended = connection.as_mut() => note_end(ended),
        () = watch.as_mut() => {}
    }
}
