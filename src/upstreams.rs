//! The providers as the proxy reaches them: wire, credentials, addresses.
//!
//! Names are looked up in the background and kept in Pingora's load-balancing pools; a failed look-up keeps the
//! last good addresses. On the way of a request a name is only looked up where none has succeeded yet.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use filters::providers::{Provider, Quirks};
use filters::routing::capable::WireLimits;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderName, HeaderValue};
use pingora::protocols::ALPN;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorType, OrErr, Result};
use pingora_load_balancing::discovery::ServiceDiscovery;
use pingora_load_balancing::selection::RoundRobin;
use pingora_load_balancing::{Backend, Backends, LoadBalancer};
use sha2::Sha256;

use crate::config::{self, Secret};

/// How often names are looked up again.
const LOOKUP_EVERY: Duration = Duration::from_secs(30);
/// How long an unused connection to a provider is kept.
const IDLE_CONNECTION: Duration = Duration::from_secs(90);
/// Streams at once on one HTTP/2 connection to a provider.
const H2_STREAMS: usize = 100;

/// One provider.
pub struct Upstream {
    /// Its name in the configuration.
    pub name: Arc<str>,
    /// Its wire.
    pub wire: &'static dyn Provider,
    /// What is special about it.
    pub quirks: Quirks,
    /// Its credentials; one without text where it needs none.
    pub keys: Vec<Credential>,
    /// Its preference among equals; 1 is neutral.
    pub priority: f64,
    /// What its wire and its quirks leave possible.
    pub limits: WireLimits,
    /// Headers added to each request.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// `Host`.
    pub authority: HeaderValue,
    /// What stands in front of the wire's path; without a slash at the end.
    pub path: String,
    is_tls: bool,
    host: String,
    connect_timeout: Duration,
    longest: Duration,
    turn: AtomicUsize,
    pool: LoadBalancer<RoundRobin>,
}

/// How long a key that was refused is left alone, and one that was throttled.
const REFUSED_MS: u64 = 300_000;
const THROTTLED_MS: u64 = 10_000;

/// A provider's credential.
pub struct Credential {
    /// The text; `None` where the provider needs none.
    pub secret: Option<Secret>,
    /// 16 hex digits that stand for it. Source: decisions 3.
    pub fingerprint: Option<Box<str>>,
    /// When it is tried again without need, in milliseconds of the process's clock.
    cool_until_ms: AtomicU64,
}

impl Upstream {
    /// The provider as configured.
    ///
    /// Errors: the base URL cannot be used; the configuration's checks should have found that.
    pub fn new(
        provider: &config::Provider,
        routing: &config::Routing,
        fingerprint_key: &[u8],
    ) -> Result<Self> {
        let url: http::Uri = provider
            .base_url
            .parse()
            .or_err(ErrorType::InternalError, "parsing a base URL")?;
        let is_tls = url.scheme_str() == Some("https");
        let host = url
            .host()
            .unwrap_or_default()
            .trim_matches(['[', ']'])
            .to_owned();
        let port = url.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let authority = url.authority().map_or("", |authority| authority.as_str());
        let names = Names {
            host: host.clone(),
            port,
        };
        let keys = if provider.keys.is_empty() {
            vec![Credential::none()]
        } else {
            provider
                .keys
                .iter()
                .map(|key| Credential::new(key, fingerprint_key))
                .collect()
        };
        Ok(Self {
            name: provider.name.as_str().into(),
            wire: provider.kind.family().provider(),
            quirks: provider.quirks.clone(),
            keys,
            headers: provider.headers.clone(),
            priority: provider.priority,
            limits: limits(provider),
            authority: HeaderValue::from_str(authority)
                .or_err(ErrorType::InternalError, "an authority as a header")?,
            path: url.path().trim_end_matches('/').to_owned(),
            is_tls,
            host,
            connect_timeout: routing.connect_timeout,
            longest: routing.total_timeout.max(routing.stream_total_timeout),
            turn: AtomicUsize::new(0),
            pool: LoadBalancer::from_backends(Backends::new(Box::new(names))),
        })
    }

