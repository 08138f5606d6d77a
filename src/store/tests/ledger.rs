use filters::ledger::{CallOwner, CostParts, EntryId, Funding, LedgerEntry, UsageRecord as Took};
use filters::money::Usd;

use super::super::ledger::{By, LeaseChange, LeaseRequest, StoreAccount};
use super::*;

pub(super) const ORG: &str = "org_1";

pub(super) fn usd(text: &str) -> Usd {
    Usd::parse_signed(text).unwrap()
}

pub(super) fn entry(n: u8, cost: &str) -> LedgerEntry {
    LedgerEntry {
        id: EntryId([n; 16]),
        at_ms: NOW_MS,
        owner: CallOwner {
            organization_id: ORG.into(),
            key_id: "key_1".into(),
            ..CallOwner::default()
        },
        usage: Took {
            prompt_tokens: 3,
            cost: Some(CostParts {
                total: usd(cost),
                input: usd(cost),
                ..CostParts::default()
            }),
            ..Took::default()
        },
        charged: usd(cost),
        ..LedgerEntry::default()
    }
}

impl Fixture {
    pub(super) async fn grant(&self, amount: &str) {
        let id = new_id("org");
        let sql = "INSERT INTO organizations (id, name, plan, status, created_at, plan_since) \
                   VALUES ($1, 'acme', 'none', 'active', 0, 0) ON CONFLICT DO NOTHING";
        let made = sqlx::query(sql)
            .bind(ORG)
            .execute(self.store.pool.unlimited())
            .await;
        made.unwrap();
        let sql = "INSERT INTO credit_grants (id, organization_id, amount, created_at) \
                   VALUES ($1, $2, $3, 0)";
        let query = sqlx::query(sql).bind(id).bind(ORG).bind(amount.to_owned());
        query.execute(self.store.pool.unlimited()).await.unwrap();
    }

    pub(super) async fn account(&self) -> StoreAccount {
        self.store.account(ORG).await.unwrap()
    }

    pub(super) async fn change(
        &self,
        owner: &str,
        turn: i64,
        change: LeaseChange,
    ) -> Option<(String, String)> {
        let request = LeaseRequest {
            organization_id: ORG.to_owned(),
            number: turn,
            change,
        };
        let changed = self.store.change_leases(owner, &[request], &[]).await;
        let taken = changed.unwrap()?.credit[0];
        Some((taken.amount.to_string(), taken.others.to_string()))
    }

    pub(super) async fn take(&self, owner: &str, turn: i64, need: &str) -> (String, String) {
        let taken = self.change(owner, turn, LeaseChange::Take(usd(need))).await;
        taken.expect("the process is known")
    }

    pub(super) async fn begin(&self, owner: &str) {
        self.store.register_process(owner).await.unwrap();
    }

    /// Pretends that a process has not refreshed its registration for a minute.
    pub(super) async fn silence(&self, owner: &str) {
        let sql = "UPDATE ledger_processes SET seen_at = seen_at - 60000 WHERE owner = $1";
        let query = sqlx::query(sql).bind(owner.to_owned());
        query.execute(self.store.pool.unlimited()).await.unwrap();
    }

    pub(super) async fn post(&self, owner: &str, entries: Vec<LedgerEntry>) {
        self.store.post(owner, &entries, true).await.unwrap();
    }
}

async fn a_process_alone_takes_all_there_is(fixture: Fixture) {
    fixture.grant("1.5").await;
    fixture.grant("0.25").await;
    fixture.begin("a").await;
    assert_eq!(
        fixture.take("a", 1, "0.01").await,
        ("1.75".into(), "0".into())
    );
    assert_eq!(fixture.take("a", 2, "0.01").await, ("0".into(), "0".into()));
    assert_eq!(fixture.account().await.leased, usd("1.75"));
}

async fn processes_never_hold_more_than_there_is(fixture: Fixture) {
    fixture.grant("1").await;
    for owner in ["a", "b"] {
        fixture.begin(owner).await;
    }
    assert_eq!(
        fixture.take("a", 1, "0.01").await,
        ("0.25".into(), "0".into())
    );
    assert_eq!(
        fixture.take("b", 1, "0.7").await,
        ("0.7".into(), "0.25".into())
    );
    assert_eq!(
        fixture.take("a", 2, "0.1").await,
        ("0".into(), "0.7".into())
    );
    fixture
        .change("b", 2, LeaseChange::Return(usd("0.6")))
        .await;
    assert_eq!(
        fixture.take("a", 3, "0.1").await,
        ("0.1625".into(), "0.1".into())
    );
}

