//! From a request to an open exchange: checked, planned, reserved.

use std::sync::Arc;

use filters::accounts::{Caller, Mode};
use filters::fault::{Fault, FaultKind};
use filters::models::front::{Front, Received};
use filters::models::managed::ManagedRequest;
use filters::models::request::ModelRequest;
use filters::models::routing::explanation::check_debug;
use filters::models::routing::resolve::Candidate;
use futures::future::BoxFuture;
use http::HeaderName;

use super::Models;
use super::exchange::{ModelExchange, PlannedAttempt, billing, caching};
use super::planner::{PlanContext, Selection};
use super::providers::{ByokKeys, KeyPool};
use super::sessions::{Session, session_id, session_of_head};
use crate::proxy::exchange::Exchange;
use crate::proxy::handler::{Buffering, Forward, Incoming, Opened};

const NO_FALLBACK: HeaderName = HeaderName::from_static("x-no-fallback");
const DEBUG: HeaderName = HeaderName::from_static("x-weirgate-debug");
/// Larger bodies are parsed in a blocking section, so that the worker's other requests go on.
const LARGE_BYTES: usize = 1 << 20;

/// Opens calls of models.
pub struct ModelHandler {
    /// The model gateway.
    pub models: Arc<Models>,
    /// How clients of the route speak.
    pub front: &'static dyn Front,
}

impl Forward for ModelHandler {
    fn open<'a>(
        &'a self,
        incoming: &'a mut Incoming<'_>,
        exchange: &'a mut Option<Box<dyn Exchange>>,
    ) -> BoxFuture<'a, Result<Opened, Fault>> {
        Box::pin(async move {
            let explains = asks_for_route(incoming)?;
            let request = self.receive(incoming).await?;
            let managed = request.managed.clone();
            let session = self.find_session(incoming, &request).await;
            let planned = self.plan(incoming, request, session, explains);
            let planned = planned.map_err(|fault| match &managed {
                Some(managed) => managed.explain(fault),
                None => fault,
            });
            let mut call = Box::new(planned?);
            if let Some(replayed) = caching::replay(&mut call, incoming.info()).await {
                *exchange = Some(call);
                return Ok(Opened::Response(replayed));
            }
            let reserved = billing::reserve(&mut call, incoming.info()).await;
            let reserved = reserved.map_err(|fault| call.explain(fault));
            if reserved.is_err() {
                caching::leave(&mut call);
            }
            let state = call.state();
            *exchange = Some(call);
            reserved?;
            Ok(Opened::Upstream(Buffering::UntilContent(state)))
        })
    }
}

/// Returns whether the answer says why its providers were chosen. Only a debug key may ask; the header of another key is
/// like any unknown one. Source: docs/decisions.md 42.
///
/// Cost without a debug key: one branch. Errors: 400 for a value of the header that asks for nothing known.
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

/// Calls what reads a body of this length.
fn read<T>(body_bytes: usize, read: impl FnOnce() -> T) -> T {
    if body_bytes > LARGE_BYTES {
        tokio::task::block_in_place(read)
    } else {
        read()
    }
}

impl ModelHandler {
    /// Checks the body, and completes it if it names a managed prompt or a flag.
    async fn receive(&self, incoming: &mut Incoming<'_>) -> Result<ModelRequest, Fault> {
        let body = incoming.take_body();
        let body_bytes = body.len();
        let managed = match read(body_bytes, || self.front.read(body))? {
            Received::Complete(request) => return Ok(request),
            Received::Managed(managed) => managed,
        };
        // Boxed, because few requests are managed, and this future is large.
        Box::pin(self.complete(incoming, &managed, body_bytes)).await
    }

    async fn complete(
        &self,
        incoming: &Incoming<'_>,
        managed: &ManagedRequest,
        body_bytes: usize,
    ) -> Result<ModelRequest, Fault> {
        let (models, info) = (&self.models, incoming.info());
        let caller = info.caller.as_deref();
        let session = session_of_head(&incoming.head().headers);
        // A flag decides for a user whose id is text.
        let session = session.and_then(|id| std::str::from_utf8(id).ok());
        let now_ms = info.unix_ms();
        let variation = models.decide(managed, session, caller, now_ms).await?;
        read(body_bytes, || {
            models.complete(self.front, managed, variation.as_ref(), caller)
        })
    }

