//! The spending of keys by hour, from which limits and plans continue when a process starts.

use std::collections::BTreeMap;

use filters::ledger::LedgerEntry;
use filters::money::Usd;
use sqlx::{AnyConnection, Row};
use tokio::time::timeout;

use super::super::{Store, StoreError};
use super::rows::Rows;
use super::{HOUR_MS, QUERY_TIMEOUT, finish, join_cost, split_cost, video_jobs};

pub(super) const ADD: &str = "\
INSERT INTO spent (organization_id, key_id, hour, funding, is_premium, member_id, \
    first_at, last_at, cost_nano, cost_rest) \
SELECT value ->> 0, value ->> 1, CAST(value ->> 2 AS BIGINT), value ->> 3, \
    CAST(value ->> 4 AS BIGINT), value ->> 5, CAST(value ->> 6 AS BIGINT), \
    CAST(value ->> 7 AS BIGINT), CAST(value ->> 8 AS BIGINT), CAST(value ->> 9 AS BIGINT) \
FROM {rows} WHERE 1 = 1 \
ON CONFLICT (organization_id, key_id, hour, funding, is_premium, member_id) DO UPDATE SET \
    last_at = CASE WHEN excluded.last_at > spent.last_at THEN excluded.last_at \
    ELSE spent.last_at END, \
    cost_nano = spent.cost_nano + excluded.cost_nano, \
    cost_rest = spent.cost_rest + excluded.cost_rest";

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
    /// The spending of its keys, oldest first, and behind it what its open jobs may cost.
    pub rows: Vec<SpentRow>,
    /// How many times the process had stored calls, all of which are included.
    pub posts: i64,
}

/// The key of the row that has the number of posts.
const POSTS: &str = "";

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

    /// Returns the spending of an organization's keys, and what open jobs may cost. Hours before `since_ms` are one row per key.
    pub async fn spent(
        &self,
        owner: &str,
        organization_id: &str,
        since_ms: i64,
    ) -> Result<Spending, StoreError> {
        let sql = "SELECT key_id, member_id, funding, is_premium, first_at, last_at, \
                   cost_nano, cost_rest FROM spent WHERE organization_id = $1 AND hour >= $2 \
                   UNION ALL \
                   SELECT key_id, member_id, funding, is_premium, MIN(first_at) AS first_at, \
                   MAX(last_at) AS last_at, \
                   CAST(SUM(cost_nano) AS BIGINT) AS cost_nano, \
                   CAST(SUM(cost_rest) AS BIGINT) AS cost_rest \
                   FROM spent WHERE organization_id = $1 AND hour < $2 \
                   GROUP BY key_id, member_id, funding, is_premium \
                   UNION ALL \
                   SELECT '' AS key_id, NULL AS member_id, '' AS funding, 0 AS is_premium, \
                   0 AS first_at, 0 AS last_at, posts AS cost_nano, 0 AS cost_rest \
                   FROM journal_owners WHERE owner = $3 \
                   ORDER BY first_at";
        let mut connection = self.ledger_pool.acquire().await?;
        let query = sqlx::query(sql)
            .bind(organization_id)
            .bind(since_ms.div_euclid(HOUR_MS))
            .bind(owner);
        let raw = connection.unlimited()?;
        let read = async {
            // Jobs first: one that ends between the two counts twice, and never not at all.
            let open = video_jobs::open_spending(raw, organization_id).await?;
            Ok((open, query.fetch_all(raw).await?))
        };
        let read = timeout(QUERY_TIMEOUT, read).await;
        let (open, rows) = finish(connection, read)?;
        let read = |row: &sqlx::any::AnyRow| -> Result<SpentRow, StoreError> {
            Ok(SpentRow {
                key_id: row.try_get("key_id")?,
                member_id: Some(row.try_get("member_id")?).filter(|id: &String| !id.is_empty()),
                is_plan: row.try_get::<String, _>("funding")? == "plan",
                is_premium: row.try_get::<i64, _>("is_premium")? != 0,
                ended_ms: (row.try_get("first_at")?, row.try_get("last_at")?),
                cost: join_cost(row.try_get("cost_nano")?, row.try_get("cost_rest")?),
            })
        };
        let mut spending = Spending::default();
        for row in &rows {
            if row.try_get::<&str, _>("key_id")? == POSTS {
                spending.posts = row.try_get("cost_nano")?;
            } else {
                spending.rows.push(read(row)?);
            }
        }
        spending.rows.extend(open);
        Ok(spending)
    }
}

/// Adds the costs of calls to the hours in which they ended.
pub(super) async fn add(
    change: &mut AnyConnection,
    entries: &[&LedgerEntry],
) -> Result<(), StoreError> {
    let mut hours: BTreeMap<_, ((i64, i64), Usd)> = BTreeMap::new();
    for entry in entries {
        let cost = entry.usage.total();
        if cost == Usd::ZERO {
            continue;
        }
        let hour = entry.at_ms.div_euclid(HOUR_MS);
        let (owner, funding) = (&entry.owner, entry.funding.as_str());
        let key = (&*owner.organization_id, &*owner.key_id, hour, funding);
        let member = owner.member_id.as_deref().unwrap_or_default();
        let key = (key, entry.usage.is_premium, member);
        let first = ((entry.at_ms, entry.at_ms), Usd::ZERO);
        let (ended, sum) = hours.entry(key).or_insert(first);
        *ended = (ended.0.min(entry.at_ms), ended.1.max(entry.at_ms));
        *sum = sum.plus(cost);
    }
    let rows: Vec<_> = hours
        .into_iter()
        .map(
            |(((organization, key, hour, funding), is_premium, member), (ended, cost))| {
                let (nano, rest) = split_cost(cost);
                let premium = i64::from(is_premium);
                (
                    organization,
                    key,
                    hour,
                    funding,
                    premium,
                    member,
                    ended.0,
                    ended.1,
                    nano,
                    rest,
                )
            },
        )
        .collect();
    if !rows.is_empty() {
        Rows::new(change, &rows)?.query(ADD).execute(change).await?;
    }
    Ok(())
}
