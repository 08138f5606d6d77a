//! Plans the attempts of a request, from the catalogue, the enabled providers and their health.

mod standings;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use filters::accounts::rules::{Forbidden, Offer};
use filters::accounts::{Caller, KeyTerms, Mode, Plan as Tariff};
use filters::fault::Fault;
use filters::json::Object;
use filters::models::metadata::AttemptRecord;
use filters::models::reply_cache::key::digest_candidates;
use filters::models::request::ModelRequest;
use filters::models::routing::affinity::Binding;
use filters::models::routing::allowed::{self, OUTSIDE_REGIONS};
use filters::models::routing::catalog::{Catalog, Mapping};
use filters::models::routing::explanation::{SessionNote, explain_unplanned};
use filters::models::routing::health::{Health, Readiness, RunningAttempt};
use filters::models::routing::input_lengths;
use filters::models::routing::plan::{LeftOut, PlanInputs, RoutePlan, WhatExplains, plan};
use filters::models::routing::providers::ProviderSet;
use filters::models::routing::resolve::{AUTO, Candidate, Resolved, resolve};
use filters::models::routing::score::Weights;
use filters::models::videos::order::VideoOrder;
use filters::money::PricePoint;
use tokio::task::block_in_place;

use crate::config::{Config, ProviderConfig, Routing, provider_names};
use crate::models::deployment::Deployment;
use crate::models::passthrough::PassedKey;
use crate::models::providers::Provider;
use crate::models::sessions::Session;
use crate::telemetry::metrics::Metrics;

pub use self::standings::{PriceSpan, ProviderStanding};

/// The most candidates outside the regions of the caller that answers name.
const MAX_OUTSIDE: usize = 16;

/// Plans attempts.
pub struct Planner {
    catalog: Catalog,
    /// The providers by their number in the catalogue.
    providers: Vec<Arc<Provider>>,
    /// The deployments by the candidate's index.
    deployments: Vec<Arc<Deployment>>,
    metrics: Arc<Metrics>,
    /// The providers with platform keys for any of their sites. They serve all callers.
    platform_providers: ProviderSet,
    all_providers: ProviderSet,
    /// The built-in providers. `auto` only uses them if there are no others.
    sandboxes: ProviderSet,
    health: Health,
    routing: Routing,
}

/// The facts about the caller and the time on which a plan depends.
#[derive(Clone, Copy, Debug)]
pub struct PlanContext<'a> {
    /// The caller, or `None` if the request has none.
    pub caller: Option<&'a Caller>,
    /// The providers for which the caller's organization has BYOK keys.
    pub byok_providers: &'a [&'a str],
    pub session: Option<Session>,
    /// The credential that the caller has brought. It serves the request alone, at its own vendor.
    pub passed: Option<&'a PassedKey>,
    /// Whether the client refuses a fallback.
    pub no_fallback: bool,
    /// Whether the client asks why the plan is what it is.
    pub explains: bool,
    /// Whether an operator may ask later.
    pub notes_plan: bool,
    /// The monotonic clock.
    pub now_ms: u64,
    /// The wall clock.
    pub now_s: u64,
}

/// The result of planning.
pub struct Selection {
    /// The attempts.
    pub plan: RoutePlan,
    pub provider: Option<Arc<str>>,
}

/// The candidates for a request.
pub struct Resolution {
    /// The digest of all candidates, if replies may be cached.
    pub digest: Option<[u8; 32]>,
    resolved: Resolved,
    /// The providers at which the caller's BYOK keys are tried first.
    keyed: ProviderSet,
}

impl Resolution {
    /// Returns the candidates that the caller may use, in the catalogue's order.
    pub fn candidates(&self) -> &[Arc<Candidate>] {
        &self.resolved.candidates
    }
}

