//! Certificates for tests, and connections of a client that trusts only one of them.

use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::crypto::ring;
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::Answer;

/// A byte stream, plain or under TLS.
pub trait Wire: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Wire for T {}

/// A certificate for `localhost` and its key, in files.
#[derive(Debug)]
pub struct Certificates {
    directory: tempfile::TempDir,
}

impl Certificates {
    pub fn new() -> Self {
        Certificates { directory: tempfile::tempdir().expect("a directory") }
    }

    /// An existing certificate, and what a client needs to trust it.
    pub fn made() -> (Self, CertificateDer<'static>) {
        let files = Certificates::new();
        let trusted = files.renew();
        (files, trusted)
    }

    fn file(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn chain(&self) -> String {
        self.file("chain.pem").display().to_string()
    }

    pub fn key(&self) -> String {
        self.file("key.pem").display().to_string()
    }

    /// Creates a new certificate and key; returns what a client needs to trust it.
    pub fn renew(&self) -> CertificateDer<'static> {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).expect("a key");
        fs::write(self.file("chain.pem"), cert.pem()).expect("a file");
        fs::write(self.file("key.pem"), signing_key.serialize_pem()).expect("a file");
        cert.der().clone()
    }

    /// The environment variables that configure them.
    pub fn variables(&self) -> [(&'static str, String); 2] {
        [("ODDSBOX_TLS_CERTIFICATE", self.chain()), ("ODDSBOX_TLS_KEY", self.key())]
    }
}

/// A TLS connection; `None` if the handshake fails. Without protocol names none is negotiated.
pub async fn connect_trusting(
    trusted: &CertificateDer<'static>,
    address: SocketAddr,
    speaks: &[&str],
) -> Option<Box<dyn Wire>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.clone()).expect("a certificate");
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = speaks.iter().map(|name| name.as_bytes().to_vec()).collect();
    let stream = TcpStream::connect(address).await.expect("a connection");
    stream.set_nodelay(true).expect("a socket");
    let name = ServerName::try_from("localhost").expect("a name");
    let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await.ok()?;
    Some(Box::new(stream))
}

/// Sends a whole request that closes its connection and reads the response; `None` if the handshake fails.
pub async fn ask_trusting(trusted: &CertificateDer<'static>, address: SocketAddr, request: &str) -> Option<Answer> {
    let mut stream = connect_trusting(trusted, address, &[]).await?;
    stream.write_all(request.as_bytes()).await.expect("a request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.expect("an answer");
    Some(Answer::parse(&answer))
}

/// GET on a new connection.
pub async fn get_trusting(trusted: &CertificateDer<'static>, address: SocketAddr, path: &str) -> Option<Answer> {
    let request = format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    ask_trusting(trusted, address, &request).await
}
