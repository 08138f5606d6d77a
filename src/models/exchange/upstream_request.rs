//! The request of an attempt: its provider, key, head and body.

use std::cell::Cell;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use filters::fault::{Fault, FaultKind};
use filters::models::chat::inlined::WantedImage;
use filters::models::cloud_credentials::granted::GrantedSecret;
use filters::models::cloud_credentials::sigv4::{BodyHash, RunningBodyHash};
use filters::models::dialects::state::LeftOutState;
use filters::models::routing::affinity::SessionKey;
use filters::models::routing::capable::Lack;
use filters::models::routing::plan::LeftOut;
use filters::models::wires::wire::Target;
use filters::models::wires::{Failure, FailureKind};
use futures::future::BoxFuture;
use pingora::http::RequestHeader;
use pingora::{Error, ErrorType, Result};

use super::ModelExchange;
use super::attempt::{Attempt, SignIn};
use super::attempt_span::AttemptTimes;
use super::call::Call;
use crate::cloud_credentials::authorize::authorize;
use crate::models::upstream_head::OwnHeaders;
use crate::proxy::body;
use crate::proxy::buffered::error_types::ATTEMPT_ABORTED;
use crate::proxy::context::RequestInfo;
use crate::proxy::exchange::{Begun, Upstream};
use crate::proxy::hedge::Adopted;
use crate::proxy::origin::Origin;
use crate::proxy::upload::BodyPiece;

fn no_attempt() -> Fault {
    Fault::new(FaultKind::Internal, "no attempt is planned")
}

impl ModelExchange {
    /// Encodes the request for the next attempt whose wire can express it. Returns the upstream, or the wait for
    /// missing images.
    ///
    /// Errors: none of the remaining wires can express the request. If there was no other attempt, the call keeps the
    /// fault.
    pub(super) fn begin<'a>(&'a mut self, info: &'a RequestInfo) -> Result<Begun<'a>> {
        let mut first = None;
        if self
            .call
            .turns
            .as_ref()
            .is_some_and(|turns| turns.is_between())
        {
            return Ok(Begun::Wait(self.next_turn(info)));
        }
        if self.is_judged() {
            self.state.begin_hedge(info.now);
            return Ok(Begun::At(Upstream::Hedge(Adopted::ended())));
        }
        if self.call.fault.is_some() {
            return Error::e_explain(ATTEMPT_ABORTED, "the next turn cannot begin");
        }
        loop {
            if let Some(fetching) = self.sign_in(info)? {
                return Ok(Begun::Wait(fetching));
            }
            let missing = self.running.missing_images(&self.call);
            let started = match self.call.images.fault() {
                _ if missing.is_empty() => self.start(info),
                Some(fault) => Err(fault),
                None => {
                    let Self { models, call, .. } = self;
                    let is_edited = call.request.payload.images().is_some();
                    let fetching = call.images.fetch(&models.media, info, missing, is_edited);
                    return Ok(Begun::Wait(fetching));
                }
            };
            let Err(fault) = started else {
                break;
            };
            if !self.skip_attempt(&fault) {
                if self.call.log.failures.is_empty() {
                    self.call.fault = Some(first.unwrap_or(fault));
                }
                return Error::e_explain(ATTEMPT_ABORTED, "no wire can express the request");
            }
            first.get_or_insert(fault);
        }
        let now_ms = self.now_ms(info);
        let Some(origin) = self.running.endpoint(&self.call, now_ms) else {
            return Error::e_explain(ATTEMPT_ABORTED, "no attempt is left");
        };
        self.call.send_impression();
        Ok(Begun::At(Upstream::Origin(origin)))
    }