impl Planner {
    /// Creates the planner of a configuration and its catalogue. Providers are in the order of [`enabled_providers`].
    /// Candidates that a previous planner has share their measurements with it.
    pub fn new(
        config: &Config,
        providers: &[Arc<Provider>],
        catalog: Catalog,
        metrics: &Arc<Metrics>,
        previous: Option<&Self>,
    ) -> Self {
        let set = |is_wanted: fn(&Provider) -> bool| {
            let wanted = providers.iter().filter(|provider| is_wanted(provider));
            catalog
                .providers()
                .set(wanted.map(|provider| &*provider.name))
        };
        let deployments = catalog.candidates().iter().filter_map(|candidate| {
            let provider = providers.get(candidate.mapping.provider_number)?;
            Some(Arc::new(Deployment::new(candidate, provider, metrics)))
        });
        Self {
            health: health(&catalog, previous),
            platform_providers: set(Provider::has_platform_keys),
            all_providers: set(|_| true),
            sandboxes: set(|provider| provider.is_sandbox),
            deployments: deployments.collect(),
            metrics: Arc::clone(metrics),
            providers: providers.to_vec(),
            catalog,
            routing: config.routing.clone(),
        }
    }

    /// Returns the deployment from which a video was ordered, or `None` if the catalogue no longer has it.
    pub fn find_ordered(&self, order: &VideoOrder) -> Option<&Arc<Deployment>> {
        let mut deployments = self.deployments.iter();
        deployments.find(|it| {
            let sizes = &it.mapping.video.sizes;
            *it.model.id == *order.model
                && *it.provider.name == *order.provider
                && *it.mapping.name == *order.upstream_model
                && it.region.as_deref() == order.region.as_deref()
                && (sizes.is_empty() || sizes.contains(&order.size))
        })
    }

    /// Returns the deployment of a candidate. Outside the catalogue each call makes its own.
    pub fn deployment(&self, candidate: &Candidate) -> Option<Arc<Deployment>> {
        if let Some(deployment) = self.deployments.get(candidate.index) {
            return Some(Arc::clone(deployment));
        }
        let provider = self.provider(candidate.mapping.provider_number)?;
        Some(Arc::new(Deployment::new(
            candidate,
            provider,
            &self.metrics,
        )))
    }

    /// Returns the provider with this number.
    fn provider(&self, number: usize) -> Option<&Arc<Provider>> {
        self.providers.get(number)
    }

    /// Returns the providers that can serve a caller whose organization has keys for `byok`.
    pub fn usable_providers(&self, caller: Option<&Caller>, byok: &[&str]) -> ProviderSet {
        let own = || self.catalog.providers().set(byok.iter().copied());
        match caller.map(|caller| caller.mode) {
            None | Some(Mode::Platform) => self.platform_providers.clone(),
            Some(Mode::Hybrid) => self.platform_providers.union(&own()),
            Some(Mode::Byok) => own(),
        }
    }

    /// Returns the catalogue, with the mappings of all enabled providers.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Finds the candidates for a request. The result does not depend on measurements or the session. It has a digest
    /// if replies to the request may be cached.
    ///
    /// Errors: those of `filters::models::routing`: 400, 403, 404, 410. If the plan is to be explained, they list in
    /// `metadata.route` what was left out.
    pub fn resolve(
        &self,
        request: &ModelRequest,
        context: &PlanContext<'_>,
        is_cached: bool,
    ) -> Result<Resolution, Fault> {
        let byok = self.byok_providers(context);
        let (resolved, keyed) = self.resolve_allowed(request, context, &byok)?;
        Ok(Resolution {
            digest: is_cached.then(|| digest_candidates(&resolved.candidates)),
            keyed: keyed.clone(),
            resolved,
        })
    }

