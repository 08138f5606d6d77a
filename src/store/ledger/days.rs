//! Days of hours that are old: their sums move into the first hour of their day.
//!
//! The rows of a day stay where those of its hours were. So whatever reads whole days reads them as before, also a process
//! of an earlier version. What begins within such a day counts it whole.

use std::collections::BTreeMap;

use serde_json::Value;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, Row};
use tokio::time::timeout;

use super::super::{Store, StoreError};
use super::hour_tables::{HourTable, USAGE, VARIATIONS};
use super::{QUERY_TIMEOUT, finish};

/// The hours of a day, in UTC.
pub(super) const DAY_HOURS: i64 = 24;
/// The maximum number of rows that are moved at once, because other writes wait for it.
pub(super) const MAX_ROWS: i64 = 2_000;

/// What makes a row one of its day: texts, and numbers with the first hour of the day.
type DayKey = (Vec<String>, Vec<i64>);

impl Store {
    /// Moves some sums of hours before this one into those of their days. Returns whether there may be more. Hours of the
    /// day in which it falls stay, and so do all sums.
    pub async fn join_hours(&self, before: i64) -> Result<bool, StoreError> {
        let _turn = self.write_turn().await;
        let mut connection = self.pool.acquire().await?;
        let joined = join(connection.unlimited()?, first_of_day(before));
        let done = timeout(QUERY_TIMEOUT, joined).await;
        finish(connection, done)
    }

    /// Returns the hour before which hours were joined.
    pub(super) async fn joined_before(&self) -> Result<i64, StoreError> {
        let sql = "SELECT usage_days_before FROM store_state WHERE one = 1";
        Ok(sqlx::query_scalar(sql)
            .fetch_one(&mut self.pool.acquire().await?)
            .await?)
    }

    /// Returns the hour from which sums begin that were asked for from this one: the first of its day, if the hours of
    /// that day were joined.
    pub(super) async fn first_counted_hour(&self, hour: i64) -> Result<i64, StoreError> {
        Ok(match hour < self.joined_before().await? {
            true => first_of_day(hour),
            false => hour,
        })
    }
}

/// Returns the first hour of the day of an hour.
pub(super) fn first_of_day(hour: i64) -> i64 {
    hour - hour.rem_euclid(DAY_HOURS)
}

async fn join(connection: &mut AnyConnection, before: i64) -> Result<bool, StoreError> {
    let mut change = connection.begin().await?;
    let mut has_more = false;
    for table in [USAGE, VARIATIONS] {
        // What is deleted here is what is added below, whatever another process adds to these hours meanwhile.
        let query = AssertSqlSafe(table.take_sql());
        let query = sqlx::query(query).bind(before).bind(MAX_ROWS);
        let rows = query.fetch_all(&mut *change).await?;
        has_more |= rows.len() as i64 >= MAX_ROWS;
        let mut days: BTreeMap<DayKey, Vec<i64>> = BTreeMap::new();
        for row in &rows {
            let (key, sums) = table.read(row)?;
            let day = days.entry(key).or_insert_with(|| vec![0; sums.len()]);
            for (to, sum) in day.iter_mut().zip(sums) {
                *to = to.saturating_add(sum);
            }
        }
        let days: Vec<Vec<Value>> = days.into_iter().map(to_row).collect();
        table.add(&mut change, &days).await?;
    }
    let sql =
        "UPDATE store_state SET usage_days_before = $1 WHERE one = 1 AND usage_days_before < $1";
    sqlx::query(sql).bind(before).execute(&mut *change).await?;
    change.commit().await?;
    Ok(has_more)
}

fn to_row(((texts, numbers), sums): (DayKey, Vec<i64>)) -> Vec<Value> {
    let numbers = numbers.into_iter().chain(sums).map(Value::from);
    texts.into_iter().map(Value::from).chain(numbers).collect()
}

impl HourTable {
    /// Returns the SQL that deletes old rows and returns them. `$1`: the first hour that stays; `$2`: the number of rows.
    fn take_sql(&self) -> String {
        let (name, key) = (self.name, self.key().join(", "));
        let all = self.columns().join(", ");
        format!(
            "DELETE FROM {name} WHERE ({key}) IN (SELECT {key} FROM {name} \
             WHERE hour < $1 AND hour % 24 <> 0 ORDER BY hour LIMIT $2) RETURNING {all}"
        )
    }

    /// Returns what makes a row one of its day, and its sums.
    fn read(&self, row: &AnyRow) -> Result<(DayKey, Vec<i64>), StoreError> {
        let texts = self.texts.iter().map(|column| row.try_get(*column));
        let texts: Result<Vec<String>, _> = texts.collect();
        let read = |columns: &[&'static str]| -> Result<Vec<i64>, sqlx::Error> {
            columns.iter().map(|column| row.try_get(*column)).collect()
        };
        let mut numbers = read(self.numbers)?;
        // The hour is the last of them.
        numbers
            .last_mut()
            .into_iter()
            .for_each(|hour| *hour = first_of_day(*hour));
        Ok(((texts?, numbers), read(self.sums)?))
    }
}
