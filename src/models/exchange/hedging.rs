//! Runs a hedge beside an attempt whose stream is silent. Source: docs/routing.md, Hedges.
//!
//! The reader of a hedge only tells whether content has come. Then the running attempt ends, and the hedge is
//! [adopted](ModelExchange::adopt): it is read again from its first byte, like any attempt. At most one of the two
//! attempts is billed without being used, so one more reservation covers it.

use std::sync::Arc;

use bytes::Bytes;
use filters::models::routing::hedge::{HedgeCandidate, find_hedge, is_owed};
use filters::models::wires::Failure;
use futures::FutureExt;
use futures::future::BoxFuture;
use pingora::http::RequestHeader;
use pingora::{Error, Result};

use super::ModelExchange;
use super::attempt::{Attempt, SignIn};
use super::attempt_span::AttemptTimes;
use super::call::Call;
use super::failure::from_call_error;
use super::hedge::HedgeStage;
use super::planned_attempt::PlannedAttempt;
use crate::ledger::Receipt;
use crate::models::Models;
use crate::proxy::buffered::error_types::ATTEMPT_ABORTED;
use crate::proxy::context::RequestInfo;
use crate::proxy::exchange::Gate;
use crate::proxy::hedge::{Adopted, HedgeCall, News, Piece};

impl ModelExchange {
    /// Handles a call of the session: a hedge is due, or has news.
    ///
    /// Errors: the hedge's content has come first, so the running attempt has to end.
    pub(super) fn handle_news(&mut self, info: &RequestInfo, client: &RequestHeader) -> Result<()> {
        let Some(hedge) = &mut self.hedge else {
            return Ok(());
        };
        if hedge.race.is_armed() {
            self.begin_hedge(info, client);
            return Ok(());
        }
        let news = hedge.race.take_news();
        let Some((beside, news)) = hedge.beside.as_mut().zip(news) else {
            return Ok(());
        };
        match beside.read_news(&self.call, &self.models, info, news) {
            None => self.end_hedge("no_credit"),
            Some(Ok(false)) => {}
            Some(Ok(true)) => {
                hedge.stage = HedgeStage::Won;
                let error = Error::explain(ATTEMPT_ABORTED, "another attempt answers first");
                return Err(error.into_down());
            }
            Some(Err(failure)) => self.fail_hedge(info, failure),
        }
        Ok(())
    }

    /// Begins the hedge if another attempt may run beside the running one. Otherwise no hedge begins later either.
    fn begin_hedge(&mut self, info: &RequestInfo, client: &RequestHeader) {
        let begun = self.prepare_hedge(info, client);
        let Some(hedge) = &mut self.hedge else {
            return;
        };
        match begun {
            Some((call, beside)) => {
                hedge.beside = Some(beside);
                hedge.race.begin(call, info.now);
            }
            None => hedge.end(),
        }
    }

    /// Returns the hedge's call and its attempt, which is the planned one after the running one. Later failures
    /// continue with the attempts in their order.
    fn prepare_hedge(
        &mut self,
        info: &RequestInfo,
        client: &RequestHeader,
    ) -> Option<(HedgeCall, Attempt)> {
        let found = self.find_hedge(info)?;
        if !self.call.budget.try_later_fallback() {
            self.count_hedge("no_budget");
            return None;
        }
        let running = &self.running.cursor;
        let mut beside = Attempt {
            cursor: running.later(found),
            ..Attempt::default()
        };
        let mut call = beside.hedge_call(&self.call, &self.models, info, client)?;
        let (first, next) = (running.attempt, running.attempt + 1);
        let between = self.call.attempts.get_mut(next..=found)?;
        between.rotate_right(1);
        beside.cursor.attempt = next;
        let (hedge, models) = (self.hedge.as_ref()?, &self.models);
        call.permission = hedge.reserve(&self.call, models, info, [first, next]);
        Some((call, beside))
    }

    /// Finds the attempt that may run beside the running one.
    fn find_hedge(&self, info: &RequestInfo) -> Option<usize> {
        let now_ms = self.now_ms(info);
        let planner = &self.models.planner;
        let candidate = |attempt: &PlannedAttempt| attempt.deployment.index;
        let attempts = self.call.attempts.iter().map(|attempt| HedgeCandidate {
            provider: &attempt.deployment.provider.name,
            region: attempt.deployment.region.as_deref(),
            is_byok: attempt.is_byok(),
            is_ready: planner.is_ready(candidate(attempt), now_ms),
        });
        let first = self.running.cursor.attempt;
        let mut attempts = attempts.skip(first);
        let running = attempts.next()?;
        let found = find_hedge(&running, attempts)?;
        Some(first + 1 + found)
    }

