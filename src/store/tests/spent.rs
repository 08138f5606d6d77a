//! What keys have spent, by the hour.

use std::time::{Duration, Instant};

use filters::ledger::{LedgerEntry, LimitOffer, LimitScope, LimitTerms};
use filters::money::Usd;
use filters::money::allowance::SpentSoFar;
use filters::money::tally::Tally;

use super::super::ledger::{LimitRequest, ScopeSpent};
use super::ledger::{ORG, entry, usd};
use super::*;

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

    /// What is spent in a scope, by its name.
    pub(super) async fn spent_of(&self, scope: &str) -> SpentSoFar {
        let scopes = [scope.parse().unwrap()];
        let (spent, _) = self.store.spent("a", ORG, &scopes).await.unwrap();
        spent[0].so_far(NOW_MS, 0)
    }

    /// What the first key has spent by its counter, and what is in no counter.
    async fn counted(&self) -> (Usd, Usd) {
        let sql = "SELECT sums FROM limit_counters WHERE scope = 'key/key_1'";
        let sums = sqlx::query_scalar(sql).fetch_optional(self.store.pool.unlimited());
        let sums: Option<String> = sums.await.unwrap();
        let tally = sums.map_or_else(Tally::default, |sums| sums.parse().unwrap());
        let counted = tally.spent(NOW_MS).total;
        (
            counted,
            self.spent_of("key/key_1").await.key.total.minus(counted),
        )
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
    let before = fixture.spent_of("key/key_1").await;
    assert!(!fixture.store.join_past_spent(since_ms).await.unwrap());
    assert_eq!(fixture.hours().await, (11, 3_000_000_000));
    assert_eq!(fixture.spent_of("key/key_1").await, before);
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
    assert_eq!(fixture.spent_of("member/mem_1").await.member, usd("0.2"));
    assert_eq!(fixture.spent_of("member/mem_2").await.member, usd("0.1"));
}

async fn what_was_spent_comes_with_the_number_of_posts_in_it(fixture: Fixture) {
    let posts = async |owner: &'static str| {
        let scopes = [LimitScope::Key("key_1".into())];
        let (_, posts) = fixture.store.spent(owner, ORG, &scopes).await.unwrap();
        assert_eq!(fixture.store.posts(owner).await.unwrap(), posts);
        posts
    };
    assert_eq!(posts("a").await, 0);
    fixture.post("a", vec![entry(1, "0.1")]).await;
    fixture.post("a", vec![entry(2, "0.1")]).await;
    fixture.post("b", vec![entry(3, "0.1")]).await;
    assert_eq!((posts("a").await, posts("b").await), (2, 1));
}

/// The plan began by a clock that was ahead.
#[test]
fn a_clock_that_is_behind_the_plan_hides_nothing_of_what_it_pays() {
    let (since_ms, now_ms) = (NOW_MS, NOW_MS - 1_000_000_000);
    let mut spent = ScopeSpent::default();
    spent.add(usd("5"), true, (since_ms, since_ms));
    let plan = spent.so_far(now_ms, since_ms).plan;
    assert_eq!([plan.cycle, plan.daily, plan.premium], [usd("5"); 3]);
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
    let day = fixture.spent_of("key/key_1").await.key.periods[1];
    assert_eq!(day, usd("0.11"));
    let daily = fixture.spent_of("plan").await.plan.daily;
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
    // All statements of a change of a lease together.
    fixture.begin("a").await;
    let lease = least(async |n| {
        let terms = LimitTerms::Member(usd("100"));
        let offer = LimitOffer {
            wanted: Some((terms, usd("0.1"))),
            now_ms: NOW_MS,
            ..LimitOffer::default()
        };
        let request = LimitRequest {
            organization_id: ORG.to_owned(),
            scope: LimitScope::Key("key_1".into()),
            number: i64::from(n),
            offer,
        };
        let changed = fixture.store.change_leases("a", &[], &[request]).await;
        assert!(changed.unwrap().is_some());
    });
    let lease = lease.await;
    assert!(lease < Duration::from_millis(50), "a lease takes {lease:?}");
}
