#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]
use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use filters::ledger::journal::HEADER_BYTES;
use filters::ledger::{CallOutcome, CallOwner, CostParts, EntryId, LedgerEntry, UsageRecord};
use filters::money::Usd;

use super::super::LedgerError;
use super::super::receipt::Receipt;
use super::super::recovery::recover_journals;
use super::{JOURNAL_FOLDER, Journal, MAX_SEGMENT_AGE, SEGMENT_BYTES};
use crate::config::Durability;

fn entry(n: u32) -> LedgerEntry {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&n.to_le_bytes());
    LedgerEntry {
        id: EntryId(id),
        owner: CallOwner {
            // A realistic length.
            organization_id: "o".repeat(200).into(),
            ..CallOwner::default()
        },
        usage: UsageRecord {
            cost: Some(CostParts {
                total: Usd::from_units(5),
                ..CostParts::default()
            }),
            ..UsageRecord::default()
        },
        ..LedgerEntry::default()
    }
}

/// Returns a part of a call, with this charge.
fn part(n: u32, units: i128) -> LedgerEntry {
    LedgerEntry {
        outcome: CallOutcome::Killed,
        charged: Usd::from_units(units),
        ..entry(n)
    }
}

fn start(folder: &Path, durability: Durability) -> Journal {
    Journal::start(folder, [7; 16], durability, MAX_SEGMENT_AGE).unwrap()
}

fn end(journal: &Journal, n: u32) -> Receipt {
    journal.end(0, &entry(n)).write(true)
}

fn store_all(journal: &Journal) -> Vec<LedgerEntry> {
    let Some(batch) = journal.next_batch(usize::MAX) else {
        return Vec::new();
    };
    journal.mark_stored(&batch, None);
    batch.entries
}

/// Returns the entries that a start recovers after a kill: this process lives, so its files are copied.
fn recovered_after_kill(folder: &Path) -> Result<Vec<LedgerEntry>, LedgerError> {
    let copy = tempfile::tempdir().unwrap();
    let name = Path::new(JOURNAL_FOLDER).join("07".repeat(16));
    std::fs::create_dir_all(copy.path().join(&name)).unwrap();
    for path in segments(folder) {
        let to = copy.path().join(&name).join(path.file_name().unwrap());
        std::fs::copy(&path, to).unwrap();
    }
    let recovered = recover_journals(copy.path())?;
    Ok(recovered
        .into_iter()
        .flat_map(|journal| journal.entries)
        .collect())
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

fn first_lane(folder: &Path) -> Vec<PathBuf> {
    let is_first = |path: &PathBuf| super::parse_name(path).is_some_and(|(lane, _)| lane == 0);
    segments(folder).into_iter().filter(is_first).collect()
}

fn until(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while !is_true() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_charge_is_in_the_kernel_before_its_receipt() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), Durability::Process);
    assert!(end(&journal, 1).is_ready(), "nothing to wait for");
    assert_eq!(recovered_after_kill(folder.path()).unwrap(), [entry(1)]);
    assert!(
        recover_journals(folder.path()).unwrap().is_empty(),
        "its process lives"
    );
    drop(journal);
    let recovered = recover_journals(folder.path()).unwrap();
    assert_eq!(recovered[0].entries, [entry(1)]);
}

#[tokio::test]
async fn a_charge_that_survives_a_power_cut_is_confirmed_behind_its_force() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), Durability::Power);
    let receipt = end(&journal, 1);
    assert!(!receipt.is_ready());
    assert!(receipt.is_durable().await);
    assert!(journal.shared.lanes[0].lock().is_forced());
}

#[test]
fn all_records_are_forced_soon() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), Durability::Process);
    until("the background thread sleeps", || {
        journal.shared.is_asleep.load(Ordering::Relaxed)
    });
    _ = end(&journal, 1);
    let started = Instant::now();
    until("it is forced", || {
        journal.shared.lanes[0].lock().is_forced()
    });
    assert!(
        started.elapsed() < Duration::from_secs(1),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn a_journal_that_is_stored_completely_is_deleted() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), Durability::Process);
    _ = end(&journal, 1);
    assert_eq!(store_all(&journal), [entry(1)]);
    drop(journal);
    assert!(segments(folder.path()).is_empty());
}

#[test]
fn an_old_segment_is_deleted_once_it_is_stored() {
    let folder = tempfile::tempdir().unwrap();
    let journal = Journal::start(folder.path(), [7; 16], Durability::Process, Duration::ZERO);
    let journal = journal.unwrap();
    _ = end(&journal, 1);
    let first = first_lane(folder.path()).remove(0);
    let started_ms = journal.started_ms();
    store_all(&journal);
    // A kill would charge its calls again once their rows are deleted.
    until("it is deleted", || {
        !first.exists() && journal.started_ms() > started_ms
    });
}

#[test]
fn an_end_that_nobody_writes_is_written_when_it_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), Durability::Process);
    drop(journal.end(0, &entry(1)));
    assert_eq!(recovered_after_kill(folder.path()).unwrap(), [entry(1)]);
}

