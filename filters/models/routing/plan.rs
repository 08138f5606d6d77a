//! The attempts of one request, best first.

use std::sync::Arc;

use super::capable::{self, Lack};
use super::catalog::Mapping;
use super::explanation::{Explanation, explain_unplanned};
use super::health::Health;
use super::order::order_candidates;
use super::providers::ProviderSet;
use super::resolve::{Candidate, Resolved};
use super::score::Weights;
use super::wire_limits::WireLimits;
use crate::fault::Fault;
use crate::json::Object;
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;
use crate::money::{PricePoint, PriceSet};

/// The inputs of planning beside the request.
#[derive(Clone, Copy, Debug)]
pub struct PlanInputs<'a> {
    /// The most providers tried.
    pub attempts: usize,
    pub weights: Weights,
    /// The share of requests, and of their cost, that measures other candidates than the best one.
    pub exploration: f64,
    /// Two random numbers of 0 to 1.
    pub random: (f64, f64),
    /// The number that spreads requests over regions; that of a session is always the same.
    pub spread: u64,
    pub health: &'a Health,
    /// The process's clock.
    pub now_ms: u64,
    /// The unix second, which decides prices.
    pub now_s: u64,
    /// The mapping that answered the session last.
    pub preferred: Option<u64>,
    /// The tokens of the session's prompt that were cached there.
    pub cached_tokens: u64,
    pub has_session: bool,
    pub no_fallback: bool,
    /// Whether the caller pays for calls on the platform's keys.
    pub is_billed: bool,
    /// Providers for which the caller has BYOK keys. They go first. Source: docs/facts/model-gateway.md 4.1.
    pub keyed: &'a ProviderSet,
    pub explains: WhatExplains,
}

/// What says why a plan is what it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WhatExplains {
    Nothing,
    /// The plan does, for an operator who may ask later.
    Plan,
    /// The plan does, and a fault in its place, for the client.
    PlanAndFaults,
}

/// The attempts of one request.
#[derive(Clone, Debug)]
pub struct RoutePlan {
    /// Best first; never empty.
    pub attempts: Vec<Arc<Candidate>>,
    /// A forced tool call has to become `auto`, because no provider honours it.
    pub lower_tool_choice: bool,
    /// The candidates that cannot serve the request.
    pub left_out: Vec<LeftOut>,
    /// The candidates outside the regions of the caller.
    pub outside: Vec<Arc<Candidate>>,
    pub explanation: Option<Box<Explanation>>,
}

/// A candidate that cannot serve a request.
#[derive(Clone, Debug)]
pub struct LeftOut {
    pub provider: Arc<str>,
    pub model: Arc<str>,
    pub region: Option<Arc<str>>,
    /// The field that it cannot serve, and why.
    pub lack: Lack,
}

impl LeftOut {
    /// Leaves a candidate out.
    pub(super) fn new(candidate: &Candidate, lack: Lack) -> Self {
        Self {
            provider: Arc::clone(&candidate.mapping.provider),
            model: Arc::clone(&candidate.model.id),
            region: candidate.region.clone(),
            lack,
        }
    }

    /// Writes it as a JSON object: `{"provider", "model", "region"?, "param", "reason"}`.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut object = Object::open(out);
        object.text("provider", &self.provider);
        object.text("model", &self.model);
        object.optional_text("region", self.region.as_deref());
        object.text("param", &self.lack.param);
        object.text("reason", &self.lack.reason);
        object.close();
    }
}

/// Plans the attempts.
///
/// `wire` returns the limits of a mapping's wire for the operation, and `priority` the preference of a provider, by its
/// number. Errors: 400 for `routing` beside a pinned provider; 400 with the reasons per provider where none can serve the request.
/// If faults are to be explained, they say in `metadata.route` what was left out.
pub fn plan(
    request: &ModelRequest,
    mut resolved: Resolved,
    inputs: &PlanInputs<'_>,
    wire: impl Fn(&Mapping) -> Option<WireLimits>,
    priority: impl Fn(usize) -> f64,
) -> Result<RoutePlan, Fault> {
    let barred = std::mem::take(&mut resolved.barred);
    let outside = std::mem::take(&mut resolved.outside);
    let mut left_out = Vec::new();
    let planned = try_plan(request, resolved, inputs, &mut left_out, &wire, &priority);
    let mut plan = match planned {
        Err(fault) if inputs.explains == WhatExplains::PlanAndFaults => {
            return Err(explain_unplanned(fault, &barred, &left_out));
        }
        planned => planned?,
    };
    plan.left_out = left_out;
    plan.outside = outside;
    if let Some(explanation) = &mut plan.explanation {
        explanation.barred = barred;
    }
    Ok(plan)
}

