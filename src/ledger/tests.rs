#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use filters::accounts::{Caller, Mode, Plan};
use filters::audit::PROGRAM;
use filters::fault::Fault;
use filters::ledger::{
    CallOutcome, CostParts, Funding, LimitOffer, LimitScope, LimitTerms, UsageRecord,
};
use filters::money::Usd;
use filters::money::allowance::{KeyLimits, LimitReached, SpendingBounds};

use super::flusher::retention_cutoff_ms;
use super::journal::SEGMENT_BYTES;
use super::{CallEnd, Ledger, NewReservation, ReservationError};
use crate::config::Durability;
use crate::store::Store;
use crate::store::ledger::LimitRequest;
use crate::telemetry::metrics::Metrics;
use crate::{config, store};

fn usage(units: i128) -> UsageRecord {
    UsageRecord {
        cost: Some(CostParts {
            total: Usd::from_units(units),
            ..CostParts::default()
        }),
        ..UsageRecord::default()
    }
}

#[test]
fn a_row_stays_as_long_as_a_journal_may_know_its_call() {
    const DAY_MS: i64 = 24 * 3_600_000;
    let retention = Duration::from_secs(2 * 24 * 3600);
    let cutoff =
        |journal_started_ms| retention_cutoff_ms(100 * DAY_MS, retention, journal_started_ms);
    assert_eq!(cutoff(100 * DAY_MS), 98 * DAY_MS);
    assert_eq!(cutoff(90 * DAY_MS), 89 * DAY_MS);
}

#[tokio::test]
async fn calls_on_byok_keys_do_not_fill_a_full_journal() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = Arc::new(Metrics::new().unwrap());
    let (ledger, _) = start(folder.path(), SEGMENT_BYTES - 1, &metrics).await;
    let caller = caller();
    let call = |funding| NewReservation {
        caller: &caller,
        request_id: "",
        is_stream: false,
        funding,
        max_cost: Usd::ZERO,
        is_premium: false,
        bounds: SpendingBounds::default(),
        experiment: None,
        session: None,
        budgets: None,
        marks: None,
    };
    let mut own = ledger.reserve(&call(Funding::Byok)).await.unwrap();
    let ended = CallEnd {
        usage: usage(5),
        outcome: CallOutcome::Completed,
        is_byok: true,
        duration: Duration::ZERO,
        first_event: None,
    };
    assert!(own.settle(ended).is_durable().await);
    assert!(ledger.journal.next_batch(1).is_none());
    assert_eq!(metrics.ledger_dropped.get(), 1);
    let refused = ledger.reserve(&call(Funding::Credit)).await.err();
    assert_eq!(refused, Some(ReservationError::Unavailable));
    let fault = Fault::from(ReservationError::Unavailable);
    assert_eq!((fault.status(), fault.retry_after_s), (503, Some(2)));
}

/// Starts a ledger on a SQLite file in the folder.
pub(super) async fn start(
    folder: &std::path::Path,
    journal_bytes: u64,
    metrics: &Arc<Metrics>,
) -> (Arc<Ledger>, Store) {
    let configured = config::StoreConfig {
        url: format!("sqlite:{}", folder.join("store.db").display()),
        state_dir: folder.to_owned(),
        secret: None,
        durability: Durability::Process,
        journal_bytes,
        usage_retention: None,
    };
    let settings = store::StoreSettings::from_config(&configured).unwrap();
    let store = Store::open(&settings).await.unwrap().store;
    let ledger = Ledger::start(&configured, Vec::new(), store.clone(), Arc::clone(metrics));
    (ledger.await.unwrap(), store)
}

#[tokio::test]
async fn an_idle_account_gives_its_lease_back_and_leaves_memory() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = Arc::new(Metrics::new().unwrap());
    let (ledger, store) = start(folder.path(), 64 * SEGMENT_BYTES, &metrics).await;
    let granted = Usd::from_units(1_000);
    let id = organization(&store, granted).await;
    let mut caller = caller();
    caller.organization_id = id.as_str().into();
    let bounds = SpendingBounds {
        key: KeyLimits {
            lifetime: Some(Usd::from_units(21)),
            ..KeyLimits::default()
        },
        ..SpendingBounds::default()
    };
    let call = NewReservation {
        caller: &caller,
        request_id: "",
        is_stream: false,
        funding: Funding::Credit,
        max_cost: Usd::from_units(100),
        is_premium: false,
        bounds,
        experiment: None,
        session: None,
        budgets: None,
        marks: None,
    };
    for n in 1..=3_i128 {
        let mut running = ledger.reserve(&call).await.unwrap();
        ledger.drop_idle_accounts(Duration::ZERO).await;
        assert_eq!(ledger.accounts().len(), 1, "a call is running");
        let ended = CallEnd {
            usage: usage(7),
            outcome: CallOutcome::Completed,
            is_byok: false,
            duration: Duration::ZERO,
            first_event: None,
        };
        assert!(running.settle(ended).is_durable().await);
        drop(running);
        // Its limit is held for the call until that is stored.
        while !ledger.accounts().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
            ledger.drop_idle_accounts(Duration::ZERO).await;
        }
        let settled = Usd::from_units(7 * n);
        let account = store.account(&id).await.unwrap();
        assert_eq!(
            (account.settled, account.free()),
            (settled, granted.minus(settled))
        );
    }
}

