//! Jobs, which go on after their call: what they may cost waits in the store, and is charged there when they end.
//!
//! The store has the job, its amount and its charge in one place, so neither a restart nor another process that ends it
//! counts anything twice. Source: docs/decisions.md 56.

use std::sync::Arc;
use std::time::Duration;

use filters::fault::{Fault, FaultKind};
use filters::ledger::{CallOutcome, Charge, Funding, LedgerEntry, SessionNames, UsageRecord};
use filters::money::Usd;
use tokio::time::timeout;

use super::leases::STORE_TIMEOUT;
use super::reservation::Reservation;
use super::{Ledger, Receipt};
use crate::store::ledger::StoredJob;
use crate::store::{EndedResponse, NewResponse, Store, StoreError};

/// The pause after which a store that did not answer is asked again to end a job.
const GIVE_UP_PAUSE: Duration = Duration::from_secs(1);

/// A job that a call has begun.
pub struct NewJob {
    pub job: StoredJob,
    /// Whether a BYOK key serves it.
    pub is_byok: bool,
    /// When something has to be done for it, in unix milliseconds.
    pub due_ms: i64,
    /// The response that it makes, if it makes one.
    pub response: Option<NewResponse>,
}

/// How a job ended, for the ledger.
#[derive(Default)]
pub struct JobEnd<'a> {
    pub state: &'a str,
    /// When something has to be done next, in unix milliseconds; 0: nothing.
    pub due_ms: i64,
    /// What it took; `None`: it costs nothing.
    pub usage: Option<UsageRecord>,
    pub outcome: CallOutcome,
    /// Whether a BYOK key has served it, so that its provider bills the caller.
    pub is_byok: bool,
    /// The session that it belongs to.
    pub session: Option<Arc<SessionNames>>,
    /// What it has made, if that is a response.
    pub response: Option<EndedResponse>,
}

/// What becomes of a job whose order is refused, because the store has not confirmed it.
pub struct RefusedJob {
    /// Its last state, as JSON, where the store has the job nevertheless.
    pub state: String,
    /// Tells its provider to forget it.
    pub forget: Box<dyn FnOnce(&StoredJob) + Send>,
}

impl Ledger {
    /// Stores a job that the call of a reservation has begun, with what is reserved for it; the job says how much of
    /// that it may cost, and lacks what else the reservation knows.
    ///
    /// The receipt resolves once it is decided whether the job exists, also if the client has left: a client that is told of
    /// no job may order again, and must not pay for two.
    pub fn begin_job(
        self: &Arc<Self>,
        reservation: Reservation,
        new: NewJob,
        refused: RefusedJob,
    ) -> Receipt {
        let (done, receipt) = Receipt::decided_channel();
        let ledger = Arc::clone(self);
        self.runtime.spawn(async move {
            let is_byok = new.is_byok;
            let job = reservation.describe(new.job, is_byok);
            let (owner, response) = (&ledger.owner, new.response.as_ref());
            let begun = ledger.store.begin_job(owner, &job, new.due_ms, response);
            match begun.await {
                Ok(()) => {
                    reservation.hand_over(job.reserved, is_byok);
                    _ = done.send(());
                }
                Err(error) => {
                    log::warn!("a job could not be stored: {error}");
                    // The client gets no job.
                    drop(done);
                    (refused.forget)(&job);
                    ledger
                        .give_up_job(reservation, (&job, is_byok), &refused.state)
                        .await;
                }
            }
        });
        receipt
    }

    /// Ends a job of which no client was told: the store may have it, although it did not answer in time. The amount stays
    /// reserved until the store answers.
    async fn give_up_job(
        self: &Arc<Self>,
        reservation: Reservation,
        (job, is_byok): (&StoredJob, bool),
        state: &str,
    ) {
        loop {
            let end = JobEnd {
                state,
                ..JobEnd::default()
            };
            match self.end_job(job, end).await {
                Ok(Some(_)) => return reservation.hand_over(job.reserved, is_byok),
                // The store does not have it. Dropped, the reservation frees its amount.
                Ok(None) => return,
                Err(_) => tokio::time::sleep(GIVE_UP_PAUSE).await,
            }
        }
    }

    /// Ends a job, and charges what it took. Runs on the store's runtime. Returns the charge; `None`: it had ended already.
    ///
    /// Errors: the store. Then it may be repeated.
    pub async fn end_job(
        self: &Arc<Self>,
        job: &StoredJob,
        end: JobEnd<'_>,
    ) -> Result<Option<Charge>, StoreError> {
        let at_ms = self.now_ms();
        let funding = if end.is_byok {
            Funding::Byok
        } else {
            job.funding
        };
        let entry = end.usage.map(|usage| {
            let cost = usage.total();
            let (charged, shortfall) = match funding {
                Funding::Credit => (cost.min(job.reserved), cost.minus(cost.min(job.reserved))),
                _ => (Usd::ZERO, Usd::ZERO),
            };
            LedgerEntry {
                id: job.id,
                at_ms,
                owner: job.owner.clone(),
                funding,
                charged,
                shortfall,
                usage,
                outcome: end.outcome,
                reserved: job.reserved,
                duration_ms: u64::try_from(at_ms - job.created_ms).unwrap_or_default(),
                session: end.session,
                marks: job.marks.clone(),
                ..LedgerEntry::default()
            }
        });
        let ended = self.store.end_job(
            (job.kind, &job.id),
            (end.state, end.due_ms),
            entry.as_ref(),
            end.response.as_ref(),
        );
        let ended = ended.await?;
        if let Some(account) = self.find_account(&job.owner.organization_id) {
            account.follow_job();
        }
        if let Some(charge) = &ended {
            self.count_charge(charge);
        }
        Ok(ended)
    }

    /// Works with the store, on its runtime.
    ///
    /// Errors: 503 while the store does not answer.
    pub async fn with_store<T, F>(&self, work: impl FnOnce(Store, String) -> F) -> Result<T, Fault>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        let unavailable = || {
            Fault::new(FaultKind::Unavailable, "the store does not answer").with_retry_after_s(2)
        };
        if !self.is_attached() {
            return Err(unavailable());
        }
        let work = work(self.store.clone(), self.owner.clone());
        let (turns, runtime) = (Arc::clone(&self.request_turns), self.runtime.clone());
        let done = timeout(STORE_TIMEOUT, async move {
            let turn = turns.acquire_owned().await;
            // The request may give up before the database does. The turn ends with the work.
            let working = runtime.spawn(async move {
                let _turn = turn;
                work.await
            });
            working.await
        });
        match done.await {
            Ok(Ok(Ok(value))) => Ok(value),
            Ok(Ok(Err(error))) => Err(unavailable().with_detail(error.to_string())),
            _ => Err(unavailable()),
        }
    }
}
