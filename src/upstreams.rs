//! The providers as the proxy reaches them: wire, credentials, place.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use filters::providers::{Provider, Quirks};
use filters::routing::capable::WireLimits;
use hmac::{Hmac, KeyInit, Mac};
use http::{HeaderName, HeaderValue};
use pingora::{ErrorType, OrErr, Result};
use sha2::Sha256;

use crate::config::{self, Secret};
use crate::origin::{Origin, Patience};

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
    /// Where it is.
    pub origin: Arc<Origin>,
    /// What stands in front of the wire's path; without a slash at the end.
    pub path: String,
    turn: AtomicUsize,
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
        let patience = Patience {
            connect: routing.connect_timeout,
            // The held session keeps time; this only bounds what it cannot see: an upload nobody reads.
            longest: routing.total_timeout.max(routing.stream_total_timeout),
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
            origin: Arc::new(Origin::new(
                &format!("provider {}", provider.name),
                &url,
                patience,
            )?),
            path: url.path().trim_end_matches('/').to_owned(),
            turn: AtomicUsize::new(0),
        })
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