/// Creates an organization with this credit. Returns its id.
async fn organization(store: &Store, granted: Usd) -> String {
    named_organization(store, "acme", granted).await
}

/// Creates an organization of this name with this credit. Returns its id.
pub(super) async fn named_organization(store: &Store, name: &str, granted: Usd) -> String {
    let organization = store.by(&PROGRAM).create_organization(name, Plan::None, 0);
    let id = organization.await.unwrap().id;
    store
        .by(&PROGRAM)
        .add_credit(name, granted, 0)
        .await
        .unwrap();
    id
}

#[tokio::test]
async fn a_call_without_credit_is_refused_from_memory_until_there_is_new_credit() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = Arc::new(Metrics::new().unwrap());
    let (ledger, store) = start(folder.path(), 64 * SEGMENT_BYTES, &metrics).await;
    let id = organization(&store, Usd::from_units(50)).await;
    let mut caller = caller();
    caller.organization_id = id.as_str().into();
    let reserve = async |units| {
        let call = NewReservation {
            caller: &caller,
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
        };
        ledger.reserve(&call).await.err()
    };
    let asked = || ledger.account(&caller.organization_id).request_count();
    assert_eq!(reserve(60).await, Some(ReservationError::NoCredit));
    for _ in 0..100 {
        assert_eq!(reserve(60).await, Some(ReservationError::NoCredit));
    }
    assert_eq!(asked(), 2);
    // What the store has was not refused.
    assert_eq!(reserve(50).await, None);
    let credit = store
        .by(&PROGRAM)
        .add_credit("acme", Usd::from_units(100), 0);
    credit.await.unwrap();
    let added = std::time::Instant::now();
    while reserve(60).await.is_some() {
        assert!(added.elapsed() < Duration::from_secs(1));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn spending_is_read_while_calls_are_being_posted() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = Arc::new(Metrics::new().unwrap());
    let (ledger, _) = start(folder.path(), 64 * SEGMENT_BYTES, &metrics).await;
    let caller = caller();
    let call = byok_call(&caller);
    let started = std::time::Instant::now();
    let mut ended = 0;
    // The flusher posts several times meanwhile.
    while started.elapsed() < Duration::from_secs(2) {
        let mut running = ledger.reserve(&call).await.unwrap();
        _ = running.settle(five_units());
        ended += 1;
        let spent = ledger.spent(&caller).await.unwrap().key.total;
        assert_eq!(spent, Usd::from_units(5 * ended));
    }
    assert!(ledger.store.posts(&ledger.owner).await.unwrap() > 2);
    // A post that takes long.
    let _flush_guard = ledger.flush_lock.lock().await;
    ledger.account(&caller.organization_id).follow_job();
    let read = tokio::time::timeout(Duration::from_secs(1), ledger.spent(&caller));
    assert!(read.await.is_ok_and(|read| read.is_ok()));
}

#[tokio::test]
async fn a_limit_that_is_reached_refuses_from_memory_until_it_is_another() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = Arc::new(Metrics::new().unwrap());
    let (ledger, _) = start(folder.path(), 64 * SEGMENT_BYTES, &metrics).await;
    let caller = caller();
    let limited = |units| limited_call(&caller, units);
    for _ in 0..2 {
        let mut running = ledger.reserve(&limited(10)).await.unwrap();
        _ = running.settle(five_units());
    }
    let reached = ReservationError::Reached(LimitReached::Key(Usd::from_units(10)));
    assert_eq!(
        ledger.reserve(&limited(10)).await.err(),
        Some(reached.clone())
    );
    let asked = || ledger.last_lease_number.load(Ordering::Relaxed);
    let before = asked();
    for _ in 0..100 {
        assert_eq!(
            ledger.reserve(&limited(10)).await.err(),
            Some(reached.clone())
        );
    }
    assert_eq!(asked(), before);
    assert!(ledger.reserve(&limited(11)).await.is_ok());
}

/// A call under a limit of the key.
fn limited_call(caller: &Caller, units: i128) -> NewReservation<'_> {
    NewReservation {
        bounds: SpendingBounds {
            key: KeyLimits {
                lifetime: Some(Usd::from_units(units)),
                ..KeyLimits::default()
            },
            ..SpendingBounds::default()
        },
        ..byok_call(caller)
    }
}

#[tokio::test]
async fn the_first_lease_of_a_limit_counts_the_calls_that_were_not_stored() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = Arc::new(Metrics::new().unwrap());
    let (ledger, _) = start(folder.path(), 64 * SEGMENT_BYTES, &metrics).await;
    let flush_guard = ledger.flush_lock.lock().await;
    let caller = caller();
    let mut running = ledger.reserve(&byok_call(&caller)).await.unwrap();
    _ = running.settle(five_units());
    // The key has a limit from here on, and the call is on its way to the store.
    let call = limited_call(&caller, 5);
    let reserving = ledger.reserve(&call);
    tokio::pin!(reserving);
    let early = tokio::time::timeout(Duration::from_millis(300), &mut reserving).await;
    assert!(early.is_err(), "it waits for the post");
    drop(flush_guard);
    let reached = ReservationError::Reached(LimitReached::Key(Usd::from_units(5)));
    assert_eq!(reserving.await.err(), Some(reached));
    assert!(ledger.reserve(&limited_call(&caller, 6)).await.is_ok());
}

