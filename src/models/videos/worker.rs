//! Does the due work on jobs of videos: polls providers, and reports the end of jobs to callbacks.

use std::sync::Arc;
use std::time::Duration;

use filters::ledger::{CostParts, UsageRecord};
use filters::models::usage::{Settlement, Usage};
use filters::models::videos::order::{JobState, VideoOrder};
use filters::models::videos::progress::{JobStep, PollFailure, step};
use filters::models::videos::webhook::{Webhook, pause_ms};
use filters::money::{PricePoint, ServiceTier, Unit, UnitCounts};
use tokio::sync::watch;

use super::ReadJob;
use super::callback::Delivery;
use super::provider::JobProvider;
use crate::ledger::jobs::JobEnd;
use crate::models::Models;
use crate::models::deployment::Deployment;
use crate::models::jobs::{self, CLEAN_TICKS, WorkLane, claim};
use crate::periodic::Ticks;
use crate::store::ledger::{JobKind, StoredJob};

/// The interval at which the store is asked for due work.
const INTERVAL: Duration = Duration::from_millis(500);
/// How long a claim holds: longer than a poll or a webhook may take.
const CLAIM_MS: i64 = 30_000;
/// How long an ended job is kept.
const KEPT_MS: i64 = 30 * 24 * 3_600_000;

/// Claims jobs until `stop`, on the store's runtime, and ends the work that it has begun. Callbacks, which callers choose, have their own lane, so that a slow
/// one delays no poll.
pub async fn run(models: Arc<Models>, stop: watch::Receiver<bool>) {
    let mut lanes = [WorkLane::new(true), WorkLane::new(false)];
    let mut ticks = Ticks::new(INTERVAL, stop);
    let mut count: u64 = 0;
    while ticks.next().await {
        for lane in &mut lanes {
            let Some(room) = lane.room() else { continue };
            for job in claim(&models.ledger, JobKind::Video, room, CLAIM_MS).await {
                let organization = Arc::clone(&job.owner.organization_id);
                lane.begin(&organization, work(Arc::clone(&models), job));
            }
        }
        if count.is_multiple_of(CLEAN_TICKS) {
            forget_old(&models).await;
        }
        count += 1;
    }
    for lane in lanes {
        lane.finish().await;
    }
}

async fn forget_old(models: &Models) {
    let before_ms = models.ledger.now_ms() - KEPT_MS;
    let forgotten = models
        .ledger
        .with_store(|store, _| async move { store.delete_old_video_jobs(before_ms).await });
    // Old jobs that remain are deleted the next time.
    _ = forgotten.await;
}

/// Does the due work on a job.
async fn work(models: Arc<Models>, job: StoredJob) {
    let read = match ReadJob::new(&job) {
        Ok(read) => read,
        Err(fault) => {
            log::warn!("job {}: {fault:?}", job.id);
            return;
        }
    };
    match job.is_open {
        true => poll(&models, &job, read).await,
        false => report_end(&models, &job, read).await,
    }
}

/// Asks the provider of a job for its status, and handles the reply.
async fn poll(models: &Models, job: &StoredJob, read: ReadJob) {
    let ReadJob { order, state } = read;
    let provider = JobProvider::find(models, &job.owner.organization_id, &order);
    let said = match &provider {
        Some(provider) => provider.poll(&models.videos).await,
        // A later configuration may have the provider again.
        None => Err(PollFailure::Failed),
    };
    let now_ms = unix_ms(models);
    let timeout_ms = u64::try_from(models.videos.job_timeout.as_millis()).unwrap_or(u64::MAX);
    let times = (now_ms, order.created_ms.saturating_add(timeout_ms));
    let asked_ms = u64::from(order.seconds) * 1000;
    match step(&state, said, asked_ms, times) {
        JobStep::Wait(state, pause_ms) => postpone(models, job, &state, Some(pause_ms)).await,
        JobStep::End(state, output_ms) => {
            let deployment = provider.map(|provider| provider.deployment);
            let paid = output_ms.zip(deployment);
            end(models, job, (&order, state), paid).await;
        }
    }
}

fn unix_ms(models: &Models) -> u64 {
    u64::try_from(models.ledger.now_ms()).unwrap_or_default()
}