async fn the_leases_of_a_dead_process_are_free(fixture: Fixture) {
    fixture.grant("1").await;
    fixture.begin("a").await;
    fixture.take("a", 1, "1").await;
    fixture.silence("a").await;
    fixture.begin("b").await;
    assert_eq!(fixture.take("b", 1, "1").await, ("1".into(), "0".into()));
    let of_a = fixture.change("a", 2, LeaseChange::Take(usd("0.1"))).await;
    assert_eq!(of_a, None, "it learns of it");
    assert_eq!(
        fixture.change("a", 3, LeaseChange::Return(usd("1"))).await,
        None
    );
    assert_eq!(fixture.account().await.leased, usd("1"));
}

async fn an_unrefreshed_process_keeps_its_leases_while_no_other_needs_them(fixture: Fixture) {
    fixture.grant("1").await;
    fixture.begin("a").await;
    fixture.take("a", 1, "1").await;
    fixture.silence("a").await;
    fixture.grant("0.5").await;
    assert_eq!(
        fixture.take("a", 2, "0.5").await,
        ("0.5".into(), "0".into())
    );
    assert_eq!(fixture.account().await.leased, usd("1.5"));
    assert!(fixture.store.refresh_process("a").await.unwrap());
}

async fn a_repeated_change_of_a_lease_is_applied_once(fixture: Fixture) {
    fixture.grant("1").await;
    fixture.begin("a").await;
    for _ in 0..2 {
        assert_eq!(fixture.take("a", 1, "0.5").await, ("1".into(), "0".into()));
    }
    for _ in 0..2 {
        let given = fixture
            .change("a", 2, LeaseChange::Return(usd("0.4")))
            .await;
        assert_eq!(given, Some(("0".into(), "0".into())));
        assert_eq!(fixture.account().await.leased, usd("0.6"));
    }
    // Calls are charged to the lease meanwhile, which is not a change of the lease.
    fixture.take("a", 3, "0.4").await;
    fixture.post("a", vec![entry(1, "0.25")]).await;
    assert_eq!(
        fixture.take("a", 3, "0.4").await,
        ("0.4".into(), "0".into())
    );
    assert_eq!(fixture.account().await.leased, usd("0.75"));
}

async fn a_process_that_begins_holds_nothing(fixture: Fixture) {
    fixture.grant("1").await;
    fixture.begin("a").await;
    fixture.take("a", 1, "1").await;
    fixture.begin("a").await;
    assert_eq!(fixture.account().await.leased, Usd::ZERO);
}

async fn costs_of_calls_leave_the_balance_and_the_lease(fixture: Fixture) {
    fixture.grant("1").await;
    fixture.begin("a").await;
    fixture.take("a", 1, "1").await;
    fixture
        .post("a", vec![entry(1, "0.1"), entry(2, "0.000000000000000001")])
        .await;
    let account = fixture.account().await;
    assert_eq!(account.settled, usd("0.100000000000000001"));
    assert_eq!(account.leased, usd("0.899999999999999999"));
    assert_eq!(account.free(), Usd::ZERO);
}

async fn a_call_that_is_posted_again_is_charged_once(fixture: Fixture) {
    fixture.grant("1").await;
    fixture.begin("a").await;
    fixture.take("a", 1, "1").await;
    fixture.post("a", vec![entry(1, "0.1")]).await;
    fixture
        .post("a", vec![entry(1, "0.1"), entry(2, "0.2")])
        .await;
    let settled = fixture.account().await.settled;
    assert_eq!(settled, usd("0.3"));
    assert_eq!(fixture.spent_of("key/key_1").await.key.total, usd("0.3"));
}

async fn an_hour_knows_its_first_and_its_last_call(fixture: Fixture) {
    for (n, later_ms) in [(1, 5), (2, 9), (3, 7)] {
        let at_ms = NOW_MS + later_ms;
        let call = LedgerEntry {
            at_ms,
            ..entry(n, "0.1")
        };
        fixture.post("a", vec![call]).await;
    }
    let sql = "SELECT first_at, last_at FROM spent";
    let hours: Vec<(i64, i64)> = sqlx::query_as(sql)
        .fetch_all(fixture.store.pool.unlimited())
        .await
        .unwrap();
    assert_eq!(hours, [(NOW_MS + 5, NOW_MS + 9)]);
}

