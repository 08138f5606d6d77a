//! The graph limits: operations and tenants, their windows, the origin of the service, and the cache of its responses.
//!
//! [`Graph`] is built from a configuration and holds the state that outlives a request. The one of the next configuration
//! takes over what that has not changed. `filters::limits` and
//! `filters::graph` decide. [`admission`] admits a request, and [`exchange`] takes it to the service and back.
//! [`limits_left`] shows a tenant the remainders of its limits, and `near_limits` an operator the fullest windows. [`routes`] has the rows of the route table. Counting
//! across processes is in [`crate::limits`].

pub mod admission;
mod cache;
mod cache_handover;
pub mod exchange;
mod limits_left;
mod metrics;
mod near_limits;
pub mod routes;

use std::sync::Arc;
use std::time::Duration;

use filters::graph::credentials::{Nonces, Tenants};
use filters::graph::{GraphOperation, Operations, TenantLimits};
use http::Uri;
use tokio::runtime::Handle;

pub use self::cache::{CacheWriter, CachedResponse, Lookup, ResponseCache};
use self::metrics::GraphMetrics;
use crate::config;
use crate::jwks::{Refresh, RemoteKeySet};
use crate::limits::Sharing;
use crate::limits::counters::{Sweeper, WindowCounters};
use crate::proxy::concurrency_limit::ConcurrencyLimit;
use crate::proxy::origin::{ConnectTimeouts, Origin, Reach};
use crate::telemetry::metrics::Metrics;

/// The state that all requests to the graph service share.
pub struct Graph {
    pub operations: Operations,
    pub limits: TenantLimits,
    pub tenants: Tenants,
    /// The key sets that verify tokens; `tenants` refers to them by index.
    pub key_sets: Vec<Arc<RemoteKeySet>>,
    /// Recent signatures, so that none is accepted twice.
    pub nonces: Arc<Nonces>,
    pub counters: Arc<WindowCounters>,
    pub origin: Arc<Origin>,
    pub cache: Option<Arc<ResponseCache>>,
    /// Whether a path without an operation is refused.
    pub rejects_unknown: bool,
    pub window_s: u64,
    pub permits: ConcurrencyLimit,
    /// The permits of requests whose bodies still arrive while they run: half of all permits, so that slow clients do
    /// not hold all of them.
    pub upload_permits: ConcurrencyLimit,
    pub metrics: GraphMetrics,
    body_bytes: usize,
    data_bytes: usize,
    /// What `origin` was made of.
    upstream: (Uri, ConnectTimeouts),
    cache_settings: Option<(Duration, u64)>,
}

impl Graph {
    /// Builds the state for the service at `url`. Of the previous state go on: windows of the same length and algorithm,
    /// nonces, key sets of the same URLs, what runs, and, if the service and its timeouts are the same, its addresses
    /// and the cached responses.
    ///
    /// Errors: the URL is invalid, which the checks of the configuration should have found.
    pub fn new(
        graph: &config::GraphConfig,
        url: &Uri,
        config: &config::Config,
        (handle, sharing): (&Handle, Option<&Sharing>),
        (metrics, previous): (&Arc<Metrics>, Option<&Self>),
    ) -> Result<Self, String> {
        let timeouts = ConnectTimeouts {
            connect: config.routing.connect_timeout,
            read_write: config.routing.total_timeout,
        };
        let known_sets = previous.map_or(&[][..], |previous| &previous.key_sets);
        let (tenants, key_sets) = tenants(&graph.tenants, handle, known_sets)?;
        let body_bytes = &config.limits.body_bytes;
        let window = Duration::from_secs(graph.window_s);
        let counted = previous.map(|previous| &*previous.counters);
        let counters = WindowCounters::with_sharing(graph.algorithm, window, sharing, counted);
        let upstream = (url.clone(), timeouts);
        let same_upstream = previous.filter(|previous| previous.upstream == upstream);
        let origin = match same_upstream {
            Some(previous) => Arc::clone(&previous.origin),
            None => {
                let origin = Origin::new("the graph service", url, timeouts, Reach::Anywhere);
                Arc::new(origin?)
            }
        };
        let in_flight = graph.in_flight;
        let permits = |of: fn(&Self) -> &ConcurrencyLimit, max| match previous {
            Some(previous) => of(previous).resized(max),
            None => ConcurrencyLimit::new(max),
        };
        Ok(Self {
            operations: graph.operations.clone(),
            limits: graph.limits.clone(),
            tenants,
            key_sets,
            nonces: previous.map_or_else(Arc::default, |it| Arc::clone(&it.nonces)),
            counters: Arc::new(counters),
            origin,
            cache: response_cache(graph.cache, same_upstream),
            rejects_unknown: graph.rejects_unknown,
            window_s: graph.window_s,
            permits: permits(|it| &it.permits, in_flight),
            upload_permits: permits(|it| &it.upload_permits, in_flight.div_ceil(2)),
            metrics: GraphMetrics::new(metrics, &graph.operations),
            body_bytes: body_bytes.graph,
            data_bytes: body_bytes.graph_data,
            upstream,
            cache_settings: graph.cache,
        })
    }

