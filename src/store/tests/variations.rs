//! The calls of experiments, summed by variation.

use std::sync::Arc;

use filters::ledger::{CallOutcome, ExperimentNames, Funding, LedgerEntry};

use super::super::ledger::{By, OldCalls, VariationUsage};
use super::ledger::{entry, usd};
use super::*;

on_both!(
    variations_have_their_calls_failures_costs_and_durations,
    calls_of_two_processes_are_one_sum,
    of_a_cut_hour_the_later_calls_of_variations_count_or_all,
    a_failed_call_is_in_no_other_sum,
);

const HOUR_MS: i64 = 3_600_000;

/// A call of a variation of the experiment `models`.
fn of(variation: &str, call: LedgerEntry) -> LedgerEntry {
    let names = ExperimentNames {
        flag: "models".into(),
        rule: "test".into(),
        variation: variation.into(),
    };
    LedgerEntry {
        experiment: Some(Arc::new(names)),
        ..call
    }
}

fn failed(n: u8) -> LedgerEntry {
    let mut call = entry(n, "0");
    call.usage.prompt_tokens = 0;
    call.usage.cost = None;
    LedgerEntry {
        outcome: CallOutcome::Failed,
        funding: Funding::Unbilled,
        ..call
    }
}

fn after(duration_ms: u64, call: LedgerEntry) -> LedgerEntry {
    LedgerEntry {
        duration_ms,
        ..call
    }
}

impl Fixture {
    async fn variations(&self, since_ms: i64) -> Vec<VariationUsage> {
        let usage = self.store.usage_by_variation("acme", since_ms).await;
        usage.unwrap()
    }

    /// Variation, calls and failures of each row.
    async fn counts(&self, since_ms: i64) -> Vec<(String, u64, u64)> {
        let rows = self.variations(since_ms).await;
        let counts = rows
            .iter()
            .map(|row| (row.names.variation.to_string(), row.requests, row.failures));
        counts.collect()
    }
}

async fn variations_have_their_calls_failures_costs_and_durations(fixture: Fixture) {
    fixture.organization("acme").await;
    let organization = fixture.store.organization("acme").await.unwrap().id;
    let project = fixture.store.projects("acme").await.unwrap().remove(0).id;
    let owned = |project: &str, mut call: LedgerEntry| {
        call.owner.organization_id = organization.as_str().into();
        call.owner.project_id = project.into();
        LedgerEntry {
            funding: Funding::Byok,
            ..call
        }
    };
    let broken = LedgerEntry {
        outcome: CallOutcome::Broken,
        ..entry(4, "0.001")
    };
    let calls = [
        of("a", after(100, entry(1, "0.1"))),
        of("a", after(200, entry(2, "0.2"))),
        of("a", after(9000, failed(3))),
        of("a", after(9000, broken)),
        of("b", after(5, entry(5, "0.03"))),
        entry(6, "4"),
    ];
    let mut calls: Vec<_> = calls.map(|call| owned(&project, call)).into();
    calls.push(owned("proj_gone", of("a", entry(7, "0.5"))));
    fixture.post("x", calls).await;
    let rows = fixture.variations(0).await;
    let names = rows.iter().map(|row| (&*row.project, &row.names));
    let names: Vec<_> = names
        .map(|(project, names)| (project, &*names.flag, &*names.rule, &*names.variation))
        .collect();
    let expected = [("default", "a"), ("default", "b"), ("proj_gone", "a")];
    assert_eq!(
        names,
        expected.map(|(project, key)| (project, "models", "test", key))
    );
    let (first, second) = (&rows[0], &rows[1]);
    assert_eq!((first.requests, first.failures), (4, 2));
    assert_eq!((first.prompt_tokens, first.cost), (9, usd("0.301")));
    // Of the completed calls.
    let durations = (first.duration_p50_ms, first.duration_p95_ms);
    assert_eq!(durations, (Some(100), Some(200)));
    assert_eq!((second.requests, second.failures), (1, 0));
    assert_eq!(second.duration_p95_ms, Some(5));
}

async fn calls_of_two_processes_are_one_sum(fixture: Fixture) {
    fixture.grant("1").await;
    fixture.post("x", vec![of("a", entry(1, "0.1"))]).await;
    let second = vec![of("a", entry(2, "0.2")), of("a", failed(3))];
    fixture.post("y", second.clone()).await;
    // A journal that comes back adds nothing.
    fixture.post("y", second).await;
    let rows = fixture.variations(0).await;
    assert_eq!((rows.len(), rows[0].requests, rows[0].failures), (1, 3, 1));
    assert_eq!(rows[0].cost, usd("0.3"));
}

async fn of_a_cut_hour_the_later_calls_of_variations_count_or_all(fixture: Fixture) {
    fixture.grant("1").await;
    let at = |later_ms, call| LedgerEntry {
        at_ms: NOW_MS + later_ms,
        ..call
    };
    let calls = vec![
        at(5, of("a", entry(1, "0.1"))),
        at(10, of("a", failed(2))),
        at(11, entry(3, "0.1")),
        at(HOUR_MS, of("b", entry(4, "0.1"))),
    ];
    fixture.post("x", calls).await;
    let (a, b) = ("a".to_owned(), ("b".to_owned(), 1, 0));
    assert_eq!(fixture.counts(NOW_MS).await, [(a.clone(), 2, 1), b.clone()]);
    assert_eq!(
        fixture.counts(NOW_MS + 6).await,
        [(a.clone(), 1, 1), b.clone()]
    );
    assert_eq!(fixture.counts(NOW_MS + 11).await, std::slice::from_ref(&b));
    assert_eq!(fixture.counts(NOW_MS + HOUR_MS + 1).await, []);
    fixture.store.forget_journal("x").await.unwrap();
    let old = OldCalls {
        before_ms: NOW_MS + 2 * HOUR_MS,
        owner: "other",
        own_before_ms: NOW_MS + 2 * HOUR_MS,
    };
    fixture.store.delete_old_calls(&old).await.unwrap();
    assert_eq!(fixture.counts(NOW_MS + 11).await, [(a, 2, 1), b]);
}

async fn a_failed_call_is_in_no_other_sum(fixture: Fixture) {
    fixture.grant("1").await;
    fixture.post("x", vec![of("a", failed(1))]).await;
    fixture
        .post("x", vec![of("a", failed(2)), entry(3, "0.1")])
        .await;
    for since_ms in [0, NOW_MS - 1] {
        for by in [None, Some(By::Key), Some(By::Model)] {
            let usage = fixture.store.usage("acme", since_ms, by).await.unwrap();
            assert_eq!((usage.len(), usage[0].requests), (1, 1), "{by:?}");
        }
        assert_eq!(fixture.counts(since_ms).await, [("a".to_owned(), 2, 2)]);
    }
    assert_eq!(fixture.account().await.settled, usd("0.1"));
}
