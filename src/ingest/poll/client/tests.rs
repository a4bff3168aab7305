//! The client against an upstream and a proxy on this machine.

use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use http_body_util::Full;
use hyper::header::HeaderName;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::*;

const KEY: &str = "a secret&key";
const NAME: &str = "upstream.test";

/// Answers every request with its HTTP version and its host, or with a redirect below `/moved`.
#[derive(Clone)]
struct FakeUpstream {
    address: SocketAddr,
    connections: Arc<AtomicUsize>,
}

impl FakeUpstream {
    /// With a certificate it speaks HTTP/2 over TLS, else HTTP/1.1 in plain text.
    async fn start(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let upstream = FakeUpstream { address: listener.local_addr().unwrap(), connections: Arc::default() };
        let connections = Arc::clone(&upstream.connections);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                connections.fetch_add(1, Ordering::SeqCst);
                let tls = tls.clone();
                tokio::spawn(async move {
                    match tls {
                        None => serve_http1(stream).await,
                        Some(tls) => serve_http2(tls.accept(stream).await.unwrap()).await,
                    }
                });
            }
        });
        upstream
    }

    fn connections(&self) -> usize {
        self.connections.load(Ordering::SeqCst)
    }
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, std::convert::Infallible> {
    let host = request.uri().host().map(str::to_owned);
    let host = host.or_else(|| Some(request.headers().get("host")?.to_str().ok()?.to_owned()));
    let text = format!("{:?} {}", request.version(), host.unwrap_or_default());
    let mut response = Response::new(Full::new(Bytes::from(text)));
    if request.uri().path().ends_with("/moved") {
        *response.status_mut() = StatusCode::FOUND;
        response.headers_mut().insert("location", "/v4/sports".parse().unwrap());
    }
    Ok(response)
}

async fn serve_http1(stream: impl AsyncRead + AsyncWrite + Unpin) {
    let _ = http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer)).await;
}

async fn serve_http2(stream: impl AsyncRead + AsyncWrite + Unpin) {
    let server = http2::Builder::new(TokioExecutor::new());
    let _ = server.serve_connection(TokioIo::new(stream), service_fn(answer)).await;
}

/// A certificate for [`NAME`] and loopback: the acceptor that shows it, and the file that makes it trusted.
fn certificate(directory: &TempDir) -> (TlsAcceptor, std::path::PathBuf) {
    let names = [NAME.to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let path = directory.path().join("ca.pem");
    std::fs::write(&path, made.cert.pem()).unwrap();
    let key = rustls_pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
    let mut config = config.with_single_cert(vec![made.cert.der().clone()], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    (TlsAcceptor::from(Arc::new(config)), path)
}

/// A proxy that tunnels every CONNECT to one address; the heads of the requests that it saw.
async fn start_proxy(target: SocketAddr) -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let heads = Arc::<Mutex<Vec<String>>>::default();
    let seen = Arc::clone(&heads);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let mut client = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                client.read_line(&mut head).await.unwrap();
            }
            seen.lock().unwrap().push(head);
            client.write_all(b"HTTP/1.1 200 Connection established\r\n\r\n").await.unwrap();
            let mut upstream = TcpStream::connect(target).await.unwrap();
            tokio::spawn(async move { copy_bidirectional(&mut client, &mut upstream).await });
        }
    });
    (address, heads)
}

fn no_proxy() -> Matcher {
    Matcher::builder().build()
}

fn client(url: &str, ca: Option<&Path>, proxies: &Matcher) -> Result<UpstreamClient, UpstreamClientError> {
    UpstreamClient::new(url, KEY, Duration::from_secs(30), ca, proxies)
}

async fn get(client: &UpstreamClient) -> String {
    String::from_utf8(client.get("/sports", &[]).await.unwrap().body).unwrap()
}

