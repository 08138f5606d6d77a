//! What keys have spent, by the hour.

use std::time::{Duration, Instant};

use filters::ledger::LedgerEntry;
use filters::money::Usd;

use super::ledger::{ORG, entry, usd};
use super::*;
use crate::store::ledger::Spending;

const HOUR_MS: i64 = 3_600_000;

on_both![
    hours_that_nobody_looks_back_at_are_one_row_and_what_comes_late_is_added,
    members_of_a_joined_hour_are_summed_together,
    what_was_spent_comes_with_the_number_of_posts_in_it,
    what_a_process_of_the_version_before_adds_counts_at_once_and_once,
    a_history_of_the_version_before_is_counted_in_order,
    a_long_history_of_many_keys_costs_no_statement_time,
];

impl Fixture {
    /// The number of hours, and their sum in 1e-9 USD.
    async fn hours(&self) -> (i64, i64) {
        let sql = "SELECT COUNT(*), CAST(SUM(cost_nano) AS BIGINT) FROM spent";
        let hours = sqlx::query_as(sql).fetch_one(self.store.pool.unlimited());
        hours.await.unwrap()
    }

    async fn spent(&self) -> Spending {
        self.store.spent("a", ORG).await.unwrap()
    }

    /// What the first key has spent by its counter, and what is in no counter.
    async fn counted(&self) -> (Usd, Usd) {
        let spending = self.spent().await;
        let counted = spending.keys.first();
        let counted = counted.map_or(Usd::ZERO, |(_, tally)| tally.spent(NOW_MS).total);
        let rows = spending.rows.iter().map(|row| row.cost);
        (counted, rows.fold(Usd::ZERO, Usd::plus))
    }

    /// Adds a cent to an hour as a process of the version before does.
    async fn add_as_before(&self, hour: i64, funding: &str) {
        let sql = "INSERT INTO spent (organization_id, key_id, hour, funding, is_premium, \
                   member_id, first_at, last_at, cost_nano, cost_rest) \
                   VALUES ($1, 'key_1', $2, $3, 0, '', $4, $4, 10000000, 0) \
                   ON CONFLICT (organization_id, key_id, hour, funding, is_premium, member_id) \
                   DO UPDATE SET cost_nano = spent.cost_nano + excluded.cost_nano";
        let query = sqlx::query(sql).bind(ORG).bind(hour).bind(funding);
        let query = query.bind(hour * HOUR_MS + 5);
        query.execute(self.store.pool.unlimited()).await.unwrap();
    }

    async fn count_all(&self) {
        while self.store.count_spent().await.unwrap() {}
    }
}

fn at(n: u8, at_ms: i64) -> LedgerEntry {
    LedgerEntry {
        at_ms,
        ..entry(n, "0.1")
    }
}

async fn hours_that_nobody_looks_back_at_are_one_row_and_what_comes_late_is_added(
    fixture: Fixture,
) {
    let calls = (1..=30).map(|n| at(n, NOW_MS + i64::from(n) * HOUR_MS));
    fixture.post("a", calls.collect()).await;
    assert_eq!(fixture.hours().await, (30, 3_000_000_000));
    let since_ms = NOW_MS + 21 * HOUR_MS;
    let before = fixture.spent().await;
    assert!(!fixture.store.join_past_spent(since_ms).await.unwrap());
    assert_eq!(fixture.hours().await, (11, 3_000_000_000));
    assert_eq!(fixture.spent().await, before);
    // A process that was away brings a call of a joined hour.
    fixture
        .post("late", vec![at(31, NOW_MS + 5 * HOUR_MS)])
        .await;
    assert!(!fixture.store.join_past_spent(since_ms).await.unwrap());
    assert_eq!(fixture.hours().await, (11, 3_100_000_000));
    assert_eq!(fixture.counted().await, (usd("3.1"), Usd::ZERO));
}

