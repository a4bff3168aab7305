//! The parts of a request that its answer depends on, and the bounds on them.
//!
//! The headers are found in one pass over all of them. Our bounds are below those of the HTTP library, so that a request
//! beyond them gets an error in our shape.

use http::header::{ACCEPT, ACCEPT_ENCODING, AUTHORIZATION, CONTENT_LENGTH, HOST, IF_NONE_MATCH, ORIGIN};
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Version as HttpVersion};

use super::error::{ApiError, Code};
use super::negotiate;
use super::request_id::X_REQUEST_ID;
use crate::board::Encoding;
use crate::keys::AuthError;

const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");
const MCP_PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const X_API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The longest path and query.
pub(crate) const URI_BYTES_MAX: usize = 8 << 10;
const HEADER_BYTES_MAX: usize = 16 << 10;
const HEADERS_MAX: usize = 64;

/// A request without its body.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestParts<'r> {
    pub method: &'r Method,
    pub version: HttpVersion,
    /// Path and query, as they were sent.
    pub target: &'r str,
    pub path: &'r str,
    pub query: Option<&'r str>,
    pub headers: RequestHeaders<'r>,
    pub is_head: bool,
    authority: Option<&'r str>,
}

impl<'r> RequestParts<'r> {
    pub(crate) fn of<B>(request: &'r Request<B>) -> Self {
        let (method, uri) = (request.method(), request.uri());
        RequestParts {
            method,
            version: request.version(),
            target: uri.path_and_query().map_or("", PathAndQuery::as_str),
            path: uri.path(),
            query: uri.query(),
            headers: RequestHeaders::of(request.headers()),
            is_head: method == Method::HEAD,
            authority: uri.authority().map(Authority::as_str),
        }
    }

    /// The same request for another target, whose answer is not sent as it is: neither compressed nor compared.
    pub(crate) fn for_target<'t>(self, target: &'t str) -> RequestParts<'t>
    where
        'r: 't,
    {
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        let (accept_encoding, if_none_match) = Default::default();
        let headers = RequestHeaders { accept_encoding, if_none_match, ..self.headers };
        RequestParts { target, path, query, headers, ..self }
    }

    /// The encoding that the client prefers.
    pub(crate) fn encoding(&self) -> Encoding {
        negotiate::encoding(self.headers.accept_encoding())
    }

    /// Whether the method only reads.
    pub(crate) fn is_read(&self) -> bool {
        self.is_head || self.method == Method::GET
    }

    /// Whether a page from elsewhere sent this, as browsers say. Programs say nothing. A proxy in front may have changed `Host`, so
    /// what the browser itself says of the origin comes first.
    pub(crate) fn is_from_elsewhere(&self) -> bool {
        let headers = &self.headers;
        let Some(origin) = headers.all.get(ORIGIN) else { return false };
        if headers.all.get(SEC_FETCH_SITE).is_some_and(|site| site == "same-origin") {
            return false;
        }
        let origin = origin.to_str().unwrap_or_default();
        let sender = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        let host = match headers.host {
            HeaderField::Once(host) => host.to_str().ok(),
            _ => None,
        };
        let Some((sender, own)) = sender.zip(self.authority.or(host)) else { return true };
        !sender.eq_ignore_ascii_case(own) || headers.all.get_all(ORIGIN).iter().nth(1).is_some()
    }

    /// Rejects a URL or headers beyond our bounds, and HTTP/1.1 without exactly one valid `Host`.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        if self.path.len() + self.query.map_or(0, str::len) + self.authority.map_or(0, str::len) > URI_BYTES_MAX {
            let message = "The URL is longer than 8 KiB. Ask for fewer events at a time.";
            return Err(ApiError::new(Code::UriTooLong, message));
        }
        if self.headers.bytes > HEADER_BYTES_MAX || self.headers.count > HEADERS_MAX {
            let message = "The headers are more than 64 or longer than 16 KiB. Leave out what is not needed.";
            return Err(ApiError::new(Code::HeadersTooLarge, message));
        }
        self.check_host()
    }

    /// RFC 9112, section 3.2: a request without a valid `Host`, or with several, gets 400, so that no two servers on its
    /// way route it to different hosts. HTTP/2 has `:authority` instead.
    fn check_host(&self) -> Result<(), ApiError> {
        let fault = match self.headers.host {
            _ if self.version > HttpVersion::HTTP_11 => return Ok(()),
            HeaderField::Once(host) if is_host(host.as_bytes()) => return Ok(()),
            HeaderField::Missing if self.version < HttpVersion::HTTP_11 => return Ok(()),
            HeaderField::Missing => "is missing",
            HeaderField::Once(_) => "is not a host name or an address with an optional port",
            HeaderField::Repeated => "was sent more than once",
        };
        let message = format!("The `Host` header {fault}. Send it once, as in `Host: odds.example.com:8080`.");
        Err(ApiError::new(Code::InvalidRequest, message))
    }
}

