//! Sends requests to an upstream, over http or https, within bounds of time and size.
//!
//! Connections are kept alive and pooled, HTTP/2 is used where the upstream offers it, and redirects are not followed.
//! The proxy of `HTTPS_PROXY`, `HTTP_PROXY` or `ALL_PROXY` is used unless `NO_PROXY` names the upstream. A proxy is always
//! asked for a tunnel, so that it never sees the key. An upstream on loopback is reached directly.
//!
//! The key is in the query of the request and nowhere else: no error, no `Debug` and nothing that is returned here
//! contains it, nor any other part of the query.

use std::fmt::{self, Write as _};
use std::io::Read;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, HeaderMap, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::proxy::Tunnel;
use hyper_util::client::legacy::{self, ResponseFuture};
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::ingest::the_odds_api::PAYLOAD_BYTES_MAX;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Shorter than the idle timeouts of common servers, so that no request is sent on a connection that is being closed.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);
/// As many as there are requests at a time.
const IDLE_CONNECTIONS_MAX: usize = super::REQUESTS_MAX;
const HEADER_BYTES_MAX: u32 = 64 << 10;

/// An upstream, and the key for it.
pub(super) struct UpstreamClient {
    /// `https://host/v4`, without a slash at the end.
    base: Box<str>,
    key: Box<str>,
    timeout: Duration,
    connections: Connections,
}

/// The pooled connections, through a proxy or not.
enum Connections {
    Direct(legacy::Client<HttpsConnector<HttpConnector>, Empty<Bytes>>),
    Tunnelled(legacy::Client<HttpsConnector<Tunnel<HttpConnector>>, Empty<Bytes>>),
}

impl fmt::Debug for UpstreamClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UpstreamClient").field("base", &self.base).finish_non_exhaustive()
    }
}

/// Why an upstream cannot be polled as it is configured.
#[derive(Debug, thiserror::Error)]
pub(super) enum UpstreamClientError {
    #[error("url takes an address such as https://host/v4")]
    Address,
    #[error("cannot read the certificates in {0}: {1}; ca takes a PEM file")]
    Certificates(Box<str>, Box<str>),
    #[error("TLS cannot be used: {0}")]
    Tls(Box<str>),
    #[error("the proxy of HTTPS_PROXY, HTTP_PROXY or ALL_PROXY is {0}://, and only http:// is supported")]
    Proxy(Box<str>),
}

/// A good answer.
#[derive(Debug)]
pub(super) struct UpstreamResponse {
    pub(super) body: Vec<u8>,
    pub(super) quota: UpstreamQuota,
}

/// What an upstream says of its quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct UpstreamQuota {
    pub(super) remaining: Option<u64>,
    pub(super) used: Option<u64>,
    /// What this request cost.
    pub(super) last: Option<u64>,
    /// What is left of the month, or of another period that the upstream does not name.
    pub(super) month: Option<u64>,
    pub(super) day: Option<DayQuota>,
}

/// What is left of a quota of a day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DayQuota {
    pub(super) left: u64,
    /// How long until it is renewed.
    pub(super) rest_s: u64,
}

impl UpstreamQuota {
    /// The headers of The Odds API speak of a month. Another oddsbox also names its quotas in `RateLimit`, where there may
    /// be one of a day.
    fn of(headers: &HeaderMap) -> Self {
        let remaining = number(headers, "x-requests-remaining");
        let limits = headers.get("ratelimit").and_then(|value| value.to_str().ok()).unwrap_or_default();
        let day = limit(limits, "day").map(|(left, rest_s)| DayQuota { left, rest_s });
        let month = match limit(limits, "month") {
            Some((left, _)) => Some(left),
            None if day.is_some() => None,
            None => remaining,
        };
        let (used, last) = (number(headers, "x-requests-used"), number(headers, "x-requests-last"));
        UpstreamQuota { remaining, used, last, month, day }
    }

    /// Whether it says what is left.
    pub(super) fn is_reported(&self) -> bool {
        self.month.is_some() || self.day.is_some()
    }
}

/// What is left of a named quota and the seconds until it is renewed: `"day";r=9993;t=3600`.
fn limit(limits: &str, name: &str) -> Option<(u64, u64)> {
    let is_named = |item: &&str| item.split(';').next().is_some_and(|own| own.trim().trim_matches('"') == name);
    let item = limits.split(',').find(is_named)?;
    let field =
        |key: &str| item.split(';').find_map(|field| field.trim().strip_prefix(key)?.strip_prefix('=')?.parse().ok());
    Some((field("r")?, field("t").unwrap_or(86_400)))
}

