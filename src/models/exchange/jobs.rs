//! The job that a call has begun: into the store, before the client hears of it.

use std::sync::Arc;

use filters::models::videos::order::{JobError, JobState, JobStatus, VideoOrder};

use super::ModelExchange;
use crate::ledger::Receipt;
use crate::ledger::jobs::RefusedJob;
use crate::models::videos::worker;
use crate::proxy::context::RequestInfo;
use crate::store::ledger::VideoJob;

/// The pause before a new job is asked for.
const FIRST_POLL_MS: i64 = 1_000;

/// Stores the job that the reply has begun, with what is reserved for it. `None`: the call begins none.
///
/// The client's last byte waits for the receipt. The store gets the job also if the client has left.
pub(super) fn begin(exchange: &mut ModelExchange, info: &RequestInfo) -> Option<Receipt> {
    let asked = exchange.request.payload.video()?.clone();
    let job = exchange.reader.writer_mut()?.job()?.into();
    let deployment = exchange.deployment()?;
    let key = exchange.credential();
    let created_ms = info.unix_ms();
    let order = VideoOrder {
        model: (*deployment.model.id).into(),
        provider: (*deployment.provider.name).into(),
        upstream_model: (*deployment.mapping.name).into(),
        region: deployment.region.as_deref().map(Into::into),
        used_model: (*deployment.used.used_model).into(),
        endpoint: exchange.cursor.endpoint,
        key_hash: key.and_then(|key| key.fingerprint.as_deref().map(Into::into)),
        byok_id: key.and_then(|key| Some((*key.byok.as_ref()?.id).into())),
        job,
        seconds: asked.seconds,
        size: asked.size,
        created_ms,
        attempts: u32::try_from(exchange.log.records.len()).unwrap_or(u32::MAX),
        callback_url: asked.callback.as_ref().map(|callback| callback.url.clone()),
    };
    let attempt = exchange.attempt()?;
    let is_byok = attempt.is_byok();
    let created_ms = i64::try_from(created_ms).unwrap_or(i64::MAX);
    let job = VideoJob {
        ordered: serde_json::to_string(&order).ok()?,
        state: serde_json::to_string(&JobState::default()).ok()?,
        // The reservation covers the most expensive attempt.
        reserved: attempt
            .max_cost(&exchange.request, exchange.price_point)
            .unwrap_or_default(),
        secret: asked.callback.map(|callback| callback.secret.into()),
        created_ms,
        ..VideoJob::default()
    };
    let refused = refused(exchange, info)?;
    let reservation = exchange.billing.take_reservation()?;
    let ledger = &exchange.models.ledger;
    let due_ms = ledger.now_ms().saturating_add(FIRST_POLL_MS);
    Some(ledger.begin_job(reservation, (job, is_byok), due_ms, refused))
}

/// Returns what becomes of a job that the client is not told of: its provider may forget it.
fn refused(exchange: &ModelExchange, info: &RequestInfo) -> Option<RefusedJob> {
    let message = "the order was refused, because the store did not take it";
    let state = JobState {
        status: JobStatus::Failed,
        ended_ms: Some(info.unix_ms()),
        error: Some(JobError::new("order_refused", message)),
        ..JobState::default()
    };
    let models = Arc::clone(&exchange.models);
    Some(RefusedJob {
        state: serde_json::to_string(&state).ok()?,
        forget: Box::new(move |job| worker::forget(&models, job)),
    })
}
