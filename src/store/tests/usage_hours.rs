//! Sums of whole hours, for callers who ask about themselves.

use filters::ledger::usage_query::{
    BreakdownQuery, Granularity, UsageGroup, UsageHours, UsageOrder, UsageQuery,
};
use filters::ledger::{CallOwner, LedgerEntry};

use super::super::ledger::UsageScope;
use super::ledger::{ORG, entry, usd};
use super::*;

on_both!(
    periods_are_summed_and_empty_ones_left_out,
    parts_are_sorted_and_paged,
    a_key_sees_its_own_calls_alone_and_organizations_are_apart,
);

const HOUR_MS: i64 = 3_600_000;
const NOW_HOUR: i64 = NOW_MS / HOUR_MS;

fn scope(key_id: Option<&str>) -> UsageScope {
    UsageScope {
        organization_id: ORG.into(),
        key_id: key_id.map(Into::into),
    }
}

/// A call of a key and a model, some hours after the others.
fn call(n: u8, cost: &str, (key, model): (&str, &str), hours: i64) -> LedgerEntry {
    let mut call = entry(n, cost);
    call.at_ms += hours * HOUR_MS;
    call.owner = CallOwner {
        key_id: key.into(),
        ..call.owner
    };
    call.usage.model = model.into();
    call
}

impl Fixture {
    async fn with_calls(&self) {
        self.grant("100").await;
        let calls = vec![
            call(1, "1", ("key_1", "small"), 0),
            call(2, "0.000000000600000000", ("key_1", "large"), 1),
            call(3, "0.000000000600000001", ("key_2", "large"), 1),
            call(4, "0.000000001000000000", ("key_2", "other"), 25),
        ];
        self.post("a", calls).await;
    }

    async fn parts(&self, scope: &UsageScope, asked: BreakdownQuery) -> Vec<(String, i64)> {
        let parts = self.store.usage_parts(scope, asked).await.unwrap();
        let parts = parts.into_iter();
        parts
            .map(|part| (part.usage.name, part.usage.requests))
            .collect()
    }
}

fn hours(from: i64, until: i64) -> UsageHours {
    UsageHours {
        from: NOW_HOUR + from,
        until: NOW_HOUR + until,
    }
}

async fn periods_are_summed_and_empty_ones_left_out(fixture: Fixture) {
    fixture.with_calls().await;
    let asked = |from, until, granularity| UsageQuery {
        hours: hours(from, until),
        granularity,
    };
    let read = async |asked: UsageQuery| {
        let periods = fixture.store.usage_periods(&scope(None), asked).await;
        let periods = periods.unwrap().into_iter().map(|period| {
            let usage = period.usage;
            (period.first_hour - NOW_HOUR, usage.requests, usage.cost)
        });
        periods.collect::<Vec<_>>()
    };
    let by_hour = read(asked(0, 26, Granularity::Hour)).await;
    let cent = usd("0.000000001200000001");
    assert_eq!(
        by_hour,
        [(0, 1, usd("1")), (1, 2, cent), (25, 1, usd("0.000000001"))]
    );
    // The first day has the hours that it has been asked for.
    let midnight = NOW_HOUR.div_euclid(24) * 24 - NOW_HOUR;
    let by_day = read(asked(1, 26, Granularity::Day)).await;
    let total: i64 = by_day.iter().map(|(_, requests, _)| requests).sum();
    assert_eq!(total, 3);
    for (first_hour, _, _) in by_day {
        assert_eq!((first_hour - midnight) % 24, 0);
    }
    assert_eq!(read(asked(2, 25, Granularity::Hour)).await, []);
}

fn models_by_cost() -> BreakdownQuery {
    BreakdownQuery {
        hours: hours(0, 26),
        group: UsageGroup::Model,
        order: UsageOrder::Cost,
        limit: 10,
        offset: 0,
    }
}

async fn parts_are_sorted_and_paged(fixture: Fixture) {
    fixture.with_calls().await;
    let asked = models_by_cost();
    let named = |names: &[(&str, i64)]| {
        let names = names.iter();
        names
            .map(|(name, count)| ((*name).to_owned(), *count))
            .collect::<Vec<_>>()
    };
    let all = scope(None);
    // Two fractions of a billionth come to more than one billionth.
    let by_cost = named(&[("small", 1), ("large", 2), ("other", 1)]);
    assert_eq!(fixture.parts(&all, asked).await, by_cost);
    let by_requests = BreakdownQuery {
        order: UsageOrder::Requests,
        ..asked
    };
    let expected = named(&[("large", 2), ("other", 1), ("small", 1)]);
    assert_eq!(fixture.parts(&all, by_requests).await, expected);
    let by_tokens = BreakdownQuery {
        order: UsageOrder::Tokens,
        limit: 1,
        offset: 1,
        ..asked
    };
    // One more, which says that there are more.
    assert_eq!(fixture.parts(&all, by_tokens).await, expected[1..]);
    let page = BreakdownQuery {
        offset: 3,
        ..by_tokens
    };
    assert_eq!(fixture.parts(&all, page).await, []);
    let by_key = BreakdownQuery {
        group: UsageGroup::ApiKey,
        ..asked
    };
    let expected = named(&[("key_1", 2), ("key_2", 2)]);
    assert_eq!(fixture.parts(&all, by_key).await, expected);
}

async fn a_key_sees_its_own_calls_alone_and_organizations_are_apart(fixture: Fixture) {
    fixture.with_calls().await;
    let asked = models_by_cost();
    let own = fixture.parts(&scope(Some("key_2")), asked).await;
    assert_eq!(own, [("other".to_owned(), 1), ("large".to_owned(), 1)]);
    let by_hour = UsageQuery {
        hours: asked.hours,
        granularity: Granularity::Hour,
    };
    let own = scope(Some("key_2"));
    let own = fixture.store.usage_periods(&own, by_hour).await.unwrap();
    assert_eq!(own.len(), 2);
    let other = UsageScope {
        organization_id: "org_other".into(),
        key_id: None,
    };
    assert_eq!(fixture.parts(&other, asked).await, []);
    let other = fixture.store.usage_periods(&other, by_hour).await.unwrap();
    assert_eq!(other, []);
}
