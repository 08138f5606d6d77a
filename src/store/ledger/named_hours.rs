//! Sums by names that clients choose: of sessions with their agents, and of tags. They are kept for 30 days.
//!
//! Such names are without end and without number, so an hour of an organization has room for so many of them in each table. What is
//! beyond that is summed by key alone, under empty names: no cost is lost, and no client fills the store. Calls without names cost
//! nothing here: no statement is made for them.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use filters::ledger::LedgerEntry;
use sqlx::{AnyConnection, AssertSqlSafe, Row};

use super::super::{Store, StoreError};
use super::HOUR_MS;
use super::days::MAX_ROWS;
use super::hour_tables::{HourRow, HourSums, HourTable, SESSIONS, TAGS};
use super::rows::Rows;

/// The names of an organization's hour that are summed by themselves. Processes that add at the same moment exceed it by what each of
/// them adds.
const MAX_OF_HOUR: i64 = 10_000;
/// The texts of a row that are no names of clients: the organization and the key.
const OWN_TEXTS: usize = 2;

/// A row of an hour: the hour, and the texts of its table, the organization and the key first.
type RowKey<'a, const TEXTS: usize> = (i64, [&'a str; TEXTS]);

/// Adds calls to the hours in which they ended, each under these texts.
pub(super) async fn add<'a, const TEXTS: usize>(
    change: &mut AnyConnection,
    table: &HourTable,
    calls: &[(&'a LedgerEntry, [&'a str; TEXTS])],
) -> Result<(), StoreError> {
    if calls.is_empty() {
        return Ok(());
    }
    let key = |(entry, texts): &(&'a LedgerEntry, [&'a str; TEXTS])| {
        (entry.at_ms.div_euclid(HOUR_MS), *texts)
    };
    let beyond = beyond_bound(change, table, calls.iter().map(key).collect()).await?;
    let mut rows: BTreeMap<RowKey<'a, TEXTS>, HourSums<4>> = BTreeMap::new();
    for call in calls {
        let (hour, mut texts) = key(call);
        if beyond.contains(&(hour, texts)) {
            texts.iter_mut().skip(OWN_TEXTS).for_each(|name| *name = "");
        }
        let usage = &call.0.usage;
        let counts = [
            1,
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.completion_tokens,
        ];
        let sums = rows.entry((hour, texts)).or_default();
        sums.add(counts, usage.total());
    }
    let rows = rows.into_iter().map(|((hour, texts), sums)| HourRow {
        texts,
        numbers: sums.to_numbers(&[hour]),
    });
    let rows: Vec<_> = rows.collect();
    table.add(change, &rows).await
}

/// Returns those rows that are new and for which their hour has no room. Cost: counts the rows of these hours.
async fn beyond_bound<'a, const TEXTS: usize>(
    change: &mut AnyConnection,
    table: &HourTable,
    keys: BTreeSet<RowKey<'a, TEXTS>>,
) -> Result<HashSet<RowKey<'a, TEXTS>>, StoreError> {
    let mut wanted: BTreeMap<(&str, i64), i64> = BTreeMap::new();
    for key in &keys {
        *wanted.entry(hour_of(key)).or_default() += 1;
    }
    let hours: Vec<_> = wanted.into_iter().collect();
    let held = held(change, table, &hours).await?;
    let room = hours.into_iter().zip(held);
    let room = room.filter(|((_, wanted), held)| held + wanted > MAX_OF_HOUR);
    let room = room.map(|((hour, _), held)| (hour, MAX_OF_HOUR - held));
    let mut room: HashMap<(&str, i64), i64> = room.collect();
    let keys = keys.into_iter();
    let keys: Vec<_> = keys
        .filter(|key| room.contains_key(&hour_of(key)))
        .collect();
    if keys.is_empty() {
        return Ok(HashSet::new());
    }
    let known = known(change, table, &keys).await?;
    let keys = (0..).zip(keys).filter(|(place, _)| !known.contains(place));
    let beyond = keys.map(|(_, key)| key).filter(|key| {
        let room = room.entry(hour_of(key)).or_default();
        *room -= 1;
        *room < 0
    });
    Ok(beyond.collect())
}

fn hour_of<'a, const TEXTS: usize>((hour, texts): &RowKey<'a, TEXTS>) -> (&'a str, i64) {
    (texts.first().copied().unwrap_or_default(), *hour)
}

/// Returns how many rows there are of each of these hours.
async fn held(
    change: &mut AnyConnection,
    table: &HourTable,
    hours: &[((&str, i64), i64)],
) -> Result<Vec<i64>, StoreError> {
    let hours = (0..).zip(hours);
    let hours: Vec<(&str, i64, i64)> = hours
        .map(|(at, ((id, hour), _))| (*id, *hour, at))
        .collect();
    let sql = format!(
        "SELECT (SELECT COUNT(*) FROM {} s WHERE s.organization_id = value ->> 0 \
         AND s.hour = CAST(value ->> 1 AS BIGINT)) FROM {{rows}} \
         ORDER BY CAST(value ->> 2 AS BIGINT)",
        table.name
    );
    let hours = Rows::new(change, &hours)?;
    let counts = hours.query(&sql).fetch_all(change).await?;
    counts.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Returns the places of those rows that exist.
async fn known<const TEXTS: usize>(
    change: &mut AnyConnection,
    table: &HourTable,
    keys: &[RowKey<'_, TEXTS>],
) -> Result<HashSet<i64>, StoreError> {
    let keys = (0_i64..).zip(keys);
    let keys: Vec<(i64, i64, &[&str])> = keys
        .map(|(place, (hour, texts))| (place, *hour, texts.as_slice()))
        .collect();
    let texts = table.texts.iter().enumerate();
    let texts = texts.map(|(place, text)| format!(" AND s.{text} = value -> 2 ->> {place}"));
    let sql = format!(
        "SELECT CAST(value ->> 0 AS BIGINT) FROM {{rows}} WHERE EXISTS (\
         SELECT 1 FROM {} s WHERE s.hour = CAST(value ->> 1 AS BIGINT){})",
        table.name,
        texts.collect::<String>()
    );
    let keys = Rows::new(change, &keys)?;
    let places = keys.query(&sql).fetch_all(change).await?;
    places.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

impl Store {
    /// Deletes some sums by names of hours before this one. Returns whether there may be more.
    pub async fn delete_old_named_hours(&self, before: i64) -> Result<bool, StoreError> {
        let _turn = self.write_turn().await;
        let mut connection = self.pool.acquire().await?;
        let mut may_be_more = false;
        for table in [SESSIONS, TAGS] {
            let (name, key) = (table.name, table.key().join(", "));
            let sql = format!(
                "DELETE FROM {name} WHERE ({key}) IN \
                 (SELECT {key} FROM {name} WHERE hour < $1 ORDER BY hour LIMIT $2)"
            );
            let query = sqlx::query(AssertSqlSafe(sql)).bind(before).bind(MAX_ROWS);
            let deleted = query.execute(&mut connection).await?;
            may_be_more |= deleted.rows_affected() == MAX_ROWS.unsigned_abs();
        }
        Ok(may_be_more)
    }
}
