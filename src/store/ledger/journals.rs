//! The processes whose journal may still hold calls, and what is given up if one of them never returns.

use filters::audit::{AuditKind, Verb};
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::super::{AccountEditor, Changed, Store, StoreError};
use super::leases::{LEASE_TTL_MS, clock_sql};

/// A process whose journal may still hold calls.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JournalOwner {
    /// The process: the name of its folder under `store.state_dir`.
    pub owner: String,
    /// When the last call ended that it has stored, in unix milliseconds.
    pub ended_last_ms: i64,
    /// The number of its single calls in the store. They are kept as long as the process is listed.
    pub calls: i64,
    pub is_running: bool,
}

impl Store {
    /// Returns the processes whose journal may still hold calls, the one that was silent for longest first.
    pub async fn journal_owners(&self) -> Result<Vec<JournalOwner>, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let now = clock_sql(&connection);
        let sql = format!(
            "SELECT j.owner, j.ended_last, \
             (SELECT CAST(COALESCE(SUM(length(b.ids)) / 16, 0) AS BIGINT) FROM call_batches b \
             WHERE b.owner = j.owner) AS calls, \
             (SELECT COUNT(*) FROM ledger_processes p WHERE p.owner = j.owner \
             AND p.seen_at >= {now} - $1) AS running \
             FROM journal_owners j ORDER BY j.ended_last, j.owner"
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(LEASE_TTL_MS);
        let rows = query.fetch_all(&mut connection).await?;
        let read = |row: &AnyRow| {
            Ok(JournalOwner {
                owner: row.try_get("owner")?,
                ended_last_ms: row.try_get("ended_last")?,
                calls: row.try_get("calls")?,
                is_running: row.try_get::<i64, _>("running")? > 0,
            })
        };
        rows.iter().map(read).collect()
    }
}

impl AccountEditor<'_> {
    /// Gives up the journal of a process that never returns: its single calls may be deleted with their age. Returns
    /// whether that was done; a process that runs keeps its journal.
    pub async fn give_up_journal(self, owner: &str) -> Result<bool, StoreError> {
        let mut change = self.change().await?;
        let noted = change.note(AuditKind::Journal, Verb::Forget, owner);
        let noted = noted.await?;
        let now = clock_sql(&*change);
        let sql = format!(
            "DELETE FROM journal_owners WHERE owner = $1 AND NOT EXISTS \
             (SELECT 1 FROM ledger_processes p WHERE p.owner = $1 AND p.seen_at >= {now} - $2)"
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(owner);
        let done = query.bind(LEASE_TTL_MS).execute(&mut *change).await?;
        if done.rows_affected() != 1 {
            return Ok(false);
        }
        change.commit(&[Changed::Journal(owner)], noted).await?;
        Ok(true)
    }
}
