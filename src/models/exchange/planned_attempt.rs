//! One planned attempt of a call: a model at a provider, and the keys that may serve it.

use std::sync::Arc;

use filters::accounts::{Caller, Mode};
use filters::fault::{Fault, FaultKind};
use filters::models::operation::Operation;
use filters::models::request::ModelRequest;
use filters::models::routing::catalog::Capability;
use filters::models::routing::resolve::Candidate;
use filters::models::wires::{Codec, Target};
use filters::money::{CostInputs, PricePoint, Usd};
use tokio::time::Instant;

use crate::models::Models;
use crate::models::deployment::Deployment;
use crate::models::passthrough::PassedKey;
use crate::models::planner::{PlanContext, Resolution, Selection};
use crate::models::providers::{KeyPool, ProviderKeys};
use crate::proxy::context::RequestInfo;

/// One planned attempt.
pub struct PlannedAttempt {
    pub deployment: Arc<Deployment>,
    /// The wire's codec of the operation.
    pub codec: &'static dyn Codec,
    /// The keys, either the platform's or the caller's.
    pub keys: Arc<KeyPool>,
}

/// The attempts of a request, and the plan that they come from.
pub struct PlannedCall {
    pub selection: Selection,
    /// Best first; never empty.
    pub attempts: Vec<PlannedAttempt>,
}

impl PlannedCall {
    /// Plans the attempts of a request among its candidates, with the keys that may serve it.
    ///
    /// Errors: 400, and 404 if the provider has no key.
    pub fn new(
        models: &Models,
        request: &ModelRequest,
        resolution: Resolution,
        (context, byok_keys): (&PlanContext<'_>, Option<&ProviderKeys>),
    ) -> Result<Self, Fault> {
        let planner = &models.planner;
        let selection = planner.plan_attempts(request, resolution, context)?;
        let operation = request.payload.operation();
        let attempts = match context.passed {
            Some(passed) => list_passed(models, passed, (operation, &selection)),
            None => list_attempts(models, context.caller, byok_keys, (operation, &selection)),
        };
        if attempts.is_empty() {
            let message = "the provider has no key for this region";
            let fault = Fault::new(FaultKind::ModelNotFound, message).with_param("model");
            let plan = &selection.plan;
            return Err(
                match plan.explanation.as_ref().filter(|_| context.explains) {
                    Some(explanation) => explanation.add_to(fault, &plan.left_out),
                    None => fault,
                },
            );
        }
        Ok(Self {
            selection,
            attempts,
        })
    }

    /// Plans a request that the gateway makes on behalf of a caller, from this moment on, without a session.
    ///
    /// Errors: those of a client's request.
    pub(super) fn on_behalf(
        models: &Models,
        request: &ModelRequest,
        (info, now): (&RequestInfo, Instant),
        no_fallback: bool,
    ) -> Result<Self, Fault> {
        let caller = info.caller.as_deref();
        let byok_keys = models.byok_keys.of_caller(caller);
        let byok: Vec<&str> = byok_keys.iter().flat_map(|keys| keys.providers()).collect();
        let context = PlanContext {
            caller,
            byok_providers: &byok,
            passed: None,
            session: None,
            no_fallback,
            explains: false,
            notes_plan: false,
            now_ms: models.clock.ms_at(now),
            now_s: info.unix_s(),
        };
        let resolution = models.planner.resolve(request, &context, false)?;
        Self::new(
            models,
            request,
            resolution,
            (&context, byok_keys.as_deref()),
        )
    }
}

impl PlannedAttempt {
    /// Returns whether the provider bills the caller itself.
    pub fn is_byok(&self) -> bool {
        self.keys.is_byok()
    }

    /// Returns whether the provider takes a request in several parts.
    pub(super) fn is_split(&self, request: &ModelRequest) -> bool {
        let parts = self.codec.parts(request, &self.deployment.target());
        parts.count > 1
    }

