//! Leases: what a process holds back of a balance, to spend it without asking.

use filters::money::Usd;
use sqlx::{AnyConnection, Connection, Row};
use tokio::time::timeout;

use super::super::{Error, Store};
use super::{PATIENCE, hold, kept, read, usd};

/// After so long without a word a process counts as gone, and its leases with it.
pub const LEASE_TTL_MS: i64 = 30_000;
/// The channel on which processes ask each other. What is said: who asks, a space, the organization's id.
pub const CHANNEL: &str = "weirgate_leases";
/// Beside others a process takes this part of what is free at a time.
const SHARE: i128 = 4;

/// What came of asking for a lease.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Taken {
    /// What was added to it.
    pub amount: Usd,
    /// What others hold back, some of which they may not need.
    pub others: Usd,
}

impl Store {
    /// Makes a process known, before it takes its first lease.
    pub async fn begin_process(&self, owner: &str, now_ms: i64) -> Result<(), Error> {
        let sql = "INSERT INTO ledger_processes (owner, seen_at) VALUES ($1, $2) \
                   ON CONFLICT (owner) DO UPDATE SET seen_at = excluded.seen_at";
        let query = sqlx::query(sql).bind(owner).bind(now_ms);
        query.execute(&self.pool).await?;
        Ok(())
    }

    /// Says that a process lives; answers whether it was still known to.
    pub async fn confirm_process(&self, owner: &str, now_ms: i64) -> Result<bool, Error> {
        let sql = "UPDATE ledger_processes SET seen_at = $2 WHERE owner = $1";
        let query = sqlx::query(sql).bind(owner).bind(now_ms);
        let done = query.execute(&self.pool).await?;
        Ok(done.rows_affected() == 1)
    }

    /// Ends a process: its leases go back, and it is known no more.
    pub async fn end_process(&self, owner: &str) -> Result<(), Error> {
        let mut connection = self.pool.acquire().await?;
        let done = timeout(PATIENCE, end(&mut connection, owner)).await;
        kept(connection, done)
    }

    /// Takes more of a balance for a process: at least `need`, or nothing where there is not so much.
    ///
    /// Alone, it takes all there is: nobody else could use it. Leases of processes that are gone are free.
    pub async fn take_lease(
        &self,
        organization_id: &str,
        owner: &str,
        need: Usd,
        now_ms: i64,
    ) -> Result<Taken, Error> {
        let mut connection = self.pool.acquire().await?;
        let taking = take(&mut connection, organization_id, owner, need, now_ms);
        let done = timeout(PATIENCE, taking).await;
        kept(connection, done)
    }

    /// Gives a part of a lease back.
    pub async fn give_back(
        &self,
        organization_id: &str,
        owner: &str,
        amount: Usd,
    ) -> Result<(), Error> {
        let mut connection = self.pool.acquire().await?;
        let giving = give(&mut connection, organization_id, owner, amount);
        let done = timeout(PATIENCE, giving).await;
        kept(connection, done)
    }

    /// Asks the other processes on a PostgreSQL store to give back what they do not need of a balance.
    pub async fn ask_back(&self, organization_id: &str, owner: &str) -> Result<(), Error> {
        let sql = "SELECT CAST(pg_notify('weirgate_leases', $1) AS TEXT)";
        let query = sqlx::query(sql).bind(format!("{owner} {organization_id}"));
        query.execute(&self.pool).await?;
        Ok(())
    }
}

async fn end(connection: &mut AnyConnection, owner: &str) -> Result<(), Error> {
    let mut change = connection.begin().await?;
    for table in [
        "DELETE FROM ledger_processes WHERE owner = $1",
        "DELETE FROM leases WHERE owner = $1",
    ] {
        sqlx::query(table).bind(owner).execute(&mut *change).await?;
    }
    change.commit().await?;
    Ok(())
}

async fn take(
    connection: &mut AnyConnection,
    organization_id: &str,
    owner: &str,
    need: Usd,
    now_ms: i64,
) -> Result<Taken, Error> {
    let mut change = connection.begin().await?;
    hold(&mut change, organization_id).await?;
    expire(&mut change, now_ms).await?;
    let account = read(&mut change, organization_id).await?;
    let own = own(&mut change, organization_id, owner).await?;
    let others = account.leased.minus(own);
    let free = account.free();
    let mut taken = Taken {
        amount: Usd::ZERO,
        others,
    };
    if free >= need && free > Usd::ZERO {
        let is_alone = is_alone(&mut change, owner, now_ms).await?;
        let share = Usd::from_units(free.units() / SHARE);
        taken.amount = if is_alone { free } else { share.max(need) };
        let amount = own.plus(taken.amount);
        write(&mut change, organization_id, owner, amount).await?;
    }
    change.commit().await?;
    Ok(taken)
}

async fn give(
    connection: &mut AnyConnection,
    organization_id: &str,
    owner: &str,
    amount: Usd,
) -> Result<(), Error> {
    let mut change = connection.begin().await?;
    hold(&mut change, organization_id).await?;
    let own = own(&mut change, organization_id, owner).await?;
    let rest = own.minus(amount).max(Usd::ZERO);
    write(&mut change, organization_id, owner, rest).await?;
    change.commit().await?;
    Ok(())
}

/// What a process holds of a balance that is held.
pub(super) async fn own(
    change: &mut AnyConnection,
    organization_id: &str,
    owner: &str,
) -> Result<Usd, Error> {
    let sql = "SELECT amount FROM leases WHERE organization_id = $1 AND owner = $2";
    let row = sqlx::query(sql)
        .bind(organization_id)
        .bind(owner)
        .fetch_optional(&mut *change)
        .await?;
    row.map_or(Ok(Usd::ZERO), |row| usd(&row, "amount"))
}

/// Sets what a process holds.
pub(super) async fn write(
    change: &mut AnyConnection,
    organization_id: &str,
    owner: &str,
    amount: Usd,
) -> Result<(), Error> {
    let sql = "INSERT INTO leases (organization_id, owner, amount) VALUES ($1, $2, $3) \
               ON CONFLICT (organization_id, owner) DO UPDATE SET amount = excluded.amount";
    sqlx::query(sql)
        .bind(organization_id)
        .bind(owner)
        .bind(amount.to_string())
        .execute(&mut *change)
        .await?;
    Ok(())
}

/// Lets go what processes hold that have not been heard of.
///
/// Their row goes first: one that lives after all waits for it, and then learns that it has lost its leases.
async fn expire(change: &mut AnyConnection, now_ms: i64) -> Result<(), Error> {
    let sql = "DELETE FROM ledger_processes WHERE seen_at < $1 RETURNING owner";
    let gone = sqlx::query(sql)
        .bind(now_ms - LEASE_TTL_MS)
        .fetch_all(&mut *change)
        .await?;
    for row in gone {
        let owner: String = row.try_get("owner")?;
        let sql = "DELETE FROM leases WHERE owner = $1";
        sqlx::query(sql).bind(owner).execute(&mut *change).await?;
    }
    Ok(())
}

async fn is_alone(change: &mut AnyConnection, owner: &str, now_ms: i64) -> Result<bool, Error> {
    let sql = "SELECT COUNT(*) AS others FROM ledger_processes WHERE owner <> $1 AND seen_at >= $2";
    let row = sqlx::query(sql)
        .bind(owner)
        .bind(now_ms - LEASE_TTL_MS)
        .fetch_one(&mut *change)
        .await?;
    Ok(row.try_get::<i64, _>("others")? == 0)
}
