//! The graph service as requests meet it: its operations and tenants, its windows, its place, and answers kept of it.
//!
//! Built once from the configuration. What is decided is decided in `filters::limits` and `filters::graph::credentials`; this
//! holds what they need from one request to the next. [`exchange`] is one request from its admission to the
//! end of its answer. Not here: Pingora's hooks, which pass requests through, and who counts together with whom.

pub mod admission;
mod cache;
pub mod exchange;
pub mod routes;

use std::sync::Arc;
use std::time::Duration;

use filters::graph::credentials::{Nonces, Tenants};
use filters::graph::{GraphOperation, Operations, TenantLimits};
use http::Uri;
use pingora::{ErrorType, OrErr};
use tokio::runtime::Handle;

pub use self::cache::{CacheWriter, CachedResponse, Lookup, ResponseCache};
use crate::config;
use crate::jwks::{Refresh, RemoteKeySet};
use crate::limits::counters::{Sweeper, WindowCounters};
use crate::proxy::clock::Clock;
use crate::proxy::origin::{ConnectTimeouts, Origin};
use crate::redis::Redis;
use crate::telemetry::metrics::Metrics;

/// See the module.
pub struct Graph {
    /// The table of operations.
    pub operations: Operations,
    /// What each tenant may do.
    pub limits: TenantLimits,
    /// Whose credential is whose.
    pub tenants: Tenants,
    /// What verifies tokens, by the numbers that the tenants have for it.
    pub key_sets: Vec<Arc<RemoteKeySet>>,
    /// Signatures seen of late.
    pub nonces: Nonces,
    /// The windows.
    pub counters: Arc<WindowCounters>,
    /// Where the service is.
    pub origin: Arc<Origin>,
    /// Answers that may be given again, where any are kept.
    pub cache: Option<Arc<ResponseCache>>,
    /// Whether paths that no operation names are refused.
    pub rejects_unknown: bool,
    /// The length of a window in seconds.
    pub window_s: u64,
    /// All metrics.
    pub metrics: Arc<Metrics>,
    /// The process's clocks.
    pub clock: Clock,
    body_bytes: usize,
    data_bytes: usize,
}

impl Graph {
    /// The service at `url` as configured, with its windows.
    ///
    /// Errors: a URL that is none, which the configuration's checks should have found.
    pub fn new(
        graph: &config::GraphConfig,
        url: &Uri,
        config: &config::Config,
        (handle, redis): (&Handle, Option<&Redis>),
        (metrics, clock): (&Arc<Metrics>, Clock),
    ) -> pingora::Result<Self> {
        let patience = ConnectTimeouts {
            connect: config.routing.connect_timeout,
            longest: config.routing.total_timeout,
        };
        let (tenants, key_sets) = tenants(&graph.tenants, handle)?;
        let body_bytes = &config.limits.body_bytes;
        let (window, on_outage) = (Duration::from_secs(graph.window_s), config.shared.on_outage);
        let counters = WindowCounters::with_redis(graph.algorithm, window, redis, on_outage);
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
            origin: Arc::new(Origin::new("the graph service", url, patience)?),
            cache: cache.map(Arc::new),
            rejects_unknown: graph.rejects_unknown,
            window_s: graph.window_s,
            metrics: Arc::clone(metrics),
            clock,
            body_bytes: body_bytes.graph,
            data_bytes: body_bytes.graph_data,
        })
    }

    /// Who drops windows that have ended.
    pub fn sweeper(&self) -> Sweeper {
        Sweeper(Arc::clone(&self.counters))
    }

    /// Who looks at published keys now and then.
    pub fn keys(&self) -> Refresh {
        Refresh(self.key_sets.clone())
    }

    /// The most bytes of a body of this operation.
    pub fn body_bytes(&self, operation: &GraphOperation) -> usize {
        if operation.accepts_data {
            self.data_bytes
        } else {
            self.body_bytes
        }
    }
}

/// Whose credential is whose, and the key sets that some of them need, each once.
fn tenants(
    configured: &[config::Tenant],
    handle: &Handle,
) -> pingora::Result<(Tenants, Vec<Arc<RemoteKeySet>>)> {
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
        let published = RemoteKeySet::new(url.clone(), handle.clone());
        published.or_err(ErrorType::InternalError, "asking for published keys")
    });
    let key_sets: pingora::Result<Vec<_>> = key_sets.map(|it| it.map(Arc::new)).collect();
    Ok((tenants, key_sets?))
}

/// Path and query of a request target that may be absolute, byte for byte.
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
