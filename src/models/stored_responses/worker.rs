//! Makes responses in the background: claims their jobs, makes their calls, and stores what comes of them together with their charge.
//!
//! A process holds its claim while a call runs. After a kill another one makes the call again: the client pays once, because the
//! store ends a job once. Where no responses are kept any more, the jobs that wait fail, which frees what is reserved for them.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use filters::accounts::{AuthError, Caller, KeyHash, admit_hash};
use filters::fault::{Fault, FaultKind};
use filters::ledger::CallOutcome;
use filters::models::front::Front;
use filters::models::fronts::responses::Responses;
use filters::models::request::ModelRequest;
use filters::models::stored_responses::ResponsePromise;
use filters::models::stored_responses::progress::{
    BackgroundOrder, ResponseStatus, with_created, with_status,
};
use tokio::sync::watch;
use tokio::time::{Instant, sleep};

use crate::accounts::AccountsHandle;
use crate::ledger::jobs::JobEnd;
use crate::models::Models;
use crate::models::exchange::{JobCall, JobRun, status_of};
use crate::models::jobs::{WorkLane, claim, postpone};
use crate::periodic::Ticks;
use crate::proxy::body;
use crate::proxy::body_budget::BodyBudget;
use crate::proxy::context::RequestInfo;
use crate::proxy::hedge::HedgeConnector;
use crate::proxy::request_id::RequestId;
use crate::store::ledger::{JobKind, StoredJob};
use crate::store::{CANCELLED_JOB, EndedResponse, JobHold};

/// The interval at which the store is asked for due work.
const INTERVAL: Duration = Duration::from_millis(500);
/// How long a claim holds without renewal.
const CLAIM_MS: i64 = 20_000;
/// How often a claim is renewed, and a cancellation heard.
const RENEW_INTERVAL: Duration = Duration::from_secs(2);
/// How often a call is made again after a process has died with it. Our choice: a request that kills processes has to end.
const MAX_RUNS: u32 = 3;
/// The pause before a response for which there is no memory is tried again.
const FULL_PAUSE_MS: i64 = 5_000;
/// How old a job is before a process that keeps no responses ends it. Younger ones are left to processes that keep some, of
/// which there are some while the setting changes from process to process.
const ORPHAN_AGE_MS: i64 = 60_000;
/// How often the end of a response is told to a store that does not take it.
const MAX_END_TRIES: u32 = 30;
/// The interval, in ticks, at which expired responses are deleted, and how many at once.
const EXPIRY_TICKS: u64 = 120;
const EXPIRY_PORTION: i64 = 200;
/// The most portions of one interval, so that other work goes on.
const MAX_PORTIONS: usize = 50;

/// What the worker needs.
pub struct ResponseWork {
    pub models: Arc<Models>,
    pub accounts: AccountsHandle,
    pub body_budget: Arc<BodyBudget>,
}

/// A worker and its connections.
struct Worker {
    work: ResponseWork,
    connector: Arc<HedgeConnector>,
}

/// Claims jobs until `stop`, on the store's runtime, and makes the responses that it has begun.
pub async fn run(work: ResponseWork, stop: watch::Receiver<bool>) {
    let worker = Arc::new(Worker {
        work,
        connector: Arc::default(),
    });
    let ledger = Arc::clone(&worker.work.models.ledger);
    let mut lane = WorkLane::new(true);
    let mut ticks = Ticks::new(INTERVAL, stop);
    let mut count: u64 = 0;
    while ticks.next().await {
        if let Some(room) = lane.room() {
            for job in claim(&ledger, JobKind::Response, room, CLAIM_MS).await {
                let organization = Arc::clone(&job.owner.organization_id);
                let worker = Arc::clone(&worker);
                lane.begin(&organization, async move { worker.make(job).await });
            }
        }
        if count.is_multiple_of(EXPIRY_TICKS) {
            worker.delete_expired().await;
        }
        count += 1;
    }
    lane.finish().await;
}

/// What came of a job.
enum Made {
    /// Its call has ended, well or not.
    Ended(JobCall, Result<(), Fault>),
    /// Nobody wants it any more.
    Cancelled(JobCall),
    /// Another process has it.
    Lost,
}

/// Why a job does not begin.
enum NotBegun {
    /// It never will.
    Failed(Fault),
    /// It may later.
    Postponed(i64),
    /// Its claim ends, and it begins again.
    Unknown,
}

impl From<Fault> for NotBegun {
    fn from(fault: Fault) -> Self {
        Self::Failed(fault)
    }
}

impl Worker {
    async fn delete_expired(&self) {
        let ledger = &self.work.models.ledger;
        let now_ms = ledger.now_ms();
        for _ in 0..MAX_PORTIONS {
            let deleted = ledger.with_store(|store, _| async move {
                let deleted = store.delete_expired_responses(now_ms, EXPIRY_PORTION);
                deleted.await
            });
            // What remains is deleted the next time.
            let deleted = deleted.await.unwrap_or_default();
            if i64::try_from(deleted).unwrap_or_default() < EXPIRY_PORTION {
                return;
            }
        }
    }

