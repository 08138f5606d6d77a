//! The counters of limits: one row for each key, each member, each plan and each budget, with the sums of its current periods.
//!
//! A post adds its calls to the hours of their keys, which processes of the version before read and write, too, and counts
//! them in the same transaction. What such a process adds to an hour is the difference to what is marked as counted, and is
//! counted in the background. Counters change under the lock of the organization's balance.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use filters::ledger::{Funding, LimitScope};
use filters::money::Usd;
use filters::money::tally::{PlanTally, Tally};
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};
use tokio::time::timeout;

use super::super::{Store, StoreError};
use super::rows::Rows;
use super::{Dialect, QUERY_TIMEOUT, finish, join_cost, lock_balances};

/// The SQL of an hour that has more than is counted. Hours that were joined are counted as they were joined.
pub(super) const UNCOUNTED: &str =
    "hour <> -1 AND (cost_nano <> counted_nano OR cost_rest <> counted_rest)";
/// The columns from which [`Uncounted::read`] reads.
const COLUMNS: &str = "organization_id, key_id, hour, funding, is_premium, member_id, first_at, last_at, \
     cost_nano, cost_rest, counted_nano, counted_rest";
/// Hours by their keys, with the sums of which they are counted.
const PLACES: &str = "(SELECT value ->> 0 AS o, value ->> 1 AS k, CAST(value ->> 2 AS BIGINT) AS h, \
     value ->> 3 AS f, CAST(value ->> 4 AS BIGINT) AS p, value ->> 5 AS m, \
     CAST(value ->> 6 AS BIGINT) AS nano, CAST(value ->> 7 AS BIGINT) AS rest FROM {rows}) AS r";
/// The SQL of the hour of a place.
const IS_PLACE: &str = "spent.organization_id = r.o AND spent.key_id = r.k AND spent.hour = r.h \
     AND spent.funding = r.f AND spent.is_premium = r.p AND spent.member_id = r.m";
/// The maximum number of hours that are counted at once, because other changes of the organization wait for it.
const MAX_HOURS: i64 = 1_000;

/// What is added to the counters of a key, its member and the plan.
#[derive(Clone, Copy)]
pub(super) struct Addition<'a> {
    pub organization_id: &'a str,
    pub key_id: &'a str,
    /// Empty: the key has no owner.
    pub member_id: &'a str,
    pub is_plan: bool,
    pub is_premium: bool,
    /// When the first and the last of its calls ended, in unix milliseconds.
    pub ended_ms: (i64, i64),
    pub cost: Usd,
}

/// What a call adds to the counters of its budgets.
#[derive(Clone, Copy)]
pub(super) struct BudgetAddition<'a> {
    pub organization_id: &'a str,
    pub name: &'a Arc<str>,
    /// When it ended, in unix milliseconds.
    pub ended_ms: i64,
    pub cost: Usd,
}

/// An hour that has more than is counted.
struct Uncounted {
    organization_id: String,
    key_id: String,
    hour: i64,
    funding: String,
    is_premium: bool,
    member_id: String,
    ended_ms: (i64, i64),
    /// The sums of the hour, all of which are counted then.
    sums: (i64, i64),
    added: Usd,
}

/// The counters of organizations, by organization and scope.
#[derive(Default)]
struct Counters {
    spenders: HashMap<(String, LimitScope), Tally>,
    plans: HashMap<String, PlanTally>,
}

impl Store {
    /// Counts some of what is not counted yet: the history of a store of the version before, and what its processes add.
    /// Returns whether there may be more.
    pub async fn count_spent(&self) -> Result<bool, StoreError> {
        let _turn = self.write_turn().await;
        let mut connection = self.pool.acquire().await?;
        let done = timeout(QUERY_TIMEOUT, count_first(connection.unlimited()?)).await;
        finish(connection, done)
    }
}

/// Counts the first hours, of each organization the oldest.
async fn count_first(connection: &mut AnyConnection) -> Result<bool, StoreError> {
    // In the order of its index, so that the hours that are counted cost nothing.
    let sql = format!(
        "SELECT {COLUMNS} FROM spent WHERE {UNCOUNTED} ORDER BY organization_id, hour LIMIT {MAX_HOURS}"
    );
    let first = sqlx::query(AssertSqlSafe(sql));
    let first = first.fetch_all(&mut *connection).await?;
    let first: Result<Vec<Uncounted>, StoreError> = first.iter().map(Uncounted::read).collect();
    let first = first?;
    if first.is_empty() {
        return Ok(false);
    }
    let mut change = connection.begin().await?;
    let ids: BTreeSet<&str> = first.iter().map(|of| &*of.organization_id).collect();
    let ids: Vec<&str> = ids.into_iter().collect();
    lock_balances(&mut change, &ids).await?;
    let hours = lock_hours(&mut change, &first).await?;
    if !hours.is_empty() {
        mark_counted(&mut change, &hours).await?;
        let added: Vec<_> = hours.iter().map(Uncounted::addition).collect();
        add(&mut change, &added, &[]).await?;
    }
    change.commit().await?;
    Ok(!hours.is_empty())
}

