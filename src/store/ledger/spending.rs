//! What was spent in a time, by all organizations or by one, in the parts that were the largest: for people who look at it.
//!
//! Whole hours are summed, so that a sum equals those of `weirgate usage`. Failed calls are no usage and are not among them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use filters::ledger::usage_query::{Granularity, UsageHours};
use filters::money::Usd;
use sqlx::any::AnyRow;
use sqlx::{AssertSqlSafe, Row};

use super::super::{Store, StoreError};
use super::Rows;
use super::usage::{Usage, columns, read_usage};

/// The number of parts that are told apart; all others are one sum.
pub const MAX_SPENDERS: usize = 8;

/// What spending is divided by.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub enum SpendBy {
    Organization,
    /// By the model's id in the catalogue.
    Model,
    Provider,
    Key,
}

/// A question about what was spent.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct SpendQuery {
    /// The id of the only organization; `None`: all that there are.
    pub organization_id: Option<Arc<str>>,
    /// Of a day whose hours were joined all count.
    pub hours: UsageHours,
    pub granularity: Granularity,
    pub by: SpendBy,
}

/// What was spent in a time. Its size is bounded by the periods of the question.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Spending {
    /// All of it.
    pub total: Usage,
    /// The parts that cost most, the largest first.
    pub spenders: Vec<Spender>,
    /// All other parts, as one.
    pub others: Usage,
    /// The periods that have calls, in the order of time.
    pub periods: Vec<SpendingPeriod>,
}

/// A part of what was spent.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Spender {
    /// The sum, under the id of an organization or a key, or under a model or a provider.
    pub usage: Usage,
    /// What an organization or a key is called. `None` for others, and for a key that was deleted.
    pub label: Option<String>,
}

/// A period of what was spent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SpendingPeriod {
    /// The number of its first hour since the beginning of 1970 in UTC.
    pub first_hour: i64,
    /// The requests of all parts.
    pub requests: i64,
    /// The costs of [`Spending::spenders`], in their order, and then that of all others.
    pub costs: Vec<Usd>,
}

impl SpendBy {
    /// All divisions.
    pub const ALL: [Self; 4] = [Self::Organization, Self::Model, Self::Provider, Self::Key];

    /// Returns its word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Organization => "organization",
            Self::Model => "model",
            Self::Provider => "provider",
            Self::Key => "key",
        }
    }

    fn column(self) -> &'static str {
        match self {
            Self::Organization => "organization_id",
            Self::Model => "model",
            Self::Provider => "provider",
            Self::Key => "key_id",
        }
    }

    /// Returns the table and the column of what its parts are called.
    fn labels(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::Organization => Some(("organizations", "name")),
            Self::Key => Some(("api_keys", "label")),
            Self::Model | Self::Provider => None,
        }
    }
}

/// The sum of a part in a period.
struct PeriodPart {
    period: i64,
    is_other: bool,
    usage: Usage,
}

impl Store {
    /// Returns what was spent. Cost: reads the sums of all these hours once; the database divides them, so that of any number of
    /// parts few come back.
    pub async fn spending(&self, asked: &SpendQuery) -> Result<Spending, StoreError> {
        let from = self.first_counted_hour(asked.hours.from).await?;
        let query = sqlx::query(AssertSqlSafe(asked.sql()));
        let query = query.bind(from).bind(asked.hours.until);
        let query = match &asked.organization_id {
            None => query,
            Some(id) => query.bind(&**id),
        };
        let rows = query.fetch_all(&mut self.pool.acquire().await?).await?;
        let parts: Result<Vec<PeriodPart>, StoreError> =
            rows.iter().map(PeriodPart::read).collect();
        let mut spending = Spending::new(parts?, asked.granularity);
        self.add_labels(&mut spending, asked.by).await?;
        Ok(spending)
    }

    /// Adds what the parts are called.
    async fn add_labels(&self, spending: &mut Spending, by: SpendBy) -> Result<(), StoreError> {
        let Some((table, column)) = by.labels() else {
            return Ok(());
        };
        let mut connection = self.pool.acquire().await?;
        let ids = spending.spenders.iter().map(|it| &*it.usage.name);
        let ids = Rows::from_texts(&connection, ids)?;
        let sql = format!(
            "SELECT t.id, t.{column} AS label FROM (SELECT value ->> 0 AS id FROM {{rows}}) r \
             CROSS JOIN {table} t WHERE t.id = r.id"
        );
        let rows = ids.query(&sql).fetch_all(&mut connection).await?;
        let read = |row: &AnyRow| Ok((row.try_get("id")?, row.try_get("label")?));
        let labels: Result<HashMap<String, String>, StoreError> = rows.iter().map(read).collect();
        let mut labels = labels?;
        for spender in &mut spending.spenders {
            spender.label = labels.remove(&spender.usage.name);
        }
        Ok(())
    }
}

