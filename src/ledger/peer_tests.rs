#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::Weak;

use filters::accounts::Caller;
use filters::audit::PROGRAM;
use filters::ledger::{CallOutcome, CostParts, Funding, UsageRecord};
use filters::money::Usd;
use filters::money::allowance::{KeyLimits, SpendingBounds};

use super::super::journal::SEGMENT_BYTES;
use super::super::tests::{caller, named_organization, start};
use super::super::{CallEnd, NewReservation};
use super::*;
use crate::store::Store;
use crate::telemetry::metrics::Metrics;

/// Two processes on one file, of which the first has all credit and gives back what it does not use.
async fn pair(folder: &std::path::Path, credit: Usd) -> (Arc<Ledger>, Arc<Ledger>, Store, Caller) {
    let metrics = Arc::new(Metrics::new().unwrap());
    let (old, store) = start(folder, 64 * SEGMENT_BYTES, &metrics).await;
    let id = named_organization(&store, "acme", credit).await;
    let mut caller = caller();
    caller.organization_id = id.as_str().into();
    let free = call(&caller, 1);
    drop(old.reserve(&free).await.unwrap());
    let (new, _) = start(folder, 64 * SEGMENT_BYTES, &metrics).await;
    for (from, to) in [(&old, &new), (&new, &old)] {
        let to: Weak<Ledger> = Arc::downgrade(to);
        from.begin_sharing(move |text| {
            if let Some(to) = to.upgrade() {
                to.hear_peer(&text);
            }
        });
    }
    tokio::spawn(Arc::clone(&old).return_unused());
    (old, new, store, caller)
}

fn call(caller: &Caller, units: i128) -> NewReservation<'_> {
    NewReservation {
        caller,
        request_id: "",
        is_stream: false,
        funding: Funding::Credit,
        max_cost: Usd::from_units(units),
        is_premium: false,
        bounds: SpendingBounds::default(),
        experiment: None,
        session: None,
        budgets: None,
        marks: None,
    }
}

fn end(units: i128) -> CallEnd {
    CallEnd {
        usage: UsageRecord {
            cost: Some(CostParts {
                total: Usd::from_units(units),
                ..CostParts::default()
            }),
            ..UsageRecord::default()
        },
        outcome: CallOutcome::Completed,
        is_byok: false,
        duration: Duration::ZERO,
        first_event: None,
    }
}

/// Makes calls at both in turn until both refuse. Returns how many were served.
async fn spend(ledgers: [&Arc<Ledger>; 2], call: &NewReservation<'_>, cost: i128) -> usize {
    let (mut served, mut refused_in_a_row) = (0, 0);
    for ledger in ledgers.into_iter().cycle() {
        match ledger.reserve(call).await {
            Ok(mut running) => {
                assert!(running.settle(end(cost)).is_durable().await);
                (served, refused_in_a_row) = (served + 1, 0);
            }
            Err(_) => refused_in_a_row += 1,
        }
        if refused_in_a_row == 2 || served > 1000 {
            break;
        }
    }
    served
}

#[tokio::test(flavor = "multi_thread")]
async fn two_processes_spend_the_credit_of_one_file_to_its_end_and_not_beyond() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new, store, caller) = pair(folder.path(), Usd::from_units(100)).await;
    assert_eq!(spend([&old, &new], &call(&caller, 1), 1).await, 100);
    // The one that leaves first stores what it has.
    for ledger in [old, new] {
        tokio::task::spawn_blocking(move || ledger.close())
            .await
            .unwrap();
    }
    let account = store.account(&caller.organization_id).await.unwrap();
    let sums = (account.settled, account.free());
    assert_eq!(
        sums,
        (Usd::from_units(100), Usd::ZERO),
        "each call is charged once"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limit_holds_over_both_and_is_used_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new, _, caller) = pair(folder.path(), Usd::from_units(1_000)).await;
    let limited = NewReservation {
        bounds: SpendingBounds {
            key: KeyLimits {
                lifetime: Some(Usd::from_units(20)),
                ..KeyLimits::default()
            },
            ..SpendingBounds::default()
        },
        ..call(&caller, 1)
    };
    // As among processes of a fleet, each may exceed a limit by its last call.
    let served = spend([&old, &new], &limited, 1).await;
    assert!((20..=21).contains(&served), "{served}");
}

#[tokio::test(flavor = "multi_thread")]
async fn one_that_is_alone_again_asks_nobody() {
    let folder = tempfile::tempdir().unwrap();
    let (old, new, _, caller) = pair(folder.path(), Usd::from_units(10)).await;
    tokio::task::spawn_blocking(move || old.close())
        .await
        .unwrap();
    new.end_sharing();
    assert!(!new.is_shared());
    let served = spend([&new, &new], &call(&caller, 1), 1).await;
    assert_eq!(served, 10);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_gets_back_what_a_server_has_leased_and_does_not_use() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = Arc::new(Metrics::new().unwrap());
    let (ledger, store) = start(folder.path(), 64 * SEGMENT_BYTES, &metrics).await;
    let id = named_organization(&store, "acme", Usd::from_units(10)).await;
    let mut caller = caller();
    caller.organization_id = id.as_str().into();
    let running = ledger.reserve(&call(&caller, 3)).await.unwrap();
    let leased = async || store.account(&id).await.unwrap().leased;
    assert_eq!(leased().await, Usd::from_units(10));
    // What a running call holds stays with it.
    let refused = store
        .by(&PROGRAM)
        .take_credit("acme", Usd::from_units(8), 1)
        .await;
    let Err(StoreError::BeyondFree { free, held, .. }) = refused else {
        unreachable!("it took what is held back");
    };
    assert_eq!((free, held), (Usd::from_units(7), Usd::from_units(3)));
    store
        .by(&PROGRAM)
        .take_credit("acme", Usd::from_units(5), 1)
        .await
        .unwrap();
    store
        .by(&PROGRAM)
        .disable_organization("acme")
        .await
        .unwrap();
    let held = store
        .by(&PROGRAM)
        .delete_organization("acme", true, 1)
        .await;
    assert!(matches!(held, Err(StoreError::Kept { .. })));
    drop(running);
    store
        .by(&PROGRAM)
        .delete_organization("acme", true, 1)
        .await
        .unwrap();
    assert_eq!(leased().await, Usd::ZERO);
    let requests = store.return_requests().await.unwrap();
    assert!(requests.is_empty(), "{requests:?}");
    tokio::task::spawn_blocking(move || ledger.close())
        .await
        .unwrap();
}
