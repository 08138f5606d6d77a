//! What the calls of a provider have taken, by day and model.

use filters::ledger::usage_query::UsageHours;
use filters::money::Usd;
use sqlx::Row;
use sqlx::any::AnyRow;

use super::super::{Store, StoreError};
use super::days::DAY_HOURS;
use super::usage::{columns, read_usage};

/// The sum of the calls of a model at a provider on a day.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ProviderDay {
    /// The number of the day since the beginning of 1970 in UTC.
    pub day: i64,
    pub model: String,
    pub requests: u64,
    pub prompt_tokens: u64,
    pub cached_tokens: u64,
    pub cache_write_tokens: u64,
    pub completion_tokens: u64,
    pub reasoning_tokens: u64,
    pub cost: Usd,
}

impl Store {
    /// Returns what a provider has served of whole days, for all organizations. Cost: reads the sums of all these hours.
    pub async fn provider_days(
        &self,
        provider: &str,
        hours: UsageHours,
    ) -> Result<Vec<ProviderDay>, StoreError> {
        let more = ["cache_write_tokens", "reasoning_tokens"];
        let more = more.map(|column| format!("CAST(SUM({column}) AS BIGINT) AS {column}"));
        let sql = format!(
            "SELECT hour / {DAY_HOURS} AS day, {more}, {columns} \
             FROM organizations o CROSS JOIN usage_hours WHERE organization_id = o.id \
             AND hour >= $1 AND hour < $2 AND provider = $3 GROUP BY hour / {DAY_HOURS}, model ORDER BY 1, model",
            more = more.join(", "),
            columns = columns("model", "SUM(requests)"),
        );
        let query = sqlx::query(sqlx::AssertSqlSafe(sql));
        let query = query.bind(hours.from).bind(hours.until);
        let query = query.bind(provider.to_owned());
        let rows = query.fetch_all(&mut self.pool.acquire().await?).await?;
        rows.iter().map(read).collect()
    }
}

fn read(row: &AnyRow) -> Result<ProviderDay, StoreError> {
    let count = |sum: i64| u64::try_from(sum).unwrap_or_default();
    let usage = read_usage(row)?;
    Ok(ProviderDay {
        day: row.try_get("day")?,
        requests: count(usage.requests),
        prompt_tokens: count(usage.prompt_tokens),
        cached_tokens: count(usage.cached_tokens),
        cache_write_tokens: count(row.try_get("cache_write_tokens")?),
        completion_tokens: count(usage.completion_tokens),
        reasoning_tokens: count(row.try_get("reasoning_tokens")?),
        cost: usage.cost,
        model: usage.name,
    })
}
