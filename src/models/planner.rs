//! Plans the attempts of a request, from the catalogue, the enabled providers and their health.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use filters::accounts::rules::{Forbidden, Offer};
use filters::accounts::{Caller, Mode, Plan as Tariff};
use filters::fault::Fault;
use filters::models::request::ModelRequest;
use filters::models::routing::affinity::SessionAffinity;
use filters::models::routing::catalog::Catalog;
use filters::models::routing::health::{AttemptOutcome, Health};
use filters::models::routing::plan::{PlanInputs, RoutePlan, plan};
use filters::models::routing::resolve::{Candidate, Resolved, resolve};
use filters::models::routing::score::Weights;
use filters::models::routing::{CatalogFile, allowed};

use crate::config::{Config, Routing};
use crate::models::providers::Provider;

/// Plans attempts.
pub struct Planner {
    catalog: Catalog,
    providers: HashMap<Arc<str>, Arc<Provider>>,
    /// The providers with platform keys, which serve all callers.
    platform_providers: Vec<Arc<str>>,
    /// The providers that serve only callers with BYOK keys.
    byok_only_providers: Vec<Arc<str>>,
    health: Health,
    affinity: SessionAffinity,
    routing: Routing,
}

/// The caller and the time of a request, as far as a plan depends on them.
#[derive(Clone, Copy, Debug)]
pub struct PlanContext<'a> {
    /// The caller; `None` if the request has none.
    pub caller: Option<&'a Caller>,
    /// The providers that the caller's organization has BYOK keys for.
    pub byok_providers: &'a [&'a str],
    /// The session id.
    pub session: Option<&'a str>,
    /// Whether the client refuses a fallback.
    pub no_fallback: bool,
    /// The monotonic clock.
    pub now_ms: u64,
    /// The wall clock.
    pub now_s: u64,
}

/// The result of planning.
pub struct Selection {
    /// The attempts.
    pub plan: RoutePlan,
    /// The provider named in the model string.
    pub provider: Option<Box<str>>,
    /// The key that stores the session's provider.
    pub affinity_key: Option<u64>,
}

impl Planner {
    /// Creates the planner of a configuration and its catalogue.
    pub fn new(config: &Config, providers: &[Arc<Provider>], catalog: Catalog) -> Self {
        let by_name: HashMap<Arc<str>, Arc<Provider>> = providers
            .iter()
            .map(|provider| (Arc::clone(&provider.name), Arc::clone(provider)))
            .collect();
        let names = |is_byok_only: bool| {
            let matching = providers
                .iter()
                .filter(|provider| provider.keys.is_empty() == is_byok_only);
            matching
                .map(|provider| Arc::clone(&provider.name))
                .collect()
        };
        let ttl_ms = u64::try_from(config.routing.sticky_ttl.as_millis()).unwrap_or(u64::MAX);
        Self {
            health: Health::new(catalog.mappings()),
            affinity: SessionAffinity::new(ttl_ms),
            platform_providers: names(false),
            byok_only_providers: names(true),
            providers: by_name,
            catalog,
            routing: config.routing.clone(),
        }
    }

    /// Returns the provider of this name.
    pub fn provider(&self, name: &str) -> Option<&Arc<Provider>> {
        self.providers.get(name)
    }

    /// Returns whether a provider serves all callers.
    pub fn is_on(&self, name: &str) -> bool {
        let mut providers = self.platform_providers.iter();
        providers.any(|provider| **provider == *name)
    }