    /// Returns whether the provider bills a request even if the client disconnects.
    pub(super) fn bills_after_disconnect(&self) -> bool {
        let deployment = &self.deployment;
        deployment.provider.quirks.bills_after_disconnect
            || !deployment.mapping.can(Capability::Cancellation)
    }

    /// Returns the maximum cost of a request here, if the price is known.
    pub fn max_cost(&self, request: &ModelRequest, point: PricePoint) -> Option<Usd> {
        let deployment = &self.deployment;
        let target = deployment.target();
        let mapping = &deployment.mapping;
        let requests = self.codec.parts(request, &target).count.into();
        // Each drawing is asked for with the whole prompt.
        let repeats = request.image_count().map_or(1, |_| requests);
        let searches = target.max_searches(request).saturating_mul(repeats);
        let asked = from_drawings(request, repeats, &target);
        let inputs = CostInputs {
            searches,
            billed_searches: mapping.search.billed(searches),
            max_tokens: self.codec.max_output(request, &target),
            requests,
            bytes: asked.bytes.saturating_mul(repeats),
            images: asked.images.saturating_mul(repeats),
            audio: asked.audio.saturating_mul(repeats),
            files: asked.files.saturating_mul(repeats),
            draws: self.codec.draws(request, &target),
            ..asked
        };
        deployment.max_cost(point, &inputs)
    }
}

/// Returns the attempts with the credential that the caller has brought, at its vendor alone.
fn list_passed(
    models: &Models,
    passed: &PassedKey,
    (operation, selection): (Operation, &Selection),
) -> Vec<PlannedAttempt> {
    let candidates = selection.plan.attempts.iter();
    let candidates = candidates.filter(|it| models.planner.is_at_vendor(it, passed));
    let attempts = candidates.filter_map(|candidate| {
        let deployment = models.planner.deployment(candidate)?;
        Some(PlannedAttempt {
            keys: Arc::clone(&passed.keys),
            codec: deployment.wire.codec(operation)?,
            deployment,
        })
    });
    attempts.collect()
}

/// Returns the attempts: with the caller's keys, with the platform's, or first with the former and then with the
/// latter.
fn list_attempts(
    models: &Models,
    caller: Option<&Caller>,
    byok_keys: Option<&ProviderKeys>,
    (operation, selection): (Operation, &Selection),
) -> Vec<PlannedAttempt> {
    let candidates = &selection.plan.attempts;
    let attempt = |candidate: &Candidate, keys: Option<&Arc<KeyPool>>| {
        let deployment = models.planner.deployment(candidate)?;
        Some(PlannedAttempt {
            keys: Arc::clone(keys.unwrap_or(&deployment.site.keys)),
            codec: deployment.wire.codec(operation)?,
            deployment,
        })
    };
    let byok = candidates.iter().filter_map(|candidate| {
        let keys = byok_keys?.find(&candidate.mapping.provider)?;
        attempt(candidate, Some(keys))
    });
    let platform = candidates
        .iter()
        .filter(|candidate| caller.is_none() || !candidate.is_unpriced_region())
        .filter_map(|candidate| attempt(candidate, None))
        .filter(|attempt| !attempt.keys.is_empty());
    match caller.map_or(Mode::Platform, |caller| caller.mode) {
        Mode::Platform => platform.collect(),
        Mode::Byok => byok.collect(),
        Mode::Hybrid => byok.chain(platform).collect(),
    }
}

/// Returns the inputs for the cost of a request whose drawings are requested one after the other. Each reply to a
/// chat may have the full length; requests for images already count their images.
fn from_drawings(request: &ModelRequest, repeats: u64, target: &Target<'_>) -> CostInputs {
    let asked = request.cost_inputs;
    if repeats <= 1 || request.payload.images().is_some() {
        return asked;
    }
    CostInputs {
        choices: asked.choices.max(1).saturating_mul(repeats),
        wanted_images: target.images_of_part(request).into(),
        ..asked
    }
}
