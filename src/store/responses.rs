//! Responses that clients have asked to be kept: what they were asked, and what they are, both encrypted.
//!
//! Each belongs to the key that has asked for it. How many an organization has, and their bytes, stand in a row of its own, so that
//! no bound reads them all. They expire, and are deleted in portions.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use filters::accounts::Pepper;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Row};

use super::cipher::Cipher;
use super::{Store, StoreError};

/// The most that the responses of one organization may be.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ResponseBounds {
    pub responses: i64,
    pub bytes: i64,
}

/// What the responses of an organization are.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ResponseTotals {
    pub responses: i64,
    pub bytes: i64,
}

/// A response to keep. It has no `Debug`, because it holds what a client says.
#[derive(Clone)]
pub struct NewResponse {
    /// 32 hex digits.
    pub id: Box<str>,
    pub organization_id: Arc<str>,
    pub key_id: Arc<str>,
    pub status: &'static str,
    /// Whether it is made in the background.
    pub is_background: bool,
    /// Unix milliseconds.
    pub created_ms: i64,
    pub expires_ms: i64,
    /// The items of the request with those before it: a JSON array.
    pub input: Bytes,
    /// The response, as JSON.
    pub response: Bytes,
    pub bounds: ResponseBounds,
}

/// What became of a response that was made in the background.
#[derive(Clone)]
pub struct EndedResponse {
    /// Its id, without its prefix.
    pub id: Box<str>,
    pub status: &'static str,
    /// The response, as JSON.
    pub response: Bytes,
}

/// A response that is kept. It has no `Debug`, because it holds what a client says.
pub struct StoredResponse {
    /// Its status by now. A background response says another one in its JSON until it ends.
    pub status: String,
    pub is_background: bool,
    /// A JSON array.
    pub input: String,
    pub response: String,
}

/// A new response, encrypted.
pub(super) struct SealedResponse<'a> {
    new: &'a NewResponse,
    input: Vec<u8>,
    response: Vec<u8>,
}

/// The end of a response, encrypted.
pub(super) struct SealedEnd {
    status: &'static str,
    response: Vec<u8>,
}

fn context(id: &str, part: &str) -> String {
    format!("response {id} {part}")
}

fn seal(cipher: &Cipher, id: &str, part: &str, text: &[u8]) -> Result<Vec<u8>, StoreError> {
    let text = std::str::from_utf8(text).map_err(|_| StoreError::Damaged("response"))?;
    cipher.encrypt(&context(id, part), text)
}

impl NewResponse {
    /// Encrypts it.
    pub(super) fn seal(&self, pepper: &Pepper) -> Result<SealedResponse<'_>, StoreError> {
        let cipher = Cipher::new(pepper)?;
        Ok(SealedResponse {
            new: self,
            input: seal(&cipher, &self.id, "input", &self.input)?,
            response: seal(&cipher, &self.id, "response", &self.response)?,
        })
    }
}

impl EndedResponse {
    /// Encrypts it.
    pub(super) fn seal(&self, pepper: &Pepper) -> Result<SealedEnd, StoreError> {
        Ok(SealedEnd {
            status: self.status,
            response: seal(&Cipher::new(pepper)?, &self.id, "response", &self.response)?,
        })
    }
}

impl Store {
    /// Keeps a response that has ended.
    ///
    /// Errors: [`StoreError::Full`] beyond a bound of its organization.
    pub async fn add_response(&self, new: &NewResponse) -> Result<(), StoreError> {
        let sealed = new.seal(&self.pepper)?;
        let _turn = self.write_turn().await;
        let mut change = self.pool.begin().await?;
        insert(change.unlimited()?, &sealed).await?;
        change.commit().await
    }

    /// Returns what the responses of an organization are.
    pub async fn response_totals(
        &self,
        organization_id: &str,
    ) -> Result<ResponseTotals, StoreError> {
        let sql = "SELECT responses, bytes FROM response_totals WHERE organization_id = $1";
        let query = sqlx::query(sql).bind(organization_id);
        let row = query
            .fetch_optional(&mut self.pool.acquire().await?)
            .await?;
        let read = |row: AnyRow| {
            Ok(ResponseTotals {
                responses: row.try_get("responses")?,
                bytes: row.try_get("bytes")?,
            })
        };
        row.map_or_else(|| Ok(ResponseTotals::default()), read)
    }