    /// Records the failure of the hedge. The running attempt continues.
    fn fail_hedge(&mut self, info: &RequestInfo, failure: Failure) {
        let now_ms = self.now_ms(info);
        let hedge = self.hedge.as_mut();
        if let Some(mut beside) = hedge.and_then(|hedge| hedge.beside.take()) {
            beside.record_end(&mut self.call, info, &failure, None);
            beside.record_failure(&self.call, &self.models, &failure, now_ms);
            // The failed attempt is not tried again.
            let failed = beside.cursor.attempt;
            if failed < self.call.attempts.len() {
                self.call.attempts.remove(failed);
            }
        }
        self.call.log.failures.push(failure);
        self.end_hedge("failed");
    }

    /// Ends the running attempt if the hedge's content has come first. Returns whether it has.
    pub(super) fn give_way(&mut self, info: &RequestInfo) -> bool {
        let (state, hedge) = (&self.state, self.hedge.as_mut());
        let Some(hedge) = hedge.filter(|hedge| hedge.stage == HedgeStage::Won) else {
            return false;
        };
        let is_owed = is_owed(state.is_sent(), state.bills_after_disconnect());
        let (call, at) = (&mut self.call, (info, self.models.clock.ms_at(info.now)));
        hedge.record_cancelled(&mut self.running, call, at, is_owed);
        call.log.aborted = None;
        self.promote_hedge("won")
    }

    /// Continues with the hedge after the running attempt has failed. Returns whether its request was sent; otherwise
    /// it begins again as the next attempt.
    pub(super) fn continue_with_hedge(&mut self) -> bool {
        let Some(hedge) = self.hedge.as_ref().filter(|hedge| hedge.is_beside()) else {
            return false;
        };
        if !hedge.race.is_sent() {
            self.end_hedge("abandoned");
            return false;
        }
        self.promote_hedge("took_over")
    }

    fn promote_hedge(&mut self, outcome: &str) -> bool {
        let Some(beside) = self.hedge.as_mut().and_then(|hedge| hedge.promote()) else {
            return false;
        };
        self.running = beside;
        self.count_hedge(outcome);
        true
    }

    /// Starts the hedge as the next attempt if it was chosen.
    pub(super) fn adopt(&mut self, info: &RequestInfo) -> Option<Arc<Adopted>> {
        let hedge = self.hedge.as_mut()?;
        if hedge.stage == HedgeStage::Adopted {
            hedge.stage = HedgeStage::Over;
        }
        if hedge.stage != HedgeStage::Next {
            return None;
        }
        hedge.stage = HedgeStage::Over;
        let (adopted, started) = hedge.race.adopt()?;
        hedge.stage = HedgeStage::Adopted;
        let call = &self.call;
        self.running.reader = self
            .running
            .new_reader(call, info, call.caching.recorder())?;
        self.state.begin_hedge(started);
        let bills = self.running.bills_after_disconnect(call);
        self.state.set_bills_after_disconnect(bills);
        Some(adopted)
    }

    /// Returns the failure of the adopted hedge, if it broke.
    pub(super) fn take_hedge_failure(&self) -> Option<Failure> {
        let error = self.hedge.as_ref()?.race.take_error()?;
        Some(from_call_error(&error, !self.state.has_reply()))
    }

    /// Cancels the hedge because the running attempt has content.
    pub(super) fn cancel_hedge(&mut self, info: &RequestInfo) {
        let Some(hedge) = &mut self.hedge else {
            return;
        };
        let is_owed = hedge.is_owed(&self.call);
        match (hedge.stage, hedge.beside.take()) {
            (HedgeStage::Open | HedgeStage::Won, None) => hedge.end(),
            (_, None) => {}
            (_, Some(mut beside)) => {
                let at = (info, self.models.clock.ms_at(info.now));
                hedge.record_cancelled(&mut beside, &mut self.call, at, is_owed);
                self.end_hedge("lost");
            }
        }
    }