#[test]
fn the_key_stands_in_the_query_and_in_nothing_that_is_shown() {
    let client = client("http://127.0.0.1:8080/v4/", None, &no_proxy()).unwrap();
    let request = client.request("/sports", &[("regions", "us,uk")]).unwrap();
    assert_eq!(request.uri(), "http://127.0.0.1:8080/v4/sports?apiKey=a%20secret%26key&regions=us,uk");
    assert!(!format!("{client:?}").contains("secret"));
}

#[test]
fn addresses_have_their_ports() {
    for (url, base) in [
        ("https://api.test/v4", "https://api.test:443/v4"),
        ("http://api.test", "http://api.test:80"),
        ("http://[::1]:81/v4", "http://[::1]:81/v4"),
    ] {
        assert_eq!(&*client(url, None, &no_proxy()).unwrap().base, base);
    }
    assert!(client("/v4", None, &no_proxy()).is_err());
}

#[test]
fn only_words_of_capitals_are_repeated() {
    assert_eq!(code_of(b"{\"message\":\"m\",\"error_code\":\"INVALID_KEY\"}").as_deref(), Some("INVALID_KEY"));
    assert_eq!(code_of(b"{\"error_code\":\"key abc is wrong\"}"), None);
    assert_eq!(code_of(b"nothing"), None);
}

#[tokio::test]
async fn two_requests_share_a_connection() {
    let upstream = FakeUpstream::start(None).await;
    let client = client(&format!("http://{}/v4", upstream.address), None, &no_proxy()).unwrap();
    for _ in 0..2 {
        assert_eq!(get(&client).await, format!("HTTP/1.1 {}", upstream.address));
    }
    assert_eq!(upstream.connections(), 1);
}

#[tokio::test]
async fn http2_is_used_where_the_upstream_offers_it() {
    let directory = tempfile::tempdir().unwrap();
    let (acceptor, ca) = certificate(&directory);
    let upstream = FakeUpstream::start(Some(acceptor)).await;
    let client = client(&format!("https://{}/v4", upstream.address), Some(&ca), &no_proxy()).unwrap();
    for _ in 0..2 {
        assert_eq!(get(&client).await, "HTTP/2.0 127.0.0.1");
    }
    assert_eq!(upstream.connections(), 1);
}

#[tokio::test]
async fn redirect_is_not_followed() {
    let upstream = FakeUpstream::start(None).await;
    let client = client(&format!("http://{}/v4", upstream.address), None, &no_proxy()).unwrap();
    let error = client.get("/moved", &[]).await.unwrap_err();
    assert!(matches!(error, RequestError::Status { status: 302, .. }), "{error}");
}

#[tokio::test]
async fn errors_name_the_cause_and_never_the_key() {
    let unused = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let refused = client(&format!("http://{unused}/v4"), None, &no_proxy()).unwrap();
    let error = refused.get("/sports", &[]).await.unwrap_err();
    assert!(matches!(error, RequestError::Connect(_)) && error.to_string().contains("refused"), "{error}");

    let directory = tempfile::tempdir().unwrap();
    let (acceptor, _) = certificate(&directory);
    let upstream = FakeUpstream::start(Some(acceptor)).await;
    let untrusted = client(&format!("https://{}/v4", upstream.address), None, &no_proxy()).unwrap();
    let untrusted = untrusted.get("/sports", &[]).await.unwrap_err();
    assert!(matches!(untrusted, RequestError::Connect(_)) && untrusted.to_string().contains("certificate"));
    for error in [error, untrusted] {
        let text = format!("{error} {error:?}");
        assert!(!text.contains("secret") && !text.contains("apiKey"), "{text}");
    }
}

