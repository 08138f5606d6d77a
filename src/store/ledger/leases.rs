//! Leases: what a process holds back of a balance, to spend it without asking.

use filters::money::Usd;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};
use tokio::time::timeout;

use super::super::{Store, StoreError};
use super::{PATIENCE, hold, kept, read, usd};

/// After so long without a word a process counts as gone, and its leases with it.
const LEASE_TTL_MS: i64 = 30_000;
/// The channel on which processes ask each other. What is said: who asks, a space, the organization's id.
pub const CHANNEL: &str = "weirgate_leases";
/// Beside others a process takes this part of what is free at a time.
const SHARE: i128 = 4;

/// What came of asking for a lease.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LeaseGrant {
    /// What was added to it.
    pub amount: Usd,
    /// What others hold back, some of which they may not need.
    pub others: Usd,
}

/// A change of what a process holds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum LeaseChange {
    /// At least so much more, or nothing where there is not so much. Alone, a process takes all there is: nobody
    /// else could use it.
    Take(Usd),
    /// So much goes back.
    Return(Usd),
}

impl Store {
    /// Makes a process known, which holds nothing then, before it takes its first lease.
    pub async fn register_process(&self, owner: &str) -> Result<(), StoreError> {
        let mut connection = self.pool.acquire().await?;
        let done = timeout(PATIENCE, begin(&mut connection, owner)).await;
        kept(connection, done)
    }

    /// Says that a process lives; answers whether it was still known to.
    pub async fn refresh_process(&self, owner: &str) -> Result<bool, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let done = timeout(PATIENCE, is_known(&mut connection, owner)).await;
        kept(connection, done)
    }

    /// Ends a process: its leases go back, and it is known no more.
    pub async fn unregister_process(&self, owner: &str) -> Result<(), StoreError> {
        let mut connection = self.pool.acquire().await?;
        let done = timeout(PATIENCE, end(&mut connection, owner)).await;
        kept(connection, done)
    }

    /// Changes what a process holds of a balance. Leases of processes that are gone are free.
    ///
    /// `turn` numbers the changes of one lease: one whose answer was lost is made again under its number, and happens
    /// once. Answers nothing, and changes nothing, where the process is not known: it has lost its leases.
    pub async fn change_lease(
        &self,
        organization_id: &str,
        owner: &str,
        turn: i64,
        wanted: LeaseChange,
    ) -> Result<Option<LeaseGrant>, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let changing = change(&mut connection, organization_id, owner, turn, wanted);
        let done = timeout(PATIENCE, changing).await;
        kept(connection, done)
    }

    /// Asks the other processes on a PostgreSQL store to give back what they do not need of a balance.
    pub async fn request_return(
        &self,
        organization_id: &str,
        owner: &str,
    ) -> Result<(), StoreError> {
        let sql = "SELECT CAST(pg_notify($1, $2) AS TEXT)";
        let said = format!("{owner} {organization_id}");
        let query = sqlx::query(sql).bind(CHANNEL).bind(said);
        query.execute(&self.pool).await?;
        Ok(())
    }
}

/// The store's clock in unix milliseconds: those of the processes need not agree.
fn clock(connection: &AnyConnection) -> &'static str {
    match connection.backend_name() {
        "PostgreSQL" => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
        _ => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
    }
}

/// Whether a process is known; says that it lives. It, or [`stays_known`], comes first in every change of what a
/// process holds: whoever takes its leases away waits for that change, or that change learns of it.
pub(super) async fn is_known(
    connection: &mut AnyConnection,
    owner: &str,
) -> Result<bool, StoreError> {
    let now = clock(connection);
    let sql = format!("UPDATE ledger_processes SET seen_at = {now} WHERE owner = $1");
    let query = sqlx::query(AssertSqlSafe(sql)).bind(owner);
    let done = query.execute(connection).await?;
    Ok(done.rows_affected() == 1)
}