    /// Makes the response of a job that was claimed.
    async fn make(&self, job: StoredJob) {
        if job.state == CANCELLED_JOB {
            return self.end(&job, None, ResponseStatus::Cancelled, None).await;
        }
        let models = &self.work.models;
        if !models.stored_responses.is_on() {
            return self.end_orphan(&job).await;
        }
        let runs: u32 = job.state.parse().unwrap_or(MAX_RUNS);
        if runs >= MAX_RUNS {
            let message = "the response was begun several times, and never came to its end";
            let fault = Fault::new(FaultKind::Internal, message);
            return self.fail(&job, &fault, None).await;
        }
        let order: BackgroundOrder = serde_json::from_str(&job.ordered).unwrap_or_default();
        let mut call = match self.begin(&job, &order).await {
            Ok(call) => call,
            Err(NotBegun::Failed(fault)) => return self.fail(&job, &fault, None).await,
            Err(NotBegun::Postponed(due_ms)) => {
                return postpone(&models.ledger, &job, job.state.clone(), due_ms).await;
            }
            Err(NotBegun::Unknown) => return,
        };
        let ledger = &models.ledger;
        let (id, state) = (job.id, (runs + 1).to_string());
        let begun = ledger.with_store(|store, process| async move {
            let begun = store.begin_response_work(&process, &id, &state);
            begun.await
        });
        if !begun.await.unwrap_or(false) {
            return;
        }
        let made = tokio::select! {
            ended = call.run() => {
                Made::Ended(call.end(), ended)
            }
            hold = self.hold(&job) => match hold {
                JobHold::Cancelled => Made::Cancelled(call.end()),
                JobHold::Renewed | JobHold::Lost => Made::Lost,
            },
        };
        self.take(&job, &order, made).await;
    }

    /// Ends a job that waits for a process that keeps responses, if none has come.
    async fn end_orphan(&self, job: &StoredJob) {
        let ledger = &self.work.models.ledger;
        let now_ms = ledger.now_ms();
        if now_ms - job.created_ms < ORPHAN_AGE_MS {
            return postpone(ledger, job, job.state.clone(), now_ms + CLAIM_MS).await;
        }
        let message = "no responses are kept any more: `[responses] store` is false";
        let fault = Fault::new(FaultKind::Unavailable, message);
        self.fail(job, &fault, None).await;
    }

    /// Stores what came of a job.
    async fn take(&self, job: &StoredJob, order: &BackgroundOrder, made: Made) {
        match made {
            Made::Lost => {}
            Made::Cancelled(call) => {
                self.end(job, Some((call, order)), ResponseStatus::Cancelled, None)
                    .await;
            }
            Made::Ended(call, Err(fault)) => self.fail(job, &fault, Some((call, order))).await,
            Made::Ended(mut call, Ok(())) => {
                let Some(response) = call.response.take() else {
                    let fault = Fault::new(FaultKind::Internal, "the response has no end");
                    return self.fail(job, &fault, Some((call, order))).await;
                };
                if let Err(fault) = self.work.models.stored_responses.check_size(b"", &response) {
                    return self.fail(job, &fault, Some((call, order))).await;
                }
                let status = status_of(&response);
                let told = std::str::from_utf8(&response).unwrap_or_default();
                let told = with_created(told, job.created_ms / 1000);
                let response = told.map_or(response.clone(), Bytes::from);
                self.end(job, Some((call, order)), status, Some(response))
                    .await;
            }
        }
    }

    /// Plans the call of a job.
    async fn begin(&self, job: &StoredJob, order: &BackgroundOrder) -> Result<JobRun, NotBegun> {
        let unreadable = || {
            let message = "the request cannot be read: it was stored under another secret";
            Fault::new(FaultKind::Internal, message)
        };
        let body = job.secret.as_ref().ok_or_else(unreadable)?;
        let models = &self.work.models;
        let caller = self.caller(job).await?;
        let owner = Some(Arc::clone(&caller.organization_id));
        let mut reservation = self.work.body_budget.reservation(owner);
        if reservation.grow_to(body.len()).is_err() {
            let due_ms = models.ledger.now_ms() + FULL_PAUSE_MS;
            return Err(NotBegun::Postponed(due_ms));
        }
        let id = RequestId::from_text(&job.owner.request_id);
        let info = RequestInfo::in_background(id, caller, models.clock, reservation);
        let request = body::off_worker(body.len(), || read(job, order, body))?;
        let session = order.session.clone().map(Arc::new);
        let of_job = (job, session, order.no_fallback);
        Ok(JobRun::plan(
            models,
            info,
            request,
            of_job,
            &self.connector,
        )?)
    }