async fn members_of_a_joined_hour_are_summed_together(fixture: Fixture) {
    let of = |n, member: &str, at_ms| {
        let mut call = at(n, at_ms);
        call.owner.member_id = (!member.is_empty()).then(|| member.into());
        call
    };
    let calls = [
        of(1, "mem_1", NOW_MS),
        of(2, "mem_2", NOW_MS + HOUR_MS),
        of(3, "mem_1", NOW_MS + 2 * HOUR_MS),
        of(4, "", NOW_MS + 3 * HOUR_MS),
    ];
    fixture.post("a", calls.into()).await;
    let joined = fixture.store.join_past_spent(NOW_MS + 9 * HOUR_MS);
    assert!(!joined.await.unwrap());
    assert_eq!(fixture.hours().await, (3, 400_000_000));
    let members = fixture.spent().await.members;
    let members = members
        .iter()
        .map(|(id, tally)| (&**id, tally.spent(NOW_MS).total));
    let members: Vec<_> = members.collect();
    assert_eq!(members.len(), 2);
    assert!(members.contains(&("mem_1", usd("0.2"))), "{members:?}");
}

async fn what_was_spent_comes_with_the_number_of_posts_in_it(fixture: Fixture) {
    let posts = async |owner: &'static str| {
        let spending = fixture.store.spent(owner, ORG).await.unwrap();
        assert_eq!(fixture.store.posts(owner).await.unwrap(), spending.posts);
        (spending.posts, spending.keys.len())
    };
    assert_eq!(posts("a").await, (0, 0));
    fixture.post("a", vec![entry(1, "0.1")]).await;
    fixture.post("a", vec![entry(2, "0.1")]).await;
    fixture.post("b", vec![entry(3, "0.1")]).await;
    assert_eq!((posts("a").await, posts("b").await), ((2, 1), (1, 1)));
}

#[tokio::test]
async fn what_was_spent_lately_is_found_by_its_index() {
    let fixture = on_sqlite().await;
    let plan = async |condition: &str| {
        let sql = format!("EXPLAIN QUERY PLAN SELECT cost_nano FROM spent WHERE {condition}");
        let rows = sqlx::query(sqlx::AssertSqlSafe(sql));
        let rows = rows
            .fetch_all(fixture.store.pool.unlimited())
            .await
            .unwrap();
        sqlx::Row::get::<String, _>(&rows[0], "detail")
    };
    let lately = plan(
        "organization_id = 'a' AND hour <> -1 \
         AND (cost_nano <> counted_nano OR cost_rest <> counted_rest)",
    );
    let lately = lately.await;
    assert!(lately.contains("spent_uncounted"), "{lately}");
    let past = plan("hour > -1 AND hour < 9 ORDER BY hour LIMIT 5").await;
    assert!(past.contains("spent_of_hour"), "{past}");
}

async fn what_a_process_of_the_version_before_adds_counts_at_once_and_once(fixture: Fixture) {
    let hour = NOW_MS / HOUR_MS;
    fixture.post("a", vec![entry(1, "0.1")]).await;
    fixture.add_as_before(hour, "credit").await;
    fixture.add_as_before(hour, "byok").await;
    assert_eq!(fixture.counted().await, (usd("0.1"), usd("0.02")));
    // What is not counted is not joined by such a process.
    let sql = "DELETE FROM spent WHERE hour > -1 RETURNING cost_nano";
    let joined = sqlx::query(sql)
        .fetch_all(fixture.store.pool.unlimited())
        .await;
    assert!(joined.unwrap().is_empty());
    fixture.count_all().await;
    assert_eq!(fixture.counted().await, (usd("0.12"), Usd::ZERO));
    // A post leaves an hour to which such a process has added as it is, and both count nevertheless.
    fixture.add_as_before(hour, "credit").await;
    fixture.post("a", vec![entry(2, "0.1")]).await;
    assert_eq!(fixture.counted().await, (usd("0.12"), usd("0.11")));
    fixture.count_all().await;
    assert_eq!(fixture.counted().await, (usd("0.23"), Usd::ZERO));
    // What such a process has joined was counted before.
    fixture.add_as_before(-1, "credit").await;
    fixture.count_all().await;
    assert_eq!(fixture.counted().await, (usd("0.23"), Usd::ZERO));
}

