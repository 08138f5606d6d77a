//! The sums of calls by the hour, which are kept for good: those of old hours by the day ([`super::days`]).

use std::collections::BTreeMap;

use filters::ledger::{CallOutcome, LedgerEntry};
use sqlx::AnyConnection;

use super::super::StoreError;
use super::HOUR_MS;
use super::hour_tables::{HourRow, HourSums, USAGE};

/// Organization, hour, key, model, provider, outcome.
type HourKey<'a> = (&'a str, i64, &'a str, &'a str, &'a str, &'a str);

/// Adds calls to the hours in which they ended. Failed ones are no usage.
pub(super) async fn add(
    change: &mut AnyConnection,
    entries: &[&LedgerEntry],
) -> Result<(), StoreError> {
    let mut hours: BTreeMap<HourKey<'_>, HourSums<7>> = BTreeMap::new();
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
        hours.entry(key).or_default().add(counts, usage.total());
    }
    let rows = hours.into_iter().map(|(key, sums)| {
        let (organization, hour, key, model, provider, outcome) = key;
        HourRow {
            texts: [organization, key, model, provider, outcome],
            numbers: sums.to_numbers(&[hour]),
        }
    });
    let rows: Vec<_> = rows.collect();
    USAGE.add(change, &rows).await
}
