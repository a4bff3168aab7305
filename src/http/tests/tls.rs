//! The listener under TLS: versions and protocols, the certificate, bounds.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::{
    ClientConfig, DigitallySignedStruct, ProtocolVersion, SignatureScheme, SupportedProtocolVersion, version,
};
use rustls_pki_types::{CertificateDer, ServerName, UnixTime};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::sockets::{PATIENCE, Server, short};
use crate::http::Options;
use crate::tls::{Acceptor, Alpn, Certificate};

/// A certificate made for the test, as a server has it.
fn certificate() -> Certificate {
    let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let (chain, key) = (directory.path().join("chain.pem"), directory.path().join("key.pem"));
    std::fs::write(&chain, cert.pem()).unwrap();
    std::fs::write(&key, signing_key.serialize_pem()).unwrap();
    Certificate::read(&chain, &key).unwrap()
}

pub(super) fn acceptor() -> Arc<Acceptor> {
    Arc::new(Acceptor::new(certificate(), Alpn::Http).unwrap())
}

async fn server(acceptor: &Arc<Acceptor>) -> Server {
    Server::start(Options { tls: Some(Arc::clone(acceptor)), ..Options::default() }).await
}

/// Accepts any certificate: the tests compare it afterwards.
#[derive(Debug)]
struct AnyCertificate(CryptoProvider);

impl ServerCertVerifier for AnyCertificate {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.0.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}

async fn connect(
    server: &Server,
    versions: &[&'static SupportedProtocolVersion],
    alpn: &[&[u8]],
) -> std::io::Result<TlsStream<TcpStream>> {
    handshake(server.connect().await, versions, alpn).await
}

pub(super) async fn handshake<S: AsyncRead + AsyncWrite + Unpin>(
    stream: S,
    versions: &[&'static SupportedProtocolVersion],
    alpn: &[&[u8]],
) -> std::io::Result<TlsStream<S>> {
    let provider = ring::default_provider();
    let mut config = ClientConfig::builder_with_provider(Arc::new(provider.clone()))
        .with_protocol_versions(versions)
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(AnyCertificate(provider)))
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

fn shown(stream: &TlsStream<TcpStream>) -> CertificateDer<'static> {
    stream.get_ref().1.peer_certificates().unwrap()[0].clone().into_owned()
}

/// One GET on a connection that speaks HTTP/1.1 and stays open.
async fn get(server: &Server, stream: &mut TlsStream<TcpStream>) -> String {
    stream.write_all(server.head("/v1/books").as_bytes()).await.unwrap();
    let mut text = Vec::new();
    while !text.ends_with(b"}]") {
        assert_ne!(stream.read_buf(&mut text).await.unwrap(), 0, "{}", String::from_utf8_lossy(&text));
    }
    String::from_utf8(text).unwrap()
}

#[tokio::test]
async fn both_versions_of_tls_and_http_1_without_alpn() {
    let server = server(&acceptor()).await;
    for (asked, expected) in [(&version::TLS12, ProtocolVersion::TLSv1_2), (&version::TLS13, ProtocolVersion::TLSv1_3)]
    {
        for alpn in [&[][..], &[&b"http/1.1"[..]]] {
            let mut stream = connect(&server, &[asked], alpn).await.unwrap();
            assert_eq!(stream.get_ref().1.protocol_version(), Some(expected));
            for _ in 0..5 {
                assert!(get(&server, &mut stream).await.starts_with("HTTP/1.1 200 OK\r\n"));
            }
        }
    }
    assert_eq!(server.stop().await.dropped, 0);
}

#[tokio::test]
async fn http_2_by_alpn() {
    let server = server(&acceptor()).await;
    for version in [&version::TLS12, &version::TLS13] {
        let stream = connect(&server, &[version], &[b"h2", b"http/1.1"]).await.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let io = TokioIo::new(stream);
        let (mut client, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io).await.unwrap();
        let driven = tokio::spawn(connection);
        for _ in 0..3 {
            let request = hyper::Request::get(format!("https://{}/v1/books", server.address))
                .header("x-api-key", server.key())
                .body(Empty::<Bytes>::new())
                .unwrap();
            let answer = client.send_request(request).await.unwrap();
            assert_eq!((answer.status().as_u16(), answer.version()), (200, hyper::Version::HTTP_2));
            let body = answer.into_body().collect().await.unwrap().to_bytes();
            assert!(body.starts_with(b"[{\"key\":\"bet365\""));
        }
        drop(client);
        driven.await.unwrap().unwrap();
    }
}

/// Prior knowledge is for plain text only.
#[tokio::test]
async fn http_2_without_alpn_is_refused() {
    let server = server(&acceptor()).await;
    let mut stream = connect(&server, &[&version::TLS13], &[b"http/1.1"]).await.unwrap();
    stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let mut text = Vec::new();
    let _ = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut text)).await.unwrap();
    assert!(!text.starts_with(b"\0\0"), "a frame of HTTP/2 was sent");
}

