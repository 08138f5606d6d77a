//! Sums of the ledger by key, model, provider or day.

use std::borrow::Cow;
use std::collections::BTreeMap;

use filters::ledger::usage_query::hour_text;
use filters::ledger::{CallOutcome, LedgerEntry};
use filters::money::Usd;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::super::{Store, StoreError};
use super::days::{DAY_HOURS, first_of_day};
use super::{HOUR_MS, join_cost};

/// What usage is grouped by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum By {
    Key,
    /// By the model's id in the catalogue.
    Model,
    Provider,
    /// By the day in UTC on which calls ended, as in `2026-11-27`.
    Day,
}

/// The SQL of the number of a day since the beginning of 1970, of sums and of single calls.
const DAY_OF_HOUR: &str = "CAST(hour / 24 AS TEXT)";
const DAY_OF_CALL: &str = "CAST(at / 86400000 AS TEXT)";

impl By {
    /// Returns the group's name.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Model => "model",
            Self::Provider => "provider",
            Self::Day => "day",
        }
    }

    /// Returns the column of a table, in which `day` is the SQL of a day.
    fn column(self, day: &'static str) -> &'static str {
        match self {
            Self::Key => "key_id",
            Self::Model => "model",
            Self::Provider => "provider",
            Self::Day => day,
        }
    }

    fn name(self, call: &LedgerEntry) -> Cow<'_, str> {
        match self {
            Self::Key => Cow::Borrowed(&call.owner.key_id),
            Self::Model => Cow::Borrowed(&call.usage.model),
            Self::Provider => Cow::Borrowed(&call.usage.provider),
            Self::Day => Cow::Owned((call.at_ms.div_euclid(HOUR_MS) / DAY_HOURS).to_string()),
        }
    }
}

/// The sum of calls that were completed or cut short.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Usage {
    /// The key, model, provider, day, session or agent; empty for the sum of all.
    pub name: String,
    pub requests: i64,
    pub prompt_tokens: i64,
    /// Prompt tokens read from a provider's cache.
    pub cached_tokens: i64,
    pub completion_tokens: i64,
    /// The cost, including calls that BYOK keys paid.
    pub cost: Usd,
}

impl Usage {
    /// Returns the sum of sums.
    pub fn sum<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        let mut sum = Self::default();
        parts.for_each(|part| sum.add(part));
        sum
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.requests += other.requests;
        self.prompt_tokens = self.prompt_tokens.saturating_add(other.prompt_tokens);
        self.cached_tokens = self.cached_tokens.saturating_add(other.cached_tokens);
        self.completion_tokens = self
            .completion_tokens
            .saturating_add(other.completion_tokens);
        self.cost = self.cost.plus(other.cost);
    }
}

/// The hours since a time.
pub(super) struct Since {
    /// The first whole hour.
    pub(super) first_hour: i64,
    /// The hour in which the time falls, if some of it was before.
    pub(super) cut_hour: Option<i64>,
}

impl Since {
    pub(super) fn new(since_ms: i64) -> Self {
        let hour = since_ms.div_euclid(HOUR_MS);
        let is_whole = since_ms == hour * HOUR_MS;
        Self {
            first_hour: if is_whole { hour } else { hour + 1 },
            cut_hour: (!is_whole).then_some(hour),
        }
    }
}

impl Store {
    /// Returns the hours since a time. Of a day whose hours were joined all count.
    pub(super) async fn since(&self, since_ms: i64) -> Result<Since, StoreError> {
        let hour = since_ms.div_euclid(HOUR_MS);
        let is_joined = hour < self.joined_before().await?;
        Ok(Since::new(match is_joined {
            true => first_of_day(hour) * HOUR_MS,
            false => since_ms,
        }))
    }
}

/// Sums by name.
#[derive(Default)]
struct Sums(BTreeMap<String, Usage>);

impl Store {
    /// Returns the usage of an organization since a time, as one sum or one per key, model, provider or day.
    ///
    /// The sums of whole hours are kept for good. Of the hour in which `since_ms` falls the single calls count, or the
    /// whole hour if they have been deleted. Errors: [`StoreError::NotFound`].
    pub async fn usage(
        &self,
        organization: &str,
        since_ms: i64,
        group: Option<By>,
    ) -> Result<Vec<Usage>, StoreError> {
        let id = self.organization(organization).await?.id;
        let Since {
            first_hour,
            cut_hour,
        } = self.since(since_ms).await?;
        let mut sums = self.sum_hours(&id, (first_hour, i64::MAX), group).await?;
        if let Some(hour) = cut_hour {
            let of_hour = self.sum_hours(&id, (hour, first_hour), group).await?;
            let in_hour = self.sum_calls(&id, (hour, since_ms), group).await?;
            sums.append(in_hour.unless_fewer_than(of_hour));
        }
        Ok(sums.into_rows(group))
    }

    /// Sums the hours from one on and before another.
    async fn sum_hours(
        &self,
        id: &str,
        (from, until): (i64, i64),
        group: Option<By>,
    ) -> Result<Sums, StoreError> {
        let sql = format!(
            "SELECT {} FROM usage_hours WHERE organization_id = $1 AND hour >= $2 AND hour < $3{}",
            columns(name_of(group, DAY_OF_HOUR), "SUM(requests)"),
            group_by(group, DAY_OF_HOUR)
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.to_owned());
        let rows = query
            .bind(from)
            .bind(until)
            .fetch_all(&mut self.pool.acquire().await?)
            .await?;
        Sums::read(&rows)
    }

