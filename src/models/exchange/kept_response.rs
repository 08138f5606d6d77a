//! Responses that are kept: the one that has ended, before the client sees its end, and the one that is made in the background,
//! before the client learns of it.

use std::sync::Arc;

use bytes::Bytes;
use filters::fault::{Fault, FaultKind};
use filters::json::members::find_text;
use filters::models::stored_responses::ResponsePromise;
use filters::models::stored_responses::progress::{BackgroundOrder, ResponseStatus};
use futures::FutureExt;
use futures::future::BoxFuture;

use super::ModelExchange;
use crate::ledger::CallEnd;
use crate::ledger::jobs::{NewJob, RefusedJob};
use crate::models::stored_responses::StoredResponses;
use crate::proxy::context::RequestInfo;
use crate::proxy::exchange::Gate;
use crate::proxy::response::Response;
use crate::store::ledger::{JobKind, StoredJob};

/// A call that was made for a job, once it has ended.
pub struct JobCall {
    /// The whole response; `None`: it did not end.
    pub response: Option<Bytes>,
    /// What it took; `None`: nothing.
    pub end: Option<CallEnd>,
}

impl ModelExchange {
    /// Returns the keeping of the response that has ended, for which the client's last byte waits; `None`: it is not kept, or its
    /// job does that.
    pub(super) fn keep_response(&mut self, info: &RequestInfo) -> Option<BoxFuture<'static, bool>> {
        let promise = self.call.request.promise.clone()?;
        if promise.is_background {
            return None;
        }
        let response = self.running.reader.writer_mut()?.take_kept()?;
        let status = status_of(&response);
        let (stored, caller) = (self.models.kept_responses()?, info.caller.as_ref()?);
        let keeping = stored.keep(caller, &promise, (status, response));
        let unkept = Arc::clone(&self.call.unkept);
        Some(
            async move {
                match keeping.await {
                    Ok(()) => true,
                    Err(fault) => unkept.set(fault).is_err(),
                }
            }
            .boxed(),
        )
    }

    /// Stores a response that is to be made in the background, with what is reserved for it. Returns the response that tells of it.
    ///
    /// Errors: 503 if the store does not take it. Then nothing is charged.
    pub async fn begin_background(
        &mut self,
        info: &RequestInfo,
        stored: &StoredResponses,
        no_fallback: bool,
    ) -> Result<Response, Fault> {
        let internal = || Fault::new(FaultKind::Internal, "the call has no reservation");
        let caller = info.caller.as_deref().ok_or_else(internal)?;
        let max_cost = self.call.max_cost(self.call.attempts.iter());
        let reservation = self.call.billing.begin_job().ok_or_else(internal)?;
        let request = &mut self.call.request;
        let promise = request.promise.as_deref().cloned().unwrap_or_default();
        let promise = ResponsePromise {
            id: Some(reservation.id().to_string().into()),
            ..promise
        };
        request.promise = Some(Arc::new(promise.clone()));
        let queued = request.front.queued(request, info.unix_s());
        let queued = Bytes::from(queued.ok_or_else(internal)?);
        let job = self.job(info, &promise, no_fallback);
        let job = StoredJob {
            reserved: max_cost,
            ..job.ok_or_else(internal)?
        };
        let ledger = &self.models.ledger;
        let new = NewJob {
            job,
            is_byok: false,
            due_ms: ledger.now_ms(),
            response: Some(stored.row(
                caller,
                &promise,
                (ResponseStatus::Queued, queued.clone()),
            )?),
        };
        let refused = RefusedJob {
            state: String::new(),
            forget: Box::new(|_| ()),
        };
        if !ledger
            .begin_job(reservation, new, refused)
            .is_durable()
            .await
        {
            let message =
                "the response cannot be queued at the moment, because the store does not take it";
            return Err(Fault::new(FaultKind::Unavailable, message).with_retry_after_s(2));
        }
        self.call.is_queued = true;
        self.call.send_impression();
        Ok(Response::json(queued.to_vec()))
    }

    /// Returns the job of a response that is to be made, but for what its reservation knows.
    fn job(
        &self,
        info: &RequestInfo,
        promise: &ResponsePromise,
        no_fallback: bool,
    ) -> Option<StoredJob> {
        let order = BackgroundOrder {
            previous: promise.previous.clone(),
            no_fallback,
            session: self.call.session_names.as_deref().cloned(),
        };
        let body = self.call.request.source.body.to_vec();
        Some(StoredJob {
            kind: JobKind::Response,
            ordered: serde_json::to_string(&order).ok()?,
            state: "0".to_owned(),
            secret: Some(String::from_utf8(body).ok()?),
            created_ms: i64::try_from(info.unix_ms()).unwrap_or(i64::MAX),
            ..StoredJob::default()
        })
    }

    /// Takes what became of a call that was made for a job.
    pub fn into_job_call(mut self: Box<Self>) -> JobCall {
        let writer = self.running.reader.writer_mut();
        JobCall {
            response: writer.and_then(|writer| writer.take_kept()),
            end: self.call.billing.take_end(),
        }
    }
}

/// Returns the status that a response says.
pub fn status_of(response: &[u8]) -> ResponseStatus {
    let text = std::str::from_utf8(response).unwrap_or_default();
    let status = find_text(text, "status");
    let status = status.and_then(|status| ResponseStatus::from_word(&status));
    status.unwrap_or(ResponseStatus::Completed)
}

/// Joins two gates: the second one follows the first.
pub(super) fn followed(first: Option<Gate>, second: Option<Gate>) -> Option<Gate> {
    match (first, second) {
        (Some(first), Some(second)) => Some(async { first.await && second.await }.boxed()),
        (first, second) => first.or(second),
    }
}
