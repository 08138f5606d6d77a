//! Answers of several turns: the model calls a function to search the web, the gateway runs the search, and asks the model
//! again with what was found. Source: docs/decisions.md 66.
//!
//! Each turn has a plan, attempts and a reservation of its own, and is charged when it ends; so are the searches. The
//! response is one: its writer stays open from turn to turn. After its first content a failed turn is a break.

use std::sync::Arc;

use bytes::Bytes;
use filters::fault::{Fault, FaultKind};
use filters::ledger::CallOutcome;
use filters::models::chat::piece::{Piece, Search};
use filters::models::request::ModelRequest;
use filters::models::search_loop::{MAX_CALLS, MAX_TURNS, SearchFunction, SearchOutcome};
use filters::models::search_words::SearchResult;
use futures::FutureExt;
use futures::future::{BoxFuture, join_all};
use pingora::Error;
use tokio::time::Instant;

use super::ModelExchange;
use super::attempt::Cursor;
use super::own_request::{self, OwnReply};
use super::planned_attempt::PlannedCall;
use super::turns::{AnswerTurns, EndedTurn};
use crate::models::Models;
use crate::proxy::body;
use crate::proxy::buffered::error_types::ATTEMPT_ABORTED;
use crate::proxy::context::RequestInfo;

impl ModelExchange {
    /// Returns whether the caller has the searches that a function stands for.
    pub fn offers_search(
        models: &Arc<Models>,
        info: &RequestInfo,
        function: &SearchFunction,
    ) -> bool {
        own_request::can_search(models, info, function, false)
    }

    /// Makes it a call whose answer has several turns, or whose calls are judged.
    pub fn set_turns(&mut self, turns: AnswerTurns) {
        self.call.turns = Some(Box::new(turns));
    }

    /// Ends a turn with a complete reply if the model has called nothing but the function, or if its calls are to be judged.
    /// The call continues in [`next_turn`](Self::next_turn).
    ///
    /// Returns the error that makes Pingora send another request; `None`: the answer is complete.
    pub(super) fn end_turn(&mut self, info: &RequestInfo) -> Option<Box<Error>> {
        let turns = self.call.turns.as_ref()?;
        let is_last = turns.ended + 1 >= MAX_TURNS;
        let has_judge = turns.judge.is_some();
        let reader = &mut self.running.reader;
        reader.release_turn();
        let wants_search = reader.wants_search();
        if wants_search && is_last {
            reader.pause();
        }
        let goes_on = wants_search && !is_last;
        let is_followed = goes_on || (has_judge && reader.has_calls());
        match is_followed {
            true => self.close_turn(info, goes_on),
            false => None,
        }
    }

    /// Charges a turn, and keeps what it says for the next step.
    fn close_turn(&mut self, info: &RequestInfo, wants_search: bool) -> Option<Box<Error>> {
        self.cancel_hedge(info);
        let record = self.running.record(&self.call, info, None)?;
        self.call.log.records.push(record);
        self.running.reader.complete();
        let receipt = self.settle(info, CallOutcome::Completed);
        self.trace_answer(info);
        self.running.reader.reopen();
        let now_ms = self.now_ms(info);
        self.running.record_success(&self.call, info, now_ms);
        let turn = self.running.reader.take_turn()?;
        let call = &self.call;
        let deployment = self.running.deployment(call)?;
        let maker = self.running.maker_name(call);
        let (index, settlement) = (deployment.index, call.billing.settlement()?);
        let mut answer = Bytes::new();
        call.with_metadata(info, call.answer_members(&deployment.used), |metadata| {
            answer = turn.end(settlement, metadata);
        });
        self.measure_turn();
        self.call.billing.end_turn();
        self.call.log.end_turn();
        let turns = self.call.turns.as_mut()?;
        turns.ended += 1;
        turns.maker = turns.maker.take().or(maker);
        turns.last = Some(EndedTurn {
            answer,
            receipt,
            deployment: index,
            wants_search,
        });
        Some(Error::explain(ATTEMPT_ABORTED, "the next turn follows").into_up())
    }

    /// Returns whether the answer is complete but for its end, which the next attempt gives, with no provider behind it.
    pub(super) fn is_judged(&self) -> bool {
        self.call
            .turns
            .as_ref()
            .is_some_and(|turns| turns.is_judged)
    }

    /// Returns whether the next turn begins, or `None` if none has ended.
    pub(super) fn goes_on_with_turn(&mut self, info: &RequestInfo) -> Option<bool> {
        self.call
            .turns
            .as_ref()
            .filter(|turns| turns.is_between())?;
        if self.state.is_expired(info.now) && !self.state.is_disconnected() {
            let message = "the time of the call was over before its next search";
            self.call.fault = Some(Fault::new(FaultKind::UpstreamTimeout, message));
            return Some(false);
        }
        Some(!self.state.is_disconnected())
    }

    /// Runs the searches that the last turn has called, and plans the next turn. The call keeps the fault if that fails.
    pub(super) fn next_turn<'a>(&'a mut self, info: &'a RequestInfo) -> BoxFuture<'a, ()> {
        async move {
            if let Err(fault) = self.try_next_turn(info).await {
                self.call.fault = Some(fault);
            }
        }
        .boxed()
    }

