//! Errors of invalid certificate files, and replacement of certificates.

use std::fs;
use std::path::PathBuf;

use rcgen::{CertifiedKey, generate_simple_self_signed};
use tempfile::TempDir;

use super::*;

struct TestFiles {
    directory: TempDir,
    certificate: PathBuf,
    key: PathBuf,
}

impl TestFiles {
    fn new() -> TestFiles {
        let directory = tempfile::tempdir().unwrap();
        let (certificate, key) = (directory.path().join("chain.pem"), directory.path().join("key.pem"));
        let files = TestFiles { directory, certificate, key };
        files.renew();
        files
    }

    fn renew(&self) {
        let CertifiedKey { cert, signing_key } = generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        fs::write(&self.certificate, cert.pem()).unwrap();
        fs::write(&self.key, signing_key.serialize_pem()).unwrap();
    }

    fn read(&self) -> Result<Certificate, CertificateError> {
        Certificate::read(&self.certificate, &self.key)
    }

    /// The error message, without the directory.
    fn error(&self) -> String {
        let directory = format!("{}/", self.directory.path().display());
        self.read().unwrap_err().to_string().replace(&directory, "")
    }
}

#[test]
fn invalid_file_is_reported_by_name() {
    let files = TestFiles::new();
    assert!(files.read().is_ok());
    let (certificate, key) = (fs::read(&files.certificate).unwrap(), fs::read(&files.key).unwrap());

    fs::remove_file(&files.certificate).unwrap();
    assert!(files.error().starts_with("cannot read the certificate chain.pem: No such file"), "{files:?}");
    fs::create_dir(&files.certificate).unwrap();
    assert!(files.error().starts_with("cannot read the certificate chain.pem: Is a directory"), "{files:?}");
    fs::remove_dir(&files.certificate).unwrap();

    fs::write(&files.certificate, &key).unwrap();
    assert!(files.error().starts_with("there is no certificate in chain.pem: "));
    fs::write(&files.certificate, vec![b'-'; 2 << 20]).unwrap();
    assert!(files.error().contains("it is larger than 1 MiB"));
    fs::write(&files.certificate, "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").unwrap();
    assert!(files.error().starts_with("the certificate in chain.pem cannot be used: "), "{}", files.error());
    fs::write(&files.certificate, "-----BEGIN CERTIFICATE-----\nAAAA\n").unwrap();
    assert!(files.error().starts_with("chain.pem is not a PEM file with a certificate ("));
    fs::write(&files.certificate, &certificate).unwrap();

    fs::write(&files.key, &certificate).unwrap();
    assert!(files.error().starts_with("there is no private key in key.pem: "));
    let broken = String::from_utf8(key.clone()).unwrap().replace("-----END", "!");
    fs::write(&files.key, broken).unwrap();
    assert_eq!(files.error(), "key.pem is not a PEM file with a key (it is damaged)");
    let other = TestFiles::new();
    fs::copy(&other.key, &files.key).unwrap();
    assert!(files.error().starts_with("the key key.pem does not match the certificate chain.pem: "));
    fs::write(&files.key, &key).unwrap();
    assert!(files.read().is_ok());
}

#[test]
fn replacing_with_the_same_certificate_is_no_change() {
    let files = TestFiles::new();
    let acceptor = Acceptor::new(files.read().unwrap(), Alpn::Http).unwrap();
    assert!(!acceptor.replace(files.read().unwrap()).unwrap());
    files.renew();
    assert!(acceptor.replace(files.read().unwrap()).unwrap());
    assert_eq!(format!("{:?}", files.read().unwrap()), "Certificate(…)");
}

impl fmt::Debug for TestFiles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error())
    }
}