    /// Looks the name up; keeps the addresses known where that fails.
    pub async fn look_up(&self) -> Result<()> {
        self.pool.update().await
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
        options.connection_timeout = Some(self.connect_timeout);
        options.total_connection_timeout = Some(self.connect_timeout);
        options.idle_timeout = Some(IDLE_CONNECTION);
        // The held session keeps time; these only bound what it cannot see: an upload nobody reads.
        options.read_timeout = Some(self.longest);
        options.write_timeout = Some(self.longest);
        options.max_h2_streams = H2_STREAMS;
        options.alpn = if self.is_tls { ALPN::H2H1 } else { ALPN::H1 };
        Ok(peer)
    }

    /// The key to use: the next one in turn that is neither tried (`tried` has its bit) nor cooling down, else the
    /// one that cools down soonest. A cool-down never leaves a provider without keys.
    pub fn pick_key(&self, tried: u64, now_ms: u64) -> usize {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let untried = |at: &usize| *at >= 64 || tried & (1 << at) == 0;
        let cools = |at: usize| {
            self.keys
                .get(at)
                .map_or(u64::MAX, Credential::cools_until_ms)
        };
        let count = self.keys.len().max(1);
        let in_turn: Vec<usize> = (0..count)
            .map(|at| (at + turn) % count)
            .filter(untried)
            .collect();
        let ready = in_turn.iter().copied().find(|at| cools(*at) <= now_ms);
        ready
            .or_else(|| in_turn.into_iter().min_by_key(|at| cools(*at)))
            .unwrap_or(0)
    }

    /// The path of an upstream request.
    pub fn path_of(&self, wire_path: &str) -> String {
        format!("{}{wire_path}", self.path)
    }
}

impl Credential {
    fn none() -> Self {
        Self {
            secret: None,
            fingerprint: None,
            cool_until_ms: AtomicU64::new(0),
        }
    }

    /// Leaves the key alone for a while, after the provider answered it with this status.
    pub fn cool_down(&self, status: u16, now_ms: u64) {
        let pause = if status == 429 {
            THROTTLED_MS
        } else {
            REFUSED_MS
        };
        self.cool_until_ms.store(now_ms + pause, Ordering::Relaxed);
    }

    fn cools_until_ms(&self) -> u64 {
        self.cool_until_ms.load(Ordering::Relaxed)
    }

    fn new(secret: &Secret, fingerprint_key: &[u8]) -> Self {
        let digest = Hmac::<Sha256>::new_from_slice(fingerprint_key).map(|mac| {
            mac.chain_update(secret.expose().as_bytes())
                .finalize()
                .into_bytes()
        });
        let fingerprint = digest
            .ok()
            .map(|digest| digest.iter().take(8).map(|b| format!("{b:02x}")).collect());
        Self {
            secret: Some(secret.clone()),
            fingerprint,
            ..Self::none()
        }
    }
}

/// What a provider's wire can say, whatever the catalogue claims.
fn limits(provider: &config::Provider) -> WireLimits {
    let family = provider.kind.family();
    let (choices, streams_choices) = family.choices();
    WireLimits {
        choices,
        streams_choices,
        json_schema: provider.quirks.json_schema,
        forced_tools: provider.quirks.forced_tools,
        reasoning_budget: family.has_reasoning_budget(),
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

/// Looks all names up, now and then again.
pub struct Lookups(pub Arc<[Arc<Upstream>]>);

#[async_trait]
impl BackgroundService for Lookups {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        loop {
            for upstream in self.0.iter() {
                if let Err(error) = upstream.look_up().await {
                    log::warn!("provider {}: {error}", upstream.name);
                }
            }
            tokio::select! {
                () = tokio::time::sleep(LOOKUP_EVERY) => {}
                _ = shutdown.changed() => return,
            }
        }
    }
}
