//! The stored ledger: rows of calls, the settled sum of each balance, and leases.
//!
//! `balance = granted − settled`; leases are reserved from it. Each change of a balance or a lease first raises the
//! balance's `version`. So processes take turns per organization, and they lock organizations in the order of their
//! ids. Changes are made for many organizations at once, each in a few statements over [`rows`].

mod calls;
mod counters;
mod days;
mod deleted;
mod hour_tables;
mod hours;
pub(super) mod jobs;
mod journals;
mod leases;
mod limit_uses;
mod limits;
mod model_callers;
mod named_hours;
mod post;
mod provider_days;
mod sessions;
mod spending;
mod spent;
mod spent_past;
mod usage;
mod usage_hours;
mod variations;
mod video_jobs;

use std::collections::HashMap;
use std::time::Duration;

use filters::money::Usd;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};
use tokio::time::error::Elapsed;
use tokio::time::timeout;

pub use calls::OldCalls;
pub(super) use deleted::{delete_all, lock_credit};
pub use jobs::{DueJobs, JobKind, StoredJob};
pub use journals::JournalOwner;
pub use leases::{CHANNEL, LeaseChange, LeaseGrant, LeaseGrants, LeaseRequest};
pub use limit_uses::{LimitHolder, NearLimit};
pub use limits::LimitRequest;
pub use model_callers::{MAX_CALLERS, ModelCaller, ModelCallers};
pub use post::MAX_ORGANIZATIONS;
pub use provider_days::ProviderDay;
pub use spending::{MAX_SPENDERS, SpendBy, SpendQuery, Spender, Spending, SpendingPeriod};
pub use spent::ScopeSpent;
pub use usage::{By, Usage};
pub use usage_hours::{AgentOrigin, PeriodUsage, UsagePart, UsageScope};
pub use variations::VariationUsage;
pub use video_jobs::VideoJobPage;

use super::connections::{Connected, Dialect};
use super::rows::{self, Rows};
use super::{Store, StoreError};

/// The time limit of one change.
const QUERY_TIMEOUT: Duration = Duration::from_secs(8);
/// Sums are kept by the hour.
const HOUR_MS: i64 = 3_600_000;

/// The stored credit of an organization.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct StoreAccount {
    /// The sum of all grants.
    pub granted: Usd,
    /// The sum charged for calls.
    pub settled: Usd,
    /// The sum of costs that credit did not cover.
    pub shortfall: Usd,
    /// The sum of leases of running processes.
    pub leased: Usd,
}

impl StoreAccount {
    /// Returns the amount that is neither settled nor leased, at least zero.
    pub fn free(&self) -> Usd {
        let free = self.granted.minus(self.settled).minus(self.leased);
        free.max(Usd::ZERO)
    }
}

impl Store {
    /// Returns the stored credit of an organization.
    pub async fn account(&self, organization_id: &str) -> Result<StoreAccount, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let ids = [organization_id];
        let read = read_accounts(connection.unlimited()?, &ids);
        let read = timeout(QUERY_TIMEOUT, read).await;
        let mut accounts = finish(connection, read)?;
        Ok(accounts.remove(organization_id).unwrap_or_default())
    }
}

/// Reads the credit of organizations. In a transaction that locked their balances, it does not change meanwhile.
async fn read_accounts(
    connection: &mut AnyConnection,
    organization_ids: &[&str],
) -> Result<HashMap<String, StoreAccount>, StoreError> {
    let sql = "WITH wanted AS (SELECT value ->> 0 AS wanted_id FROM {rows}) \
               SELECT organization_id, 'granted' AS part, amount FROM wanted \
               CROSS JOIN credit_grants WHERE organization_id = wanted_id AND is_summed = 0 UNION ALL \
               SELECT organization_id, 'granted' AS part, granted AS amount FROM wanted \
               CROSS JOIN balances WHERE organization_id = wanted_id UNION ALL \
               SELECT organization_id, 'leased' AS part, amount FROM wanted \
               CROSS JOIN leases WHERE organization_id = wanted_id UNION ALL \
               SELECT organization_id, 'settled' AS part, settled AS amount FROM wanted \
               CROSS JOIN balances WHERE organization_id = wanted_id UNION ALL \
               SELECT organization_id, 'shortfall' AS part, shortfall AS amount FROM wanted \
               CROSS JOIN balances WHERE organization_id = wanted_id";
    let ids = Rows::from_texts(connection, organization_ids.iter().copied())?;
    let mut accounts: HashMap<String, StoreAccount> = HashMap::new();
    for row in ids.query(sql).fetch_all(connection).await? {
        let account = accounts.entry(row.try_get("organization_id")?).or_default();
        let sum = match row.try_get::<&str, _>("part")? {
            "granted" => &mut account.granted,
            "leased" => &mut account.leased,
            "settled" => &mut account.settled,
            _ => &mut account.shortfall,
        };
        *sum = sum.plus(usd(&row, "amount")?);
    }
    Ok(accounts)
}

