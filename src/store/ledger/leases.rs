//! Leases: parts of a balance that a process holds, so that it can spend without queries. Leases of limits change with
//! them.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use filters::ledger::LimitGrant;
use filters::money::Usd;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};
use tokio::time::timeout;

use super::super::{Store, StoreError};
use super::limits::{self, LimitRequest};
use super::rows::Rows;
use super::{Dialect, QUERY_TIMEOUT, StoreAccount, finish, lock_balances, read_accounts, usd};

/// After this time without a refresh a process counts as dead, and its leases expire.
pub(super) const LEASE_TTL_MS: i64 = 30_000;
/// The time limit of a change of leases, and of a heartbeat: credit waits for them.
const LEASE_TIMEOUT: Duration = Duration::from_secs(4);
/// The channel on which processes request amounts back. Payload: the requesting process, a space, the organization's
/// id; and for the lease of a limit a space and its scope.
pub const CHANNEL: &str = "weirgate_leases";
/// If several processes are registered, a process takes the free amount divided by this at a time.
const LEASE_DIVISOR: i128 = 4;

/// The result of a change of a lease.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct LeaseGrant {
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

/// A change of a process's lease of one organization.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LeaseRequest {
    pub organization_id: String,
    /// Counts the changes of this lease. A change without a confirmation is repeated under its number and applied once.
    pub number: i64,
    pub change: LeaseChange,
}

/// The results of changes, each in the order of the requests.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct LeaseGrants {
    pub credit: Vec<LeaseGrant>,
    pub limits: Vec<LimitGrant>,
}

impl Store {
    /// Registers a process without leases, before it requests its first one.
    pub async fn register_process(&self, owner: &str) -> Result<(), StoreError> {
        let _turn = self.write_turn().await;
        let mut connection = self.ledger_pool.acquire().await?;
        let done = timeout(QUERY_TIMEOUT, register(connection.unlimited()?, owner)).await;
        finish(connection, done)
    }

    /// Refreshes the registration of a live process. Returns whether it was still registered.
    ///
    /// It has a connection of its own and waits for no other work of this process, but with SQLite for the write that is
    /// running.
    pub async fn refresh_process(&self, owner: &str) -> Result<bool, StoreError> {
        let _turn = self.write_turn().await;
        let mut connection = self.heartbeat_pool.acquire().await?;
        let done = timeout(LEASE_TIMEOUT, refresh(connection.unlimited()?, owner)).await;
        finish(connection, done)
    }

    /// Returns whether a process is registered and has refreshed that in time.
    pub async fn has_running_process(&self) -> Result<bool, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let now = clock_sql(&connection);
        let sql = format!("SELECT 1 FROM ledger_processes WHERE seen_at >= {now} - $1 LIMIT 1");
        let query = sqlx::query(AssertSqlSafe(sql)).bind(LEASE_TTL_MS);
        Ok(query.fetch_optional(&mut connection).await?.is_some())
    }

    /// Removes a process and returns its leases.
    pub async fn unregister_process(&self, owner: &str) -> Result<(), StoreError> {
        let _turn = self.write_turn().await;
        let mut connection = self.ledger_pool.acquire().await?;
        let done = timeout(QUERY_TIMEOUT, unregister(connection.unlimited()?, owner)).await;
        finish(connection, done)
    }

    /// Changes leases of a process, of each organization's credit and of each scope's limits at most one, all or none.
    /// Leases of dead processes become free. Cost: the same few statements for any number of organizations.
    ///
    /// Returns `None` and changes nothing if the process is not registered, because it has lost its leases.
    pub async fn change_leases(
        &self,
        owner: &str,
        credit: &[LeaseRequest],
        limits: &[LimitRequest],
    ) -> Result<Option<LeaseGrants>, StoreError> {
        let _turn = self.write_turn().await;
        let mut connection = self.ledger_pool.acquire().await?;
        let changed = apply(connection.unlimited()?, owner, credit, limits);
        let done = timeout(LEASE_TIMEOUT, changed).await;
        finish(connection, done)
    }

    /// Requests the other processes on a PostgreSQL store to return amounts that they do not need: of credit, or of the
    /// limits of a scope. The payload is that of [`CHANNEL`].
    pub async fn request_return(&self, payload: &str) -> Result<(), StoreError> {
        let sql = "SELECT CAST(pg_notify($1, $2) AS TEXT)";
        let mut connection = self.ledger_pool.acquire().await?;
        let query = sqlx::query(sql).bind(CHANNEL).bind(payload);
        let asked = timeout(LEASE_TIMEOUT, query.execute(connection.unlimited()?)).await;
        finish(connection, asked.map(|asked| Ok(asked?))).map(|_| ())
    }
}

