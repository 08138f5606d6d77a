//! Takes a request to an open exchange: checks it, plans its attempts and reserves its cost.

use std::sync::Arc;
use std::time::Duration;

use filters::fault::{Fault, FaultKind};
use filters::models::front::{ClientHead, Front, Received};
use filters::models::managed::ManagedRequest;
use filters::models::request::ModelRequest;
use filters::models::routing::explanation::check_debug;
use filters::models::stateful::StatefulRequest;
use filters::models::stored_responses::ResponsePromise;
use filters::multipart;
use futures::future::{self, BoxFuture, Either};
use http::{HeaderMap, HeaderName};

use super::Models;
use super::exchange::{AnswerTurns, Judge, ModelExchange, PlannedCall, caching, continued};
use super::experiments::SendImpression;
use super::passthrough::check_ends_with_request;
use super::planner::{PlanContext, Resolution};
use super::providers::ProviderKeys;
use super::reply_cache::{ReplyLookup, Search};
use super::sessions::{Session, session_id, session_of_head};
use crate::proxy::body;
use crate::proxy::context::RequestInfo;
use crate::proxy::exchange::Exchange;
use crate::proxy::handler::{Buffering, Forward, Incoming, Opened};
use crate::proxy::permits::Permit;
use crate::proxy::response::Response;
use crate::proxy::upload::{UploadedBody, UploadedContent};

const NO_FALLBACK: HeaderName = HeaderName::from_static("x-no-fallback");
const DEBUG: HeaderName = HeaderName::from_static("x-weirgate-debug");

/// Opens calls of models.
pub struct ModelHandler {
    pub models: Arc<Models>,
    /// How clients of the route speak.
    pub front: &'static dyn Front,
}

impl Forward for ModelHandler {
    fn is_call(&self) -> bool {
        true
    }

    fn open<'a>(
        &'a self,
        incoming: &'a mut Incoming<'_>,
        exchange: &'a mut Option<Box<dyn Exchange>>,
    ) -> BoxFuture<'a, Result<Opened, Fault>> {
        Box::pin(async move {
            let explains = asks_for_route(incoming)?;
            let (mut request, impression, upload) = match incoming.take_uploaded() {
                Some(UploadedBody { content, upload }) => {
                    let request = match content {
                        UploadedContent::Form(form) => self.front.read_upload(form),
                        UploadedContent::Json(json) => {
                            body::off_worker(json.body.len(), || self.front.read_spooled(json))
                        }
                    };
                    (Box::new(request?), None, Some(upload))
                }
                None => {
                    let (request, impression) = self.receive(incoming).await?;
                    self.check_callback(&request)?;
                    (request, impression, None)
                }
            };
            request.take_headers(&incoming.head().headers);
            let (managed, front) = (request.managed.clone(), request.front);
            let is_background = request.is_background();
            let planned = self.plan(incoming, request, explains).await;
            let planned = planned.map_err(|fault| match &managed {
                Some(managed) => managed.explain(fault),
                None => front.explain(fault),
            });
            let (mut call, found) = planned?;
            call.expect_impression(impression);
            call.set_upload(upload);
            call.set_session(&incoming.head().headers, incoming.info())?;
            if let Some(found) = found
                && let Some(replayed) = call.replay(incoming.info(), found)
            {
                *exchange = Some(call);
                return Ok(Opened::Response(replayed));
            }
            let mut permit = incoming.take_permit();
            let reserving = call.reserve(incoming.info());
            let reserved = Permit::free_while(&mut permit, reserving).await.flatten();
            incoming.set_permit(permit);
            incoming.set_budget(call.budget_head(incoming.info()));
            let reserved = reserved.map_err(|fault| call.explain(fault));
            if reserved.is_err() {
                call.release_followers();
            }
            if reserved.is_ok() && is_background {
                let queued = Box::pin(self.queue(incoming, &mut call)).await;
                *exchange = Some(call);
                return queued.map(Opened::Response);
            }
            let buffering = Buffering::UntilContent(call.state());
            *exchange = Some(call);
            reserved.map(|()| Opened::Upstream(buffering))
        })
    }
}

