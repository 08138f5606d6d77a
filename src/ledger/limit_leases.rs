//! Requests leases of limits from the store, and returns what other processes need.

use std::sync::Arc;
use std::time::Instant;

use filters::ledger::{LimitGrant, LimitScope};
use filters::money::Usd;

use super::Ledger;
use super::account::{HoldError, OrganizationAccount};
use super::account_limits::{LimitedCall, WantedLimit};
use super::leases::{POLL_INTERVAL, RETURN_TIMEOUT, STORE_TIMEOUT};
use super::reservation::{NewReservation, Reservation, ReservationError};
use super::spent::is_spent_in;
use crate::store::StoreError;

/// The maximum number of leases that an account returns in one change.
const MAX_RETURNS: usize = 256;

/// What came of a request for more of a limit.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum RequestResult {
    Granted,
    /// Nothing is left, and nothing was returned in time.
    Lacking,
}

impl Ledger {
    /// Requests more of the call's limits from the store, or waits for the request of another task.
    ///
    /// Errors: a limit is reached; the store does not respond.
    pub(super) async fn wait_for_limits(
        self: &Arc<Self>,
        account: &Arc<OrganizationAccount>,
        call: &NewReservation<'_>,
        began: Instant,
    ) -> Result<Option<Reservation>, ReservationError> {
        let _request = account.request_lock.lock().await;
        match self.try_reserve(account, call) {
            Ok(reservation) => return Ok(Some(reservation)),
            Err(HoldError::Limit) => {}
            Err(_) => return Ok(None),
        }
        if account.has_limit_failure(began) {
            return Err(ReservationError::Unavailable);
        }
        if account.lacks_limits(&self.limited(call), began) {
            return self.refuse(account, call);
        }
        match self.request_limits(account, call).await {
            Ok(RequestResult::Granted) => {}
            // Calls that ended meanwhile may have left enough.
            Ok(RequestResult::Lacking) => {
                return match self.try_reserve(account, call) {
                    Ok(reservation) => Ok(Some(reservation)),
                    Err(HoldError::Limit) => self.refuse(account, call),
                    Err(_) => Ok(None),
                };
            }
            Err(()) => {
                account.record_limit_failure();
                return Err(ReservationError::Unavailable);
            }
        }
        // The call that asked comes first.
        Ok(self.try_reserve(account, call).ok())
    }

    /// Returns the refusal of a call for which nothing is left; `None` if something has come back.
    fn refuse(
        &self,
        account: &OrganizationAccount,
        call: &NewReservation<'_>,
    ) -> Result<Option<Reservation>, ReservationError> {
        match account.reached_limit(&self.limited(call)) {
            Some(reached) => Err(ReservationError::Reached(reached)),
            None => Ok(None),
        }
    }

    /// Runs on the store's runtime. Errors: the store does not respond.
    async fn request_limits(
        self: &Arc<Self>,
        account: &Arc<OrganizationAccount>,
        call: &NewReservation<'_>,
    ) -> Result<RequestResult, ()> {
        if !self.is_attached() {
            return Err(());
        }
        let missing = account.missing_limits(&self.limited(call));
        let (ledger, account, need) = (Arc::clone(self), Arc::clone(account), call.max_cost);
        // The task goes on: a late lease serves the next request.
        let request = self
            .runtime
            .spawn(async move { ledger.acquire_limits(&account, missing, need).await });
        match tokio::time::timeout(STORE_TIMEOUT, request).await {
            Ok(Ok(Ok(result))) => Ok(result),
            Ok(Ok(Err(error))) => {
                log::warn!("what is left of a limit could not be asked for: {error}");
                Err(())
            }
            _ => Err(()),
        }
    }