    /// Plans the attempts of a request among its candidates.
    ///
    /// Errors: those of `filters::models::routing::plan`: 400.
    pub fn plan_attempts(
        &self,
        request: &ModelRequest,
        resolution: Resolution,
        context: &PlanContext<'_>,
    ) -> Result<Selection, Fault> {
        let Resolution {
            resolved, keyed, ..
        } = resolution;
        let operation = request.payload.operation();
        let provider = resolved.provider.clone();
        let binding = context.session.and_then(|session| session.binding);
        let inputs = PlanInputs {
            attempts: self.routing.attempts as usize,
            weights: self.weights(),
            exploration: self.routing.exploration,
            random: (fastrand::f64(), fastrand::f64()),
            spread: context
                .session
                .map_or_else(|| fastrand::u64(..), |session| session.key.number()),
            health: &self.health,
            now_ms: context.now_ms,
            now_s: context.now_s,
            preferred: binding.map(|binding| binding.mapping),
            cached_tokens: binding.map_or(0, |binding| binding.cached_tokens),
            has_session: context.session.is_some(),
            no_fallback: context.no_fallback,
            is_billed: context.caller.is_some(),
            keyed: &keyed,
            explains: match (context.explains, context.notes_plan) {
                (true, _) => WhatExplains::PlanAndFaults,
                (false, true) => WhatExplains::Plan,
                (false, false) => WhatExplains::Nothing,
            },
        };
        let limits = |mapping: &Mapping| {
            let provider = self.provider(mapping.provider_number)?;
            provider.limits(mapping, operation)
        };
        let priority = |number| {
            self.provider(number)
                .map_or(1.0, |provider| provider.priority)
        };
        let mut mappings = resolved.candidates.iter();
        let counts = mappings.any(|it| input_lengths::has_to_count(request, &it.mapping));
        let mut plan = match counts {
            // Counting tokens takes time, and the vocabulary has to be read once.
            true => block_in_place(|| plan(request, resolved, &inputs, limits, priority)),
            false => plan(request, resolved, &inputs, limits, priority),
        }?;
        if let Some(explanation) = &mut plan.explanation {
            explanation.session = context.session.map(|_| self.note(binding));
        }
        Ok(Selection { plan, provider })
    }

    /// Returns the note about the binding of a session.
    fn note(&self, binding: Option<Binding>) -> SessionNote {
        let mut candidates = self.catalog.candidates().iter();
        let bound_to = binding.and_then(|at| candidates.find(|it| it.mapping.id == at.mapping));
        SessionNote {
            bound_to: bound_to.cloned(),
            cached_tokens: binding.map_or(0, |at| at.cached_tokens),
        }
    }

