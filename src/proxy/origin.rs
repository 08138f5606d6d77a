//! Where something is that the proxy connects to: a name, its addresses, and how long to wait for it.
//!
//! Names are looked up in the background and kept in Pingora's load-balancing pools; a failed look-up keeps the
//! last good addresses. On the way of a request a name is only looked up where none has succeeded yet.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use http::{HeaderValue, Uri};
use pingora::protocols::ALPN;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;
use pingora::upstreams::peer::{HttpPeer, HttpUpstreamRequestPolicy};
use pingora::{Error, ErrorType, OrErr, Result};
use pingora_load_balancing::discovery::ServiceDiscovery;
use pingora_load_balancing::selection::RoundRobin;
use pingora_load_balancing::{Backend, Backends, LoadBalancer};

/// How often names are looked up again.
const DNS_INTERVAL: Duration = Duration::from_secs(30);
/// How long an unused connection is kept.
const IDLE_CONNECTION: Duration = Duration::from_secs(90);
/// Streams at once on one HTTP/2 connection.
const H2_STREAMS: usize = 100;

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub struct ConnectTimeouts {
    /// For a connection.
    pub connect: Duration,
    /// For one read or write.
    pub longest: Duration,
}

/// Scheme, host and port, and the addresses behind them.
pub struct Origin {
    /// What messages call it.
    name: Box<str>,
    /// `Host`.
    pub authority: HeaderValue,
    is_tls: bool,
    host: String,
    patience: ConnectTimeouts,
    pool: LoadBalancer<RoundRobin>,
}

impl Origin {
    /// The origin of a URL; its path is nobody's business here.
    ///
    /// Errors: an authority that is no header, which the configuration's checks should have found.
    pub fn new(name: &str, url: &Uri, patience: ConnectTimeouts) -> Result<Self> {
        let is_tls = url.scheme_str() == Some("https");
        let host = url.host().unwrap_or_default();
        let host = host.trim_matches(['[', ']']).to_owned();
        let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let authority = url.authority().map_or("", |authority| authority.as_str());
        let names = Names {
            host: host.clone(),
            port,
        };
        Ok(Self {
            name: name.into(),
            authority: HeaderValue::from_str(authority)
                .or_err(ErrorType::InternalError, "an authority as a header")?,
            is_tls,
            host,
            patience,
            pool: LoadBalancer::from_backends(Backends::new(Box::new(names))),
        })
    }

    /// Looks the name up; keeps the addresses known where that fails.
    pub async fn look_up(&self) -> Result<()> {
        self.pool.update().await
    }

    /// Whether its name was ever looked up with success.
    fn is_known(&self) -> bool {
        !self.pool.backends().get_backend().is_empty()
    }

    /// An address to connect to.
    ///
    /// Errors: the name cannot be looked up.
    pub async fn peer(&self) -> Result<HttpPeer> {
        let backend = match self.pool.select(b"", 16) {
            Some(backend) => backend,
            None => {
                self.look_up()
                    .await
                    .or_err(ErrorType::ConnectError, "looking a name up")?;
                self.pool
                    .select(b"", 16)
                    .ok_or_else(|| Error::explain(ErrorType::ConnectError, "no address"))?
            }
        };
        let address = backend.addr.as_inet().copied();
        let address = address
            .ok_or_else(|| Error::explain(ErrorType::ConnectError, "not an inet address"))?;
        let mut peer = HttpPeer::new(address, self.is_tls, self.host.clone());
        let options = &mut peer.options;
        options.connection_timeout = Some(self.patience.connect);
        options.total_connection_timeout = Some(self.patience.connect);
        options.idle_timeout = Some(IDLE_CONNECTION);
        options.read_timeout = Some(self.patience.longest);
        options.write_timeout = Some(self.patience.longest);
        options.max_h2_streams = H2_STREAMS;
        // Requests behind an upgrade would pass uncounted.
        options.http_upstream_request_policy = HttpUpstreamRequestPolicy::deny_upgrades();
        options.alpn = if self.is_tls { ALPN::H2H1 } else { ALPN::H1 };
        Ok(peer)
    }
}

/// The addresses of one name.
struct Names {
    host: String,
    port: u16,
}

#[async_trait]
impl ServiceDiscovery for Names {
    async fn discover(&self) -> Result<(BTreeSet<Backend>, std::collections::HashMap<u64, bool>)> {
        let found = tokio::net::lookup_host((self.host.as_str(), self.port))
            .await
            .or_err(ErrorType::ConnectError, "looking a name up")?;
        let found: Vec<SocketAddr> = found.collect();
        // Where both families answer, the older one is reached from more places.
        let has_v4 = found.iter().any(SocketAddr::is_ipv4);
        let backends = found
            .into_iter()
            .filter(|address| !has_v4 || address.is_ipv4())
            .filter_map(|address| Backend::new(&address.to_string()).ok())
            .collect();
        Ok((backends, Default::default()))
    }
}

/// Looks names up, now and then again.
pub struct DnsRefresh {
    /// Whose names are looked up from the start.
    pub always: Vec<Arc<Origin>>,
    /// Whose names are, once a request has.
    pub once_known: Vec<Arc<Origin>>,
}

#[async_trait]
impl BackgroundService for DnsRefresh {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        loop {
            let known = self.once_known.iter().filter(|origin| origin.is_known());
            for origin in self.always.iter().chain(known) {
                if let Err(error) = origin.look_up().await {
                    log::warn!("{}: {error}", origin.name);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(DNS_INTERVAL) => {}
                _ = shutdown.changed() => return,
            }
        }
    }
}
