//! Drops the accounts of organizations that no longer call.
//!
//! An idle account first gives its lease back to the store. Its next call makes it anew: it takes a lease, and reads what
//! its keys have spent if they have limits.

use std::sync::{Arc, PoisonError};
use std::time::Duration;

use super::Ledger;
use super::account::OrganizationAccount;

/// The interval between two looks for idle accounts.
const INTERVAL: Duration = Duration::from_secs(60);
/// After this time without a call an account is dropped.
const ACCOUNT_IDLE_TIMEOUT: Duration = Duration::from_secs(900);

impl Ledger {
    /// Drops idle accounts at intervals. Runs until it is dropped.
    pub(super) async fn run_idle_accounts(self: Arc<Self>) {
        loop {
            tokio::time::sleep(INTERVAL).await;
            // While the store fails, leases stay here and serve calls without it.
            if !self.is_failing() {
                self.drop_idle_budgets(ACCOUNT_IDLE_TIMEOUT).await;
                self.drop_idle_accounts(ACCOUNT_IDLE_TIMEOUT).await;
            }
        }
    }

    /// Gives the leases of idle accounts back, and drops those accounts. One that a call or a change of its lease uses
    /// stays.
    pub(super) async fn drop_idle_accounts(&self, idle: Duration) {
        self.return_idle_leases(idle).await;
        let mut accounts = self
            .accounts
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        // No task gets an account while the map is locked, so one without other owners keeps none.
        accounts.retain(|_, account| {
            Arc::strong_count(account) > 1 || account.is_active(idle) || !is_empty(account)
        });
        if accounts.capacity() > 4 * accounts.len() {
            accounts.shrink_to_fit();
        }
    }
}

/// Returns whether an account holds nothing that the store does not have.
fn is_empty(account: &OrganizationAccount) -> bool {
    let has_pending_change = match account.lease_state.try_lock() {
        Ok(state) => state.is_pending(),
        Err(_) => true,
    };
    !has_pending_change && account.holds_nothing()
}
