//! One planned attempt of a call: a model at a provider, and the keys that may serve it.

use std::sync::Arc;

use filters::models::request::ModelRequest;
use filters::models::routing::catalog::Capability;
use filters::money::{CostInputs, PricePoint, Usd};

use crate::models::deployment::Deployment;
use crate::models::providers::KeyPool;

/// One planned attempt.
pub struct PlannedAttempt {
    /// The model at a provider.
    pub deployment: Arc<Deployment>,
    /// The keys: the platform's, or the caller's own.
    pub keys: Arc<KeyPool>,
}

impl PlannedAttempt {
    /// Returns whether the provider bills the caller itself.
    pub fn is_byok(&self) -> bool {
        self.keys.is_byok()
    }

    /// Returns whether the provider takes a request in several parts.
    pub(super) fn is_split(&self, request: &ModelRequest) -> bool {
        let deployment = &self.deployment;
        let parts = deployment.wire.parts(request, &deployment.target());
        parts.count > 1
    }

    /// Returns whether the provider bills a request although nobody reads the reply.
    pub(super) fn bills_after_disconnect(&self) -> bool {
        let deployment = &self.deployment;
        deployment.provider.quirks.bills_after_disconnect
            || !deployment.mapping.can(Capability::Cancellation)
    }

    /// Returns the maximum that a request may cost here, where the price is known.
    pub fn max_cost(&self, request: &ModelRequest, point: PricePoint) -> Option<Usd> {
        let deployment = &self.deployment;
        let target = deployment.target();
        let mapping = &deployment.mapping;
        let searches = target.max_searches(request);
        let requests = deployment.wire.parts(request, &target).count.into();
        // Each image is asked for with the whole prompt.
        let repeats = request.payload.images().map_or(1, |_| requests);
        let inputs = CostInputs {
            searches,
            billed_searches: mapping.search.billed(searches),
            max_tokens: deployment.wire.max_output(request, &target),
            requests,
            bytes: request.cost_inputs.bytes.saturating_mul(repeats),
            images: request.cost_inputs.images.saturating_mul(repeats),
            draws: deployment.wire.draws(request, &target),
            ..request.cost_inputs
        };
        deployment.max_cost(point, &inputs)
    }
}
