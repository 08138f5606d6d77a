//! Origins to which the proxy connects: a name, its addresses and its timeouts.
//!
//! Names are resolved in the background and stored in Pingora's pools of backends. A failed resolution keeps the last
//! good addresses. A request resolves a name only if no resolution has succeeded yet. If the operator wishes,
//! Pingora's health checks ask the addresses periodically, and addresses that do not respond are skipped.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use http::uri::Authority;
use http::{HeaderValue, Method, Uri, header};
use pingora::http::RequestHeader;
use pingora::protocols::ALPN;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;
use pingora::upstreams::peer::{HttpPeer, HttpUpstreamRequestPolicy};
use pingora::{Error, ErrorType, OrErr, Result};
use pingora_load_balancing::discovery::ServiceDiscovery;
use pingora_load_balancing::health_check::{HealthCheck, HttpHealthCheck, TcpHealthCheck};
use pingora_load_balancing::{Backend, Backends};

use crate::outbound::is_public;

/// The time between two resolutions of a name.
const DNS_INTERVAL: Duration = Duration::from_secs(30);
/// How long an unused connection stays open.
const IDLE_CONNECTION_TIMEOUT: Duration = Duration::from_secs(90);
/// How long a health check waits for a connection, and for a reply.
const CHECK_TIMEOUT: Duration = Duration::from_secs(2);
/// The number of health checks in a row that have to fail.
const FAILED_CHECKS: usize = 2;
/// The maximum of concurrent streams on one HTTP/2 connection.
const MAX_H2_STREAMS: usize = 100;

/// The timeouts of a connection to an origin.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ConnectTimeouts {
    pub connect: Duration,
    /// The time of one read or write.
    pub read_write: Duration,
}

/// The addresses that a name may have. Source: docs/hostile-input.md 41.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Reach {
    /// All addresses. The operator wrote the name.
    Anywhere,
    /// Public addresses. The name is built in.
    Public,
}

/// Scheme, host and port, and the addresses behind them.
pub struct Origin {
    /// The name in log messages.
    name: Box<str>,
    /// The value of `Host`.
    pub authority: HeaderValue,
    is_tls: bool,
    host: String,
    timeouts: ConnectTimeouts,
    backends: Backends,
    /// The time between two health checks, or `None` without health checks.
    check_interval: Option<Duration>,
    /// Counts peers, to take the addresses in turn.
    next: AtomicUsize,
}

impl Origin {
    /// Returns the origin of a URL. The path of the URL is ignored.
    ///
    /// Errors: the authority is not a valid header value; the checks of the configuration should have found that.
    pub fn new(
        name: &str,
        url: &Uri,
        timeouts: ConnectTimeouts,
        reach: Reach,
    ) -> Result<Self, String> {
        let is_tls = url.scheme_str() == Some("https");
        let host = url.host().unwrap_or_default();
        let host = host.trim_matches(['[', ']']).to_owned();
        let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let authority = url.authority().map_or("", |authority| authority.as_str());
        let resolver = Resolver {
            host: host.clone(),
            port,
            reach,
        };
        Ok(Self {
            name: name.into(),
            authority: HeaderValue::from_str(authority)
                .map_err(|error| format!("{name}: the authority as a header: {error}"))?,
            is_tls,
            host,
            timeouts,
            backends: Backends::new(Box::new(resolver)),
            check_interval: None,
            next: AtomicUsize::new(0),
        })
    }

    /// Returns the same origin with health checks. They request `path`, which has to give a status of success, or
    /// only connect if there is no path.
    ///
    /// Errors: the path is not valid in a request.
    pub fn with_health_checks(
        mut self,
        path: Option<&str>,
        interval: Duration,
    ) -> Result<Self, String> {
        let check = self.health_check(path)?;
        self.backends.set_health_check(check);
        self.check_interval = Some(interval);
        Ok(self)
    }