async fn a_history_of_the_version_before_is_counted_in_order(fixture: Fixture) {
    let hour = NOW_MS / HOUR_MS;
    for day in (0..30).rev() {
        fixture.add_as_before(hour - 24 * day, "plan").await;
    }
    // It was joined before the upgrade.
    fixture.add_as_before(-2, "plan").await;
    // A call of now waits until its history is counted, and counts nevertheless.
    let call = LedgerEntry {
        funding: filters::ledger::Funding::Plan,
        ..entry(1, "0.1")
    };
    fixture.post("a", vec![call]).await;
    assert_eq!(fixture.counted().await, (Usd::ZERO, usd("0.41")));
    fixture.count_all().await;
    assert_eq!(fixture.counted().await, (usd("0.41"), Usd::ZERO));
    let spending = fixture.spent().await;
    let day = spending.keys[0].1.spent(NOW_MS).periods[1];
    assert_eq!(day, usd("0.11"));
    let daily = spending.plan.spent(NOW_MS, 0).daily;
    assert!(daily <= usd("0.12"), "{daily} in a window of 24 hours");
}

/// Makes a key of each number: its counter, and its hours, which are counted.
async fn make_history(fixture: &Fixture, keys: i64, hours: i64) {
    let numbers = "WITH RECURSIVE k (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM k WHERE n < {k}), \
                   d (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM d WHERE n < {d})";
    let numbers = numbers.replace("{k}", &(keys - 1).to_string());
    let numbers = numbers.replace("{d}", &(hours - 1).to_string());
    let first = NOW_MS / HOUR_MS - 768;
    let sums = "1 9 1 8 1 9 1 8 1 9 1 8 1 9 1 8 1";
    let counters = format!(
        "{numbers} INSERT INTO limit_counters (organization_id, scope, sums) \
         SELECT '{ORG}', 'key/key_' || k.n, '{sums}' FROM k"
    );
    let spent = format!(
        "{numbers} INSERT INTO spent (organization_id, key_id, hour, funding, is_premium, member_id, \
         first_at, last_at, cost_nano, cost_rest, counted_nano, counted_rest) \
         SELECT '{ORG}', 'key_' || k.n, {first} + d.n * {step}, 'credit', 0, '', 0, 0, 5, 0, 5, 0 \
         FROM k CROSS JOIN d",
        step = 768 / hours,
    );
    // As PostgreSQL does by itself after so many changes.
    let analyze = "ANALYZE spent".to_owned();
    for sql in [counters, spent, analyze] {
        let made = sqlx::query(sqlx::AssertSqlSafe(sql));
        made.execute(fixture.store.pool.unlimited()).await.unwrap();
    }
}

/// Returns the shortest time of some tries.
async fn least(work: impl AsyncFn(u8)) -> Duration {
    let mut least = Duration::MAX;
    for n in 1..=9 {
        let began = Instant::now();
        work(n).await;
        least = least.min(began.elapsed());
    }
    least
}

async fn a_long_history_of_many_keys_costs_no_statement_time(fixture: Fixture) {
    const KEYS: i64 = 5_000;
    make_history(&fixture, KEYS, 32).await;
    // All statements of a post together.
    let post = least(async |n| fixture.post("a", vec![entry(n, "0.1")]).await).await;
    assert!(post < Duration::from_millis(50), "a post takes {post:?}");
    let count = least(async |_| fixture.count_all().await).await;
    assert!(
        count < Duration::from_millis(50),
        "a look for more takes {count:?}"
    );
    // A row of each key is read, and none of its hours.
    let spending = fixture.spent().await;
    assert!(spending.rows.is_empty());
    assert_eq!(spending.keys.len(), usize::try_from(KEYS).unwrap());
    let with_history = least(async |_| drop(fixture.spent().await)).await;
    let emptied = sqlx::query("DELETE FROM spent").execute(fixture.store.pool.unlimited());
    emptied.await.unwrap();
    let without = least(async |_| drop(fixture.spent().await)).await;
    assert!(
        with_history < 2 * without + Duration::from_millis(5),
        "{with_history:?} with a history, {without:?} without"
    );
}
