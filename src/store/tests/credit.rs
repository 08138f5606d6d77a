//! Credit that is taken back.

use super::super::ledger::LeaseChange;
use super::ledger::{ORG, entry, usd};
use super::*;

on_both![
    credit_is_taken_back_that_is_neither_used_nor_held,
    takes_and_leases_at_once_never_have_more_than_there_is,
];

impl Fixture {
    async fn take_credit(&self, amount: &str) -> Result<String, StoreError> {
        self.store
            .by(&PROGRAM)
            .take_credit("acme", usd(amount), NOW_MS)
            .await
    }
}

async fn credit_is_taken_back_that_is_neither_used_nor_held(fixture: Fixture) {
    fixture.grant("10").await;
    let store = &fixture.store.by(&PROGRAM);
    fixture.post("p0", vec![entry(1, "2.5")]).await;
    fixture.begin("p1").await;
    fixture.begin("p2").await;
    // A quarter of what is free.
    fixture.change("p1", 1, LeaseChange::Take(usd("0.1"))).await;
    let credit = store.credit("acme").await.unwrap();
    assert_eq!((credit.reserved, credit.used), (usd("1.875"), usd("2.5")));
    let refused = fixture.take_credit("5.7").await.unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("at most 5.625 USD can be taken"),
        "{refused}"
    );
    fixture.take_credit("5").await.unwrap();
    let credit = store.credit("acme").await.unwrap();
    assert_eq!((credit.granted, credit.balance()), (usd("5"), usd("2.5")));
    // What a process that died has held is free, and counts once.
    fixture.silence("p1").await;
    fixture.take_credit("2.5").await.unwrap();
    let credit = store.credit("acme").await.unwrap();
    assert_eq!((credit.granted, credit.reserved), (usd("2.5"), usd("0")));
    assert!(fixture.take_credit("0.000000000000000001").await.is_err());
    // The grants sum up to what is granted, also where a sum is made anew.
    fixture.grant("1").await;
    store.add_credit("acme", usd("2"), NOW_MS).await.unwrap();
    assert_eq!(fixture.account().await.granted, usd("5.5"));
    let sql = "UPDATE credit_grants SET is_summed = 0";
    let pool = store.pool.unlimited();
    sqlx::query(sql).execute(pool).await.unwrap();
    let sql = "UPDATE balances SET granted = '0'";
    sqlx::query(sql).execute(pool).await.unwrap();
    assert_eq!(fixture.account().await.granted, usd("5.5"));
    // A disabled organization gives back, too.
    store.disable_organization("acme").await.unwrap();
    fixture.take_credit("3").await.unwrap();
    assert_eq!(fixture.account().await.free(), usd("0"));
    let absent = store.take_credit("none", usd("1"), NOW_MS).await;
    assert!(matches!(absent, Err(StoreError::NotFound { .. })));
}

async fn takes_and_leases_at_once_never_have_more_than_there_is(fixture: Fixture) {
    fixture.grant("10").await;
    fixture.begin("p1").await;
    fixture.begin("p2").await;
    let takes = (0..12).map(|_| {
        let store = fixture.store.clone();
        tokio::spawn(async move {
            let taken = store
                .by(&PROGRAM)
                .take_credit("acme", usd("1"), NOW_MS)
                .await;
            match taken {
                Ok(_) => 1,
                Err(StoreError::BeyondFree { .. }) => 0,
                Err(error) => panic!("{error}"),
            }
        })
    });
    let takes: Vec<_> = takes.collect();
    for turn in 1..=4 {
        fixture
            .change("p1", turn, LeaseChange::Take(usd("0.5")))
            .await;
    }
    let mut taken = 0;
    for take in takes {
        taken += take.await.unwrap();
    }
    let account = fixture.store.account(ORG).await.unwrap();
    assert_eq!(account.granted, usd("10").minus(usd(&taken.to_string())));
    assert!(account.leased <= account.granted, "{account:?}");
    assert!(account.leased > usd("0") && taken > 0, "{account:?}");
    assert!(account.free() < usd("1"), "{account:?}");
}