    /// Requests more of these limits, until the store grants it for each.
    async fn acquire_limits(
        &self,
        account: &OrganizationAccount,
        mut missing: Vec<WantedLimit>,
        need: Usd,
    ) -> Result<RequestResult, Arc<StoreError>> {
        let started = Instant::now();
        let mut notified: Option<Instant> = None;
        loop {
            let grants = self.renew_limits(account, &missing, need).await?;
            let Some(grants) = grants else {
                // The next heartbeat registers this process again.
                if started.elapsed() >= STORE_TIMEOUT {
                    return Err(StoreError::TimedOut.into());
                }
                tokio::time::sleep(POLL_INTERVAL).await;
                continue;
            };
            let others = grants.iter().map(|grant| grant.others);
            let lacking = missing.into_iter().zip(others);
            let lacking = lacking.filter(|(wanted, _)| !account.still_admits(wanted, need));
            let (lacking, others): (Vec<_>, Vec<_>) = lacking.unzip();
            missing = lacking;
            if missing.is_empty() {
                return Ok(RequestResult::Granted);
            }
            let may_be_returned = self.is_shared() && others.iter().all(|of| *of > Usd::ZERO);
            let is_late = notified.is_some_and(|notified| notified.elapsed() >= RETURN_TIMEOUT);
            if !may_be_returned || is_late {
                // One that died on the same file may hold something until its leases expire.
                let is_alone = !self.is_shared() && others.iter().all(|of| *of == Usd::ZERO);
                account.record_limit_lack(&missing, is_alone);
                return Ok(RequestResult::Lacking);
            }
            if notified.is_none() {
                self.request_limit_returns(account, &missing).await?;
                notified = Some(Instant::now());
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn request_limit_returns(
        &self,
        account: &OrganizationAccount,
        missing: &[WantedLimit],
    ) -> Result<(), StoreError> {
        for wanted in missing {
            let scope = wanted.scope.to_string();
            let organization = &account.organization_id;
            self.request_return(organization, Some(&scope)).await?;
        }
        Ok(())
    }

    /// Changes leases of limits. Returns `None` if the store no longer knows this process.
    async fn renew_limits(
        &self,
        account: &OrganizationAccount,
        wanted: &[WantedLimit],
        need: Usd,
    ) -> Result<Option<Vec<LimitGrant>>, Arc<StoreError>> {
        let started = Instant::now();
        while started.elapsed() < STORE_TIMEOUT {
            let turn = account.limit_lock.lock().await;
            let change = (self.next_lease_number(), self.now_ms());
            let is_waiting = |scope: &LimitScope| self.has_waiting_call(account, scope);
            if let Some(requests) = account.offer_limits(wanted, need, change, is_waiting) {
                let grants = self.change_limits(requests.clone()).await?;
                if let Some(grants) = &grants {
                    account.apply_limits(&requests, grants);
                }
                return Ok(grants);
            }
            drop(turn);
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Err(StoreError::TimedOut.into())
    }

    fn has_waiting_call(&self, account: &OrganizationAccount, scope: &LimitScope) -> bool {
        let mut is_waiting = false;
        self.journal.waiting().visit(|call| {
            is_waiting |=
                call.owner.organization_id == account.organization_id && is_spent_in(call, scope);
        });
        is_waiting
    }

    /// Requests more while some of the leases of a call's limits is left.
    pub(super) fn top_up_limits(
        self: &Arc<Self>,
        account: &Arc<OrganizationAccount>,
        call: &LimitedCall<'_>,
    ) {
        // A process that is alone has all there is.
        if !self.is_shared() || !call.needs_lease {
            return;
        }
        let low = account.low_limits(call);
        if low.is_empty() {
            return;
        }
        let (ledger, account, need) = (Arc::clone(self), Arc::clone(account), call.hold.amount);
        self.runtime.spawn(async move {
            let Ok(_request) = account.request_lock.try_lock() else {
                return;
            };
            // What fails here is asked for again by the call that finds nothing left.
            _ = ledger.renew_limits(&account, &low, need).await;
        });
    }

    /// Returns what is left of the limits of a scope.
    pub(super) async fn return_limit(&self, account: &OrganizationAccount, scope: LimitScope) {
        if account.holds_limit(&scope) {
            let wanted = WantedLimit { scope, terms: None };
            self.return_limits(account, vec![wanted]).await;
        }
    }

    /// Returns what is left of leases of limits.
    pub(super) async fn return_limits(
        &self,
        account: &OrganizationAccount,
        wanted: Vec<WantedLimit>,
    ) {
        for wanted in wanted.chunks(MAX_RETURNS) {
            if let Err(error) = self.renew_limits(account, wanted, Usd::ZERO).await {
                log::warn!("a lease of a limit could not be given back: {error}");
            }
        }
    }
}
