//! What the ledger says when it is asked.

use filters::money::Usd;
use sqlx::{AssertSqlSafe, Row};

use super::super::{Store, StoreError};
use super::joined;

/// What the calls of a sum have in common.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum By {
    /// The id of their key.
    Key,
    /// Their model, as the catalogue calls it.
    Model,
    /// Who answered.
    Provider,
}

impl By {
    /// The word for it.
    pub fn word(self) -> &'static str {
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

/// Calls that were answered or cut short, summed up.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Usage {
    /// Which key, model or provider; empty where all are one sum.
    pub name: String,
    /// How many.
    pub requests: i64,
    /// All prompt tokens.
    pub prompt_tokens: i64,
    /// Of those, read from a provider's cache.
    pub cached_tokens: i64,
    /// All completion tokens.
    pub completion_tokens: i64,
    /// What they cost, whoever paid.
    pub cost: Usd,
}

impl Store {
    /// The calls of an organization since a moment, in one sum or one per key, model or provider.
    ///
    /// Errors: [`StoreError::Absent`].
    pub async fn usage(
        &self,
        organization: &str,
        since_ms: i64,
        by: Option<By>,
    ) -> Result<Vec<Usage>, StoreError> {
        let id = self.organization(organization).await?.id;
        let name = by.map_or("''", By::column);
        let group = by.map_or(String::new(), |by| format!(" GROUP BY {0}", by.column()));
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
             WHERE organization_id = $1 AND at >= $2{group} ORDER BY name",
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
                cost: joined(row.try_get("cost_nano")?, row.try_get("cost_rest")?),
            })
        };
        rows.iter().map(read).collect()
    }
}
