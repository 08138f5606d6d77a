//! Single calls, the sums of hours, and how long each is kept.

use filters::ledger::{CallOutcome, EntryId, LedgerEntry};
use filters::money::Usd;

use super::super::ledger::{By, OldCalls};
use super::ledger::{ORG, entry, usd};
use super::*;

on_both!(
    single_calls_are_read_back_as_they_were_charged,
    a_call_that_ended_otherwise_is_not_charged_again,
    calls_of_earlier_versions_are_carried_over_and_not_charged_again,
    deleted_calls_leave_balance_spending_and_the_sums_of_hours,
    an_hour_that_is_cut_counts_its_later_calls_or_as_a_whole,
    many_calls_are_forgotten_in_pieces,
    the_calls_of_a_journal_stay_until_it_is_brought,
    a_false_count_stops_no_posting,
    a_row_that_is_refused_is_told_from_a_store_that_fails,
    what_a_key_spent_stays_with_the_member_it_had,
);

const HOUR_MS: i64 = 3_600_000;

/// Calls of processes without a journal.
fn of_ended(before_ms: i64) -> OldCalls<'static> {
    OldCalls {
        before_ms,
        owner: "other",
        own_before_ms: before_ms,
    }
}

impl Fixture {
    pub(super) async fn calls(&self) -> Vec<LedgerEntry> {
        let mut calls = Vec::new();
        let always = (i64::MIN, i64::MAX);
        let read = self
            .store
            .visit_calls(always, |_| true, |call| calls.push(call.clone()));
        read.await.unwrap();
        calls
    }

    async fn requests_since(&self, since_ms: i64) -> i64 {
        self.store.usage("acme", since_ms, None).await.unwrap()[0].requests
    }

    async fn execute(&self, sql: &str) {
        let query = sqlx::raw_sql(sqlx::AssertSqlSafe(sql.to_owned()));
        query.execute(self.store.pool.unlimited()).await.unwrap();
    }

    /// Writes a call as versions before the sums of hours did, and then runs what carries such calls over.
    async fn carry_over(&self, id: EntryId) {
        self.execute(&format!(
            "INSERT INTO ledger (id, at, organization_id, project_id, key_id, request_id, model, \
             provider, upstream_model, funding, outcome, prompt_tokens, cached_tokens, \
             cache_write_tokens, completion_tokens, reasoning_tokens, web_searches, is_estimated, \
             is_premium, is_stream, is_priced, cost_nano, cost_rest, parts, reserved, charged, \
             shortfall, attempts, duration_ms) VALUES ('{id}', {NOW_MS}, '{ORG}', '', 'key_1', '', \
             'old', '', '', 'credit', 'answered', 3, 0, 0, 0, 0, 0, 0, 0, 0, 1, 100000000, 7, '{{}}', \
             '0', '0.1', '0', 1, 0)"
        ))
        .await;
        // As earlier versions did when sums of hours were new.
        self.execute(
            "INSERT INTO usage_hours \
             SELECT organization_id, at / 3600000, key_id, model, provider, outcome, 1, prompt_tokens, \
             cached_tokens, cache_write_tokens, completion_tokens, reasoning_tokens, web_searches, \
             cost_nano, cost_rest FROM ledger",
        )
        .await;
    }
}

async fn single_calls_are_read_back_as_they_were_charged(fixture: Fixture) {
    fixture.grant("0.25").await;
    fixture.begin("a").await;
    fixture.take("a", 1, "0.25").await;
    let second = entry(2, "0.2");
    fixture
        .post("a", vec![entry(1, "0.1"), second.clone()])
        .await;
    let charged = LedgerEntry {
        charged: usd("0.15"),
        shortfall: usd("0.05"),
        ..second
    };
    assert_eq!(fixture.calls().await, [entry(1, "0.1"), charged]);
}

async fn a_call_that_ended_otherwise_is_not_charged_again(fixture: Fixture) {
    fixture.grant("1").await;
    fixture.post("a", vec![entry(1, "0.1")]).await;
    // A journal that lost the end of a call brings it as killed, and as of its start.
    let killed = LedgerEntry {
        at_ms: NOW_MS - 5 * HOUR_MS,
        outcome: CallOutcome::Killed,
        ..entry(1, "0.3")
    };
    fixture.post("a", vec![killed]).await;
    assert_eq!(fixture.account().await.settled, usd("0.1"));
    assert_eq!(fixture.requests_since(0).await, 1);
}

