//! OAuth of the MCP server: clients, and in [`grants`] the codes that persons give them and the grants that codes become.
//!
//! Revocations go through the feed of account changes, so that access tokens, which have no rows, end at once.

mod grants;

use std::collections::BTreeSet;

use sqlx::Row;
use sqlx::any::AnyRow;

use super::rows::Rows;
use super::{AccountEditor, Changed, Deletion, Store, StoreError};
use filters::accounts::REVOCATION_KEPT_MS;
use filters::audit::{AuditKind, Verb};
pub use grants::{NewCode, OAuthGrant, Redeemed, StoredCode};

/// The maximum number of clients that never got a grant. Beyond it the oldest of them are forgotten.
const MAX_UNUSED_CLIENTS: i64 = 10_000;
/// How long a client is kept that never got a grant.
const UNUSED_KEPT_MS: i64 = 86_400_000;
/// How long a client is kept after its last grant.
const USED_KEPT_MS: i64 = 180 * 86_400_000;

/// A client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OAuthClientRow {
    /// `client_` and a uuid, or the URL of its metadata document.
    pub id: String,
    /// Its metadata: JSON.
    pub metadata: String,
    /// The hash of its secret; empty: no secret.
    pub secret_hash: Vec<u8>,
    /// When it was registered or first seen, in unix milliseconds.
    pub created_at_ms: i64,
    /// When it last got a grant, in unix milliseconds; 0: never.
    pub used_at_ms: i64,
    /// When it was revoked, in unix milliseconds.
    pub revoked_at_ms: Option<i64>,
    pub grants: i64,
}

const COLUMNS: &str = "c.id, c.metadata, c.secret_hash, c.created_at, c.used_at, c.revoked_at, \
    (SELECT COUNT(*) FROM oauth_grants g WHERE g.client_id = c.id) AS grants";

impl OAuthClientRow {
    fn read(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            id: row.try_get("id")?,
            metadata: row.try_get("metadata")?,
            secret_hash: row.try_get("secret_hash")?,
            created_at_ms: row.try_get("created_at")?,
            used_at_ms: row.try_get("used_at")?,
            revoked_at_ms: row.try_get("revoked_at")?,
            grants: row.try_get("grants")?,
        })
    }
}

impl Store {
    /// Adds a client that was registered, and returns its id. If there are very many that never got a grant, the oldest of
    /// them are forgotten.
    pub async fn register_oauth_client(
        &self,
        metadata: &str,
        secret_hash: &[u8],
        now_ms: i64,
    ) -> Result<String, StoreError> {
        let id = super::new_id("client");
        let _turn = self.write_turn().await;
        let sql = "INSERT INTO oauth_clients (id, metadata, secret_hash, created_at, used_at) \
                   VALUES ($1, $2, $3, $4, 0)";
        sqlx::query(sql)
            .bind(&id)
            .bind(metadata)
            .bind(secret_hash.to_vec())
            .bind(now_ms)
            .execute(&mut self.pool.acquire().await?)
            .await?;
        let sql = "DELETE FROM oauth_clients WHERE used_at = 0 AND revoked_at IS NULL \
                   AND created_at < COALESCE((SELECT created_at FROM oauth_clients \
                   WHERE used_at = 0 ORDER BY created_at DESC LIMIT 1 OFFSET $1), 0)";
        let query = sqlx::query(sql).bind(MAX_UNUSED_CLIENTS);
        query.execute(&mut self.pool.acquire().await?).await?;
        Ok(id)
    }

