//! What the ledger has of an organization that is deleted, and the calls of it that come later.

use std::collections::BTreeSet;
use std::time::Duration;

use filters::ledger::LedgerEntry;
use sqlx::{AnyConnection, AssertSqlSafe, Row};
use tokio::time::{Instant, sleep, timeout};

use super::super::connections::Connected;
use super::super::{Store, StoreError};
use super::counters::UNCOUNTED;
use super::days::MAX_ROWS;
use super::hour_tables::{SESSIONS, TAGS, USAGE, VARIATIONS};
use super::leases::{clock_sql, expire_processes};
use super::rows::Rows;
use super::{QUERY_TIMEOUT, StoreAccount, lock_balances, read_accounts};

/// How long a command waits for servers to give back what they have leased and do not use.
const RETURN_TIMEOUT: Duration = Duration::from_secs(2);
/// The interval between two looks whether they have.
const RETURN_INTERVAL: Duration = Duration::from_millis(50);
/// A request that is older was left behind by a command that has died.
const MAX_REQUEST_AGE_MS: i64 = 10_000;
/// Who asks in the place of a process.
const COMMAND: &str = "command";

/// The tables with rows of an organization whose number grows with its calls, and what makes a row one of its table.
fn call_tables() -> [(&'static str, String); 7] {
    [
        (USAGE.name, USAGE.key().join(", ")),
        (VARIATIONS.name, VARIATIONS.key().join(", ")),
        (SESSIONS.name, SESSIONS.key().join(", ")),
        (TAGS.name, TAGS.key().join(", ")),
        (
            "spent",
            "organization_id, key_id, hour, funding, is_premium, member_id".to_owned(),
        ),
        ("limit_counters", "organization_id, scope".to_owned()),
        ("ledger", "id".to_owned()),
    ]
}

/// The other tables with rows of an organization.
const OTHER_TABLES: [&str; 8] = [
    "budget_states",
    "limit_leases",
    "leases",
    "credit_grants",
    "balances",
    "video_jobs",
    "responses",
    "response_totals",
];

impl Store {
    /// Deletes the sums of an organization, in portions between which other writes proceed.
    pub(in super::super) async fn delete_sums(
        &self,
        organization_id: &str,
    ) -> Result<(), StoreError> {
        mark_all_counted(&mut self.pool.acquire().await?, organization_id).await?;
        for (table, key) in call_tables() {
            let sql = format!(
                "DELETE FROM {table} WHERE ({key}) IN \
                 (SELECT {key} FROM {table} WHERE organization_id = $1 LIMIT {MAX_ROWS})"
            );
            loop {
                let query = sqlx::query(AssertSqlSafe(sql.clone()));
                let query = query.bind(organization_id);
                let deleted = query.execute(&mut self.pool.acquire().await?).await?;
                if deleted.rows_affected() < MAX_ROWS.unsigned_abs() {
                    break;
                }
            }
        }
        Ok(())
    }

    /// Asks running servers to give back what they have leased of an organization's credit and do not use, and waits for it, but
    /// not for long. Cost: one row if nothing is leased.
    pub async fn return_leases(&self, organization_id: &str) -> Result<(), StoreError> {
        let is_leased = async || -> Result<bool, StoreError> {
            Ok(!self.account(organization_id).await?.leased.is_zero())
        };
        if !is_leased().await? {
            return Ok(());
        }
        let is_sqlite = self.write_turn.is_some();
        if is_sqlite {
            self.add_return_request(organization_id).await?;
        } else {
            let text = format!("{COMMAND} {organization_id}");
            self.request_return(&text).await?;
        }
        let begun = Instant::now();
        while is_leased().await? && begun.elapsed() < RETURN_TIMEOUT {
            sleep(RETURN_INTERVAL).await;
        }
        if is_sqlite {
            let sql = "DELETE FROM return_requests WHERE organization_id = $1";
            let query = sqlx::query(sql).bind(organization_id);
            query.execute(&mut self.pool.acquire().await?).await?;
        }
        Ok(())
    }

    async fn add_return_request(&self, organization_id: &str) -> Result<(), StoreError> {
        let mut connection = self.pool.acquire().await?;
        let now = clock_sql(&connection);
        let sql = format!(
            "INSERT INTO return_requests (organization_id, requested_at) VALUES ($1, {now}) \
             ON CONFLICT (organization_id) DO UPDATE SET requested_at = excluded.requested_at"
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(organization_id);
        query.execute(&mut connection).await?;
        Ok(())
    }

    /// Returns what commands ask this process to give back, in the shape of [`super::CHANNEL`]. With SQLite alone; servers on
    /// PostgreSQL are told.
    pub async fn return_requests(&self) -> Result<Vec<String>, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let now = clock_sql(&connection);
        let sql =
            format!("SELECT organization_id FROM return_requests WHERE requested_at > {now} - $1");
        let query = sqlx::query(AssertSqlSafe(sql)).bind(MAX_REQUEST_AGE_MS);
        let rows = query.fetch_all(&mut connection).await?;
        let read = |row: &sqlx::any::AnyRow| {
            let id: String = row.try_get("organization_id")?;
            Ok(format!("{COMMAND} {id}"))
        };
        rows.iter().map(read).collect()
    }
}

/// Marks all hours of an organization as counted: others are kept from being deleted.
async fn mark_all_counted(
    connection: &mut Connected,
    organization_id: &str,
) -> Result<(), StoreError> {
    let sql = format!(
        "UPDATE spent SET counted_nano = cost_nano, counted_rest = cost_rest \
         WHERE organization_id = $1 AND {UNCOUNTED}"
    );
    let query = sqlx::query(AssertSqlSafe(sql)).bind(organization_id);
    query.execute(connection).await?;
    Ok(())
}

/// Deletes all that the ledger has of an organization, within a change that has locked its credit.
pub(in super::super) async fn delete_all(
    change: &mut Connected,
    organization_id: &str,
) -> Result<(), StoreError> {
    mark_all_counted(change, organization_id).await?;
    let tables = call_tables().map(|(table, _)| table);
    for table in tables.into_iter().chain(OTHER_TABLES) {
        let sql = format!("DELETE FROM {table} WHERE organization_id = $1");
        let query = sqlx::query(AssertSqlSafe(sql)).bind(organization_id);
        query.execute(&mut *change).await?;
    }
    Ok(())
}

/// Locks the credit of an organization to the end of a change, and returns it. What processes that have died had leased is free.
pub(in super::super) async fn lock_credit(
    change: &mut Connected,
    organization_id: &str,
) -> Result<StoreAccount, StoreError> {
    let ids = [organization_id];
    let locked = async {
        let connection = change.unlimited()?;
        expire_processes(connection, COMMAND).await?;
        lock_balances(connection, &ids).await?;
        let mut accounts = read_accounts(connection, &ids).await?;
        Ok(accounts.remove(organization_id).unwrap_or_default())
    };
    let locked = timeout(QUERY_TIMEOUT, locked).await;
    locked.unwrap_or(Err(StoreError::TimedOut))
}

/// Refuses calls of organizations that were deleted.
///
/// It comes after the balances of the calls are locked, as a deletion locks them: none is deleted between the look and the end.
/// Errors: [`StoreError::DeletedOrganizations`].
pub(super) async fn refuse_deleted(
    change: &mut AnyConnection,
    entries: &[&LedgerEntry],
) -> Result<(), StoreError> {
    let ids = entries.iter().map(|entry| &*entry.owner.organization_id);
    let ids: BTreeSet<&str> = ids.collect();
    let ids = Rows::from_texts(change, ids)?;
    let sql = "SELECT d.id FROM (SELECT value ->> 0 AS wanted FROM {rows}) AS r \
               CROSS JOIN deleted_organizations d WHERE d.id = wanted";
    let rows = ids.query(sql).fetch_all(change).await?;
    let deleted: Result<BTreeSet<String>, sqlx::Error> =
        rows.iter().map(|row| row.try_get("id")).collect();
    match deleted? {
        deleted if deleted.is_empty() => Ok(()),
        deleted => Err(StoreError::DeletedOrganizations(deleted)),
    }
}