    /// Returns the candidates that the caller may use, and the providers at which the caller's BYOK keys are tried
    /// first.
    fn resolve_allowed<'k>(
        &'k self,
        request: &ModelRequest,
        context: &PlanContext<'_>,
        byok: &'k ProviderSet,
    ) -> Result<(Resolved, &'k ProviderSet), Fault> {
        let providers = self.serving_providers(context, byok);
        let providers = self.without_sandboxes(&request.model, providers);
        let operation = request.payload.operation();
        let auto = match operation.draws() {
            true => &self.routing.auto_images,
            false => &self.routing.auto,
        };
        let resolved = resolve(
            &request.model,
            operation,
            &self.catalog,
            &providers,
            auto,
            context.now_s,
        );
        let explain = |fault: Fault, barred: &[LeftOut]| match context.explains {
            true => explain_unplanned(fault, barred, &[]),
            false => fault,
        };
        let mut resolved = resolved.map_err(|fault| explain(fault, &[]))?;
        match self.keep_allowed(request, &mut resolved, context, byok) {
            Ok(keyed) => Ok((resolved, keyed)),
            Err(fault) => Err(explain(fault, &resolved.barred)),
        }
    }

    /// Removes the candidates that the caller may not use. Returns the providers at which the caller's BYOK keys are
    /// tried first.
    fn keep_allowed<'k>(
        &'k self,
        request: &ModelRequest,
        resolved: &mut Resolved,
        context: &PlanContext<'_>,
        byok: &'k ProviderSet,
    ) -> Result<&'k ProviderSet, Fault> {
        // First, because it brings in regions that other rules may forbid.
        if let Some(caller) = context.caller.filter(|it| it.is_regional()) {
            let may_be_in = |region: Option<&str>| caller.may_be_in(region);
            let kept =
                allowed::by_regions(resolved, &self.catalog, may_be_in, &caller.named_regions());
            kept.map_err(|fault| self.with_outside(fault, resolved))?;
        }
        if let Some(passed) = context.passed {
            allowed::by_vendor(resolved, passed.kind, |it| self.is_at_vendor(it, passed))?;
        }
        let keyed = match context.caller {
            Some(caller) => {
                let point = request.price_point(context.now_s);
                apply_rules(request, resolved, caller, point)?;
                match caller.mode {
                    _ if context.passed.is_some() => &self.all_providers,
                    Mode::Platform => ProviderSet::EMPTY,
                    Mode::Hybrid => byok,
                    Mode::Byok => {
                        let has_key = |it: &Mapping| byok.contains(it.provider_number);
                        allowed::by_own_keys(resolved, has_key)?;
                        byok
                    }
                }
            }
            None => ProviderSet::EMPTY,
        };
        self.keep_keyed(resolved, context, keyed)?;
        Ok(keyed)
    }

    /// Returns whether a candidate is asked at the address of the vendor whose credential was brought.
    pub fn is_at_vendor(&self, candidate: &Candidate, passed: &PassedKey) -> bool {
        let provider = self.provider(candidate.mapping.provider_number);
        provider.is_some_and(|provider| {
            provider.site(candidate.region.as_deref()).vendor == Some(passed.kind.vendor())
        })
    }

    /// Adds the candidates outside the regions of the caller to a fault, as entries of `metadata.routing`.
    fn with_outside(&self, fault: Fault, resolved: &Resolved) -> Fault {
        let mut metadata = Vec::new();
        let mut object = Object::open(&mut metadata);
        object.array(
            "routing",
            &self.outside(&resolved.outside),
            AttemptRecord::write,
        );
        object.close();
        fault.with_metadata(metadata)
    }

    /// Returns the entries of `metadata.routing` for candidates that were not asked, because they are outside the regions of the
    /// caller.
    pub fn outside(&self, candidates: &[Arc<Candidate>]) -> Vec<AttemptRecord> {
        let candidates = candidates.iter().take(MAX_OUTSIDE);
        let deployments = candidates.filter_map(|it| self.deployment(it));
        let record = |deployment: Arc<Deployment>| AttemptRecord {
            used: Arc::clone(&deployment.used),
            status_code: 0,
            error_type: OUTSIDE_REGIONS,
            succeeded: false,
            api_key_hash: None,
            credential_source: "platform",
            provider_key: None,
            owed: None,
            ran: None,
        };
        deployments.map(record).collect()
    }

    /// Removes the candidates for which neither the platform nor the caller has a key.
    fn keep_keyed(
        &self,
        resolved: &mut Resolved,
        context: &PlanContext<'_>,
        keyed: &ProviderSet,
    ) -> Result<(), Fault> {
        let mode = context.caller.map(|caller| caller.mode);
        if mode == Some(Mode::Byok) || context.passed.is_some() {
            return Ok(());
        }
        allowed::by_platform_keys(resolved, |candidate| {
            let number = candidate.mapping.provider_number;
            let provider = self.provider(number);
            keyed.contains(number)
                || provider.is_some_and(|it| it.has_keys_in(candidate.region.as_deref()))
        })
    }

    /// Returns the weights of the automatic strategy.
    fn weights(&self) -> Weights {
        let weights = self.routing.weights;
        Weights {
            price: weights.price,
            uptime: weights.uptime,
            throughput: weights.throughput,
            latency: weights.latency,
        }
    }

    /// Returns the providers for which the caller's organization has BYOK keys, if the caller's project uses them.
    fn byok_providers(&self, context: &PlanContext<'_>) -> ProviderSet {
        match context.caller.map(|caller| caller.mode) {
            None | Some(Mode::Platform) => ProviderSet::default(),
            Some(Mode::Hybrid | Mode::Byok) => {
                let names = context.byok_providers.iter().copied();
                self.catalog.providers().set(names)
            }
        }
    }

    /// Returns the providers that may serve the caller. For a project in mode `byok` these include providers without
    /// a key, so that the response names the missing key.
    fn serving_providers(
        &self,
        context: &PlanContext<'_>,
        byok: &ProviderSet,
    ) -> Cow<'_, ProviderSet> {
        match context.caller.map(|caller| caller.mode) {
            // Its vendor needs no other key, and an error names all that serve the model.
            _ if context.passed.is_some() => Cow::Borrowed(&self.all_providers),
            None | Some(Mode::Platform) => Cow::Borrowed(&self.platform_providers),
            Some(Mode::Hybrid) => Cow::Owned(self.platform_providers.union(byok)),
            Some(Mode::Byok) => Cow::Borrowed(&self.all_providers),
        }
    }

    /// Returns the providers that may serve this model string. `auto` never falls back to the sandbox while a real
    /// provider is enabled.
    fn without_sandboxes<'s>(
        &self,
        model: &str,
        providers: Cow<'s, ProviderSet>,
    ) -> Cow<'s, ProviderSet> {
        if model != AUTO {
            return providers;
        }
        let real = providers.without(&self.sandboxes);
        if real.is_empty() {
            return providers;
        }
        Cow::Owned(real)
    }

    /// Returns the measurements of the candidates.
    pub fn health(&self) -> &Health {
        &self.health
    }

    /// Starts to measure an attempt at a candidate.
    pub fn begin_attempt(&self, candidate: usize, is_stream: bool, now_ms: u64) -> RunningAttempt {
        self.health.begin(candidate, is_stream, now_ms)
    }

    /// Returns whether a candidate should be tried now: it is neither in a cool-down nor at a limit.
    pub fn is_ready(&self, candidate: usize, now_ms: u64) -> bool {
        self.health.standing(candidate, now_ms).readiness == Readiness::Ready
    }

    /// Puts a candidate last until this time, because none of its platform keys has a remainder.
    pub fn rest(&self, candidate: usize, until_ms: u64) {
        self.health.rest(candidate, until_ms);
    }
}