#[tokio::test]
async fn a_limit_that_a_dead_process_holds_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = Arc::new(Metrics::new().unwrap());
    let (ledger, store) = start(folder.path(), 64 * SEGMENT_BYTES, &metrics).await;
    let caller = caller();
    let limits = limited_call(&caller, 10).bounds.key;
    let request = LimitRequest {
        organization_id: caller.organization_id.to_string(),
        scope: LimitScope::Key(Arc::clone(&caller.key_id)),
        number: 1,
        offer: LimitOffer {
            wanted: Some((LimitTerms::Key(limits), Usd::from_units(10))),
            ..LimitOffer::default()
        },
    };
    store.register_process("dead").await.unwrap();
    let held = store.change_leases("dead", &[], &[request]).await.unwrap();
    assert_eq!(held.unwrap().limits[0].held, Usd::from_units(10));
    let reached = ReservationError::Reached(LimitReached::Key(Usd::from_units(10)));
    for _ in 0..3 {
        let refused = ledger.reserve(&limited_call(&caller, 10)).await.err();
        assert_eq!(refused, Some(reached.clone()));
    }
    store.unregister_process("dead").await.unwrap();
    let gone = std::time::Instant::now();
    while ledger.reserve(&limited_call(&caller, 10)).await.is_err() {
        assert!(gone.elapsed() < Duration::from_secs(2), "it stays refused");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A call on a key of the caller's own.
fn byok_call(caller: &Caller) -> NewReservation<'_> {
    NewReservation {
        caller,
        request_id: "",
        is_stream: false,
        funding: Funding::Byok,
        max_cost: Usd::ZERO,
        is_premium: false,
        bounds: SpendingBounds::default(),
        experiment: None,
        session: None,
        budgets: None,
        marks: None,
    }
}

/// The end of a call that has cost five units.
fn five_units() -> CallEnd {
    CallEnd {
        usage: usage(5),
        outcome: CallOutcome::Completed,
        is_byok: true,
        duration: Duration::ZERO,
        first_event: None,
    }
}

pub(super) fn caller() -> Caller {
    Caller {
        organization_id: "org_1".into(),
        organization: "".into(),
        project_id: "".into(),
        project: "".into(),
        key_id: "key_1".into(),
        key_label: "".into(),
        mode: Mode::Byok,
        plan: Plan::None,
        plan_since_ms: 0,
        member: None,
        terms: None,
        cache_ttl_s: None,
        experiments: None,
        expires_at_ms: None,
        is_debug: false,
        regions: [None, None],
        exports_content: false,
        keep_bodies_until_ms: None,
    }
}

#[tokio::test]
async fn a_store_that_has_lost_confirmed_posts_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = Arc::new(Metrics::new().unwrap());
    let (ledger, store) = start(folder.path(), 64 * SEGMENT_BYTES, &metrics).await;
    let caller = caller();
    let call = byok_call(&caller);
    for (posts, lost) in [(1, 0), (2, 0), (1, 2), (2, 2)] {
        if lost > 0 && posts == 1 {
            // As an older copy of the store, to which a failover has switched.
            store.forget_journal(&ledger.owner).await.unwrap();
        }
        let mut running = ledger.reserve(&call).await.unwrap();
        assert!(running.settle(five_units()).is_durable().await);
        while ledger.journal.waiting().posts() != Some(posts) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(metrics.ledger_lost_posts.get(), lost, "{posts}");
    }
}

/// The others wait for their turn, and get it as soon as a work ends, also one that nobody waits for any more.
#[tokio::test]
async fn requests_leave_a_connection_to_the_changes_of_accounts() {
    let folder = tempfile::tempdir().unwrap();
    let metrics = Arc::new(Metrics::new().unwrap());
    let (ledger, _) = start(folder.path(), SEGMENT_BYTES, &metrics).await;
    let (begun, mut begins) = tokio::sync::mpsc::unbounded_channel();
    let end = Arc::new(tokio::sync::Semaphore::new(0));
    for number in 0..5 {
        let (ledger, begun, end) = (Arc::clone(&ledger), begun.clone(), Arc::clone(&end));
        tokio::spawn(async move {
            let work = |_, _| async move {
                begun.send(number).unwrap();
                end.acquire().await.unwrap().forget();
                Ok(())
            };
            ledger.with_store(work).await.map_err(|fault| fault.kind)
        });
    }
    for _ in 0..super::REQUEST_TURNS {
        begins.recv().await.unwrap();
    }
    let fourth = tokio::time::timeout(Duration::from_millis(200), begins.recv()).await;
    assert!(fourth.is_err(), "{fourth:?}");
    end.add_permits(1);
    begins.recv().await.unwrap();
    end.add_permits(4);
}
