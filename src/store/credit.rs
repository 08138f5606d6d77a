//! Credit that the platform granted.

use filters::audit::{AuditKind, Verb};
use filters::money::Usd;

use super::ledger::{lock_credit, sum_grants};
use super::{
    AccountChange, AccountEditor, Changed, Noted, Store, StoreError, new_id, organizations,
};

/// The credit of an organization.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Credit {
    /// The sum of all grants, less what was taken back.
    pub granted: Usd,
    /// The sum charged for calls.
    pub used: Usd,
    /// The sum of leases of running servers, including open reservations.
    pub reserved: Usd,
}

impl Credit {
    /// Returns the granted minus the used credit. Leases are part of it.
    pub fn balance(&self) -> Usd {
        self.granted.minus(self.used)
    }
}

impl Store {
    /// Returns the credit of an organization. Errors: [`StoreError::NotFound`].
    pub async fn credit(&self, organization: &str) -> Result<Credit, StoreError> {
        let id = self.organization(organization).await?.id;
        self.credit_of(&id).await
    }

    /// Returns the credit of the organization with this id.
    pub async fn credit_of(&self, organization_id: &str) -> Result<Credit, StoreError> {
        let account = self.account(organization_id).await?;
        Ok(Credit {
            granted: account.granted,
            used: account.settled,
            reserved: account.leased,
        })
    }
}

impl AccountEditor<'_> {
    /// Grants credit to an organization. Returns the grant's id.
    ///
    /// Errors: [`StoreError::NotFound`] or [`StoreError::Inactive`].
    pub async fn add_credit(
        self,
        organization: &str,
        amount: Usd,
        now_ms: i64,
    ) -> Result<String, StoreError> {
        let mut change = self.change().await?;
        let organization = organizations::active(&mut change, organization).await?;
        grant(change, &organization.id, amount, now_ms).await
    }

    /// Takes credit back that is neither used nor held back by a server. Returns the id of the grant, whose amount is negative.
    ///
    /// Servers first give back what they have leased and do not use. Errors: [`StoreError::NotFound`],
    /// [`StoreError::BeyondFree`].
    pub async fn take_credit(
        self,
        organization: &str,
        amount: Usd,
        now_ms: i64,
    ) -> Result<String, StoreError> {
        let id = self.organization(organization).await?.id;
        if self.account(&id).await?.free() < amount {
            self.return_leases(&id).await?;
        }
        let mut change = self.change().await?;
        let id = organizations::find(&mut change, organization).await?.id;
        let credit = lock_credit(&mut change, &id).await?;
        if amount > credit.free() {
            return Err(StoreError::BeyondFree {
                organization: organization.to_owned(),
                free: credit.free(),
                held: credit.leased,
            });
        }
        grant(change, &id, Usd::ZERO.minus(amount), now_ms).await
    }
}

/// Checks an amount that is given, or else taken. Errors: [`StoreError::NoAmount`].
pub fn check_amount(amount: Usd, is_given: bool) -> Result<(), StoreError> {
    match amount.is_zero() {
        true => Err(StoreError::NoAmount { is_given }),
        false => Ok(()),
    }
}

/// Writes a grant, or a negative one, and ends the change. Returns its id.
async fn grant(
    mut change: AccountChange,
    organization_id: &str,
    amount: Usd,
    now_ms: i64,
) -> Result<String, StoreError> {
    let id = new_id("grant");
    let sql = "INSERT INTO credit_grants (id, organization_id, amount, created_at) \
               VALUES ($1, $2, $3, $4)";
    sqlx::query(sql)
        .bind(&id)
        .bind(organization_id)
        .bind(amount.to_string())
        .bind(now_ms)
        .execute(&mut *change)
        .await?;
    sum_grants(&mut change, organization_id).await?;
    let verb = match amount < Usd::ZERO {
        true => Verb::Take,
        false => Verb::Add,
    };
    let noted = Noted::new(AuditKind::Credit, verb, &id);
    let changed = [Changed::Credit(organization_id)];
    change.commit(&changed, noted).await?;
    Ok(id)
}