/// The values sent under one name.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) enum HeaderField<'r> {
    #[default]
    Missing,
    Once(&'r HeaderValue),
    Repeated,
}

impl<'r> HeaderField<'r> {
    fn add(&mut self, value: &'r HeaderValue) {
        *self = match self {
            HeaderField::Missing => HeaderField::Once(value),
            HeaderField::Once(_) | HeaderField::Repeated => HeaderField::Repeated,
        };
    }
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestHeaders<'r> {
    all: &'r HeaderMap,
    pub api_key: HeaderField<'r>,
    pub host: HeaderField<'r>,
    pub request_id: Option<&'r HeaderValue>,
    accept_encoding: HeaderField<'r>,
    if_none_match: HeaderField<'r>,
    /// Of all names and values.
    pub bytes: usize,
    pub count: usize,
}

impl<'r> RequestHeaders<'r> {
    pub(crate) fn of(all: &'r HeaderMap) -> Self {
        let (api_key, host, accept_encoding, if_none_match) = Default::default();
        let (request_id, count) = (None, all.len());
        let mut found =
            RequestHeaders { all, api_key, host, request_id, accept_encoding, if_none_match, bytes: 0, count };
        for (name, value) in all {
            found.bytes += name.as_str().len() + value.len();
            if *name == ACCEPT_ENCODING {
                found.accept_encoding.add(value);
            } else if *name == IF_NONE_MATCH {
                found.if_none_match.add(value);
            } else if *name == HOST {
                found.host.add(value);
            } else if *name == X_API_KEY {
                found.api_key.add(value);
            } else if *name == X_REQUEST_ID {
                found.request_id.get_or_insert(value);
            }
        }
        found
    }

    /// The key of a request that takes it in a header only: `X-API-Key`, or else `Authorization: Bearer`.
    pub(crate) fn header_key(&self) -> Result<Option<&'r [u8]>, AuthError> {
        match self.api_key {
            HeaderField::Once(value) => return Ok(Some(value.as_bytes())),
            HeaderField::Repeated => return Err(AuthError::Malformed),
            HeaderField::Missing => {}
        }
        let mut sent = self.all.get_all(AUTHORIZATION).iter().map(HeaderValue::as_bytes);
        match (sent.next(), sent.next()) {
            (None, _) => Ok(None),
            (Some(value), None) => Ok(bearer(value)),
            (Some(_), Some(_)) => Err(AuthError::Malformed),
        }
    }

    /// The revision of the Model Context Protocol that a client speaks.
    pub(crate) fn mcp_revision(&self) -> Option<&'r str> {
        // What is no text is no revision either.
        self.all.get(MCP_PROTOCOL_VERSION).map(|value| value.to_str().unwrap_or("?"))
    }

    /// How long the body is, if the client says so and it can be counted.
    pub(crate) fn content_length(&self) -> Option<u64> {
        self.all.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
    }

    /// Not found in the pass over all headers: only one page depends on it.
    pub(crate) fn accept(&self) -> impl Iterator<Item = &'r HeaderValue> {
        self.all.get_all(ACCEPT).into_iter()
    }

    /// The last event that a client of a stream has seen; without text, none.
    pub(crate) fn last_event_id(&self) -> Option<&'r str> {
        let value = self.all.get(LAST_EVENT_ID)?;
        // What is no text is no position either.
        Some(value.to_str().unwrap_or("?")).filter(|text| !text.is_empty())
    }

    pub(crate) fn accept_encoding(&self) -> impl Iterator<Item = &'r HeaderValue> {
        self.values(self.accept_encoding, ACCEPT_ENCODING)
    }

    pub(crate) fn if_none_match(&self) -> impl Iterator<Item = &'r HeaderValue> {
        self.values(self.if_none_match, IF_NONE_MATCH)
    }

    fn values(&self, sent: HeaderField<'r>, name: HeaderName) -> impl Iterator<Item = &'r HeaderValue> {
        let (once, several) = match sent {
            HeaderField::Missing => (None, None),
            HeaderField::Once(value) => (Some(value), None),
            HeaderField::Repeated => (None, Some(self.all.get_all(name).into_iter())),
        };
        once.into_iter().chain(several.into_iter().flatten())
    }
}