#[tokio::test]
async fn proxy_is_asked_for_a_tunnel_and_never_sees_the_key() {
    let directory = tempfile::tempdir().unwrap();
    let (acceptor, ca) = certificate(&directory);
    for (scheme, acceptor, port, expected) in
        [("https", Some(acceptor), 443, "HTTP/2.0 upstream.test"), ("http", None, 80, "HTTP/1.1 upstream.test")]
    {
        let upstream = FakeUpstream::start(acceptor).await;
        let (proxy, heads) = start_proxy(upstream.address).await;
        let proxies = Matcher::builder().all(format!("http://user:pass@{proxy}")).build();
        let client = client(&format!("{scheme}://{NAME}/v4"), Some(&ca), &proxies).unwrap();
        for _ in 0..2 {
            assert_eq!(get(&client).await, expected);
        }
        let heads = heads.lock().unwrap();
        assert_eq!((heads.len(), upstream.connections()), (1, 1), "{heads:?}");
        assert!(heads[0].starts_with(&format!("CONNECT {NAME}:{port} HTTP/1.1\r\n")), "{}", heads[0]);
        assert!(heads[0].contains("Proxy-Authorization: Basic dXNlcjpwYXNz\r\n"), "{}", heads[0]);
        assert!(!heads[0].contains("apiKey"), "{}", heads[0]);
    }
}

#[test]
fn proxy_is_not_used_for_loopback_and_what_no_proxy_names() {
    let proxies = Matcher::builder().all("http://proxy.test:3128").no("direct.test").build();
    let is_proxied = |upstream: &'static str| proxy_for(&Uri::from_static(upstream), &proxies).is_some();
    assert!(is_proxied("https://upstream.test/v4") && is_proxied("http://192.0.2.1/v4"));
    for direct in ["https://direct.test/v4", "http://127.0.0.1:81/v4", "http://[::1]/v4", "https://localhost/v4"] {
        assert!(!is_proxied(direct), "{direct}");
    }
}

#[test]
fn proxy_of_another_kind_is_an_error() {
    let proxies = Matcher::builder().all("socks5://proxy.test:1080").build();
    let error = client("https://upstream.test/v4", None, &proxies).unwrap_err().to_string();
    assert!(error.contains("socks5://") && error.contains("only http:// is supported"), "{error}");
}

fn quota(headers: &[(&'static str, &str)]) -> UpstreamQuota {
    let pairs = headers.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap()));
    UpstreamQuota::of(&pairs.collect::<HeaderMap>())
}

#[test]
fn quota_is_of_the_month_unless_the_upstream_names_a_day() {
    let of_month = quota(&[("x-requests-remaining", "450.0"), ("x-requests-used", "50"), ("x-requests-last", "3")]);
    assert_eq!((of_month.month, of_month.day, of_month.used, of_month.last), (Some(450), None, Some(50), Some(3)));
    let day = r#""burst";r=59;t=58, "day";r=9993;t=3600"#;
    let of_day = quota(&[("x-requests-remaining", "9993"), ("ratelimit", day)]);
    assert_eq!((of_day.remaining, of_day.month), (Some(9993), None));
    assert_eq!(of_day.day, Some(DayQuota { left: 9993, rest_s: 3600 }));
    let both = format!("{day}, \"month\";r=70;t=90000");
    let of_both = quota(&[("x-requests-remaining", "9993"), ("ratelimit", &both)]);
    assert_eq!((of_both.month, of_both.day), (Some(70), of_day.day));
    let only_month = quota(&[("x-requests-remaining", "70"), ("ratelimit", "\"burst\";r=1;t=9, \"month\";r=70;t=9")]);
    assert_eq!((only_month.month, only_month.day), (Some(70), None));
    assert!(!quota(&[("ratelimit", "\"burst\";r=1;t=9")]).is_reported());
}

#[test]
fn markets_that_an_error_names_are_those_that_were_requested() {
    let names = |markets: &str, body: &str| named(markets, body.as_bytes()).join(" ");
    let body = "{\"message\":\"Invalid markets: player_points_q1, h2h_q9 (secret)\"}";
    assert_eq!(names("h2h,player_points,player_points_q1", body), "player_points_q1");
    assert_eq!((names("h2h", body), names("", body)), (String::new(), String::new()));
}
