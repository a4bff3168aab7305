//! Answers: status, headers and bytes.
//!
//! Building headers is most of what an answer costs, so every value that can be prepared is a constant here, and the
//! bodies bring their own validators and compressed forms.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::header::{
    ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, ETAG, RETRY_AFTER, VARY, WWW_AUTHENTICATE,
    X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};

use super::error::{ApiError, Code};
use super::request_headers::RequestParts;
use super::request_id::{RequestId, X_REQUEST_ID};
use super::response_headers::ContentHeaders;
use super::route::Version;
use super::usage::{self, UsageHeaders};
use super::{negotiate, values};
use crate::board::{Body, Encoding};
use crate::clock::Moment;
use crate::http::transport::ResponseBody;
use crate::model::{Permanence, Position, Timestamp};

const X_AS_OF: HeaderName = HeaderName::from_static("x-as-of");
const X_POSITION: HeaderName = HeaderName::from_static("x-position");
const DEPRECATION: HeaderName = HeaderName::from_static("deprecation");
/// 1 January 2026: since then the key in the query is deprecated.
const QUERY_KEY_DEPRECATED: HeaderValue = HeaderValue::from_static("@1767225600");

const JSON: HeaderValue = HeaderValue::from_static("application/json");
const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const X_ACCEL_BUFFERING: HeaderName = HeaderName::from_static("x-accel-buffering");
const NO: HeaderValue = HeaderValue::from_static("no");
const NO_STORE: HeaderValue = HeaderValue::from_static("no-store");
pub(crate) const VARY_ENCODING: HeaderValue = HeaderValue::from_static("accept-encoding");
const VARY_KEY: HeaderValue = HeaderValue::from_static("accept-encoding, x-api-key");
pub(crate) const NOSNIFF: HeaderValue = HeaderValue::from_static("nosniff");
const GZIP: HeaderValue = HeaderValue::from_static("gzip");
const ZSTD: HeaderValue = HeaderValue::from_static("zstd");
const ALLOWED: HeaderValue = HeaderValue::from_static("GET, HEAD");
const ALLOWED_POST: HeaderValue = HeaderValue::from_static("POST");
const CHALLENGE: HeaderValue = HeaderValue::from_static("ApiKey header=\"X-API-Key\"");

/// Room for every header that an answer to a valid key can have.
const HEADERS_EXPECTED: usize = 17;

/// How long a client may cache an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Freshness {
    /// Until prices are next published.
    UntilRefresh,
    /// Not at all without asking again.
    Revalidated,
    /// A page of the documentation: by anyone, for some minutes.
    Shared,
    /// For some minutes: history that was imported, and may be added to.
    Imported,
    /// For ever: history that nothing changes any more.
    Immutable,
}

impl Freshness {
    pub(crate) fn of_past(permanence: Permanence) -> Self {
        match permanence {
            Permanence::Current => Freshness::Revalidated,
            Permanence::Imported => Freshness::Imported,
            Permanence::Final => Freshness::Immutable,
        }
    }
}

/// What an endpoint answers with.
#[derive(Clone, Debug)]
pub(crate) struct Content {
    pub body: Arc<Body>,
    pub freshness: Freshness,
    /// Whether the body is compressed if the client accepts that: it outlives the request, or has been compressed already.
    pub is_kept: bool,
    pub media_type: HeaderValue,
    /// The link to the next page, if it was rendered already.
    pub link: Option<HeaderValue>,
    /// How many records, points or rows of history it has: more than 500 cost more.
    pub rows: usize,
    /// As of when it is, if not of now.
    pub as_of: Option<Timestamp>,
    /// The place in the log that it stands at.
    pub position: Option<HeaderValue>,
}

impl Content {
    /// A body of the board.
    pub(crate) fn kept(body: Arc<Body>, freshness: Freshness) -> Self {
        Content { body, freshness, is_kept: true, media_type: JSON, link: None, rows: 0, as_of: None, position: None }
    }

