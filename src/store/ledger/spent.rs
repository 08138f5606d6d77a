//! What organizations have spent: the counters of their limits, and the hours of their keys, which processes of the version
//! before read.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use filters::ledger::{Funding, LedgerEntry, LimitScope};
use filters::money::Usd;
use filters::money::allowance::SpentSoFar;
use filters::money::tally::{PlanTally, Tally};
use serde::Serialize;
use serde_json::Value;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};
use tokio::time::timeout;

use super::super::{Store, StoreError};
use super::counters::{Addition, UNCOUNTED};
use super::rows::Rows;
use super::{HOUR_MS, QUERY_TIMEOUT, counters, finish, join_cost, split_cost, usd};

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

/// The SQL of the rows of [`scope_row`].
const WANTED: &str = "\
WITH wanted AS (SELECT value ->> 0 AS wanted_id, value ->> 1 AS counter, value ->> 2 AS of_key, \
    value ->> 3 AS of_member, value ->> 4 AS of_budget FROM {rows})";
/// The SQL that reads counters, what open jobs may cost, and how many times the process `$2` had stored calls.
const COUNTERS: &str = "\
SELECT wanted_id, counter, 'counter' AS part, sums AS detail, 0 AS is_premium, 0 AS first_at, \
    0 AS last_at, 0 AS nano, 0 AS rest \
FROM wanted CROSS JOIN limit_counters WHERE organization_id = wanted_id AND scope = counter \
UNION ALL \
SELECT wanted_id, counter, 'job' AS part, reserved AS detail, is_premium, created_at AS first_at, \
    created_at AS last_at, 0 AS nano, 0 AS rest \
FROM wanted CROSS JOIN video_jobs \
WHERE organization_id = wanted_id AND is_open = 1 AND (key_id = of_key OR {of_scope} OR {of_budget}) \
UNION ALL \
SELECT wanted_id, counter, 'job' AS part, reserved AS detail, is_premium, created_at AS first_at, \
    created_at AS last_at, 0 AS nano, 0 AS rest \
FROM wanted CROSS JOIN response_jobs \
WHERE organization_id = wanted_id AND is_open = 1 AND (key_id = of_key OR {of_scope} OR {of_budget}) \
UNION ALL \
SELECT '' AS wanted_id, '' AS counter, 'posts' AS part, '' AS detail, 0 AS is_premium, \
    0 AS first_at, 0 AS last_at, posts AS nano, 0 AS rest \
FROM journal_owners WHERE owner = $2";
/// The SQL that reads hours which are not counted. It reads all of them, so there have to be some.
const HOURS: &str = "\
SELECT wanted_id, counter, 'hour' AS part, '' AS detail, is_premium, first_at, last_at, \
    cost_nano - counted_nano AS nano, cost_rest - counted_rest AS rest \
FROM wanted CROSS JOIN spent \
WHERE organization_id = wanted_id AND {uncounted} AND of_key <> '' AND key_id = of_key \
UNION ALL \
SELECT wanted_id, counter, 'hour' AS part, '' AS detail, is_premium, first_at, last_at, \
    cost_nano - counted_nano AS nano, cost_rest - counted_rest AS rest \
FROM wanted CROSS JOIN spent \
WHERE organization_id = wanted_id AND {uncounted} AND {of_scope}";
/// The SQL of an hour, or of a job, that counts in a scope which is no key's.
const IS_OF_SCOPE: &str =
    "(of_member <> '' AND member_id = of_member OR counter = 'plan' AND funding = 'plan')";
/// The SQL of a job that counts in a budget: a text of JSON is among its names exactly if it is gone without it.
const IS_OF_BUDGET: &str = "(of_budget <> '' AND REPLACE(budgets, of_budget, '') <> budgets)";

/// What is spent in a scope, as of one moment.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ScopeSpent {
    /// The counter of a key or a member.
    tally: Tally,
    /// The counter of the plan.
    plan: PlanTally,
    /// What is in no counter: what processes of the version before have just added, and what open jobs may cost. Oldest first.
    uncounted: Vec<Cost>,
}