/// Adds to the counters of organizations whose balances are locked.
pub(super) async fn add(
    change: &mut AnyConnection,
    added: &[Addition<'_>],
    budgets: &[BudgetAddition<'_>],
) -> Result<(), StoreError> {
    if added.is_empty() && budgets.is_empty() {
        return Ok(());
    }
    let plan_starts = plan_starts(change, added).await?;
    let mut counters = read(change, added, budgets).await?;
    for addition in added {
        let since_ms = plan_starts.get(addition.organization_id).copied();
        counters.add(addition, since_ms.unwrap_or_default());
    }
    budgets.iter().for_each(|addition| counters.spend(addition));
    write(change, &counters).await
}

/// Returns the first hour of each organization that is not counted. Later calls wait for it, because a plan's window begins
/// with its first call.
pub(super) async fn first_uncounted(
    change: &mut AnyConnection,
    organization_ids: &[&str],
) -> Result<HashMap<String, i64>, StoreError> {
    let sql = format!(
        "SELECT id, first FROM (SELECT value ->> 0 AS id, (SELECT hour FROM spent \
         WHERE organization_id = value ->> 0 AND {UNCOUNTED} ORDER BY hour LIMIT 1) AS first \
         FROM {{rows}}) AS r WHERE first IS NOT NULL"
    );
    let ids = Rows::from_texts(change, organization_ids.iter().copied())?;
    let rows = ids.query(&sql).fetch_all(change).await?;
    let first = rows
        .iter()
        .map(|row| Ok((row.try_get("id")?, row.try_get("first")?)));
    first.collect()
}

/// Reads again what is to be counted of these hours, the oldest first. An hour to which another process is adding is left
/// to that one, so this change does not wait for a process that waits for the balance.
async fn lock_hours(
    change: &mut AnyConnection,
    hours: &[Uncounted],
) -> Result<Vec<Uncounted>, StoreError> {
    let lock = match change.is_postgres() {
        true => "FOR UPDATE OF spent SKIP LOCKED",
        false => "",
    };
    let sql = format!(
        "SELECT {COLUMNS} FROM {PLACES} CROSS JOIN spent WHERE {IS_PLACE} AND {UNCOUNTED} {lock}"
    );
    let places: Vec<_> = hours.iter().map(Uncounted::place).collect();
    let places = Rows::new(change, &places)?;
    let rows = places.query(&sql).fetch_all(change).await?;
    let hours: Result<Vec<Uncounted>, StoreError> = rows.iter().map(Uncounted::read).collect();
    let mut hours = hours?;
    hours.sort_by_key(|of| of.ended_ms);
    Ok(hours)
}

impl Uncounted {
    /// Reads the [`COLUMNS`] of an hour.
    fn read(row: &AnyRow) -> Result<Self, StoreError> {
        let sums = (row.try_get("cost_nano")?, row.try_get("cost_rest")?);
        let counted = join_cost(row.try_get("counted_nano")?, row.try_get("counted_rest")?);
        Ok(Self {
            organization_id: row.try_get("organization_id")?,
            key_id: row.try_get("key_id")?,
            hour: row.try_get("hour")?,
            funding: row.try_get("funding")?,
            is_premium: row.try_get::<i64, _>("is_premium")? != 0,
            member_id: row.try_get("member_id")?,
            ended_ms: (row.try_get("first_at")?, row.try_get("last_at")?),
            sums,
            added: join_cost(sums.0, sums.1).minus(counted),
        })
    }

    /// Returns its row in [`PLACES`].
    fn place(&self) -> (&str, &str, i64, &str, i64, &str, i64, i64) {
        let (nano, rest) = self.sums;
        (
            &self.organization_id,
            &self.key_id,
            self.hour,
            &self.funding,
            i64::from(self.is_premium),
            &self.member_id,
            nano,
            rest,
        )
    }

    fn addition(&self) -> Addition<'_> {
        Addition {
            organization_id: &self.organization_id,
            key_id: &self.key_id,
            member_id: &self.member_id,
            is_plan: self.funding == Funding::Plan.as_str(),
            is_premium: self.is_premium,
            ended_ms: self.ended_ms,
            cost: self.added,
        }
    }
}

impl<'a> Addition<'a> {
    /// Returns the scopes in which it counts.
    fn scopes(self) -> impl Iterator<Item = LimitScope> {
        let key = Some(LimitScope::Key(self.key_id.into()));
        let member =
            (!self.member_id.is_empty()).then(|| LimitScope::Member(self.member_id.into()));
        let plan = self.is_plan.then_some(LimitScope::Plan);
        [key, member, plan].into_iter().flatten()
    }
}

async fn mark_counted(change: &mut AnyConnection, hours: &[Uncounted]) -> Result<(), StoreError> {
    let places: Vec<_> = hours.iter().map(Uncounted::place).collect();
    let sql = format!(
        "UPDATE spent SET counted_nano = r.nano, counted_rest = r.rest FROM {PLACES} WHERE {IS_PLACE}"
    );
    let places = Rows::new(change, &places)?;
    places.query(&sql).execute(change).await?;
    Ok(())
}

/// Returns when the plans of organizations began.
async fn plan_starts(
    change: &mut AnyConnection,
    added: &[Addition<'_>],
) -> Result<HashMap<String, i64>, StoreError> {
    let of_plans = added.iter().filter(|of| of.is_plan);
    let ids: BTreeSet<&str> = of_plans.map(|of| of.organization_id).collect();
    if ids.is_empty() {
        return Ok(HashMap::new());
    }
    let sql = "SELECT organizations.id, plan_since FROM (SELECT value ->> 0 AS wanted FROM {rows}) AS r \
               CROSS JOIN organizations WHERE organizations.id = r.wanted";
    let ids = Rows::from_texts(change, ids)?;
    let rows = ids.query(sql).fetch_all(change).await?;
    let starts = rows
        .iter()
        .map(|row| Ok((row.try_get("id")?, row.try_get("plan_since")?)));
    starts.collect()
}

/// Reads the counters to which this is added.
async fn read(
    change: &mut AnyConnection,
    added: &[Addition<'_>],
    budgets: &[BudgetAddition<'_>],
) -> Result<Counters, StoreError> {
    let scopes = added.iter().flat_map(|of| {
        let scopes = of.scopes().map(|scope| scope.to_string());
        scopes.map(|scope| (of.organization_id, scope))
    });
    let budgets = budgets
        .iter()
        .map(|of| (of.organization_id, of.scope().to_string()));
    let scopes: BTreeSet<_> = scopes.chain(budgets).collect();
    let scopes: Vec<_> = scopes.into_iter().collect();
    let sql = "SELECT organization_id, scope, sums \
               FROM (SELECT value ->> 0 AS id, value ->> 1 AS wanted FROM {rows}) AS r \
               CROSS JOIN limit_counters WHERE organization_id = r.id AND scope = r.wanted";
    let scopes = Rows::new(change, &scopes)?;
    let mut counters = Counters::default();
    for row in scopes.query(sql).fetch_all(change).await? {
        let organization: String = row.try_get("organization_id")?;
        let (scope, sums): (&str, &str) = (row.try_get("scope")?, row.try_get("sums")?);
        let scope = scope.parse().map_err(|_| StoreError::Damaged("scope"))?;
        if scope == LimitScope::Plan {
            counters.plans.insert(organization, parse(sums)?);
        } else {
            let spender = (organization, scope);
            counters.spenders.insert(spender, parse(sums)?);
        }
    }
    Ok(counters)
}

/// Parses the sums of a counter.
pub(super) fn parse<T: std::str::FromStr>(sums: &str) -> Result<T, StoreError> {
    sums.parse().map_err(|_| StoreError::Damaged("sums"))
}

async fn write(change: &mut AnyConnection, counters: &Counters) -> Result<(), StoreError> {
    let spenders = counters.spenders.iter();
    let spenders = spenders.map(|((id, scope), sums)| {
        let last_month = match scope {
            LimitScope::Budget(_) => sums.last_month_ms(),
            _ => 0,
        };
        (id, scope.to_string(), sums.to_string(), last_month)
    });
    let plans = counters.plans.iter();
    let plans = plans.map(|(id, sums)| (id, LimitScope::Plan.to_string(), sums.to_string(), 0));
    let rows: Vec<_> = spenders.chain(plans).collect();
    let sql = "INSERT INTO limit_counters (organization_id, scope, sums, last_month) \
               SELECT value ->> 0, value ->> 1, value ->> 2, CAST(value ->> 3 AS BIGINT) \
               FROM {rows} WHERE 1 = 1 ON CONFLICT (organization_id, scope) DO UPDATE \
               SET sums = excluded.sums, last_month = excluded.last_month";
    Rows::new(change, &rows)?.query(sql).execute(change).await?;
    Ok(())
}

impl BudgetAddition<'_> {
    fn scope(&self) -> LimitScope {
        LimitScope::Budget(Arc::clone(self.name))
    }
}

impl Counters {
    fn spend(&mut self, of: &BudgetAddition<'_>) {
        let spender = (of.organization_id.to_owned(), of.scope());
        let spender = self.spenders.entry(spender).or_default();
        spender.charge(of.cost, of.ended_ms);
    }

    fn add(&mut self, of: &Addition<'_>, plan_since_ms: i64) {
        for scope in of.scopes() {
            let organization = of.organization_id.to_owned();
            if scope == LimitScope::Plan {
                let plan = self.plans.entry(organization).or_default();
                plan.charge(of.cost, of.is_premium, of.ended_ms, plan_since_ms);
            } else {
                let spender = self.spenders.entry((organization, scope)).or_default();
                spender.charge(of.cost, of.ended_ms.1);
            }
        }
    }
}