    /// A body that was rendered for this request, away from the threads that answer requests. It is compressed there too.
    pub(crate) fn prepared(body: Body, encoding: Encoding) -> Self {
        if body.is_worth_compressing() {
            body.bytes(encoding);
        }
        Content::kept(Arc::new(body), Freshness::Revalidated)
    }

    /// A body that was rendered for this request.
    pub(crate) fn once(json: Vec<u8>) -> Self {
        let body = Arc::new(Body::new(json, None));
        Content { is_kept: false, ..Content::kept(body, Freshness::Revalidated) }
    }
}

/// An answer that is being built.
pub(crate) struct Reply {
    pub status: StatusCode,
    headers: HeaderMap,
    body: Bytes,
}

/// Without the body, which may have a secret.
impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (status, bytes) = (self.status, self.body.len());
        f.debug_struct("Reply").field("status", &status).field("bytes", &bytes).finish_non_exhaustive()
    }
}

impl Reply {
    /// The content for a client with a key, or 304 if it has it. `refresh_ms` is the time between two publications of prices.
    pub(crate) fn content(
        request: &RequestParts<'_>,
        content: Content,
        request_id: &RequestId,
        (now, refresh_ms): (Moment, i64),
        usage: UsageHeaders,
    ) -> Self {
        let link = content.link.or_else(|| values::next_link(request, content.body.next()?));
        let chosen = Chosen::new(request, content.body, content.is_kept);
        let (status, body) = chosen.status_and_body();
        let (as_of, position) = (content.as_of.map(header_of), content.position);
        let headers = ContentHeaders {
            cache_control: cache_control(content.freshness, now, refresh_ms),
            request_id: request_id.clone(),
            link,
            content_type: (!chosen.is_current).then_some(content.media_type),
            usage,
            chosen,
        };
        let mut headers = headers.into_map();
        if let Some(as_of) = as_of {
            headers.insert(X_AS_OF, as_of);
        }
        if let Some(position) = position {
            headers.insert(X_POSITION, position);
        }
        if matches!(content.freshness, Freshness::Imported | Freshness::Immutable) {
            // A cache keeps it for long: keys of different worlds get different answers under the same URL.
            headers.insert(VARY, VARY_KEY);
        }
        Reply { status, headers, body }
    }

    /// The head of a stream. Proxies must pass on what comes as it comes.
    pub(crate) fn stream(request_id: &RequestId, usage: UsageHeaders) -> Self {
        let mut headers = HeaderMap::with_capacity(HEADERS_EXPECTED);
        headers.insert(CONTENT_TYPE, EVENT_STREAM);
        headers.insert(CACHE_CONTROL, NO_STORE);
        headers.insert(X_ACCEL_BUFFERING, NO);
        insert_always(&mut headers, request_id);
        usage.insert_into(&mut headers);
        Reply { status: StatusCode::OK, headers, body: Bytes::new() }
    }

    /// The answer to a POST, which nobody may keep. An empty one has no type.
    pub(crate) fn posted(status: StatusCode, json: Vec<u8>, request_id: &RequestId, usage: UsageHeaders) -> Self {
        let mut headers = HeaderMap::with_capacity(HEADERS_EXPECTED);
        if !json.is_empty() {
            headers.insert(CONTENT_TYPE, JSON);
        }
        headers.insert(CACHE_CONTROL, NO_STORE);
        insert_always(&mut headers, request_id);
        usage.insert_into(&mut headers);
        Reply { status, headers, body: json.into() }
    }

    /// A page that needs no key, or 304 if the client has it.
    pub(crate) fn page(
        request: &RequestParts<'_>,
        content: &Content,
        request_id: &RequestId,
        (now, refresh_ms): (Moment, i64),
    ) -> Self {
        let chosen = Chosen::new(request, Arc::clone(&content.body), content.is_kept);
        let mut headers = HeaderMap::with_capacity(HEADERS_EXPECTED);
        headers.insert(ETAG, chosen.etag());
        headers.insert(CACHE_CONTROL, cache_control(content.freshness, now, refresh_ms));
        headers.insert(VARY, VARY_ENCODING);
        if !chosen.is_current {
            headers.insert(CONTENT_TYPE, content.media_type.clone());
        }
        if let Some(encoding) = chosen.content_encoding() {
            headers.insert(CONTENT_ENCODING, encoding);
        }
        insert_always(&mut headers, request_id);
        let (status, body) = chosen.status_and_body();
        Reply { status, headers, body }
    }