    /// Returns the background service that drops ended windows.
    pub fn sweeper(&self) -> Sweeper {
        Sweeper(Arc::clone(&self.counters))
    }

    /// Returns the background service that refreshes the key sets.
    pub fn key_refresh(&self) -> Refresh {
        Refresh(self.key_sets.clone())
    }

    /// Returns the maximum size of a request body of this operation.
    pub fn max_body_bytes(&self, operation: &GraphOperation) -> usize {
        if operation.accepts_data {
            self.data_bytes
        } else {
            self.body_bytes
        }
    }
}

/// Returns the cache of a time to live and a size, which is that of a previous state if its settings are the same.
fn response_cache(
    settings: Option<(Duration, u64)>,
    previous: Option<&Graph>,
) -> Option<Arc<ResponseCache>> {
    let (ttl, bytes) = settings?;
    let same = previous.filter(|previous| previous.cache_settings == settings);
    let kept = same.and_then(|previous| previous.cache.clone());
    Some(kept.unwrap_or_else(|| Arc::new(ResponseCache::new(ttl, bytes))))
}

/// Returns the tenants with their credentials, and the key sets that they refer to, without repetitions.
fn tenants(
    configured: &[config::Tenant],
    handle: &Handle,
    known: &[Arc<RemoteKeySet>],
) -> Result<(Tenants, Vec<Arc<RemoteKeySet>>), String> {
    let (mut tenants, mut urls) = (Tenants::default(), Vec::new());
    for tenant in configured {
        let id = &tenant.id;
        for key in &tenant.single_keys {
            tenants.add_single(id, key);
        }
        for (key, secret) in &tenant.app_keys {
            tenants.add_app(id, key, secret.as_ref().map(config::Secret::expose));
        }
        for bearer in &tenant.bearer {
            let key_set = bearer.jwks_url.as_ref().map(|url| {
                let known = urls.iter().position(|known| *known == url);
                known.unwrap_or_else(|| {
                    urls.push(url);
                    urls.len() - 1
                })
            });
            tenants.add_issuer(id, &bearer.issuer, bearer.audience.as_deref(), key_set);
        }
    }
    let key_sets = urls.into_iter().map(|url| {
        if let Some(known) = known.iter().find(|known| known.url() == url) {
            return Ok(Arc::clone(known));
        }
        let key_set = RemoteKeySet::new(url.clone(), handle.clone()).map(Arc::new);
        key_set.map_err(|error| format!("asking for published keys: {error}"))
    });
    let key_sets: Result<Vec<_>, String> = key_sets.collect();
    Ok((tenants, key_sets?))
}