    async fn try_next_turn(&mut self, info: &RequestInfo) -> Result<(), Fault> {
        let now = Instant::now();
        self.state.begin_attempt(Vec::new(), now);
        let Some(EndedTurn {
            answer,
            receipt,
            deployment,
            wants_search,
        }) = self.call.turns.as_mut().and_then(|turns| turns.last.take())
        else {
            return Err(Fault::new(FaultKind::Internal, "no turn has ended"));
        };
        if !receipt.is_durable().await {
            let message = "the answer cannot be accounted for at the moment";
            return Err(Fault::new(FaultKind::Unavailable, message));
        }
        if !wants_search {
            self.judge(info, &answer).await;
            if let Some(turns) = &mut self.call.turns {
                turns.is_judged = true;
            }
            return Ok(());
        }
        let results = self.search(info, &answer).await;
        let request = self.next_request(&answer, &results)?;
        self.plan_turn(info, request, deployment)?;
        self.reserve(info).await
    }

    /// Runs the searches that a turn's answer calls, all at once, and shows the client what they have found.
    async fn search(&mut self, info: &RequestInfo, answer: &[u8]) -> Vec<SearchResult> {
        let Some((turns, search)) = self
            .call
            .turns
            .as_deref()
            .and_then(|turns| Some((turns, turns.search.as_ref()?)))
        else {
            return Vec::new();
        };
        let (models, function) = (&self.models, &search.function);
        let behalf = (info, self.call.session_names.as_ref());
        let mut calls = search.words.calls(answer, &function.name);
        calls.truncate(MAX_CALLS);
        let searches = calls.iter().enumerate().map(|(at, call)| {
            let is_beyond = turns.is_beyond_limit(at);
            async move {
                match SearchFunction::query(&call.arguments) {
                    Ok(query) if is_beyond => {
                        (query, SearchOutcome::Failed("max_uses_exceeded"), None)
                    }
                    Ok(query) => {
                        let (found, reply) =
                            own_request::search(models, behalf, function, &query).await;
                        (query, found, reply)
                    }
                    Err(failed) => (String::new(), failed, None),
                }
            }
        });
        let done = join_all(searches).await;
        let mut results = Vec::with_capacity(calls.len());
        for (call, (query, found, reply)) in calls.into_iter().zip(done) {
            self.show(&query, &found, reply);
            results.push(SearchResult { call, found });
        }
        results
    }

    /// Notes a search, and shows the client what it has found.
    fn show(&mut self, query: &str, found: &SearchOutcome, reply: Option<OwnReply>) {
        let Some(turns) = &mut self.call.turns else {
            return;
        };
        let number = turns.searches;
        turns.searches += 1;
        if let Some(reply) = reply {
            let cost = reply.settlement.and_then(|settlement| settlement.cost);
            self.call.billing.add_search(cost.map(|cost| cost.total));
            self.call.log.add_earlier(reply.record);
        }
        let pages = found.to_json();
        let piece = Piece::Search(Search {
            query,
            number,
            found: pages.as_deref().map_err(|word| *word),
        });
        if let Some(writer) = self.running.reader.writer_mut() {
            writer.pieces(0, &[piece]);
        }
    }

    /// Returns the request of the next turn: the last one, with its answer and what was found.
    fn next_request(
        &self,
        answer: &[u8],
        results: &[SearchResult],
    ) -> Result<Box<ModelRequest>, Fault> {
        let unread = || {
            Fault::new(
                FaultKind::Internal,
                "the model's call of a search cannot be read",
            )
        };
        let last = &self.call.request;
        let turns = self.call.turns.as_ref();
        let search = turns
            .and_then(|turns| turns.search.as_ref())
            .ok_or_else(unread)?;
        if results.is_empty() {
            return Err(unread());
        }
        let body_bytes = last.source.body.len();
        let request = body::off_worker(body_bytes, || {
            let body = search.words.proceed(&last.source, answer, results);
            last.front.parse(body.ok_or_else(unread)?.into())
        })?;
        Ok(Box::new(continued(request, last)))
    }

    /// Plans the attempts of the next turn. The deployment that has answered comes first.
    fn plan_turn(
        &mut self,
        info: &RequestInfo,
        request: Box<ModelRequest>,
        deployment: usize,
    ) -> Result<(), Fault> {
        let turns = self.call.turns.as_ref();
        let no_fallback = turns.is_some_and(|turns| turns.no_fallback);
        let at = (info, Instant::now());
        let planned = PlannedCall::on_behalf(&self.models, &request, at, no_fallback)?;
        let mut attempts = planned.attempts;
        attempts.sort_by_key(|attempt| attempt.deployment.index != deployment);
        self.call.lower_tool_choice = planned.selection.plan.lower_tool_choice;
        self.call.attempts = attempts;
        self.call.request = request;
        self.running.cursor = Cursor::default();
        Ok(())
    }
}

/// Returns a request that takes the place of another one of the same client.
pub fn continued(request: ModelRequest, last: &ModelRequest) -> ModelRequest {
    ModelRequest {
        session: last.session.clone(),
        own_headers: last.own_headers.clone(),
        managed: last.managed.clone(),
        promise: last.promise.clone(),
        ..request
    }
}
