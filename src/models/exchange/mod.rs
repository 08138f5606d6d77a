//! One call of a model: planned attempts, one after the other, each run by Pingora's own hooks.
//!
//! A [`Call`] is the state that attempts share, and an [`Attempt`] the state of one. [`upstream_request`] begins an
//! attempt and writes its request, and [`upstream_response`] reads the reply into the client's response. [`parts`]
//! continues with the next part of a request that a provider takes in several. [`failure`] decides whether the next
//! attempt starts, and what the client gets if none does. [`feedback`] ends the call and reports the results to the
//! planner, and [`log`] writes its part of the log line. [`hedging`] runs a second attempt beside a silent one.
//! [`kept_response`] keeps the response for later requests. [`reservation`] and [`settlement`] use the ledger, [`usage`]
//! checks the plausibility of reports, and [`rate_limits`] lets keys rest. [`attempt_span`] and [`call_span`] tell the
//! call's part of its trace. [`replay`] replays a stored reply instead. An answer
//! of several [`turns`] has searches of the web between them ([`next_turn`]), and its calls may be judged ([`judging`]);
//! [`own_request`] makes the gateway's own requests, and [`job_run`] makes calls for jobs.
//!
//! Files above import those below: this one · [`hedge`] · [`log`], [`call_span`], [`usage`], [`rate_limits`] · [`attempt`] · [`call`] · the rest.

mod attempt;
mod attempt_span;
mod billing;
mod budgets;
pub mod caching;
mod call;
mod call_budgets;
mod call_span;
mod failure;
mod feedback;
mod finish_reasons;
mod hedge;
mod hedging;
mod images;
mod job_run;
mod jobs;
mod judging;
mod kept_response;
mod log;
mod next_turn;
mod own_request;
mod parts;
mod planned_attempt;
mod rate_limits;
mod replay;
mod reply_reader;
mod reservation;
mod schema;
mod settlement;
mod turns;
mod upstream_request;
mod upstream_response;
mod usage;

use std::sync::Arc;

use bytes::Bytes;
use filters::fault::Fault;
use filters::json::Object;
use filters::ledger::SessionNames;
use filters::models::dialects::state::States;
use filters::models::request::ModelRequest;
use filters::models::routing::affinity::SessionKey;
use filters::models::routing::explanation::Explanation;
use futures::future::BoxFuture;
use http::HeaderMap;
use pingora::http::{RequestHeader, ResponseHeader};
use pingora::{Error, Result};

use self::attempt::Attempt;
use self::call::{AttemptLog, Call};
use self::call_budgets::CallBudgets;
use self::hedge::Hedge;
pub use self::job_run::JobRun;
pub use self::kept_response::{JobCall, status_of};
pub use self::next_turn::continued;
pub use self::planned_attempt::{PlannedAttempt, PlannedCall};
pub use self::turns::{AnswerTurns, Judge};
use super::Models;
use super::experiments::SendImpression;
use super::planner::Selection;
use super::sessions::{session_id, session_names};
use crate::proxy::buffered::state::AttemptState;
use crate::proxy::context::RequestInfo;
use crate::proxy::exchange::{Begun, Broken, End, Exchange, LogPart, Report, Upstream};
use crate::proxy::upload::Upload;
use crate::telemetry::traces::span::SpanDraft;

/// One call of a model, from its plan to its end.
pub struct ModelExchange {
    models: Arc<Models>,
    call: Call,
    /// The attempt of Pingora's loop.
    running: Attempt,
    /// The second attempt, if the call may have one.
    hedge: Option<Box<Hedge>>,
    /// The state shared with the buffered session.
    state: Arc<AttemptState>,
}

impl ModelExchange {
    /// Returns an exchange before its first attempt, boxed where it is made, because it is large.
    pub fn new(
        models: Arc<Models>,
        request: Box<ModelRequest>,
        info: &RequestInfo,
        selection: &Selection,
        attempts: Vec<PlannedAttempt>,
    ) -> Box<Self> {
        let streams = request.goes_out_at_once();
        let keepalive = request.front.keepalive(&request);
        let timeouts = models.timeouts(streams, request.is_stream && keepalive.is_some());
        let hedge = Hedge::new(&models, &request, &attempts);
        let race = hedge.as_ref().map(|hedge| Arc::clone(&hedge.race));
        let state = AttemptState::new(streams, timeouts, info.now);
        let state = state.with_keepalive(keepalive.unwrap_or_default());
        let caller = info.caller.as_ref();
        let mut log = AttemptLog::default();
        log.add_earlier(models.planner.outside(&selection.plan.outside));
        let call = Call {
            price_point: request.price_point(info.unix_s()),
            request,
            upload: None,
            requested_provider: selection.provider.clone(),
            attempts,
            lower_tool_choice: selection.plan.lower_tool_choice,
            states: States::new(
                models.state_secret,
                caller.map(|caller| Arc::clone(&caller.organization_id)),
            ),
            key_id: caller.map(|caller| Arc::clone(&caller.key_id)),
            copies_content: models.is_exported && info.exports_content()
                || info.keep_bodies_until_ms().is_some(),
            session_names: None,
            budgets: CallBudgets::default(),
            conversation: None,
            affinity_key: None,
            images: Default::default(),
            fault: None,
            left_out: selection.plan.left_out.clone(),
            explanation: None,
            tells_plan: false,
            caching: Default::default(),
            impression: None,
            turns: None,
            unkept: Default::default(),
            is_queued: false,
            log,
            billing: Default::default(),
            timing: Default::default(),
            budget: models.retry_budget.begin(),
        };
        Box::new(Self {
            models,
            call,
            running: Attempt::default(),
            hedge,
            state: Arc::new(state.with_race(race)),
        })
    }

