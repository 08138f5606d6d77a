//! Jobs that make videos, as the key that has ordered them finds them.

use sqlx::AssertSqlSafe;

use super::super::{Store, StoreError};
use super::jobs::{COLUMNS, JobKind, StoredJob};

/// Which jobs of a key are listed.
#[derive(Clone, Copy, Debug)]
pub struct VideoJobPage<'a> {
    /// The key.
    pub key_id: &'a str,
    /// The id after which the list begins; empty: with the first.
    pub after: &'a str,
    /// The most jobs.
    pub most: i64,
    /// Whether the oldest comes first.
    pub is_ascending: bool,
}

impl Store {
    /// Returns a job of a key.
    pub async fn video_job(&self, id: &str, key_id: &str) -> Result<Option<StoredJob>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM video_jobs WHERE id = $1 AND key_id = $2");
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id).bind(key_id);
        let row = query
            .fetch_optional(&mut self.pool.acquire().await?)
            .await?;
        row.map(|row| self.read_job(JobKind::Video, &row))
            .transpose()
    }

    /// Returns jobs of a key, in the order in which they were made or the other way round.
    pub async fn video_jobs(&self, page: &VideoJobPage<'_>) -> Result<Vec<StoredJob>, StoreError> {
        let (is_after, order) = match page.is_ascending {
            true => ("id > $2", "ASC"),
            false => ("($2 = '' OR id < $2)", "DESC"),
        };
        let sql = format!(
            "SELECT {COLUMNS} FROM video_jobs WHERE key_id = $1 AND {is_after} \
             ORDER BY id {order} LIMIT $3"
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(page.key_id);
        let query = query.bind(page.after).bind(page.most);
        let rows = query.fetch_all(&mut self.pool.acquire().await?).await?;
        rows.iter()
            .map(|row| self.read_job(JobKind::Video, row))
            .collect()
    }

    /// Forgets a job of a key that has ended. Returns whether there was one.
    pub async fn delete_video_job(&self, id: &str, key_id: &str) -> Result<bool, StoreError> {
        let sql = "DELETE FROM video_jobs WHERE id = $1 AND key_id = $2 AND is_open = 0";
        let _turn = self.write_turn().await;
        let query = sqlx::query(sql).bind(id).bind(key_id);
        let done = query.execute(&mut self.pool.acquire().await?).await?;
        Ok(done.rows_affected() == 1)
    }

    /// Forgets jobs that have ended and were ordered before this time.
    pub async fn delete_old_video_jobs(&self, before_ms: i64) -> Result<(), StoreError> {
        let sql = "DELETE FROM video_jobs WHERE is_open = 0 AND created_at < $1";
        let _turn = self.write_turn().await;
        sqlx::query(sql)
            .bind(before_ms)
            .execute(&mut self.pool.acquire().await?)
            .await?;
        Ok(())
    }
}
