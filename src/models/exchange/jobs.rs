//! Stores the job that a call has begun, before the client learns of it.

use std::sync::Arc;

use filters::models::videos::order::{JobError, JobState, JobStatus, VideoOrder};

use super::ModelExchange;
use crate::ledger::Receipt;
use crate::ledger::jobs::{NewJob, RefusedJob};
use crate::models::Models;
use crate::models::videos::worker;
use crate::proxy::context::RequestInfo;
use crate::store::ledger::StoredJob;

/// The pause before the first poll of a new job.
const FIRST_POLL_MS: i64 = 1_000;

impl ModelExchange {
    /// Stores the job that the reply has begun, with its reservation. Returns `None` if the call begins no job.
    ///
    /// The client's last byte waits for the receipt. The job is also stored if the client has left.
    pub(super) fn begin_job(&mut self, info: &RequestInfo) -> Option<Receipt> {
        let (call, running) = (&mut self.call, &mut self.running);
        let asked = call.request.payload.video()?.clone();
        let job = running.reader.writer_mut()?.job()?.into();
        let attempt = running.planned(call)?;
        let (deployment, is_byok) = (&attempt.deployment, attempt.is_byok());
        let key = running.credential(call);
        let created_ms = info.unix_ms();
        let order = VideoOrder {
            model: (*deployment.model.id).into(),
            provider: (*deployment.provider.name).into(),
            upstream_model: (*deployment.mapping.name).into(),
            region: deployment.region.as_deref().map(Into::into),
            used_model: (*deployment.used.used_model).into(),
            endpoint: running.cursor.endpoint,
            key_hash: key.and_then(|key| key.fingerprint.as_deref().map(Into::into)),
            byok_id: key.and_then(|key| Some((*key.byok.as_ref()?.id).into())),
            job,
            seconds: asked.seconds,
            size: asked.size,
            created_ms,
            attempts: call.log.ended(),
            callback_url: asked.callback.as_ref().map(|callback| callback.url.clone()),
        };
        let created_ms = i64::try_from(created_ms).unwrap_or(i64::MAX);
        // The reservation covers the most expensive attempt.
        let reserved = attempt.max_cost(&call.request, call.price_point);
        let job = StoredJob {
            ordered: serde_json::to_string(&order).ok()?,
            state: serde_json::to_string(&JobState::default()).ok()?,
            reserved: reserved.unwrap_or_default(),
            secret: asked.callback.map(|callback| callback.secret.into()),
            created_ms,
            ..StoredJob::default()
        };
        let refused = refused(&self.models, info)?;
        let reservation = call.billing.begin_job()?;
        let ledger = &self.models.ledger;
        let due_ms = ledger.now_ms().saturating_add(FIRST_POLL_MS);
        let new = NewJob {
            job,
            is_byok,
            due_ms,
            response: None,
        };
        Some(ledger.begin_job(reservation, new, refused))
    }
}

/// Returns the handler of a job that the client never learns of: it asks the provider to delete the job.
fn refused(models: &Arc<Models>, info: &RequestInfo) -> Option<RefusedJob> {
    let message = "the order was refused, because the store did not take it";
    let state = JobState {
        status: JobStatus::Failed,
        ended_ms: Some(info.unix_ms()),
        error: Some(JobError::new("order_refused", message)),
        ..JobState::default()
    };
    let models = Arc::clone(models);
    Some(RefusedJob {
        state: serde_json::to_string(&state).ok()?,
        forget: Box::new(move |job| worker::forget(&models, job)),
    })
}