/// The token of `Bearer token`; none of another scheme, which is for somebody else.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at(value.iter().position(|byte| *byte == b' ')?);
    scheme.eq_ignore_ascii_case(b"bearer").then(|| token.trim_ascii())
}

/// Whether the value of a `Host` header names a host: `uri-host [ ":" port ]`, RFC 9110, section 7.2. An empty one is
/// grammatical but names none, and an `http` URI must.
fn is_host(value: &[u8]) -> bool {
    let (host, port) = match value.strip_prefix(b"[") {
        Some(rest) => {
            let Some(end) = rest.iter().position(|byte| *byte == b']') else { return false };
            (&rest[..end], &rest[end + 1..])
        }
        None => value.split_at(value.iter().position(|byte| *byte == b':').unwrap_or(value.len())),
    };
    let is_literal = value.starts_with(b"[");
    let is_named = if is_literal { is_address(host) } else { is_name(host) };
    let is_port = port.is_empty() || port.strip_prefix(b":").is_some_and(|port| port.iter().all(u8::is_ascii_digit));
    !host.is_empty() && is_named && is_port
}

/// An IPv6 address, or a later one: `IP-literal` without its brackets.
fn is_address(host: &[u8]) -> bool {
    host.iter().all(|byte| is_unreserved_or_delimiter(*byte) || *byte == b':')
}

