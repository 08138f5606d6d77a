//! What organizations have spent: the counters of their limits, and the hours of their keys, which processes of the version
//! before read.

use std::collections::BTreeMap;
use std::sync::Arc;

use filters::ledger::{Funding, LedgerEntry, LimitScope, UnknownScope};
use filters::money::Usd;
use filters::money::tally::{PlanTally, Tally};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Row};
use tokio::time::timeout;

use super::super::{Store, StoreError};
use super::counters::{Addition, UNCOUNTED};
use super::rows::Rows;
use super::{HOUR_MS, QUERY_TIMEOUT, counters, finish, join_cost, split_cost, video_jobs};

/// Adds to hours. The last value of a row is 1 if it is counted in the same change. An hour of which something else is not
/// counted stays so as a whole.
pub(super) const ADD: &str = "\
INSERT INTO spent (organization_id, key_id, hour, funding, is_premium, member_id, \
    first_at, last_at, cost_nano, cost_rest, counted_nano, counted_rest) \
SELECT value ->> 0, value ->> 1, CAST(value ->> 2 AS BIGINT), value ->> 3, \
    CAST(value ->> 4 AS BIGINT), value ->> 5, CAST(value ->> 6 AS BIGINT), \
    CAST(value ->> 7 AS BIGINT), CAST(value ->> 8 AS BIGINT), CAST(value ->> 9 AS BIGINT), \
    CAST(value ->> 8 AS BIGINT) * CAST(value ->> 10 AS BIGINT), \
    CAST(value ->> 9 AS BIGINT) * CAST(value ->> 10 AS BIGINT) \
FROM {rows} WHERE 1 = 1 \
ON CONFLICT (organization_id, key_id, hour, funding, is_premium, member_id) DO UPDATE SET \
    last_at = CASE WHEN excluded.last_at > spent.last_at THEN excluded.last_at \
    ELSE spent.last_at END, \
    cost_nano = spent.cost_nano + excluded.cost_nano, \
    cost_rest = spent.cost_rest + excluded.cost_rest, \
    counted_nano = spent.counted_nano + CASE WHEN spent.counted_nano = spent.cost_nano \
    AND spent.counted_rest = spent.cost_rest THEN excluded.counted_nano ELSE 0 END, \
    counted_rest = spent.counted_rest + CASE WHEN spent.counted_nano = spent.cost_nano \
    AND spent.counted_rest = spent.cost_rest THEN excluded.counted_rest ELSE 0 END";

/// The spending of a key in one hour, for one kind of model and one funding.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SpentRow {
    /// The key's id.
    pub key_id: String,
    /// The id of the member who owned it.
    pub member_id: Option<String>,
    /// Whether the organization's plan paid.
    pub is_plan: bool,
    /// Whether the models were premium.
    pub is_premium: bool,
    /// When the first and the last call ended, in unix milliseconds.
    pub ended_ms: (i64, i64),
    /// The cost.
    pub cost: Usd,
}

/// What an organization has spent, as of one moment.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Spending {
    /// The counters of its keys, by id.
    pub keys: Vec<(Arc<str>, Tally)>,
    /// The same of its members.
    pub members: Vec<(Arc<str>, Tally)>,
    /// The counter of its plan.
    pub plan: PlanTally,
    /// What is in no counter: what processes of the version before have just added, oldest first, and behind it what open
    /// jobs may cost.
    pub rows: Vec<SpentRow>,
    /// How many times the process had stored calls, all of which are included.
    pub posts: i64,
}

impl Store {
    /// Returns how many times a process has stored calls.
    pub async fn posts(&self, owner: &str) -> Result<i64, StoreError> {
        let sql = "SELECT posts FROM journal_owners WHERE owner = $1";
        let mut connection = self.ledger_pool.acquire().await?;
        let query = sqlx::query_scalar(sql).bind(owner);
        let read = timeout(QUERY_TIMEOUT, query.fetch_optional(connection.unlimited()?)).await;
        let posts: Option<i64> = finish(connection, read.map(|read| Ok(read?)))?;
        Ok(posts.unwrap_or_default())
    }

    /// Returns what an organization has spent, and what open jobs may cost. Cost: a row for each of its keys and members,
    /// however long they have spent.
    pub async fn spent(&self, owner: &str, organization_id: &str) -> Result<Spending, StoreError> {
        let sql = format!(
            "SELECT 'counter' AS part, scope AS name, sums AS detail, '' AS member_id, \
             0 AS is_premium, 0 AS first_at, 0 AS last_at, 0 AS nano, 0 AS rest \
             FROM limit_counters WHERE organization_id = $1 \
             UNION ALL \
             SELECT 'hour' AS part, key_id AS name, funding AS detail, member_id, is_premium, \
             first_at, last_at, cost_nano - counted_nano AS nano, cost_rest - counted_rest AS rest \
             FROM spent WHERE organization_id = $1 AND {UNCOUNTED} \
             UNION ALL \
             SELECT 'posts' AS part, '' AS name, '' AS detail, '' AS member_id, 0 AS is_premium, \
             0 AS first_at, 0 AS last_at, posts AS nano, 0 AS rest \
             FROM journal_owners WHERE owner = $2 \
             ORDER BY first_at"
        );
        let mut connection = self.ledger_pool.acquire().await?;
        let query = sqlx::query(AssertSqlSafe(sql));
        let query = query.bind(organization_id).bind(owner);
        let raw = connection.unlimited()?;
        let read = async {
            // Jobs first: one that ends between the two counts twice, and never not at all.
            let open = video_jobs::open_spending(raw, organization_id).await?;
            Ok((open, query.fetch_all(raw).await?))
        };
        let read = timeout(QUERY_TIMEOUT, read).await;
        let (open, rows) = finish(connection, read)?;
        let mut spending = Spending::default();
        for row in &rows {
            match row.try_get::<&str, _>("part")? {
                "counter" => spending.add_counter(row)?,
                "hour" => spending.rows.push(read_hour(row)?),
                _ => spending.posts = row.try_get("nano")?,
            }
        }
        spending.rows.extend(open);
        Ok(spending)
    }
}

