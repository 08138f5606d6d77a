//! What was spent, in its largest parts.

use filters::ledger::usage_query::{Granularity, UsageHours};
use filters::ledger::{CallOutcome, CallOwner, LedgerEntry};

use super::super::ledger::{MAX_SPENDERS, SpendBy, SpendQuery, Spending};
use super::ledger::{ORG, entry, usd};
use super::*;

on_both!(
    the_largest_parts_are_told_apart_and_the_rest_is_one_sum,
    the_sums_are_those_of_usage,
    a_part_has_the_same_place_in_each_period,
    organizations_and_keys_have_their_names,
    a_day_whose_hours_were_joined_counts_whole,
    nothing_is_spent_before_the_first_call,
);

const HOUR_MS: i64 = 3_600_000;
const NOW_HOUR: i64 = NOW_MS / HOUR_MS;

fn question(by: SpendBy, organization: Option<&str>) -> SpendQuery {
    SpendQuery {
        organization_id: organization.map(Into::into),
        hours: UsageHours {
            from: NOW_HOUR,
            until: NOW_HOUR + 48,
        },
        granularity: Granularity::Hour,
        by,
    }
}

/// A call of a model, some hours after the first.
fn call(n: u8, cost: &str, model: &str, hours: i64) -> LedgerEntry {
    let mut call = entry(n, cost);
    call.at_ms += hours * HOUR_MS;
    call.usage.model = model.into();
    call.usage.provider = "first".into();
    call
}

impl Fixture {
    async fn spending(&self, asked: &SpendQuery) -> Spending {
        self.store.spending(asked).await.unwrap()
    }

    async fn with_many_models(&self) {
        self.grant("100").await;
        let calls = (0..12_u8).map(|n| {
            let cost = format!("0.{:02}", n + 1);
            call(n, &cost, &format!("model-{n:02}"), i64::from(n % 2))
        });
        self.post("a", calls.collect()).await;
    }
}

fn names(spending: &Spending) -> Vec<&str> {
    let spenders = spending.spenders.iter();
    spenders.map(|it| &*it.usage.name).collect()
}

async fn the_largest_parts_are_told_apart_and_the_rest_is_one_sum(fixture: Fixture) {
    fixture.with_many_models().await;
    let spending = fixture.spending(&question(SpendBy::Model, None)).await;
    let expected: Vec<String> = (4..12).rev().map(|n| format!("model-{n:02}")).collect();
    assert_eq!(names(&spending), expected);
    assert_eq!(spending.spenders.len(), MAX_SPENDERS);
    assert_eq!(
        (spending.others.requests, spending.others.cost),
        (4, usd("0.1"))
    );
    assert_eq!(
        (spending.total.requests, spending.total.cost),
        (12, usd("0.78"))
    );
    assert_eq!(spending.total.prompt_tokens, 36);
}

async fn the_sums_are_those_of_usage(fixture: Fixture) {
    fixture.with_many_models().await;
    // A failed call is no usage.
    let failed = LedgerEntry {
        outcome: CallOutcome::Failed,
        ..call(99, "5", "model-00", 0)
    };
    fixture.post("a", vec![failed]).await;
    let usage = fixture.store.usage("acme", NOW_MS, None).await.unwrap();
    for by in SpendBy::ALL {
        for organization in [None, Some(ORG)] {
            let spending = fixture.spending(&question(by, organization)).await;
            assert_eq!(spending.total, usage[0], "{by:?}");
        }
    }
    let none = fixture
        .spending(&question(SpendBy::Model, Some("org_2")))
        .await;
    assert_eq!(none, Spending::default());
}

async fn a_part_has_the_same_place_in_each_period(fixture: Fixture) {
    fixture.with_many_models().await;
    let spending = fixture.spending(&question(SpendBy::Model, None)).await;
    let hours: Vec<i64> = spending.periods.iter().map(|it| it.first_hour).collect();
    assert_eq!(hours, [NOW_HOUR, NOW_HOUR + 1]);
    for (period, odd) in spending.periods.iter().zip([0, 1]) {
        assert_eq!(period.requests, 6);
        // The models are 11 down to 4, so each is in every other hour.
        for (place, cost) in period.costs[..MAX_SPENDERS].iter().enumerate() {
            let model = 11 - place;
            let expected = match model % 2 == odd {
                true => usd(&format!("0.{:02}", model + 1)),
                false => usd("0"),
            };
            assert_eq!(*cost, expected, "{model}");
        }
    }
    let periods = spending.periods.iter();
    let others: Vec<_> = periods.map(|it| it.costs[MAX_SPENDERS]).collect();
    assert_eq!(others, [usd("0.04"), usd("0.06")]);
    let by_day = SpendQuery {
        granularity: Granularity::Day,
        ..question(SpendBy::Model, None)
    };
    let by_day = fixture.spending(&by_day).await;
    assert_eq!(by_day.periods.len(), 1);
    assert_eq!(by_day.periods[0].first_hour % 24, 0);
    assert_eq!(by_day.total, spending.total);
}

async fn organizations_and_keys_have_their_names(fixture: Fixture) {
    fixture.organization("<b>acme").await;
    fixture.organization("globex").await;
    let mut calls = Vec::new();
    let mut key_ids = Vec::new();
    for (n, name) in [(1, "<b>acme"), (2, "globex")] {
        let (_, issued) = fixture.key(name).await;
        let mut call = call(n, &n.to_string(), "small", 0);
        call.owner = CallOwner {
            organization_id: fixture.store.organization(name).await.unwrap().id.into(),
            key_id: (*issued.id).into(),
            ..call.owner
        };
        key_ids.push(issued.id);
        calls.push(call);
    }
    let mut of_gone = calls[0].clone();
    of_gone.id.0[0] = 3;
    of_gone.owner.key_id = "key_gone".into();
    calls.push(of_gone);
    fixture.post("a", calls).await;
    let labels = |spending: &Spending| -> Vec<Option<String>> {
        let spenders = spending.spenders.iter();
        spenders.map(|it| it.label.clone()).collect()
    };
    let organizations = fixture
        .spending(&question(SpendBy::Organization, None))
        .await;
    let named = |name: &str| Some(name.to_owned());
    assert_eq!(labels(&organizations), [named("<b>acme"), named("globex")]);
    let keys = fixture.spending(&question(SpendBy::Key, None)).await;
    assert_eq!(keys.spenders[0].usage.name, key_ids[1]);
    let gone = keys.spenders.iter().find(|it| it.usage.name == "key_gone");
    assert_eq!(gone.unwrap().label, None);
    assert_eq!(labels(&keys)[0], named("ci"));
    let models = fixture.spending(&question(SpendBy::Model, None)).await;
    assert_eq!(labels(&models), [None]);
}

async fn a_day_whose_hours_were_joined_counts_whole(fixture: Fixture) {
    fixture.with_many_models().await;
    let midnight = NOW_HOUR - NOW_HOUR.rem_euclid(24);
    while fixture.store.join_hours(midnight + 24).await.unwrap() {}
    let asked = SpendQuery {
        hours: UsageHours {
            from: NOW_HOUR + 1,
            until: NOW_HOUR + 48,
        },
        ..question(SpendBy::Provider, None)
    };
    let spending = fixture.spending(&asked).await;
    assert_eq!(spending.total.requests, 12);
    assert_eq!(spending.periods[0].first_hour, midnight);
}

async fn nothing_is_spent_before_the_first_call(fixture: Fixture) {
    let spending = fixture.spending(&question(SpendBy::Key, None)).await;
    assert_eq!(spending, Spending::default());
}