/// Whether a process is known, and stays so until the end of the change. Leases of several balances do not wait for
/// each other, nor for calls on their way.
async fn stays_known(change: &mut AnyConnection, owner: &str) -> Result<bool, StoreError> {
    if change.backend_name() != "PostgreSQL" {
        return is_known(change, owner).await;
    }
    let sql = "SELECT 1 FROM ledger_processes WHERE owner = $1 FOR KEY SHARE";
    let found = sqlx::query(sql).bind(owner).fetch_optional(change).await?;
    Ok(found.is_some())
}

async fn begin(connection: &mut AnyConnection, owner: &str) -> Result<(), StoreError> {
    let mut change = connection.begin().await?;
    let now = clock(&change);
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

async fn end(connection: &mut AnyConnection, owner: &str) -> Result<(), StoreError> {
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

async fn change(
    connection: &mut AnyConnection,
    organization_id: &str,
    owner: &str,
    turn: i64,
    wanted: LeaseChange,
) -> Result<Option<LeaseGrant>, StoreError> {
    let mut change = connection.begin().await?;
    if !stays_known(&mut change, owner).await? {
        change.rollback().await?;
        return Ok(None);
    }
    expire(&mut change, owner).await?;
    hold(&mut change, organization_id).await?;
    let account = read(&mut change, organization_id).await?;
    let own = own(&mut change, organization_id, owner).await?;
    let mut taken = LeaseGrant {
        amount: own.taken,
        others: account.leased.minus(own.amount),
    };
    if own.turn != turn {
        let rest = match wanted {
            LeaseChange::Take(need) => {
                taken.amount = share(&mut change, account.free(), need).await?;
                own.amount.plus(taken.amount)
            }
            LeaseChange::Return(amount) => {
                taken.amount = Usd::ZERO;
                own.amount.minus(amount).max(Usd::ZERO)
            }
        };
        let sql = "INSERT INTO leases (organization_id, owner, amount, turn, taken) \
                   VALUES ($1, $2, $3, $4, $5) ON CONFLICT (organization_id, owner) DO UPDATE \
                   SET amount = excluded.amount, turn = excluded.turn, taken = excluded.taken";
        sqlx::query(sql)
            .bind(organization_id)
            .bind(owner)
            .bind(rest.to_string())
            .bind(turn)
            .bind(taken.amount.to_string())
            .execute(&mut *change)
            .await?;
    }
    change.commit().await?;
    Ok(Some(taken))
}

/// How much of what is free a process gets that needs so much.
async fn share(change: &mut AnyConnection, free: Usd, need: Usd) -> Result<Usd, StoreError> {
    if free < need || free == Usd::ZERO {
        return Ok(Usd::ZERO);
    }
    let sql = "SELECT COUNT(*) FROM ledger_processes";
    let processes: i64 = sqlx::query_scalar(sql).fetch_one(change).await?;
    let share = Usd::from_units(free.units() / SHARE);
    Ok(if processes == 1 {
        free
    } else {
        share.max(need)
    })
}

/// What a process holds of a balance.
#[derive(Default)]
pub(super) struct Lease {
    /// So much.
    pub amount: Usd,
    /// The number of its last change, and what that brought.
    turn: i64,
    taken: Usd,
}

/// What a process holds of a balance that is held.
pub(super) async fn own(
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
            turn: row.try_get("turn")?,
            taken: usd(&row, "taken")?,
        })
    })
}

/// Sets what is left of a lease that a process holds.
pub(super) async fn write(
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

/// Lets go what other processes hold that have not been heard of.
///
/// Their row goes first: one that lives after all waits for it, and then learns that it has lost its leases.
async fn expire(change: &mut AnyConnection, owner: &str) -> Result<(), StoreError> {
    let now = clock(change);
    let sql = format!(
        "DELETE FROM ledger_processes WHERE owner <> $1 AND seen_at < {now} - $2 RETURNING owner"
    );
    let gone = sqlx::query(AssertSqlSafe(sql))
        .bind(owner)
        .bind(LEASE_TTL_MS)
        .fetch_all(&mut *change)
        .await?;
    for row in gone {
        let owner: String = row.try_get("owner")?;
        let sql = "DELETE FROM leases WHERE owner = $1";
        sqlx::query(sql).bind(owner).execute(&mut *change).await?;
    }
    Ok(())
}
