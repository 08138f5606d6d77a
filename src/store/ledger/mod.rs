//! Money at rest: the rows of the ledger, what was settled of each balance, and who holds leases.
//!
//! `balance = granted − settled`; leases are held back beside it. Every change of a balance or a lease raises the
//! balance's `version` first, so that processes take turns per organization, in the order of its id.

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

/// How long one change may take.
const PATIENCE: Duration = Duration::from_secs(8);
/// How many rows are deleted at once: others wait for it.
const FORGOTTEN_AT_ONCE: i64 = 2000;

/// What the store says of an organization's credit.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct StoreAccount {
    /// All that was ever given.
    pub granted: Usd,
    /// What calls have taken.
    pub settled: Usd,
    /// What calls cost beyond what there was.
    pub shortfall: Usd,
    /// What running processes hold back.
    pub leased: Usd,
}

impl StoreAccount {
    /// What nobody holds back; never below zero.
    pub fn free(&self) -> Usd {
        let free = self.granted.minus(self.settled).minus(self.leased);
        free.max(Usd::ZERO)
    }
}

impl Store {
    /// What the store says of an organization's credit.
    pub async fn account(&self, organization_id: &str) -> Result<StoreAccount, StoreError> {
        let mut connection = self.pool.acquire().await?;
        read(&mut connection, organization_id).await
    }

    /// Deletes some rows of calls that ended before; answers whether there may be more. Balances and what keys have
    /// spent keep what they cost.
    pub async fn delete_old_calls(&self, before_ms: i64) -> Result<bool, StoreError> {
        let sql = "DELETE FROM ledger WHERE id IN \
                   (SELECT id FROM ledger WHERE at < $1 ORDER BY at LIMIT $2)";
        let query = sqlx::query(sql).bind(before_ms).bind(FORGOTTEN_AT_ONCE);
        let done = query.execute(&self.pool).await?;
        Ok(done.rows_affected() == FORGOTTEN_AT_ONCE.unsigned_abs())
    }
}

/// Reads the credit of an organization. Inside a change that holds it, nothing moves meanwhile.
async fn read(
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

/// Makes others wait who would change this balance or a lease of it.
async fn hold(change: &mut AnyConnection, organization_id: &str) -> Result<(), StoreError> {
    let sql = "INSERT INTO balances (organization_id, version, settled, shortfall) \
               VALUES ($1, 1, '0', '0') \
               ON CONFLICT (organization_id) DO UPDATE SET version = balances.version + 1";
    sqlx::query(sql)
        .bind(organization_id)
        .execute(&mut *change)
        .await?;
    Ok(())
}

/// Gives a connection back whose change was made; one whose change was not is closed.
///
/// A commit that fails can leave its transaction open, and the next one on that connection would be a part of it: it
/// would be confirmed, and lost with the process. Seen on a full disk with SQLite.
fn kept<T>(
    connection: PoolConnection<Any>,
    done: Result<Result<T, StoreError>, Elapsed>,
) -> Result<T, StoreError> {
    let done = done.unwrap_or(Err(StoreError::Silent));
    if done.is_err() {
        drop(connection.detach());
    }
    done
}

/// An amount as it was written.
fn usd(row: &AnyRow, column: &'static str) -> Result<Usd, StoreError> {
    let text: String = row.try_get(column)?;
    Usd::parse_signed(&text).map_err(|_| StoreError::Damaged(column))
}

/// A cost as two integers: 1e-9 USD, and 1e-18 USD below that. The first holds nine billion dollars.
fn split(usd: Usd) -> (i64, i64) {
    const NANO: i128 = 1_000_000_000;
    let nano = i64::try_from(usd.units().div_euclid(NANO)).unwrap_or(i64::MAX);
    let rest = i64::try_from(usd.units().rem_euclid(NANO)).unwrap_or_default();
    (nano, rest)
}

/// The cost of two integers, or of the sums of many.
fn joined(nano: i64, rest: i64) -> Usd {
    Usd::from_units(i128::from(nano) * 1_000_000_000 + i128::from(rest))
}