/// Returns path and query of a request target that may be absolute, byte for byte.
pub fn origin_form(target: &[u8]) -> &[u8] {
    if target.starts_with(b"/") {
        return target;
    }
    let Some(scheme) = memchr::memmem::find(target, b"://") else {
        return target;
    };
    let behind = target.get(scheme + 3..).unwrap_or_default();
    match behind
        .iter()
        .position(|byte| *byte == b'/' || *byte == b'?')
    {
        Some(at) if behind.get(at) == Some(&b'/') => behind.get(at..).unwrap_or(b"/"),
        _ => b"/",
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use filters::limits::{RowId, Subject, WindowKey};

    use super::*;
    use crate::config::{Config, GraphUpstream, Source, load};

    const USUAL: &str = "in_flight = 2\ncache = { ttl_s = 60 }\n";

    fn graph(settings: &str, previous: Option<&Graph>) -> Graph {
        let upstream = "http://127.0.0.1:9";
        graph_at(upstream, settings, previous)
    }

    fn graph_at(upstream: &str, settings: &str, previous: Option<&Graph>) -> Graph {
        let jwks = r#"{id = "t", bearer = [{issuer = "i", jwks_url = "https://i.example/keys"}]}"#;
        let text = format!("[graph]\nupstream = {upstream:?}\n{settings}tenants = [{jwks}]\n");
        let name = "weirgate.toml".into();
        let loaded = load(&Source::Text { name, text }, []).unwrap();
        let config: Config = loaded.config;
        let of_graph = config.graph.as_ref().unwrap();
        let GraphUpstream::At(url) = &of_graph.upstream else {
            unreachable!()
        };
        _ = rustls::crypto::ring::default_provider().install_default();
        let metrics = Arc::new(Metrics::new().unwrap());
        let handle = (&Handle::current(), None);
        Graph::new(of_graph, url, &config, handle, (&metrics, previous)).unwrap()
    }

    #[tokio::test]
    async fn the_state_of_an_unchanged_service_goes_on_under_new_settings() {
        let key = WindowKey {
            subject: Subject::Named("t".into()),
            row: RowId::from_name("POST /content/v2"),
        };
        let old = graph(USUAL, None);
        old.counters.admit(&key, 9).await.unwrap();
        assert!(old.nonces.spend("k", "n", 9_000, 0));
        let running = old.permits.try_acquire().unwrap();
        let new = graph(&USUAL.replace("in_flight = 2", "in_flight = 1"), Some(&old));
        assert_eq!(new.counters.remaining(&key, 9).await.unwrap(), 8);
        assert!(!new.nonces.spend("k", "n", 9_000, 0));
        assert!(Arc::ptr_eq(&old.origin, &new.origin));
        assert!(Arc::ptr_eq(&old.key_sets[0], &new.key_sets[0]));
        let caches = [&old, &new].map(|graph| graph.cache.clone().unwrap());
        assert!(Arc::ptr_eq(&caches[0], &caches[1]));
        assert!(new.permits.is_full() && new.permits.try_acquire().is_none());
        assert!(!old.permits.is_full());
        drop(running);
        assert!(new.permits.try_acquire().is_some());
    }

    #[tokio::test]
    async fn what_a_change_touches_is_new() {
        let old = graph(USUAL, None);
        let moved = graph_at("http://127.0.0.1:8", USUAL, Some(&old));
        assert!(!Arc::ptr_eq(&old.origin, &moved.origin));
        let longer = graph(&USUAL.replace("ttl_s = 60", "ttl_s = 61"), Some(&old));
        for new in [&moved, &longer] {
            let caches = [&old, new].map(|graph| graph.cache.clone().unwrap());
            assert!(!Arc::ptr_eq(&caches[0], &caches[1]));
        }
        assert!(Arc::ptr_eq(&old.origin, &longer.origin));
        let off = graph("in_flight = 2\n", Some(&old));
        assert!(off.cache.is_none());
    }

    #[test]
    fn an_absolute_target_is_cut_to_its_path() {
        for (target, path) in [
            ("/content/v2?a=b", "/content/v2?a=b"),
            ("http://h/content/v2?u=http://x/", "/content/v2?u=http://x/"),
            ("//h/x", "//h/x"),
            ("http://h", "/"),
            ("http://h?a=/b", "/"),
            ("*", "*"),
        ] {
            assert_eq!(origin_form(target.as_bytes()), path.as_bytes(), "{target}");
        }
    }
}
