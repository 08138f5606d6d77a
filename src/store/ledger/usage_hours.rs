//! Sums of whole hours, for callers who ask about themselves.

use std::collections::HashMap;
use std::sync::Arc;

use filters::ledger::usage_query::{BreakdownQuery, UsageGroup, UsageOrder, UsageQuery};
use sqlx::any::{AnyArguments, AnyRow};
use sqlx::query::Query;
use sqlx::{Any, AssertSqlSafe, Row};

use super::super::{Store, StoreError};
use super::Rows;
use super::hour_tables::{SESSIONS, TAGS, USAGE};
use super::usage::{Usage, columns, read_usage};

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
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct UsagePart {
    /// The sum, under the id of a key, a model, a provider, a session or an agent.
    pub usage: Usage,
    pub label: Option<String>,
    /// Of an agent alone.
    pub origin: Option<AgentOrigin>,
}

/// Where an agent belongs.
#[derive(Clone, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct AgentOrigin {
    pub session: String,
    /// The agent that has asked it; empty: unknown.
    pub parent: String,
}

/// How the rows of a table are summed.
pub(super) struct Grouping {
    table: &'static str,
    /// The column that names a sum.
    name: &'static str,
    /// The columns that have one value in a sum.
    key: &'static str,
    /// Further columns of a sum.
    more: &'static str,
}

impl Grouping {
    pub(super) fn new(group: UsageGroup) -> Self {
        let (table, name) = match group {
            UsageGroup::ApiKey => (USAGE.name, "key_id"),
            UsageGroup::Model => (USAGE.name, "model"),
            UsageGroup::Provider => (USAGE.name, "provider"),
            UsageGroup::Session => (SESSIONS.name, "session_id"),
            UsageGroup::Agent => (SESSIONS.name, "agent_id"),
            UsageGroup::Tag => (TAGS.name, "tag"),
        };
        let (key, more) = match group {
            // An agent that a client says to have two parents is one.
            UsageGroup::Agent => (
                "session_id, agent_id",
                ", session_id AS session, MAX(parent_agent_id) AS parent",
            ),
            _ => (name, ""),
        };
        Self {
            table,
            name,
            key,
            more,
        }
    }

    fn read(&self, row: &AnyRow) -> Result<UsagePart, StoreError> {
        let read_origin = || -> Result<AgentOrigin, StoreError> {
            Ok(AgentOrigin {
                session: row.try_get("session")?,
                parent: row.try_get("parent")?,
            })
        };
        Ok(UsagePart {
            usage: read_usage(row)?,
            label: None,
            origin: (!self.more.is_empty()).then(read_origin).transpose()?,
        })
    }
}

impl UsageScope {
    /// Returns the SQL of the calls of the scope in a table: the parameters `$1` to `$3`, or to `$4` with a key.
    fn source(&self, table: &str) -> String {
        let of_key = match self.key_id {
            None => "",
            Some(_) => " AND key_id = $4",
        };
        format!("FROM {table} WHERE organization_id = $1 AND hour >= $2 AND hour < $3{of_key}")
    }

    fn query(&self, sql: String, (from, until): (i64, i64)) -> Query<'_, Any, AnyArguments> {
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
            columns = columns("''", "SUM(requests)"),
            source = scope.source(USAGE.name)
        );
        let from = self.first_counted_hour(asked.hours.from).await?;
        let query = scope.query(sql, (from, asked.hours.until));
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
        let grouping = Grouping::new(asked.group);
        let tail = format!(
            " ORDER BY {order}, {key} LIMIT {limit} OFFSET {offset}",
            order = order(asked.order),
            key = grouping.key,
            limit = asked.limit + 1,
            offset = asked.offset
        );
        let from = self.first_counted_hour(asked.hours.from).await?;
        let hours = (from, asked.hours.until);
        let mut parts = self.read_parts(scope, &grouping, hours, &tail).await?;
        if asked.group == UsageGroup::ApiKey {
            let mut labels = self.key_labels(&parts).await?;
            for part in &mut parts {
                part.label = labels.remove(&part.usage.name);
            }
        }
        Ok(parts)
    }

    /// Returns the parts of the sum of the hours from one on and before another. `tail` is the end of the SQL.
    pub(super) async fn read_parts(
        &self,
        scope: &UsageScope,
        grouping: &Grouping,
        hours: (i64, i64),
        tail: &str,
    ) -> Result<Vec<UsagePart>, StoreError> {
        let sql = format!(
            "SELECT {columns}{more} {source} GROUP BY {key}{tail}",
            columns = columns(grouping.name, "SUM(requests)"),
            more = grouping.more,
            source = scope.source(grouping.table),
            key = grouping.key
        );
        let query = scope.query(sql, hours);
        let rows = query.fetch_all(&mut self.pool.acquire().await?).await?;
        rows.iter().map(|row| grouping.read(row)).collect()
    }

    /// Returns what the keys of these sums are called.
    async fn key_labels(&self, parts: &[UsagePart]) -> Result<HashMap<String, String>, StoreError> {
        let mut connection = self.pool.acquire().await?;
        let ids = Rows::from_texts(&connection, parts.iter().map(|part| &*part.usage.name))?;
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