/// Returns the measurements of the candidates of a catalogue, which go on for those that a previous planner has.
fn health(catalog: &Catalog, previous: Option<&Planner>) -> Health {
    let candidates = catalog.candidates();
    let Some(previous) = previous else {
        return Health::new(candidates.len());
    };
    let known = previous.catalog.candidates().iter();
    let known: HashMap<u64, usize> = known.map(|it| (it.id, it.index)).collect();
    let before = candidates.iter().map(|it| known.get(&it.id).copied());
    previous.health.following(before)
}

/// Removes the candidates that plan and key forbid.
fn apply_rules(
    request: &ModelRequest,
    resolved: &mut Resolved,
    caller: &Caller,
    point: PricePoint,
) -> Result<(), Fault> {
    if caller.plan != Tariff::None {
        allowed::by_plan(request)?;
    }
    if let Some(terms) = &caller.terms {
        allowed::by_rules(resolved, |candidate| is_forbidden(terms, candidate, point))?;
    }
    Ok(())
}

/// Returns the kind of rule that forbids a candidate, if there is one.
pub fn is_forbidden(
    terms: &KeyTerms,
    candidate: &Candidate,
    point: PricePoint,
) -> Option<&'static str> {
    let offer = Offer {
        model: &candidate.model.id,
        aliases: &candidate.model.aliases,
        provider: &candidate.mapping.provider,
        upstream_name: &candidate.mapping.name,
        prices: candidate.short_prices(point),
    };
    terms.rules.check(&offer).err().map(Forbidden::as_str)
}

/// Returns the catalogue of a configuration, with the mappings of its enabled providers.
///
/// Errors: the file has problems. The message lists all of them.
pub fn load_catalog(config: &Config) -> Result<Catalog, String> {
    let file = config.models.catalog.clone().map_err(|problems| {
        let texts = problems.iter().map(ToString::to_string);
        texts.collect::<Vec<_>>().join("\n")
    })?;
    let names = provider_names(enabled_providers(config));
    Catalog::check(file, names).map_err(|problems| {
        let texts = problems.iter().map(ToString::to_string);
        texts.collect::<Vec<_>>().join("\n")
    })
}

/// Returns the enabled providers. Those with only BYOK keys come last.
pub fn enabled_providers(config: &Config) -> impl Iterator<Item = &ProviderConfig> {
    config.providers.iter().chain(&config.byok_only_providers)
}

#[cfg(test)]
#[path = "planner_tests.rs"]
mod tests;