    /// Takes the credential of the current attempt, or of the next one whose source gives one. Returns the fetch to wait for.
    ///
    /// Errors: no attempt is left.
    fn sign_in(&mut self, info: &RequestInfo) -> Result<Option<BoxFuture<'static, ()>>> {
        loop {
            let now_ms = self.now_ms(info);
            match self.running.sign_in(&self.call, now_ms) {
                SignIn::Done => return Ok(None),
                SignIn::Waits(source) => {
                    return Ok(Some(Box::pin(async move { source.wait().await })));
                }
                SignIn::Failed => {
                    let failure = Failure::new(FailureKind::Credential);
                    if !self.fail(info, failure) {
                        return Error::e_explain(
                            ATTEMPT_ABORTED,
                            "the credentials are unavailable",
                        );
                    }
                }
            }
        }
    }

    /// Starts the current attempt. Its wire can express the request.
    fn start(&mut self, info: &RequestInfo) -> Result<(), Fault> {
        let now_ms = self.now_ms(info);
        let (call, running, state) = (&self.call, &mut self.running, &self.state);
        let body = running.encode(call, now_ms)?;
        let is_first = running.cursor.parts.part == 0;
        if call.turns.as_ref().is_some_and(|turns| turns.is_later()) {
            let turn = running.new_turn(call, info);
            running.reader.begin_turn(turn);
        } else if is_first {
            let reader = running.new_reader(call, info, call.caching.recorder());
            running.reader = reader.ok_or_else(no_attempt)?;
        } else {
            running.reader.begin_part();
        }
        state.begin_attempt(body, info.now);
        state.set_bills_after_disconnect(running.bills_after_disconnect(call));
        // The parts of an attempt are measured together.
        if is_first || running.measured.is_none() {
            self.begin_measuring(info, now_ms);
        }
        Ok(())
    }

    /// Starts to measure the attempt. The trial of a provider that has failed gets less time than other attempts, if
    /// another provider is left.
    fn begin_measuring(&mut self, info: &RequestInfo, now_ms: u64) {
        let (call, running) = (&self.call, &mut self.running);
        running.times = AttemptTimes::begin(info);
        let Some(deployment) = running.deployment(call) else {
            return;
        };
        if let Some(open) = &info.open_call {
            open.attempt(&deployment.model.id, &deployment.provider.name);
        }
        let planner = &self.models.planner;
        let measured = planner.begin_attempt(deployment.index, call.request.is_stream, now_ms);
        let has_next = running.cursor.attempt + 1 < call.attempts.len();
        if let Some(patience_ms) = measured.trial_patience_ms().filter(|_| has_next) {
            self.state.set_patience(Duration::from_millis(patience_ms));
        }
        running.measured = Some(measured);
    }

    /// Skips the current attempt because its wire cannot express the request. Returns whether there is another one.
    ///
    /// Nothing was sent, so this affects neither health nor the budget of fallbacks.
    fn skip_attempt(&mut self, fault: &Fault) -> bool {
        let (call, cursor) = (&mut self.call, &mut self.running.cursor);
        if let Some(attempt) = call.attempts.get(cursor.attempt) {
            let deployment = &attempt.deployment;
            call.left_out.push(LeftOut {
                region: None,
                provider: Arc::clone(&deployment.provider.name),
                model: Arc::clone(&deployment.model.id),
                lack: Lack::of_fault(fault),
            });
        }
        let next = cursor.attempt + 1;
        let has_next = next < call.attempts.len();
        if has_next {
            *cursor = cursor.later(next);
            cursor.unsaid += 1;
        }
        has_next
    }

    /// Writes the head of the upstream request. Of the client's headers, only `traceparent` passes.
    ///
    /// Errors: the path is not a URI, which is a bug.
    pub(super) fn write_head(&self, info: &RequestInfo, head: &mut RequestHeader) -> Result<()> {
        let is_adopted = self.hedge.as_ref().is_some_and(|hedge| hedge.is_adopted());
        if is_adopted || self.is_judged() {
            return Adopted::write_head(head);
        }
        let body_bytes = self.state.body_bytes();
        match self.running.head(&self.call, info, head, body_bytes) {
            Some(fresh) => *head = fresh,
            None => return Error::e_explain(ErrorType::InternalError, "the path of a provider"),
        }
        Ok(())
    }
}

impl Attempt {
    /// Returns the images that the wire only accepts in the body and that are not fetched.
    pub(super) fn missing_images(&self, call: &Call) -> Vec<WantedImage> {
        let images = call.request.payload.remote_images();
        if images.is_empty() {
            return Vec::new();
        }
        let operation = call.request.payload.operation();
        let deployment = self.deployment(call);
        let limits = deployment.and_then(|at| at.provider.limits(&at.mapping, operation));
        limits.map_or_else(Vec::new, |limits| {
            call.images.missing(&limits.media, images)
        })
    }