async fn calls_of_earlier_versions_are_carried_over_and_not_charged_again(fixture: Fixture) {
    fixture.grant("1").await;
    fixture.carry_over(entry(1, "0").id).await;
    fixture
        .post("a", vec![entry(1, "0.1"), entry(2, "0.2")])
        .await;
    assert_eq!(fixture.account().await.settled, usd("0.2"));
    let usage = fixture
        .store
        .usage("acme", 0, Some(By::Model))
        .await
        .unwrap();
    let sums: Vec<_> = usage
        .iter()
        .map(|row| (&*row.name, row.requests, row.cost))
        .collect();
    let old = ("old", 1, usd("0.100000000000000007"));
    assert_eq!(sums, [("", 1, usd("0.2")), old]);
    // The hour is cut: its single calls are in both tables.
    assert_eq!(fixture.requests_since(NOW_MS - 1).await, 2);
    assert_eq!(fixture.requests_since(NOW_MS + 1).await, 0);
    assert!(
        !fixture
            .store
            .delete_old_calls(&of_ended(NOW_MS + 1))
            .await
            .unwrap()
    );
    let of_hour = fixture.store.usage("acme", 0, None).await.unwrap();
    assert_eq!(of_hour[0].cost, usd("0.300000000000000007"));
}

async fn deleted_calls_leave_balance_spending_and_the_sums_of_hours(fixture: Fixture) {
    fixture.grant("1").await;
    fixture.post("a", vec![entry(1, "0.1")]).await;
    fixture.store.forget_journal("a").await.unwrap();
    assert!(
        !fixture
            .store
            .delete_old_calls(&of_ended(NOW_MS + 1))
            .await
            .unwrap()
    );
    assert!(fixture.calls().await.is_empty());
    assert_eq!(fixture.requests_since(0).await, 1);
    assert_eq!(fixture.account().await.settled, usd("0.1"));
    assert_eq!(fixture.spent_of("key/key_1").await.key.total, usd("0.1"));
}

async fn an_hour_that_is_cut_counts_its_later_calls_or_as_a_whole(fixture: Fixture) {
    fixture.grant("1").await;
    let at = |n, later_ms| LedgerEntry {
        at_ms: NOW_MS + later_ms,
        ..entry(n, "0.1")
    };
    // NOW_MS is a whole hour.
    fixture
        .post("a", vec![at(1, 5), at(2, 10), at(3, HOUR_MS)])
        .await;
    for (since_ms, requests) in [
        (0, 3),
        (5, 3),
        (6, 2),
        (11, 1),
        (HOUR_MS, 1),
        (HOUR_MS + 1, 0),
    ] {
        assert_eq!(
            fixture.requests_since(NOW_MS + since_ms).await,
            requests,
            "{since_ms}"
        );
    }
    let by_key = fixture
        .store
        .usage("acme", NOW_MS + 6, Some(By::Key))
        .await
        .unwrap();
    assert_eq!((&*by_key[0].name, by_key[0].cost), ("key_1", usd("0.2")));
    fixture.store.forget_journal("a").await.unwrap();
    fixture
        .store
        .delete_old_calls(&of_ended(NOW_MS + HOUR_MS + 1))
        .await
        .unwrap();
    assert_eq!(
        fixture.requests_since(NOW_MS + 6).await,
        3,
        "the whole hour"
    );
}

async fn many_calls_are_forgotten_in_pieces(fixture: Fixture) {
    fixture.grant("1").await;
    for n in 0..65 {
        fixture.post("a", vec![entry(n, "0")]).await;
    }
    fixture.store.forget_journal("a").await.unwrap();
    assert!(
        fixture
            .store
            .delete_old_calls(&of_ended(NOW_MS + 1))
            .await
            .unwrap()
    );
    assert!(
        !fixture
            .store
            .delete_old_calls(&of_ended(NOW_MS + 1))
            .await
            .unwrap()
    );
    assert!(fixture.calls().await.is_empty());
}

