//! The stored ledger: rows of calls, the settled sum of each balance, and leases.
//!
//! `balance = granted − settled`; leases are reserved from it. Each change of a balance or a lease first raises the
//! balance's `version`. So processes take turns per organization, and they lock organizations in the order of their
//! ids.

mod leases;
mod post;
mod rows;
mod spent;
mod usage;

use std::time::Duration;

use filters::money::Usd;
use sqlx::any::AnyRow;
use sqlx::pool::PoolConnection;
use sqlx::{Any, AnyConnection, Row};
use tokio::time::error::Elapsed;

pub use leases::{CHANNEL, LeaseChange, LeaseGrant};
pub use spent::SpentRow;
pub use usage::{By, Usage};

use super::{Store, StoreError};

/// The time limit of one change.
const QUERY_TIMEOUT: Duration = Duration::from_secs(8);
/// The maximum number of rows in one deletion, because other writes wait for it.
const MAX_DELETED_ROWS: i64 = 2000;

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
        read_account(&mut connection, organization_id).await
    }

    /// Deletes some rows of calls that ended before `before_ms`. Returns whether there may be more. Balances and the
    /// spending of keys still include them.
    pub async fn delete_old_calls(&self, before_ms: i64) -> Result<bool, StoreError> {
        let sql = "DELETE FROM ledger WHERE id IN \
                   (SELECT id FROM ledger WHERE at < $1 ORDER BY at LIMIT $2)";
        let query = sqlx::query(sql).bind(before_ms).bind(MAX_DELETED_ROWS);
        let done = query.execute(&self.pool).await?;
        Ok(done.rows_affected() == MAX_DELETED_ROWS.unsigned_abs())
    }
}

/// Reads the credit of an organization. In a transaction that locked the balance, it does not change meanwhile.
async fn read_account(
    connection: &mut AnyConnection,
    organization_id: &str,
) -> Result<StoreAccount, StoreError> {
    let sql = "SELECT amount FROM credit_grants WHERE organization_id = $1";
    let granted = sum(&mut *connection, sql, organization_id).await?;
    let sql = "SELECT amount FROM leases WHERE organization_id = $1";
    let leased = sum(&mut *connection, sql, organization_id).await?;
    let sql = "SELECT settled, shortfall FROM balances WHERE organization_id = $1";
    let row = sqlx::query(sql)
        .bind(organization_id)
        .fetch_optional(&mut *connection)
        .await?;
    let (settled, shortfall) = match row {
        None => (Usd::ZERO, Usd::ZERO),
        Some(row) => (usd(&row, "settled")?, usd(&row, "shortfall")?),
    };
    Ok(StoreAccount {
        granted,
        settled,
        shortfall,
        leased,
    })
}

async fn sum(
    connection: &mut AnyConnection,
    sql: &'static str,
    organization_id: &str,
) -> Result<Usd, StoreError> {
    let rows = sqlx::query(sql).bind(organization_id).fetch_all(connection);
    let rows = rows.await?;
    rows.iter()
        .try_fold(Usd::ZERO, |sum, row| Ok(sum.plus(usd(row, "amount")?)))
}

/// Locks a balance and its leases against other changes.
async fn lock_balance(change: &mut AnyConnection, organization_id: &str) -> Result<(), StoreError> {
    let sql = "INSERT INTO balances (organization_id, version, settled, shortfall) \
               VALUES ($1, 1, '0', '0') \
               ON CONFLICT (organization_id) DO UPDATE SET version = balances.version + 1";
    sqlx::query(sql)
        .bind(organization_id)
        .execute(&mut *change)
        .await?;
    Ok(())
}

/// Returns a connection to the pool after a successful change, and closes it after a failed one.
///
/// A failed commit can leave its transaction open. The next change on that connection would be part of it: confirmed,
/// but lost with the process. Seen on a full disk with SQLite.
fn finish<T>(
    connection: PoolConnection<Any>,
    done: Result<Result<T, StoreError>, Elapsed>,
) -> Result<T, StoreError> {
    let done = done.unwrap_or(Err(StoreError::TimedOut));
    if done.is_err() {
        drop(connection.detach());
    }
    done
}

/// Reads an amount from its column.
fn usd(row: &AnyRow, column: &'static str) -> Result<Usd, StoreError> {
    let text: String = row.try_get(column)?;
    Usd::parse_signed(&text).map_err(|_| StoreError::Damaged(column))
}

/// Splits a cost into two integers: units of 1e-9 USD, and the rest in 1e-18 USD. The first holds nine billion dollars.
fn split_cost(usd: Usd) -> (i64, i64) {
    const NANO: i128 = 1_000_000_000;
    let nano = i64::try_from(usd.units().div_euclid(NANO)).unwrap_or(i64::MAX);
    let rest = i64::try_from(usd.units().rem_euclid(NANO)).unwrap_or_default();
    (nano, rest)
}

/// Joins the two integers of a cost, or the sums of many.
fn join_cost(nano: i64, rest: i64) -> Usd {
    Usd::from_units(i128::from(nano) * 1_000_000_000 + i128::from(rest))
}
