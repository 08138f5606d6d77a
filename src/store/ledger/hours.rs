//! The sums of calls by the hour, which are kept for good: those of old hours by the day ([`super::days`]).

use std::collections::BTreeMap;

use filters::ledger::{CallOutcome, LedgerEntry};
use filters::money::Usd;
use serde::ser::{Serialize, SerializeTuple, Serializer};
use sqlx::AnyConnection;

use super::super::StoreError;
use super::rows::Rows;
use super::{HOUR_MS, split_cost};

/// No reply has more tokens. A provider's false report must not overflow a sum, because that would stop all posting.
pub(super) const MAX_COUNT: u64 = 1_000_000_000_000;

// `WHERE 1 = 1`: without it SQLite takes the ON behind it for that of a join.
const ADD: &str = "\
INSERT INTO usage_hours (organization_id, hour, key_id, model, provider, outcome, requests, \
    prompt_tokens, cached_tokens, cache_write_tokens, completion_tokens, reasoning_tokens, \
    web_searches, cost_nano, cost_rest) \
SELECT value ->> 0, CAST(value ->> 1 AS BIGINT), value ->> 2, value ->> 3, value ->> 4, \
    value ->> 5, CAST(value ->> 6 AS BIGINT), CAST(value ->> 7 AS BIGINT), \
    CAST(value ->> 8 AS BIGINT), CAST(value ->> 9 AS BIGINT), CAST(value ->> 10 AS BIGINT), \
    CAST(value ->> 11 AS BIGINT), CAST(value ->> 12 AS BIGINT), CAST(value ->> 13 AS BIGINT), \
    CAST(value ->> 14 AS BIGINT) \
FROM {rows} WHERE 1 = 1 \
ON CONFLICT (organization_id, hour, key_id, model, provider, outcome) DO UPDATE SET \
    requests = usage_hours.requests + excluded.requests, \
    prompt_tokens = usage_hours.prompt_tokens + excluded.prompt_tokens, \
    cached_tokens = usage_hours.cached_tokens + excluded.cached_tokens, \
    cache_write_tokens = usage_hours.cache_write_tokens + excluded.cache_write_tokens, \
    completion_tokens = usage_hours.completion_tokens + excluded.completion_tokens, \
    reasoning_tokens = usage_hours.reasoning_tokens + excluded.reasoning_tokens, \
    web_searches = usage_hours.web_searches + excluded.web_searches, \
    cost_nano = usage_hours.cost_nano + excluded.cost_nano, \
    cost_rest = usage_hours.cost_rest + excluded.cost_rest";

/// The key of a row: organization, hour, key, model, provider, outcome.
type HourKey<'a> = (&'a str, i64, &'a str, &'a str, &'a str, &'a str);

/// The sums of a row: its counts, in the order of their columns, and the cost.
type HourSums = ([u64; 7], Usd);

/// A row, in the order of the columns that [`ADD`] reads.
struct HourRow<'a> {
    key: HourKey<'a>,
    counts: [u64; 7],
    /// As [`split_cost`] returns it.
    cost: (i64, i64),
}

impl<'a> From<(HourKey<'a>, HourSums)> for HourRow<'a> {
    fn from((key, (counts, cost)): (HourKey<'a>, HourSums)) -> Self {
        let cost = split_cost(cost);
        Self { key, counts, cost }
    }
}

impl Serialize for HourRow<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (organization, hour, key, model, provider, outcome) = self.key;
        let (nano, rest) = self.cost;
        let mut row = serializer.serialize_tuple(15)?;
        row.serialize_element(organization)?;
        row.serialize_element(&hour)?;
        for text in [key, model, provider, outcome] {
            row.serialize_element(text)?;
        }
        for count in self.counts {
            row.serialize_element(&count)?;
        }
        row.serialize_element(&nano)?;
        row.serialize_element(&rest)?;
        row.end()
    }
}

/// Adds calls to the hours in which they ended. Failed ones are no usage.
pub(super) async fn add(
    change: &mut AnyConnection,
    entries: &[&LedgerEntry],
) -> Result<(), StoreError> {
    let rows: Vec<HourRow<'_>> = sum(entries).into_iter().map(HourRow::from).collect();
    if rows.is_empty() {
        return Ok(());
    }
    let rows = Rows::new(change, &rows)?;
    rows.query(ADD).execute(change).await?;
    Ok(())
}

/// Sums calls, in the order in which all processes lock the rows: so none waits for another that waits for it.
fn sum<'a>(entries: &[&'a LedgerEntry]) -> BTreeMap<HourKey<'a>, HourSums> {
    let mut hours: BTreeMap<HourKey<'_>, HourSums> = BTreeMap::new();
    let took = entries
        .iter()
        .filter(|entry| entry.outcome != CallOutcome::Failed);
    for entry in took {
        let (owner, usage) = (&entry.owner, &entry.usage);
        let key: HourKey<'_> = (
            &owner.organization_id,
            entry.at_ms.div_euclid(HOUR_MS),
            &owner.key_id,
            &usage.model,
            &usage.provider,
            entry.outcome.as_str(),
        );
        let counts = [
            1,
            usage.prompt_tokens,
            usage.cached_tokens,
            usage.cache_write_tokens,
            usage.completion_tokens,
            usage.reasoning_tokens,
            usage.web_searches,
        ];
        let (sums, cost) = hours.entry(key).or_default();
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count.min(MAX_COUNT);
        }
        *cost = cost.plus(usage.total());
    }
    hours
}