/// Plans the attempts; the plan lacks what was left out.
fn try_plan(
    request: &ModelRequest,
    resolved: Resolved,
    inputs: &PlanInputs<'_>,
    left_out: &mut Vec<LeftOut>,
    wire: &impl Fn(&Mapping) -> Option<WireLimits>,
    priority: &impl Fn(usize) -> f64,
) -> Result<RoutePlan, Fault> {
    let is_pinned = resolved.provider.is_some();
    let routing = request.source.member("routing");
    if is_pinned && routing.is_some_and(|routing| !request.source.is_null(routing)) {
        return Err(Fault::invalid(
            "routing",
            "`routing` chooses among providers, but `model` names one; leave one of them out",
        ));
    }
    let is_auto = resolved.is_auto;
    let point = request.price_point(inputs.now_s);
    let mut candidates = keep_capable(request, resolved, inputs, point, wire, left_out)?;
    let lower_tool_choice = require_forced_tools(request, &mut candidates, is_auto, wire, left_out);
    prefer_granted(request, &mut candidates, left_out);
    // A named provider is asked in its own places alone.
    let places = if is_pinned {
        candidates.len()
    } else {
        usize::MAX
    };
    let most = match inputs.no_fallback {
        true => 1,
        false => inputs.attempts.min(places).max(1),
    };
    let how = (point, is_auto, most);
    let (attempts, explanation) = order_candidates(request, candidates, inputs, how, priority);
    Ok(RoutePlan {
        attempts,
        lower_tool_choice,
        left_out: Vec::new(),
        outside: Vec::new(),
        explanation,
    })
}

/// Keeps the candidates that can serve the request; adds the others to `left_out`.
fn keep_capable(
    request: &ModelRequest,
    resolved: Resolved,
    inputs: &PlanInputs<'_>,
    point: PricePoint,
    wire: &impl Fn(&Mapping) -> Option<WireLimits>,
    left_out: &mut Vec<LeftOut>,
) -> Result<Vec<Arc<Candidate>>, Fault> {
    let is_pinned = resolved.provider.is_some();
    let mut candidates = resolved.candidates;
    candidates.retain(|candidate| {
        let mapping = &candidate.mapping;
        let auto_lack = resolved
            .is_auto
            .then(|| find_auto_lack(request, candidate, point))
            .flatten();
        let foreign_file = || {
            (!is_pinned)
                .then(|| capable::find_foreign_file(request))
                .flatten()
        };
        let lack = auto_lack
            .or_else(foreign_file)
            .or_else(|| find_unpriced_region(candidate, inputs))
            .or_else(|| capable::check(request, mapping, wire(mapping).as_ref()).err());
        let Some(lack) = lack else {
            return true;
        };
        left_out.push(LeftOut::new(candidate, lack));
        false
    });
    if !candidates.is_empty() {
        return Ok(candidates);
    }
    let mut reasons: Vec<String> = left_out
        .iter()
        .map(|LeftOut { provider, lack, .. }| format!("{provider} {}", lack.reason))
        .collect();
    reasons.sort();
    reasons.dedup();
    let reasons = reasons.join("; ");
    Err(match left_out.last() {
        Some(LeftOut { lack, .. }) if !lack.is_of_auto() => lack.to_fault(&reasons),
        _ => Fault::invalid(
            "model",
            format!("no model of `auto` can serve the request: {reasons}"),
        ),
    })
}

/// Returns why a region without prices cannot be called on the platform's keys: the call would be free.
fn find_unpriced_region(candidate: &Candidate, inputs: &PlanInputs<'_>) -> Option<Lack> {
    let is_own = inputs.keyed.contains(candidate.mapping.provider_number);
    let is_lacking = inputs.is_billed && !is_own && candidate.is_unpriced_region();
    let region = candidate.region.as_deref().filter(|_| is_lacking)?;
    let reason =
        format!("has no prices for the region `{region}`, so only your own key can pay for it");
    Some(Lack::new("model", reason))
}

/// Returns why `auto` may not choose a candidate. Source: docs/facts/model-gateway.md 3.2.
fn find_auto_lack(
    request: &ModelRequest,
    candidate: &Candidate,
    point: PricePoint,
) -> Option<Lack> {
    let prices = candidate.short_prices(point);
    if request.needs.free_models_only && !prices.is_some_and(PriceSet::is_free) {
        return Some(Lack::of_auto("is not free"));
    }
    let reasons = request.needs.no_reasoning && candidate.mapping.reasons();
    reasons.then(|| Lack::of_auto("reasons"))
}

/// Keeps the candidates that grant all wishes of a request, where there are some; adds the others to `left_out`.
fn prefer_granted(
    request: &ModelRequest,
    candidates: &mut Vec<Arc<Candidate>>,
    left_out: &mut Vec<LeftOut>,
) {
    let find_lack =
        |candidate: &Candidate| capable::check_wishes(request, &candidate.mapping).err();
    if candidates.iter().all(|one| find_lack(one).is_some()) {
        return;
    }
    candidates.retain(|candidate| {
        let Some(lack) = find_lack(candidate) else {
            return true;
        };
        left_out.push(LeftOut::new(candidate, lack));
        false
    });
}

/// Keeps the candidates that honour a forced call; adds the others to `left_out`. Returns whether it has to be lowered,
/// because no candidate of a fixed model honours it.
fn require_forced_tools(
    request: &ModelRequest,
    candidates: &mut Vec<Arc<Candidate>>,
    is_auto: bool,
    wire: &impl Fn(&Mapping) -> Option<WireLimits>,
    left_out: &mut Vec<LeftOut>,
) -> bool {
    if !request.needs.forced_tools {
        return false;
    }
    let honours = |c: &Arc<Candidate>| {
        wire(&c.mapping).is_some_and(|wire| capable::honours_forced_tools(&c.mapping, &wire))
    };
    if candidates.iter().any(honours) {
        let choice = request.name_of(Parameter::ToolChoice);
        candidates.retain(|candidate| {
            let honours = honours(candidate);
            if !honours {
                let lack = Lack::new(choice, "calls tools only when it sees fit");
                left_out.push(LeftOut::new(candidate, lack));
            }
            honours
        });
        return false;
    }
    !is_auto
}
