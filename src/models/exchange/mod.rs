//! One call of a model: planned attempts, one after the other, each run by Pingora's own hooks.
//!
//! [`upstream_request`] starts an attempt and writes its request, [`upstream_response`] reads the reply into the client's
//! response, [`parts`] goes on to the next part of a request that a provider takes in several, [`failure`] decides whether
//! the next attempt starts and what the client gets if none does, [`billing`] and
//! [`feedback`] tell ledger and planner how it went, [`usage`] what of a report can be true, [`rate_limits`] lets keys rest, [`log`] writes its part of the log
//! line. [`hedging`] runs a second attempt beside a silent one, [`cancelled`] settles the one of both that loses.
//! [`caching`] replays a stored reply in place of all that.

pub mod billing;
pub mod caching;
mod cancelled;
mod failure;
mod feedback;
mod hedging;
mod images;
mod jobs;
mod log;
mod parts;
mod planned_attempt;
mod rate_limits;
mod schema;
mod upstream_request;
mod upstream_response;
mod usage;

use std::sync::Arc;

use bytes::Bytes;
use filters::fault::Fault;
use filters::json::Object;
use filters::models::metadata::AttemptRecord;
use filters::models::request::ModelRequest;
use filters::models::routing::affinity::SessionKey;
use filters::models::routing::explanation::Explanation;
use filters::models::routing::health::RunningAttempt;
use filters::models::routing::plan::LeftOut;
use filters::models::wires::{Failure, Target};
use filters::money::PricePoint;
use futures::future::BoxFuture;
use http::{HeaderName, HeaderValue};
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::{Error, Result};
use tokio::time::Instant;

use self::billing::Billing;
use self::caching::Caching;
use self::hedging::Hedge;
pub use self::planned_attempt::PlannedAttempt;
use self::upstream_response::ReplyReader;
use super::Models;
use super::deployment::Deployment;
use super::experiments::SendImpression;
use super::planner::Selection;
use super::providers::Credential;
use super::providers::endpoints::TriedEndpoints;
use super::retry_budget::RunningCall;
use crate::proxy::buffered::state::AttemptState;
use crate::proxy::context::RequestInfo;
use crate::proxy::exchange::{Broken, End, Exchange, LogPart, Report, Upstream};
use crate::proxy::hedge::Adopted;
use crate::proxy::upload::Upload;

/// How many other keys of one provider are tried inside an attempt. Source: docs/decisions.md 13.
const MAX_KEY_RETRIES: u8 = 2;
/// How many other endpoints of one provider are tried inside an attempt.
const MAX_ENDPOINT_RETRIES: u8 = 2;
/// Keys of one provider that a call can tell apart.
const MAX_KEYS: usize = 64;

/// Which attempt runs, and which keys it has used.
#[derive(Default)]
struct Cursor {
    /// The index of the attempt.
    attempt: usize,
    /// Which part of the request it asks for.
    parts: parts::PartProgress,
    /// The index of its key.
    key: usize,
    /// The keys of this provider used so far, as bits.
    used_keys: u64,
    key_retries: u8,
    /// The number of the endpoint.
    endpoint: usize,
    /// The endpoints of this provider used so far.
    tried_endpoints: TriedEndpoints,
    endpoint_retries: u8,
    /// The attempt was already repeated, because a reused connection had been closed.
    was_repeated: bool,
    /// The attempt is repeated with its key.
    keeps_key: bool,
    /// The state of earlier turns is left out, because the provider has refused it.
    without_state: bool,
    /// The number of attempts before it whose wires could not express the request.
    unsaid: usize,
}

/// The attempts that have ended.
#[derive(Default)]
struct AttemptLog {
    records: Vec<AttemptRecord>,
    failures: Vec<Failure>,
    /// Why a hook aborted the running attempt.
    aborted: Option<Failure>,
}

/// When things happened.
#[derive(Default)]
struct Timing {
    /// When content first went to the client.
    first_content: Option<Instant>,
    /// When the reply was complete. A slow client may get its end later.
    completed: Option<Instant>,
}