    fn health_check(
        &self,
        path: Option<&str>,
    ) -> Result<Box<dyn HealthCheck + Send + Sync>, String> {
        let Some(path) = path else {
            let mut check = match self.is_tls {
                true => TcpHealthCheck::new_tls(&self.host),
                false => TcpHealthCheck::new(),
            };
            check.consecutive_failure = FAILED_CHECKS;
            check.peer_template.options.connection_timeout = Some(CHECK_TIMEOUT);
            return Ok(check);
        };
        let mut check = HttpHealthCheck::new(&self.host, self.is_tls);
        let wrong =
            |error: Box<Error>| format!("{}: the path of health checks: {error}", self.name);
        check.req = RequestHeader::build(Method::GET, path.as_bytes(), None).map_err(wrong)?;
        let host = check.req.insert_header(header::HOST, &self.authority);
        host.map_err(wrong)?;
        check.consecutive_failure = FAILED_CHECKS;
        let options = &mut check.peer_template.options;
        options.connection_timeout = Some(CHECK_TIMEOUT);
        options.read_timeout = Some(CHECK_TIMEOUT);
        check.validator = Some(Box::new(|head| match head.status.is_success() {
            true => Ok(()),
            false => Error::e_explain(
                ErrorType::HTTPStatus(head.status.as_u16()),
                "a health check",
            ),
        }));
        Ok(Box::new(check))
    }

    /// Returns the URL of the origin, without a path.
    pub fn url(&self) -> String {
        let scheme = if self.is_tls { "https" } else { "http" };
        format!("{scheme}://{}", self.authority.to_str().unwrap_or_default())
    }

    /// Returns its host and its port.
    pub fn host_and_port(&self) -> (&str, u16) {
        let authority = self.authority.to_str().unwrap_or_default();
        let usual = if self.is_tls { 443 } else { 80 };
        let port = authority.parse::<Authority>();
        let port = port.ok().and_then(|authority| authority.port_u16());
        (&self.host, port.unwrap_or(usual))
    }

    /// Returns whether its health is checked.
    pub fn has_health_checks(&self) -> bool {
        self.check_interval.is_some()
    }

    /// Returns whether the health checks have found an address that is up, or have not run yet.
    pub fn is_up(&self) -> bool {
        let backends = self.backends.get_backend();
        !self.has_health_checks()
            || backends.is_empty()
            || backends.iter().any(|backend| self.backends.ready(backend))
    }

    /// Resolves the name. A failure keeps the known addresses.
    pub async fn resolve(&self) -> Result<()> {
        self.backends.update(|_| {}).await
    }

    /// Returns whether the name was ever resolved.
    fn is_resolved(&self) -> bool {
        !self.backends.get_backend().is_empty()
    }

    /// Returns one of the known addresses in turn; with health checks one that is up, if any is. Pingora's own
    /// selection would hash each address three times, even without health checks.
    fn address(&self) -> Option<SocketAddr> {
        let backends = self.backends.get_backend();
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let turn = turn.checked_rem(backends.len())?;
        let mut backend = backends.iter().nth(turn)?;
        if self.has_health_checks() && !self.backends.ready(backend) {
            let mut in_turn = backends.iter().cycle().skip(turn).take(backends.len());
            let up = in_turn.find(|other| self.backends.ready(other));
            backend = up.unwrap_or(backend);
        }
        backend.addr.as_inet().copied()
    }

    /// Returns the names and addresses that a provider's texts must not reveal: the host and its addresses, each also
    /// with the port.
    pub fn revealing(&self) -> Vec<String> {
        let backends = self.backends.get_backend();
        let addresses = backends
            .iter()
            .filter_map(|backend| backend.addr.as_inet().copied());
        let authority = self.authority.to_str().unwrap_or_default();
        let mut all = vec![self.host.clone(), authority.to_owned()];
        all.extend(addresses.flat_map(|address| [address.ip().to_string(), address.to_string()]));
        all
    }

    /// Resolves the name and returns one of its addresses.
    async fn first_address(&self) -> Result<SocketAddr> {
        self.resolve()
            .await
            .or_err(ErrorType::ConnectError, "looking a name up")?;
        self.address()
            .ok_or_else(|| Error::explain(ErrorType::ConnectError, "no address"))
    }

