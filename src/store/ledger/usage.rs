//! Reports of usage from the ledger.

use filters::money::Usd;
use sqlx::{AssertSqlSafe, Row};

use super::super::{Store, StoreError};
use super::join_cost;

/// How a report groups calls.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum By {
    /// By the key's id.
    Key,
    /// By the model's id in the catalogue.
    Model,
    /// By the provider that replied.
    Provider,
}

impl By {
    /// Returns the group's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Model => "model",
            Self::Provider => "provider",
        }
    }

    fn column(self) -> &'static str {
        match self {
            Self::Key => "key_id",
            Self::Model => "model",
            Self::Provider => "provider",
        }
    }
}

/// The sum of calls that were completed or cut short.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Usage {
    /// The key, model or provider; empty for the sum of all.
    pub name: String,
    /// The number of calls.
    pub requests: i64,
    /// All prompt tokens.
    pub prompt_tokens: i64,
    /// Prompt tokens read from a provider's cache.
    pub cached_tokens: i64,
    /// All completion tokens.
    pub completion_tokens: i64,
    /// The cost, including calls that BYOK keys paid.
    pub cost: Usd,
}

impl Store {
    /// Returns the usage of an organization since a time, as one sum or one per key, model or provider.
    ///
    /// Errors: [`StoreError::NotFound`].
    pub async fn usage(
        &self,
        organization: &str,
        since_ms: i64,
        group: Option<By>,
    ) -> Result<Vec<Usage>, StoreError> {
        let id = self.organization(organization).await?.id;
        let name = group.map_or("''", By::column);
        let group_sql = group.map_or(String::new(), |by| format!(" GROUP BY {0}", by.column()));
        let sum = |column: &str| format!("CAST(COALESCE(SUM({column}), 0) AS BIGINT) AS {column}");
        let sums: Vec<String> = [
            "prompt_tokens",
            "cached_tokens",
            "completion_tokens",
            "cost_nano",
            "cost_rest",
        ]
        .map(sum)
        .into();
        let sql = format!(
            "SELECT {name} AS name, COUNT(*) AS requests, {} FROM ledger \
             WHERE organization_id = $1 AND at >= $2{group_sql} ORDER BY name",
            sums.join(", ")
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id).bind(since_ms);
        let rows = query.fetch_all(&self.pool).await?;
        let read = |row: &sqlx::any::AnyRow| {
            Ok(Usage {
                name: row.try_get("name")?,
                requests: row.try_get("requests")?,
                prompt_tokens: row.try_get("prompt_tokens")?,
                cached_tokens: row.try_get("cached_tokens")?,
                completion_tokens: row.try_get("completion_tokens")?,
                cost: join_cost(row.try_get("cost_nano")?, row.try_get("cost_rest")?),
            })
        };
        rows.iter().map(read).collect()
    }
}