impl Spending {
    fn add_counter(&mut self, row: &AnyRow) -> Result<(), StoreError> {
        let (scope, sums): (&str, &str) = (row.try_get("name")?, row.try_get("detail")?);
        match scope.parse() {
            Ok(LimitScope::Key(id)) => self.keys.push((id, counters::parse(sums)?)),
            Ok(LimitScope::Member(id)) => self.members.push((id, counters::parse(sums)?)),
            Ok(LimitScope::Plan) => self.plan = counters::parse(sums)?,
            Ok(LimitScope::Premium) | Err(UnknownScope) => {
                return Err(StoreError::Damaged("scope"));
            }
        }
        Ok(())
    }
}

fn read_hour(row: &AnyRow) -> Result<SpentRow, StoreError> {
    Ok(SpentRow {
        key_id: row.try_get("name")?,
        member_id: Some(row.try_get("member_id")?).filter(|id: &String| !id.is_empty()),
        is_plan: row.try_get::<String, _>("detail")? == "plan",
        is_premium: row.try_get::<i64, _>("is_premium")? != 0,
        ended_ms: (row.try_get("first_at")?, row.try_get("last_at")?),
        cost: join_cost(row.try_get("nano")?, row.try_get("rest")?),
    })
}

/// An hour: its organization, key, number and funding, whether its models are premium, and the member.
type Hour<'a> = (&'a str, &'a str, i64, &'a str, i64, &'a str);

/// Adds the costs of calls to the hours in which they ended. Returns what this change has to add to the counters; what is
/// not among it is counted in the background.
pub(super) async fn add<'a>(
    change: &mut AnyConnection,
    entries: &[&'a LedgerEntry],
) -> Result<Vec<Addition<'a>>, StoreError> {
    let mut hours = by_hour(entries);
    if hours.is_empty() {
        return Ok(Vec::new());
    }
    let mut ids: Vec<&str> = hours.keys().map(|hour| hour.0).collect();
    ids.dedup();
    let uncounted = counters::first_uncounted(change, &ids).await?;
    let rows: Vec<_> = hours
        .iter()
        .map(|(hour, added)| {
            let (organization, key, number, funding, is_premium, member) = *hour;
            let (first, last) = added.ended_ms;
            let (nano, rest) = split_cost(added.cost);
            let first_uncounted = uncounted.get(organization);
            let counts = first_uncounted.is_none_or(|first| *first >= number);
            (
                organization,
                key,
                number,
                funding,
                is_premium,
                member,
                first,
                last,
                nano,
                rest,
                i64::from(counts),
            )
        })
        .collect();
    let sql = format!(
        "{ADD} RETURNING organization_id, key_id, hour, funding, is_premium, member_id, \
         CASE WHEN {UNCOUNTED} THEN 1 ELSE 0 END AS is_uncounted"
    );
    let rows = Rows::new(change, &rows)?;
    let rows = rows.query(&sql).fetch_all(change).await?;
    for row in &rows {
        if row.try_get::<i32, _>("is_uncounted")? != 0 {
            hours.remove(&read_place(row)?);
        }
    }
    Ok(hours.into_values().collect())
}

/// Sums the costs of calls by the hour in which they ended.
fn by_hour<'a>(entries: &[&'a LedgerEntry]) -> BTreeMap<Hour<'a>, Addition<'a>> {
    let mut hours: BTreeMap<Hour<'a>, Addition<'a>> = BTreeMap::new();
    for entry in entries {
        let cost = entry.usage.total();
        if cost == Usd::ZERO {
            continue;
        }
        let (at_ms, owner) = (entry.at_ms, &entry.owner);
        let member_id = owner.member_id.as_deref().unwrap_or_default();
        let none = Addition {
            organization_id: &owner.organization_id,
            key_id: &owner.key_id,
            member_id,
            is_plan: entry.funding == Funding::Plan,
            is_premium: entry.usage.is_premium,
            ended_ms: (at_ms, at_ms),
            cost: Usd::ZERO,
        };
        let hour = (
            none.organization_id,
            none.key_id,
            at_ms.div_euclid(HOUR_MS),
            entry.funding.as_str(),
            i64::from(none.is_premium),
            member_id,
        );
        let added = hours.entry(hour).or_insert(none);
        let (first, last) = added.ended_ms;
        added.ended_ms = (first.min(at_ms), last.max(at_ms));
        added.cost = added.cost.plus(cost);
    }
    hours
}

/// Reads which hour a row is of.
fn read_place(row: &AnyRow) -> Result<Hour<'_>, StoreError> {
    Ok((
        row.try_get("organization_id")?,
        row.try_get("key_id")?,
        row.try_get("hour")?,
        row.try_get("funding")?,
        row.try_get("is_premium")?,
        row.try_get("member_id")?,
    ))
}
