#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use filters::accounts::{Caller, Mode, Plan};
use filters::ledger::journal::{Delivered, HEADER_BYTES, Record, RecordRef, Reserve};
use filters::ledger::{
    CallOutcome, CallOwner, CostParts, EntryId, Funding, LedgerEntry, UsageRecord,
};
use filters::money::Usd;
use filters::money::allowance::SpendingBounds;

use super::account::{Hold, OrganizationAccount, Spent};
use super::flusher::retention_cutoff_ms;
use super::journal::{Journal, MAX_SEGMENT_AGE};
use super::open_reservations::OpenReservations;
use super::recovery::recover_journals;
use super::segments::{JOURNAL_FOLDER, SEGMENT_BYTES, SegmentFiles};
use super::{CallEnd, Ledger, LedgerError, NewReservation, ReservationError};
use crate::store::Store;
use crate::telemetry::metrics::Metrics;
use crate::{config, store};

fn id(n: u32) -> EntryId {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&n.to_le_bytes());
    EntryId(id)
}

fn usage(units: i128) -> UsageRecord {
    UsageRecord {
        cost: Some(CostParts {
            total: Usd::from_units(units),
            ..CostParts::default()
        }),
        ..UsageRecord::default()
    }
}

fn entry(n: u32) -> Box<LedgerEntry> {
    Box::new(LedgerEntry {
        id: id(n),
        owner: CallOwner {
            // A realistic length.
            organization_id: "o".repeat(200).into(),
            ..CallOwner::default()
        },
        usage: usage(5),
        ..LedgerEntry::default()
    })
}

fn reserve(n: u32) -> Reserve {
    Reserve {
        id: id(n),
        amount: Usd::from_units(100),
        ..Reserve::default()
    }
}

fn start(folder: &Path, open: &Arc<OpenReservations>) -> Journal {
    Journal::start(folder, [7; 16], Arc::clone(open), MAX_SEGMENT_AGE).unwrap()
}

async fn settle(journal: &Journal, n: u32) {
    assert!(journal.settle(&entry(n), true).is_durable().await);
}

/// Returns the entries that a start recovers.
fn recovered_entries(folder: &Path) -> Vec<LedgerEntry> {
    let recovered = recover_journals(folder).unwrap();
    recovered
        .into_iter()
        .flat_map(|journal| journal.entries)
        .collect()
}

fn segments(folder: &Path) -> Vec<PathBuf> {
    let process = folder.join(JOURNAL_FOLDER).join("07".repeat(16));
    let mut paths: Vec<PathBuf> = std::fs::read_dir(process)
        .map(|entries| entries.map(|entry| entry.unwrap().path()).collect())
        .unwrap_or_default();
    paths.retain(|path| path.extension().is_some_and(|suffix| suffix == "wal"));
    paths.sort();
    paths
}

#[tokio::test]
async fn a_confirmed_call_is_recovered_after_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), &Arc::default());
    settle(&journal, 1).await;
    assert!(
        recovered_entries(folder.path()).is_empty(),
        "its process lives"
    );
    drop(journal);
    assert_eq!(recovered_entries(folder.path()), vec![*entry(1)]);
}

#[tokio::test]
async fn a_record_without_a_waiting_request_is_written_soon() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), &Arc::default());
    assert!(journal.settle(&entry(1), false).is_durable().await);
    journal.append(&Record::Reserve(reserve(2)));
    let segment = &segments(folder.path())[0];
    let started = Instant::now();
    while std::fs::read(segment).unwrap()[HEADER_BYTES..HEADER_BYTES + 8] == [0; 8] {
        let soon = Duration::from_secs(2);
        assert!(started.elapsed() < soon, "a kill would lose it");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_journal_that_is_stored_completely_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), &Arc::default());
    settle(&journal, 1).await;
    let batch = journal.take_batch(usize::MAX).unwrap();
    assert_eq!(batch.entries, vec![*entry(1)]);
    journal.mark_stored(batch.sequence);
    drop(journal);
    assert!(segments(folder.path()).is_empty());
}

#[tokio::test]
async fn an_old_segment_is_deleted_once_it_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let age = Duration::ZERO;
    let journal = Journal::start(folder.path(), [7; 16], Arc::default(), age).unwrap();
    settle(&journal, 1).await;
    let first = segments(folder.path()).remove(0);
    let started_ms = journal.started_ms();
    journal.mark_stored(journal.take_batch(1).unwrap().sequence);
    let until = Instant::now() + Duration::from_secs(10);
    while first.exists() || journal.started_ms() <= started_ms {
        assert!(
            Instant::now() < until,
            "a kill would charge its calls again"
        );
        journal.append(RecordRef::Release(&id(2)));
        tokio::time::sleep(Duration::from_millis(5)).await;
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
async fn a_call_that_runs_is_carried_from_segment_to_segment() {
    let folder = tempfile::tempdir().unwrap();
    let open = Arc::new(OpenReservations::default());
    let journal = start(folder.path(), &open);
    let open_call = open.insert(reserve(0));
    journal.append(&Record::Reserve(open_call.reserve.clone()));
    open_call.record_delivered(usage(30));
    let delivered = Delivered {
        id: id(0),
        usage: usage(30),
    };
    journal.append(&Record::Delivered(delivered));
    // Other calls fill three segments, and each batch is stored at once.
    let count = u32::try_from(3 * SEGMENT_BYTES / 250).unwrap();
    let until = Instant::now() + Duration::from_secs(60);
    for n in 1..=count {
        let receipt = journal.settle(&entry(n), n % 100 == 0);
        assert!(receipt.is_durable().await);
        if n % 100 == 0 {
            let batch = journal.take_batch(usize::MAX).unwrap();
            journal.mark_stored(batch.sequence);
        }
    }
    while segments(folder.path()).len() > 3 {
        assert!(Instant::now() < until, "full segments are deleted");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(journal);
    let found = recovered_entries(folder.path());
    let killed: Vec<&LedgerEntry> = found.iter().filter(|entry| entry.id == id(0)).collect();
    assert_eq!(killed.len(), 1);
    assert_eq!(killed[0].outcome, CallOutcome::Killed);
    assert_eq!(killed[0].charged, Usd::from_units(30));
}

#[tokio::test]
async fn a_journal_cut_in_a_record_loses_that_record_alone() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), &Arc::default());
    settle(&journal, 1).await;
    settle(&journal, 2).await;
    drop(journal);
    let path = &segments(folder.path())[0];
    let bytes = std::fs::read(path).unwrap();
    let end = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    std::fs::write(path, &bytes[..end - 20]).unwrap();
    assert_eq!(recovered_entries(folder.path()), vec![*entry(1)]);
}