    /// Binds this session to the provider that responds.
    pub fn bind_session(&mut self, session: SessionKey) {
        self.call.affinity_key = Some(session);
    }

    /// Sets who of the client's session makes the call.
    pub fn set_session_names(&mut self, names: Option<Arc<SessionNames>>) {
        self.call.session_names = names;
    }

    /// Sets who of the client's session makes the call, its tags, and what its trace calls the conversation.
    ///
    /// Errors: 400 for wrong tags.
    pub fn set_session(&mut self, headers: &HeaderMap, info: &RequestInfo) -> Result<(), Fault> {
        let id = session_id(headers, &self.call.request);
        self.call.session_names = session_names(headers, id);
        if info.trace.is_some() {
            self.call.conversation = id.map(|id| String::from_utf8_lossy(id).into());
        }
        self.set_tags(headers)
    }

    /// Sets the client's uploaded file.
    pub fn set_upload(&mut self, upload: Option<Arc<Upload>>) {
        self.call.upload = upload;
    }

    /// Sets the reasons of the plan, and whether the response states them.
    pub fn set_explanation(&mut self, explanation: Option<Box<Explanation>>, tells: bool) {
        self.call.explanation = explanation;
        self.call.tells_plan = tells;
    }

    /// Adds the reasons of the plan to a fault, if the client asks for them.
    pub fn explain(&self, fault: Fault) -> Fault {
        self.call.explain(fault)
    }

    /// Keeps the impression of the experiment until the user gets a part of the variation.
    pub fn expect_impression(&mut self, impression: Option<SendImpression>) {
        self.call.impression = impression;
    }

    /// Returns the state shared with the buffered session.
    pub fn state(&self) -> Arc<AttemptState> {
        Arc::clone(&self.state)
    }

    fn now_ms(&self, info: &RequestInfo) -> u64 {
        self.models.clock.ms_at(info.now)
    }
}

impl Exchange for ModelExchange {
    fn is_billed(&self) -> bool {
        true
    }

    fn begin_attempt<'a>(&'a mut self, info: &'a RequestInfo) -> Result<Begun<'a>> {
        match self.adopt(info) {
            Some(adopted) => Ok(Begun::At(Upstream::Hedge(adopted))),
            None => self.begin(info),
        }
    }

    fn upstream_head(&mut self, info: &RequestInfo, head: &mut RequestHeader) -> Result<()> {
        self.write_head(info, head)
    }

    fn upstream_body(
        &mut self,
        info: &RequestInfo,
        head: &RequestHeader,
        _: Option<&Bytes>,
    ) -> Result<()> {
        match self.state.record_sent() {
            true => Ok(()),
            false => self.handle_news(info, head),
        }
    }

    fn response_status<'a>(
        &'a mut self,
        info: &'a RequestInfo,
        head: &'a ResponseHeader,
    ) -> Result<Option<BoxFuture<'a, ()>>> {
        self.judge_status(info, head);
        Ok(None)
    }

    fn response_head(&mut self, info: &RequestInfo, head: &mut ResponseHeader) -> Result<()> {
        self.replace_head(info, head);
        Ok(())
    }

    fn response_body(
        &mut self,
        info: &RequestInfo,
        body: &mut Option<Bytes>,
        is_end: bool,
    ) -> Result<()> {
        self.translate(info, body, is_end)
    }

    fn connect_failed(&mut self, info: &RequestInfo, mut error: Box<Error>) -> Box<Error> {
        let goes_on = self.handle_connect_failure(info, &error);
        error.set_retry(goes_on);
        error
    }

    fn broke(&mut self, info: &RequestInfo, mut error: Box<Error>, broken: Broken) -> Box<Error> {
        let goes_on = self.handle_break(info, &error, broken);
        error.set_retry(goes_on);
        error
    }

    fn report(&mut self, info: &RequestInfo, error: &Error, is_head_sent: bool) -> Report {
        self.final_report(info, error, is_head_sent)
    }

    fn finish(&mut self, info: &RequestInfo, end: &End<'_>) -> &'static str {
        self.end_call(info, end)
    }

    fn log(&self, info: &RequestInfo, part: LogPart, line: &mut Object<'_>) {
        match part {
            LogPart::BeforeStatus => {}
            LogPart::AfterSizes => self.call.write_log(&self.running, info, line),
            LogPart::Details => self.call.write_details(line),
            LogPart::Plan => self.call.write_plan(line),
            LogPart::Content => self.call.write_content(&self.running, line),
        }
    }

    fn trace(&self, span: &mut SpanDraft) {
        self.call.describe(&self.running, span);
    }
}