#[test]
fn a_wrong_count_of_running_calls_keeps_no_segment_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), Durability::Process);
    journal.deliver(0, &part(0, 10));
    journal.shared.lanes[0].lock().miscount_running();
    for n in 1..=u32::try_from(12 * SEGMENT_BYTES / 250).unwrap() {
        until("there is space", || {
            !journal.shared.lanes[0].lock().is_waiting()
        });
        _ = end(&journal, n);
        if n % 100 == 0 {
            store_all(&journal);
        }
    }
    store_all(&journal);
    until("the first segment is deleted", || {
        let first = first_lane(folder.path()).remove(0);
        super::parse_name(&first).unwrap().1 > 1
    });
}

#[test]
fn a_call_that_runs_is_carried_from_segment_to_segment() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), Durability::Process);
    journal.deliver(0, &part(0, 10));
    journal.deliver(0, &part(0, 30));
    // Other calls fill twelve segments, and each batch is stored at once.
    let count = u32::try_from(12 * SEGMENT_BYTES / 250).unwrap();
    for n in 1..=count {
        let end = journal.end(0, &entry(n));
        // A full disk would refuse calls here; this test only has to wait for the next segment.
        until("there is space", || {
            !journal.shared.lanes[0].lock().is_waiting()
        });
        _ = end.write(true);
        if n % 100 == 0 {
            store_all(&journal);
        }
    }
    store_all(&journal);
    until("full segments are deleted", || {
        first_lane(folder.path()).len() <= 10
    });
    until("the first one too", || {
        let first = first_lane(folder.path()).remove(0);
        super::parse_name(&first).unwrap().1 > 1
    });
    let found = recovered_after_kill(folder.path()).unwrap();
    let running: Vec<&LedgerEntry> = found.iter().filter(|it| it.id == entry(0).id).collect();
    assert_eq!(running, [&part(0, 30)]);
    // Its end sets the segments free.
    _ = end(&journal, 0);
    store_all(&journal);
    drop(journal);
    assert!(segments(folder.path()).is_empty());
}

#[test]
fn running_calls_that_fill_many_segments_do_not_rotate_in_a_loop() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), Durability::Process);
    let count = u32::try_from(6 * SEGMENT_BYTES / 250).unwrap();
    for n in 0..count {
        until("there is space", || {
            !journal.shared.lanes[0].lock().is_waiting()
        });
        journal.deliver(0, &part(n, 5));
    }
    let last = || {
        super::parse_name(first_lane(folder.path()).last().unwrap())
            .unwrap()
            .1
    };
    std::thread::sleep(Duration::from_millis(300));
    let before = last();
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(last(), before, "nothing happens, and nothing is written");
}

#[test]
fn records_that_the_disk_refused_are_written_elsewhere_before_they_are_confirmed() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), Durability::Power);
    // This device takes all bytes, keeps none and cannot be forced.
    let device = OpenOptions::new().write(true).open("/dev/null").unwrap();
    until("a spare exists", || {
        journal.shared.lanes[0].lock().has_spare()
    });
    journal.shared.lanes[0].lock().replace_file(device);
    let receipt = end(&journal, 1);
    journal.deliver(0, &part(2, 9));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .unwrap();
    assert!(runtime.block_on(receipt.is_durable()));
    let lane = first_lane(folder.path());
    assert!(lane.len() >= 2, "{lane:?}");
    let mut found = recovered_after_kill(folder.path()).unwrap();
    found.sort_by_key(|entry| entry.id);
    assert_eq!(found, [entry(1), part(2, 9)]);
}

#[test]
fn a_record_cut_behind_the_watermark_is_a_torn_tail() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), Durability::Process);
    _ = end(&journal, 1);
    until("it is forced", || {
        journal.shared.lanes[0].lock().is_forced()
    });
    _ = end(&journal, 2);
    until("both are forced", || {
        journal.shared.lanes[0].lock().is_forced()
    });
    drop(journal);
    let path = &first_lane(folder.path())[0];
    let whole = std::fs::read(path).unwrap();
    let last = whole.iter().rposition(|byte| *byte != 0).unwrap();
    // The last frame is the watermark behind the second record: without it nothing says that the record was forced.
    std::fs::write(path, &whole[..last - 60]).unwrap();
    let recovered = recover_journals(folder.path()).unwrap();
    assert_eq!(recovered[0].entries, [entry(1)]);
}

#[test]
fn a_flipped_bit_is_named_with_file_and_offset_and_nothing_is_changed() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), Durability::Process);
    _ = end(&journal, 1);
    until("it is forced", || {
        journal.shared.lanes[0].lock().is_forced()
    });
    drop(journal);
    let path = &first_lane(folder.path())[0];
    let mut bytes = std::fs::read(path).unwrap();
    bytes[HEADER_BYTES + 30] ^= 0x10;
    std::fs::write(path, &bytes).unwrap();
    let message = recover_journals(folder.path()).err().unwrap().to_string();
    let offset = format!("offset {HEADER_BYTES}");
    assert!(
        message.contains(&offset) && message.contains("00-00000001.wal"),
        "{message}"
    );
    assert_eq!(std::fs::read(path).unwrap(), bytes);
}

#[test]
fn a_file_of_another_version_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let journal = start(folder.path(), Durability::Process);
    _ = end(&journal, 1);
    drop(journal);
    let path = &first_lane(folder.path())[0];
    crate::durable::rename(path, &path.with_file_name("00000001.wal")).unwrap();
    let message = recover_journals(folder.path()).err().unwrap().to_string();
    assert!(message.contains("another version"), "{message}");
}