    /// Returns the peer to connect to, with one of the addresses in turn.
    ///
    /// Errors: the name cannot be resolved.
    pub async fn peer(&self) -> Result<HttpPeer> {
        let address = match self.address() {
            Some(address) => address,
            // Boxed, because only the first request of an origin resolves a name here.
            None => Box::pin(self.first_address()).await?,
        };
        let mut peer = HttpPeer::new(address, self.is_tls, self.host.clone());
        let options = &mut peer.options;
        options.connection_timeout = Some(self.timeouts.connect);
        options.total_connection_timeout = Some(self.timeouts.connect);
        options.idle_timeout = Some(IDLE_CONNECTION_TIMEOUT);
        options.read_timeout = Some(self.timeouts.read_write);
        options.write_timeout = Some(self.timeouts.read_write);
        options.max_h2_streams = MAX_H2_STREAMS;
        // Requests on an upgraded connection would not be counted.
        options.http_upstream_request_policy = HttpUpstreamRequestPolicy::deny_upgrades();
        options.alpn = if self.is_tls { ALPN::H2H1 } else { ALPN::H1 };
        Ok(peer)
    }
}

/// Resolves one name to its addresses.
struct Resolver {
    host: String,
    port: u16,
    reach: Reach,
}

#[async_trait]
impl ServiceDiscovery for Resolver {
    async fn discover(&self) -> Result<(BTreeSet<Backend>, std::collections::HashMap<u64, bool>)> {
        let addresses = tokio::net::lookup_host((self.host.as_str(), self.port))
            .await
            .or_err(ErrorType::ConnectError, "looking a name up")?;
        let addresses: Vec<SocketAddr> = addresses.collect();
        let mut public = addresses.iter().map(|address| is_public(address.ip()));
        if self.reach == Reach::Public && !public.all(|is_public| is_public) {
            let message =
                "the name has an address that is not public, and it is not in the configuration";
            return Error::e_explain(ErrorType::ConnectError, message);
        }
        // If a name has addresses of both families, IPv4 is preferred, because more networks can reach it.
        let has_v4 = addresses.iter().any(SocketAddr::is_ipv4);
        let backends = addresses
            .into_iter()
            .filter(|address| !has_v4 || address.is_ipv4())
            .filter_map(|address| Backend::new(&address.to_string()).ok())
            .collect();
        Ok((backends, Default::default()))
    }
}

/// Resolves names in the background periodically.
pub struct DnsRefresh {
    pub eager: Vec<Arc<Origin>>,
    /// Origins that are refreshed after a request has resolved them.
    pub lazy: Vec<Arc<Origin>>,
}

#[async_trait]
impl BackgroundService for DnsRefresh {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        loop {
            let resolved = self.lazy.iter().filter(|origin| origin.is_resolved());
            for origin in self.eager.iter().chain(resolved) {
                if let Err(error) = origin.resolve().await {
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

/// Checks the health of origins in the background, and logs changes.
pub struct HealthChecks {
    pub origins: Vec<Arc<Origin>>,
}

#[async_trait]
impl BackgroundService for HealthChecks {
    async fn start(&self, shutdown: ShutdownWatch) {
        let checks = self
            .origins
            .iter()
            .map(|origin| origin.check(shutdown.clone()));
        futures::future::join_all(checks).await;
    }
}

impl Origin {
    async fn check(&self, mut shutdown: ShutdownWatch) {
        let Some(interval) = self.check_interval else {
            return;
        };
        let mut was_up = true;
        loop {
            self.backends.run_health_check(true).await;
            let is_up = self.is_up();
            if is_up != was_up {
                let name = &self.name;
                match is_up {
                    true => log::info!("{name}: health checks find it up again"),
                    false => log::warn!("{name}: health checks find it down"),
                }
            }
            was_up = is_up;
            tokio::select! {
                () = tokio::time::sleep(interval) => {}
                _ = shutdown.changed() => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]
    use super::*;

    fn origin(reach: Reach) -> Origin {
        let timeouts = ConnectTimeouts {
            connect: Duration::from_secs(1),
            read_write: Duration::from_secs(1),
        };
        let url = Uri::from_static("https://localhost:8443/v1");
        Origin::new("provider openai", &url, timeouts, reach).unwrap()
    }

    #[tokio::test]
    async fn a_private_address_by_dns_is_refused_unless_the_operator_wrote_the_host() {
        let Err(error) = origin(Reach::Public).peer().await else {
            panic!("it was taken");
        };
        assert!(error.to_string().contains("not public"), "{error}");
        assert!(origin(Reach::Anywhere).peer().await.is_ok());
    }
}
