//! Asking an upstream: one request on one connection, over http or https, within bounds of time and size.
//!
//! The key stands in the query of the request and nowhere else: no error, no `Debug` and nothing that is returned here
//! holds it, nor any part of the address.

use std::fmt::{self, Write as _};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, ACCEPT_ENCODING, CONTENT_ENCODING, HOST, HeaderMap, RETRY_AFTER, USER_AGENT};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use super::PAYLOAD_BYTES_MAX;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const HEADER_BYTES_MAX: usize = 64 << 10;

/// Where to ask, and with which key.
pub struct Client {
    host: Box<str>,
    port: u16,
    authority: Box<str>,
    base_path: Box<str>,
    key: Box<str>,
    timeout: Duration,
    tls: Option<TlsConnector>,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("authority", &self.authority).finish_non_exhaustive()
    }
}

/// Why there can be no client.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("url takes an address such as https://host/v4")]
    Address,
    #[error("the certificates in {0} cannot be read ({1}): ca takes a PEM file")]
    Certificates(Box<str>, Box<str>),
    #[error("TLS cannot be used: {0}")]
    Tls(Box<str>),
}

/// A good answer.
#[derive(Debug)]
pub struct Answer {
    pub body: Vec<u8>,
    pub quota: Quota,
}

/// What an upstream says of its quota.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quota {
    pub remaining: Option<u64>,
    pub used: Option<u64>,
    /// What this request cost.
    pub last: Option<u64>,
}

/// Why there is no good answer. Nothing of it can hold the key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    #[error("no connection: {0}")]
    Connect(Box<str>),
    #[error("no answer within {} s", .0.as_secs())]
    TooSlow(Duration),
    #[error("the answer broke off: {0}")]
    Broken(Box<str>),
    #[error("the answer has more than {PAYLOAD_BYTES_MAX} bytes")]
    TooLong,
    #[error("answered {}{}", .status, .code.as_ref().map(|code| format!(" {code}")).unwrap_or_default())]
    Status { status: u16, code: Option<Box<str>>, retry_after_s: Option<u64>, quota: Quota },
    #[error("the answer cannot be used: {0}")]
    Body(Box<str>),
}

impl Client {
    pub fn new(url: &str, key: &str, timeout: Duration, ca: Option<&Path>) -> Result<Self, ClientError> {
        let uri: Uri = url.parse().map_err(|_| ClientError::Address)?;
        let authority = uri.authority().ok_or(ClientError::Address)?;
        let is_tls = uri.scheme_str() == Some("https");
        let host = uri.host().ok_or(ClientError::Address)?.trim_matches(['[', ']']);
        Ok(Client {
            host: host.into(),
            port: uri.port_u16().unwrap_or(if is_tls { 443 } else { 80 }),
            authority: authority.as_str().into(),
            base_path: uri.path().trim_end_matches('/').into(),
            key: key.into(),
            timeout,
            tls: if is_tls { Some(connector(ca)?) } else { None },
        })
    }

    /// Asks for a path below the address; the key is added to the query.
    pub async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Answer, Trouble> {
        let asked = async {
            let connecting = TcpStream::connect((&*self.host, self.port));
            let stream = tokio::time::timeout(CONNECT_TIMEOUT.min(self.timeout), connecting).await;
            let stream = stream.map_err(|_| Trouble::Connect("timed out".into()))?;
            let stream = stream.map_err(|error| Trouble::Connect(error.to_string().into()))?;
            let Some(tls) = &self.tls else { return self.exchange(stream, path, query).await };
            let name = ServerName::try_from(self.host.to_string());
            let name = name.map_err(|_| Trouble::Connect("the host has no name that TLS can check".into()))?;
            let stream = tls.connect(name, stream).await;
            self.exchange(stream.map_err(|error| Trouble::Connect(error.to_string().into()))?, path, query).await
        };
        tokio::time::timeout(self.timeout, asked).await.unwrap_or(Err(Trouble::TooSlow(self.timeout)))
    }

