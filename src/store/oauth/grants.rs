//! Codes, and the grants that they become.

use sqlx::Row;
use sqlx::any::AnyRow;

use crate::store::connections::Connected;

use crate::store::{Changed, Store, StoreError};

/// The grant of a code that was used in vain.
const IN_VAIN: &str = "-";

/// A code that a person gives to a client.
#[derive(Clone, Copy, Debug)]
pub struct NewCode<'a> {
    pub hash: &'a [u8],
    pub client_id: &'a str,
    /// The metadata of the client, if it has a document in the place of a registration: JSON.
    pub document: Option<&'a str>,
    /// The API key that the person signed in with.
    pub key_id: &'a str,
    /// What was asked for, as JSON.
    pub request: &'a str,
    /// When it expires, in unix milliseconds.
    pub expires_at_ms: i64,
}

/// A code as it is used.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct StoredCode {
    pub client_id: String,
    /// The API key that the person signed in with.
    pub key_id: String,
    /// What was asked for, as JSON.
    pub request: String,
    /// When it expires, in unix milliseconds.
    pub expires_at_ms: i64,
    pub key_hash: Vec<u8>,
}

/// A grant: what a person has allowed to a client.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OAuthGrant {
    /// Its id, of random digits. Only holders of its tokens know it.
    pub id: String,
    pub client_id: String,
    /// The API key that the person signed in with.
    pub key_id: String,
    pub key_hash: Vec<u8>,
    /// What is allowed: names, separated by spaces.
    pub scopes: String,
    pub resource: String,
    /// When it ends unless it is used, in unix milliseconds.
    pub expires_at_ms: i64,
    /// The number of its last refresh token.
    pub generation: i64,
    /// When that came, in unix milliseconds.
    pub rotated_at_ms: i64,
}

/// What became of a code.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Redeemed<R> {
    Granted(OAuthGrant),
    /// Nothing, for this reason; it cannot be used again.
    Refused(R),
    /// It was used before. The grant that it had become is ended.
    Replayed,
    /// No code has this hash.
    Unknown,
}

impl Store {
    /// Notes that a page was answered, with the code that the person gives; `code_hash` is that of the only code that the page
    /// may give. Returns whether the answer counts: it is the first, or it is the same again, and its code was not used yet.
    pub async fn answer_consent(
        &self,
        (id, code_hash): (&str, &[u8]),
        expires_at_ms: i64,
        code: Option<&NewCode<'_>>,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let _turn = self.write_turn().await;
        let mut change = self.pool.begin().await?;
        let sql = "INSERT INTO oauth_answers (id, expires_at) VALUES ($1, $2) ON CONFLICT (id) DO NOTHING";
        let query = sqlx::query(sql).bind(id).bind(expires_at_ms);
        let is_first = query.execute(&mut change).await?.rows_affected() == 1;
        if !is_first {
            return is_same_answer(&mut change, code_hash, code, now_ms).await;
        }
        if let Some(code) = code {
            insert_code(&mut change, code, now_ms).await?;
        }
        change.commit().await?;
        Ok(true)
    }

    /// Uses a code once, also if others try at the same time. `judge` returns the grant that the code becomes, or the reason
    /// of a refusal.
    pub async fn redeem_code<R>(
        &self,
        hash: &[u8],
        now_ms: i64,
        judge: impl FnOnce(&StoredCode) -> Result<OAuthGrant, R>,
    ) -> Result<Redeemed<R>, StoreError> {
        let turn = self.write_turn().await;
        let mut change = self.pool.begin().await?;
        let sql = "UPDATE oauth_codes SET grant_id = $2 WHERE hash = $1 AND grant_id = ''";
        let query = sqlx::query(sql).bind(hash.to_vec()).bind(IN_VAIN);
        if query.execute(&mut change).await?.rows_affected() == 0 {
            drop((change, turn));
            return self.refuse_replay(hash, now_ms).await;
        }
        let sql = "SELECT c.client_id, c.key_id, c.authorization_request, c.expires_at, k.hash AS key_hash \
                   FROM oauth_codes c JOIN api_keys k ON k.id = c.key_id WHERE c.hash = $1";
        let query = sqlx::query(sql).bind(hash.to_vec());
        // The key of the code may be deleted.
        let Some(row) = query.fetch_optional(&mut change).await? else {
            return Ok(Redeemed::Unknown);
        };
        let code = read_code(&row)?;
        let redeemed = match judge(&code) {
            Err(reason) => Redeemed::Refused(reason),
            Ok(grant) if !mark_used(&mut change, &grant, now_ms).await? => Redeemed::Unknown,
            Ok(grant) => {
                insert_grant(&mut change, &grant, now_ms).await?;
                let sql = "UPDATE oauth_codes SET grant_id = $2 WHERE hash = $1";
                let query = sqlx::query(sql).bind(hash.to_vec()).bind(&grant.id);
                query.execute(&mut change).await?;
                Redeemed::Granted(grant)
            }
        };
        change.commit().await?;
        Ok(redeemed)
    }