/// See the module.
pub struct ModelExchange {
    models: Arc<Models>,
    request: ModelRequest,
    /// The file of its form, if it is one.
    upload: Option<Arc<Upload>>,
    /// What decides its prices: the tier it asks for, and when it started.
    price_point: PricePoint,
    /// The provider that the model string named.
    requested_provider: Option<Arc<str>>,
    /// Best first; never empty.
    attempts: Vec<PlannedAttempt>,
    /// A forced tool call has to be lowered to `auto`.
    lower_tool_choice: bool,
    /// The id of the caller's API key.
    key_id: Option<Arc<str>>,
    /// Binds the session to the provider that answers.
    affinity_key: Option<SessionKey>,
    cursor: Cursor,
    /// Shared with the buffered session.
    state: Arc<AttemptState>,
    reader: ReplyReader,
    /// What was fetched of the images that the request names by address.
    images: images::Images,
    /// The request cannot be encoded for any attempt.
    fault: Option<Fault>,
    /// Candidates that cannot serve the request, as the plan or their wires say.
    left_out: Vec<LeftOut>,
    /// Why the plan is what it is, if the client wants to know.
    explanation: Option<Box<Explanation>>,
    caching: Caching,
    /// The impression of its experiment, until a model is asked or a stored reply is replayed.
    impression: Option<SendImpression>,
    log: AttemptLog,
    billing: Billing,
    timing: Timing,
    running: RunningCall,
    /// Measures the running attempt.
    measured: Option<RunningAttempt>,
    /// The second attempt, where the call may have one.
    hedge: Option<Box<Hedge>>,
}

impl ModelExchange {
    /// An exchange that is about to start its first attempt.
    pub fn new(
        models: Arc<Models>,
        request: ModelRequest,
        info: &RequestInfo,
        selection: &Selection,
        attempts: Vec<PlannedAttempt>,
    ) -> Self {
        let streams = request.goes_out_at_once();
        let timeouts = models.timeouts(streams, request.is_stream);
        let hedge = Hedge::new(&models, &request, &attempts);
        let race = hedge.as_ref().map(|hedge| Arc::clone(&hedge.race));
        let state = AttemptState::new(streams, timeouts, info.now);
        Self {
            state: Arc::new(state.with_race(race)),
            hedge,
            running: models.retry_budget.begin(),
            measured: None,
            models,
            price_point: request.price_point(info.unix_s()),
            request,
            upload: None,
            requested_provider: selection.provider.clone(),
            attempts,
            lower_tool_choice: selection.plan.lower_tool_choice,
            key_id: info
                .caller
                .as_ref()
                .map(|caller| Arc::clone(&caller.key_id)),
            affinity_key: None,
            cursor: Cursor::default(),
            reader: ReplyReader::default(),
            images: images::Images::default(),
            fault: None,
            left_out: selection.plan.left_out.clone(),
            explanation: None,
            caching: Caching::default(),
            impression: None,
            log: AttemptLog::default(),
            billing: Billing::default(),
            timing: Timing::default(),
        }
    }

    /// Binds this session to the provider that answers.
    pub fn bind_session(&mut self, session: SessionKey) {
        self.affinity_key = Some(session);
    }

    /// Sets the file that the client has uploaded.
    pub fn set_upload(&mut self, upload: Option<Arc<Upload>>) {
        self.upload = upload;
    }

    /// Lets the answer say why the plan is what it is.
    pub fn set_explanation(&mut self, explanation: Option<Box<Explanation>>) {
        self.explanation = explanation;
    }

    /// Adds to a fault why the plan is what it is, if the client wants to know.
    pub fn explain(&self, fault: Fault) -> Fault {
        match &self.explanation {
            Some(explanation) => explanation.add_to(fault, &self.left_out),
            None => fault,
        }
    }

    /// Returns why the plan is what it is, as JSON, if the client wants to know.
    fn route(&self) -> Option<Vec<u8>> {
        let explanation = self.explanation.as_ref()?;
        let mut out = Vec::new();
        explanation.write(&self.left_out, &mut out);
        Some(out)
    }

    /// Keeps the impression of its experiment until the user gets something of the variation.
    pub fn expect_impression(&mut self, impression: Option<SendImpression>) {
        self.impression = impression;
    }

    /// Sends the impression of its experiment, once.
    fn send_impression(&mut self) {
        if let Some(send) = self.impression.take() {
            send();
        }
    }

    /// What the buffered session shares with it.
    pub fn state(&self) -> Arc<AttemptState> {
        Arc::clone(&self.state)
    }

    /// The running attempt.
    fn attempt(&self) -> Option<&PlannedAttempt> {
        self.attempts.get(self.cursor.attempt)
    }

    /// The key of the running attempt.
    fn credential(&self) -> Option<&Credential> {
        self.attempt()?.keys.get(self.cursor.key)
    }

    /// Returns whether a failed attempt is repeated at another endpoint of its provider: where it is not about the key.
    fn moves_endpoint(&self, failure: &Failure, now_ms: u64) -> bool {
        let cursor = &self.cursor;
        failure.is_retryable
            && !failure.is_about_the_key()
            && cursor.endpoint_retries < MAX_ENDPOINT_RETRIES
            && self.deployment().is_some_and(|deployment| {
                let endpoints = &deployment.site.endpoints;
                endpoints.has_another(cursor.tried_endpoints, now_ms)
            })
    }

    /// The model at its provider that the running attempt asks.
    fn deployment(&self) -> Option<&Deployment> {
        self.attempt().map(|attempt| &*attempt.deployment)
    }

