//! The sums of the calls of experiments, by hour and by variation, which are kept for good.
//!
//! Calls without an experiment cost nothing here: no statement is made for them.

use std::collections::BTreeMap;

use filters::ledger::duration_step::{duration_of_step, duration_step, percentile};
use filters::ledger::{CallOutcome, CallOwner, ExperimentNames, LedgerEntry};
use filters::money::Usd;
use sqlx::any::AnyRow;
use sqlx::{AnyConnection, Row};

use super::super::{Store, StoreError};
use super::hour_tables::{HourRow, HourSums, VARIATIONS};
use super::{HOUR_MS, join_cost};

/// Organization, hour, project, experiment, outcome, step of the duration.
type RowKey<'a> = (&'a str, i64, &'a str, &'a ExperimentNames, &'a str, u32);

/// Adds the calls of experiments to the hours in which they ended.
pub(super) async fn add(
    change: &mut AnyConnection,
    entries: &[&LedgerEntry],
) -> Result<(), StoreError> {
    let mut rows: BTreeMap<RowKey<'_>, HourSums<4>> = BTreeMap::new();
    for entry in entries {
        let Some(names) = &entry.experiment else {
            continue;
        };
        let key: RowKey<'_> = (
            &entry.owner.organization_id,
            entry.at_ms.div_euclid(HOUR_MS),
            &entry.owner.project_id,
            names,
            entry.outcome.as_str(),
            duration_step(entry.duration_ms),
        );
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
        let (organization, hour, project, names, outcome, step) = key;
        let (flag, rule, variation) = (&*names.flag, &*names.rule, &*names.variation);
        HourRow {
            texts: [organization, project, flag, rule, variation, outcome],
            numbers: sums.to_numbers(&[i64::from(step), hour]),
        }
    });
    let rows: Vec<_> = rows.collect();
    VARIATIONS.add(change, &rows).await
}

/// The calls of a variation: those that were completed, cut short, or failed.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct VariationUsage {
    pub project: String,
    /// Flag, rule and variation.
    pub names: ExperimentNames,
    pub requests: u64,
    /// How many of them no provider answered, or broke off.
    pub failures: u64,
    pub prompt_tokens: i64,
    /// Prompt tokens read from a provider's cache.
    pub cached_tokens: i64,
    pub completion_tokens: i64,
    /// The cost, including calls that BYOK keys paid.
    pub cost: Usd,
    /// The time that half of the completed calls took at most, in milliseconds; `None`: none was completed.
    pub duration_p50_ms: Option<u64>,
    /// The same of 95 of 100.
    pub duration_p95_ms: Option<u64>,
}

/// Calls of one variation, outcome and duration.
struct Calls {
    project: String,
    names: ExperimentNames,
    outcome: String,
    step: u32,
    requests: u64,
    prompt_tokens: i64,
    cached_tokens: i64,
    completion_tokens: i64,
    cost: Usd,
}

/// A sum of calls before its percentiles are taken.
#[derive(Default)]
struct Sum {
    usage: VariationUsage,
    /// The completed calls by the step of their duration.
    completed: BTreeMap<u32, u64>,
}

impl Store {
    /// Returns the calls of an organization's experiments since a time by variation, in the order of projects and names.
    ///
    /// Times count as in [`Self::usage`]. Errors: [`StoreError::NotFound`].
    pub async fn usage_by_variation(
        &self,
        organization: &str,
        since_ms: i64,
    ) -> Result<Vec<VariationUsage>, StoreError> {
        let id = self.organization(organization).await?.id;
        let since = self.since(since_ms).await?;
        let mut calls = self
            .calls_of_hours(&id, (since.first_hour, i64::MAX))
            .await?;
        if let Some(hour) = since.cut_hour {
            let of_hour = self.calls_of_hours(&id, (hour, since.first_hour)).await?;
            let (all, in_hour) = self.calls_of_hour_since(&id, hour, since_ms).await?;
            // If some of its calls are gone, the hour counts as a whole.
            let summed: u64 = of_hour.iter().map(|calls| calls.requests).sum();
            calls.extend(if all < summed { of_hour } else { in_hour });
        }
        let mut sums: BTreeMap<(String, ExperimentNames), Sum> = BTreeMap::new();
        for calls in calls {
            let key = (calls.project.clone(), calls.names.clone());
            sums.entry(key).or_default().add(&calls);
        }
        let projects = self.projects(organization).await?;
        let name = |id: String| {
            let project = projects.iter().find(|project| project.id == id);
            project.map_or(id, |project| project.name.clone())
        };
        let sums = sums.into_iter();
        let mut rows: Vec<_> = sums
            .map(|((project, names), sum)| sum.into_usage(name(project), names))
            .collect();
        rows.sort_by(|a, b| (&a.project, &a.names).cmp(&(&b.project, &b.names)));
        Ok(rows)
    }

