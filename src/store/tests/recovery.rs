//! The start brings what the journal of a dead process holds, beside many other processes and with a slow store.

use std::time::{Duration, Instant};

use filters::ledger::{EntryId, LedgerEntry};

use super::ledger::{entry, usd};
use super::*;
use crate::config::{Durability, StoreConfig};
use crate::ledger::Ledger;
use crate::ledger::journal::{Journal, MAX_SEGMENT_AGE};
use crate::ledger::recovery::recover_journals;
use crate::telemetry::metrics::Metrics;

const DAY_MS: i64 = 86_400_000;

/// Returns a call that began at this time.
fn call(number: u16, began_ms: i64) -> LedgerEntry {
    let mut id = [0; 16];
    id[..6].copy_from_slice(&began_ms.to_be_bytes()[2..]);
    id[14..].copy_from_slice(&number.to_be_bytes());
    LedgerEntry {
        id: EntryId(id),
        at_ms: began_ms + 1_000,
        ..entry(1, "0.01")
    }
}

impl Fixture {
    /// Leaves the journal of a dead process with these calls, and starts a ledger that brings them.
    async fn recover(&self, calls: &[LedgerEntry]) -> Arc<Ledger> {
        let state_dir = self.settings.state_dir.clone();
        let journal = Journal::start(&state_dir, [7; 16], Durability::Process, MAX_SEGMENT_AGE);
        let journal = journal.unwrap();
        for call in calls {
            assert!(journal.end(0, call).write(true).is_durable().await);
        }
        drop(journal);
        let configured = StoreConfig {
            url: "postgres://not-used".to_owned(),
            state_dir: state_dir.clone(),
            secret: None,
            durability: Durability::Process,
            journal_bytes: 1 << 30,
            usage_retention: None,
        };
        let recovered = recover_journals(&state_dir).unwrap();
        assert_eq!(recovered.len(), 1);
        let metrics = Arc::new(Metrics::new().unwrap());
        let started = Ledger::start(&configured, recovered, self.store.clone(), metrics);
        started.await.unwrap()
    }
}

#[tokio::test]
async fn a_process_that_was_away_for_two_days_beside_a_hundred_others_starts_within_a_minute() {
    const BATCHES: i64 = 17_280;
    let fixture = on_postgres().await;
    fixture.grant("1000").await;
    // A batch in ten seconds of each of a hundred processes, for two days.
    let sql = "INSERT INTO call_batches \
               (owner, began_first, began_last, ended_first, ended_last, ids, calls) \
               SELECT $1, $2 + n * 10000, $2 + n * 10000 + 9999, \
               $2 + n * 10000, $2 + n * 10000 + 9999, decode(repeat('ff', 16), 'hex'), '' \
               FROM generate_series(1, CAST($3 AS BIGINT)) AS numbers (n)";
    // One process per statement: all rows in one outlast its time limit on a busy machine.
    for number in 1..=100 {
        let query = sqlx::query(sql).bind(format!("owner {number}"));
        let query = query.bind(NOW_MS - 2 * DAY_MS).bind(BATCHES);
        query.execute(fixture.store.pool.unlimited()).await.unwrap();
    }
    let calls: Vec<LedgerEntry> = (0..4_000)
        .map(|n| call(n, NOW_MS - 2 * DAY_MS + i64::from(n) * 2 * DAY_MS / 4_000))
        .collect();
    let owner = "07".repeat(16);
    let stored = fixture.store.post(&owner, &calls[..1_000], false);
    stored.await.unwrap();
    let began = Instant::now();
    let ledger = fixture.recover(&calls).await;
    assert!(began.elapsed() < Duration::from_secs(60));
    let settled = fixture.account().await.settled;
    assert_eq!(settled, usd("40"), "each is charged once");
    ledger.close();
}

#[tokio::test]
async fn a_store_that_is_too_slow_for_a_recovered_batch_gets_it_in_halves() {
    let fixture = on_postgres().await;
    fixture.grant("1000").await;
    let sql = "CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
               IF octet_length(NEW.ids) > 16 * 40 THEN PERFORM pg_sleep(9); END IF; \
               RETURN NEW; END $$; \
               CREATE TRIGGER slow BEFORE INSERT ON call_batches \
               FOR EACH ROW EXECUTE FUNCTION slow()";
    sqlx::raw_sql(sql)
        .execute(fixture.store.pool.unlimited())
        .await
        .unwrap();
    let calls: Vec<LedgerEntry> = (0..64).map(|n| call(n, NOW_MS)).collect();
    let ledger = fixture.recover(&calls).await;
    assert_eq!(fixture.account().await.settled, usd("0.64"));
    ledger.close();
}
