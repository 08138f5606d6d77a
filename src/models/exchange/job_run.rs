//! A call for a job: it is made without its client, and its job charges it.

use std::sync::Arc;
use std::time::Duration;

use filters::fault::{Fault, FaultKind};
use filters::fault_code::FaultCode;
use filters::ledger::{Funding, SessionNames};
use filters::models::request::ModelRequest;

use super::ModelExchange;
use super::kept_response::JobCall;
use super::planned_attempt::{PlannedAttempt, PlannedCall};
use crate::models::Models;
use crate::proxy::context::RequestInfo;
use crate::proxy::exchange::{End, Exchange};
use crate::proxy::hedge::HedgeConnector;
use crate::proxy::own_call::OwnCall;
use crate::store::ledger::StoredJob;

/// A call for a job.
pub struct JobRun {
    exchange: Box<ModelExchange>,
    info: RequestInfo,
    connector: Arc<HedgeConnector>,
    /// The maximum time of each attempt.
    silence: Duration,
    has_ended: bool,
}

impl JobRun {
    /// Plans the call of a job. Attempts that its reserved amount does not cover are left out.
    ///
    /// Errors: no attempt is left, or those of a client's request.
    pub fn plan(
        models: &Arc<Models>,
        info: RequestInfo,
        request: ModelRequest,
        (job, session, no_fallback): (&StoredJob, Option<Arc<SessionNames>>, bool),
        connector: &Arc<HedgeConnector>,
    ) -> Result<Self, Fault> {
        let planned = PlannedCall::on_behalf(models, &request, (&info, info.now), no_fallback)?;
        let PlannedCall {
            selection,
            mut attempts,
        } = planned;
        let point = request.price_point(info.unix_s());
        attempts.retain(|attempt| is_covered(attempt, job, &request, point));
        if attempts.is_empty() {
            let message = "what was reserved for the response covers no attempt any more";
            return Err(
                Fault::new(FaultKind::Payment, message).with_code(FaultCode::InsufficientCredits)
            );
        }
        let models = Arc::clone(models);
        let silence = models.whole_timeouts.attempt;
        let mut exchange =
            ModelExchange::new(models, Box::new(request), &info, &selection, attempts);
        exchange.set_session_names(session);
        exchange.call.billing.begin_for_job(job.id);
        Ok(Self {
            exchange,
            info,
            connector: Arc::clone(connector),
            silence,
            has_ended: false,
        })
    }

    /// Makes the call.
    ///
    /// Errors: the fault of a call whose attempts have all failed.
    pub async fn run(&mut self) -> Result<(), Fault> {
        let own_call = self.info.for_own_call(self.info.now);
        let info = std::mem::replace(&mut self.info, own_call);
        let state = self.exchange.state();
        let mut call = OwnCall {
            exchange: &mut *self.exchange,
            info,
            state,
            connector: Arc::clone(&self.connector),
            read_timeout: self.silence,
        };
        let body = call.run().await;
        self.info = call.info;
        self.has_ended = true;
        body.map(|_| ())
    }

    /// Ends the call, whether it has run or was given up on the way.
    pub fn end(mut self) -> JobCall {
        self.info.now = tokio::time::Instant::now();
        let end = End {
            error: None,
            is_client_disconnected: !self.has_ended,
        };
        self.exchange.finish(&self.info, &end);
        self.exchange.into_job_call()
    }
}

/// Returns whether what is reserved for a job covers an attempt.
fn is_covered(
    attempt: &PlannedAttempt,
    job: &StoredJob,
    request: &ModelRequest,
    point: filters::money::PricePoint,
) -> bool {
    if attempt.is_byok() {
        return true;
    }
    let cost = attempt.max_cost(request, point).unwrap_or_default();
    let is_premium = attempt.deployment.is_premium();
    job.funding != Funding::Byok && cost <= job.reserved && (job.is_premium || !is_premium)
}
