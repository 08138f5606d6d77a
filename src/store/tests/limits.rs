//! Leases of limits: what they hold, what others see of them, and what becomes of those of a process that is gone.

use filters::ledger::{LimitGrant, LimitOffer, LimitScope, LimitTerms};
use filters::money::Usd;
use filters::money::allowance::KeyLimits;

use super::super::ledger::{LeaseChange, LeaseRequest, LimitRequest};
use super::ledger::{ORG, entry, usd};
use super::*;

on_both!(
    a_limit_is_granted_less_what_is_spent_and_what_others_hold,
    a_call_that_is_stored_moves_from_its_lease_to_what_is_spent,
    a_change_that_comes_behind_a_later_one_changes_nothing,
    a_process_that_is_gone_holds_nothing,
    leases_of_credit_and_of_limits_change_together_or_not_at_all,
);

fn key() -> LimitScope {
    LimitScope::Key("key_1".into())
}

/// A process asks for more of a limit of 8 USD for a call of this cost; `granted` as far as it knows.
fn asks(need: &str, granted: Option<&str>) -> LimitOffer {
    let limits = KeyLimits {
        lifetime: Some(usd("8")),
        ..KeyLimits::default()
    };
    LimitOffer {
        granted: granted.map(usd),
        wanted: Some((LimitTerms::Key(limits), usd(need))),
        now_ms: NOW_MS,
        ..LimitOffer::default()
    }
}

fn request(scope: LimitScope, number: i64, offer: LimitOffer) -> LimitRequest {
    LimitRequest {
        organization_id: ORG.to_owned(),
        scope,
        number,
        offer,
    }
}

impl Fixture {
    async fn limit(&self, owner: &str, number: i64, offer: LimitOffer) -> LimitGrant {
        let requests = [request(key(), number, offer)];
        let changed = self.store.change_leases(owner, &[], &requests).await;
        changed.unwrap().unwrap().limits[0]
    }

    /// What processes of the version before see of the leases: by process the amount and what is stored.
    async fn seen(&self) -> Vec<(String, String, String)> {
        let sql = "SELECT owner, amount, stored FROM limit_leases ORDER BY owner";
        let seen = sqlx::query_as(sql).fetch_all(self.store.pool.unlimited());
        seen.await.unwrap()
    }
}

async fn a_limit_is_granted_less_what_is_spent_and_what_others_hold(fixture: Fixture) {
    fixture.begin("a").await;
    fixture.begin("b").await;
    fixture.post("gone", vec![entry(1, "2")]).await;
    let grant = fixture.limit("a", 1, asks("0.1", None)).await;
    assert_eq!((grant.added, grant.held), (usd("1.5"), usd("1.5")));
    assert_eq!(grant.room.unwrap().left, usd("6"));
    // The other gets its part of what remains, and what it needs as far as there is so much.
    let grant = fixture.limit("b", 1, asks("0.5", None)).await;
    assert_eq!((grant.added, grant.others), (usd("1.125"), usd("1.5")));
    let grant = fixture.limit("b", 2, asks("9", Some("1.125"))).await;
    assert_eq!((grant.added, grant.held), (usd("3.375"), usd("4.5")));
    // What the first returns is free at once.
    let returned = LimitOffer {
        granted: Some(usd("0.5")),
        ..LimitOffer::default()
    };
    fixture.limit("a", 2, returned).await;
    let grant = fixture.limit("b", 3, asks("9", Some("4.5"))).await;
    assert_eq!((grant.added, grant.others), (usd("1"), usd("0.5")));
}

async fn a_call_that_is_stored_moves_from_its_lease_to_what_is_spent(fixture: Fixture) {
    fixture.begin("a").await;
    fixture.begin("b").await;
    fixture.limit("a", 1, asks("3", None)).await;
    fixture.post("a", vec![entry(1, "2")]).await;
    let row = |owner: &str, amount: &str, stored: &str| {
        let texts = [owner, amount, stored].map(str::to_owned);
        let [owner, amount, stored] = texts;
        (owner, amount, stored)
    };
    assert_eq!(fixture.seen().await, [row("a", "1", "2")]);
    let grant = fixture.limit("b", 1, asks("8", None)).await;
    assert_eq!((grant.added, grant.others), (usd("5"), usd("1")));
    // The last call exceeds the lease. Others do not hold less than nothing, and the rest is owed no more.
    fixture.post("a", vec![entry(2, "3")]).await;
    assert_eq!(fixture.seen().await[0], row("a", "0", "5"));
    fixture
        .limit(
            "b",
            2,
            LimitOffer {
                granted: Some(Usd::ZERO),
                ..LimitOffer::default()
            },
        )
        .await;
    let grant = fixture.limit("a", 2, asks("9", Some("3"))).await;
    assert_eq!((grant.held, grant.added), (usd("3"), usd("5")));
    assert_eq!(grant.room.unwrap().left, usd("3"));
}

async fn a_change_that_comes_behind_a_later_one_changes_nothing(fixture: Fixture) {
    fixture.begin("a").await;
    fixture.limit("a", 5, asks("3", None)).await;
    let before = fixture.seen().await;
    let returned = LimitOffer {
        granted: Some(Usd::ZERO),
        ..LimitOffer::default()
    };
    fixture.limit("a", 4, returned).await;
    assert_eq!(fixture.seen().await, before);
}

async fn a_process_that_is_gone_holds_nothing(fixture: Fixture) {
    for owner in ["a", "b", "c"] {
        fixture.begin(owner).await;
    }
    for owner in ["a", "b"] {
        fixture.limit(owner, 1, asks("2", None)).await;
    }
    fixture.silence("a").await;
    fixture.store.unregister_process("b").await.unwrap();
    let grant = fixture.limit("c", 1, asks("8", None)).await;
    assert_eq!((grant.added, grant.others), (usd("8"), usd("0")));
    // The silent one learns that it has lost its leases.
    let requests = [request(key(), 2, asks("8", Some("2")))];
    let changed = fixture.store.change_leases("a", &[], &requests).await;
    assert_eq!(changed.unwrap(), None);
}

async fn leases_of_credit_and_of_limits_change_together_or_not_at_all(fixture: Fixture) {
    fixture.organization("acme").await;
    fixture.begin("a").await;
    fixture.begin("b").await;
    let credit = [LeaseRequest {
        organization_id: ORG.to_owned(),
        number: 1,
        change: LeaseChange::Take(usd("1")),
    }];
    let limits = ["plan", "key/key_1", "member/m"].map(|scope| {
        let scope: LimitScope = scope.parse().unwrap();
        let terms = LimitTerms::Member(usd("8"));
        let offer = LimitOffer {
            wanted: Some((terms, usd("3"))),
            ..asks("3", None)
        };
        request(scope, 1, offer)
    });
    let changed = fixture.store.change_leases("a", &credit, &limits).await;
    let grants = changed.unwrap().unwrap();
    assert_eq!(grants.credit[0].amount, usd("0"));
    let added = grants.limits.iter().map(|grant| grant.added);
    assert!(added.eq([usd("3"); 3]));
    let gone = fixture.store.change_leases("gone", &credit, &limits).await;
    assert_eq!(gone.unwrap(), None);
    assert_eq!(fixture.seen().await.len(), 3);
}
