//! One planned attempt of a call: a model at a provider, and the keys that may serve it.

use std::sync::Arc;

use filters::models::request::ModelRequest;
use filters::models::routing::catalog::Capability;
use filters::models::wires::{Codec, Target};
use filters::money::{CostInputs, PricePoint, Usd};

use crate::models::deployment::Deployment;
use crate::models::providers::KeyPool;

/// One planned attempt.
pub struct PlannedAttempt {
    pub deployment: Arc<Deployment>,
    /// The wire's codec of the operation.
    pub codec: &'static dyn Codec,
    /// The keys, either the platform's or the caller's.
    pub keys: Arc<KeyPool>,
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
