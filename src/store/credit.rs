//! Platform credit as it was given.

use filters::money::Usd;

use super::{Store, StoreError, new_id, organizations};

/// The credit of an organization.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Credit {
    /// All that was ever given.
    pub granted: Usd,
    /// What calls have taken.
    pub used: Usd,
    /// What is held back: leases of running servers, open reservations among them.
    pub reserved: Usd,
}

impl Credit {
    /// What is left of what was given. What is held back is still in it.
    pub fn balance(&self) -> Usd {
        self.granted.minus(self.used)
    }
}

impl Store {
    /// Gives credit to an organization; answers the grant's id.
    ///
    /// Errors: [`StoreError::Absent`] or [`StoreError::Closed`].
    pub async fn add_credit(
        &self,
        organization: &str,
        amount: Usd,
        now_ms: i64,
    ) -> Result<String, StoreError> {
        let mut change = self.change().await?;
        let organization = organizations::active(&mut change, organization).await?;
        let id = new_id("grant");
        let sql = "INSERT INTO credit_grants (id, organization_id, amount, created_at) \
                   VALUES ($1, $2, $3, $4)";
        sqlx::query(sql)
            .bind(&id)
            .bind(organization.id)
            .bind(amount.to_string())
            .bind(now_ms)
            .execute(&mut *change)
            .await?;
        change.commit().await?;
        Ok(id)
    }

    /// The credit of an organization. Errors: [`StoreError::Absent`].
    pub async fn credit(&self, organization: &str) -> Result<Credit, StoreError> {
        let id = self.organization(organization).await?.id;
        let account = self.account(&id).await?;
        Ok(Credit {
            granted: account.granted,
            used: account.settled,
            reserved: account.leased,
        })
    }
}