/// Returns the SQL of the store's clock in unix milliseconds. The clocks of processes may differ.
pub(super) fn clock_sql(connection: &impl Dialect) -> &'static str {
    match connection.is_postgres() {
        true => "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)",
        false => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
    }
}

/// Refreshes the registration of a process. Returns whether it is registered.
async fn refresh(connection: &mut AnyConnection, owner: &str) -> Result<bool, StoreError> {
    let now = clock_sql(connection);
    let sql = format!("UPDATE ledger_processes SET seen_at = {now} WHERE owner = $1");
    let query = sqlx::query(AssertSqlSafe(sql)).bind(owner);
    let done = query.execute(connection).await?;
    Ok(done.rows_affected() == 1)
}

/// Locks the registration of a process until the end of the transaction. Returns whether it is registered.
///
/// It comes first in each change of a process's leases. So an expiry of its leases waits for the change, or the change
/// notices the expiry. With PostgreSQL such changes do not wait for each other here, nor heartbeats for them. With
/// SQLite the first statement has to be a write.
pub(super) async fn lock_process(
    change: &mut AnyConnection,
    owner: &str,
) -> Result<bool, StoreError> {
    if !change.is_postgres() {
        return refresh(change, owner).await;
    }
    let sql = "SELECT 1 FROM ledger_processes WHERE owner = $1 FOR KEY SHARE";
    let found = sqlx::query(sql).bind(owner).fetch_optional(change).await?;
    Ok(found.is_some())
}

async fn register(connection: &mut AnyConnection, owner: &str) -> Result<(), StoreError> {
    let now = clock_sql(connection);
    let mut change = connection.begin().await?;
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
    owner: &str,
    credit: &[LeaseRequest],
    limits: &[LimitRequest],
) -> Result<Option<LeaseGrants>, StoreError> {
    let mut transaction = connection.begin().await?;
    if !lock_process(&mut transaction, owner).await? {
        transaction.rollback().await?;
        return Ok(None);
    }
    expire_processes(&mut transaction, owner).await?;
    let processes = count_processes(&mut transaction).await?;
    let funded = credit.iter().map(|request| &*request.organization_id);
    let limited = limits.iter().map(|request| &*request.organization_id);
    let ids = in_order(funded.chain(limited));
    lock_balances(&mut transaction, &ids).await?;
    let grants = LeaseGrants {
        credit: change_credit(&mut transaction, owner, credit, processes).await?,
        limits: limits::change(&mut transaction, owner, limits, processes).await?,
    };
    transaction.commit().await?;
    Ok(Some(grants))
}

/// Returns ids in the order in which their balances are locked, each once.
fn in_order<'a>(ids: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut ids: Vec<&str> = ids.collect();
    ids.sort_unstable();
    ids.dedup();
    ids
}

/// Changes leases of credit, whose balances are locked.
async fn change_credit(
    transaction: &mut AnyConnection,
    owner: &str,
    requests: &[LeaseRequest],
    processes: i64,
) -> Result<Vec<LeaseGrant>, StoreError> {
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let ids = in_order(requests.iter().map(|request| &*request.organization_id));
    let accounts = read_accounts(transaction, &ids).await?;
    let leases = read_leases(transaction, &ids, owner).await?;
    let mut grants = Vec::with_capacity(requests.len());
    let mut changed = BTreeMap::new();
    for request in requests {
        let id = request.organization_id.as_str();
        let account = accounts.get(id).copied().unwrap_or_default();
        let lease = leases.get(id).copied().unwrap_or_default();
        let (grant, amount) = change_lease(&account, lease, request, processes);
        grants.push(grant);
        if lease.change_number != request.number {
            let (amount, taken) = (amount.to_string(), grant.amount.to_string());
            changed.insert(id, (amount, request.number, taken));
        }
    }
    write_leases(transaction, owner, changed).await?;
    Ok(grants)
}

