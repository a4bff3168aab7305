//! What answers the requests of a listener: one object-safe trait and one type of body, so that connections are compiled
//! once for all interfaces.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::sync::Notify;

use super::client_address::Peer;
use super::deadline::{Ongoing, Pulse};
use crate::metrics::Traffic;

/// A request as it comes through a listener.
pub type IncomingRequest = Request<Incoming>;

/// A response that has to wait for something.
pub type ResponseFuture<'a> = Pin<Box<dyn Future<Output = Response<ResponseBody>> + Send + 'a>>;

/// Whatever answers the requests that come through a listener.
pub trait Respond: Send + Sync + 'static {
    /// The response to a request, if it can be given without waiting; `None` leaves it to [`Respond::respond`].
    fn respond_at_once(&self, _: &IncomingRequest, _: &Peer) -> Option<Response<ResponseBody>> {
        None
    }

    fn respond<'a>(&'a self, request: IncomingRequest, peer: &'a Peer) -> ResponseFuture<'a>;

    /// Whether a response shows that the client holds a valid key. Its connection may then send longer heads.
    fn is_authenticated(&self, _: &Response<ResponseBody>) -> bool {
        false
    }

    /// Where its connections are counted.
    fn traffic(&self) -> &Arc<Traffic>;
}

/// Closes the connection of a request: an extension of requests that are answered with a wait.
#[derive(Clone, Debug)]
pub(crate) struct AbortConnection(Arc<Notify>);

impl AbortConnection {
    pub(super) fn new(abort: &Arc<Notify>) -> Self {
        AbortConnection(Arc::clone(abort))
    }

    pub(crate) fn get(&self) -> Arc<Notify> {
        Arc::clone(&self.0)
    }
}

/// The body of a response. Most are whole, which costs no allocation.
#[derive(Debug)]
pub enum ResponseBody {
    Whole(Bytes),
    Stream(StreamedBody),
}

/// A body that comes in parts.
#[derive(Debug)]
pub struct StreamedBody {
    body: UnsyncBoxBody<Bytes, io::Error>,
    /// Keeps its connection in use, if it has one.
    ongoing: Option<Ongoing>,
}

impl ResponseBody {
    pub fn stream(body: impl Body<Data = Bytes, Error = io::Error> + Send + 'static) -> Self {
        ResponseBody::Stream(StreamedBody { body: body.boxed_unsync(), ongoing: None })
    }

    /// A body that goes on keeps its connection in use until it ends.
    pub(super) fn keep_in_use(&mut self, pulse: &Arc<Pulse>) {
        if let ResponseBody::Stream(streamed) = self {
            streamed.ongoing = Some(Ongoing::new(pulse));
        }
    }
}

impl Default for ResponseBody {
    fn default() -> Self {
        ResponseBody::Whole(Bytes::new())
    }
}

impl<T: Into<Bytes>> From<T> for ResponseBody {
    fn from(bytes: T) -> Self {
        ResponseBody::Whole(bytes.into())
    }
}

impl Body for ResponseBody {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, io::Error>>> {
        match self.get_mut() {
            ResponseBody::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            ResponseBody::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            ResponseBody::Stream(streamed) => Pin::new(&mut streamed.body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            ResponseBody::Whole(bytes) => bytes.is_empty(),
            ResponseBody::Stream(streamed) => streamed.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            ResponseBody::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            ResponseBody::Stream(streamed) => streamed.body.size_hint(),
        }
    }
}
