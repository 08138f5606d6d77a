//! Which providers serve a request: the catalogue, the providers that are on, and what is known of their health.

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

/// See the module.
pub struct Planner {
    catalog: Catalog,
    providers: HashMap<Arc<str>, Arc<Provider>>,
    /// The providers that are on for everybody, and those that serve callers with keys of their own alone.
    names: Vec<Arc<str>>,
    byok_only: Vec<Arc<str>>,
    health: Health,
    affinity: SessionAffinity,
    routing: Routing,
}

/// What of the client and the moment counts in a choice.
#[derive(Clone, Copy, Debug)]
pub struct PlanContext<'a> {
    /// Whose request it is; none: nobody's in particular.
    pub caller: Option<&'a Caller>,
    /// Providers that the caller's organization has keys of its own for.
    pub byok_providers: &'a [&'a str],
    /// Its session.
    pub session: Option<&'a str>,
    /// It wants no fallback.
    pub no_fallback: bool,
    /// The process's clock.
    pub now_ms: u64,
    /// The wall clock.
    pub now_s: u64,
}

/// What was chosen.
pub struct Selection {
    /// The attempts.
    pub plan: RoutePlan,
    /// The provider named in the model string.
    pub provider: Option<Box<str>>,
    /// Under which key the session's provider is remembered.
    pub affinity_key: Option<u64>,
}

impl Planner {
    /// The choice that a configuration and a catalogue leave.
    pub fn new(config: &Config, providers: &[Arc<Provider>], catalog: Catalog) -> Self {
        let by_name: HashMap<Arc<str>, Arc<Provider>> = providers
            .iter()
            .map(|provider| (Arc::clone(&provider.name), Arc::clone(provider)))
            .collect();
        let named = |is_byok_only: bool| {
            let names = providers.iter().map(|provider| {
                let name = Arc::clone(&provider.name);
                (provider.keys.is_empty() == is_byok_only).then_some(name)
            });
            names.flatten().collect()
        };
        let ttl_ms = u64::try_from(config.routing.sticky_ttl.as_millis()).unwrap_or(u64::MAX);
        Self {
            health: Health::new(catalog.mappings()),
            affinity: SessionAffinity::new(ttl_ms),
            names: named(false),
            byok_only: named(true),
            providers: by_name,
            catalog,
            routing: config.routing.clone(),
        }
    }

    /// The provider of this name.
    pub fn provider(&self, name: &str) -> Option<&Arc<Provider>> {
        self.providers.get(name)
    }

    /// Whether a provider is on for everybody.
    pub fn is_on(&self, name: &str) -> bool {
        self.names.iter().any(|on| **on == *name)
    }

    /// The catalogue, with the mappings of all providers that are on for anybody.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// The attempts of a request.
    ///
    /// Errors: as `filters::models::routing` says: 400, 403, 404, 410.
    pub fn choose(
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
            Some(caller) => allow(request, &mut resolved, caller, context.byok_providers)?,
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
        let wire = |name: &str| self.provider(name)?.limits(operation);
        let priority = |name: &str| {
            self.provider(name)
                .map_or(1.0, |provider| provider.priority)
        };
        let plan = plan(request, resolved, &inputs, wire, priority)?;
        Ok(Selection {
            plan,
            provider,
            affinity_key,
        })
    }

    /// The providers that are on for whoever asks. In a project that uses own keys alone those count that there is no
    /// key for yet, too: the answer then says what is missing.
    fn providers(&self, context: &PlanContext<'_>) -> Vec<&str> {
        let mode = context.caller.map_or(Mode::Platform, |caller| caller.mode);
        let serves = |name: &&str| match mode {
            Mode::Platform => false,
            Mode::Hybrid => context.byok_providers.contains(name),
            Mode::Byok => true,
        };
        let byok_only = self.byok_only.iter().map(|name| &**name).filter(serves);
        let on = self.names.iter().map(|name| &**name);
        on.chain(byok_only).collect()
    }

    /// Remembers how an attempt ended.
    pub fn record(&self, mapping: usize, outcome: AttemptOutcome, now_ms: u64) {
        self.health.record(mapping, outcome, now_ms);
    }

    /// Remembers which mapping answered a session.
    pub fn bind_session(&self, affinity_key: u64, mapping: usize, now_ms: u64) {
        self.affinity.bind(affinity_key, mapping, now_ms);
    }
}

/// Takes out what the caller may not have; answers the providers whose own keys go first.
fn allow<'k>(
    request: &ModelRequest,
    resolved: &mut Resolved,
    caller: &Caller,
    keyed: &'k [&'k str],
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
        Mode::Hybrid => Ok(keyed),
        Mode::Byok => {
            allowed::by_own_keys(resolved, |provider| keyed.contains(&provider))?;
            Ok(keyed)
        }
    }
}

/// The catalogue of a configuration, with the mappings of its providers that are on for anybody.
///
/// Errors: the file cannot be read, or holds problems: all of them.
pub fn catalog(config: &Config) -> Result<Catalog, String> {
    let written = match &config.models.file {
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
    Catalog::check(written, is_on).map_err(|problems| problems.join("\n"))
}

/// The catalogue as written.
///
/// Errors: the file cannot be read or parsed; with its name and the place.
pub fn read_catalog(path: &Path) -> Result<CatalogFile, String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{shown}: {error}"))?;
    toml::from_str(&text).map_err(|error| format!("{shown}: {error}"))
}