    /// Picks the key, and returns the body of the request.
    ///
    /// Errors: the wire cannot express the request, or the key is not valid in a header.
    pub(super) fn encode(&mut self, call: &Call, now_ms: u64) -> Result<Vec<BodyPiece>, Fault> {
        let attempt = self.planned(call).ok_or_else(no_attempt)?;
        self.cursor.pick_key(attempt, now_ms);
        self.credential_header(call)?;
        let left_out_state = Cell::new(0);
        let target = Target {
            left_out_state: LeftOutState::counted(&left_out_state),
            ..self.target(call).ok_or_else(no_attempt)?
        };
        let (codec, request) = (attempt.codec, &call.request);
        let slices =
            body::off_worker(request.source.body.len(), || codec.encode(request, &target))?;
        let slices = slices.into_iter().map(|slice| call.body_piece(slice));
        let body: Vec<BodyPiece> = slices.collect::<Result<_, Fault>>()?;
        let provider = &attempt.deployment.provider;
        let bytes = body.iter().map(BodyPiece::len).sum();
        provider.host.check_body(&provider.name, bytes)?;
        let parts = codec.parts(request, &target);
        self.cursor.left_out_state = left_out_state.get();
        self.cursor.parts.count = parts.count;
        self.cursor.parts.text_bytes = parts.text_bytes;
        self.cursor.body_hash = self.hash_of(&body)?;
        Ok(body)
    }

    /// Returns the hash of a body, if the credential signs requests.
    ///
    /// Errors: an upload cannot be read.
    fn hash_of(&self, body: &[BodyPiece]) -> Result<Option<BodyHash>, Fault> {
        let held = self.cursor.held.as_ref();
        let signs = held.is_some_and(|it| matches!(it.granted.secret, GrantedSecret::Keys(_)));
        if !signs {
            return Ok(None);
        }
        let bytes = body.iter().map(BodyPiece::len).sum();
        let hash = body::off_worker(bytes, || hash(body));
        let hash = hash.map_err(|error| {
            Fault::new(FaultKind::Internal, "the upload cannot be read")
                .with_detail(error.to_string())
        });
        hash.map(Some)
    }

    /// Picks the endpoint.
    pub(super) fn endpoint(&mut self, call: &Call, now_ms: u64) -> Option<Arc<Origin>> {
        let endpoints = &self.planned(call)?.deployment.site.endpoints;
        let cursor = &mut self.cursor;
        let session = call.affinity_key.map(SessionKey::number);
        cursor.endpoint = endpoints.pick(session, cursor.tried_endpoints, now_ms);
        cursor.tried_endpoints.add(cursor.endpoint);
        endpoints.origin(cursor.endpoint).map(Arc::clone)
    }

    /// Returns the head of the request in place of the client's, or `None` if the provider's path is not a URI.
    pub(super) fn head(
        &self,
        call: &Call,
        info: &RequestInfo,
        client: &RequestHeader,
        body_bytes: usize,
    ) -> Option<RequestHeader> {
        let request = &call.request;
        let attempt = self.planned(call)?;
        let deployment = &attempt.deployment;
        let template = deployment.head(request.payload.operation(), request.is_stream)?;
        let endpoints = Some(&deployment.site.endpoints).filter(|it| it.are_several());
        let origin = endpoints.and_then(|endpoints| endpoints.origin(self.cursor.endpoint));
        let target = self.target(call)?;
        let own = OwnHeaders {
            authority: origin.map(|origin| &origin.authority),
            of_wire: &attempt.codec.headers(request, &target),
            body_bytes,
            request_id: info.id.as_header(),
            traceparent: self.times.traceparent(info),
            credential: self.credential_header(call).ok().flatten(),
            passed: attempt.keys.passed(),
        };
        let mut head = template.request(&own, client)?;
        if let Some(held) = &self.cursor.held {
            let scope = deployment.site.signing.as_ref();
            let hash = self
                .cursor
                .body_hash
                .unwrap_or_else(|| BodyHash::from_slices([]));
            authorize(&mut head, held, scope, (&hash, info.now_unix_s()))?;
        }
        Some(head.into())
    }
}

/// Returns the hash of a body.
///
/// Errors: an upload cannot be read.
fn hash(body: &[BodyPiece]) -> io::Result<BodyHash> {
    let mut running = RunningBodyHash::default();
    for piece in body {
        let (mut at, end) = (0, piece.len() as u64);
        while at < end {
            let bytes = piece.read(at)?;
            if bytes.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            running.update(&bytes);
            at += bytes.len() as u64;
        }
    }
    Ok(running.end())
}