async fn a_balance_never_passes_zero_and_the_rest_is_a_shortfall(fixture: Fixture) {
    fixture.grant("0.25").await;
    fixture.begin("a").await;
    fixture.take("a", 1, "0.25").await;
    // The process has no lease, as after its expiry. The lease of `a` is not touched.
    fixture.post("gone", vec![entry(1, "0.1")]).await;
    fixture
        .post("a", vec![entry(2, "0.2"), entry(3, "0.1")])
        .await;
    let account = fixture.account().await;
    assert_eq!(account.settled, usd("0.25"));
    assert_eq!(account.shortfall, usd("0.15"));
    assert_eq!(account.leased, Usd::ZERO);
}

async fn what_the_balance_does_not_pay_leaves_it_alone(fixture: Fixture) {
    fixture.grant("1").await;
    let of_plan = LedgerEntry {
        funding: Funding::Plan,
        ..entry(1, "0.1")
    };
    fixture.post("a", vec![of_plan]).await;
    assert_eq!(fixture.account().await.settled, Usd::ZERO);
    assert_eq!(fixture.spent_of("plan").await.plan.cycle, usd("0.1"));
}

async fn a_batch_of_any_length_is_written_as_a_whole(fixture: Fixture) {
    fixture.grant("100").await;
    fixture.begin("a").await;
    fixture.take("a", 1, "100").await;
    let entries = (1..=77).map(|n| entry(n, "0.01")).collect();
    fixture.post("a", entries).await;
    assert_eq!(fixture.account().await.settled, usd("0.77"));
    assert_eq!(fixture.calls().await.len(), 77);
}

async fn a_process_that_ends_gives_its_leases_back(fixture: Fixture) {
    fixture.grant("1").await;
    fixture.begin("a").await;
    fixture.take("a", 1, "1").await;
    fixture.store.unregister_process("a").await.unwrap();
    assert_eq!(fixture.account().await.free(), usd("1"));
    let is_known = fixture.store.refresh_process("a").await.unwrap();
    assert!(!is_known);
}

async fn usage_is_summed_to_the_last_digit(fixture: Fixture) {
    fixture.grant("1").await;
    let mut other = entry(2, "0.000000000000000007");
    other.usage.model = "other".into();
    other.at_ms = NOW_MS + 1;
    fixture
        .post("a", vec![entry(1, "0.1"), other, entry(3, "0.2")])
        .await;
    let usage = fixture.store.usage("acme", 0, None).await.unwrap();
    assert_eq!(usage.len(), 1);
    assert_eq!((usage[0].requests, usage[0].prompt_tokens), (3, 9));
    assert_eq!(usage[0].cost, usd("0.300000000000000007"));
    let by_model = fixture
        .store
        .usage("acme", 0, Some(By::Model))
        .await
        .unwrap();
    let costs: Vec<_> = by_model
        .iter()
        .map(|row| (&*row.name, row.requests))
        .collect();
    assert_eq!(costs, [("", 2), ("other", 1)]);
    let since = fixture
        .store
        .usage("acme", NOW_MS + 1, Some(By::Key))
        .await
        .unwrap();
    assert_eq!((since[0].requests, &*since[0].name), (1, "key_1"));
    let nothing = fixture.store.usage("acme", NOW_MS + 2, None).await.unwrap();
    assert_eq!((nothing[0].requests, nothing[0].cost), (0, Usd::ZERO));
}

on_both!(
    an_hour_knows_its_first_and_its_last_call,
    usage_is_summed_to_the_last_digit,
    a_process_alone_takes_all_there_is,
    processes_never_hold_more_than_there_is,
    the_leases_of_a_dead_process_are_free,
    an_unrefreshed_process_keeps_its_leases_while_no_other_needs_them,
    a_repeated_change_of_a_lease_is_applied_once,
    a_process_that_begins_holds_nothing,
    costs_of_calls_leave_the_balance_and_the_lease,
    a_call_that_is_posted_again_is_charged_once,
    a_balance_never_passes_zero_and_the_rest_is_a_shortfall,
    what_the_balance_does_not_pay_leaves_it_alone,
    a_batch_of_any_length_is_written_as_a_whole,
    a_process_that_ends_gives_its_leases_back,
);
