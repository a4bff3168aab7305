//! What answers the requests of a listener.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response};
use hyper::body::Incoming;

use super::client_address::Peer;
use crate::metrics::Traffic;

/// A request as it comes through a listener.
pub type IncomingRequest = Request<Incoming>;

/// Whatever answers the requests that come through a listener.
pub trait Respond: Send + Sync + 'static {
    type Body: hyper::body::Body<Data = Bytes, Error: std::error::Error + Send + Sync> + Send + 'static;

    /// The answer to a request, if it can be given without waiting; `None` leaves it to [`Respond::respond`].
    fn respond_at_once(&self, _: &IncomingRequest, _: &Peer) -> Option<Response<Self::Body>> {
        None
    }

    fn respond(&self, request: IncomingRequest, peer: &Peer) -> impl Future<Output = Response<Self::Body>> + Send;

    /// Whether a response shows that the client holds a valid key. Its connection may then send longer heads.
    fn is_authenticated(&self, _: &Response<Self::Body>) -> bool {
        false
    }

    /// Where its connections are counted.
    fn traffic(&self) -> &Arc<Traffic>;
}