/// Returns whether the response states the reasons of the plan. Only a debug key may ask for this; with another key
/// the header is ignored. Source: docs/decisions.md 42.
///
/// Cost without a debug key: one branch. Errors: 400 for an unknown value of the header.
fn asks_for_route(incoming: &Incoming<'_>) -> Result<bool, Fault> {
    let caller = incoming.info().caller.as_deref();
    if !caller.is_some_and(|caller| caller.is_debug) {
        return Ok(false);
    }
    let mut asks = false;
    for value in incoming.head().headers.get_all(DEBUG) {
        check_debug(value.as_bytes())?;
        asks = true;
    }
    Ok(asks)
}

/// Returns whether the client refuses a fallback.
fn no_fallback(head: &HeaderMap) -> bool {
    head.get(NO_FALLBACK).is_some_and(|value| value == "true")
}

impl ModelHandler {
    /// Queues a call that is made in the background.
    async fn queue(
        &self,
        incoming: &mut Incoming<'_>,
        call: &mut ModelExchange,
    ) -> Result<Response, Fault> {
        let stored = self.models.kept_responses();
        let nothing = || Fault::new(FaultKind::Internal, "no responses are kept");
        let stored = stored.ok_or_else(nothing)?;
        let no_fallback = no_fallback(&incoming.head().headers);
        // The permit is not lent meanwhile: a client that is refused for want of one may ask again, and would pay twice.
        let queued = call.begin_background(incoming.info(), stored, no_fallback);
        queued.await
    }

    /// Checks the body, and completes it if it names a managed prompt or a flag.
    async fn receive(
        &self,
        incoming: &mut Incoming<'_>,
    ) -> Result<(Box<ModelRequest>, Option<SendImpression>), Fault> {
        let body = incoming.take_body();
        let body_bytes = body.len();
        let head = incoming.head();
        let boundary = multipart::boundary(&head.headers);
        let told = ClientHead {
            path: head.uri.path(),
            query: head.uri.query().unwrap_or_default(),
            headers: &head.headers,
        };
        let received = body::off_worker(body_bytes, || match boundary {
            None => self.front.read(&told, body),
            Some(boundary) => self.front.read_form(&body, boundary),
        });
        let (received, promise) = match received? {
            Received::Stateful(request) => {
                Box::pin(self.complete_state(incoming, &request)).await?
            }
            received => (received, None),
        };
        let (mut request, impression) = match received {
            Received::Complete(request) => (Box::new(request), None),
            // Boxed, because few requests are managed, and this future is large.
            Received::Managed(managed) => {
                Box::pin(self.complete(incoming, &managed, body_bytes)).await?
            }
            // What it needs stands in it by now.
            Received::Stateful(request) => return Err(request.refusal),
        };
        request.promise = promise;
        // A prompt or the base64 of a form's files may have made it longer.
        incoming.reserve_body(request.source.body.len())?;
        Ok((request, impression))
    }

    /// Completes a request with the kept responses that it needs, and checks it as one that says all by itself.
    async fn complete_state(
        &self,
        incoming: &mut Incoming<'_>,
        request: &StatefulRequest,
    ) -> Result<(Received, Option<Arc<ResponsePromise>>), Fault> {
        let stored = self.models.kept_responses();
        let caller = incoming.info().caller.clone();
        let Some((stored, caller)) = stored.zip(caller) else {
            return Err(request.refusal.clone());
        };
        let mut held = request.source.body.len();
        let mut reserve = |bytes: usize| {
            held = held.saturating_add(bytes);
            incoming.reserve_body(held)
        };
        let completed = stored.complete(request, &caller, &mut reserve).await?;
        let body = completed.body;
        let received = body::off_worker(body.len(), || {
            self.front.read(&ClientHead::silent(), body.clone())
        })?;
        Ok((received, Some(Arc::new(completed.promise))))
    }

    async fn complete(
        &self,
        incoming: &Incoming<'_>,
        managed: &ManagedRequest,
        body_bytes: usize,
    ) -> Result<(Box<ModelRequest>, Option<SendImpression>), Fault> {
        let (models, info) = (&self.models, incoming.info());
        let caller = info.caller.as_deref();
        let session = session_of_head(&incoming.head().headers);
        // Flags are only decided for sessions whose id is text.
        let session = session.and_then(|id| std::str::from_utf8(id).ok());
        let now_ms = info.unix_ms();
        let decided = models.decide(managed, session, caller, now_ms).await?;
        let (variation, impression) = decided.unzip();
        let request = body::off_worker(body_bytes, || {
            models.complete(self.front, managed, variation.as_ref(), caller)
        })?;
        Ok((Box::new(request), impression))
    }

