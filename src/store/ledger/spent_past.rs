//! Hours that no limit looks back at: their spending is one row of a key.

use std::collections::BTreeMap;

use filters::money::Usd;
use sqlx::{Connection, Row};
use tokio::time::timeout;

use super::super::rows::Rows;
use super::super::{Store, StoreError};
use super::spent::{ADD, to_row};
use super::{HOUR_MS, QUERY_TIMEOUT, finish, join_cost};

/// Stands for all hours that were joined. It is before every hour.
const PAST: i64 = -1;
/// The maximum number of rows that are joined at once, because other writes wait for it.
pub(super) const MAX_ROWS: i64 = 2_000;

/// The organization, the key, the funding, whether the models were premium, and the member.
type Spender = (String, String, String, i64, String);

/// The first and the last time, and the cost.
type Sum = ((i64, i64), Usd);

impl Store {
    /// Joins some hours before `before_ms` into one row of their key. Returns whether there may be more. The sums stay
    /// the same, and a call that a late process brings for such an hour is added to them.
    pub async fn join_past_spent(&self, before_ms: i64) -> Result<bool, StoreError> {
        let _turn = self.write_turn().await;
        let mut connection = self.ledger_pool.acquire().await?;
        let joined = join(connection.unlimited()?, before_ms.div_euclid(HOUR_MS));
        let done = timeout(QUERY_TIMEOUT, joined).await;
        finish(connection, done)
    }
}

async fn join(connection: &mut sqlx::AnyConnection, before: i64) -> Result<bool, StoreError> {
    let mut change = connection.begin().await?;
    // What is deleted here is what is added below, whatever another process adds to these hours meanwhile.
    let sql = "DELETE FROM spent \
               WHERE (organization_id, key_id, hour, funding, is_premium, member_id) IN \
               (SELECT organization_id, key_id, hour, funding, is_premium, member_id FROM spent \
               WHERE hour > $1 AND hour < $2 ORDER BY hour LIMIT $3) \
               RETURNING organization_id, key_id, funding, is_premium, member_id, \
               first_at, last_at, cost_nano, cost_rest";
    let query = sqlx::query(sql).bind(PAST).bind(before).bind(MAX_ROWS);
    let rows = query.fetch_all(&mut *change).await?;
    let mut sums: BTreeMap<Spender, Sum> = BTreeMap::new();
    for row in &rows {
        let spender = (
            row.try_get("organization_id")?,
            row.try_get("key_id")?,
            row.try_get("funding")?,
            row.try_get("is_premium")?,
            row.try_get("member_id")?,
        );
        let ended: (i64, i64) = (row.try_get("first_at")?, row.try_get("last_at")?);
        let cost = join_cost(row.try_get("cost_nano")?, row.try_get("cost_rest")?);
        let (times, sum) = sums.entry(spender).or_insert((ended, Usd::ZERO));
        *times = (times.0.min(ended.0), times.1.max(ended.1));
        *sum = sum.plus(cost);
    }
    let joined = sums.iter().map(|(spender, (ended_ms, cost))| {
        let (organization, key, funding, is_premium, member) = spender;
        let hour = (
            &**organization,
            &**key,
            PAST,
            &**funding,
            *is_premium,
            &**member,
        );
        to_row(hour, *ended_ms, *cost, true)
    });
    let joined: Vec<_> = joined.collect();
    if !joined.is_empty() {
        let joined = Rows::new(&*change, &joined)?;
        joined.query(ADD).execute(&mut *change).await?;
    }
    change.commit().await?;
    Ok(rows.len() as i64 >= MAX_ROWS)
}
