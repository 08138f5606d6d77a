//! Requests leases from the store and returns amounts that other processes need.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use filters::ledger::{LimitGrant, UnknownScope};
use filters::money::Usd;
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::Ledger;
use super::account::OrganizationAccount;
use crate::store;
use crate::store::StoreError;
use crate::store::ledger::{LeaseChange, LeaseGrant, LeaseGrants, LeaseRequest, LimitRequest};

/// How long other processes have to return what they do not need.
pub(super) const RETURN_TIMEOUT: Duration = Duration::from_millis(300);
/// The interval at which they are asked to: one whose own lease changes at that moment does not return any.
const ASK_INTERVAL: Duration = Duration::from_millis(60);
/// The interval between two checks whether they have.
pub(super) const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The time limit of one operation of the store.
pub(super) const STORE_TIMEOUT: Duration = Duration::from_secs(4);
/// The interval between two tries to listen.
const LISTEN_RETRY_INTERVAL: Duration = Duration::from_millis(500);
/// How long nothing is heard before the connection is checked.
const LISTEN_CHECK_INTERVAL: Duration = Duration::from_secs(10);

/// The maximum number of leases in one change of the store.
const MAX_CHANGES: usize = 1024;
/// The number of tasks that change leases. If one waits for a balance that another process has locked, the other goes on.
pub(super) const LEASE_TASKS: usize = 2;

/// The result of a change of a lease; `None` if the store does not know this process.
type ChangeResult = Result<Option<LeaseGrant>, Arc<StoreError>>;
/// The same of leases of limits.
type LimitResult = Result<Option<Vec<LimitGrant>>, Arc<StoreError>>;

/// Changes of leases that wait for the store, of each account at most one of credit and one of limits. Those that wait
/// are made together.
pub(super) struct LeaseQueue {
    sender: mpsc::UnboundedSender<QueuedChange>,
    receiver: tokio::sync::Mutex<mpsc::UnboundedReceiver<QueuedChange>>,
}

enum QueuedChange {
    Credit(LeaseRequest, oneshot::Sender<ChangeResult>),
    Limits(Vec<LimitRequest>, oneshot::Sender<LimitResult>),
}

impl Default for LeaseQueue {
    fn default() -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        let receiver = tokio::sync::Mutex::new(receiver);
        Self { sender, receiver }
    }
}

/// The changes of one lease, in order.
#[derive(Default)]
pub struct LeaseState {
    /// The number of the last change.
    number: i64,
    /// The last change, until the store has confirmed it.
    pending: Option<LeaseChange>,
}

impl LeaseState {
    fn begin_change(&mut self, number: i64, change: LeaseChange) {
        self.number = number;
        self.pending = Some(change);
    }

    /// Returns whether the store has not confirmed the last change.
    pub(super) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }
}

impl Ledger {
    /// Requests the missing part of `need` from the store. Returns whether the store granted it.
    ///
    /// Runs on the store's runtime. Errors: the store does not respond.
    pub(super) async fn request_lease(
        self: &Arc<Self>,
        account: &Arc<OrganizationAccount>,
        need: Usd,
    ) -> Result<bool, ()> {
        let (ledger, account) = (Arc::clone(self), Arc::clone(account));
        // The task goes on: a late lease serves the next request.
        let request = self
            .runtime
            .spawn(async move { ledger.acquire(&account, need).await });
        match timeout(STORE_TIMEOUT, request).await {
            Ok(Ok(Ok(is_granted))) => Ok(is_granted),
            Ok(Ok(Err(error))) => {
                log::warn!("credit could not be asked for: {error}");
                Err(())
            }
            _ => Err(()),
        }
    }