async fn the_calls_of_a_journal_stay_until_it_is_brought(fixture: Fixture) {
    const DAY_MS: i64 = 24 * HOUR_MS;
    fixture.grant("1").await;
    // The store was away for two days, so the journal goes back as far.
    let old = LedgerEntry {
        at_ms: NOW_MS - 2 * DAY_MS,
        ..entry(1, "0.1")
    };
    fixture.post("a", vec![old.clone()]).await;
    fixture.post("a", vec![entry(2, "0.1")]).await;
    let delete = async |owner: &str| {
        let old = OldCalls {
            before_ms: NOW_MS + 30 * DAY_MS,
            owner,
            own_before_ms: NOW_MS - DAY_MS,
        };
        fixture.store.delete_old_calls(&old).await.unwrap()
    };
    assert!(!delete("b").await);
    assert_eq!(fixture.calls().await.len(), 2);
    // The node comes back after a month.
    fixture.post("a", vec![old, entry(2, "0.1")]).await;
    assert_eq!(fixture.account().await.settled, usd("0.2"));
    // It alone knows how far its journal goes back.
    assert!(!delete("a").await);
    assert_eq!(fixture.calls().await.len(), 1);
    fixture.post("a", vec![entry(2, "0.1")]).await;
    assert_eq!(fixture.account().await.settled, usd("0.2"));
    fixture.store.forget_journal("a").await.unwrap();
    assert!(!delete("b").await);
    assert!(fixture.calls().await.is_empty());
}

async fn a_row_that_is_refused_is_told_from_a_store_that_fails(fixture: Fixture) {
    fixture.grant("1").await;
    match fixture.settings.url {
        StoreUrl::Sqlite(_) => {
            let trigger = "CREATE TRIGGER refuse BEFORE INSERT ON spent \
                           WHEN NEW.key_id = 'bad' BEGIN SELECT RAISE(ABORT, 'no'); END";
            fixture.execute(trigger).await;
        }
        StoreUrl::Postgres(_) => {
            let trigger = "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                           IF NEW.key_id = 'bad' THEN RAISE EXCEPTION 'no'; END IF; RETURN NEW; \
                           END $$; CREATE TRIGGER refuse BEFORE INSERT ON spent \
                           FOR EACH ROW EXECUTE FUNCTION refuse()";
            fixture.execute(trigger).await;
        }
    }
    let mut bad = entry(1, "0.1");
    bad.owner.key_id = "bad".into();
    let refused = fixture.store.post("a", &[bad, entry(2, "0.1")], true).await;
    assert!(refused.unwrap_err().is_about_rows());
    assert_eq!(fixture.account().await.settled, Usd::ZERO);
    fixture.store.close().await;
    let failed = fixture.store.post("a", &[entry(2, "0.1")], true).await;
    assert!(!failed.unwrap_err().is_about_rows());
}

async fn what_a_key_spent_stays_with_the_member_it_had(fixture: Fixture) {
    fixture.grant("1").await;
    let by = |n, cost, member: Option<&str>| {
        let mut call = entry(n, cost);
        call.owner.member_id = member.map(Into::into);
        call
    };
    // All within an hour, and stored at once and one after the other.
    let moved = vec![by(1, "0.1", Some("m1")), by(2, "0.02", Some("m2"))];
    fixture.post("a", moved).await;
    fixture.post("a", vec![by(3, "0.003", Some("m2"))]).await;
    fixture.post("a", vec![by(4, "0.0004", None)]).await;
    for is_joined in [false, true] {
        if is_joined {
            let joined = fixture.store.join_past_spent(NOW_MS + 2 * HOUR_MS).await;
            assert!(!joined.unwrap(), "nothing is left");
        }
        for (scope, spent) in [("member/m1", "0.1"), ("member/m2", "0.023")] {
            assert_eq!(fixture.spent_of(scope).await.member, usd(spent));
        }
        assert_eq!(fixture.spent_of("key/key_1").await.key.total, usd("0.1234"));
    }
}

async fn a_false_count_stops_no_posting(fixture: Fixture) {
    fixture.grant("1").await;
    for n in 1..=3 {
        let mut call = entry(n, "0");
        call.usage.prompt_tokens = u64::MAX;
        if let Some(cost) = &mut call.usage.cost {
            cost.total = Usd::from_units(i128::MAX);
        }
        fixture.post("a", vec![call]).await;
    }
    assert_eq!(fixture.requests_since(0).await, 3);
}