    /// Ends the grant of a code that is used again.
    async fn refuse_replay<R>(&self, hash: &[u8], now_ms: i64) -> Result<Redeemed<R>, StoreError> {
        let sql = "SELECT grant_id FROM oauth_codes WHERE hash = $1";
        let query = sqlx::query_scalar(sql).bind(hash.to_vec());
        let grant_id: Option<String> = query
            .fetch_optional(&mut self.pool.acquire().await?)
            .await?;
        match grant_id {
            None => return Ok(Redeemed::Unknown),
            Some(id) if id == IN_VAIN => {}
            Some(id) => self.end_oauth_grant(&id, now_ms).await?,
        }
        Ok(Redeemed::Replayed)
    }

    /// Returns a grant that has neither ended nor expired.
    pub async fn oauth_grant(
        &self,
        id: &str,
        now_ms: i64,
    ) -> Result<Option<OAuthGrant>, StoreError> {
        let sql = "SELECT g.id, g.client_id, g.key_id, k.hash AS key_hash, g.scopes, g.resource, g.expires_at, \
                   g.generation, g.rotated_at FROM oauth_grants g JOIN api_keys k ON k.id = g.key_id \
                   WHERE g.id = $1 AND g.expires_at > $2";
        let query = sqlx::query(sql).bind(id).bind(now_ms);
        let row = query
            .fetch_optional(&mut self.pool.acquire().await?)
            .await?;
        row.as_ref().map(read_grant).transpose()
    }

    /// Makes the next refresh token of a grant the last one. Returns whether this one still was; another may have been
    /// faster.
    pub async fn rotate_oauth_grant(
        &self,
        id: &str,
        generation: i64,
        expires_at_ms: i64,
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let _turn = self.write_turn().await;
        let sql = "UPDATE oauth_grants SET generation = generation + 1, rotated_at = $3, expires_at = $4 \
                   WHERE id = $1 AND generation = $2";
        let query = sqlx::query(sql).bind(id).bind(generation);
        let query = query.bind(now_ms).bind(expires_at_ms);
        Ok(query
            .execute(&mut self.pool.acquire().await?)
            .await?
            .rows_affected()
            == 1)
    }

    /// Ends a grant with all its tokens. Does nothing if it has ended.
    pub async fn end_oauth_grant(&self, id: &str, now_ms: i64) -> Result<(), StoreError> {
        let mut change = self.change_without_entry().await?;
        let sql = "DELETE FROM oauth_grants WHERE id = $1";
        let query = sqlx::query(sql).bind(id);
        if query.execute(&mut *change).await?.rows_affected() == 0 {
            return Ok(());
        }
        insert_revocation(&mut change, id, now_ms).await?;
        change.commit(&[Changed::Revoked(id)]).await
    }
}

/// Inserts what says that a grant or a client was revoked.
pub(super) async fn insert_revocation(
    connection: &mut Connected,
    id: &str,
    now_ms: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO oauth_revocations (id, revoked_at) VALUES ($1, $2) \
               ON CONFLICT (id) DO UPDATE SET revoked_at = excluded.revoked_at";
    let query = sqlx::query(sql).bind(id).bind(now_ms);
    query.execute(connection).await?;
    Ok(())
}

