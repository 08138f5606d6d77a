//! TLS in front of a scripted server: a certificate authority for the test, and certificates that it signs.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivatePkcs8KeyDer;
use tokio::io::copy_bidirectional;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

use super::upstream::Upstream;

/// A certificate authority, which no system trusts by default.
pub struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    /// A new one.
    pub fn new() -> Authority {
        let mut params = CertificateParams::new([]).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        Authority(CertifiedIssuer::self_signed(params, key).unwrap())
    }

    /// Its own certificate, for clients that trust it.
    pub fn pem(&self) -> String {
        self.0.pem()
    }

    /// A certificate for this name and its private key, PEM.
    pub fn issue(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        // With the authority's own name it would look self-signed.
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    /// TLS in front of a server, with a certificate for this name.
    pub fn vouch(&self, name: &str, behind: &Upstream) -> Front {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new([name.to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .unwrap();
        Front::start(config, behind.address())
    }
}

/// A TLS listener. It closes when it is dropped.
pub struct Front {
    port: u16,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Front {
    fn start(config: ServerConfig, behind: SocketAddr) -> Front {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        listener.set_nonblocking(true).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (stop, stopped) = oneshot::channel();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            runtime.block_on(async {
                tokio::select! {
                    () = accept(listener, acceptor, behind) => {}
                    _ = stopped => {}
                }
            });
        });
        Front {
            port,
            stop: Some(stop),
            thread: Some(thread),
        }
    }

    /// `https://localhost:PORT`, the base of a URL.
    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            _ = thread.join();
        }
    }
}

async fn accept(listener: TcpListener, acceptor: TlsAcceptor, behind: SocketAddr) {
    let listener = tokio::net::TcpListener::from_std(listener).unwrap();
    let mut connections = JoinSet::new();
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let acceptor = acceptor.clone();
        connections.spawn(async move {
            // A client that does not trust the certificate closes here.
            let Ok(mut front) = acceptor.accept(stream).await else {
                return;
            };
            let mut back = TcpStream::connect(behind).await.unwrap();
            _ = copy_bidirectional(&mut front, &mut back).await;
        });
    }
}