    /// The header of the running attempt's key; `None` if its provider needs no key.
    ///
    /// Errors: the key cannot stand in a header.
    fn credential_header(&self) -> Result<Option<&(HeaderName, HeaderValue)>, Fault> {
        let Some((attempt, key)) = self.attempt().zip(self.credential()) else {
            return Ok(None);
        };
        attempt.deployment.provider.credential(key)
    }

    /// What the provider of the running attempt must not reveal with its words: its key and its addresses.
    fn revealing(&self) -> Vec<String> {
        let provider = self.deployment().map(|deployment| &deployment.provider);
        let mut all = provider.map_or_else(Vec::new, |provider| provider.revealing());
        let secret = self.credential().and_then(|key| key.secret.as_ref());
        all.extend(secret.map(|secret| secret.expose().to_owned()));
        all
    }

    /// The target of the running attempt, as its wire needs to know it.
    fn target(&self) -> Option<Target<'_>> {
        let target = self.deployment()?.target();
        let is_byok = self.attempt().is_some_and(PlannedAttempt::is_byok);
        Some(Target {
            lower_tool_choice: self.lower_tool_choice,
            refuses_state: self.cursor.without_state,
            inlined: self.images.inlined(),
            key_id: self.key_id.as_deref(),
            part: self.cursor.parts.part,
            // Nothing is reserved for a caller's own key.
            unasked_output: target.unasked_output.filter(|_| !is_byok),
            ..target
        })
    }

    /// The entry of `metadata.routing` for the running attempt.
    fn record(&self, failure: Option<&Failure>) -> Option<AttemptRecord> {
        let deployment = self.deployment()?;
        let key = self.credential();
        let own = key.and_then(|key| key.byok.as_ref());
        Some(AttemptRecord {
            used: Arc::clone(&deployment.used),
            status_code: failure.map_or(200, Failure::status),
            error_type: failure.map_or("none", Failure::error_type),
            succeeded: failure.is_none(),
            api_key_hash: key.and_then(|key| key.fingerprint.clone()),
            credential_source: if own.is_some() { "byok" } else { "platform" },
            provider_key: own.map(|own| (Arc::clone(&own.id), Arc::clone(&own.label))),
            owed: None,
        })
    }
}

impl Exchange for ModelExchange {
    fn is_billed(&self) -> bool {
        true
    }

    fn begin_attempt(&mut self, info: &RequestInfo) -> Result<Upstream> {
        match hedging::adopt(self, info) {
            Some(adopted) => Ok(Upstream::Hedge(adopted)),
            None => upstream_request::begin(self, info).map(Upstream::Origin),
        }
    }

    fn prepare_attempt<'a>(&'a mut self, info: &'a RequestInfo) -> Option<BoxFuture<'a, ()>> {
        images::prepare(self, info)
    }

    fn upstream_head(&mut self, info: &RequestInfo, head: &mut RequestHeader) -> Result<()> {
        match &self.hedge {
            Some(hedge) if hedge.is_adopted() => Adopted::write_head(head),
            _ => upstream_request::write_head(self, info, head),
        }
    }

    fn upstream_body(
        &mut self,
        info: &RequestInfo,
        head: &RequestHeader,
        _: Option<&Bytes>,
    ) -> Result<()> {
        match self.state.record_sent() {
            true => Ok(()),
            false => hedging::hear(self, info, head),
        }
    }

    fn response_status<'a>(
        &'a mut self,
        info: &'a RequestInfo,
        head: &'a ResponseHeader,
    ) -> Result<Option<BoxFuture<'a, ()>>> {
        upstream_response::judge_status(self, info, head);
        Ok(None)
    }

    fn response_head(&mut self, info: &RequestInfo, head: &mut ResponseHeader) -> Result<()> {
        upstream_response::replace_head(self, info, head);
        Ok(())
    }

    fn response_body(
        &mut self,
        info: &RequestInfo,
        body: &mut Option<Bytes>,
        is_end: bool,
    ) -> Result<()> {
        upstream_response::translate(self, info, body, is_end)
    }

    fn connect_failed(&mut self, info: &RequestInfo, error: Box<Error>) -> Box<Error> {
        failure::connect_failed(self, info, error)
    }

    fn broke(&mut self, info: &RequestInfo, error: Box<Error>, broken: Broken) -> Box<Error> {
        failure::broke(self, info, error, broken)
    }

    fn report(&mut self, info: &RequestInfo, error: &Error, is_head_sent: bool) -> Report {
        failure::report(self, info, error, is_head_sent)
    }

    fn finish(&mut self, info: &RequestInfo, end: &End<'_>) -> &'static str {
        feedback::finish(self, info, end)
    }

    fn log(&self, info: &RequestInfo, part: LogPart, line: &mut Object<'_>) {
        if part == LogPart::AfterSizes {
            log::write(self, info, line);
        }
    }
}