/// The cost of calls that ended between two times, in unix milliseconds.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Cost {
    is_premium: bool,
    ended_ms: (i64, i64),
    cost: Usd,
}

impl ScopeSpent {
    /// Adds calls that are not stored.
    pub fn add(&mut self, cost: Usd, is_premium: bool, ended_ms: (i64, i64)) {
        let cost = Cost {
            is_premium,
            ended_ms,
            cost,
        };
        self.uncounted.push(cost);
    }

    /// Returns what is spent at `now_ms`, for a plan that began at `plan_since_ms`.
    pub fn so_far(&self, now_ms: i64, plan_since_ms: i64) -> SpentSoFar {
        let (mut tally, mut plan) = (self.tally, self.plan);
        for of in &self.uncounted {
            tally.charge(of.cost, of.ended_ms.1);
            plan.charge(of.cost, of.is_premium, of.ended_ms, plan_since_ms);
        }
        let key = tally.spent(now_ms);
        SpentSoFar {
            key,
            member: key.total,
            plan: plan.spent(now_ms, plan_since_ms),
        }
    }
}

/// What is spent in scopes.
#[derive(Default)]
pub(super) struct AllSpent {
    /// By organization and the text of the scope's counter.
    scopes: HashMap<(String, String), ScopeSpent>,
    /// How many times the process had stored calls, all of which are included.
    posts: i64,
}

impl AllSpent {
    pub(super) fn spent_in(&self, organization_id: &str, scope: &LimitScope) -> ScopeSpent {
        let place = (organization_id.to_owned(), counter(scope));
        self.scopes.get(&place).cloned().unwrap_or_default()
    }
}

/// Returns the text of the scope whose counter counts for a scope.
fn counter(scope: &LimitScope) -> String {
    match scope {
        LimitScope::Premium => LimitScope::Plan.to_string(),
        scope => scope.to_string(),
    }
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

    /// Returns what is spent in scopes of an organization, in their order, what open jobs may cost included, and how many times
    /// the process had stored calls by then.
    pub async fn spent(
        &self,
        owner: &str,
        organization_id: &str,
        scopes: &[LimitScope],
    ) -> Result<(Vec<ScopeSpent>, i64), StoreError> {
        let mut connection = self.pool.acquire().await?;
        let wanted = scopes.iter().map(|scope| (organization_id, scope));
        let read = timeout(QUERY_TIMEOUT, read(connection.unlimited()?, owner, wanted)).await;
        let all = finish(connection, read)?;
        let spent = scopes
            .iter()
            .map(|scope| all.spent_in(organization_id, scope));
        Ok((spent.collect(), all.posts))
    }
}

/// A scope as a row: the organization, the scope's counter, and the key, the member or the budget that it is of.
type ScopeRow<'a> = (&'a str, String, &'a str, &'a str, String);

fn scope_row<'a>(organization: &'a str, scope: &'a LimitScope) -> ScopeRow<'a> {
    let (key, member) = match scope {
        LimitScope::Key(id) => (&**id, ""),
        LimitScope::Member(id) => ("", &**id),
        LimitScope::Plan | LimitScope::Premium | LimitScope::Budget(_) => ("", ""),
    };
    let budget = match scope {
        LimitScope::Budget(name) => Value::from(&**name).to_string(),
        _ => String::new(),
    };
    (organization, counter(scope), key, member, budget)
}

