//! Single calls, packed: one row for all calls that a process stored at once.

use std::collections::HashSet;

use filters::ledger::packed::{pack, unpack};
use filters::ledger::{CallOwner, Charge, EntryId, LedgerEntry};
use futures::TryStreamExt;
use sqlx::{AnyConnection, Row};

use super::super::{Store, StoreError};
use super::rows::Rows;

/// The maximum number of batches in one deletion, because other writes wait for it.
pub(super) const MAX_DELETED_BATCHES: i64 = 64;
/// The maximum number of rows of earlier versions in one deletion.
const MAX_DELETED_ROWS: i64 = 2000;

/// Which single calls are too old to be kept. Units: unix milliseconds.
#[derive(Clone, Copy, Debug)]
pub struct OldCalls<'a> {
    /// Calls that ended before this time, of processes whose journal is gone.
    pub before_ms: i64,
    /// The process that deletes them.
    pub owner: &'a str,
    /// Its own calls that ended before this time: its journal does not have them any more.
    pub own_before_ms: i64,
}

impl Store {
    /// Visits the single calls that ended from `from_ms` on and before `until_ms`, of the callers that `is_wanted`
    /// names. They have no order. Calls are there for `store.usage_retention_days`.
    pub async fn visit_calls(
        &self,
        (from_ms, until_ms): (i64, i64),
        mut is_wanted: impl FnMut(&CallOwner) -> bool,
        mut visit: impl FnMut(&LedgerEntry),
    ) -> Result<(), StoreError> {
        let sql = "SELECT ids, calls FROM call_batches WHERE ended_last >= $1 AND ended_first < $2";
        let query = sqlx::query(sql).bind(from_ms).bind(until_ms);
        let mut connection = self.pool.acquire().await?;
        let mut batches = query.fetch(&mut connection);
        while let Some(batch) = batches.try_next().await? {
            let calls = unpack(
                batch.try_get("ids")?,
                batch.try_get("calls")?,
                &mut is_wanted,
            );
            let calls = calls.map_err(|_| StoreError::Damaged("calls"))?;
            let of_time = |call: &&LedgerEntry| (from_ms..until_ms).contains(&call.at_ms);
            calls.iter().filter(of_time).for_each(&mut visit);
        }
        Ok(())
    }

    /// Deletes some old single calls. Returns whether there may be more. Balances, the sums of hours and the spending of
    /// keys still include them.
    ///
    /// A process that ended without [`Store::forget_journal`] may bring the calls of its journal again at any time, and
    /// no other process knows how far they go back. All of its calls stay, because only they prevent a second charge.
    pub async fn delete_old_calls(&self, old: &OldCalls<'_>) -> Result<bool, StoreError> {
        let _turn = self.write_turn().await;
        let sql = "DELETE FROM call_batches WHERE id IN (SELECT id FROM call_batches b \
                   LEFT JOIN journal_owners j ON j.owner = b.owner WHERE b.ended_last < $1 \
                   AND (j.owner IS NULL OR (b.owner = $2 AND b.ended_last < $3)) LIMIT $4)";
        let query = sqlx::query(sql).bind(old.before_ms).bind(old.owner);
        let query = query.bind(old.own_before_ms).bind(MAX_DELETED_BATCHES);
        let batches = query.execute(&mut self.pool.acquire().await?).await?;
        let sql = "DELETE FROM ledger WHERE id IN \
                   (SELECT id FROM ledger WHERE at < $1 ORDER BY at LIMIT $2)";
        let query = sqlx::query(sql)
            .bind(old.own_before_ms)
            .bind(MAX_DELETED_ROWS);
        let rows = query.execute(&mut self.pool.acquire().await?).await?;
        Ok(
            batches.rows_affected() == MAX_DELETED_BATCHES.unsigned_abs()
                || rows.rows_affected() == MAX_DELETED_ROWS.unsigned_abs(),
        )
    }

    /// Records that the journal of a process is deleted, so that its calls never come again.
    pub async fn forget_journal(&self, owner: &str) -> Result<(), StoreError> {
        let _turn = self.write_turn().await;
        let sql = "DELETE FROM journal_owners WHERE owner = $1";
        sqlx::query(sql)
            .bind(owner)
            .execute(&mut self.pool.acquire().await?)
            .await?;
        Ok(())
    }
}

