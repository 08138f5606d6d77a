//! One attempt of a call: the planned attempt, its key and endpoint, and its reply. Attempts share their [`Call`], so
//! a hedge may run beside another attempt.

use std::sync::Arc;

use filters::fault::Fault;
use filters::models::cloud_credentials::sigv4::BodyHash;
use filters::models::dialects::chat_state;
use filters::models::dialects::state::{Maker, OwnedMaker, States};
use filters::models::exported_content::CutText;
use filters::models::metadata::{AttemptRecord, Owed};
use filters::models::reply::ReplyIdentity;
use filters::models::reply_cache::recorder::ReplyRecorder;
use filters::models::routing::health::RunningAttempt;
use filters::models::search_loop::turn::SearchTurn;
use filters::models::wires::{Failure, FailureKind, Target};
use http::{HeaderName, HeaderValue};

use super::attempt_span::{AttemptEnd, AttemptFacts, AttemptTimes};
use super::call::Call;
use super::planned_attempt::PlannedAttempt;
use super::reply_reader::ReplyReader;
use crate::cloud_credentials::{CredentialSource, HeldCredential, SourceState};
use crate::models::deployment::Deployment;
use crate::models::providers::Credential;
use crate::models::providers::endpoints::TriedEndpoints;
use crate::proxy::context::RequestInfo;

/// The maximum number of other keys of a provider that one attempt tries. Source: docs/decisions.md 13.
const MAX_KEY_RETRIES: u8 = 2;
/// The maximum number of other endpoints of a provider that one attempt tries.
const MAX_ENDPOINT_RETRIES: u8 = 2;
/// The maximum number of keys of one provider that a call can distinguish.
const MAX_KEYS: usize = 64;

/// One attempt of a call.
#[derive(Default)]
pub(super) struct Attempt {
    pub(super) cursor: Cursor,
    pub(super) reader: ReplyReader,
    /// Measures the attempt while it runs.
    pub(super) measured: Option<RunningAttempt>,
    pub(super) times: AttemptTimes,
}

/// The position of an attempt in the plan, and the keys that it has used.
#[derive(Default)]
pub(super) struct Cursor {
    /// The index of the planned attempt.
    pub(super) attempt: usize,
    /// The part of the request that the attempt sends.
    pub(super) parts: PartProgress,
    /// The index of the key.
    key: usize,
    /// The keys of this provider that were used, as bits.
    used_keys: u64,
    key_retries: u8,
    /// The number of the endpoint.
    pub(super) endpoint: usize,
    /// What a source has given in place of the key.
    pub(super) held: Option<Arc<HeldCredential>>,
    /// The hash of the body, which a signature needs.
    pub(super) body_hash: Option<BodyHash>,
    /// By how much this machine's clock differs from that of a provider that refuses what a source has given.
    pub(super) clock_skew: Option<Box<str>>,
    /// Whether the attempt has waited for its source.
    has_waited: bool,
    /// Whether it was repeated because what the source had given was refused.
    was_signed_in_anew: bool,
    /// The endpoints of this provider that were tried.
    pub(super) tried_endpoints: TriedEndpoints,
    pub(super) endpoint_retries: u8,
    /// Whether the attempt was already repeated because a reused connection had been closed.
    pub(super) was_repeated: bool,
    /// Whether the attempt is repeated with its key.
    pub(super) keeps_key: bool,
    /// Whether the state of earlier turns is left out, because the provider has refused it.
    without_state: bool,
    /// The pieces of earlier turns that are left out, because another maker made them.
    pub(super) left_out_state: u32,
    /// The number of earlier attempts whose wires could not express the request.
    pub(super) unsaid: usize,
}

/// What the credential of an attempt needs before the attempt begins.
pub(super) enum SignIn {
    /// Nothing.
    Done,
    /// A fetch of its source.
    Waits(Arc<CredentialSource>),
    /// The source gives none.
    Failed,
}

/// The progress of an attempt whose provider takes the request in several parts.
#[derive(Default)]
pub(super) struct PartProgress {
    /// The part that is sent, from 0.
    pub(super) part: u32,
    /// The number of parts.
    pub(super) count: u32,
    /// The bytes of text in this part, for estimates.
    pub(super) text_bytes: u64,
    /// Whether the part has ended and the next one follows.
    pub(super) has_ended: bool,
}