/// Returns the result of a change, and the amount of the lease after it.
fn change_lease(
    account: &StoreAccount,
    lease: CreditLease,
    request: &LeaseRequest,
    processes: i64,
) -> (LeaseGrant, Usd) {
    let mut grant = LeaseGrant {
        amount: lease.last_grant,
        others: account.leased.minus(lease.amount),
    };
    if lease.change_number == request.number {
        return (grant, lease.amount);
    }
    match request.change {
        LeaseChange::Take(need) => {
            grant.amount = lease_amount(account.free(), need, processes);
            (grant, lease.amount.plus(grant.amount))
        }
        LeaseChange::Return(amount) => {
            grant.amount = Usd::ZERO;
            (grant, lease.amount.minus(amount).max(Usd::ZERO))
        }
    }
}

/// Returns how much of the free amount a process gets that needs `need`.
fn lease_amount(free: Usd, need: Usd, processes: i64) -> Usd {
    if free < need {
        return Usd::ZERO;
    }
    if processes == 1 {
        return free;
    }
    let share = Usd::from_units(free.units() / LEASE_DIVISOR);
    share.max(need)
}

async fn count_processes(change: &mut AnyConnection) -> Result<i64, StoreError> {
    let sql = "SELECT COUNT(*) FROM ledger_processes";
    Ok(sqlx::query_scalar(sql).fetch_one(change).await?)
}

/// The lease of a process.
#[derive(Clone, Copy, Default)]
pub(super) struct CreditLease {
    pub amount: Usd,
    /// The number of the last change, and the amount that it added.
    change_number: i64,
    last_grant: Usd,
}

/// Reads leases of a process. Their balances are locked.
pub(super) async fn read_leases(
    change: &mut AnyConnection,
    organization_ids: &[&str],
    owner: &str,
) -> Result<HashMap<String, CreditLease>, StoreError> {
    let sql = "SELECT organization_id, amount, turn, taken \
               FROM (SELECT value ->> 0 AS id FROM {rows}) AS r \
               CROSS JOIN leases WHERE organization_id = r.id AND owner = $2";
    let ids = Rows::from_texts(change, organization_ids.iter().copied())?;
    let rows = ids.query(sql).bind(owner).fetch_all(change).await?;
    let leases = rows.iter().map(|row| {
        let lease = CreditLease {
            amount: usd(row, "amount")?,
            change_number: row.try_get("turn")?,
            last_grant: usd(row, "taken")?,
        };
        Ok((row.try_get("organization_id")?, lease))
    });
    leases.collect()
}

/// Writes leases: by organization the amount, the number of the change, and what it added.
async fn write_leases(
    change: &mut AnyConnection,
    owner: &str,
    leases: BTreeMap<&str, (String, i64, String)>,
) -> Result<(), StoreError> {
    if leases.is_empty() {
        return Ok(());
    }
    let leases = leases
        .into_iter()
        .map(|(id, (amount, number, taken))| (id, amount, number, taken));
    let leases: Vec<_> = leases.collect();
    let sql = "INSERT INTO leases (organization_id, owner, amount, turn, taken) \
               SELECT value ->> 0, $2, value ->> 1, CAST(value ->> 2 AS BIGINT), value ->> 3 \
               FROM {rows} WHERE 1 = 1 ON CONFLICT (organization_id, owner) DO UPDATE \
               SET amount = excluded.amount, turn = excluded.turn, taken = excluded.taken";
    let query = Rows::new(change, &leases)?;
    query.query(sql).bind(owner).execute(change).await?;
    Ok(())
}

/// Expires the leases of other processes that did not refresh their registration.
///
/// Their registration is deleted first. A process that is alive after all waits for it and then learns that it has lost
/// its leases. One that holds its registration is not waited for: it is at work, or was frozen at it, and then PostgreSQL
/// ends its transaction.
pub(super) async fn expire_processes(
    change: &mut AnyConnection,
    owner: &str,
) -> Result<(), StoreError> {
    let now = clock_sql(change);
    let free = match change.is_postgres() {
        true => " FOR UPDATE SKIP LOCKED",
        false => "",
    };
    let sql = format!(
        "DELETE FROM ledger_processes WHERE owner IN (SELECT owner FROM ledger_processes \
         WHERE owner <> $1 AND seen_at < {now} - $2{free}) RETURNING owner"
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