    /// Cancels the hedge because the call has ended. If the client has left, the hedge is billed like a cancelled
    /// attempt; a failed call costs nothing.
    pub(super) fn finish_hedge(&mut self, info: &RequestInfo, is_gone: bool) {
        let Some(hedge) = &mut self.hedge else {
            return;
        };
        let is_owed = is_gone && hedge.is_owed(&self.call);
        if let Some(mut beside) = hedge.beside.take() {
            // The cancellation does not count against the provider.
            beside.measured = None;
            let at = (info, self.models.clock.ms_at(info.now));
            hedge.record_cancelled(&mut beside, &mut self.call, at, is_owed);
            self.end_hedge("abandoned");
        }
    }

    fn end_hedge(&mut self, outcome: &str) {
        self.count_hedge(outcome);
        if let Some(hedge) = &mut self.hedge {
            hedge.end();
        }
    }

    fn count_hedge(&self, outcome: &str) {
        let hedges = &self.models.metrics.hedges;
        hedges.with_label_values(&[outcome]).inc();
    }

    /// Returns the gate of the response. Its last byte waits for this receipt, for that of a cancelled attempt, and
    /// for `told`, until other processes know the session.
    pub(super) fn gate(
        &mut self,
        receipt: Receipt,
        told: Option<BoxFuture<'static, ()>>,
    ) -> Option<Gate> {
        let hedge = self.hedge.as_mut();
        let cancelled = hedge.and_then(|hedge| hedge.receipt.take());
        let receipts =
            [Some(receipt), cancelled].map(|it| it.filter(|receipt| !receipt.is_ready()));
        if receipts.iter().all(Option::is_none) && told.is_none() {
            return None;
        }
        let durable = async {
            for receipt in receipts.into_iter().flatten() {
                if !receipt.is_durable().await {
                    return false;
                }
            }
            true
        };
        let told = async {
            if let Some(told) = told {
                told.await;
            }
        };
        Some(async { futures::join!(durable, told).0 }.boxed())
    }
}

impl Attempt {
    /// Returns the attempt's call as a hedge, without a permission, or `None` if its request cannot be made now.
    fn hedge_call(
        &mut self,
        call: &Call,
        models: &Models,
        info: &RequestInfo,
        client: &RequestHeader,
    ) -> Option<HedgeCall> {
        // A hedge does not wait for missing images.
        if !self.missing_images(call).is_empty() {
            return None;
        }
        let now_ms = models.clock.ms_at(info.now);
        // Nor does it wait for a credential.
        if !matches!(self.sign_in(call, now_ms), SignIn::Done) {
            return None;
        }
        let body = self.encode(call, now_ms).ok()?;
        let body = body.iter().map(|piece| piece.in_memory().cloned());
        let body = body.collect::<Option<Vec<Bytes>>>()?;
        let origin = self.endpoint(call, now_ms)?;
        self.times = AttemptTimes::begin(info);
        let body_bytes = body.iter().map(Bytes::len).sum();
        let head = self.head(call, info, client, body_bytes)?;
        self.reader = self.new_reader(call, info, None)?;
        let hedging = models.hedging.as_ref()?;
        let candidate = self.deployment(call)?.index;
        self.measured = Some(models.planner.begin_attempt(candidate, true, now_ms));
        Some(HedgeCall {
            connector: Arc::clone(&hedging.connector),
            origin,
            head,
            body,
            read_timeout: models.stream_timeouts.first_event,
            permission: None,
        })
    }

    /// Reads a piece of the hedge's reply. Returns whether content has come, or `None` if credit or a limit forbids
    /// the hedge.
    ///
    /// Errors: the hedge has failed.
    fn read_news(
        &mut self,
        call: &Call,
        models: &Models,
        info: &RequestInfo,
        news: News,
    ) -> Option<Result<bool, Failure>> {
        let has_content = match news {
            News::Refused => return None,
            News::Piece(Piece::Head(head)) => {
                self.open(call, models, info, &head);
                Ok(false)
            }
            News::Piece(Piece::Body(bytes)) => self.reader.read_ahead(&bytes, false),
            News::End => match self.reader.read_ahead(&Bytes::new(), true) {
                Ok(false) => Err(Failure::malformed("the provider's reply is empty")),
                read => read,
            },
            News::Failed(error) => Err(from_call_error(&error, !self.reader.is_open())),
        };
        Some(has_content.map_err(|failure| self.scrubbed(call, failure)))
    }
}
