//! Responses that are made in the background, until they end: who works on them, and whether somebody still wants them.

use filters::ledger::EntryId;

use super::{Store, StoreError};

/// The state of a job whose response is not wanted any more.
pub const CANCELLED_JOB: &str = "cancelled";

/// What a process learns of a job that it works on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum JobHold {
    /// It goes on, and the claim holds on.
    Renewed,
    /// Its response is not wanted any more; the claim holds on.
    Cancelled,
    /// Another process has it, or it has ended.
    Lost,
}

impl Store {
    /// Begins to work on a response that this process has claimed, with this state of its job.
    pub async fn begin_response_work(
        &self,
        process: &str,
        id: &EntryId,
        state: &str,
    ) -> Result<bool, StoreError> {
        let id = id.to_string();
        let _turn = self.write_turn().await;
        let mut change = self.pool.begin().await?;
        let sql = "UPDATE response_jobs SET state = $1 \
                   WHERE id = $2 AND claimed_by = $3 AND state <> $4";
        let query = sqlx::query(sql).bind(state).bind(&id).bind(process);
        let begun = query.bind(CANCELLED_JOB).execute(&mut change).await?;
        let sql = "UPDATE responses SET status = 'in_progress' WHERE id = $1 AND status = 'queued'";
        sqlx::query(sql).bind(&id).execute(&mut change).await?;
        change.commit().await?;
        Ok(begun.rows_affected() == 1)
    }

    /// Holds on to a job that this process has claimed.
    pub async fn renew_response_job(
        &self,
        process: &str,
        id: &EntryId,
        until_ms: i64,
    ) -> Result<JobHold, StoreError> {
        let sql = "UPDATE response_jobs SET claimed_until = $1 WHERE id = $2 AND claimed_by = $3 \
                   RETURNING state";
        let _turn = self.write_turn().await;
        let query = sqlx::query_scalar(sql).bind(until_ms).bind(id.to_string());
        let state: Option<String> = query
            .bind(process)
            .fetch_optional(&mut self.pool.acquire().await?)
            .await?;
        Ok(match state.as_deref() {
            None => JobHold::Lost,
            Some(CANCELLED_JOB) => JobHold::Cancelled,
            Some(_) => JobHold::Renewed,
        })
    }

    /// Cancels a response of a key that has not ended. Its job is due at once, and its end charges what it took. Returns whether there
    /// was one.
    pub async fn cancel_response(
        &self,
        (id, key_id): (&str, &str),
        now_ms: i64,
    ) -> Result<bool, StoreError> {
        let _turn = self.write_turn().await;
        let mut change = self.pool.begin().await?;
        let sql = "UPDATE response_jobs SET state = $1, due_at = $2 WHERE id = $3 AND key_id = $4";
        let query = sqlx::query(sql).bind(CANCELLED_JOB).bind(now_ms);
        let cancelled = query.bind(id).bind(key_id).execute(&mut change).await?;
        let is_cancelled = cancelled.rows_affected() == 1;
        if is_cancelled {
            let sql = "UPDATE responses SET status = 'cancelled' WHERE id = $1";
            sqlx::query(sql).bind(id).execute(&mut change).await?;
        }
        change.commit().await?;
        Ok(is_cancelled)
    }

    /// Returns the hash of a key, by which its caller is found.
    pub async fn key_hash(&self, key_id: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let sql = "SELECT hash FROM api_keys WHERE id = $1";
        let query = sqlx::query_scalar(sql).bind(key_id);
        let mut connection = self.pool.acquire().await?;
        Ok(query.fetch_optional(&mut connection).await?)
    }
}