async fn insert_code(
    connection: &mut Connected,
    code: &NewCode<'_>,
    now_ms: i64,
) -> Result<(), StoreError> {
    if let Some(metadata) = code.document {
        let sql = "INSERT INTO oauth_clients (id, metadata, secret_hash, created_at, used_at) \
                   VALUES ($1, $2, $3, $4, 0) \
                   ON CONFLICT (id) DO UPDATE SET metadata = excluded.metadata";
        sqlx::query(sql)
            .bind(code.client_id)
            .bind(metadata)
            .bind(Vec::<u8>::new())
            .bind(now_ms)
            .execute(&mut *connection)
            .await?;
    }
    let sql = "INSERT INTO oauth_codes (hash, client_id, key_id, authorization_request, expires_at, grant_id) \
               VALUES ($1, $2, $3, $4, $5, '')";
    sqlx::query(sql)
        .bind(code.hash.to_vec())
        .bind(code.client_id)
        .bind(code.key_id)
        .bind(code.request)
        .bind(code.expires_at_ms)
        .execute(connection)
        .await?;
    Ok(())
}

/// Returns whether an answer is the one that a page was given before, which can be given once more.
async fn is_same_answer(
    connection: &mut Connected,
    code_hash: &[u8],
    code: Option<&NewCode<'_>>,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let sql = "SELECT key_id, expires_at, grant_id FROM oauth_codes WHERE hash = $1";
    let query = sqlx::query(sql).bind(code_hash.to_vec());
    let row = query.fetch_optional(connection).await?;
    let (Some(row), Some(code)) = (&row, code) else {
        return Ok(row.is_none() && code.is_none());
    };
    let (key_id, expires_at_ms): (String, i64) =
        (row.try_get("key_id")?, row.try_get("expires_at")?);
    let grant_id: String = row.try_get("grant_id")?;
    Ok(key_id == code.key_id && now_ms < expires_at_ms && grant_id.is_empty())
}

async fn insert_grant(
    connection: &mut Connected,
    grant: &OAuthGrant,
    now_ms: i64,
) -> Result<(), StoreError> {
    let sql = "INSERT INTO oauth_grants (id, client_id, key_id, scopes, resource, created_at, expires_at, \
               generation, rotated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    sqlx::query(sql)
        .bind(&grant.id)
        .bind(&grant.client_id)
        .bind(&grant.key_id)
        .bind(&grant.scopes)
        .bind(&grant.resource)
        .bind(now_ms)
        .bind(grant.expires_at_ms)
        .bind(grant.generation)
        .bind(grant.rotated_at_ms)
        .execute(connection)
        .await?;
    Ok(())
}

/// Notes that a client gets a grant. Returns whether it may have one: not if it was revoked or forgotten meanwhile.
async fn mark_used(
    connection: &mut Connected,
    grant: &OAuthGrant,
    now_ms: i64,
) -> Result<bool, StoreError> {
    let sql = "UPDATE oauth_clients SET used_at = $2 WHERE id = $1 AND revoked_at IS NULL";
    let query = sqlx::query(sql).bind(&grant.client_id).bind(now_ms);
    Ok(query.execute(connection).await?.rows_affected() == 1)
}

fn read_code(row: &AnyRow) -> Result<StoredCode, StoreError> {
    Ok(StoredCode {
        client_id: row.try_get("client_id")?,
        key_id: row.try_get("key_id")?,
        request: row.try_get("authorization_request")?,
        expires_at_ms: row.try_get("expires_at")?,
        key_hash: row.try_get("key_hash")?,
    })
}

fn read_grant(row: &AnyRow) -> Result<OAuthGrant, StoreError> {
    Ok(OAuthGrant {
        id: row.try_get("id")?,
        client_id: row.try_get("client_id")?,
        key_id: row.try_get("key_id")?,
        key_hash: row.try_get("key_hash")?,
        scopes: row.try_get("scopes")?,
        resource: row.try_get("resource")?,
        expires_at_ms: row.try_get("expires_at")?,
        generation: row.try_get("generation")?,
        rotated_at_ms: row.try_get("rotated_at")?,
    })
}