/// A registered name or an IPv4 address.
fn is_name(mut host: &[u8]) -> bool {
    // Nearly every name is plain. Without an early end this compiles to vector instructions.
    let is_plain = |byte: &u8| matches!(byte, b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' | b'.' | b'-');
    if host.iter().fold(true, |all, byte| all & is_plain(byte)) {
        return true;
    }
    while let Some((byte, rest)) = host.split_first() {
        host = match byte {
            b'%' => match rest.split_at_checked(2) {
                Some((pair, rest)) if pair.iter().all(u8::is_ascii_hexdigit) => rest,
                _ => return false,
            },
            byte if is_unreserved_or_delimiter(*byte) => rest,
            _ => return false,
        };
    }
    true
}

fn is_unreserved_or_delimiter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_found_as_often_as_it_was_sent() {
        let mut all = HeaderMap::new();
        let found = RequestHeaders::of(&all);
        assert!(matches!(found.api_key, HeaderField::Missing) && found.request_id.is_none());
        assert_eq!((found.accept_encoding().count(), found.if_none_match().count()), (0, 0));
        for (name, value) in [
            ("accept-encoding", "gzip"),
            ("if-none-match", "\"a\""),
            ("accept-encoding", "zstd"),
            ("x-api-key", "k"),
            ("x-request-id", "first"),
            ("x-request-id", "second"),
            ("host", "h"),
        ] {
            all.append(name, HeaderValue::from_static(value));
        }
        let found = RequestHeaders::of(&all);
        let texts = |values: &mut dyn Iterator<Item = &HeaderValue>| {
            values.map(|value| value.to_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(texts(&mut found.accept_encoding()), ["gzip", "zstd"]);
        assert_eq!(texts(&mut found.if_none_match()), ["\"a\""]);
        assert_eq!(found.request_id.unwrap(), "first");
        assert!(matches!(found.api_key, HeaderField::Once(key) if key == "k"));
        assert_eq!((found.count, found.bytes), (7, 2 * 15 + 8 + 13 + 3 + 9 + 1 + 2 * 12 + 5 + 6 + 4 + 1));
        all.append("x-api-key", HeaderValue::from_static("k"));
        assert!(matches!(RequestHeaders::of(&all).api_key, HeaderField::Repeated));
    }

    fn sent(headers: &[(&'static str, &'static str)]) -> Request<()> {
        let mut request = Request::new(());
        for (name, value) in headers {
            request.headers_mut().append(*name, HeaderValue::from_static(value));
        }
        request
    }

    #[test]
    fn pages_of_other_origins_are_told_from_programs_and_from_own_pages() {
        let is_foreign = |headers: &[(&'static str, &'static str)]| {
            let headers: Vec<_> = [&[("host", "odds.example:8080")], headers].concat();
            RequestParts::of(&sent(&headers)).is_from_elsewhere()
        };
        for own in ["http://odds.example:8080", "https://odds.example:8080", "http://ODDS.example:8080"] {
            assert!(!is_foreign(&[("origin", own)]), "{own}");
        }
        assert!(!is_foreign(&[]), "a program");
        let behind_a_proxy = [("origin", "https://odds.public"), ("sec-fetch-site", "same-origin")];
        assert!(!is_foreign(&behind_a_proxy));
        let foreign = [
            "http://evil.example",
            "http://odds.example",
            "http://odds.example:8080.evil",
            "null",
            "",
            "odds.example:8080",
        ];
        for origin in foreign {
            assert!(is_foreign(&[("origin", origin)]), "{origin}");
            assert!(is_foreign(&[("origin", origin), ("sec-fetch-site", "cross-site")]), "{origin}");
        }
        assert!(is_foreign(&[("origin", "http://odds.example:8080"), ("origin", "http://odds.example:8080")]));
    }

    #[test]
    fn key_is_taken_from_one_header_and_its_own_comes_first() {
        let key = |headers: &[(&'static str, &'static str)]| {
            let request = sent(headers);
            RequestParts::of(&request).headers.header_key().map(|key| key.map(<[u8]>::to_vec))
        };
        assert_eq!(key(&[]), Ok(None));
        assert_eq!(key(&[("authorization", "Bearer k")]), Ok(Some(b"k".to_vec())));
        assert_eq!(key(&[("authorization", "bearer  k ")]), Ok(Some(b"k".to_vec())));
        assert_eq!(key(&[("authorization", "Basic eDp5")]), Ok(None));
        assert_eq!(key(&[("authorization", "Bearer")]), Ok(None));
        assert_eq!(key(&[("authorization", "Bearer k"), ("x-api-key", "own")]), Ok(Some(b"own".to_vec())));
        assert_eq!(key(&[("authorization", "Bearer k"), ("authorization", "Bearer k")]), Err(AuthError::Malformed));
        assert_eq!(key(&[("x-api-key", "k"), ("x-api-key", "k")]), Err(AuthError::Malformed));
    }

    #[test]
    fn hosts_follow_the_grammar() {
        for host in ["a", "odds.example.com", "A-b_c.d:8080", "127.0.0.1:80", "[::1]", "[::1]:80", "a:", "a%20b"] {
            assert!(is_host(host.as_bytes()), "{host}");
        }
        for host in [
            "", ":80", "a b", "a/b", "u@a", "a:80:80", "a:x", "[::1", "[]", "[::1]80", "::1", "a%zz", "a%2", "\u{e9}",
            "a\"b", "a\\b",
        ] {
            assert!(!is_host(host.as_bytes()), "{host}");
        }
    }
}
