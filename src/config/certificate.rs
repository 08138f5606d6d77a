//! The certificate of the public listener, in its two files.

use std::fmt;
use std::path::{Path, PathBuf};

use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, pem};
use rustls::sign::CertifiedKey;

/// The files of a certificate.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CertificateFiles {
    /// The certificate chain, PEM.
    pub cert: PathBuf,
    /// The private key, PEM.
    pub key: PathBuf,
}

/// The reason for which a certificate cannot be used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct CertificateError {
    /// The key of the configuration that names the file: `cert` or `key`.
    pub key: &'static str,
    message: String,
}

impl fmt::Display for CertificateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl CertificateFiles {
    /// Reads both files.
    ///
    /// Errors: a file cannot be read, has no PEM block of its kind, or the key does not belong to the certificate.
    pub fn read(&self) -> Result<CertifiedKey, CertificateError> {
        let chain = read("cert", &self.cert, |text| {
            let chain: Vec<_> =
                CertificateDer::pem_slice_iter(text).collect::<Result<_, pem::Error>>()?;
            if chain.is_empty() {
                return Err(pem::Error::NoItemsFound);
            }
            Ok(chain)
        })?;
        let key = read("key", &self.key, PrivateKeyDer::from_pem_slice)?;
        CertifiedKey::from_der(chain, key, &default_provider()).map_err(|error| {
            let message = match error {
                rustls::Error::InconsistentKeys(_) => format!(
                    "{} is not the private key of the certificate in {}",
                    self.key.display(),
                    self.cert.display()
                ),
                other => format!("the certificate cannot be used: {other}"),
            };
            let key = "key";
            CertificateError { key, message }
        })
    }
}

fn read<T>(
    key: &'static str,
    path: &Path,
    parse: impl Fn(&[u8]) -> Result<T, pem::Error>,
) -> Result<T, CertificateError> {
    let refuse = |message| CertificateError { key, message };
    let shown = path.display();
    let text =
        std::fs::read(path).map_err(|error| refuse(format!("{shown} cannot be read: {error}")))?;
    let wanted = if key == "key" {
        "private key"
    } else {
        "certificate"
    };
    parse(&text).map_err(|error| match error {
        pem::Error::NoItemsFound => refuse(format!("{shown} holds no {wanted} in PEM form")),
        // The parser's message may repeat a line of the file.
        _ => refuse(format!("{shown} is not valid PEM")),
    })
}