/// Reads what is spent in scopes of organizations. Cost: a row for each scope, however long it has spent.
pub(super) async fn read<'a>(
    connection: &mut AnyConnection,
    owner: &str,
    scopes: impl Iterator<Item = (&'a str, &'a LimitScope)>,
) -> Result<AllSpent, StoreError> {
    let wanted: BTreeSet<_> = scopes.map(|(id, scope)| scope_row(id, scope)).collect();
    let wanted: Vec<_> = wanted.into_iter().collect();
    let ids: BTreeSet<&str> = wanted.iter().map(|row| row.0).collect();
    let ids: Vec<&str> = ids.into_iter().collect();
    let mut all = AllSpent::default();
    // Hours are read first: one that is counted between the two readings counts twice, and is never missed.
    if !counters::first_uncounted(connection, &ids)
        .await?
        .is_empty()
    {
        all.read(connection, (HOURS, None), &wanted).await?;
    }
    all.read(connection, (COUNTERS, Some(owner)), &wanted)
        .await?;
    Ok(all)
}

impl AllSpent {
    async fn read(
        &mut self,
        connection: &mut AnyConnection,
        (parts, owner): (&str, Option<&str>),
        wanted: &[ScopeRow<'_>],
    ) -> Result<(), StoreError> {
        let sql = format!("{WANTED} {parts} ORDER BY first_at")
            .replace("{uncounted}", UNCOUNTED)
            .replace("{of_budget}", IS_OF_BUDGET)
            .replace("{of_scope}", IS_OF_SCOPE);
        let wanted = Rows::new(connection, wanted)?;
        let mut query = wanted.query(&sql);
        if let Some(owner) = owner {
            query = query.bind(owner);
        }
        for row in query.fetch_all(connection).await? {
            if row.try_get::<&str, _>("part")? == "posts" {
                self.posts = row.try_get("nano")?;
                continue;
            }
            let place = (row.try_get("wanted_id")?, row.try_get("counter")?);
            self.scopes.entry(place).or_default().read(&row)?;
        }
        Ok(())
    }
}

impl ScopeSpent {
    /// Adds a row of [`COUNTERS`] or [`HOURS`].
    fn read(&mut self, row: &AnyRow) -> Result<(), StoreError> {
        let detail: &str = row.try_get("detail")?;
        let cost = match row.try_get::<&str, _>("part")? {
            "counter" => {
                match row.try_get::<&str, _>("counter")? == LimitScope::Plan.to_string() {
                    true => self.plan = counters::parse(detail)?,
                    false => self.tally = counters::parse(detail)?,
                }
                return Ok(());
            }
            "hour" => join_cost(row.try_get("nano")?, row.try_get("rest")?),
            _ => usd(row, "detail")?,
        };
        let ended_ms = (row.try_get("first_at")?, row.try_get("last_at")?);
        self.add(cost, row.try_get::<i64, _>("is_premium")? != 0, ended_ms);
        Ok(())
    }
}

/// An hour: its organization, key, number and funding, whether its models are premium, and the member.
pub(super) type Hour<'a> = (&'a str, &'a str, i64, &'a str, i64, &'a str);

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
    let rows = hours.iter().map(|(hour, added)| {
        let first_uncounted = uncounted.get(hour.0);
        let counts = first_uncounted.is_none_or(|first| *first >= hour.2);
        to_row(*hour, added.ended_ms, added.cost, counts)
    });
    let rows = Rows::new(change, &rows.collect::<Vec<_>>())?;
    let sql = format!(
        "{ADD} RETURNING organization_id, key_id, hour, funding, is_premium, member_id, \
         CASE WHEN {UNCOUNTED} THEN 1 ELSE 0 END AS is_uncounted"
    );
    let rows = rows.query(&sql).fetch_all(change).await?;
    for row in &rows {
        if row.try_get::<i32, _>("is_uncounted")? != 0 {
            hours.remove(&read_place(row)?);
        }
    }
    Ok(hours.into_values().collect())
}

/// Returns the row of [`ADD`].
pub(super) fn to_row(
    (organization, key, hour, funding, is_premium, member): Hour<'_>,
    ended_ms: (i64, i64),
    cost: Usd,
    is_counted: bool,
) -> impl Serialize {
    let (nano, rest) = split_cost(cost);
    (
        organization,
        key,
        hour,
        funding,
        is_premium,
        member,
        ended_ms.0,
        ended_ms.1,
        nano,
        rest,
        i64::from(is_counted),
    )
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
