//! TLS on the public listener. The certificate is read again when its files change.
//!
//! The handshake counts against the limit on connections and the time of a request head. Pingora's own TLS listener
//! has neither limit.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use async_trait::async_trait;
use pingora::listeners::tls::Acceptor;
use pingora::protocols::Stream;
use pingora::protocols::l4::stream::Stream as TcpStream;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;
use rustls::ServerConfig;
use rustls::crypto::ring::default_provider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;

use crate::config::{CertificateError, CertificateFiles};

/// The interval at which the files are checked.
const WATCH_INTERVAL: Duration = Duration::from_secs(1);

/// Accepts TLS connections.
pub struct Tls {
    acceptor: Acceptor,
}

/// The certificate that new connections get.
#[derive(Debug)]
struct CurrentCertificate(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl Tls {
    /// Reads the certificate. Also returns the service that reads it again when its files change.
    ///
    /// Errors: the files are unusable, or the crypto library refuses its own defaults.
    pub fn new(
        files: &CertificateFiles,
        http2: bool,
    ) -> Result<(Self, CertificateRefresh), TlsError> {
        let certificate = files.read().map_err(TlsError::Certificate)?;
        let current = Arc::new(CurrentCertificate(ArcSwap::from_pointee(certificate)));
        let mut config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(TlsError::Library)?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&current) as _);
        let protocols: &[&[u8]] = if http2 {
            &[b"h2", b"http/1.1"]
        } else {
            &[b"http/1.1"]
        };
        config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
        let refresh = CertificateRefresh {
            files: files.clone(),
            current,
        };
        let acceptor = Acceptor::from_server_config(Arc::new(config));
        Ok((Self { acceptor }, refresh))
    }

    /// Returns the encrypted connection, or `None` if the client does not finish the handshake.
    pub async fn accept(&self, stream: Stream) -> Option<Stream> {
        let stream = stream.into_any().downcast::<TcpStream>().ok()?;
        match self.acceptor.tls_handshake(*stream).await {
            Ok(stream) => Some(Box::new(stream)),
            Err(error) => {
                log::debug!("listen.tls: {error}");
                None
            }
        }
    }
}

/// The reason for which TLS does not start.
#[derive(Debug)]
pub enum TlsError {
    Certificate(CertificateError),
    /// The crypto library refused.
    Library(rustls::Error),
}

impl std::fmt::Display for TlsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Certificate(error) => write!(f, "listen.tls.{}: {error}", error.key),
            Self::Library(error) => write!(f, "listen.tls: {error}"),
        }
    }
}

/// Reads the certificate again when its files change. An unusable pair leaves the previous one in force.
pub struct CertificateRefresh {
    files: CertificateFiles,
    current: Arc<CurrentCertificate>,
}

impl CertificateRefresh {
    /// Reads the files. Returns the reason if they cannot be used.
    fn refresh(&self) -> Option<CertificateError> {
        match self.files.read() {
            Ok(read) => {
                if read.cert != self.current.0.load().cert {
                    self.current.0.store(Arc::new(read));
                    log::info!("listen.tls: new connections get the new certificate");
                }
                None
            }
            Err(error) => Some(error),
        }
    }
}

#[async_trait]
impl BackgroundService for CertificateRefresh {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let mut reported = None;
        loop {
            tokio::select! {
                () = tokio::time::sleep(WATCH_INTERVAL) => {}
                _ = shutdown.changed() => return,
            }
            // The files are small, and links to them may change without a new time, so reading them is simplest.
            let error = tokio::task::block_in_place(|| self.refresh());
            // Between the writes of the two files they do not match. So only an error that persists is reported, and
            // only once.
            if error.is_some() && error != reported {
                let message = error.as_ref().map(ToString::to_string).unwrap_or_default();
                log::warn!("listen.tls: the certificate in force stays: {message}");
            }
            reported = error;
        }
    }
}
