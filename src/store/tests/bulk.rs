//! Many organizations at once: posting, leases, and the heartbeat beside them.

use std::time::{Duration, Instant};

use filters::ledger::LedgerEntry;
use sqlx::Connection;

use super::super::ledger::{LeaseChange, LeaseGrant, LeaseRequest};
use super::ledger::{entry, usd};
use super::*;

on_both!(
    five_thousand_organizations_with_a_call_each_are_stored_within_seconds,
    leases_of_many_organizations_change_at_once,
    a_heartbeat_waits_for_no_connection,
);

const COUNT: u32 = 5000;
/// How long that may take; a build without optimizations beside other tests takes twice as long.
const LIMIT: Duration = Duration::from_secs(if cfg!(debug_assertions) { 4 } else { 2 });

impl Fixture {
    /// Grants a dollar to each of many organizations, and leases it to a process.
    async fn fund_many(&self, owner: &str) {
        let ids: Vec<String> = (0..COUNT).map(organization).collect();
        let values = |id: &String| format!("('{id}', '{id}', '1', 0)");
        let grants: Vec<String> = ids.iter().map(values).collect();
        let organizations = ids
            .iter()
            .map(|id| format!("('{id}', '{id}', 'none', 'active', 0, 0)"));
        let organizations: Vec<String> = organizations.collect();
        for sql in [
            format!(
                "INSERT INTO organizations (id, name, plan, status, created_at, plan_since) VALUES {}",
                organizations.join(", ")
            ),
            format!(
                "INSERT INTO credit_grants (id, organization_id, amount, created_at) VALUES {}",
                grants.join(", ")
            ),
        ] {
            let query = sqlx::raw_sql(sqlx::AssertSqlSafe(sql));
            query.execute(self.store.pool.unlimited()).await.unwrap();
        }
        self.begin(owner).await;
        let requests: Vec<LeaseRequest> = ids.into_iter().map(|id| take(id, 1, "1")).collect();
        for requests in requests.chunks(1024) {
            let grants = self.store.change_leases(owner, requests, &[]).await;
            let is_whole = |grant: &LeaseGrant| grant.amount == usd("1");
            assert!(grants.unwrap().unwrap().credit.iter().all(is_whole));
        }
    }
}