    /// Errors: 400 for a callback at a forbidden address.
    fn check_callback(&self, request: &ModelRequest) -> Result<(), Fault> {
        let video = request.payload.video();
        match video.and_then(|video| video.callback.as_ref()) {
            Some(callback) => self.models.videos.callbacks.check(&callback.url),
            None => Ok(()),
        }
    }

    /// Finds the session of a request, if it names one, and at the same time the cached reply. With a reply no
    /// session is needed, unless the plan is to be explained.
    async fn find_session_and_reply(
        &self,
        (head, info): (&HeaderMap, &RequestInfo),
        request: &ModelRequest,
        search: Option<Search>,
        explains: bool,
    ) -> (Option<Session>, Option<ReplyLookup>) {
        let session = self.find_session(head, info, request);
        let (Some(cache), Some(search)) = (&self.models.reply_cache, search) else {
            return (session.await, None);
        };
        let reply = Box::pin(cache.find(&search, request.front.row().name));
        match future::select(reply, Box::pin(session)).await {
            Either::Left((reply @ ReplyLookup::Hit(_), _)) if !explains => (None, Some(reply)),
            Either::Left((reply, session)) => (session.await, Some(reply)),
            Either::Right((session, reply)) => (session, Some(reply.await)),
        }
    }

    /// Finds the session of a request, if it names one.
    async fn find_session(
        &self,
        head: &HeaderMap,
        info: &RequestInfo,
        request: &ModelRequest,
    ) -> Option<Session> {
        let models = &self.models;
        let organization = info.caller.as_deref().map(|it| &*it.organization_id);
        let at = (models.planner.catalog(), models.clock.ms_at(info.now));
        let id = session_id(head, request)?;
        let finding =
            models
                .sessions
                .find(organization.unwrap_or_default(), &request.model, id, at);
        Some(finding.await)
    }

    /// Plans the attempts of a request. Returns the call, and the result of the cache if the cache may respond.
    ///
    /// Errors: 400, 403, 404, 410.
    async fn plan(
        &self,
        incoming: &mut Incoming<'_>,
        request: Box<ModelRequest>,
        explains: bool,
    ) -> Result<(Box<ModelExchange>, Option<ReplyLookup>), Fault> {
        let (head, info) = (&incoming.head().headers, incoming.info());
        let passed = self.models.passed_key(head, info.caller.as_deref())?;
        if let Some(passed) = &passed {
            check_ends_with_request(&request, passed.kind)?;
        }
        let ttl = caching::ttl(info.caller.as_deref(), head)
            .filter(|_| !request.is_kept() && passed.is_none());
        let byok_keys = self.models.byok_keys.of_caller(info.caller.as_deref());
        let byok_providers: Vec<&str> =
            byok_keys.iter().flat_map(|keys| keys.providers()).collect();
        let context = PlanContext {
            notes_plan: incoming.is_followed(),
            passed: passed.as_ref(),
            ..self.context(head, info, &byok_providers, explains)
        };
        let planner = &self.models.planner;
        let resolution = planner.resolve(&request, &context, ttl.is_some())?;
        let search = ttl.and_then(|ttl| self.search(info, &request, &resolution, ttl));
        // The account of another caller has cached nothing for this one.
        let (session, found) = match &passed {
            Some(_) => (None, None),
            None => {
                let asked = (head, info);
                self.find_session_and_reply(asked, &request, search, explains)
                    .await
            }
        };
        let context = PlanContext { session, ..context };
        let byok_keys = byok_keys.as_deref();
        let planned = PlannedCall::new(&self.models, &request, resolution, (&context, byok_keys));
        let fault = match planned {
            Ok(planned) => return Ok((self.open_call(info, request, planned, &context), found)),
            Err(fault) => fault,
        };
        // A search between two turns is charged by itself, so a call that may be made twice has none, and neither has one that is
        // not charged.
        let call = match request.is_background() || passed.is_some() {
            true => None,
            false => self.plan_search_loop(info, &request, (&context, byok_keys)),
        };
        let call = call.or_else(|| self.plan_without_search(info, &request, (&context, byok_keys)));
        match call {
            Some(call) => Ok((call, None)),
            None => Err(fault),
        }
    }