/// Why there is no good answer. No variant can contain the key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum RequestError {
    #[error("no connection: {0}")]
    Connect(Box<str>),
    #[error("no answer within {} s", .0.as_secs())]
    TooSlow(Duration),
    #[error("the answer broke off: {0}")]
    Broken(Box<str>),
    #[error("the answer has more than {PAYLOAD_BYTES_MAX} bytes")]
    TooLong,
    #[error("answered {}{}", .status, .code.as_ref().map(|code| format!(" {code}")).unwrap_or_default())]
    Status {
        status: u16,
        code: Option<Box<str>>,
        /// The requested markets that its message names.
        markets: Box<[Box<str>]>,
        retry_after_s: Option<u64>,
        quota: Box<UpstreamQuota>,
    },
    #[error("the answer cannot be used: {0}")]
    Body(Box<str>),
}

impl UpstreamClient {
    pub(super) fn new(
        url: &str,
        key: &str,
        timeout: Duration,
        ca: Option<&Path>,
        proxies: &Matcher,
    ) -> Result<Self, UpstreamClientError> {
        let uri: Uri = url.parse().map_err(|_| UpstreamClientError::Address)?;
        let (Some(scheme), Some(host)) = (uri.scheme_str(), uri.host()) else {
            return Err(UpstreamClientError::Address);
        };
        // A tunnel needs the port, also where it is the scheme's own.
        let port = uri.port_u16().unwrap_or(if scheme == "https" { 443 } else { 80 });
        let base = format!("{scheme}://{host}:{port}{}", uri.path().trim_end_matches('/')).into();
        let tls = tls_config(ca.filter(|_| scheme == "https"))?;
        let connections = Connections::new(timeout, tls, proxy_for(&uri, proxies))?;
        Ok(UpstreamClient { base, key: key.into(), timeout, connections })
    }

    /// Requests a path below the address; the key is added to the query.
    pub(super) async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<UpstreamResponse, RequestError> {
        let request = self.request(path, query)?;
        let markets = query.iter().find(|(name, _)| *name == "markets").map_or("", |(_, markets)| markets);
        let exchange = async {
            let response = self.connections.send(request).await.map_err(|error| {
                let causes = causes(&error).into();
                if error.is_connect() { RequestError::Connect(causes) } else { RequestError::Broken(causes) }
            })?;
            read(response, markets).await
        };
        tokio::time::timeout(self.timeout, exchange).await.unwrap_or(Err(RequestError::TooSlow(self.timeout)))
    }

    fn request(&self, path: &str, query: &[(&str, &str)]) -> Result<Request<Empty<Bytes>>, RequestError> {
        let mut target = format!("{}{path}?apiKey={}", self.base, percent_encoded(&self.key));
        for (name, value) in query {
            target.extend(["&", name, "=", &percent_encoded(value)]);
        }
        let request = Request::get(target).header(ACCEPT, "application/json");
        let request = request.header(ACCEPT_ENCODING, "gzip").header(USER_AGENT, "oddsbox");
        request
            .body(Empty::new())
            .map_err(|_| RequestError::Body("the request cannot be made: see url, key and sports".into()))
    }
}

impl Connections {
    fn new(timeout: Duration, tls: ClientConfig, proxy: Option<Intercept>) -> Result<Self, UpstreamClientError> {
        let tls = HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http().enable_all_versions();
        let mut tcp = HttpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(Some(CONNECT_TIMEOUT.min(timeout)));
        let mut pool = legacy::Client::builder(TokioExecutor::new());
        pool.timer(TokioTimer::new()).pool_timer(TokioTimer::new());
        pool.pool_idle_timeout(IDLE_TIMEOUT).pool_max_idle_per_host(IDLE_CONNECTIONS_MAX);
        pool.http1_max_buf_size(HEADER_BYTES_MAX as usize).http2_max_header_list_size(HEADER_BYTES_MAX);
        let Some(proxy) = proxy else { return Ok(Connections::Direct(pool.build(tls.wrap_connector(tcp)))) };
        let scheme = proxy.uri().scheme_str().unwrap_or_default();
        if scheme != "http" {
            return Err(UpstreamClientError::Proxy(scheme.into()));
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), tcp);
        if let Some(auth) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(auth.clone());
        }
        Ok(Connections::Tunnelled(pool.build(tls.wrap_connector(tunnel))))
    }

    fn send(&self, request: Request<Empty<Bytes>>) -> ResponseFuture {
        match self {
            Connections::Direct(pool) => pool.request(request),
            Connections::Tunnelled(pool) => pool.request(request),
        }
    }
}