    async fn exchange(
        &self,
        stream: impl AsyncRead + AsyncWrite + Send + Unpin,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<Answer, Trouble> {
        let handshake = http1::Builder::new().max_buf_size(HEADER_BYTES_MAX).handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = handshake.map_err(|error| broken(&error))?;
        let request = self.request(path, query)?;
        let answered = async move {
            let response = sender.send_request(request).await.map_err(|error| broken(&error))?;
            answer(response).await
        };
        // The connection must be driven while the exchange goes on; if it breaks, the exchange says so itself.
        let driven = async {
            let _ = connection.await;
            std::future::pending().await
        };
        tokio::select! {
            answer = answered => answer,
            never = driven => never,
        }
    }

    fn request(&self, path: &str, query: &[(&str, &str)]) -> Result<Request<Empty<Bytes>>, Trouble> {
        let mut target = format!("{}{path}?apiKey={}", self.base_path, escaped(&self.key));
        for (name, value) in query {
            target.extend(["&", name, "=", &escaped(value)]);
        }
        let request = Request::get(target).header(HOST, &*self.authority).header(ACCEPT, "application/json");
        let request = request.header(ACCEPT_ENCODING, "gzip").header(USER_AGENT, "oddsbox");
        request
            .body(Empty::new())
            .map_err(|_| Trouble::Body("the request cannot be made: see url, key and sports".into()))
    }
}

/// The web's authorities, and the operator's own.
fn connector(ca: Option<&Path>) -> Result<TlsConnector, ClientError> {
    let mut roots = webpki_roots::TLS_SERVER_ROOTS.iter().cloned().collect::<RootCertStore>();
    if let Some(path) = ca {
        let unreadable = |why: String| ClientError::Certificates(path.display().to_string().into(), why.into());
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
    let builder =
        builder.with_safe_default_protocol_versions().map_err(|error| ClientError::Tls(error.to_string().into()))?;
    Ok(TlsConnector::from(Arc::new(builder.with_root_certificates(roots).with_no_client_auth())))
}

async fn answer(response: Response<Incoming>) -> Result<Answer, Trouble> {
    let (head, body) = response.into_parts();
    let quota = Quota {
        remaining: number(&head.headers, "x-requests-remaining"),
        used: number(&head.headers, "x-requests-used"),
        last: number(&head.headers, "x-requests-last"),
    };
    let body = Limited::new(body, PAYLOAD_BYTES_MAX).collect().await;
    let body = body.map_err(|error| match error.downcast_ref::<LengthLimitError>() {
        Some(_) => Trouble::TooLong,
        None => broken(&*error),
    })?;
    let body = decoded(body.to_bytes().into(), &head.headers)?;
    if head.status != StatusCode::OK {
        let retry_after_s = number(&head.headers, RETRY_AFTER.as_str());
        return Err(Trouble::Status { status: head.status.as_u16(), code: code_of(&body), retry_after_s, quota });
    }
    Ok(Answer { body, quota })
}

/// Undoes the encoding of a body, within the same bound.
fn decoded(body: Vec<u8>, headers: &HeaderMap) -> Result<Vec<u8>, Trouble> {
    match headers.get(CONTENT_ENCODING).map(|value| value.as_bytes().to_ascii_lowercase()).as_deref() {
        None | Some(b"identity") => Ok(body),
        Some(b"gzip") => {
            let mut plain = Vec::new();
            let bound = PAYLOAD_BYTES_MAX as u64 + 1;
            let unpacked = flate2::read::MultiGzDecoder::new(&*body).take(bound).read_to_end(&mut plain);
            unpacked.map_err(|error| broken(&error))?;
            if plain.len() > PAYLOAD_BYTES_MAX { Err(Trouble::TooLong) } else { Ok(plain) }
        }
        Some(_) => Err(Trouble::Body("it has an encoding that was not asked for".into())),
    }
}

/// A header's whole number.
fn number(headers: &HeaderMap, name: &str) -> Option<u64> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    text.split('.').next()?.parse().ok()
}

/// The upstream's own word for an error: capitals only, so that it can be no secret.
fn code_of(body: &[u8]) -> Option<Box<str>> {
    #[derive(serde::Deserialize)]
    struct ErrorBody {
        error_code: Box<str>,
    }
    let code = serde_json::from_slice::<ErrorBody>(body).ok()?.error_code;
    let is_word = (1..=40).contains(&code.len()) && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_');
    is_word.then_some(code)
}

fn broken(error: &(dyn std::error::Error + '_)) -> Trouble {
    let source = error.source().map(|source| format!(": {source}"));
    Trouble::Broken(format!("{error}{}", source.unwrap_or_default()).into())
}

/// A text as it may stand in a query; commas may, and upstreams expect them plain.
fn escaped(text: &str) -> String {
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
mod tests {
    use super::*;

    fn client(url: &str) -> Result<Client, ClientError> {
        Client::new(url, "a secret&key", Duration::from_secs(1), None)
    }

    #[test]
    fn the_key_stands_in_the_query_and_in_nothing_that_is_shown() {
        let client = client("http://127.0.0.1:8080/v4/").unwrap();
        let request = client.request("/sports", &[("regions", "us,uk")]).unwrap();
        assert_eq!(request.uri(), "/v4/sports?apiKey=a%20secret%26key&regions=us,uk");
        assert_eq!(request.headers()[HOST], "127.0.0.1:8080");
        assert!(!format!("{client:?}").contains("secret"));
    }

    #[test]
    fn addresses_have_their_ports() {
        for (url, host, port) in [
            ("https://api.test/v4", "api.test", 443),
            ("http://api.test", "api.test", 80),
            ("http://[::1]:81/v4", "::1", 81),
        ] {
            let client = client(url).unwrap();
            assert_eq!((&*client.host, client.port), (host, port));
        }
        assert!(client("/v4").is_err());
    }

    #[test]
    fn only_words_of_capitals_are_repeated() {
        assert_eq!(code_of(b"{\"message\":\"m\",\"error_code\":\"INVALID_KEY\"}").as_deref(), Some("INVALID_KEY"));
        assert_eq!(code_of(b"{\"error_code\":\"key abc is wrong\"}"), None);
        assert_eq!(code_of(b"nothing"), None);
    }
}
