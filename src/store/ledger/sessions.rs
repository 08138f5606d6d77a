//! The sums of the calls of clients' sessions, by hour, key, session and agent, which are kept for 30 days.
//!
//! Ids of sessions and agents are the client's, so an hour of an organization has room for so many of them. What is beyond that
//! is summed by key alone, under empty ids: no cost is lost, and no client fills the store. Calls without a session cost nothing
//! here: no statement is made for them.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use filters::ledger::usage_query::UsageGroup;
use filters::ledger::{CallOutcome, CallOwner, LedgerEntry, SessionNames};
use sqlx::{AnyConnection, AssertSqlSafe, Row};

use super::super::{Store, StoreError};
use super::HOUR_MS;
use super::days::MAX_ROWS;
use super::hour_tables::{HourRow, HourSums, SESSIONS};
use super::rows::Rows;
use super::usage::{Usage, of_call};
use super::usage_hours::{AgentOrigin, Grouping, UsagePart, UsageScope};

/// The sessions and agents of an organization's hour that are summed by themselves. Processes that add at the same moment exceed
/// it by what each of them adds.
const MAX_OF_HOUR: i64 = 10_000;

/// Organization, hour, key, session, agent, and the agent that has asked that one.
type RowKey<'a> = (&'a str, i64, &'a str, &'a str, &'a str, &'a str);
type HourRows<'a> = BTreeMap<RowKey<'a>, HourSums<4>>;

/// Adds the calls of sessions to the hours in which they ended. Failed ones are no usage.
pub(super) async fn add(
    change: &mut AnyConnection,
    entries: &[&LedgerEntry],
) -> Result<(), StoreError> {
    let mut keys = Vec::new();
    let took = entries
        .iter()
        .filter(|entry| entry.outcome != CallOutcome::Failed);
    for entry in took {
        if let Some(names) = &entry.session {
            let key: RowKey<'_> = (
                &entry.owner.organization_id,
                entry.at_ms.div_euclid(HOUR_MS),
                &entry.owner.key_id,
                &names.session,
                &names.agent,
                &names.parent,
            );
            keys.push((key, *entry));
        }
    }
    if keys.is_empty() {
        return Ok(());
    }
    let beyond = beyond_bound(change, keys.iter().map(|(key, _)| *key).collect()).await?;
    let mut rows = HourRows::new();
    for (key, entry) in keys {
        let (organization, hour, of_key, ..) = key;
        let key = match beyond.contains(&key) {
            true => (organization, hour, of_key, "", "", ""),
            false => key,
        };
        let usage = &entry.usage;
        let counts = [
            1,
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.completion_tokens,
        ];
        rows.entry(key).or_default().add(counts, usage.total());
    }
    let rows = rows.into_iter().map(|(key, sums)| {
        let (organization, hour, key, session, agent, parent) = key;
        HourRow {
            texts: [organization, key, session, agent, parent],
            numbers: sums.to_numbers(&[hour]),
        }
    });
    let rows: Vec<_> = rows.collect();
    SESSIONS.add(change, &rows).await
}

/// Returns those rows that are new and for which their hour has no room. Cost: counts the rows of these hours.
async fn beyond_bound<'a>(
    change: &mut AnyConnection,
    keys: BTreeSet<RowKey<'a>>,
) -> Result<HashSet<RowKey<'a>>, StoreError> {
    let mut wanted: BTreeMap<(&str, i64), i64> = BTreeMap::new();
    for (organization, hour, ..) in &keys {
        *wanted.entry((organization, *hour)).or_default() += 1;
    }
    let hours: Vec<_> = wanted.into_iter().collect();
    let held = held(change, &hours).await?;
    let room = hours.into_iter().zip(held);
    let room = room.filter(|((_, wanted), held)| held + wanted > MAX_OF_HOUR);
    let room = room.map(|((hour, _), held)| (hour, MAX_OF_HOUR - held));
    let mut room: HashMap<(&str, i64), i64> = room.collect();
    let keys = keys.into_iter();
    let keys: Vec<_> = keys
        .filter(|key| room.contains_key(&(key.0, key.1)))
        .collect();
    if keys.is_empty() {
        return Ok(HashSet::new());
    }
    let known = known(change, &keys).await?;
    let keys = (0..).zip(keys).filter(|(place, _)| !known.contains(place));
    let beyond = keys.map(|(_, key)| key).filter(|key| {
        let room = room.entry((key.0, key.1)).or_default();
        *room -= 1;
        *room < 0
    });
    Ok(beyond.collect())
}

