//! What an attempt tells about its provider: for the next request's choice, for the metrics.

use std::time::Duration;

use filters::models::routing::health::AttemptOutcome;
use filters::models::wires::Failure;
use tokio::time::Instant;

use super::{ModelExchange, PlannedAttempt};
use crate::app::state::AppState;

/// Below this a rate of tokens says more about buffers than about the provider.
const RATE_AFTER: Duration = Duration::from_millis(50);

/// What a failure says about the provider and the key.
pub fn failure(house: &AppState, call: &ModelExchange, failure: &Failure) {
    let Some(step) = call.step() else { return };
    let now_ms = house.now_ms();
    if let Some(key) = step.keys.get(call.key) {
        key.failed(failure, now_ms);
    }
    // What a caller's own key is refused for says nothing about the provider to anybody else.
    let is_of_own_key = step.is_own() && failure.is_about_the_key();
    let outcome = if failure.is_retryable && !is_of_own_key {
        AttemptOutcome::Failed
    } else {
        AttemptOutcome::CallersFault
    };
    house.routes.record(step.mapping.index, outcome, now_ms);
}

/// The running attempt answered: remembers how fast, and the session's provider.
pub fn success(house: &AppState, call: &ModelExchange) {
    let Some(step) = call.step() else { return };
    if let Some(key) = step.keys.get(call.key) {
        key.answered();
    }
    let first = call.first_content.unwrap_or_else(Instant::now);
    let streamed = first.elapsed();
    let tokens = call
        .settled
        .as_ref()
        .map_or(0, |settled| settled.usage.completion);
    let has_rate = call.request.is_stream && streamed > RATE_AFTER && tokens > 1;
    let outcome = AttemptOutcome::Answered {
        latency_ms: first.duration_since(call.attempt_started).as_secs_f64() * 1e3,
        throughput: has_rate.then(|| tokens as f64 / streamed.as_secs_f64()),
    };
    let now_ms = house.now_ms();
    house.routes.record(step.mapping.index, outcome, now_ms);
    if let Some(seat) = call.seat {
        house.routes.seat(seat, step.mapping.index, now_ms);
    }
    if let Some(record) = call.attempted.last() {
        house.metrics.attempt(record, model_label(step));
    }
}

/// The model's label in metrics: bounded, because ids that are not in the catalogue are all `other`.
pub fn model_label(step: &PlannedAttempt) -> &str {
    if step.mapping.index == usize::MAX {
        "other"
    } else {
        &step.model.id
    }
}
