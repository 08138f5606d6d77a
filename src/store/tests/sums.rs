//! What would only grow: hours of usage, grants, and journals that nobody brings.

use filters::ledger::{EntryId, ExperimentNames, LedgerEntry};
use sqlx::Row;

use super::super::ledger::OldCalls;
use super::ledger::{ORG, entry, usd};
use super::*;

on_both![
    old_hours_become_days_and_every_sum_stays,
    grants_are_one_sum_and_those_of_an_earlier_version_count_too,
    a_journal_that_is_given_up_keeps_no_old_calls,
];

const HOUR_MS: i64 = 3_600_000;
const DAY_MS: i64 = 24 * HOUR_MS;
/// The first hour of a day.
const DAY: i64 = 20_833 * 24;

/// A call of an experiment that ended in this hour.
fn in_hour(number: u8, hour: i64) -> LedgerEntry {
    let names = ExperimentNames {
        flag: "models".into(),
        rule: "test".into(),
        variation: "a".into(),
    };
    LedgerEntry {
        id: EntryId([number; 16]),
        at_ms: hour * HOUR_MS + 5,
        experiment: Some(Arc::new(names)),
        ..entry(number, "0.1")
    }
}

impl Fixture {
    async fn count(&self, sql: &'static str) -> i64 {
        let row = sqlx::query(sql)
            .fetch_one(self.store.pool.unlimited())
            .await
            .unwrap();
        row.try_get(0).unwrap()
    }

    /// Requests and cost of all calls since an hour, and the calls of experiments.
    async fn sums_since(&self, hour: i64) -> (i64, filters::money::Usd, u64) {
        let usage = self
            .store
            .usage("acme", hour * HOUR_MS, None)
            .await
            .unwrap();
        let variations = self.store.usage_by_variation("acme", hour * HOUR_MS);
        let variations = variations.await.unwrap();
        let requests = variations.iter().map(|row| row.requests).sum();
        (usage[0].requests, usage[0].cost, requests)
    }
}

async fn old_hours_become_days_and_every_sum_stays(fixture: Fixture) {
    fixture.grant("100").await;
    let store = &fixture.store;
    let hours = [0, 1, 1, 5, 23, 24, 30, 50, 51];
    let calls = hours
        .iter()
        .zip(1..)
        .map(|(hour, n)| in_hour(n, DAY + hour));
    fixture.post("a", calls.collect()).await;
    let all = fixture.sums_since(0).await;
    assert_eq!(all, (9, usd("0.9"), 9));
    let rows = "SELECT COUNT(*) FROM usage_hours";
    let of_variations = "SELECT COUNT(*) FROM variation_hours";
    assert_eq!(
        (
            fixture.count(rows).await,
            fixture.count(of_variations).await
        ),
        (8, 8)
    );
    // Two days are over; of the third one hours stay.
    while store.join_hours(DAY + 51).await.unwrap() {}
    assert_eq!(
        (
            fixture.count(rows).await,
            fixture.count(of_variations).await
        ),
        (4, 4)
    );
    assert_eq!(fixture.sums_since(0).await, all);
    assert_eq!(fixture.sums_since(DAY + 24).await, (4, usd("0.4"), 4));
    assert_eq!(
        fixture.sums_since(DAY + 30).await.0,
        4,
        "its day counts whole"
    );
    assert_eq!(fixture.sums_since(DAY + 51).await, (1, usd("0.1"), 1));
    // A journal brings a call of such a day.
    fixture.post("b", vec![in_hour(10, DAY + 7)]).await;
    assert_eq!(fixture.count(rows).await, 5);
    while store.join_hours(DAY + 51).await.unwrap() {}
    assert_eq!(fixture.count(rows).await, 4);
    assert_eq!(fixture.sums_since(0).await, (10, usd("1"), 10));
    // An earlier time joins nothing, and takes nothing back.
    assert!(!store.join_hours(DAY).await.unwrap());
    assert_eq!(fixture.sums_since(DAY + 30).await.0, 4);
}

async fn grants_are_one_sum_and_those_of_an_earlier_version_count_too(fixture: Fixture) {
    let to_sum = "SELECT COUNT(*) FROM credit_grants WHERE is_summed = 0";
    // As an earlier version grants.
    fixture.grant("1.5").await;
    fixture.grant("0.25").await;
    assert_eq!(fixture.account().await.granted, usd("1.75"));
    assert_eq!(fixture.count(to_sum).await, 2);
    for n in 0..3 {
        let added = fixture
            .store
            .by(&PROGRAM)
            .add_credit("acme", usd("0.000000000000000001"), n);
        added.await.unwrap();
        assert_eq!(fixture.count(to_sum).await, 0);
    }
    assert_eq!(fixture.account().await.granted, usd("1.750000000000000003"));
    fixture.grant("1").await;
    assert_eq!(fixture.account().await.granted, usd("2.750000000000000003"));
    // What an earlier version adds up is the same.
    assert_eq!(fixture.count("SELECT COUNT(*) FROM credit_grants").await, 6);
    fixture.post("a", vec![entry(1, "0.1")]).await;
    let account = fixture.account().await;
    assert_eq!(
        (account.granted, account.settled),
        (usd("2.750000000000000003"), usd("0.1"))
    );
}

async fn a_journal_that_is_given_up_keeps_no_old_calls(fixture: Fixture) {
    fixture.grant("1").await;
    let store = &fixture.store.by(&PROGRAM);
    store.register_process("runs").await.unwrap();
    fixture.post("runs", vec![entry(1, "0.1")]).await;
    fixture
        .post("gone", vec![entry(2, "0.1"), entry(3, "0.1")])
        .await;
    let owners = store.journal_owners().await.unwrap();
    let seen: Vec<_> = owners
        .iter()
        .map(|journal| (&*journal.owner, journal.calls, journal.is_running))
        .collect();
    assert_eq!(seen, [("gone", 2, false), ("runs", 1, true)]);
    assert!(!store.give_up_journal("runs").await.unwrap());
    assert!(!store.give_up_journal("unknown").await.unwrap());
    let old = OldCalls {
        before_ms: NOW_MS + DAY_MS,
        owner: "runs",
        own_before_ms: 0,
    };
    let batches = "SELECT COUNT(*) FROM call_batches";
    store.delete_old_calls(&old).await.unwrap();
    assert_eq!(fixture.count(batches).await, 2);
    assert!(store.give_up_journal("gone").await.unwrap());
    store.delete_old_calls(&old).await.unwrap();
    assert_eq!(fixture.count(batches).await, 1);
    assert_eq!(store.account(ORG).await.unwrap().settled, usd("0.3"));
}