#[tokio::test]
async fn handshake_without_a_common_protocol_is_refused() {
    let server = server(&acceptor()).await;
    assert!(connect(&server, &[&version::TLS13], &[b"smtp"]).await.is_err());
}

/// The first record that a server sends in answer to a `ClientHello` of the given version, which is written out byte by
/// byte, as rustls does not speak TLS 1.1.
async fn first_record(server: &Server, version: [u8; 2]) -> Vec<u8> {
    let suites = [0xc0, 0x2b, 0xc0, 0x09];
    let groups = [0, 10, 0, 4, 0, 2, 0, 0x1d];
    let signatures = [0, 13, 0, 4, 0, 2, 4, 3];
    let points = [0, 11, 0, 2, 1, 0];
    let mut hello = version.to_vec();
    hello.extend([7; 32]);
    hello.extend([0, 0, 4].into_iter().chain(suites).chain([1, 0]));
    hello.extend([0, 22].into_iter().chain(groups).chain(signatures).chain(points));
    let length = u8::try_from(hello.len()).unwrap();
    let mut stream = server.connect().await;
    stream.write_all(&[0x16, 0x03, 0x01, 0, length + 4, 1, 0, 0, length]).await.unwrap();
    stream.write_all(&hello).await.unwrap();
    let mut head = [0; 5];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut head)).await.unwrap().unwrap();
    let mut record = vec![0; usize::from(head[4])];
    stream.read_exact(&mut record).await.unwrap();
    record.insert(0, head[0]);
    record
}

#[tokio::test]
async fn tls_1_1_is_refused() {
    let server = server(&acceptor()).await;
    let (handshake, alert) = (0x16, 0x15);
    assert_eq!(first_record(&server, [3, 3]).await[..2], [handshake, 2], "the hello is sound");
    // Fatal, protocol_version.
    assert_eq!(first_record(&server, [3, 2]).await, [alert, 2, 70]);
}

#[tokio::test]
async fn replaced_certificate_is_shown_to_new_connections_and_open_ones_stay() {
    let acceptor = acceptor();
    let server = server(&acceptor).await;
    let mut old = connect(&server, &[&version::TLS13], &[]).await.unwrap();
    get(&server, &mut old).await;
    assert!(acceptor.replace(certificate()).unwrap());
    let mut new = connect(&server, &[&version::TLS13], &[]).await.unwrap();
    assert_ne!(shown(&old), shown(&new));
    get(&server, &mut new).await;
    get(&server, &mut old).await;
}

#[tokio::test]
async fn connection_takes_a_slot_before_its_handshake() {
    let server = Server::start(Options { tls: Some(acceptor()), connections_max: 1, ..short(60_000, 60_000) }).await;
    let silent = server.connect().await;
    let versions = [&version::TLS13];
    let mut second = Box::pin(connect(&server, &versions, &[]));
    // It waits in the kernel's queue for as long as the first one has the slot.
    let turns = async {
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        result = &mut second => panic!("served beyond the bound: {result:?}"),
        () = turns => {}
    }
    drop(silent);
    let mut second = tokio::time::timeout(PATIENCE, second).await.unwrap().unwrap();
    get(&server, &mut second).await;
}
