//! Who has called certain models, by key.

use filters::money::{BilledTokens, Usd};
use sqlx::Row;
use sqlx::any::AnyRow;

use super::super::{Store, StoreError};
use super::rows::Rows;
use super::usage::{Usage, columns, read_usage};

/// The maximum number of callers that are told.
pub const MAX_CALLERS: usize = 10_000;

/// What a key has called of a model at a provider.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ModelCaller {
    pub provider: String,
    /// The organization's name.
    pub organization: String,
    pub key_id: String,
    /// What the key is called; `None`: it was deleted.
    pub key_label: Option<String>,
    /// The last hour with a call, numbered from the beginning of 1970 in UTC. Of a day whose hours were joined it is the first.
    pub last_hour: i64,
    /// The sum, under the model's id.
    pub usage: Usage,
    cache_write_tokens: i64,
    reasoning_tokens: i64,
    web_searches: i64,
}

/// The callers of models, those with the most calls first.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ModelCallers {
    pub callers: Vec<ModelCaller>,
    /// Whether there are more than [`MAX_CALLERS`], which are left out.
    pub is_cut: bool,
}

impl ModelCaller {
    /// Returns the tokens and searches of all its calls.
    pub fn tokens(&self) -> BilledTokens {
        let count = |sum: i64| u64::try_from(sum).unwrap_or_default();
        BilledTokens {
            prompt: count(self.usage.prompt_tokens),
            cached: count(self.usage.cached_tokens),
            written_5m: count(self.cache_write_tokens),
            completion: count(self.usage.completion_tokens),
            reasoning: count(self.reasoning_tokens),
            web_searches: count(self.web_searches),
            ..BilledTokens::default()
        }
    }

    /// Returns the cost that the ledger has.
    pub fn cost(&self) -> Usd {
        self.usage.cost
    }
}

impl Store {
    /// Returns who has called these models from an hour on. Of a day whose hours were joined all calls count. Cost: reads the sums
    /// of all these hours.
    pub async fn model_callers(
        &self,
        models: &[&str],
        from_hour: i64,
    ) -> Result<ModelCallers, StoreError> {
        let from_hour = self.first_counted_hour(from_hour).await?;
        let mut connection = self.pool.acquire().await?;
        let ids = Rows::from_texts(&connection, models.iter().copied())?;
        let more = ["cache_write_tokens", "reasoning_tokens", "web_searches"];
        let more = more.map(|column| format!("CAST(SUM({column}) AS BIGINT) AS {column}"));
        let sql = format!(
            "SELECT u.provider, o.name AS organization, u.key_id, k.label, \
             CAST(MAX(u.hour) AS BIGINT) AS last_hour, {more}, {columns} \
             FROM organizations o CROSS JOIN usage_hours u LEFT JOIN api_keys k ON k.id = u.key_id \
             WHERE u.organization_id = o.id AND u.hour >= $2 AND u.model IN (SELECT value ->> 0 FROM {{rows}}) \
             GROUP BY u.model, u.provider, o.name, u.key_id, k.label \
             ORDER BY SUM(requests) DESC, u.model, u.provider, u.key_id LIMIT {limit}",
            more = more.join(", "),
            columns = columns("u.model", "SUM(requests)"),
            limit = MAX_CALLERS + 1,
        );
        let query = ids.query(&sql).bind(from_hour);
        let rows = query.fetch_all(&mut connection).await?;
        let callers: Result<Vec<ModelCaller>, StoreError> =
            rows.iter().take(MAX_CALLERS).map(read).collect();
        Ok(ModelCallers {
            callers: callers?,
            is_cut: rows.len() > MAX_CALLERS,
        })
    }
}

fn read(row: &AnyRow) -> Result<ModelCaller, StoreError> {
    Ok(ModelCaller {
        provider: row.try_get("provider")?,
        organization: row.try_get("organization")?,
        key_id: row.try_get("key_id")?,
        key_label: row.try_get("label")?,
        last_hour: row.try_get("last_hour")?,
        usage: read_usage(row)?,
        cache_write_tokens: row.try_get("cache_write_tokens")?,
        reasoning_tokens: row.try_get("reasoning_tokens")?,
        web_searches: row.try_get("web_searches")?,
    })
}
