//! What the answer to a request depends on, apart from its route.

use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Request};

/// A request without its body.
#[derive(Clone, Copy, Debug)]
pub(super) struct Asked<'r> {
    pub method: &'r Method,
    /// Path and query, as they were sent.
    pub target: &'r str,
    pub path: &'r str,
    pub query: Option<&'r str>,
    pub headers: &'r HeaderMap,
    pub is_head: bool,
}

impl<'r> Asked<'r> {
    pub(super) fn of<B>(request: &'r Request<B>) -> Self {
        let (method, uri) = (request.method(), request.uri());
        Asked {
            method,
            target: uri.path_and_query().map_or("", PathAndQuery::as_str),
            path: uri.path(),
            query: uri.query(),
            headers: request.headers(),
            is_head: method == Method::HEAD,
        }
    }

    /// Whether the method only reads.
    pub(super) fn is_read(&self) -> bool {
        self.is_head || self.method == Method::GET
    }
}