    /// Returns how many bytes a response of a key has.
    pub async fn response_bytes(
        &self,
        (id, key_id): (&str, &str),
    ) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT bytes FROM responses WHERE id = $1 AND key_id = $2";
        let query = sqlx::query_scalar(sql).bind(id).bind(key_id);
        let mut connection = self.pool.acquire().await?;
        Ok(query.fetch_optional(&mut connection).await?)
    }

    /// Returns a response of a key that has not expired. `with_input` tells whether its input is read, which is empty otherwise.
    pub async fn response(
        &self,
        (id, key_id): (&str, &str),
        now_ms: i64,
        with_input: bool,
    ) -> Result<Option<StoredResponse>, StoreError> {
        let input = if with_input { ", input" } else { "" };
        let sql = format!(
            "SELECT status, is_background, response{input} FROM responses \
             WHERE id = $1 AND key_id = $2 AND expires_at > $3"
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id).bind(key_id);
        let row = query
            .bind(now_ms)
            .fetch_optional(&mut self.pool.acquire().await?)
            .await?;
        let Some(row) = row else { return Ok(None) };
        let cipher = Cipher::new(&self.pepper)?;
        let open = |part: &str| {
            let sealed: Vec<u8> = row.try_get(part)?;
            cipher.decrypt(&context(id, part), &sealed)
        };
        Ok(Some(StoredResponse {
            status: row.try_get("status")?,
            is_background: row.try_get::<i64, _>("is_background")? != 0,
            input: if with_input {
                open("input")?
            } else {
                String::new()
            },
            response: open("response")?,
        }))
    }

    /// Deletes a response of a key, unless it is still being made. Returns whether there was one.
    pub async fn delete_response(&self, id: &str, key_id: &str) -> Result<bool, StoreError> {
        let sql = "DELETE FROM responses WHERE id = $1 AND key_id = $2 \
                   AND id NOT IN (SELECT id FROM response_jobs WHERE id = $1) \
                   RETURNING organization_id, bytes";
        let _turn = self.write_turn().await;
        let mut change = self.pool.begin().await?;
        let query = sqlx::query(sql).bind(id).bind(key_id);
        let deleted = query.fetch_all(&mut change).await?;
        count_deleted(change.unlimited()?, &deleted).await?;
        change.commit().await?;
        Ok(!deleted.is_empty())
    }

    /// Deletes responses that have expired, at most so many. Returns how many it has deleted.
    pub async fn delete_expired_responses(
        &self,
        now_ms: i64,
        most: i64,
    ) -> Result<usize, StoreError> {
        let sql = "DELETE FROM responses WHERE id IN (SELECT id FROM responses \
                   WHERE expires_at <= $1 ORDER BY expires_at LIMIT $2) \
                   RETURNING organization_id, bytes";
        let _turn = self.write_turn().await;
        let mut change = self.pool.begin().await?;
        let query = sqlx::query(sql).bind(now_ms).bind(most);
        let deleted = query.fetch_all(&mut change).await?;
        count_deleted(change.unlimited()?, &deleted).await?;
        change.commit().await?;
        Ok(deleted.len())
    }
}

/// Deletes the responses of keys. `keys` is the SQL of their ids, whose owner is `$1`.
pub(super) async fn delete_of_keys(
    change: &mut AnyConnection,
    keys: &str,
    owner: &str,
) -> Result<(), StoreError> {
    let sql =
        format!("DELETE FROM responses WHERE key_id IN ({keys}) RETURNING organization_id, bytes");
    let query = sqlx::query(AssertSqlSafe(sql)).bind(owner);
    let deleted = query.fetch_all(&mut *change).await?;
    count_deleted(change, &deleted).await
}