/// Records that a process is storing calls. Until the end of the transaction no other one of the same process does, not
/// even one whose confirmation was lost.
pub(super) async fn lock_journal(
    change: &mut AnyConnection,
    owner: &str,
    entries: &[&LedgerEntry],
) -> Result<(), StoreError> {
    let sql = "INSERT INTO journal_owners (owner, ended_last, posts) VALUES ($1, $2, 1) \
               ON CONFLICT (owner) DO UPDATE SET posts = journal_owners.posts + 1, ended_last = \
               CASE WHEN excluded.ended_last > journal_owners.ended_last \
               THEN excluded.ended_last ELSE journal_owners.ended_last END";
    let ended_last = entries.iter().map(|entry| entry.at_ms).max();
    let query = sqlx::query(sql)
        .bind(owner)
        .bind(ended_last.unwrap_or_default());
    query.execute(change).await?;
    Ok(())
}

/// Stores calls with the charges that the store has found.
pub(super) async fn insert(
    change: &mut AnyConnection,
    owner: &str,
    entries: &[&LedgerEntry],
    charges: &[Charge],
) -> Result<(), StoreError> {
    let packed = pack(entries.iter().copied().zip(charges.iter().copied()));
    let (began_first, began_last) = bounds(entries, |entry| entry.id.made_ms());
    let (ended_first, ended_last) = bounds(entries, |entry| entry.at_ms);
    let sql = "INSERT INTO call_batches \
               (owner, began_first, began_last, ended_first, ended_last, ids, calls) \
               VALUES ($1, $2, $3, $4, $5, $6, $7)";
    sqlx::query(sql)
        .bind(owner)
        .bind(began_first)
        .bind(began_last)
        .bind(ended_first)
        .bind(ended_last)
        .bind(packed.ids)
        .bind(packed.calls)
        .execute(change)
        .await?;
    Ok(())
}

/// Returns the ids of those calls of a process that are stored already. No other process stores them. Cost: the ids of all its
/// calls that began in the same time, whatever the number of processes.
pub(super) async fn stored_ids(
    change: &mut AnyConnection,
    owner: &str,
    entries: &[&LedgerEntry],
) -> Result<HashSet<EntryId>, StoreError> {
    let ids: HashSet<EntryId> = entries.iter().map(|entry| entry.id).collect();
    let mut stored = HashSet::new();
    let (first, last) = bounds(entries, |entry| entry.id.made_ms());
    let sql = "SELECT ids FROM call_batches \
               WHERE owner = $1 AND began_last >= $2 AND began_first <= $3";
    let query = sqlx::query(sql).bind(owner).bind(first).bind(last);
    let mut batches = query.fetch(&mut *change);
    while let Some(batch) = batches.try_next().await? {
        let of_batch: &[u8] = batch.try_get("ids")?;
        let (of_batch, _) = of_batch.as_chunks::<16>();
        let of_batch = of_batch.iter().map(|id| EntryId(*id));
        stored.extend(of_batch.filter(|id| ids.contains(id)));
    }
    drop(batches);
    // Calls of earlier versions.
    let by_text = ids.iter().map(|id| (id.to_string(), *id));
    let by_text: std::collections::HashMap<String, EntryId> = by_text.collect();
    let rows = Rows::from_texts(change, by_text.keys().map(String::as_str))?;
    let sql = "SELECT l.id FROM (SELECT value ->> 0 AS id FROM {rows}) r \
               CROSS JOIN ledger l WHERE l.id = r.id";
    for row in rows.query(sql).fetch_all(change).await? {
        stored.extend(by_text.get(row.try_get::<&str, _>("id")?));
    }
    Ok(stored)
}

/// Returns the least and the greatest of a time.
fn bounds<T>(entries: &[T], time: impl Fn(&T) -> i64) -> (i64, i64) {
    let first = entries.iter().map(&time).min();
    let last = entries.iter().map(&time).max();
    (first.unwrap_or_default(), last.unwrap_or_default())
}