    /// Finds who has asked for the response, by the rules of now.
    async fn caller(&self, job: &StoredJob) -> Result<Arc<Caller>, NotBegun> {
        let key_id = Arc::clone(&job.owner.key_id);
        let ledger = &self.work.models.ledger;
        let hash = ledger.with_store(|store, _| async move { store.key_hash(&key_id).await });
        let hash = hash.await.map_err(|_| NotBegun::Unknown)?;
        let hash: Option<[u8; 32]> = hash.and_then(|hash| hash.try_into().ok());
        let hash = hash.ok_or(AuthError::Unknown).map_err(Fault::from)?;
        let accounts = self.work.accounts.current();
        let caller = admit_hash(&KeyHash::from_bytes(hash), &accounts, ledger.now_ms());
        Ok(caller.map_err(Fault::from)?)
    }

    /// Holds on to a job until somebody cancels it, or another process has it.
    async fn hold(&self, job: &StoredJob) -> JobHold {
        let term = Duration::from_millis(CLAIM_MS.unsigned_abs());
        let mut held_until = Instant::now() + term;
        loop {
            sleep(RENEW_INTERVAL).await;
            let asked = Instant::now();
            match self.renew(job).await {
                Ok(JobHold::Renewed) => held_until = asked + term,
                Ok(hold) => return hold,
                Err(_) if Instant::now() >= held_until => return JobHold::Lost,
                Err(_) => {}
            }
        }
    }

    async fn renew(&self, job: &StoredJob) -> Result<JobHold, Fault> {
        let ledger = &self.work.models.ledger;
        let (id, until_ms) = (job.id, ledger.now_ms() + CLAIM_MS);
        let renewed = ledger.with_store(|store, process| async move {
            let renewed = store.renew_response_job(&process, &id, until_ms);
            renewed.await
        });
        renewed.await
    }

    async fn fail(
        &self,
        job: &StoredJob,
        fault: &Fault,
        call: Option<(JobCall, &BackgroundOrder)>,
    ) {
        let failed = self.current(job).await;
        let failed = failed.and_then(|response| Responses.failed(&response, fault));
        let failed = failed.map(Bytes::from);
        self.end(job, call, ResponseStatus::Failed, failed).await;
    }

    /// Returns the response as it is stored.
    async fn current(&self, job: &StoredJob) -> Option<String> {
        let stored = &self.work.models.stored_responses;
        let id = job.id.to_string();
        let found = stored.find(&id, &job.owner.key_id, false);
        found.await.ok()?.map(|found| found.response)
    }

    /// Ends a job, with its charge. Without a response it keeps the one that it has, with this status.
    async fn end(
        &self,
        job: &StoredJob,
        call: Option<(JobCall, &BackgroundOrder)>,
        status: ResponseStatus,
        response: Option<Bytes>,
    ) {
        let response = match response {
            Some(response) => Some(response),
            None => {
                let current = self.current(job).await;
                let told = current.and_then(|current| with_status(&current, status).ok());
                told.map(Bytes::from)
            }
        };
        let session = call.as_ref().and_then(|(_, order)| order.session.clone());
        let end = call.and_then(|(call, _)| call.end);
        let ended = || JobEnd {
            usage: end.as_ref().map(|end| end.usage.clone()),
            outcome: end
                .as_ref()
                .map_or(CallOutcome::Completed, |end| end.outcome),
            is_byok: end.as_ref().is_some_and(|end| end.is_byok),
            session: session.clone().map(Arc::new),
            response: response.clone().map(|response| EndedResponse {
                id: job.id.to_string().into(),
                status: status.as_str(),
                response,
            }),
            ..JobEnd::default()
        };
        let models = &self.work.models;
        for _ in 0..MAX_END_TRIES {
            match models.ledger.end_job(job, ended()).await {
                Ok(Some(_)) => return models.metrics.count_background_response(status.as_str()),
                // Another process was faster.
                Ok(None) => return,
                Err(error) => log::warn!("the response {} could not be ended: {error}", job.id),
            }
            // Meanwhile no other process makes the response once more.
            sleep(RENEW_INTERVAL).await;
            if let Ok(JobHold::Lost) = self.renew(job).await {
                return;
            }
        }
    }
}

/// Reads the request of a job, whose history stands in it.
fn read(job: &StoredJob, order: &BackgroundOrder, body: &str) -> Result<ModelRequest, Fault> {
    let mut request = Responses.parse(Bytes::copy_from_slice(body.as_bytes()))?;
    request.promise = Some(Arc::new(ResponsePromise {
        id: Some(job.id.to_string().into()),
        previous: order.previous.clone(),
        is_background: true,
        input: Bytes::new(),
    }));
    Ok(request)
}