/// Counts rows that were deleted off the totals of their organizations, in the order of their ids.
async fn count_deleted(change: &mut AnyConnection, rows: &[AnyRow]) -> Result<(), StoreError> {
    let mut deleted: BTreeMap<String, ResponseTotals> = BTreeMap::new();
    for row in rows {
        let sum = deleted.entry(row.try_get("organization_id")?).or_default();
        sum.responses += 1;
        sum.bytes += row.try_get::<i64, _>("bytes")?;
    }
    for (organization_id, sum) in deleted {
        let sql = "UPDATE response_totals SET responses = responses - $1, bytes = bytes - $2 \
                   WHERE organization_id = $3";
        let query = sqlx::query(sql).bind(sum.responses).bind(sum.bytes);
        query.bind(organization_id).execute(&mut *change).await?;
    }
    Ok(())
}

/// Adds a response within the bounds of its organization.
///
/// Errors: [`StoreError::Full`].
pub(super) async fn insert(
    change: &mut AnyConnection,
    sealed: &SealedResponse<'_>,
) -> Result<(), StoreError> {
    let new = sealed.new;
    let bytes = sealed.input.len() + sealed.response.len();
    let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
    // The first statement is a write, because SQLite cannot upgrade a reading transaction.
    let sql = "INSERT INTO response_totals (organization_id, responses, bytes) VALUES ($1, 0, 0) \
               ON CONFLICT (organization_id) DO NOTHING";
    let query = sqlx::query(sql).bind(&*new.organization_id);
    query.execute(&mut *change).await?;
    let sql = "UPDATE response_totals SET responses = responses + 1, bytes = bytes + $1 \
               WHERE organization_id = $2 AND responses < $3 AND bytes <= $4";
    let query = sqlx::query(sql).bind(bytes).bind(&*new.organization_id);
    let room = new.bounds.bytes.saturating_sub(bytes);
    let query = query.bind(new.bounds.responses).bind(room);
    if query.execute(&mut *change).await?.rows_affected() == 0 {
        return Err(StoreError::Full);
    }
    let sql = "INSERT INTO responses (id, organization_id, key_id, status, is_background, created_at, \
               expires_at, bytes, input, response) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)";
    sqlx::query(sql)
        .bind(&*new.id)
        .bind(&*new.organization_id)
        .bind(&*new.key_id)
        .bind(new.status)
        .bind(i64::from(new.is_background))
        .bind(new.created_ms)
        .bind(new.expires_ms)
        .bind(bytes)
        .bind(&*sealed.input)
        .bind(&*sealed.response)
        .execute(change)
        .await?;
    Ok(())
}

/// Ends a response that was made in the background. One that was cancelled stays so, whatever has come of it since. Without an end
/// the response goes: no client was told of it.
pub(super) async fn end(
    change: &mut AnyConnection,
    id: &str,
    ended: Option<&SealedEnd>,
) -> Result<(), StoreError> {
    let Some(ended) = ended else {
        let sql = "DELETE FROM responses WHERE id = $1 RETURNING organization_id, bytes";
        let deleted = sqlx::query(sql).bind(id).fetch_all(&mut *change).await?;
        return count_deleted(change, &deleted).await;
    };
    let sql = "SELECT organization_id, bytes, LENGTH(response) AS old FROM responses \
               WHERE id = $1 AND status <> 'cancelled'";
    let found = sqlx::query(sql).bind(id);
    // One that has expired meanwhile is gone.
    let Some(row) = found.fetch_optional(&mut *change).await? else {
        return Ok(());
    };
    let old: i64 = match row.try_get::<i64, _>("old") {
        Ok(old) => old,
        Err(_) => row.try_get::<i32, _>("old")?.into(),
    };
    let more = i64::try_from(ended.response.len()).unwrap_or(i64::MAX) - old;
    let organization_id: String = row.try_get("organization_id")?;
    let sql = "UPDATE responses SET status = $1, response = $2, bytes = bytes + $3 WHERE id = $4";
    let query = sqlx::query(sql).bind(ended.status).bind(&*ended.response);
    query.bind(more).bind(id).execute(&mut *change).await?;
    let sql = "UPDATE response_totals SET bytes = bytes + $1 WHERE organization_id = $2";
    let query = sqlx::query(sql).bind(more).bind(organization_id);
    query.execute(change).await?;
    Ok(())
}