/// Returns how many rows there are of each of these hours.
async fn held(
    change: &mut AnyConnection,
    hours: &[((&str, i64), i64)],
) -> Result<Vec<i64>, StoreError> {
    let hours = (0..).zip(hours);
    let hours: Vec<(&str, i64, i64)> = hours
        .map(|(at, ((id, hour), _))| (*id, *hour, at))
        .collect();
    let sql = "SELECT (SELECT COUNT(*) FROM session_hours s WHERE s.organization_id = value ->> 0 \
               AND s.hour = CAST(value ->> 1 AS BIGINT)) FROM {rows} \
               ORDER BY CAST(value ->> 2 AS BIGINT)";
    let hours = Rows::new(change, &hours)?;
    let counts = hours.query(sql).fetch_all(change).await?;
    counts.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

/// Returns the places of those rows that exist.
async fn known(
    change: &mut AnyConnection,
    keys: &[RowKey<'_>],
) -> Result<HashSet<i64>, StoreError> {
    let keys: Vec<_> = (0_i64..).zip(keys).collect();
    let sql = "SELECT CAST(value ->> 0 AS BIGINT) FROM {rows} WHERE EXISTS (\
               SELECT 1 FROM session_hours s WHERE s.organization_id = value -> 1 ->> 0 \
               AND s.hour = CAST(value -> 1 ->> 1 AS BIGINT) AND s.key_id = value -> 1 ->> 2 \
               AND s.session_id = value -> 1 ->> 3 AND s.agent_id = value -> 1 ->> 4 \
               AND s.parent_agent_id = value -> 1 ->> 5)";
    let keys = Rows::new(change, &keys)?;
    let places = keys.query(sql).fetch_all(change).await?;
    places.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

impl Store {
    /// Returns the usage of an organization since a time by session, or by the agents of sessions, in the order of their ids.
    ///
    /// Times count as in [`Self::usage`]. Errors: [`StoreError::NotFound`].
    pub async fn usage_by_session(
        &self,
        organization: &str,
        since_ms: i64,
        group: UsageGroup,
    ) -> Result<Vec<UsagePart>, StoreError> {
        let scope = UsageScope {
            organization_id: self.organization(organization).await?.id.into(),
            key_id: None,
        };
        let since = self.since(since_ms).await?;
        let grouping = Grouping::new(group);
        let read = async |hours| self.read_parts(&scope, &grouping, hours, "").await;
        let mut parts = read((since.first_hour, i64::MAX)).await?;
        if let Some(hour) = since.cut_hour {
            let of_hour = read((hour, since.first_hour)).await?;
            let id = &scope.organization_id;
            let (all, in_hour) = self.calls_of_sessions((id, hour), since_ms, group).await?;
            // If some of its calls are gone, the hour counts as a whole.
            let summed: i64 = of_hour.iter().map(|part| part.usage.requests).sum();
            parts.extend(if all < summed { of_hour } else { in_hour });
        }
        let mut sums: BTreeMap<(String, String), UsagePart> = BTreeMap::new();
        for part in parts {
            let session = part.origin.as_ref().map(|origin| origin.session.clone());
            let key = (session.unwrap_or_default(), part.usage.name.clone());
            match sums.entry(key) {
                Entry::Vacant(place) => _ = place.insert(part),
                Entry::Occupied(mut sum) => sum.get_mut().add(part),
            }
        }
        Ok(sums.into_values().collect())
    }

    /// Returns the number of all calls of sessions of an hour, and those since a time.
    async fn calls_of_sessions(
        &self,
        (id, hour): (&str, i64),
        since_ms: i64,
        group: UsageGroup,
    ) -> Result<(i64, Vec<UsagePart>), StoreError> {
        let of_hour = (hour * HOUR_MS, (hour + 1) * HOUR_MS);
        let is_wanted = |owner: &CallOwner| *owner.organization_id == *id;
        let (mut all, mut since) = (0, Vec::new());
        self.visit_calls(of_hour, is_wanted, |call| {
            let names = call.session.as_deref();
            let Some(names) = names.filter(|_| call.outcome != CallOutcome::Failed) else {
                return;
            };
            all += 1;
            let is_since = call.at_ms >= since_ms;
            since.extend(is_since.then(|| UsagePart::of_call(call, names, group)));
        })
        .await?;
        Ok((all, since))
    }

    /// Deletes some sums of sessions of hours before this one. Returns whether there may be more.
    pub async fn delete_old_sessions(&self, before: i64) -> Result<bool, StoreError> {
        let _turn = self.write_turn().await;
        let key = SESSIONS.key().join(", ");
        let sql = format!(
            "DELETE FROM session_hours WHERE ({key}) IN \
             (SELECT {key} FROM session_hours WHERE hour < $1 ORDER BY hour LIMIT $2)"
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(before).bind(MAX_ROWS);
        let deleted = query.execute(&mut self.pool.acquire().await?).await?;
        Ok(deleted.rows_affected() == MAX_ROWS.unsigned_abs())
    }
}

impl UsagePart {
    /// Returns a single call of a session.
    fn of_call(call: &LedgerEntry, names: &SessionNames, group: UsageGroup) -> Self {
        let (name, origin) = match group {
            UsageGroup::Agent => {
                let (session, parent) = (names.session.to_string(), names.parent.to_string());
                (&names.agent, Some(AgentOrigin { session, parent }))
            }
            _ => (&names.session, None),
        };
        Self {
            usage: Usage {
                name: name.to_string(),
                ..of_call(call)
            },
            label: None,
            origin,
        }
    }

    /// Adds a part of the same name.
    fn add(&mut self, other: Self) {
        self.usage.add(&other.usage);
        if let Some((own, other)) = self.origin.as_mut().zip(other.origin) {
            own.parent = other.parent.max(std::mem::take(&mut own.parent));
        }
    }
}
