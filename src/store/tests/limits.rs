//! Leases of limits: what they hold, what others see of them, and what becomes of those of a process that is gone.

use filters::ledger::{HeldLimit, HeldLimits, LimitGrant, LimitOffer};

use super::super::ledger::{LeaseChange, LeaseRequest, LimitRequest};
use super::ledger::{ORG, usd};
use super::*;

on_both!(
    a_lease_of_a_limit_is_held_and_seen_by_others,
    what_a_process_stored_after_another_looked_counts_against_its_room,
    a_process_that_is_gone_holds_nothing_and_outdates_who_saw_it,
    leases_of_credit_and_of_limits_change_together_or_not_at_all,
);

const SCOPE: &str = "key/key_1";

fn asks(room: &str, need: &str, held: &str, stored: &str) -> LimitOffer {
    LimitOffer {
        room: usd(room),
        need: Some(usd(need)),
        held: usd(held),
        stored: usd(stored),
        ..LimitOffer::default()
    }
}

fn request(scope: &str, offer: LimitOffer, seen: &HeldLimits) -> LimitRequest {
    LimitRequest {
        organization_id: ORG.to_owned(),
        scope: scope.to_owned(),
        offer,
        seen: seen.clone(),
    }
}

impl Fixture {
    async fn seen(&self) -> HeldLimits {
        let held = self.store.held_limits(ORG, &[SCOPE.to_owned()]).await;
        held.unwrap().remove(SCOPE).unwrap_or_default()
    }

    async fn limit(&self, owner: &str, offer: LimitOffer, seen: &HeldLimits) -> LimitGrant {
        let requests = [request(SCOPE, offer, seen)];
        let changed = self.store.change_leases(owner, &[], &requests).await;
        changed.unwrap().unwrap().limits[0]
    }
}

async fn a_lease_of_a_limit_is_held_and_seen_by_others(fixture: Fixture) {
    fixture.begin("a").await;
    fixture.begin("b").await;
    let none = HeldLimits::new();
    let grant = fixture.limit("a", asks("8", "0.1", "0.5", "0"), &none);
    let grant = grant.await;
    assert_eq!((grant.left, grant.amount), (Some(usd("2")), usd("2.5")));
    let seen = fixture.seen().await;
    let held = HeldLimit {
        amount: usd("2.5"),
        stored: usd("0"),
    };
    assert_eq!(seen, [("a".to_owned(), held)].into());
    // The other gets its part of what remains, and what it needs as far as there is so much.
    let grant = fixture.limit("b", asks("8", "0.1", "0", "0"), &seen).await;
    assert_eq!((grant.left, grant.others), (Some(usd("1.375")), usd("2.5")));
    let grant = fixture.limit("b", asks("8", "9", "0", "0"), &seen).await;
    assert_eq!(grant.left, Some(usd("5.5")));
    // What the first returns is free at once.
    let returned = LimitOffer {
        held: usd("0.5"),
        ..LimitOffer::default()
    };
    fixture.limit("a", returned, &none).await;
    let grant = fixture.limit("b", asks("8", "9", "0", "0"), &seen).await;
    assert_eq!(grant.left, Some(usd("7.5")));
}

async fn what_a_process_stored_after_another_looked_counts_against_its_room(fixture: Fixture) {
    fixture.begin("a").await;
    fixture.begin("b").await;
    let none = HeldLimits::new();
    fixture.limit("a", asks("8", "2", "0", "0"), &none).await;
    let seen = fixture.seen().await;
    // It spends all, stores it and says so.
    fixture.limit("a", asks("0", "0", "0", "2"), &none).await;
    let grant = fixture.limit("b", asks("8", "9", "0", "0"), &seen).await;
    assert_eq!((grant.left, grant.others), (Some(usd("6")), usd("0")));
    let grant = fixture.limit("b", asks("2", "9", "0", "0"), &seen).await;
    assert_eq!(grant.left, None);
    let seen = fixture.seen().await;
    let grant = fixture.limit("b", asks("2", "9", "0", "0"), &seen).await;
    assert_eq!(grant.left, Some(usd("2")));
}

async fn a_process_that_is_gone_holds_nothing_and_outdates_who_saw_it(fixture: Fixture) {
    for owner in ["a", "b", "c"] {
        fixture.begin(owner).await;
    }
    let none = HeldLimits::new();
    for owner in ["a", "b"] {
        fixture.limit(owner, asks("8", "2", "0", "0"), &none).await;
    }
    let seen = fixture.seen().await;
    fixture.silence("a").await;
    fixture.store.unregister_process("b").await.unwrap();
    let grant = fixture.limit("c", asks("8", "8", "0", "0"), &seen).await;
    assert_eq!((grant.left, grant.others), (None, usd("0")));
    let seen = fixture.seen().await;
    assert!(seen.keys().all(|owner| owner == "c"));
    let grant = fixture.limit("c", asks("8", "8", "0", "0"), &seen).await;
    assert_eq!(grant.left, Some(usd("8")));
    // The silent one learns that it has lost its leases.
    let requests = [request(SCOPE, asks("8", "8", "0", "0"), &seen)];
    let changed = fixture.store.change_leases("a", &[], &requests).await;
    assert_eq!(changed.unwrap(), None);
}

async fn leases_of_credit_and_of_limits_change_together_or_not_at_all(fixture: Fixture) {
    fixture.organization("acme").await;
    fixture.begin("a").await;
    fixture.begin("b").await;
    let none = HeldLimits::new();
    let credit = [LeaseRequest {
        organization_id: ORG.to_owned(),
        number: 1,
        change: LeaseChange::Take(usd("1")),
    }];
    let scopes = ["plan", SCOPE, "member/m"];
    let limits = scopes.map(|scope| request(scope, asks("8", "3", "0", "0"), &none));
    let changed = fixture.store.change_leases("a", &credit, &limits).await;
    let grants = changed.unwrap().unwrap();
    assert_eq!(grants.credit[0].amount, usd("0"));
    let left = grants.limits.iter().map(|grant| grant.left);
    assert!(left.eq([Some(usd("3")); 3]));
    let gone = fixture.store.change_leases("gone", &credit, &limits).await;
    assert_eq!(gone.unwrap(), None);
    assert_eq!(fixture.seen().await.len(), 1);
}