#[tokio::test]
async fn a_flipped_bit_is_named_with_file_and_offset_and_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), &Arc::default());
    settle(&journal, 1).await;
    settle(&journal, 2).await;
    drop(journal);
    let path = &segments(folder.path())[0];
    let mut bytes = std::fs::read(path).unwrap();
    bytes[60] ^= 0x10;
    std::fs::write(path, &bytes).unwrap();
    let Err(LedgerError::Damaged {
        path: named,
        offset,
        ..
    }) = recover_journals(folder.path())
    else {
        panic!("damage is found");
    };
    assert_eq!((&named, offset), (path, 28));
    let message = recover_journals(folder.path()).err().unwrap().to_string();
    assert!(
        message.contains("offset 28") && message.contains("00000001.wal"),
        "{message}"
    );
    assert_eq!(std::fs::read(path).unwrap(), bytes);
}

#[test]
fn spending_is_exact_while_loads_race_with_ends_of_calls() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), &Arc::default());
    let account = OrganizationAccount::new(&"o".repeat(200));
    let key_id: Arc<str> = "key".into();
    let hold = Hold {
        key_id: &key_id,
        member_id: None,
        funding: Funding::Byok,
        amount: Usd::ZERO,
        is_premium: false,
    };
    let cost = Spent {
        cost: Usd::from_units(5),
        is_byok: true,
        is_premium: false,
        at_ms: 0,
    };
    account.load(&[], |_| {});
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let loader = scope.spawn(|| {
            let mut loads = 0_u32;
            while !is_done.load(Ordering::Relaxed) || loads == 0 {
                account.load(&[], |visit| journal.visit_waiting(visit));
                loads += 1;
            }
            loads
        });
        let mut settled = Vec::new();
        while settled.len() < 2_000 {
            let mut entry = entry(u32::try_from(settled.len()).unwrap());
            entry.owner.key_id = "key".into();
            _ = account.settle(&hold, &cost, |_| journal.settle(&entry, false));
            let spent = account.spent(&key_id, None, 0, 0).unwrap();
            settled.push(spent.key.total);
        }
        is_done.store(true, Ordering::Relaxed);
        assert!(loader.join().unwrap() > 0);
        let exact: Vec<Usd> = (1..=2_000).map(|n| Usd::from_units(5 * n)).collect();
        assert_eq!(settled, exact);
    });
}

#[tokio::test]
async fn calls_on_byok_keys_do_not_fill_a_full_journal() {
    let folder = tempfile::tempdir().unwrap();
    let configured = config::StoreConfig {
        url: format!("sqlite:{}", folder.path().join("store.db").display()),
        state_dir: folder.path().to_owned(),
        secret: None,
        journal_bytes: SEGMENT_BYTES - 1,
        usage_retention: None,
    };
    let settings = store::StoreSettings::from_config(&configured).unwrap();
    let store = Store::open(&settings).await.unwrap().store;
    let metrics = Arc::new(Metrics::new().unwrap());
    let ledger = Ledger::start(&configured, store, Arc::clone(&metrics));
    let ledger = ledger.await.unwrap();
    let caller = caller();
    let call = |funding| NewReservation {
        caller: &caller,
        request_id: "",
        is_stream: false,
        funding,
        max_cost: Usd::ZERO,
        is_premium: false,
        bounds: SpendingBounds::default(),
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
    assert_eq!(ledger.journal.waiting_entries(), 0);
    assert_eq!(metrics.ledger_dropped.get(), 1);
    let refused = ledger.reserve(&call(Funding::Credit)).await.err();
    assert_eq!(refused, Some(ReservationError::Unavailable));
}

fn caller() -> Caller {
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
        expires_at_ms: None,
    }
}

#[test]
fn a_full_segment_waits_for_the_next_one() {
    let folder = tempfile::tempdir().unwrap();
    let mut files = SegmentFiles::create(folder.path(), [7; 16]).unwrap();
    // Each rotation only requests the segment after the next.
    for sequence in 1..=8 {
        files.rotate(sequence, true).unwrap();
    }
    assert_eq!(files.bytes(), 9 * SEGMENT_BYTES);
}
