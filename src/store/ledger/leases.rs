//! Leases: parts of a balance that a process holds, so that it can spend without queries.

use filters::money::Usd;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};
use tokio::time::timeout;

use super::super::{Store, StoreError};
use super::{QUERY_TIMEOUT, finish, lock_balance, read_account, usd};

/// After this time without a refresh a process counts as dead, and its leases expire.
const LEASE_TTL_MS: i64 = 30_000;
/// The channel on which processes request amounts back. Payload: the requesting process, a space, the organization's
/// id.
pub const CHANNEL: &str = "weirgate_leases";
/// If several processes are registered, a process takes the free amount divided by this at a time.
const LEASE_DIVISOR: i128 = 4;

/// The result of a change of a lease.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LeaseGrant {
    /// The amount that was added.
    pub amount: Usd,
    /// The amount that other processes hold, some of which they may not need.
    pub others: Usd,
}

/// A change of a lease.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LeaseChange {
    /// Adds at least this amount, or nothing if less is free. A single process takes the whole free amount, because no
    /// other could use it.
    Take(Usd),
    /// Returns this amount.
    Return(Usd),
}

impl Store {
    /// Registers a process without leases, before it requests its first one.
    pub async fn register_process(&self, owner: &str) -> Result<(), StoreError> {
        let mut connection = self.pool.acquire().await?;
        let done = timeout(QUERY_TIMEOUT, register(&mut connection, owner)).await;
        finish(connection, done)
    }

    /// Refreshes the registration of a live process. Returns whether it was still registered.
    pub async fn refresh_process(&self, owner: &str) -> Result<bool, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let done = timeout(QUERY_TIMEOUT, refresh(&mut connection, owner)).await;
        finish(connection, done)
    }

    /// Removes a process and returns its leases.
    pub async fn unregister_process(&self, owner: &str) -> Result<(), StoreError> {
        let mut connection = self.pool.acquire().await?;
        let done = timeout(QUERY_TIMEOUT, unregister(&mut connection, owner)).await;
        finish(connection, done)
    }

    /// Changes the lease of a process. Leases of dead processes become free.
    ///
    /// `number` counts the changes of one lease. A change without a confirmation is repeated under its number and
    /// applied once. Returns `None` and changes nothing if the process is not registered, because it has lost its
    /// leases.
    pub async fn change_lease(
        &self,
        organization_id: &str,
        owner: &str,
        number: i64,
        change: LeaseChange,
    ) -> Result<Option<LeaseGrant>, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let changed = apply(&mut connection, organization_id, owner, (number, change));
        let done = timeout(QUERY_TIMEOUT, changed).await;
        finish(connection, done)
    }

    /// Requests the other processes on a PostgreSQL store to return amounts that they do not need.
    pub async fn request_return(
        &self,
        organization_id: &str,
        owner: &str,
    ) -> Result<(), StoreError> {
        let sql = "SELECT CAST(pg_notify($1, $2) AS TEXT)";
        let payload = format!("{owner} {organization_id}");
        let query = sqlx::query(sql).bind(CHANNEL).bind(payload);
        query.execute(&self.pool).await?;
        Ok(())
    }
}

/// Returns the SQL of the store's clock in unix milliseconds. The clocks of processes may differ.
fn clock_sql(connection: &AnyConnection) -> &'static str {
    match connection.backend_name() {
        "PostgreSQL" => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
        _ => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
    }
}

/// Refreshes the registration of a process. Returns whether it is registered. This function or [`lock_process`] comes
/// first in each change of a process's leases. So an expiry of its leases waits for the change, or the change notices
/// the expiry.
pub(super) async fn refresh(
    connection: &mut AnyConnection,
    owner: &str,
) -> Result<bool, StoreError> {
    let now = clock_sql(connection);
    let sql = format!("UPDATE ledger_processes SET seen_at = {now} WHERE owner = $1");
    let query = sqlx::query(AssertSqlSafe(sql)).bind(owner);
    let done = query.execute(connection).await?;
    Ok(done.rows_affected() == 1)
}

/// Locks the registration of a process until the end of the transaction. Returns whether it is registered. Leases of
/// several balances do not wait for each other, nor for calls that are being stored.
async fn lock_process(change: &mut AnyConnection, owner: &str) -> Result<bool, StoreError> {
    if change.backend_name() != "PostgreSQL" {
        return refresh(change, owner).await;
    }
    let sql = "SELECT 1 FROM ledger_processes WHERE owner = $1 FOR KEY SHARE";
    let found = sqlx::query(sql).bind(owner).fetch_optional(change).await?;
    Ok(found.is_some())
}

async fn register(connection: &mut AnyConnection, owner: &str) -> Result<(), StoreError> {
    let mut change = connection.begin().await?;
    let now = clock_sql(&change);
    let sql = format!(
        "INSERT INTO ledger_processes (owner, seen_at) VALUES ($1, {now}) \
         ON CONFLICT (owner) DO UPDATE SET seen_at = excluded.seen_at"
    );
    let query = sqlx::query(AssertSqlSafe(sql)).bind(owner);
    query.execute(&mut *change).await?;
    let sql = "DELETE FROM leases WHERE owner = $1";
    sqlx::query(sql).bind(owner).execute(&mut *change).await?;
    change.commit().await?;
    Ok(())
}