/// The web's certificate authorities, and the operator's own.
fn tls_config(ca: Option<&Path>) -> Result<ClientConfig, UpstreamClientError> {
    let mut roots = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect::<RootCertStore>();
    if let Some(path) = ca {
        let unreadable = |why: String| UpstreamClientError::Certificates(path.display().to_string().into(), why.into());
        let certificates = CertificateDer::pem_file_iter(path).map_err(|error| unreadable(error.to_string()))?;
        let mut any = false;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| unreadable(error.to_string()))?;
            roots.add(certificate).map_err(|error| unreadable(error.to_string()))?;
            any = true;
        }
        if !any {
            return Err(unreadable("there are none".to_owned()));
        }
    }
    let builder = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let builder = builder
        .with_safe_default_protocol_versions()
        .map_err(|error| UpstreamClientError::Tls(error.to_string().into()))?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

/// The proxy that an upstream is reached through, if any. One on this machine needs none.
fn proxy_for(upstream: &Uri, proxies: &Matcher) -> Option<Intercept> {
    let host = upstream.host()?;
    let address = host.trim_matches(['[', ']']).parse::<IpAddr>();
    let is_local = address.map_or(host.eq_ignore_ascii_case("localhost"), |address| address.is_loopback());
    if is_local { None } else { proxies.intercept(upstream) }
}

async fn read(response: Response<Incoming>, markets: &str) -> Result<UpstreamResponse, RequestError> {
    let (head, body) = response.into_parts();
    let quota = UpstreamQuota::of(&head.headers);
    let body = Limited::new(body, PAYLOAD_BYTES_MAX).collect().await;
    let body = body.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
        Some(_) => RequestError::TooLong,
        None => broken(&*error),
    })?;
    // A long body takes a while to inflate, which must not hold up a thread that answers requests.
    let (body, headers) = (body.to_bytes(), head.headers);
    let inflated = tokio::task::spawn_blocking(move || (decoded(body.into(), &headers), headers)).await;
    let (body, headers) = inflated.map_err(|error| broken(&error))?;
    let body = body?;
    if head.status != StatusCode::OK {
        let retry_after_s = number(&headers, RETRY_AFTER.as_str());
        let (status, code, markets) = (head.status.as_u16(), code_of(&body), named(markets, &body));
        let quota = Box::new(quota);
        return Err(RequestError::Status { status, code, markets, retry_after_s, quota });
    }
    Ok(UpstreamResponse { body, quota })
}

/// Undoes the encoding of a body, within the same bound.
fn decoded(body: Vec<u8>, headers: &HeaderMap) -> Result<Vec<u8>, RequestError> {
    match headers.get(CONTENT_ENCODING).map(|value| value.as_bytes().to_ascii_lowercase()).as_deref() {
        None | Some(b"identity") => Ok(body),
        Some(b"gzip") => {
            let mut plain = Vec::new();
            let bound = PAYLOAD_BYTES_MAX as u64 + 1;
            let unpacked = flate2::read::MultiGzDecoder::new(&*body).take(bound).read_to_end(&mut plain);
            unpacked.map_err(|error| broken(&error))?;
            if plain.len() > PAYLOAD_BYTES_MAX { Err(RequestError::TooLong) } else { Ok(plain) }
        }
        Some(_) => Err(RequestError::Body("it has an encoding that was not asked for".into())),
    }
}

/// A header's whole number.
fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    text.split('.').next()?.parse().ok()
}

/// The upstream's own error code: capitals only, so that it can be no secret.
fn code_of(body: &[u8]) -> Option<Box<str>> {
    #[derive(serde::Deserialize)]
    struct UpstreamErrorBody {
        error_code: Box<str>,
    }
    let code = serde_json::from_slice::<UpstreamErrorBody>(body).ok()?.error_code;
    let is_word = (1..=40).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    is_word.then_some(code)
}

/// The markets of a list that an error body names. Nothing else of the body is kept: it may repeat the key.
fn named(markets: &str, body: &[u8]) -> Box<[Box<str>]> {
    let text = String::from_utf8_lossy(body);
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let words: Vec<&str> = text.split(|c| !is_word(c)).collect();
    markets.split(',').filter(|market| !market.is_empty() && words.contains(market)).map(Box::from).collect()
}

fn broken(error: &(dyn std::error::Error + '_)) -> RequestError {
    let source = error.source().map(|source| format!(": {source}"));
    RequestError::Broken(format!("{error}{}", source.unwrap_or_default()).into())
}

/// What caused an error of the pool, which itself says only at which step it failed.
fn causes(error: &legacy::Error) -> String {
    let mut causes: Vec<String> = Vec::new();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        let text = error.to_string();
        // Some errors repeat the one below them.
        if causes.last().is_none_or(|above| !above.ends_with(&text)) {
            causes.push(text);
        }
        cause = error.source();
    }
    if causes.is_empty() { error.to_string() } else { causes.join(": ") }
}

/// Percent-encodes a query value or a part of a path, except for commas, which upstreams expect plain.
pub(super) fn percent_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' | b',' => out.push(char::from(byte)),
            other => {
                // Writing to a string cannot fail.
                let _ = write!(out, "%{other:02X}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests;