/// Writes the state of a job, and the time at which it is due again.
async fn postpone(models: &Models, job: &StoredJob, state: &JobState, pause_ms: Option<u64>) {
    let Ok(state) = serde_json::to_string(state) else {
        return;
    };
    let due_ms = pause_ms.map_or(0, |pause_ms| {
        let pause_ms = i64::try_from(pause_ms).unwrap_or(i64::MAX);
        models.ledger.now_ms().saturating_add(pause_ms)
    });
    jobs::postpone(&models.ledger, job, state, due_ms).await;
}

/// Ends a job, and charges it once. `paid` has the length of the video and the facts for its price.
async fn end(
    models: &Models,
    job: &StoredJob,
    (order, mut state): (&VideoOrder, JobState),
    paid: Option<(u64, Arc<Deployment>)>,
) {
    let priced = paid.map(|(output_ms, deployment)| {
        let settlement = settle(order, output_ms, &deployment);
        let usage = usage_record(order, &settlement, &deployment);
        (deployment, settlement, usage)
    });
    let cost = priced
        .as_ref()
        .and_then(|(_, settlement, _)| settlement.cost.as_ref());
    state.cost = cost.map(|cost| cost.total.to_string().into());
    let Ok(written) = serde_json::to_string(&state) else {
        return;
    };
    let is_told = order.callback_url.is_some() && job.secret.is_some();
    let ended = JobEnd {
        state: &written,
        due_ms: if is_told { models.ledger.now_ms() } else { 0 },
        usage: priced.as_ref().map(|(_, _, usage)| usage.clone()),
        ..JobEnd::default()
    };
    match models.ledger.end_job(job, ended).await {
        Ok(Some(_)) => {
            models.metrics.count_video(state.status.as_str());
            if let Some((deployment, settlement, _)) = &priced {
                deployment.metrics.count_usage(settlement);
            }
        }
        // Another process was faster.
        Ok(None) => {}
        // The claim ends with its time, and the job is polled again.
        Err(error) => log::warn!("job {} could not be ended: {error}", job.id),
    }
}

/// Returns the cost of a video, at the prices of the time of its order.
fn settle(order: &VideoOrder, output_ms: u64, deployment: &Deployment) -> Settlement {
    let usage = Usage {
        units: UnitCounts::default().with(Unit::OutputTime, output_ms),
        ..Usage::default()
    };
    let point = PricePoint {
        tier: ServiceTier::Standard,
        start_s: order.created_ms / 1000,
    };
    let prices = deployment.prices.as_ref();
    let cost = prices.map(|prices| prices.at(point).cost(&usage.billed()));
    Settlement { usage, cost }
}

fn usage_record(
    order: &VideoOrder,
    settlement: &Settlement,
    deployment: &Deployment,
) -> UsageRecord {
    UsageRecord {
        model: Arc::clone(&deployment.model.id),
        provider: Arc::clone(&deployment.provider.name),
        upstream_model: Arc::clone(&deployment.mapping.name),
        region: deployment.region.clone(),
        units: settlement.usage.units,
        cost: settlement.cost.as_ref().map(CostParts::from),
        is_premium: deployment.is_premium(),
        attempts: order.attempts,
        ..UsageRecord::default()
    }
}

/// Reports the end of a job to its callback.
async fn report_end(models: &Models, job: &StoredJob, read: ReadJob) {
    let ReadJob { order, state } = read;
    let (Some(url), Some(secret)) = (&order.callback_url, &job.secret) else {
        return postpone(models, job, &state, None).await;
    };
    let now_s = unix_ms(models) / 1000;
    let webhook = Webhook::new(&job.id.to_string(), &order, &state, secret, now_s);
    let delivery = models.videos.callbacks.send(url, webhook).await;
    models.metrics.count_video_callback(delivery.as_str());
    let state = JobState {
        told: state.told.saturating_add(1),
        ..state
    };
    let pause_ms = match delivery {
        Delivery::Taken | Delivery::Gone => None,
        Delivery::Refused | Delivery::Failed | Delivery::Prohibited => pause_ms(state.told),
    };
    postpone(models, job, &state, pause_ms).await;
}

/// Asks the provider of a job to delete it, in the background. The job itself is deleted in any case.
pub fn forget(models: &Arc<Models>, job: &StoredJob) {
    let Ok(read) = ReadJob::new(job) else {
        return;
    };
    let (models, organization) = (Arc::clone(models), Arc::clone(&job.owner.organization_id));
    tokio::spawn(async move {
        if let Some(provider) = JobProvider::find(&models, &organization, &read.order) {
            provider.forget(&models.videos).await;
        }
    });
}