    /// Returns the calls of the hours from one on and before another.
    async fn calls_of_hours(
        &self,
        id: &str,
        (from, until): (i64, i64),
    ) -> Result<Vec<Calls>, StoreError> {
        let sql = "SELECT project_id, flag, rule, variation, outcome, duration_step, \
                   CAST(SUM(requests) AS BIGINT) AS requests, \
                   CAST(SUM(prompt_tokens) AS BIGINT) AS prompt_tokens, \
                   CAST(SUM(cached_tokens) AS BIGINT) AS cached_tokens, \
                   CAST(SUM(completion_tokens) AS BIGINT) AS completion_tokens, \
                   CAST(SUM(cost_nano) AS BIGINT) AS cost_nano, \
                   CAST(SUM(cost_rest) AS BIGINT) AS cost_rest \
                   FROM variation_hours WHERE organization_id = $1 AND hour >= $2 AND hour < $3 \
                   GROUP BY project_id, flag, rule, variation, outcome, duration_step";
        let query = sqlx::query(sql).bind(id.to_owned()).bind(from).bind(until);
        let rows = query.fetch_all(&mut self.pool.acquire().await?).await?;
        rows.iter().map(Calls::read).collect()
    }

    /// Returns the number of all calls of an hour, and those since a time.
    async fn calls_of_hour_since(
        &self,
        id: &str,
        hour: i64,
        since_ms: i64,
    ) -> Result<(u64, Vec<Calls>), StoreError> {
        let of_hour = (hour * HOUR_MS, (hour + 1) * HOUR_MS);
        let is_wanted = |owner: &CallOwner| *owner.organization_id == *id;
        let (mut all, mut since) = (0, Vec::new());
        self.visit_calls(of_hour, is_wanted, |call| {
            if let Some(names) = &call.experiment {
                all += 1;
                let is_since = call.at_ms >= since_ms;
                since.extend(is_since.then(|| Calls::of_call(call, names)));
            }
        })
        .await?;
        Ok((all, since))
    }
}

impl Calls {
    fn read(row: &AnyRow) -> Result<Self, StoreError> {
        let text = |column| row.try_get::<String, _>(column);
        let count = |column| row.try_get::<i64, _>(column);
        Ok(Self {
            project: text("project_id")?,
            names: ExperimentNames {
                flag: text("flag")?.into(),
                rule: text("rule")?.into(),
                variation: text("variation")?.into(),
            },
            outcome: text("outcome")?,
            step: u32::try_from(count("duration_step")?).unwrap_or_default(),
            requests: count("requests")?.unsigned_abs(),
            prompt_tokens: count("prompt_tokens")?,
            cached_tokens: count("cached_tokens")?,
            completion_tokens: count("completion_tokens")?,
            cost: join_cost(count("cost_nano")?, count("cost_rest")?),
        })
    }

    /// Returns a single call.
    fn of_call(call: &LedgerEntry, names: &ExperimentNames) -> Self {
        let count = |tokens| i64::try_from(tokens).unwrap_or(i64::MAX);
        Self {
            project: call.owner.project_id.as_ref().to_owned(),
            names: names.clone(),
            outcome: call.outcome.as_str().to_owned(),
            step: duration_step(call.duration_ms),
            requests: 1,
            prompt_tokens: count(call.usage.prompt_tokens),
            cached_tokens: count(call.usage.cached_tokens),
            completion_tokens: count(call.usage.completion_tokens),
            cost: call.usage.total(),
        }
    }
}

impl Sum {
    fn add(&mut self, calls: &Calls) {
        let usage = &mut self.usage;
        usage.requests += calls.requests;
        usage.prompt_tokens = usage.prompt_tokens.saturating_add(calls.prompt_tokens);
        usage.cached_tokens = usage.cached_tokens.saturating_add(calls.cached_tokens);
        usage.completion_tokens = usage
            .completion_tokens
            .saturating_add(calls.completion_tokens);
        usage.cost = usage.cost.plus(calls.cost);
        let ended = |outcome: CallOutcome| calls.outcome == outcome.as_str();
        if ended(CallOutcome::Failed) || ended(CallOutcome::Broken) {
            usage.failures += calls.requests;
        }
        if ended(CallOutcome::Completed) {
            *self.completed.entry(calls.step).or_default() += calls.requests;
        }
    }

    fn into_usage(self, project: String, names: ExperimentNames) -> VariationUsage {
        let completed: Vec<_> = self.completed.into_iter().collect();
        let duration = |percent| percentile(&completed, percent).map(duration_of_step);
        VariationUsage {
            project,
            names,
            duration_p50_ms: duration(50),
            duration_p95_ms: duration(95),
            ..self.usage
        }
    }
}
