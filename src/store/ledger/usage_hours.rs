//! Sums of whole hours, for callers who ask about themselves.

use std::collections::HashMap;
use std::sync::Arc;

use filters::ledger::usage_query::{BreakdownQuery, UsageGroup, UsageOrder, UsageQuery};
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe, Row};

use super::super::{Store, StoreError};
use super::Rows;
use super::usage::{By, Usage, columns, read_usage};

/// Whose calls are summed.
#[derive(Clone, Debug)]
pub struct UsageScope {
    pub organization_id: Arc<str>,
    /// The id of the only key; `None`: all keys of the organization.
    pub key_id: Option<Arc<str>>,
}

/// The sum of a period.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PeriodUsage {
    /// The number of its first hour since the beginning of 1970 in UTC.
    pub first_hour: i64,
    pub usage: Usage,
}

/// A part of a sum.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UsagePart {
    /// The sum, under the id of a key, a model or a provider.
    pub usage: Usage,
    pub label: Option<String>,
}

/// The calls of a scope: the parameters `$1` to `$3`, or to `$4` with a key.
const OF_ORGANIZATION: &str =
    "FROM usage_hours WHERE organization_id = $1 AND hour >= $2 AND hour < $3";
const OF_KEY: &str =
    "FROM usage_hours WHERE organization_id = $1 AND hour >= $2 AND hour < $3 AND key_id = $4";

impl UsageScope {
    fn source(&self) -> &'static str {
        match self.key_id {
            None => OF_ORGANIZATION,
            Some(_) => OF_KEY,
        }
    }

    fn query(&self, sql: String, from: i64, until: i64) -> Query<'_, Any, AnyArguments> {
        let query = sqlx::query(AssertSqlSafe(sql)).bind(&*self.organization_id);
        let query = query.bind(from).bind(until);
        match &self.key_id {
            None => query,
            Some(key_id) => query.bind(&**key_id),
        }
    }
}

impl Store {
    /// Returns the sum of each period that has calls, in the order of time. Of a day whose hours were joined
    /// all count. Cost: reads the sums of all these hours.
    pub async fn usage_periods(
        &self,
        scope: &UsageScope,
        asked: UsageQuery,
    ) -> Result<Vec<PeriodUsage>, StoreError> {
        let sql = format!(
            "SELECT hour / {hours} AS period, {columns} {source} GROUP BY hour / {hours} ORDER BY 1",
            hours = asked.granularity.hours(),
            columns = columns(None, "SUM(requests)"),
            source = scope.source()
        );
        let from = self.first_counted_hour(asked.hours.from).await?;
        let query = scope.query(sql, from, asked.hours.until);
        let rows = query.fetch_all(&mut self.pool.acquire().await?).await?;
        let read = |row: &AnyRow| {
            let period: i64 = row.try_get("period")?;
            Ok(PeriodUsage {
                first_hour: period * asked.granularity.hours(),
                usage: read_usage(row)?,
            })
        };
        rows.iter().map(read).collect()
    }

    /// Returns a page of the parts of a sum, the greatest first, and one part more if the page is not the last. Cost: as above.
    pub async fn usage_parts(
        &self,
        scope: &UsageScope,
        asked: BreakdownQuery,
    ) -> Result<Vec<UsagePart>, StoreError> {
        let by = match asked.group {
            UsageGroup::ApiKey => By::Key,
            UsageGroup::Model => By::Model,
            UsageGroup::Provider => By::Provider,
        };
        let sql = format!(
            "SELECT {columns} {source} GROUP BY {column} ORDER BY {order}, {column} LIMIT {limit} OFFSET {offset}",
            columns = columns(Some(by), "SUM(requests)"),
            source = scope.source(),
            column = by.column(),
            order = order(asked.order),
            limit = asked.limit + 1,
            offset = asked.offset
        );
        let from = self.first_counted_hour(asked.hours.from).await?;
        let query = scope.query(sql, from, asked.hours.until);
        let rows = query.fetch_all(&mut self.pool.acquire().await?).await?;
        let sums: Result<Vec<Usage>, StoreError> = rows.iter().map(read_usage).collect();
        let sums = sums?;
        let mut labels = match by {
            By::Key => self.key_labels(&sums).await?,
            By::Model | By::Provider => HashMap::new(),
        };
        let parts = sums.into_iter().map(|usage| UsagePart {
            label: labels.remove(&usage.name),
            usage,
        });
        Ok(parts.collect())
    }

    /// Returns what the keys of these sums are called.
    async fn key_labels(&self, sums: &[Usage]) -> Result<HashMap<String, String>, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let ids = Rows::from_texts(&connection, sums.iter().map(|usage| &*usage.name))?;
        let sql = "SELECT k.id, k.label FROM (SELECT value ->> 0 AS id FROM {rows}) r \
                   CROSS JOIN api_keys k WHERE k.id = r.id";
        let rows = ids.query(sql).fetch_all(&mut connection).await?;
        let read = |row: &AnyRow| Ok((row.try_get("id")?, row.try_get("label")?));
        rows.iter().map(read).collect()
    }
}

/// Returns the columns that sort sums. A cost is in two of them, and the second may be more than one of the first.
fn order(order: UsageOrder) -> &'static str {
    match order {
        UsageOrder::Requests => "SUM(requests) DESC",
        UsageOrder::Tokens => "SUM(prompt_tokens + completion_tokens) DESC",
        UsageOrder::Cost => {
            "CAST(SUM(cost_nano) AS BIGINT) + CAST(SUM(cost_rest) AS BIGINT) / 1000000000 DESC, \
             CAST(SUM(cost_rest) AS BIGINT) % 1000000000 DESC"
        }
    }
}
