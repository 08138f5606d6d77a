//! Does what is due for the jobs of the store: asks providers how they do, and tells callbacks of their end.
//!
//! Processes with one store share the work: who claims a job works on it, and a claim ends with its time or its process, so
//! what a dead one has left is another's soon. Nothing depends on who it is, because the store ends a job once.

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
use super::lane::Lane;
use super::provider::JobProvider;
use crate::ledger::jobs::JobEnd;
use crate::models::Models;
use crate::models::deployment::Deployment;
use crate::periodic::Ticks;
use crate::store::ledger::{DueJobs, VideoJob};

/// How often the store is asked what is due.
const INTERVAL: Duration = Duration::from_millis(500);
/// How long a claim holds: longer than a poll or a webhook may take.
const CLAIM_MS: i64 = 30_000;
/// How long a job that has ended is kept.
const KEPT_MS: i64 = 30 * 24 * 3_600_000;
/// How often older ones are forgotten, in ticks.
const CLEAN_TICKS: u64 = 7_200;

/// Works until `stop`. Runs on the store's runtime. Callbacks, which callers choose, have a lane of their own: one that is
/// slow delays no poll.
pub async fn run(models: Arc<Models>, stop: watch::Receiver<bool>) {
    let mut lanes = [Lane::new(true), Lane::new(false)];
    let mut ticks = Ticks::new(INTERVAL, stop);
    let mut count: u64 = 0;
    while ticks.next().await {
        for lane in &mut lanes {
            let Some(room) = lane.room() else { continue };
            for job in claim(&models, room).await {
                let organization = Arc::clone(&job.owner.organization_id);
                lane.begin(&organization, work(Arc::clone(&models), job));
            }
        }
        if count.is_multiple_of(CLEAN_TICKS) {
            forget_old(&models).await;
        }
        count += 1;
    }
}

/// Claims jobs for which something has to be done. While the store does not answer, there are none.
async fn claim(models: &Models, room: DueJobs) -> Vec<VideoJob> {
    let ledger = &models.ledger;
    let now_ms = ledger.now_ms();
    let claimed = ledger.with_store(|store, process| async move {
        // Nearly always nothing is due, and a look writes nothing.
        match store.has_due_video_job(now_ms, room.is_open).await? {
            true => {
                let times = (now_ms, now_ms + CLAIM_MS);
                store.claim_video_jobs(&process, times, &room).await
            }
            false => Ok(Vec::new()),
        }
    });
    claimed.await.unwrap_or_default()
}

async fn forget_old(models: &Models) {
    let before_ms = models.ledger.now_ms() - KEPT_MS;
    let forgotten = models
        .ledger
        .with_store(|store, _| async move { store.delete_old_video_jobs(before_ms).await });
    // The next time follows.
    _ = forgotten.await;
}

/// Does what is due for a job.
async fn work(models: Arc<Models>, job: VideoJob) {
    let read = match ReadJob::new(&job) {
        Ok(read) => read,
        Err(fault) => {
            log::warn!("job {}: {fault:?}", job.id);
            return;
        }
    };
    match job.is_open {
        true => poll(&models, &job, read).await,
        false => tell(&models, &job, read).await,
    }
}

/// Asks the provider of a job, and does what follows.
async fn poll(models: &Models, job: &VideoJob, read: ReadJob) {
    let ReadJob { order, state } = read;
    let provider = JobProvider::find(models, &job.owner.organization_id, &order);
    let said = match &provider {
        Some(provider) => provider.poll(&models.videos).await,
        // The configuration may have it again.
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

/// Writes the state of a job, and when it is due again.
async fn postpone(models: &Models, job: &VideoJob, state: &JobState, pause_ms: Option<u64>) {
    let Ok(state) = serde_json::to_string(state) else {
        return;
    };
    let due_ms = pause_ms.map_or(0, |pause_ms| {
        let pause_ms = i64::try_from(pause_ms).unwrap_or(i64::MAX);
        models.ledger.now_ms().saturating_add(pause_ms)
    });
    let id = job.id;
    let written = models.ledger.with_store(|store, process| async move {
        let written = store.postpone_video_job(&process, &id, (&state, due_ms));
        written.await
    });
    // Otherwise the claim ends with its time, and the job is due again.
    _ = written.await;
}

/// Ends a job, and charges it once. `paid`: how long the video is, and what it is priced by.
async fn end(
    models: &Models,
    job: &VideoJob,
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
        // The claim ends with its time, and the job is asked for again.
        Err(error) => log::warn!("job {} could not be ended: {error}", job.id),
    }
}

/// Returns what a video costs, at the prices of the time of its order.
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

/// Tells the callback of a job that it has ended.
async fn tell(models: &Models, job: &VideoJob, read: ReadJob) {
    let ReadJob { order, state } = read;
    let (Some(url), Some(secret)) = (&order.callback_url, &job.secret) else {
        return postpone(models, job, &state, None).await;
    };
    let now_s = unix_ms(models) / 1000;
    let webhook = Webhook::new(&job.id.to_string(), &order, &state, secret, now_s);
    let delivery = models.videos.callbacks.tell(url, webhook).await;
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

/// Tells the provider of a job to forget it, behind the client's back: the job is deleted, whatever comes of it.
pub fn forget(models: &Arc<Models>, job: &VideoJob) {
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
