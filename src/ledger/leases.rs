//! Leases at work: asking the store for more of a balance, and giving back what others need.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use filters::money::Usd;
use sqlx::postgres::PgListener;

use super::Ledger;
use super::account::{LOOK_BACK_MS, OrganizationAccount};
use crate::store;
use crate::store::ledger::{LeaseChange, LeaseGrant};

/// Others have so long to give back what they do not need.
const RETURN_TIMEOUT: Duration = Duration::from_millis(100);
/// Between two looks whether they have.
const LOOK: Duration = Duration::from_millis(10);
/// How long the store may take for one answer.
const STORE: Duration = Duration::from_secs(4);
/// Between two tries to listen.
const LISTEN_AGAIN: Duration = Duration::from_millis(500);

/// The changes of one lease, one after the other.
#[derive(Default)]
pub struct LeaseState {
    /// The number of the last.
    number: i64,
    /// That one, as long as it is not known to have happened.
    open: Option<LeaseChange>,
}

impl LeaseState {
    fn next(&mut self, wanted: LeaseChange) {
        self.number += 1;
        self.open = Some(wanted);
    }
}

impl Ledger {
    /// Asks the store for as much of a balance as is missing; answers whether it lent that.
    ///
    /// Runs on the runtime of the store. Errors: the store does not answer.
    pub(super) async fn borrow(
        self: &Arc<Self>,
        account: &Arc<OrganizationAccount>,
        need: Usd,
    ) -> Result<bool, ()> {
        let (ledger, account) = (Arc::clone(self), Arc::clone(account));
        // A lease that comes too late for this request is there for the next: the task goes on.
        let asking = self
            .organs
            .spawn(async move { ledger.ask(&account, need).await });
        match tokio::time::timeout(STORE, asking).await {
            Ok(Ok(Ok(lent))) => Ok(lent),
            Ok(Ok(Err(error))) => {
                log::warn!("credit could not be asked for: {error}");
                Err(())
            }
            _ => Err(()),
        }
    }