    /// Plans a request for which nothing searches the web without the search, if that is an offer that its model may do without.
    /// Returns `None` if that does not serve it either.
    fn plan_without_search(
        &self,
        info: &RequestInfo,
        request: &ModelRequest,
        (context, byok_keys): (&PlanContext<'_>, Option<&ProviderKeys>),
    ) -> Option<Box<ModelExchange>> {
        request.needs.web_search?;
        let models = &self.models;
        let body = request.front.search_words()?.forgo(request)?;
        let without = body::off_worker(body.len(), || request.front.parse(body.into())).ok()?;
        let request = Box::new(continued(without, request));
        let resolution = models.planner.resolve(&request, context, false).ok()?;
        let planned = PlannedCall::new(models, &request, resolution, (context, byok_keys)).ok()?;
        Some(self.open_call(info, request, planned, context))
    }

    /// Plans a request for which no model searches the web with a function in place of the search. Returns `None` if that does
    /// not serve it either.
    fn plan_search_loop(
        &self,
        info: &RequestInfo,
        request: &ModelRequest,
        (context, byok_keys): (&PlanContext<'_>, Option<&ProviderKeys>),
    ) -> Option<Box<ModelExchange>> {
        request.needs.web_search?;
        let models = &self.models;
        let words = request.front.search_words()?;
        let (body, function) = words.begin(request)?;
        if !ModelExchange::offers_search(models, info, &function) {
            return None;
        }
        let began = body::off_worker(body.len(), || request.front.parse(body.into())).ok()?;
        let began = Box::new(continued(began, request));
        let resolution = models.planner.resolve(&began, context, false).ok()?;
        let planned = PlannedCall::new(models, &began, resolution, (context, byok_keys)).ok()?;
        let mut call = self.open_call(info, began, planned, context);
        let turns = AnswerTurns::new(self.judge(request));
        call.set_turns(turns.searching(words, function, context.no_fallback));
        Some(call)
    }

    fn open_call(
        &self,
        info: &RequestInfo,
        request: Box<ModelRequest>,
        planned: PlannedCall,
        context: &PlanContext<'_>,
    ) -> Box<ModelExchange> {
        let PlannedCall {
            mut selection,
            attempts,
        } = planned;
        let models = Arc::clone(&self.models);
        // The judge is paid by the organization, and the vendor judges by itself.
        let judge = context
            .passed
            .map_or_else(|| self.judge(&request), |_| None);
        let turns = AnswerTurns::new(judge);
        let mut call = ModelExchange::new(models, request, info, &selection, attempts);
        if turns.are_needed() {
            call.set_turns(turns);
        }
        call.set_explanation(selection.plan.explanation.take(), context.explains);
        if let Some(session) = context.session {
            call.bind_session(session.key);
        }
        call
    }

    /// Returns the judge of a request that asks for verdicts on the calls of its answer.
    fn judge(&self, request: &ModelRequest) -> Option<Judge> {
        let model = Arc::clone(self.models.judge_model.as_ref()?);
        let words = request.front.judge_words()?;
        words.is_asked(request).then_some(Judge { words, model })
    }

    /// Returns the facts beside the request on which a plan depends, except the session.
    fn context<'a>(
        &self,
        head: &HeaderMap,
        info: &'a RequestInfo,
        byok_providers: &'a [&'a str],
        explains: bool,
    ) -> PlanContext<'a> {
        PlanContext {
            caller: info.caller.as_deref(),
            byok_providers,
            passed: None,
            session: None,
            no_fallback: no_fallback(head),
            explains,
            notes_plan: false,
            now_ms: self.models.clock.ms_at(info.now),
            now_s: info.unix_s(),
        }
    }

    /// Returns the search for a cached reply.
    fn search(
        &self,
        info: &RequestInfo,
        request: &ModelRequest,
        resolution: &Resolution,
        ttl: Duration,
    ) -> Option<Search> {
        let cache = self.models.reply_cache.as_ref()?;
        let caller = info.caller.as_deref();
        let at = (ttl, info.unix_ms());
        body::off_worker(request.source.body.len(), || {
            caching::search(cache, caller, request, resolution.digest, at)
        })
    }
}
