//! Whose turn it is on a connection: ours, or the HTTP library's.
//!
//! The stream and the service stand on either side of the library and share a [`Turn`]. The library rests when it was
//! given one head without a body, nothing else, and has sent the whole of the one answer to it: then no byte of the
//! connection is in its hands. Any other course of things ends our turns for good.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

use http::header::{CONNECTION, EXPECT, UPGRADE};
use http::{HeaderMap, HeaderName, HeaderValue, Request, Uri, Version};
use hyper::body::Body;

use crate::http::service::IncomingRequest;

/// What the library is doing, as far as is known.
const RESTS: u8 = 0;
/// It has one head.
const READS: u8 = 1;
/// It has one head, which came before.
const READS_AGAIN: u8 = 2;
/// It has the answer, and sends it.
const SENDS: u8 = 3;
/// It may hold anything.
const UNKNOWN: u8 = 4;

#[derive(Debug, Default)]
pub(in crate::http) struct Turn {
    doing: AtomicU8,
    /// What the library made of a head that came before.
    read: Mutex<Option<Box<Request<()>>>>,
}

impl Turn {
    fn is(&self, doing: u8) -> bool {
        // One task drives both sides of a connection, so nothing else has to be in order.
        self.doing.load(Ordering::Relaxed) == doing
    }

    fn set(&self, doing: u8) {
        self.doing.store(doing, Ordering::Relaxed);
    }

    pub(super) fn is_resting(&self) -> bool {
        self.is(RESTS)
    }

    pub(super) fn is_over(&self) -> bool {
        self.is(UNKNOWN)
    }

    pub(super) fn has_answered(&self) -> bool {
        self.is(SENDS)
    }

    /// The library, which rests, gets one head.
    pub(super) fn give(&self, is_again: bool) {
        self.set(if is_again { READS_AGAIN } else { READS });
    }

    pub(super) fn end(&self) {
        self.set(UNKNOWN);
    }

    /// The service has answered at once a request that the library led to it. What it gives at once is whole, so the
    /// library has all of the answer to send. A service that streams answers late, and nothing is remembered of it.
    pub(in crate::http) fn answered(&self, request: &IncomingRequest) {
        if self.is(READS_AGAIN) {
            *self.read.lock().unwrap_or_else(PoisonError::into_inner) = remembered(request).map(Box::new);
        }
        self.answered_late(has_body(request));
    }

    /// The same, of a request that had to wait.
    pub(in crate::http) fn answered_late(&self, had_body: bool) {
        let is_one = self.is(READS) || self.is(READS_AGAIN);
        self.set(if is_one && !had_body { SENDS } else { UNKNOWN });
    }

    /// The library has sent the answer: it rests, and here is what it read if that is worth remembering.
    pub(super) fn rest(&self) -> Option<Box<Request<()>>> {
        self.set(RESTS);
        self.read.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Whether more of the request may follow its head.
pub(in crate::http) fn has_body(request: &IncomingRequest) -> bool {
    !request.body().is_end_stream()
}

/// Whether these bytes are one head of a request that reads, the whole of it and nothing else.
pub(super) fn is_one_head(bytes: &[u8]) -> bool {
    let Some(lines) = bytes.strip_suffix(b"\r\n\r\n") else { return false };
    let mut lines = lines.split(|byte| *byte == b'\n');
    // The last line has lost its end with the suffix.
    let last = lines.next_back();
    let is_line = |line: &[u8]| line.len() > 1 && line.ends_with(b"\r");
    bytes.starts_with(b"GET ") && last.is_some_and(|line| !line.is_empty()) && lines.all(is_line)
}

/// A copy of a request to answer it by, unless more than its answer depends on it.
fn remembered<B>(request: &Request<B>) -> Option<Request<()>> {
    let headers = request.headers();
    let is_plain = |name: &HeaderName| *name != EXPECT && *name != UPGRADE;
    let keeps_alive =
        headers.get_all(CONNECTION).iter().all(|value| value.as_bytes().eq_ignore_ascii_case(b"keep-alive"));
    if request.version() != Version::HTTP_11 || !keeps_alive || !headers.keys().all(is_plain) {
        return None;
    }
    // Its values share the library's buffer, which would be held for as long as they are.
    let mut copied = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        copied.append(name.clone(), HeaderValue::from_bytes(value.as_bytes()).ok()?);
    }
    let mut copy = Request::new(());
    *copy.method_mut() = request.method().clone();
    *copy.uri_mut() = Uri::try_from(request.uri().to_string()).ok()?;
    *copy.headers_mut() = copied;
    Some(copy)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_head_is_told_from_more_and_from_less() {
        let is_one = |text: &str| is_one_head(text.as_bytes());
        assert!(is_one("GET / HTTP/1.1\r\n\r\n"));
        assert!(is_one("GET / HTTP/1.1\r\nHost: a\r\nX: \r\n\r\n"));
        for text in [
            "",
            "\r\n\r\n",
            "GET / HTTP/1.1\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n",
            "GET / HTTP/1.1\n\n",
            "GET / HTTP/1.1\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\n\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\n\nGET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n",
            "\r\nGET / HTTP/1.1\r\n\r\n",
            "POST / HTTP/1.1\r\n\r\n",
        ] {
            assert!(!is_one(text), "{text:?}");
        }
    }
}
