//! Budgets: what calls and jobs have spent in them, what people say of them, and what is forgotten.

use filters::ledger::usage_query::UsageGroup;
use filters::ledger::{
    CallMarks, EntryId, Funding, LedgerEntry, LimitOffer, LimitScope, LimitTerms,
};
use filters::money::allowance::KeyLimits;
use filters::money::budgets::{BudgetKind, session_budget};

use super::super::ledger::{LimitRequest, StoredJob};
use super::super::{BudgetChange, BudgetReport};
use super::ledger::{ORG, entry, usd};
use super::*;
use crate::accounts::{AccountsHandle, BudgetRows, PublishedRows};

on_both!(
    calls_and_open_jobs_count_in_each_of_their_budgets,
    a_lease_of_a_budget_that_is_given_back_leaves_no_row,
    what_people_say_is_kept_in_the_log_and_followed,
    calls_behind_the_end_are_counted_under_their_limit,
    budgets_that_rest_are_forgotten_and_others_stay,
    the_usage_by_tag_has_a_call_in_each_of_its_tags,
);

const DAY_MS: i64 = 86_400_000;

fn marks(tags: &[&str], budgets: &[&str]) -> Option<Arc<CallMarks>> {
    Some(Arc::new(CallMarks {
        tags: tags.iter().map(|tag| (*tag).into()).collect(),
        budgets: budgets.iter().map(|name| (*name).into()).collect(),
    }))
}

fn of(budgets: &[&str], call: LedgerEntry) -> LedgerEntry {
    LedgerEntry {
        marks: marks(&[], budgets),
        funding: Funding::Byok,
        ..call
    }
}

impl Fixture {
    async fn spent_in(&self, name: &str) -> String {
        let scope = [LimitScope::Budget(name.into())];
        let (spent, _) = self.store.spent("p1", ORG, &scope).await.unwrap();
        spent[0].so_far(NOW_MS, 0).key.total.to_string()
    }

    async fn say(&self, name: &str, change: BudgetChange) {
        let editor = self.store.by(&PROGRAM);
        let said = editor.change_budget("acme", name, change, NOW_MS).await;
        said.unwrap();
    }

    async fn report(&self, name: &str) -> BudgetReport {
        let report = self.store.budget_report("acme", name, NOW_MS).await;
        report.unwrap()
    }

    async fn rows_of(&self, table: &str) -> i64 {
        let sql = format!("SELECT COUNT(*) FROM {table}");
        let count = sqlx::query_scalar(sqlx::AssertSqlSafe(sql));
        count.fetch_one(self.store.pool.unlimited()).await.unwrap()
    }
}

async fn calls_and_open_jobs_count_in_each_of_their_budgets(fixture: Fixture) {
    fixture.grant("10").await;
    let calls = vec![
        of(&["session/s", "agent/s\ta"], entry(1, "0.5")),
        of(&["session/s"], entry(2, "0.25")),
        of(&["session/t"], entry(3, "1")),
        entry(4, "8"),
    ];
    fixture.post("p1", calls).await;
    assert_eq!(fixture.spent_in("session/s").await, "0.75");
    assert_eq!(fixture.spent_in("agent/s\ta").await, "0.5");
    assert_eq!(fixture.spent_in("session/t").await, "1");
    assert_eq!(fixture.spent_in("session/").await, "0");
    fixture.store.register_process("p1").await.unwrap();
    // A name that holds another's, a quotation mark, and a tag of the same text are no others' names.
    let job = StoredJob {
        id: EntryId([9; 16]),
        owner: entry(9, "0").owner,
        funding: Funding::Byok,
        reserved: usd("2"),
        marks: marks(&["session/t"], &["session/s\"x", "session/s 2"]),
        ordered: "{}".to_owned(),
        state: "{}".to_owned(),
        created_ms: NOW_MS,
        ..StoredJob::default()
    };
    fixture
        .store
        .begin_job("p1", &job, NOW_MS, None)
        .await
        .unwrap();
    for (name, expected) in [
        ("session/s", "0.75"),
        ("session/t", "1"),
        ("session/s\"x", "2"),
        ("session/s 2", "2"),
    ] {
        assert_eq!(fixture.spent_in(name).await, expected, "{name}");
    }
    let ended = LedgerEntry {
        id: job.id,
        marks: job.marks.clone(),
        ..of(&[], entry(9, "1.5"))
    };
    let ended = LedgerEntry {
        marks: job.marks.clone(),
        ..ended
    };
    let kind = (job.kind, &job.id);
    let done = fixture.store.end_job(kind, ("{}", 0), Some(&ended), None);
    assert!(done.await.unwrap().is_some());
    assert_eq!(fixture.spent_in("session/s 2").await, "1.5");
}

async fn a_lease_of_a_budget_that_is_given_back_leaves_no_row(fixture: Fixture) {
    fixture.begin("a").await;
    let limits = KeyLimits {
        lifetime: Some(usd("1")),
        ..KeyLimits::default()
    };
    let terms = LimitTerms::Budget(BudgetKind::Session, limits);
    let request = |number, offer| LimitRequest {
        organization_id: ORG.to_owned(),
        scope: LimitScope::Budget("session/s".into()),
        number,
        offer,
    };
    let asks = LimitOffer {
        wanted: Some((terms, usd("0.1"))),
        now_ms: NOW_MS,
        ..LimitOffer::default()
    };
    let change = async |number, offer| {
        let requests = [request(number, offer)];
        let changed = fixture.store.change_leases("a", &[], &requests).await;
        changed.unwrap().unwrap().limits[0]
    };
    assert_eq!(change(1, asks).await.added, usd("1"));
    assert_eq!(fixture.rows_of("limit_leases").await, 1);
    // A call runs, so its part stays held.
    let running = LimitOffer {
        granted: Some(usd("0.1")),
        reserved: usd("0.1"),
        ..LimitOffer::default()
    };
    assert_eq!(change(2, running).await.held, usd("0.1"));
    assert_eq!(fixture.rows_of("limit_leases").await, 1);
    let ended = LimitOffer {
        granted: Some(usd("0")),
        ..LimitOffer::default()
    };
    assert_eq!(change(3, ended).await.held, usd("0"));
    assert_eq!(fixture.rows_of("limit_leases").await, 0);
}