    /// Sums the single calls of an hour: all of them, and those since a time.
    async fn sum_calls(
        &self,
        id: &str,
        (hour, since_ms): (i64, i64),
        group: Option<By>,
    ) -> Result<CallSums, StoreError> {
        let (start_ms, end_ms) = (hour * HOUR_MS, (hour + 1) * HOUR_MS);
        let mut sums = CallSums {
            all: self
                .sum_rows(id, (start_ms, end_ms), group)
                .await?
                .requests(),
            since: self.sum_rows(id, (since_ms, end_ms), group).await?,
        };
        let is_wanted = |owner: &filters::ledger::CallOwner| *owner.organization_id == *id;
        self.visit_calls((start_ms, end_ms), is_wanted, |call| {
            if call.outcome == CallOutcome::Failed {
                return;
            }
            sums.all += 1;
            if call.at_ms >= since_ms {
                let name = group.map_or(Cow::Borrowed(""), |by| by.name(call));
                sums.since.add(&name, &of_call(call));
            }
        })
        .await?;
        Ok(sums)
    }

    /// Sums the calls that earlier versions stored as rows.
    async fn sum_rows(
        &self,
        id: &str,
        (from_ms, until_ms): (i64, i64),
        group: Option<By>,
    ) -> Result<Sums, StoreError> {
        let sql = format!(
            "SELECT {} FROM ledger WHERE organization_id = $1 AND at >= $2 AND at < $3{}",
            columns(name_of(group, DAY_OF_CALL), "COUNT(*)"),
            group_by(group, DAY_OF_CALL)
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(id.to_owned());
        let mut connection = self.pool.acquire().await?;
        let rows = query
            .bind(from_ms)
            .bind(until_ms)
            .fetch_all(&mut connection);
        Sums::read(&rows.await?)
    }
}

/// The single calls of an hour.
struct CallSums {
    all: i64,
    /// Those since a time.
    since: Sums,
}

impl CallSums {
    /// Returns the calls since the time, or the whole hour if some of its calls are gone.
    fn unless_fewer_than(self, of_hour: Sums) -> Sums {
        if self.all < of_hour.requests() {
            of_hour
        } else {
            self.since
        }
    }
}

impl Sums {
    fn read(rows: &[AnyRow]) -> Result<Self, StoreError> {
        let mut sums = Self::default();
        for row in rows {
            let usage = read_usage(row)?;
            sums.add(&usage.name, &usage);
        }
        Ok(sums)
    }

    fn add(&mut self, name: &str, usage: &Usage) {
        if !self.0.contains_key(name) {
            let name = name.to_owned();
            self.0.insert(
                name.clone(),
                Usage {
                    name,
                    ..Usage::default()
                },
            );
        }
        if let Some(sum) = self.0.get_mut(name) {
            sum.add(usage);
        }
    }

    fn append(&mut self, other: Self) {
        for (name, usage) in other.0 {
            self.add(&name, &usage);
        }
    }

    fn requests(&self) -> i64 {
        self.0.values().map(|usage| usage.requests).sum()
    }

    /// Returns the sums in the order of their names or days. The sum of all exists even if it is zero.
    fn into_rows(mut self, group: Option<By>) -> Vec<Usage> {
        if group.is_none() {
            self.0.entry(String::new()).or_default();
        }
        let mut rows: Vec<Usage> = self.0.into_values().collect();
        if group == Some(By::Day) {
            for row in &mut rows {
                let day: i64 = row.name.parse().unwrap_or_default();
                let day = hour_text(day.saturating_mul(DAY_HOURS));
                row.name = day.split('T').next().unwrap_or_default().to_owned();
            }
            rows.sort_by(|a, b| a.name.cmp(&b.name));
        }
        rows
    }
}

/// Reads a row of [`columns`].
pub(super) fn read_usage(row: &AnyRow) -> Result<Usage, StoreError> {
    Ok(Usage {
        name: row.try_get("name")?,
        requests: row.try_get("requests")?,
        prompt_tokens: row.try_get("prompt_tokens")?,
        cached_tokens: row.try_get("cached_tokens")?,
        completion_tokens: row.try_get("completion_tokens")?,
        cost: join_cost(row.try_get("cost_nano")?, row.try_get("cost_rest")?),
    })
}

fn name_of(group: Option<By>, day: &'static str) -> &'static str {
    group.map_or("''", |by| by.column(day))
}

/// Returns the columns of a sum. `name` is what it is the sum of, and `requests` counts the calls.
pub(super) fn columns(name: &str, requests: &str) -> String {
    let sums = [
        "prompt_tokens",
        "cached_tokens",
        "completion_tokens",
        "cost_nano",
        "cost_rest",
    ];
    let sums = sums.map(|column| format!("CAST(SUM({column}) AS BIGINT) AS {column}"));
    format!(
        "{name} AS name, CAST({requests} AS BIGINT) AS requests, {}",
        sums.join(", ")
    )
}

/// Returns the grouping. A sum of nothing is no row.
fn group_by(group: Option<By>, day: &'static str) -> String {
    let column = group.map_or("organization_id", |by| by.column(day));
    format!(" GROUP BY {column}")
}

/// Returns a single call.
pub(super) fn of_call(call: &LedgerEntry) -> Usage {
    let count = |tokens| i64::try_from(tokens).unwrap_or(i64::MAX);
    Usage {
        name: String::new(),
        requests: 1,
        prompt_tokens: count(call.usage.prompt_tokens),
        cached_tokens: count(call.usage.cached_tokens),
        completion_tokens: count(call.usage.completion_tokens),
        cost: call.usage.total(),
    }
}
