//! What keys have spent, by the hour.

use filters::ledger::LedgerEntry;

use super::ledger::{ORG, entry, usd};
use super::*;
use crate::store::ledger::SpentRow;

const HOUR_MS: i64 = 3_600_000;

on_both![
    hours_that_nobody_looks_back_at_are_one_row_and_what_comes_late_is_added,
    members_of_a_joined_hour_are_summed_together,
    what_was_spent_comes_with_the_number_of_posts_in_it,
];

impl Fixture {
    async fn spent_rows(&self) -> i64 {
        let sql = "SELECT COUNT(*) FROM spent";
        let count = sqlx::query_scalar(sql).fetch_one(self.store.pool.unlimited());
        count.await.unwrap()
    }

    async fn spent(&self, since_ms: i64) -> Vec<SpentRow> {
        self.store.spent("a", ORG, since_ms).await.unwrap().rows
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
    assert_eq!(fixture.spent_rows().await, 30);
    let since_ms = NOW_MS + 21 * HOUR_MS;
    let before = fixture.spent(since_ms).await;
    assert!(!fixture.store.join_past_spent(since_ms).await.unwrap());
    assert_eq!(fixture.spent_rows().await, 11);
    assert_eq!(fixture.spent(since_ms).await, before);
    // A process that was away brings a call of a joined hour.
    fixture
        .post("late", vec![at(31, NOW_MS + 5 * HOUR_MS)])
        .await;
    assert!(!fixture.store.join_past_spent(since_ms).await.unwrap());
    assert_eq!(fixture.spent_rows().await, 11);
    let after = fixture.spent(since_ms).await;
    assert_eq!(after[0].cost, usd("2.1"));
    assert_eq!(after[0].ended_ms, before[0].ended_ms);
    assert_eq!(after[1..], before[1..]);
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
    let rows = fixture.spent(NOW_MS).await;
    let sum = rows.iter().fold(usd("0"), |sum, row| sum.plus(row.cost));
    assert_eq!(sum, usd("0.4"));
}

async fn what_was_spent_comes_with_the_number_of_posts_in_it(fixture: Fixture) {
    let posts = async |owner: &'static str| {
        let spending = fixture.store.spent(owner, ORG, NOW_MS).await.unwrap();
        assert_eq!(fixture.store.posts(owner).await.unwrap(), spending.posts);
        (spending.posts, spending.rows.len())
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
    let lately = plan("organization_id = 'a' AND hour >= 9").await;
    assert!(lately.contains("spent_of_organization"), "{lately}");
    let past = plan("hour > -1 AND hour < 9 ORDER BY hour LIMIT 5").await;
    assert!(past.contains("spent_of_hour"), "{past}");
}