    async fn ask(
        &self,
        account: &OrganizationAccount,
        need: Usd,
    ) -> Result<bool, store::StoreError> {
        let organization = &account.organization_id;
        let began = tokio::time::Instant::now();
        let mut has_asked = false;
        loop {
            // What others gave back may cover it meanwhile, together with what has become free here.
            let missing = need.minus(account.balance().free());
            if missing <= Usd::ZERO {
                return Ok(true);
            }
            let Some(taken) = self.change(account, LeaseChange::Take(missing)).await? else {
                if began.elapsed() >= STORE {
                    return Err(store::StoreError::Silent);
                }
                // The background makes this process known again.
                tokio::time::sleep(LOOK).await;
                continue;
            };
            if taken.amount > Usd::ZERO {
                return Ok(true);
            }
            let may_come = self.is_shared && taken.others > Usd::ZERO;
            if !may_come || began.elapsed() >= RETURN_TIMEOUT {
                return Ok(false);
            }
            if !has_asked {
                self.store.ask_back(organization, &self.owner).await?;
                has_asked = true;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Reads what an organization's keys have spent. Runs on the runtime of the store.
    pub(super) async fn load(
        self: &Arc<Self>,
        account: &Arc<OrganizationAccount>,
    ) -> Result<(), ()> {
        let (ledger, account) = (Arc::clone(self), Arc::clone(account));
        let loading = self.organs.spawn(async move {
            let loaded = ledger.read_spent(&account);
            tokio::time::timeout(STORE, loaded).await
        });
        match loading.await {
            Ok(Ok(Ok(()))) => Ok(()),
            _ => Err(()),
        }
    }

    /// Reads what all processes have stored, and adds what this one has not.
    pub(super) async fn read_spent(
        &self,
        account: &OrganizationAccount,
    ) -> Result<(), store::StoreError> {
        let organization = &*account.organization_id;
        let since_ms = self.now_ms() - LOOK_BACK_MS;
        // What is on its way to the store would be found in neither, and not count.
        let _none_on_its_way = self.storing.lock().await;
        let rows = self.store.spent(organization, since_ms).await?;
        // What takes long of looking is done before the account has to wait for it.
        self.journal.look(|_| {});
        account.load(&rows, |see| self.journal.look(see));
        Ok(())
    }

    /// Takes the next lease while there is still something left of this one.
    pub(super) fn top_up(self: &Arc<Self>, account: &Arc<OrganizationAccount>, need: Usd) {
        if !self.is_shared || !account.is_low() {
            return;
        }
        let (ledger, account) = (Arc::clone(self), Arc::clone(account));
        self.organs.spawn(async move {
            let Ok(_turn) = account.asking.try_lock() else {
                return;
            };
            if !account.is_low() {
                return;
            }
            if let Ok(Some(taken)) = ledger.change(&account, LeaseChange::Take(need)).await
                && taken.amount == Usd::ZERO
            {
                // Nothing more to have: it is not tried again before the next ask.
                account.lend(Usd::ZERO);
            }
        });
    }

    /// Gives back what is free of a lease.
    pub(super) async fn give_back(&self, account: &OrganizationAccount) {
        // Where its lease is being changed, the organization is short here too.
        let Ok(mut turns) = account.turns.try_lock() else {
            return;
        };
        if turns.open.is_none() {
            let amount = account.take_free();
            if amount == Usd::ZERO {
                return;
            }
            turns.next(LeaseChange::Give(amount));
        }
        if let Err(error) = self.catch_up(account, &mut turns).await {
            log::warn!("a lease could not be given back: {error}");
        }
    }

    /// Changes a lease, in the store and here; answers nothing where the store does not know this process any more.
    async fn change(
        &self,
        account: &OrganizationAccount,
        wanted: LeaseChange,
    ) -> Result<Option<LeaseGrant>, store::StoreError> {
        let mut turns = account.turns.lock().await;
        if turns.open.is_some() {
            self.catch_up(account, &mut turns).await?;
        }
        turns.next(wanted);
        self.catch_up(account, &mut turns).await
    }

    /// Makes the open change. One whose answer is lost stays open, and is made again before any other.
    async fn catch_up(
        &self,
        account: &OrganizationAccount,
        turns: &mut LeaseState,
    ) -> Result<Option<LeaseGrant>, store::StoreError> {
        let Some(wanted) = turns.open else {
            return Ok(None);
        };
        let organization = &account.organization_id;
        let changing = self
            .store
            .change_lease(organization, &self.owner, turns.number, wanted);
        let taken = changing.await?;
        turns.open = None;
        match taken {
            Some(taken) if taken.amount > Usd::ZERO => account.lend(taken.amount),
            Some(_) => {}
            None => self.is_unknown.store(true, Ordering::Relaxed),
        }
        Ok(taken)
    }

    /// Forgets all leases, here and in the store, and makes this process known again.
    pub(super) async fn begin_anew(&self) -> Result<(), store::StoreError> {
        log::warn!("this process was silent for so long that its leases were given to others");
        for account in self.accounts() {
            account.turns.lock().await.open = None;
            account.lose();
        }
        self.store.begin_process(&self.owner).await?;
        self.is_unknown.store(false, Ordering::Relaxed);
        Ok(())
    }

    /// Listens for other processes that are short, as long as it is polled.
    pub(super) async fn listen(self: Arc<Self>, url: String) {
        loop {
            if let Err(error) = self.hear(&url).await {
                log::debug!("the other processes cannot be heard: {error}");
            }
            tokio::time::sleep(LISTEN_AGAIN).await;
        }
    }

    async fn hear(&self, url: &str) -> Result<(), sqlx::Error> {
        let mut listener = PgListener::connect(url).await?;
        listener.listen(store::ledger::CHANNEL).await?;
        loop {
            let said = listener.recv().await?;
            let Some((owner, organization)) = said.payload().split_once(' ') else {
                continue;
            };
            if owner != self.owner
                && let Some(account) = self.find(organization)
            {
                self.give_back(&account).await;
            }
        }
    }
}