    /// Returns a client.
    pub async fn oauth_client(&self, id: &str) -> Result<Option<OAuthClientRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM oauth_clients c WHERE c.id = $1");
        let query = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(id);
        let row = query
            .fetch_optional(&mut self.pool.acquire().await?)
            .await?;
        row.as_ref().map(OAuthClientRow::read).transpose()
    }

    /// Returns all clients, oldest first.
    pub async fn oauth_clients(&self) -> Result<Vec<OAuthClientRow>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM oauth_clients c ORDER BY c.created_at, c.id");
        let query = sqlx::query(sqlx::AssertSqlSafe(sql));
        let rows = query.fetch_all(&mut self.pool.acquire().await?).await?;
        rows.iter().map(OAuthClientRow::read).collect()
    }

    /// Forgets what has expired: answers, codes, grants, revocations that no access token outlives, and clients that got no
    /// grant for long.
    pub async fn delete_old_oauth(&self, now_ms: i64) -> Result<(), StoreError> {
        let _turn = self.write_turn().await;
        for (sql, before_ms) in [
            ("DELETE FROM oauth_answers WHERE expires_at < $1", now_ms),
            // A code that is used again ends its grant, also some time after it has expired.
            (
                "DELETE FROM oauth_codes WHERE expires_at < $1",
                now_ms - UNUSED_KEPT_MS,
            ),
            ("DELETE FROM oauth_grants WHERE expires_at < $1", now_ms),
            (
                "DELETE FROM oauth_revocations WHERE revoked_at < $1",
                now_ms - REVOCATION_KEPT_MS,
            ),
            (
                "DELETE FROM oauth_clients WHERE used_at = 0 AND created_at < $1 AND revoked_at IS NULL",
                now_ms - UNUSED_KEPT_MS,
            ),
            (
                "DELETE FROM oauth_clients WHERE used_at > 0 AND used_at < $1 AND revoked_at IS NULL \
                 AND NOT EXISTS (SELECT 1 FROM oauth_grants g WHERE g.client_id = oauth_clients.id)",
                now_ms - USED_KEPT_MS,
            ),
        ] {
            sqlx::query(sql)
                .bind(before_ms)
                .execute(&mut self.pool.acquire().await?)
                .await?;
        }
        Ok(())
    }

    /// Returns what was revoked of late, or those of these ids, with the times.
    pub(super) async fn revocations(
        &self,
        ids: Option<&BTreeSet<String>>,
    ) -> Result<Vec<(String, i64)>, StoreError> {
        let rows = match ids {
            None => {
                let sql = "SELECT id, revoked_at FROM oauth_revocations ORDER BY revoked_at";
                sqlx::query(sql)
                    .fetch_all(&mut self.pool.acquire().await?)
                    .await?
            }
            Some(ids) if ids.is_empty() => Vec::new(),
            Some(ids) => {
                let mut connection = self.pool.acquire().await?;
                let ids = Rows::from_texts(&connection, ids.iter().map(String::as_str))?;
                let sql = "SELECT id, revoked_at FROM oauth_revocations \
                           WHERE id IN (SELECT value ->> 0 FROM {rows}) ORDER BY revoked_at";
                ids.query(sql).fetch_all(&mut connection).await?
            }
        };
        let read = |row: &AnyRow| Ok((row.try_get("id")?, row.try_get("revoked_at")?));
        rows.iter().map(read).collect()
    }
}

impl AccountEditor<'_> {
    /// Revokes a client with all its grants: its tokens end, and it gets no other. Revoking it again keeps the first time.
    ///
    /// Errors: [`StoreError::NotFound`].
    pub async fn revoke_oauth_client(self, id: &str, now_ms: i64) -> Result<(), StoreError> {
        let mut change = self.change().await?;
        let noted = change.note(AuditKind::OAuthClient, Verb::Revoke, id);
        let noted = noted.await?;
        let sql = "UPDATE oauth_clients SET revoked_at = COALESCE(revoked_at, $2) WHERE id = $1";
        let query = sqlx::query(sql).bind(id).bind(now_ms);
        if query.execute(&mut *change).await?.rows_affected() == 0 {
            return Err(StoreError::not_found("client", id));
        }
        let sql = "DELETE FROM oauth_grants WHERE client_id = $1";
        sqlx::query(sql).bind(id).execute(&mut *change).await?;
        let sql = "DELETE FROM oauth_codes WHERE client_id = $1";
        sqlx::query(sql).bind(id).execute(&mut *change).await?;
        grants::insert_revocation(&mut change, id, now_ms).await?;
        change.commit(&[Changed::Revoked(id)], noted).await
    }

    /// Deletes a revoked client. Its tokens stay ended. Without `is_confirmed` it only looks whether that can be done.
    ///
    /// Errors: [`StoreError::NotFound`], [`StoreError::Kept`].
    pub async fn delete_oauth_client(
        self,
        id: &str,
        is_confirmed: bool,
    ) -> Result<Deletion, StoreError> {
        let client = self.oauth_client(id).await?;
        let client = client.ok_or_else(|| StoreError::not_found("client", id))?;
        if client.revoked_at_ms.is_none() {
            let why = format!("it may sign in: `weirgate mcp clients revoke {id}` ends that");
            return Err(StoreError::kept("client", id, why));
        }
        if is_confirmed {
            let mut change = self.change().await?;
            let noted = change.note(AuditKind::OAuthClient, Verb::Delete, id);
            let noted = noted.await?;
            let sql = "DELETE FROM oauth_clients WHERE id = $1 AND revoked_at IS NOT NULL";
            sqlx::query(sql).bind(id).execute(&mut *change).await?;
            // It is revoked already. A revision without a row would let all that follow the store read it again.
            change.commit(&[Changed::Revoked(id)], noted).await?;
        }
        Ok(Deletion {
            id: id.to_owned(),
            ..Deletion::default()
        })
    }
}
