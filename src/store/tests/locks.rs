//! Processes that are frozen or lost in a transaction, and work that takes all connections: credit waits for neither.

use std::time::{Duration, Instant};

use sqlx::AnyConnection;

use super::super::ledger::{LeaseChange, LeaseRequest};
use super::ledger::{ORG, usd};
use super::*;

on_both!(credit_waits_for_no_connection_of_other_work);

fn take(number: i64) -> Vec<LeaseRequest> {
    vec![LeaseRequest {
        organization_id: ORG.to_owned(),
        number,
        change: LeaseChange::Take(usd("0.1")),
    }]
}

/// The number of other sessions that wait for a lock.
async fn waiting(connection: &mut AnyConnection) -> i64 {
    let sql = "SELECT COUNT(*) FROM pg_stat_activity \
               WHERE datname = current_database() AND wait_event_type = 'Lock'";
    sqlx::query_scalar(sql).fetch_one(connection).await.unwrap()
}

async fn credit_waits_for_no_connection_of_other_work(fixture: Fixture) {
    fixture.grant("1").await;
    fixture.begin("a").await;
    let mut taken = Vec::new();
    while let Some(connection) = fixture.store.pool.unlimited().try_acquire() {
        taken.push(connection);
    }
    while taken.len() < 4 {
        taken.push(fixture.store.pool.unlimited().acquire().await.unwrap());
    }
    let started = Instant::now();
    let granted = fixture.store.change_leases("a", &take(1), &[]).await;
    assert!(granted.unwrap().is_some());
    let took = started.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
}

#[tokio::test]
async fn a_lock_that_another_process_holds_fails_a_change_in_time_and_leaves_no_waiter() {
    let fixture = on_postgres().await;
    fixture.grant("1").await;
    fixture.begin("a").await;
    // Another session, which no option of ours ends.
    let mut other = fixture.raw().await;
    for sql in ["BEGIN", "LOCK TABLE balances IN EXCLUSIVE MODE"] {
        sqlx::raw_sql(sql).execute(&mut other).await.unwrap();
    }
    for number in 1..4 {
        let started = Instant::now();
        let refused = fixture.store.change_leases("a", &take(number), &[]).await;
        assert!(matches!(refused, Err(StoreError::TimedOut)), "{refused:?}");
        let took = started.elapsed();
        assert!(took < Duration::from_secs(5), "{took:?}");
        assert_eq!(waiting(&mut other).await, 0);
    }
    sqlx::raw_sql("ROLLBACK").execute(&mut other).await.unwrap();
    let granted = fixture.store.change_leases("a", &take(4), &[]).await;
    assert!(granted.unwrap().is_some());
}

#[tokio::test]
async fn the_locks_of_a_process_that_is_frozen_in_a_transaction_are_free_within_ten_seconds() {
    let fixture = on_postgres().await;
    fixture.grant("1").await;
    fixture.begin("a").await;
    // Nothing more comes on this connection, as from a frozen process.
    let mut frozen = fixture.store.ledger_pool.begin().await.unwrap();
    let sql = "LOCK TABLE balances IN EXCLUSIVE MODE";
    sqlx::query(sql).execute(&mut frozen).await.unwrap();
    let started = Instant::now();
    let mut number = 1;
    while fixture
        .store
        .change_leases("a", &take(number), &[])
        .await
        .is_err()
    {
        let took = started.elapsed();
        assert!(took < Duration::from_secs(10), "{took:?}");
        number += 1;
    }
    // The process thaws, and what it had begun has no part in anything.
    assert!(frozen.commit().await.is_err());
}

#[tokio::test]
async fn leases_expire_beside_a_dead_process_whose_registration_is_locked() {
    let fixture = on_postgres().await;
    fixture.grant("1").await;
    for owner in ["a", "dead", "frozen"] {
        fixture.begin(owner).await;
    }
    let mut other = fixture.raw().await;
    let old = "UPDATE ledger_processes SET seen_at = 0 WHERE owner IN ('dead', 'frozen')";
    let held = "SELECT 1 FROM ledger_processes WHERE owner = 'frozen' FOR KEY SHARE";
    for sql in [old, "BEGIN", held] {
        sqlx::raw_sql(sql).execute(&mut other).await.unwrap();
    }
    let started = Instant::now();
    let granted = fixture.store.change_leases("a", &take(1), &[]).await;
    assert!(granted.unwrap().is_some());
    let took = started.elapsed();
    assert!(took < Duration::from_secs(2), "{took:?}");
    assert!(!fixture.store.refresh_process("dead").await.unwrap());
    assert!(fixture.store.refresh_process("frozen").await.unwrap());
}
