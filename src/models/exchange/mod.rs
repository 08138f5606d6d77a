//! The provider's side of a request: one planned attempt after the other, each run by Pingora's own hooks.
//!
//! [`upstream_request`] chooses the peer and rewrites head and body for it, [`upstream_response`] reads the answer into the sink that
//! makes the client's, [`failure`] decides whether the next attempt runs and what the client is told if none does.
//! Which providers are tried in which order was decided before, in `filters::models::routing`.

pub mod billing;
pub mod failure;
pub mod feedback;
pub mod upstream_request;
pub mod upstream_response;

use std::sync::Arc;

use filters::models::metadata::AttemptRecord;
use filters::models::reply::ReplyIdentity;
use filters::models::request::ModelRequest;
use filters::models::routing::catalog::{Mapping, Model};
pub use filters::models::usage::Settlement;
use filters::models::wires::{Failure, Target};
use filters::money::Usd;
use tokio::time::Instant;

use self::upstream_response::ReplyReader;
use crate::ledger::Reservation;
use crate::models::providers::{KeyPool, Provider};
use crate::proxy::buffered::state::AttemptState;

/// How many other keys of one provider are tried inside an attempt. Source: docs/decisions.md 13.
const MAX_KEY_RETRIES: u8 = 2;

/// One planned attempt.
#[derive(Clone)]
pub struct PlannedAttempt {
    /// Which provider.
    pub upstream: Arc<Provider>,
    /// Which model of the catalogue.
    pub model: Arc<Model>,
    /// What the provider calls it, and for how much.
    pub mapping: Arc<Mapping>,
    /// Which region.
    pub region: Option<Box<str>>,
    /// With whose keys: the platform's, or the caller's own.
    pub keys: Arc<KeyPool>,
}

impl PlannedAttempt {
    /// Whether the provider bills the caller itself: the keys are the caller's own.
    pub fn is_own(&self) -> bool {
        self.keys.are_own()
    }

    /// The most that a request may cost here; `None` where the price is not known.
    fn worst(&self, request: &ModelRequest) -> Option<Usd> {
        let wire = self.upstream.wire;
        let bound = wire.max_output(request, &self.target(false, None, None));
        self.mapping.max_cost(&request.cost_inputs, bound)
    }

    /// What it goes to, as its wire needs to know.
    fn target<'a>(
        &'a self,
        lower_tool_choice: bool,
        key_id: Option<&'a str>,
        secret: Option<&'a str>,
    ) -> Target<'a> {
        Target {
            provider: &self.upstream.name,
            model: &self.mapping.name,
            region: self.region.as_deref(),
            max_output: self.mapping.max_output,
            reasoning_efforts: &self.mapping.reasoning_efforts,
            reasons: self.mapping.reasons(),
            lower_tool_choice,
            key_id,
            quirks: &self.upstream.quirks,
            secret,
        }
    }
}

/// The call of a model on its way through its attempts.
pub struct ModelExchange {
    /// What was asked, checked.
    pub request: ModelRequest,
    /// The provider named in the model string.
    pub requested_provider: Option<Box<str>>,
    /// The attempts planned, best first; never empty.
    pub steps: Vec<PlannedAttempt>,
    /// Whether a forced tool call has to be lowered to `auto`.
    pub lower_tool_choice: bool,
    /// The id of the caller's API key.
    pub key_id: Option<Arc<str>>,
    /// Under which key the session's provider is remembered.
    pub seat: Option<u64>,
    /// The attempt that runs.
    pub at: usize,
    /// The key of its provider that it uses.
    pub key: usize,
    /// Keys of this provider tried before, as bits.
    tried_keys: u64,
    other_keys: u8,
    /// Whether the attempt was already repeated because a kept connection had died.
    was_repeated: bool,
    /// All attempts that have ended.
    pub attempted: Vec<AttemptRecord>,
    /// Failures of all attempts, for the final word.
    pub failures: Vec<Failure>,
    /// Shared with the held session.
    pub watch: Arc<AttemptState>,
    /// The answer being read.
    pub receiving: ReplyReader,
    /// Path and headers of the running attempt, from its wire.
    head: Option<(String, Vec<(http::HeaderName, http::HeaderValue)>)>,
    /// When the running attempt began.
    pub attempt_started: Instant,
    /// When content first went to the client.
    pub first_content: Option<Instant>,
    /// What it took in the end.
    pub settled: Option<Settlement>,
    /// Stands for it in the ledger until it has ended, whatever the end is.
    pub reservation: Option<Reservation>,
}

impl ModelExchange {
    /// A call that is about to begin its first attempt.
    pub fn new(
        request: ModelRequest,
        requested_provider: Option<Box<str>>,
        steps: Vec<PlannedAttempt>,
        watch: Arc<AttemptState>,
    ) -> Self {
        Self {
            request,
            requested_provider,
            steps,
            lower_tool_choice: false,
            key_id: None,
            seat: None,
            at: 0,
            key: 0,
            tried_keys: 0,
            other_keys: 0,
            was_repeated: false,
            attempted: Vec::new(),
            failures: Vec::new(),
            attempt_started: Instant::now(),
            watch,
            receiving: ReplyReader::default(),
            head: None,
            first_content: None,
            settled: None,
            reservation: None,
        }
    }

    /// The running attempt.
    pub fn step(&self) -> Option<&PlannedAttempt> {
        self.steps.get(self.at)
    }

    /// The text of the key in use.
    fn secret(&self) -> Option<&str> {
        let secret = self.step()?.keys.get(self.key)?.secret.as_ref();
        secret.map(crate::config::Secret::expose)
    }

    /// What the running attempt goes to, as its wire needs to know.
    fn target(&self) -> Option<Target<'_>> {
        let step = self.step()?;
        Some(step.target(
            self.lower_tool_choice,
            self.key_id.as_deref(),
            self.secret(),
        ))
    }

    /// Identity of the answer of the running attempt.
    fn identity(&self, request_id: &str, created: u64) -> ReplyIdentity {
        ReplyIdentity {
            id: request_id.into(),
            created,
            model: self.used_model().into(),
        }
    }

    /// `provider/model`, with `:region` where one is used. Source: docs/decisions.md 3.
    pub fn used_model(&self) -> String {
        let Some(step) = self.step() else {
            return String::new();
        };
        match &step.region {
            Some(region) => format!("{}/{}:{region}", step.upstream.name, step.model.id),
            None => format!("{}/{}", step.upstream.name, step.model.id),
        }
    }

    /// The entry of `metadata.routing` for the running attempt.
    fn record(&self, failure: Option<&Failure>) -> Option<AttemptRecord> {
        let step = self.step()?;
        let key = step.keys.get(self.key);
        let own = key.and_then(|key| key.own.as_ref());
        Some(AttemptRecord {
            provider: (*step.upstream.name).into(),
            model: step.mapping.name.clone(),
            status_code: failure.map_or(200, Failure::status),
            error_type: failure.map_or("none", Failure::error_type),
            succeeded: failure.is_none(),
            region: step.region.clone(),
            api_key_hash: key.and_then(|key| key.fingerprint.clone()),
            credential_source: if own.is_some() { "byok" } else { "platform" },
            provider_key: own.map(|own| (own.id.clone(), own.label.clone())),
        })
    }
}
