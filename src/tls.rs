//! TLS for listeners: a certificate with its key from two PEM files, and the handshake.
//!
//! An [`Acceptor`] belongs to one listener and is shared by its connections. A replaced certificate applies to new
//! connections only. TLS 1.2 and 1.3, nothing older. The listener bounds the duration of a handshake. A private key
//! never appears in a log, an error or `Debug`.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::{Error as PemError, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;

pub use tokio_rustls::server::TlsStream;

/// Far more than any certificate chain needs.
const FILE_BYTES_MAX: u64 = 1 << 20;

const H2: &[u8] = b"h2";

/// The application protocols that a listener offers in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alpn {
    /// HTTP/2 or HTTP/1.1, as the client prefers.
    Http,
    /// HTTP/1.1 only.
    Http1,
    /// No protocol negotiation.
    Unnamed,
}

impl Alpn {
    fn names(self) -> Vec<Vec<u8>> {
        match self {
            Alpn::Http => vec![H2.to_vec(), b"http/1.1".to_vec()],
            Alpn::Http1 => vec![b"http/1.1".to_vec()],
            Alpn::Unnamed => Vec::new(),
        }
    }
}

/// Why a certificate cannot be used. Each message names the file.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("cannot read the {what} {path}: {error}; name a PEM file with tls.{what}", path = path.display())]
    Unreadable { what: &'static str, path: PathBuf, error: io::Error },
    #[error("{path} is not a PEM file with a {what} ({detail})", path = path.display())]
    NotPem { what: &'static str, path: PathBuf, detail: String },
    #[error("there is no certificate in {path}: it takes the server's certificate, followed by its chain", path = path.display())]
    NoCertificate { path: PathBuf },
    #[error("there is no private key in {path}: it takes one in PKCS#8, PKCS#1 or SEC1 form, without a passphrase", path = path.display())]
    NoKey { path: PathBuf },
    #[error("the private key in {path} cannot be used ({error}): it takes RSA, ECDSA P-256 or P-384, or Ed25519", path = path.display())]
    UnusableKey { path: PathBuf, error: rustls::Error },
    #[error("the certificate in {path} cannot be used: {error}", path = path.display())]
    UnusableCertificate { path: PathBuf, error: rustls::Error },
    #[error(
        "the key {key} does not match the certificate {certificate}: name the key that the certificate was made for",
        key = key.display(), certificate = certificate.display()
    )]
    Mismatch { certificate: PathBuf, key: PathBuf },
}

/// A certificate chain and the private key of its first certificate.
#[derive(Clone)]
pub struct Certificate(Arc<CertifiedKey>);

impl fmt::Debug for Certificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certificate(…)")
    }
}

impl Certificate {
    /// Reads both files and checks that they belong together.
    pub fn read(certificate: &Path, key: &Path) -> Result<Certificate, CertificateError> {
        let chain = chain(certificate)?;
        let key_der = private_key(key)?;
        let provider = ring::default_provider();
        let signing = provider
            .key_provider
            .load_private_key(key_der)
            .map_err(|error| CertificateError::UnusableKey { path: key.to_owned(), error })?;
        let certified = CertifiedKey::new(chain, signing);
        match certified.keys_match() {
            // Accepted: for some keys rustls cannot tell whether they match.
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {
                Ok(Certificate(Arc::new(certified)))
            }
            Err(rustls::Error::InconsistentKeys(_)) => {
                Err(CertificateError::Mismatch { certificate: certificate.to_owned(), key: key.to_owned() })
            }
            Err(error) => Err(CertificateError::UnusableCertificate { path: certificate.to_owned(), error }),
        }
    }

    /// Whether both have the same chain.
    fn is_same_as(&self, other: &Certificate) -> bool {
        self.0.cert == other.0.cert
    }
}

fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    const WHAT: &str = "certificate";
    let pem = contents(path, WHAT)?;
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|error| CertificateError::NotPem { what: WHAT, path: path.to_owned(), detail: error.to_string() })?;
    if chain.is_empty() { Err(CertificateError::NoCertificate { path: path.to_owned() }) } else { Ok(chain) }
}

fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, CertificateError> {
    const WHAT: &str = "key";
    // The parser's message may quote the key, so it is not passed on.
    PrivateKeyDer::from_pem_slice(&contents(path, WHAT)?).map_err(|error| match error {
        PemError::NoItemsFound => CertificateError::NoKey { path: path.to_owned() },
        _ => CertificateError::NotPem { what: WHAT, path: path.to_owned(), detail: "it is damaged".to_owned() },
    })
}

fn contents(path: &Path, what: &'static str) -> Result<Vec<u8>, CertificateError> {
    let unreadable = |error| CertificateError::Unreadable { what, path: path.to_owned(), error };
    let mut bytes = Vec::new();
    File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)).map_err(unreadable)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(unreadable(io::Error::other("it is larger than 1 MiB")));
    }
    Ok(bytes)
}

/// The server side of TLS handshakes for one listener.
#[derive(Debug)]
pub struct Acceptor {
    alpn: Alpn,
    current: ArcSwap<ActiveConfig>,
}

/// A certificate and its TLS configuration, which holds the session cache: sessions end with the certificate.
#[derive(Debug)]
struct ActiveConfig {
    certificate: Certificate,
    config: Arc<ServerConfig>,
}

impl ActiveConfig {
    fn new(certificate: Certificate, alpn: Alpn) -> Result<Self, rustls::Error> {
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(Arc::clone(&certificate.0))));
        config.alpn_protocols = alpn.names();
        Ok(ActiveConfig { certificate, config: Arc::new(config) })
    }
}

impl Acceptor {
    pub fn new(certificate: Certificate, alpn: Alpn) -> Result<Acceptor, rustls::Error> {
        let current = ArcSwap::from_pointee(ActiveConfig::new(certificate, alpn)?);
        Ok(Acceptor { alpn, current })
    }

    /// Uses `certificate` from the next handshake on. Returns whether it differs from the current one.
    pub fn replace(&self, certificate: Certificate) -> Result<bool, rustls::Error> {
        let is_other = !self.current.load().certificate.is_same_as(&certificate);
        self.current.store(Arc::new(ActiveConfig::new(certificate, self.alpn)?));
        Ok(is_other)
    }

    /// Performs the handshake. There is no timeout here: the caller sets one.
    pub async fn accept<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> io::Result<TlsStream<S>> {
        TlsAcceptor::from(Arc::clone(&self.current.load().config)).accept(stream).await
    }
}

/// Whether the handshake negotiated HTTP/2.
pub fn negotiated_h2<S>(stream: &TlsStream<S>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(H2)
}

#[cfg(test)]
mod tests;