    async fn acquire(
        &self,
        account: &OrganizationAccount,
        need: Usd,
    ) -> Result<bool, Arc<StoreError>> {
        let organization = &account.organization_id;
        let started = tokio::time::Instant::now();
        // When the others were first asked to return what they do not need, and when last.
        let mut asked: Option<(tokio::time::Instant, tokio::time::Instant)> = None;
        loop {
            // The amounts that others returned may cover it meanwhile, together with amounts that became free here.
            let missing = need.minus(account.balance().free());
            if missing <= Usd::ZERO {
                return Ok(true);
            }
            let Some(grant) = self
                .change_lease(account, LeaseChange::Take(missing))
                .await?
            else {
                if started.elapsed() >= STORE_TIMEOUT {
                    return Err(StoreError::TimedOut.into());
                }
                // The next heartbeat registers this process again.
                tokio::time::sleep(POLL_INTERVAL).await;
                continue;
            };
            if grant.amount > Usd::ZERO {
                return Ok(true);
            }
            let may_be_returned = self.is_shared() && grant.others > Usd::ZERO;
            let is_late = asked.is_some_and(|(first, _)| first.elapsed() >= RETURN_TIMEOUT);
            if !may_be_returned || is_late {
                account.record_lack(missing);
                return Ok(false);
            }
            if asked.is_none_or(|(_, last)| last.elapsed() >= ASK_INTERVAL) {
                self.request_return(organization, None).await?;
                let now = tokio::time::Instant::now();
                asked = Some((asked.map_or(now, |(first, _)| first), now));
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Requests the next lease while some of this one is left.
    pub(super) fn top_up(self: &Arc<Self>, account: &Arc<OrganizationAccount>, need: Usd) {
        if !self.is_shared() || !account.is_low() {
            return;
        }
        let (ledger, account) = (Arc::clone(self), Arc::clone(account));
        self.runtime.spawn(async move {
            let Ok(_request) = account.request_lock.try_lock() else {
                return;
            };
            if !account.is_low() {
                return;
            }
            if let Ok(Some(grant)) = ledger.change_lease(&account, LeaseChange::Take(need)).await
                && grant.amount == Usd::ZERO
            {
                // The store has no more: do not try again before the next reservation that needs a lease.
                account.add_lease(Usd::ZERO);
            }
        });
    }

    /// Returns the free amount of a lease to the store.
    pub(super) async fn return_lease(&self, account: &OrganizationAccount) {
        // If the lease is being changed, this process needs credit too.
        let Ok(mut state) = account.lease_state.try_lock() else {
            return;
        };
        if state.pending.is_none() {
            let amount = account.take_free();
            if amount == Usd::ZERO {
                return;
            }
            state.begin_change(self.next_lease_number(), LeaseChange::Return(amount));
        }
        if let Err(error) = self.apply_pending(account, &mut state).await {
            log::warn!("a lease could not be given back: {error}");
        }
    }

    /// Changes a lease in the store and here. Returns `None` if the store no longer knows this process.
    async fn change_lease(
        &self,
        account: &OrganizationAccount,
        change: LeaseChange,
    ) -> ChangeResult {
        let mut state = account.lease_state.lock().await;
        if state.pending.is_some() {
            self.apply_pending(account, &mut state).await?;
        }
        state.begin_change(self.next_lease_number(), change);
        self.apply_pending(account, &mut state).await
    }

    pub(super) fn next_lease_number(&self) -> i64 {
        self.last_lease_number.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Applies the pending change. A change without a confirmation stays pending, and is repeated before any other.
    async fn apply_pending(
        &self,
        account: &OrganizationAccount,
        state: &mut LeaseState,
    ) -> ChangeResult {
        let Some(change) = state.pending else {
            return Ok(None);
        };
        let request = LeaseRequest {
            organization_id: account.organization_id.to_string(),
            number: state.number,
            change,
        };
        let (done, changed) = oneshot::channel();
        let queued = QueuedChange::Credit(request, done);
        _ = self.lease_changes.sender.send(queued);
        let grant = changed.await.unwrap_or(Err(StoreError::TimedOut.into()))?;
        state.pending = None;
        match grant {
            Some(grant) if grant.amount > Usd::ZERO => account.add_lease(grant.amount),
            Some(_) => {}
            None => self.is_unregistered.store(true, Ordering::Relaxed),
        }
        Ok(grant)
    }

    /// Changes leases of limits of one organization in the store. Returns `None` if the store no longer knows this process.
    pub(super) async fn change_limits(&self, requests: Vec<LimitRequest>) -> LimitResult {
        let (done, changed) = oneshot::channel();
        let queued = QueuedChange::Limits(requests, done);
        _ = self.lease_changes.sender.send(queued);
        let grants = changed.await.unwrap_or(Err(StoreError::TimedOut.into()))?;
        if grants.is_none() {
            self.is_unregistered.store(true, Ordering::Relaxed);
        }
        Ok(grants)
    }

    /// Makes the changes that wait, together. Runs until it is dropped.
    pub(super) async fn change_queued_leases(self: Arc<Self>) {
        loop {
            let mut queued = Vec::new();
            let mut receiver = self.lease_changes.receiver.lock().await;
            receiver.recv_many(&mut queued, MAX_CHANGES).await;
            drop(receiver);
            while !queued.is_empty() {
                let count = count_together(&queued);
                self.change_together(queued.drain(..count).collect()).await;
            }
        }
    }

    /// Makes changes together. Where the store refuses the rows of some organization, they are halved until that one is
    /// alone: it gets the error, and all others their leases.
    async fn change_together(&self, queued: Vec<QueuedChange>) {
        let mut parts = vec![queued];
        while let Some(mut part) = parts.pop() {
            let (mut credit, mut limits) = (Vec::new(), Vec::new());
            for change in &part {
                match change {
                    QueuedChange::Credit(request, _) => credit.push(request.clone()),
                    QueuedChange::Limits(requests, _) => limits.extend_from_slice(requests),
                }
            }
            let changed = self.store.change_leases(&self.owner, &credit, &limits);
            match changed.await {
                Err(error) if error.is_about_rows() && part.len() > 1 => {
                    let second = part.split_off(part.len() / 2);
                    parts.extend([second, part]);
                }
                changed => answer(part, changed.map_err(Arc::new)),
            }
        }
    }

    /// Returns the free amounts of the leases that were not used for this time.
    pub(super) async fn return_idle_leases(&self, idle: Duration) {
        let accounts = self.accounts();
        let idle = accounts.iter().filter(|account| !account.is_active(idle));
        let returned = idle.map(|account| async {
            self.return_lease(account).await;
            self.return_limits(account, account.held_limits()).await;
        });
        futures::future::join_all(returned).await;
    }

    /// Forgets all leases, here and in the store, and registers this process again.
    pub(super) async fn reset_leases(&self) -> Result<(), StoreError> {
        log::warn!("this process was silent for so long that its leases were given to others");
        let accounts = self.accounts();
        for account in &accounts {
            account.lease_state.lock().await.pending = None;
            account.revoke_lease();
        }
        for account in &accounts {
            let _change = account.limit_lock.lock().await;
            account.revoke_limits();
        }
        self.store.register_process(&self.owner).await?;
        self.is_unregistered.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Serves other processes that request amounts back. Runs until it is dropped.
    pub(super) async fn listen(self: Arc<Self>) {
        loop {
            if let Err(error) = self.receive_requests().await {
                log::debug!("the other processes cannot be heard: {error}");
            }
            tokio::time::sleep(LISTEN_RETRY_INTERVAL).await;
        }
    }

    async fn receive_requests(self: &Arc<Self>) -> Result<(), StoreError> {
        let mut listener = self.store.listen(store::ledger::CHANNEL).await?;
        loop {
            let Ok(received) = timeout(LISTEN_CHECK_INTERVAL, listener.recv()).await else {
                // A connection that died without a word is silent for ever.
                let check = sqlx::query("SELECT 1").execute(&mut listener);
                let checked = timeout(STORE_TIMEOUT, check).await;
                checked.map_err(|_| StoreError::TimedOut)??;
                continue;
            };
            self.hear(received?.payload());
        }
    }

    /// Returns what another process asks for, in the background. Shape: see [`store::ledger::CHANNEL`].
    pub(super) fn hear(self: &Arc<Self>, payload: &str) {
        // Names of budgets have spaces.
        let mut words = payload.splitn(3, ' ');
        let (Some(owner), Some(organization)) = (words.next(), words.next()) else {
            return;
        };
        let Some(account) = self
            .find_account(organization)
            .filter(|_| owner != self.owner)
        else {
            return;
        };
        let scope = words.next().map(str::parse);
        // Returns that are asked for together are made together.
        let ledger = Arc::clone(self);
        self.runtime.spawn(async move {
            match scope {
                None => ledger.return_lease(&account).await,
                Some(Ok(scope)) => ledger.return_limit(&account, scope).await,
                Some(Err(UnknownScope)) => {}
            }
        });
    }
}

/// Sends each task the results of the changes that it requested.
fn answer(queued: Vec<QueuedChange>, changed: Result<Option<LeaseGrants>, Arc<StoreError>>) {
    let is_known = matches!(changed, Ok(Some(_)));
    let none = changed.as_ref().map(|_| ()).map_err(Arc::clone);
    let grants = changed.ok().flatten().unwrap_or_default();
    let (mut credit, mut limits) = (grants.credit.into_iter(), grants.limits.into_iter());
    // A task that was dropped has no receiver. Its change of credit stays pending, and only the store knows its change of
    // limits until the next one.
    for change in queued {
        match change {
            QueuedChange::Credit(_, done) => {
                let grant = credit.next().filter(|_| is_known);
                _ = done.send(none.clone().map(|()| grant));
            }
            QueuedChange::Limits(requests, done) => {
                let of = is_known.then(|| limits.by_ref().take(requests.len()).collect());
                _ = done.send(none.clone().map(|()| of));
            }
        }
    }
}

/// Returns how many of these changes are made together: as many as change [`MAX_CHANGES`] leases, at least one.
fn count_together(queued: &[QueuedChange]) -> usize {
    let mut leases = 0;
    let fits = queued.iter().take_while(|change| {
        leases += match change {
            QueuedChange::Credit(..) => 1,
            QueuedChange::Limits(requests, _) => requests.len(),
        };
        leases <= MAX_CHANGES
    });
    fits.count().max(1)
}

#[cfg(test)]
#[path = "leases_tests.rs"]
mod tests;