    /// Returns the catalogue, with the mappings of all enabled providers.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Plans the attempts of a request.
    ///
    /// Errors: those of `filters::models::routing`: 400, 403, 404, 410.
    pub fn plan_attempts(
        &self,
        request: &ModelRequest,
        context: &PlanContext<'_>,
    ) -> Result<Selection, Fault> {
        let providers = self.providers(context);
        let operation = request.payload.operation();
        let mut resolved = resolve(
            &request.model,
            operation,
            &self.catalog,
            &providers,
            &self.routing.auto,
            context.now_s,
        )?;
        let keyed = match context.caller {
            Some(caller) => apply_rules(request, &mut resolved, caller, context.byok_providers)?,
            None => &[],
        };
        let provider = resolved.provider.clone();
        let organization = context.caller.map_or("", |caller| &caller.organization_id);
        let affinity_key = context
            .session
            .map(|session| self.affinity.key(organization, &request.model, session));
        let weights = self.routing.weights;
        let inputs = PlanInputs {
            attempts: self.routing.attempts as usize,
            weights: Weights {
                price: weights.price,
                uptime: weights.uptime,
                throughput: weights.throughput,
                latency: weights.latency,
            },
            exploration: self.routing.exploration,
            random: (fastrand::f64(), fastrand::f64()),
            health: &self.health,
            now_ms: context.now_ms,
            preferred: affinity_key.and_then(|key| self.affinity.find(key, context.now_ms)),
            has_session: affinity_key.is_some(),
            no_fallback: context.no_fallback,
            keyed,
        };
        let limits = |name: &str| self.provider(name)?.limits(operation);
        let priority = |name: &str| {
            self.provider(name)
                .map_or(1.0, |provider| provider.priority)
        };
        let plan = plan(request, resolved, &inputs, limits, priority)?;
        Ok(Selection {
            plan,
            provider,
            affinity_key,
        })
    }

    /// Returns the providers that may serve the caller. A project in mode `byok` also gets providers without a key, so that
    /// the response says which key is missing.
    fn providers(&self, context: &PlanContext<'_>) -> Vec<&str> {
        let mode = context.caller.map_or(Mode::Platform, |caller| caller.mode);
        let serves = |name: &&str| match mode {
            Mode::Platform => false,
            Mode::Hybrid => context.byok_providers.contains(name),
            Mode::Byok => true,
        };
        let byok_only = self.byok_only_providers.iter().map(|name| &**name);
        let platform = self.platform_providers.iter().map(|name| &**name);
        platform.chain(byok_only.filter(serves)).collect()
    }

    /// Records the outcome of an attempt.
    pub fn record(&self, mapping: usize, outcome: AttemptOutcome, now_ms: u64) {
        self.health.record(mapping, outcome, now_ms);
    }

    /// Stores the mapping that answered a session.
    pub fn bind_session(&self, affinity_key: u64, mapping: usize, now_ms: u64) {
        self.affinity.bind(affinity_key, mapping, now_ms);
    }
}

/// Removes the candidates that the caller may not use; returns the providers that try the caller's BYOK keys first.
fn apply_rules<'k>(
    request: &ModelRequest,
    resolved: &mut Resolved,
    caller: &Caller,
    byok_providers: &'k [&'k str],
) -> Result<&'k [&'k str], Fault> {
    if caller.plan != Tariff::None {
        allowed::by_plan(request)?;
    }
    if let Some(terms) = &caller.terms {
        let forbids = |candidate: &Candidate| {
            let offer = Offer {
                model: &candidate.model.id,
                aliases: &candidate.model.aliases,
                provider: &candidate.mapping.provider,
                upstream_name: &candidate.mapping.name,
                prices: candidate.mapping.prices.as_ref(),
            };
            terms.rules.check(&offer).err().map(Forbidden::as_str)
        };
        allowed::by_rules(resolved, forbids)?;
    }
    match caller.mode {
        Mode::Platform => Ok(&[]),
        Mode::Hybrid => Ok(byok_providers),
        Mode::Byok => {
            allowed::by_own_keys(resolved, |provider| byok_providers.contains(&provider))?;
            Ok(byok_providers)
        }
    }
}

/// Loads the catalogue of a configuration, with the mappings of its enabled providers.
///
/// Errors: the file cannot be read or has problems; the message lists all of them.
pub fn load_catalog(config: &Config) -> Result<Catalog, String> {
    let file = match &config.models.file {
        Some(path) => read_catalog(path)?,
        None => CatalogFile::default(),
    };
    let is_on = |name: &str| {
        config
            .providers
            .iter()
            .chain(&config.byok_only_providers)
            .any(|provider| provider.name == name)
    };
    Catalog::check(file, is_on).map_err(|problems| problems.join("\n"))
}

/// Reads a catalogue file.
///
/// Errors: the file cannot be read or parsed; the message has its name and the line.
pub fn read_catalog(path: &Path) -> Result<CatalogFile, String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
    toml::from_str(&text).map_err(|error| format!("{shown}: {error}"))
}
