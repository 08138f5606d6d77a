//! The graph limits: operations and tenants, their windows, the origin of the service, and the cache of its responses.
//!
//! [`Graph`] is built once from the configuration and holds the state that outlives a request. `filters::limits` and
//! `filters::graph` decide. [`admission`] admits a request, and [`exchange`] takes it to the service and back.
//! [`limits_left`] shows a tenant the remainders of its limits. [`routes`] has the rows of the route table. Counting
//! across processes is in [`crate::limits`].

pub mod admission;
mod cache;
pub mod exchange;
mod limits_left;
mod metrics;
pub mod routes;

use std::sync::Arc;
use std::time::Duration;

use filters::graph::credentials::{Nonces, Tenants};
use filters::graph::{GraphOperation, Operations, TenantLimits};
use http::Uri;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;

pub use self::cache::{CacheWriter, CachedResponse, Lookup, ResponseCache};
use self::metrics::GraphMetrics;
use crate::config;
use crate::jwks::{Refresh, RemoteKeySet};
use crate::limits::Sharing;
use crate::limits::counters::{Sweeper, WindowCounters};
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
    pub nonces: Nonces,
    pub counters: Arc<WindowCounters>,
    pub origin: Arc<Origin>,
    pub cache: Option<Arc<ResponseCache>>,
    /// Whether a path without an operation is refused.
    pub rejects_unknown: bool,
    pub window_s: u64,
    pub permits: Arc<Semaphore>,
    /// The permits of requests whose bodies still arrive while they run: half of all permits, so that slow clients do
    /// not hold all of them.
    pub upload_permits: Arc<Semaphore>,
    pub metrics: GraphMetrics,
    body_bytes: usize,
    data_bytes: usize,
}

impl Graph {
    /// Builds the state for the service at `url`.
    ///
    /// Errors: the URL is invalid, which the checks of the configuration should have found.
    pub fn new(
        graph: &config::GraphConfig,
        url: &Uri,
        config: &config::Config,
        (handle, sharing): (&Handle, Option<&Sharing>),
        metrics: &Arc<Metrics>,
    ) -> Result<Self, String> {
        let timeouts = ConnectTimeouts {
            connect: config.routing.connect_timeout,
            read_write: config.routing.total_timeout,
        };
        let (tenants, key_sets) = tenants(&graph.tenants, handle)?;
        let body_bytes = &config.limits.body_bytes;
        let window = Duration::from_secs(graph.window_s);
        let counters = WindowCounters::with_sharing(graph.algorithm, window, sharing);
        let cache = graph
            .cache
            .map(|(ttl, bytes)| ResponseCache::new(ttl, bytes));
        Ok(Self {
            operations: graph.operations.clone(),
            limits: graph.limits.clone(),
            tenants,
            key_sets,
            nonces: Nonces::default(),
            counters: Arc::new(counters),
            origin: Arc::new(Origin::new(
                "the graph service",
                url,
                timeouts,
                Reach::Anywhere,
            )?),
            cache: cache.map(Arc::new),
            rejects_unknown: graph.rejects_unknown,
            window_s: graph.window_s,
            permits: Arc::new(Semaphore::new(graph.in_flight)),
            upload_permits: Arc::new(Semaphore::new(graph.in_flight.div_ceil(2))),
            metrics: GraphMetrics::new(metrics, &graph.operations),
            body_bytes: body_bytes.graph,
            data_bytes: body_bytes.graph_data,
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

/// Returns the tenants with their credentials, and the key sets that they refer to, without repetitions.
fn tenants(
    configured: &[config::Tenant],
    handle: &Handle,
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
        let key_set = RemoteKeySet::new(url.clone(), handle.clone());
        key_set.map_err(|error| format!("asking for published keys: {error}"))
    });
    let key_sets: Result<Vec<_>, String> = key_sets.map(|it| it.map(Arc::new)).collect();
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
    use super::*;

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