async fn what_people_say_is_kept_in_the_log_and_followed(fixture: Fixture) {
    fixture.organization("acme").await;
    let heard = Arc::new(std::sync::Mutex::new(Vec::new()));
    let said = Arc::clone(&heard);
    let publish = move |rows| {
        let PublishedRows::Budgets(rows) = rows else {
            return;
        };
        let records = match rows {
            BudgetRows::All(records) | BudgetRows::Changed(records) => records,
        };
        let records = records
            .into_iter()
            .map(|record| (record.name, record.paused_at));
        said.lock().unwrap().push(records.collect::<Vec<_>>());
    };
    let accounts = AccountsHandle::load(&fixture.store, publish).await.unwrap();
    let name = session_budget("s");
    fixture.say(&name, BudgetChange::Pause).await;
    accounts.refresh(&fixture.store).await.unwrap();
    fixture.say(&name, BudgetChange::Grant(usd("2"))).await;
    accounts.refresh(&fixture.store).await.unwrap();
    let told = heard.lock().unwrap().clone();
    let paused = |at| vec![(name.clone(), at)];
    assert_eq!(told, [vec![], paused(Some(NOW_MS)), paused(None)]);
    let report = fixture.report(&name).await;
    assert_eq!((report.granted, report.paused_ms), (usd("2"), None));
    let missing = fixture.store.by(&PROGRAM);
    let missing = missing.change_budget("none", &name, BudgetChange::Pause, NOW_MS);
    assert!(matches!(missing.await, Err(StoreError::NotFound { .. })));
}

async fn calls_behind_the_end_are_counted_under_their_limit(fixture: Fixture) {
    fixture.organization("acme").await;
    let uses = async |since: &str, most| {
        let used = fixture
            .store
            .use_grace_call("o", "session/s", (since, most), NOW_MS);
        used.await.unwrap()
    };
    assert!(!uses("1 9", 0).await);
    assert!(uses("1 9", 2).await && uses("1 9", 2).await);
    assert!(!uses("1 9", 2).await);
    // A higher limit, or the next period, begins anew.
    assert!(uses("3 9", 1).await && !uses("3 9", 1).await);
    // Nothing was said of it by a person, so no process has to know it.
    assert_eq!(fixture.store.all_budgets().await.unwrap(), []);
}

async fn budgets_that_rest_are_forgotten_and_others_stay(fixture: Fixture) {
    fixture.organization("acme").await;
    let old = LedgerEntry {
        at_ms: NOW_MS - 500 * DAY_MS,
        ..of(&["session/old"], entry(1, "1"))
    };
    fixture
        .post("p1", vec![old, of(&["session/new"], entry(2, "1"))])
        .await;
    fixture.say("session/paused", BudgetChange::Pause).await;
    fixture
        .say("session/granted", BudgetChange::Grant(usd("1")))
        .await;
    let used = fixture
        .store
        .use_grace_call("o", "session/s", ("1 9", 1), NOW_MS);
    assert!(used.await.unwrap());
    let counters = fixture.rows_of("limit_counters").await;
    assert!(!fixture.store.delete_old_budgets(NOW_MS).await.unwrap());
    assert_eq!(fixture.spent_in("session/old").await, "0");
    assert_eq!(fixture.spent_in("session/new").await, "1");
    assert_eq!(
        fixture.rows_of("limit_counters").await,
        counters - 1,
        "those of keys stay"
    );
    assert_eq!(fixture.rows_of("budget_states").await, 3);
    for (days, left) in [(41, 2), (401, 1)] {
        fixture
            .store
            .delete_old_budgets(NOW_MS + days * DAY_MS)
            .await
            .unwrap();
        assert_eq!(
            fixture.rows_of("budget_states").await,
            left,
            "after {days} days"
        );
    }
}

async fn the_usage_by_tag_has_a_call_in_each_of_its_tags(fixture: Fixture) {
    fixture.organization("acme").await;
    let id = fixture.store.organization("acme").await.unwrap().id;
    let call = |n, tags: &[&str], cost| {
        let mut call = entry(n, cost);
        call.owner.organization_id = id.as_str().into();
        call.marks = marks(tags, &[]);
        call.funding = Funding::Byok;
        call
    };
    let calls = vec![
        call(1, &["a", "b"], "0.5"),
        call(2, &["b"], "0.25"),
        call(3, &[], "1"),
    ];
    fixture.post("p1", calls).await;
    for since in [0, NOW_MS + 1] {
        let parts = fixture
            .store
            .usage_by_session("acme", since, UsageGroup::Tag);
        let parts = parts.await.unwrap();
        let told = parts.iter().map(|part| {
            (
                part.usage.name.clone(),
                part.usage.requests,
                part.usage.cost.to_string(),
            )
        });
        let told: Vec<_> = told.collect();
        let expected = [
            ("a".to_owned(), 1, "0.5".to_owned()),
            ("b".to_owned(), 2, "0.75".to_owned()),
        ];
        assert_eq!(
            told, expected,
            "single calls have no tags, so the hour counts as a whole"
        );
    }
}