impl PartProgress {
    /// Returns whether another part follows this one.
    pub(super) fn has_next(&self) -> bool {
        self.part + 1 < self.count
    }
}

impl Cursor {
    /// Returns the progress of a later planned attempt, at this index.
    pub(super) fn later(&self, attempt: usize) -> Self {
        Self {
            attempt,
            unsaid: self.unsaid,
            ..Self::default()
        }
    }

    /// Picks the key of the attempt.
    pub(super) fn pick_key(&mut self, attempt: &PlannedAttempt, now_ms: u64) {
        if !std::mem::take(&mut self.keeps_key) {
            let (keys, candidate) = (&attempt.keys, attempt.deployment.id);
            self.key = keys.pick(self.used_keys, candidate, now_ms);
        }
        self.used_keys |= 1 << (self.key % MAX_KEYS);
    }

    /// Moves to another key of the provider after a failure that is about the key. Returns whether there is one.
    fn next_key(&mut self, keys: usize) -> bool {
        let has_unused = (0..keys.min(MAX_KEYS)).any(|key| self.used_keys & (1 << key) == 0);
        let moves = has_unused && self.key_retries < MAX_KEY_RETRIES;
        self.key_retries += u8::from(moves);
        moves
    }
}

impl Attempt {
    /// Returns the planned attempt.
    pub(super) fn planned<'c>(&self, call: &'c Call) -> Option<&'c PlannedAttempt> {
        call.attempts.get(self.cursor.attempt)
    }

    /// Returns the deployment that the attempt asks.
    pub(super) fn deployment<'c>(&self, call: &'c Call) -> Option<&'c Deployment> {
        self.planned(call).map(|attempt| &*attempt.deployment)
    }

    /// Returns the key of the attempt.
    pub(super) fn credential<'c>(&self, call: &'c Call) -> Option<&'c Credential> {
        self.planned(call)?.keys.get(self.cursor.key)
    }

    /// Returns whether the provider bills the caller itself.
    pub(super) fn is_byok(&self, call: &Call) -> bool {
        self.planned(call).is_some_and(PlannedAttempt::is_byok)
    }

    /// Returns whether the provider bills the request even if the client disconnects. A job that has begun is billed
    /// in any case.
    pub(super) fn bills_after_disconnect(&self, call: &Call) -> bool {
        let planned = self.planned(call);
        call.request.payload.operation().begins_job()
            || planned.is_some_and(PlannedAttempt::bills_after_disconnect)
    }

    /// Returns the header with the key, or `None` if the provider needs no key.
    ///
    /// Errors: the key is not valid in a header.
    pub(super) fn credential_header<'c>(
        &self,
        call: &'c Call,
    ) -> Result<Option<&'c (HeaderName, HeaderValue)>, Fault> {
        let Some((attempt, key)) = self.planned(call).zip(self.credential(call)) else {
            return Ok(None);
        };
        attempt.deployment.provider.credential(key)
    }

    /// Returns the source of what the attempt sends in place of a key, if it has one.
    pub(super) fn source<'c>(&self, call: &'c Call) -> Option<&'c Arc<CredentialSource>> {
        let (attempt, key) = self.planned(call).zip(self.credential(call))?;
        attempt.deployment.provider.source(key)
    }

    /// Picks the key, and takes what its source has, if it has one.
    pub(super) fn sign_in(&mut self, call: &Call, now_ms: u64) -> SignIn {
        let Some(attempt) = self.planned(call) else {
            return SignIn::Done;
        };
        self.cursor.pick_key(attempt, now_ms);
        self.cursor.keeps_key = true;
        let source = self.source(call);
        let cursor = &mut self.cursor;
        cursor.held = None;
        match source.map(|source| (source, source.state())) {
            None => SignIn::Done,
            Some((_, SourceState::Ready(held))) => {
                cursor.held = Some(held);
                cursor.has_waited = false;
                SignIn::Done
            }
            Some((source, SourceState::Missing)) if !cursor.has_waited => {
                cursor.has_waited = true;
                SignIn::Waits(Arc::clone(source))
            }
            Some((_, SourceState::Missing | SourceState::Failed(_))) => {
                cursor.has_waited = false;
                SignIn::Failed
            }
        }
    }

    /// Repeats the attempt once with what its source gives anew, if the provider refuses what it has given. Returns
    /// whether it does.
    pub(super) fn repeat_signed_in_anew(&mut self, call: &Call, failure: &Failure) -> bool {
        let is_refused = matches!(failure.kind, FailureKind::Status(401 | 403));
        let held = self.source(call).zip(self.cursor.held.as_ref());
        let Some((source, held)) = held.filter(|_| is_refused) else {
            return false;
        };
        let skew = self.cursor.clock_skew.as_deref();
        let repeats = !self.cursor.was_signed_in_anew && source.refuse(held, skew);
        self.cursor.was_signed_in_anew |= repeats;
        self.cursor.keeps_key |= repeats;
        repeats
    }

    /// Returns a failure without the key and the addresses that the provider's text may reveal.
    pub(super) fn scrubbed(&self, call: &Call, failure: Failure) -> Failure {
        let deployment = self.deployment(call);
        let revealing = deployment.map(|deployment| deployment.provider.revealing());
        let mut revealing = revealing.unwrap_or_default();
        let secret = self.credential(call).and_then(|key| key.secret.as_ref());
        revealing.extend(secret.map(|secret| secret.expose().to_owned()));
        revealing.extend(self.cursor.held.iter().flat_map(|held| held.revealing()));
        failure.scrubbed(&revealing)
    }

    /// Returns the target, with the facts that its wire needs.
    pub(super) fn target<'c>(&self, call: &'c Call) -> Option<Target<'c>> {
        let attempt = self.planned(call)?;
        let target = attempt.deployment.target();
        let own_key = self.credential(call).and_then(Credential::own_id);
        Some(Target {
            maker: Maker {
                states: &call.states,
                own_key,
                ..target.maker
            },
            lower_tool_choice: call.lower_tool_choice,
            refuses_state: self.cursor.without_state,
            inlined: call.images.inlined(),
            key_id: call.key_id.as_deref(),
            part: self.cursor.parts.part,
            // Nothing is reserved for BYOK keys.
            unasked_output: target.unasked_output.filter(|_| !attempt.is_byok()),
            ..target
        })
    }

    /// Returns the reader of the attempt's reply.
    pub(super) fn new_reader(
        &self,
        call: &Call,
        info: &RequestInfo,
        recorder: Option<ReplyRecorder>,
    ) -> Option<ReplyReader> {
        let identity = self.identity(call, info)?;
        let writer = call.request.front.writer(&call.request, identity);
        let answer = call.copies_content.then(CutText::default);
        let reader = ReplyReader::new(writer, recorder, self.new_turn(call, info));
        let reader = reader.keeping_text(answer);
        Some(match info.trace {
            Some(_) => reader.noting_finishes(),
            None => reader,
        })
    }

    /// Returns the turn that the attempt begins, if the answer may have several or its calls are judged.
    pub(super) fn new_turn(&self, call: &Call, info: &RequestInfo) -> Option<Box<SearchTurn>> {
        let turns = call.turns.as_ref()?;
        let identity = self.identity(call, info)?;
        turns.begin(&call.request, identity).map(Box::new)
    }

    fn identity(&self, call: &Call, info: &RequestInfo) -> Option<ReplyIdentity> {
        Some(ReplyIdentity {
            id: info.id.as_str().into(),
            created: info.unix_s(),
            model: Arc::clone(&self.deployment(call)?.used.used_model),
            maker: OwnedMaker {
                states: call.states.clone(),
                name: self.maker_name(call)?,
                dialect: self.deployment(call)?.wire.dialect,
                is_vendor: self.deployment(call)?.provider.is_vendor,
            },
        })
    }

    /// Returns the name of the maker of the reply's state.
    pub(super) fn maker_name(&self, call: &Call) -> Option<Arc<str>> {
        let maker = &self.deployment(call)?.maker;
        let own_key = self.credential(call).and_then(Credential::own_id);
        let Some(own_key) = own_key else {
            return Some(Arc::clone(maker));
        };
        let maker = Maker {
            own_key: Some(own_key),
            ..Maker::from_name(States::NONE, maker)
        };
        Some(maker.name().into())
    }

    /// Returns the attempt's entry in `metadata.routing`.
    pub(super) fn record(
        &self,
        call: &Call,
        info: &RequestInfo,
        failure: Option<&Failure>,
    ) -> Option<AttemptRecord> {
        let deployment = self.deployment(call)?;
        let key = self.credential(call);
        let own = key.and_then(|key| key.byok.as_ref());
        let is_own = key.is_some_and(Credential::is_byok);
        Some(AttemptRecord {
            used: Arc::clone(&deployment.used),
            status_code: failure.map_or(200, Failure::status),
            error_type: failure.map_or("none", Failure::error_type),
            succeeded: failure.is_none(),
            api_key_hash: key.and_then(|key| key.fingerprint.clone()),
            credential_source: if is_own { "byok" } else { "platform" },
            provider_key: own.map(|own| (Arc::clone(&own.id), Arc::clone(&own.label))),
            owed: None,
            ran: self.times.run(info),
        })
    }

    /// Exports the span of the attempt, if it is traced and its span was not exported.
    pub(super) fn send_span(&mut self, call: &Call, info: &RequestInfo, end: AttemptEnd<'_>) {
        let times = std::mem::take(&mut self.times);
        if info.trace.is_none() {
            return;
        }
        if let Some(deployment) = self.deployment(call) {
            let facts = AttemptFacts {
                request: &call.request,
                deployment,
                endpoint: self.cursor.endpoint,
                is_byok: self.is_byok(call),
                finish_reasons: self.reader.finish_reasons(),
            };
            times.send_span(&facts, info, end);
        }
    }

    /// Adds the failed attempt to the ended ones. `owed` is its cost if its provider bills it all the same.
    pub(super) fn record_end(
        &mut self,
        call: &mut Call,
        info: &RequestInfo,
        failure: &Failure,
        owed: Option<Owed>,
    ) {
        let record = self.record(call, info, Some(failure));
        self.send_span(call, info, AttemptEnd::Failed(failure));
        let Some(record) = record else {
            return;
        };
        let record = AttemptRecord { owed, ..record };
        if let Some(deployment) = self.deployment(call) {
            deployment.metrics.count_attempt(&record);
        }
        call.log.records.push(record);
    }

    /// Returns whether the attempt should be repeated at another endpoint of its provider: the failure is not about
    /// the key.
    pub(super) fn moves_endpoint(&self, call: &Call, failure: &Failure, now_ms: u64) -> bool {
        let cursor = &self.cursor;
        failure.is_retryable
            && !failure.is_about_the_key()
            && cursor.endpoint_retries < MAX_ENDPOINT_RETRIES
            && self.deployment(call).is_some_and(|deployment| {
                let endpoints = &deployment.site.endpoints;
                endpoints.has_another(cursor.tried_endpoints, now_ms)
            })
    }

    /// Repeats the attempt once with the same key, without the state that the provider refuses. Returns whether it
    /// does.
    ///
    /// The state of a turn is only valid for its model, often only for its account, and for a limited time. The
    /// conversation continues without it.
    pub(super) fn repeat_without_state(&mut self, call: &Call, failure: &Failure) -> bool {
        let body = &call.request.source.body;
        let cursor = &mut self.cursor;
        if !failure.refuses_state || cursor.without_state || !chat_state::may_be_in(body) {
            return false;
        }
        cursor.without_state = true;
        cursor.keeps_key = true;
        true
    }

    /// Repeats the attempt with the same key at another endpoint of its provider, if there is one. Returns whether it
    /// does.
    pub(super) fn repeat_elsewhere(&mut self, moves_endpoint: bool) -> bool {
        if moves_endpoint {
            self.cursor.endpoint_retries += 1;
            self.cursor.keeps_key = true;
        }
        moves_endpoint
    }

    /// Repeats the attempt with another key of its provider, if the failure is about the key. Returns whether it
    /// does.
    pub(super) fn repeat_with_next_key(&mut self, call: &Call, failure: &Failure) -> bool {
        let keys = self.planned(call).map_or(0, |attempt| attempt.keys.len());
        failure.is_about_the_key() && self.cursor.next_key(keys)
    }

    /// Moves to the next planned attempt.
    pub(super) fn advance(&mut self) {
        let key = self.cursor.key;
        self.cursor = self.cursor.later(self.cursor.attempt + 1);
        self.cursor.key = key;
    }
}