impl Fixture {
    /// Waits until so many statements of this database wait for a lock.
    pub(super) async fn until_waiting(&self, count: i64) {
        let sql = "SELECT COUNT(*) FROM pg_stat_activity \
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
        loop {
            let waiting: i64 = sqlx::query_scalar(sql)
                .fetch_one(self.store.pool.unlimited())
                .await
                .unwrap();
            if waiting >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

fn organization(n: u32) -> String {
    format!("org_0190c3a2-0000-7000-8000-{n:012x}")
}

fn take(organization_id: String, number: i64, need: &str) -> LeaseRequest {
    LeaseRequest {
        organization_id,
        number,
        change: LeaseChange::Take(usd(need)),
    }
}

async fn five_thousand_organizations_with_a_call_each_are_stored_within_seconds(fixture: Fixture) {
    fixture.fund_many("a").await;
    let call = |n: u32| {
        let mut call = entry(1, "0.25");
        call.id.0[..4].copy_from_slice(&n.to_be_bytes());
        call.owner.organization_id = organization(n).as_str().into();
        call.owner.key_id = format!("key_{n}").as_str().into();
        call
    };
    let calls: Vec<LedgerEntry> = (0..COUNT).map(call).collect();
    let started = Instant::now();
    for calls in calls.chunks(4096) {
        fixture.store.post("a", calls, false).await.unwrap();
    }
    let took = started.elapsed();
    assert!(took < LIMIT, "{took:?}");
    for n in [0, 1, COUNT - 1] {
        let account = fixture.store.account(&organization(n)).await.unwrap();
        assert_eq!(
            (account.settled, account.leased),
            (usd("0.25"), usd("0.75"))
        );
    }
    let sql = "SELECT COUNT(*) FROM balances WHERE settled = '0.25'";
    let settled: i64 = sqlx::query_scalar(sql)
        .fetch_one(fixture.store.pool.unlimited())
        .await
        .unwrap();
    assert_eq!(settled, i64::from(COUNT));
}

async fn leases_of_many_organizations_change_at_once(fixture: Fixture) {
    fixture.fund_many("a").await;
    fixture.begin("b").await;
    let give = |n| LeaseRequest {
        change: LeaseChange::Return(usd("0.4")),
        ..take(organization(n), 2, "0")
    };
    // The second time the confirmation was lost.
    for _ in 0..2 {
        let requests: Vec<LeaseRequest> = (0..COUNT).rev().map(give).collect();
        let returned = fixture.store.change_leases("a", &requests, &[]).await;
        assert_eq!(returned.unwrap().unwrap().credit.len(), COUNT as usize);
    }
    // One is refused, one gets its need, one its share.
    let requests = [(7, "0.5"), (2, "0.3"), (5, "0.01")];
    let requests = requests.map(|(n, need)| take(organization(n), 1, need));
    let grants = fixture
        .store
        .change_leases("b", &requests, &[])
        .await
        .unwrap()
        .unwrap()
        .credit;
    let amounts: Vec<String> = grants
        .iter()
        .map(|grant| grant.amount.to_string())
        .collect();
    assert_eq!(amounts, ["0", "0.3", "0.1"]);
    assert!(grants.iter().all(|grant| grant.others == usd("0.6")));
    let account = fixture.store.account(&organization(2)).await.unwrap();
    assert_eq!((account.leased, account.free()), (usd("0.9"), usd("0.1")));
    assert_eq!(
        fixture
            .store
            .change_leases("gone", &requests, &[])
            .await
            .unwrap(),
        None
    );
}

async fn a_heartbeat_waits_for_no_connection(fixture: Fixture) {
    fixture.begin("a").await;
    let mut taken = Vec::new();
    for connections in [&fixture.store.pool, &fixture.store.ledger_pool] {
        for _ in 0..4 {
            taken.push(connections.unlimited().acquire().await.unwrap());
        }
    }
    let started = Instant::now();
    assert!(fixture.store.refresh_process("a").await.unwrap());
    let took = started.elapsed();
    assert!(took < LIMIT, "{took:?}");
}

/// SQLite has one writer, so this holds for PostgreSQL alone.
#[tokio::test]
async fn a_heartbeat_waits_for_no_batch_that_another_process_delays() {
    let fixture = on_postgres().await;
    fixture.grant("1").await;
    fixture.begin("a").await;
    fixture.take("a", 1, "1").await;
    let mut other = fixture.store.pool.unlimited().acquire().await.unwrap();
    let mut change = other.begin().await.unwrap();
    let sql = "UPDATE balances SET version = version + 1";
    sqlx::query(sql).execute(&mut *change).await.unwrap();
    let store = fixture.store.clone();
    let post = tokio::spawn(async move { store.post("a", &[entry(1, "0.1")], false).await });
    // The batch waits for the balance.
    fixture.until_waiting(1).await;
    let heartbeat = fixture.store.refresh_process("a");
    let heartbeat = tokio::time::timeout(Duration::from_secs(2), heartbeat).await;
    assert!(heartbeat.expect("it is not delayed").unwrap());
    assert!(!post.is_finished());
    change.rollback().await.unwrap();
    assert!(post.await.unwrap().unwrap());
    assert_eq!(fixture.account().await.settled, usd("0.1"));
}

/// A batch whose confirmation was lost may still run when it is repeated.
#[tokio::test]
async fn a_batch_that_still_runs_is_not_stored_twice() {
    let fixture = on_postgres().await;
    fixture.grant("1").await;
    // Neither the registration nor a balance makes the second batch wait: the process is unknown, and no credit is due.
    let call = LedgerEntry {
        funding: filters::ledger::Funding::Unbilled,
        ..entry(1, "0.1")
    };
    let mut other = fixture.store.pool.unlimited().acquire().await.unwrap();
    let mut change = other.begin().await.unwrap();
    let sql = "LOCK TABLE usage_hours IN ACCESS EXCLUSIVE MODE";
    sqlx::query(sql).execute(&mut *change).await.unwrap();
    let post = |may_be_stored| {
        let (store, call) = (fixture.store.clone(), call.clone());
        tokio::spawn(async move { store.post("a", &[call], may_be_stored).await })
    };
    let first = post(false);
    fixture.until_waiting(1).await;
    let second = post(true);
    fixture.until_waiting(2).await;
    change.rollback().await.unwrap();
    first.await.unwrap().unwrap();
    second.await.unwrap().unwrap();
    assert_eq!(fixture.calls().await.len(), 1);
    let usage = fixture.store.usage("acme", 0, None).await.unwrap();
    assert_eq!((usage[0].requests, usage[0].cost), (1, usd("0.1")));
}