    pub(crate) fn error(error: &ApiError, version: Version, request_id: &RequestId) -> Self {
        let status = error.status(version);
        let mut headers = HeaderMap::with_capacity(HEADERS_EXPECTED);
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(CACHE_CONTROL, NO_STORE);
        match status {
            StatusCode::UNAUTHORIZED => headers.insert(WWW_AUTHENTICATE, CHALLENGE),
            StatusCode::METHOD_NOT_ALLOWED if error.code == Code::PostOnly => headers.insert(ALLOW, ALLOWED_POST),
            StatusCode::METHOD_NOT_ALLOWED => headers.insert(ALLOW, ALLOWED),
            _ => None,
        };
        if let Some(seconds) = error.retry_after_s {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        insert_always(&mut headers, request_id);
        Reply { status, headers, body: error.to_json(version, request_id.as_str()).into() }
    }

    pub(crate) fn insert(&mut self, name: HeaderName, value: HeaderValue) {
        self.headers.insert(name, value);
    }

    pub(crate) fn insert_usage(&mut self, usage: UsageHeaders) {
        usage.insert_into(&mut self.headers);
    }

    /// What this request took of the quota, for clients that ask for it by name.
    pub(crate) fn insert_cost(&mut self, units: u64) {
        usage::insert_cost(&mut self.headers, units);
    }

    /// The key came in the query.
    pub(crate) fn insert_deprecation(&mut self) {
        self.insert(DEPRECATION, QUERY_KEY_DEPRECATED);
    }

    /// The answer to HEAD: all but the body.
    pub(crate) fn without_body(&mut self) {
        if self.status != StatusCode::NOT_MODIFIED {
            self.insert(CONTENT_LENGTH, self.body.len().into());
            self.body = Bytes::new();
        }
    }

    /// How many bytes of body it sends.
    pub(crate) fn len(&self) -> usize {
        self.body.len()
    }

    /// The answer for the HTTP library to send.
    pub(crate) fn into_response(self) -> Response<ResponseBody> {
        let mut response = Response::new(ResponseBody::Whole(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

/// The validator of a body in an encoding, as a header.
pub(crate) fn etag_of(body: &Body, encoding: Encoding) -> HeaderValue {
    // Hexadecimal digits in quotes are always a valid value.
    body.etag(encoding, |text| HeaderValue::try_from(text).unwrap_or(HeaderValue::from_static("\"\"")))
}

/// Which form of a body is sent, and whether it needs to be.
#[derive(Debug)]
pub(crate) struct Chosen {
    pub body: Arc<Body>,
    pub encoding: Encoding,
    /// The client has it.
    pub is_current: bool,
}

impl Chosen {
    fn new(request: &RequestParts<'_>, body: Arc<Body>, is_kept: bool) -> Self {
        let is_negotiated = is_kept && body.is_worth_compressing();
        let encoding = if is_negotiated { request.encoding() } else { Encoding::Identity };
        let is_current = negotiate::has_current(request.headers.if_none_match(), etag_of(&body, encoding).as_bytes());
        Chosen { body, encoding, is_current }
    }

    pub(crate) fn etag(&self) -> HeaderValue {
        etag_of(&self.body, self.encoding)
    }

    pub(crate) fn content_encoding(&self) -> Option<HeaderValue> {
        match self.encoding {
            _ if self.is_current => None,
            Encoding::Identity => None,
            Encoding::Gzip => Some(GZIP),
            Encoding::Zstd => Some(ZSTD),
        }
    }

    fn status_and_body(&self) -> (StatusCode, Bytes) {
        if self.is_current {
            (StatusCode::NOT_MODIFIED, Bytes::new())
        } else {
            (StatusCode::OK, self.body.bytes(self.encoding).clone())
        }
    }
}

/// Digits, letters and points are always a valid value.
pub(crate) fn position_header(position: Position) -> HeaderValue {
    HeaderValue::try_from(position.to_string()).unwrap_or(HeaderValue::from_static(""))
}

/// Digits and punctuation are always a valid value.
fn header_of(time: Timestamp) -> HeaderValue {
    HeaderValue::from_bytes(&time.iso()).unwrap_or(HeaderValue::from_static(""))
}

/// What every answer has.
fn insert_always(headers: &mut HeaderMap, request_id: &RequestId) {
    headers.insert(X_REQUEST_ID, request_id.header());
    headers.insert(X_CONTENT_TYPE_OPTIONS, NOSNIFF);
}

/// `Cache-Control` for each number of seconds until the next refresh.
static PRIVATE: [HeaderValue; 31] = {
    const fn value(text: &'static str) -> HeaderValue {
        HeaderValue::from_static(text)
    }
    [
        value("private, max-age=0"),
        value("private, max-age=1"),
        value("private, max-age=2"),
        value("private, max-age=3"),
        value("private, max-age=4"),
        value("private, max-age=5"),
        value("private, max-age=6"),
        value("private, max-age=7"),
        value("private, max-age=8"),
        value("private, max-age=9"),
        value("private, max-age=10"),
        value("private, max-age=11"),
        value("private, max-age=12"),
        value("private, max-age=13"),
        value("private, max-age=14"),
        value("private, max-age=15"),
        value("private, max-age=16"),
        value("private, max-age=17"),
        value("private, max-age=18"),
        value("private, max-age=19"),
        value("private, max-age=20"),
        value("private, max-age=21"),
        value("private, max-age=22"),
        value("private, max-age=23"),
        value("private, max-age=24"),
        value("private, max-age=25"),
        value("private, max-age=26"),
        value("private, max-age=27"),
        value("private, max-age=28"),
        value("private, max-age=29"),
        value("private, max-age=30"),
    ]
};

fn cache_control(freshness: Freshness, now: Moment, refresh_ms: i64) -> HeaderValue {
    let seconds = match freshness {
        Freshness::Shared => return HeaderValue::from_static("public, max-age=300"),
        Freshness::Imported => return HeaderValue::from_static("private, max-age=300"),
        Freshness::Immutable => return HeaderValue::from_static("private, max-age=31536000, immutable"),
        Freshness::Revalidated => 0,
        Freshness::UntilRefresh => seconds_until_refresh(now, refresh_ms),
    };
    PRIVATE[seconds.min(PRIVATE.len() - 1)].clone()
}

/// Whole seconds, rounded down: what is kept that long is never older than the next publication.
fn seconds_until_refresh(now: Moment, refresh_ms: i64) -> usize {
    let left_ms = refresh_ms - now.unix_ms.rem_euclid(refresh_ms.max(1));
    usize::try_from(left_ms / 1000).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn odds_are_kept_until_the_next_tick_of_the_wall_clock() {
        let at = |unix_ms: i64| Moment::unset(unix_ms, 0);
        for (unix_ms, refresh_ms, value) in [
            (1_794_699_540_000, 30_000, "private, max-age=30"),
            (1_794_699_540_001, 30_000, "private, max-age=29"),
            (1_794_699_569_500, 30_000, "private, max-age=0"),
            (1_794_699_545_000, 10_000, "private, max-age=5"),
            (1_794_699_540_000, 300_000, "private, max-age=30"),
            (1_794_699_540_000, 0, "private, max-age=0"),
        ] {
            let header = cache_control(Freshness::UntilRefresh, at(unix_ms), refresh_ms);
            assert_eq!(header, value, "{unix_ms} {refresh_ms}");
        }
        assert_eq!(cache_control(Freshness::Revalidated, at(0), 30_000), "private, max-age=0");
    }

    #[test]
    fn the_prepared_values_are_in_order() {
        for (seconds, value) in PRIVATE.iter().enumerate() {
            assert_eq!(value.to_str().unwrap(), format!("private, max-age={seconds}"));
        }
    }
}
