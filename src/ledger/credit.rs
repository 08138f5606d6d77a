//! What an organization's credit comes to, for answers about it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::time::timeout;

use super::Ledger;
use super::leases::STORE_TIMEOUT;
use super::reservation::ReservationError;
use crate::store::Credit;

/// The maximum age of an answer that is given again, so that requests cannot make the store work.
const MAX_CREDIT_AGE: Duration = Duration::from_secs(1);

impl Ledger {
    /// Returns the credit of an organization, at most a second old; what calls cost gets there within another second.
    ///
    /// Errors: it was never read, and the store does not respond.
    pub async fn credit(
        self: &Arc<Self>,
        organization_id: &Arc<str>,
    ) -> Result<Credit, ReservationError> {
        let account = self.account(organization_id);
        let known = account.known_credit();
        if let Some((read_at, credit)) = known
            && read_at.elapsed() < MAX_CREDIT_AGE
        {
            return Ok(credit);
        }
        match self.read_credit(organization_id).await {
            Some(credit) => {
                account.set_known_credit((Instant::now(), credit));
                Ok(credit)
            }
            None => match known {
                Some((_, credit)) => Ok(credit),
                None => Err(ReservationError::Unavailable),
            },
        }
    }

    async fn read_credit(self: &Arc<Self>, organization_id: &Arc<str>) -> Option<Credit> {
        if !self.is_attached() {
            return None;
        }
        let (ledger, id) = (Arc::clone(self), Arc::clone(organization_id));
        let read = self.runtime.spawn(async move {
            let read = ledger.store.credit_of(&id);
            timeout(STORE_TIMEOUT, read).await
        });
        read.await.ok()?.ok()?.ok()
    }
}