    /// Finds the session of a request, if it names one.
    async fn find_session(
        &self,
        incoming: &mut Incoming<'_>,
        request: &ModelRequest,
    ) -> Option<Session> {
        let models = &self.models;
        let info = incoming.info();
        let organization = info.caller.as_deref().map(|it| &*it.organization_id);
        let at = (models.planner.catalog(), models.clock.ms_at(info.now));
        let id = session_id(&incoming.head().headers, request)?;
        let finding =
            models
                .sessions
                .find(organization.unwrap_or_default(), &request.model, id, at);
        Some(finding.await)
    }

    /// Plans the attempts of a request.
    ///
    /// Errors: 400, 403, 404, 410.
    fn plan(
        &self,
        incoming: &Incoming<'_>,
        request: ModelRequest,
        session: Option<Session>,
        explains: bool,
    ) -> Result<ModelExchange, Fault> {
        let models = &self.models;
        let info = incoming.info();
        let caller = info.caller.as_deref();
        let byok_keys = models.byok_keys.current();
        let byok_providers = caller
            .filter(|caller| caller.mode != Mode::Platform)
            .map_or(Vec::new(), |caller| {
                byok_keys.providers(&caller.organization_id)
            });
        let headers = &incoming.head().headers;
        let ttl = caching::ttl(caller, headers);
        let context = PlanContext {
            caller,
            byok_providers: &byok_providers,
            session,
            no_fallback: headers
                .get(NO_FALLBACK)
                .is_some_and(|value| value == "true"),
            explains,
            is_cached: ttl.is_some(),
            now_ms: models.clock.ms_at(info.now),
            now_s: info.unix_s(),
        };
        let mut selection = models.planner.plan_attempts(&request, &context)?;
        let attempts = planned_attempts(models, caller, &byok_keys, &selection);
        if attempts.is_empty() {
            let message = "the provider has no key for this region";
            let fault = Fault::new(FaultKind::ModelNotFound, message).with_param("model");
            let plan = &selection.plan;
            return Err(match &plan.explanation {
                Some(explanation) => explanation.add_to(fault, &plan.left_out),
                None => fault,
            });
        }
        let models = Arc::clone(models);
        let body_bytes = request.source.body.len();
        let mut call = ModelExchange::new(models, request, info, &selection, attempts);
        call.set_explanation(selection.plan.explanation.take());
        if let Some(session) = session {
            call.bind_session(session.key);
        }
        if let Some(ttl) = ttl {
            read(body_bytes, || {
                caching::allow(&mut call, caller, selection.candidates, ttl);
            });
        }
        Ok(call)
    }
}

/// Returns the attempts: with the caller's own keys, with the platform's, or first with those and then with these.
fn planned_attempts(
    models: &Models,
    caller: Option<&Caller>,
    byok_keys: &ByokKeys,
    selection: &Selection,
) -> Vec<PlannedAttempt> {
    let candidates = &selection.plan.attempts;
    let (mode, organization) = caller.map_or((Mode::Platform, ""), |caller| {
        (caller.mode, &*caller.organization_id)
    });
    let attempt = |candidate: &Candidate, keys: Option<&Arc<KeyPool>>| {
        let deployment = models.planner.deployment(candidate)?;
        Some(PlannedAttempt {
            keys: Arc::clone(keys.unwrap_or(&deployment.site.keys)),
            deployment,
        })
    };
    let byok = candidates.iter().filter_map(|candidate| {
        let keys = byok_keys.find(organization, &candidate.mapping.provider)?;
        attempt(candidate, Some(keys))
    });
    let platform = candidates
        .iter()
        .filter(|candidate| caller.is_none() || !candidate.is_unpriced_region())
        .filter_map(|candidate| attempt(candidate, None))
        .filter(|attempt| !attempt.keys.is_empty());
    match mode {
        Mode::Platform => platform.collect(),
        Mode::Byok => byok.collect(),
        Mode::Hybrid => byok.chain(platform).collect(),
    }
}
