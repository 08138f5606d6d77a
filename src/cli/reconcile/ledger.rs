//! What the ledger has of a provider, by day and model.

use std::collections::BTreeMap;

use filters::ledger::usage_query::UsageHours;
use filters::ledger::{CallOutcome, Funding, LedgerEntry};
use filters::money::Usd;
use filters::reconcile::LedgerLine;
use jiff::civil::Date;
use jiff::{Timestamp, tz::TimeZone};

use crate::store::ledger::ProviderDay;
use crate::store::{Store, StoreError};

const DAY_MS: i64 = 86_400_000;
const DAY_HOURS: i64 = 24;

/// The ledger's lines of a provider.
pub(super) struct LedgerDays {
    pub(super) lines: Vec<LedgerLine>,
    /// The calls that callers' own keys have paid, which are not among the lines.
    pub(super) own_key_calls: u64,
    /// The days whose single calls are gone, so that such calls may be among their lines.
    pub(super) days_of_sums: Vec<Date>,
}

/// The single calls of a provider, by day and model.
#[derive(Default)]
struct SingleCalls {
    lines: BTreeMap<(i64, Box<str>), LedgerLine>,
    /// All calls of a day, those of own keys too.
    counts: BTreeMap<i64, u64>,
    own_key_calls: u64,
}

/// Reads the calls of days, numbered from the beginning of 1970: single ones where they are kept, else the sums.
pub(super) async fn read(
    store: &Store,
    provider: &str,
    (from, until): (i64, i64),
) -> Result<LedgerDays, StoreError> {
    let hours = UsageHours {
        from: from * DAY_HOURS,
        until: until * DAY_HOURS,
    };
    let sums = store.provider_days(provider, hours).await?;
    let mut calls = SingleCalls::default();
    let times = (from * DAY_MS, until * DAY_MS);
    let visit = store.visit_calls(times, |_| true, |call| calls.add(provider, call));
    visit.await?;
    Ok(calls.or_sums(&sums))
}

impl SingleCalls {
    fn add(&mut self, provider: &str, call: &LedgerEntry) {
        if *call.usage.provider != *provider || call.outcome == CallOutcome::Failed {
            return;
        }
        let day = call.at_ms.div_euclid(DAY_MS);
        *self.counts.entry(day).or_default() += 1;
        if call.funding == Funding::Byok {
            self.own_key_calls += 1;
            return;
        }
        let usage = &call.usage;
        let key = (day, Box::from(&*usage.model));
        let line = self.lines.entry(key);
        let line = line.or_insert_with(|| empty(day, &usage.model));
        let add = |sum: &mut u64, more: u64| *sum = sum.saturating_add(more);
        add(&mut line.requests, 1);
        let attempts = line.attempts.get_or_insert_default();
        add(attempts, u64::from(usage.attempts.max(1)));
        add(&mut line.input, usage.prompt_tokens);
        add(&mut line.cached, usage.cached_tokens);
        add(&mut line.cache_write, usage.cache_write_tokens);
        add(&mut line.output, usage.completion_tokens);
        add(&mut line.reasoning, usage.reasoning_tokens);
        add(&mut line.unpriced, u64::from(usage.cost.is_none()));
        line.cost = line.cost.plus(usage.total());
        let searches = usage.cost.map_or(Usd::ZERO, |cost| cost.web_search);
        line.search_cost = line.search_cost.plus(searches);
    }

    /// Takes the sums of those days of which calls are gone.
    fn or_sums(mut self, sums: &[ProviderDay]) -> LedgerDays {
        let mut of_days: BTreeMap<i64, u64> = BTreeMap::new();
        for sum in sums {
            *of_days.entry(sum.day).or_default() += sum.requests;
        }
        of_days
            .retain(|day, requests| self.counts.get(day).copied().unwrap_or_default() < *requests);
        self.lines.retain(|(day, _), _| !of_days.contains_key(day));
        let mut lines: Vec<LedgerLine> = self.lines.into_values().collect();
        let gone = sums.iter().filter(|sum| of_days.contains_key(&sum.day));
        lines.extend(gone.map(of_sum));
        LedgerDays {
            lines,
            own_key_calls: self.own_key_calls,
            days_of_sums: of_days.into_keys().map(to_date).collect(),
        }
    }
}

fn empty(day: i64, model: &str) -> LedgerLine {
    LedgerLine {
        day: to_date(day),
        model: model.into(),
        requests: 0,
        attempts: None,
        input: 0,
        cached: 0,
        cache_write: 0,
        output: 0,
        reasoning: 0,
        cost: Usd::ZERO,
        search_cost: Usd::ZERO,
        unpriced: 0,
        may_have_own_keys: false,
    }
}

fn of_sum(sum: &ProviderDay) -> LedgerLine {
    LedgerLine {
        requests: sum.requests,
        input: sum.prompt_tokens,
        cached: sum.cached_tokens,
        cache_write: sum.cache_write_tokens,
        output: sum.completion_tokens,
        reasoning: sum.reasoning_tokens,
        cost: sum.cost,
        may_have_own_keys: true,
        ..empty(sum.day, &sum.model)
    }
}

/// Returns the day of a number of days since the beginning of 1970, in UTC.
pub(super) fn to_date(day: i64) -> Date {
    let time = Timestamp::from_millisecond(day.saturating_mul(DAY_MS));
    time.map(|time| time.to_zoned(TimeZone::UTC).date())
        .unwrap_or_default()
}

/// Returns the number of days from the beginning of 1970 until a day.
pub(super) fn to_number(date: Date) -> i64 {
    let begins = date.to_zoned(TimeZone::UTC);
    begins.map_or(0, |begins| {
        begins.timestamp().as_millisecond().div_euclid(DAY_MS)
    })
}