/// Adds the grants of an organization that are not in its sum to it, so that reading what was granted stays as cheap.
pub(super) async fn sum_grants(
    change: &mut Connected,
    organization_id: &str,
) -> Result<(), StoreError> {
    let summed = add_grants(change.unlimited()?, organization_id);
    let summed = timeout(QUERY_TIMEOUT, summed).await;
    summed.unwrap_or(Err(StoreError::TimedOut))
}

async fn add_grants(change: &mut AnyConnection, organization_id: &str) -> Result<(), StoreError> {
    lock_balances(change, &[organization_id]).await?;
    let sql = "UPDATE credit_grants SET is_summed = 1 \
               WHERE organization_id = $1 AND is_summed = 0 RETURNING amount";
    let grants = sqlx::query(sql).bind(organization_id.to_owned());
    let grants = grants.fetch_all(&mut *change).await?;
    let sql = "SELECT granted FROM balances WHERE organization_id = $1";
    let sum = sqlx::query(sql).bind(organization_id.to_owned());
    let mut sum = usd(&sum.fetch_one(&mut *change).await?, "granted")?;
    for grant in &grants {
        sum = sum.plus(usd(grant, "amount")?);
    }
    let sql = "UPDATE balances SET granted = $1 WHERE organization_id = $2";
    let query = sqlx::query(sql).bind(sum.to_string());
    let query = query.bind(organization_id.to_owned());
    query.execute(change).await?;
    Ok(())
}

/// Locks balances and their leases against other changes. Returns what was settled and the shortfall of each. The ids
/// are in order, so that of two processes none waits for another that waits for it.
async fn lock_balances(
    change: &mut AnyConnection,
    organization_ids: &[&str],
) -> Result<HashMap<String, (Usd, Usd)>, StoreError> {
    let sql = "INSERT INTO balances (organization_id, version, settled, shortfall) \
               SELECT value ->> 0, 1, '0', '0' FROM {rows} WHERE 1 = 1 \
               ON CONFLICT (organization_id) DO UPDATE SET version = balances.version + 1 \
               RETURNING organization_id, settled, shortfall";
    let ids = Rows::from_texts(change, organization_ids.iter().copied())?;
    let locked = ids.query(sql).fetch_all(change).await?;
    let read = |row: &AnyRow| {
        let sums = (usd(row, "settled")?, usd(row, "shortfall")?);
        Ok((row.try_get("organization_id")?, sums))
    };
    locked.iter().map(read).collect()
}

/// Gives a connection back after a successful change, and closes it after one that failed or took too long.
fn finish<T>(
    connection: Connected,
    done: Result<Result<T, StoreError>, Elapsed>,
) -> Result<T, StoreError> {
    connection.finish(done.unwrap_or(Err(StoreError::TimedOut)))
}

/// Reads an amount from its column.
fn usd(row: &AnyRow, column: &'static str) -> Result<Usd, StoreError> {
    let text: String = row.try_get(column)?;
    Usd::parse_signed(&text).map_err(|_| StoreError::Damaged(column))
}

/// Splits a cost into two integers: units of 1e-9 USD, and the rest in 1e-18 USD. The first holds nine million dollars,
/// more than a batch costs. A thousand times that fits into a sum, so that a false report of a provider overflows none.
fn split_cost(usd: Usd) -> (i64, i64) {
    const NANO: i128 = 1_000_000_000;
    const MAX_NANO: i128 = 1 << 53;
    let nano = usd.units().div_euclid(NANO).min(MAX_NANO);
    let rest = usd.units().rem_euclid(NANO);
    (
        i64::try_from(nano).unwrap_or_default(),
        i64::try_from(rest).unwrap_or_default(),
    )
}

/// Joins the two integers of a cost, or the sums of many.
pub(super) fn join_cost(nano: i64, rest: i64) -> Usd {
    Usd::from_units(i128::from(nano) * 1_000_000_000 + i128::from(rest))
}