async fn unregister(connection: &mut AnyConnection, owner: &str) -> Result<(), StoreError> {
    let mut change = connection.begin().await?;
    for sql in [
        "DELETE FROM ledger_processes WHERE owner = $1",
        "DELETE FROM leases WHERE owner = $1",
    ] {
        sqlx::query(sql).bind(owner).execute(&mut *change).await?;
    }
    change.commit().await?;
    Ok(())
}

async fn apply(
    connection: &mut AnyConnection,
    organization_id: &str,
    owner: &str,
    (number, change): (i64, LeaseChange),
) -> Result<Option<LeaseGrant>, StoreError> {
    let mut transaction = connection.begin().await?;
    if !lock_process(&mut transaction, owner).await? {
        transaction.rollback().await?;
        return Ok(None);
    }
    expire_processes(&mut transaction, owner).await?;
    lock_balance(&mut transaction, organization_id).await?;
    let account = read_account(&mut transaction, organization_id).await?;
    let lease = read_lease(&mut transaction, organization_id, owner).await?;
    let mut grant = LeaseGrant {
        amount: lease.last_grant,
        others: account.leased.minus(lease.amount),
    };
    if lease.change_number != number {
        let amount = match change {
            LeaseChange::Take(need) => {
                grant.amount = lease_amount(&mut transaction, account.free(), need).await?;
                lease.amount.plus(grant.amount)
            }
            LeaseChange::Return(amount) => {
                grant.amount = Usd::ZERO;
                lease.amount.minus(amount).max(Usd::ZERO)
            }
        };
        let sql = "INSERT INTO leases (organization_id, owner, amount, turn, taken) \
                   VALUES ($1, $2, $3, $4, $5) ON CONFLICT (organization_id, owner) DO UPDATE \
                   SET amount = excluded.amount, turn = excluded.turn, taken = excluded.taken";
        sqlx::query(sql)
            .bind(organization_id)
            .bind(owner)
            .bind(amount.to_string())
            .bind(number)
            .bind(grant.amount.to_string())
            .execute(&mut *transaction)
            .await?;
    }
    transaction.commit().await?;
    Ok(Some(grant))
}

/// Returns how much of the free amount a process gets that needs `need`.
async fn lease_amount(change: &mut AnyConnection, free: Usd, need: Usd) -> Result<Usd, StoreError> {
    if free < need || free == Usd::ZERO {
        return Ok(Usd::ZERO);
    }
    let sql = "SELECT COUNT(*) FROM ledger_processes";
    let processes: i64 = sqlx::query_scalar(sql).fetch_one(change).await?;
    let share = Usd::from_units(free.units() / LEASE_DIVISOR);
    Ok(if processes == 1 {
        free
    } else {
        share.max(need)
    })
}

/// The lease of a process.
#[derive(Default)]
pub(super) struct Lease {
    /// The amount.
    pub amount: Usd,
    /// The number of the last change, and the amount that it added.
    change_number: i64,
    last_grant: Usd,
}

/// Reads the lease of a process. The balance is locked.
pub(super) async fn read_lease(
    change: &mut AnyConnection,
    organization_id: &str,
    owner: &str,
) -> Result<Lease, StoreError> {
    let sql = "SELECT amount, turn, taken FROM leases WHERE organization_id = $1 AND owner = $2";
    let row = sqlx::query(sql)
        .bind(organization_id)
        .bind(owner)
        .fetch_optional(&mut *change)
        .await?;
    row.map_or(Ok(Lease::default()), |row| {
        Ok(Lease {
            amount: usd(&row, "amount")?,
            change_number: row.try_get("turn")?,
            last_grant: usd(&row, "taken")?,
        })
    })
}

/// Writes the remaining amount of a lease.
pub(super) async fn write_lease(
    change: &mut AnyConnection,
    organization_id: &str,
    owner: &str,
    amount: Usd,
) -> Result<(), StoreError> {
    let sql = "UPDATE leases SET amount = $3 WHERE organization_id = $1 AND owner = $2";
    sqlx::query(sql)
        .bind(organization_id)
        .bind(owner)
        .bind(amount.to_string())
        .execute(&mut *change)
        .await?;
    Ok(())
}

/// Expires the leases of other processes that did not refresh their registration.
///
/// Their registration is deleted first. A process that is alive after all waits for it and then learns that it has lost
/// its leases.
async fn expire_processes(change: &mut AnyConnection, owner: &str) -> Result<(), StoreError> {
    let now = clock_sql(change);
    let sql = format!(
        "DELETE FROM ledger_processes WHERE owner <> $1 AND seen_at < {now} - $2 RETURNING owner"
    );
    let expired = sqlx::query(AssertSqlSafe(sql))
        .bind(owner)
        .bind(LEASE_TTL_MS)
        .fetch_all(&mut *change)
        .await?;
    for row in expired {
        let owner: String = row.try_get("owner")?;
        let sql = "DELETE FROM leases WHERE owner = $1";
        sqlx::query(sql).bind(owner).execute(&mut *change).await?;
    }
    Ok(())
}
