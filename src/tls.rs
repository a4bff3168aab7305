//! TLS for whatever listens: a certificate with its key from two PEM files, and the handshake.
//!
//! An [`Acceptor`] belongs to one door and is shared by its connections. Replacing its certificate concerns connections
//! that come later; those that are open go on with what they began. TLS 1.2 and 1.3, nothing older. How long a
//! handshake may take is the door's business: it bounds the wait for [`Acceptor::accept`]. A private key is in no log,
//! error or `Debug`.

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

/// Far more than any chain of certificates takes.
const FILE_BYTES_MAX: u64 = 1 << 20;

const H2: &[u8] = b"h2";

/// What a door speaks under TLS, to be agreed on in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// HTTP/2 or HTTP/1.1, as the client prefers.
    Http,
    /// HTTP/1.1 alone.
    Http1,
    /// Something that has no name in the handshake.
    Unnamed,
}

impl Speaks {
    fn names(self) -> Vec<Vec<u8>> {
        match self {
            Speaks::Http => vec![H2.to_vec(), b"http/1.1".to_vec()],
            Speaks::Http1 => vec![b"http/1.1".to_vec()],
            Speaks::Unnamed => Vec::new(),
        }
    }
}

/// Why two files are no certificate to serve with. Each message names the file.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    #[error("the {what} {path} cannot be read ({error}): name a PEM file with tls.{what}", path = path.display())]
    Unreadable { what: &'static str, path: PathBuf, error: io::Error },
    #[error("{path} is no PEM file of a {what} ({detail})", path = path.display())]
    NotPem { what: &'static str, path: PathBuf, detail: String },
    #[error("there is no certificate in {path}: it takes the server's own, then those that vouch for it", path = path.display())]
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

/// A chain of certificates and the private key of its first.
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
            // A key that cannot tell what it belongs to is given the benefit of the doubt.
            Ok(()) | Err(rustls::Error::InconsistentKeys(rustls::InconsistentKeys::Unknown)) => {
                Ok(Certificate(Arc::new(certified)))
            }
            Err(rustls::Error::InconsistentKeys(_)) => {
                Err(CertificateError::Mismatch { certificate: certificate.to_owned(), key: key.to_owned() })
            }
            Err(error) => Err(CertificateError::UnusableCertificate { path: certificate.to_owned(), error }),
        }
    }

    /// Whether clients are shown the same.
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
    // What is wrong with the file's text may quote it: only the kind of mistake is told.
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

/// The server's side of handshakes at one door.
#[derive(Debug)]
pub struct Acceptor {
    speaks: Speaks,
    current: ArcSwap<Current>,
}

/// A certificate and what was made of it. Sessions are remembered here, so they end with the certificate.
#[derive(Debug)]
struct Current {
    certificate: Certificate,
    config: Arc<ServerConfig>,
}

impl Current {
    fn new(certificate: Certificate, speaks: Speaks) -> Result<Self, rustls::Error> {
        let provider = Arc::new(ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(rustls::sign::SingleCertAndKey::from(Arc::clone(&certificate.0))));
        config.alpn_protocols = speaks.names();
        Ok(Current { certificate, config: Arc::new(config) })
    }
}

impl Acceptor {
    pub fn new(certificate: Certificate, speaks: Speaks) -> Result<Acceptor, rustls::Error> {
        let current = ArcSwap::from_pointee(Current::new(certificate, speaks)?);
        Ok(Acceptor { speaks, current })
    }

    /// Shows another certificate from the next handshake on; whether it is another one.
    pub fn replace(&self, certificate: Certificate) -> Result<bool, rustls::Error> {
        let is_other = !self.current.load().certificate.is_same_as(&certificate);
        self.current.store(Arc::new(Current::new(certificate, self.speaks)?));
        Ok(is_other)
    }

    /// Shakes hands. Waits for the client without a bound of its own.
    pub async fn accept<S: AsyncRead + AsyncWrite + Unpin>(&self, stream: S) -> io::Result<TlsStream<S>> {
        TlsAcceptor::from(Arc::clone(&self.current.load().config)).accept(stream).await
    }
}

/// Whether HTTP/2 was agreed on in the handshake.
pub fn agreed_on_h2<S>(stream: &TlsStream<S>) -> bool {
    stream.get_ref().1.alpn_protocol() == Some(H2)
}

#[cfg(test)]
mod tests;