impl SpendQuery {
    /// Returns the SQL: `$1` and `$2` are the hours, `$3` the organization. All hours are read once, for `sums`; whatever comes
    /// behind it works on their sums.
    fn sql(&self) -> String {
        // The hours of each organization stand together, so each is looked up by its id instead of in the whole table.
        let source = match self.organization_id {
            None => {
                "organizations o CROSS JOIN usage_hours WHERE organization_id = o.id \
                 AND hour >= $1 AND hour < $2"
            }
            Some(_) => "usage_hours WHERE organization_id = $3 AND hour >= $1 AND hour < $2",
        };
        let hours = self.granularity.hours();
        let column = self.by.column();
        format!(
            "WITH sums AS MATERIALIZED (SELECT hour / {hours} AS period, {part} FROM {source} \
             GROUP BY hour / {hours}, {column}), \
             largest AS MATERIALIZED (SELECT name AS large FROM sums GROUP BY name ORDER BY {cost}, name LIMIT {MAX_SPENDERS}), \
             divided AS (SELECT period, CAST(CASE WHEN large IS NULL THEN 1 ELSE 0 END AS BIGINT) AS is_other, \
             COALESCE(large, '') AS part, requests, prompt_tokens, cached_tokens, completion_tokens, cost_nano, cost_rest \
             FROM sums LEFT JOIN largest ON large = name) \
             SELECT period, is_other, {sums} FROM divided GROUP BY period, is_other, part ORDER BY period",
            part = columns(column, "SUM(requests)"),
            cost = BY_COST,
            sums = columns("part", "SUM(requests)"),
        )
    }
}

/// The SQL that sorts by cost, the greatest first. A cost is in two columns, and the second may be more than one of the first.
const BY_COST: &str = "CAST(SUM(cost_nano) AS BIGINT) + CAST(SUM(cost_rest) AS BIGINT) / 1000000000 DESC, \
     CAST(SUM(cost_rest) AS BIGINT) % 1000000000 DESC, SUM(requests) DESC";

impl PeriodPart {
    fn read(row: &AnyRow) -> Result<Self, StoreError> {
        Ok(Self {
            period: row.try_get("period")?,
            is_other: row.try_get::<i64, _>("is_other")? != 0,
            usage: read_usage(row)?,
        })
    }
}

impl Spending {
    /// Makes it of parts in the order of time.
    fn new(parts: Vec<PeriodPart>, granularity: Granularity) -> Self {
        let mut spending = Self {
            total: Usage::sum(parts.iter().map(|part| &part.usage)),
            others: Usage::sum(parts.iter().filter(|it| it.is_other).map(|it| &it.usage)),
            ..Self::default()
        };
        let mut spenders: BTreeMap<&str, Usage> = BTreeMap::new();
        for part in parts.iter().filter(|part| !part.is_other) {
            spenders
                .entry(&part.usage.name)
                .or_default()
                .add(&part.usage);
        }
        let spenders = spenders.into_iter().map(|(name, sum)| Spender {
            usage: Usage {
                name: name.to_owned(),
                ..sum
            },
            label: None,
        });
        spending.spenders = spenders.collect();
        let by_cost = |a: &Spender, b: &Spender| {
            let by_cost = b.usage.cost.cmp(&a.usage.cost);
            by_cost.then(b.usage.requests.cmp(&a.usage.requests))
        };
        spending.spenders.sort_by(by_cost);
        let places = spending.spenders.iter().enumerate();
        let places: HashMap<&str, usize> = places.map(|(at, it)| (&*it.usage.name, at)).collect();
        let width = places.len() + 1;
        for part in &parts {
            let first_hour = part.period * granularity.hours();
            if spending
                .periods
                .last()
                .is_none_or(|last| last.first_hour != first_hour)
            {
                spending.periods.push(SpendingPeriod {
                    first_hour,
                    requests: 0,
                    costs: vec![Usd::ZERO; width],
                });
            }
            let place = match part.is_other {
                true => Some(width - 1),
                false => places.get(&*part.usage.name).copied(),
            };
            let Some(period) = spending.periods.last_mut() else {
                continue;
            };
            period.requests += part.usage.requests;
            let cost = place.and_then(|at| period.costs.get_mut(at));
            if let Some(cost) = cost {
                *cost = cost.plus(part.usage.cost);
            }
        }
        spending
    }
}
