#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]
use proptest::prelude::*;

use super::super::{CallOutcome, CallOwner, CostParts, EntryId, LedgerEntry, UsageRecord};
use super::*;
use crate::money::Usd;

fn id(n: u8) -> EntryId {
    EntryId([n; 16])
}

fn reserve(n: u8) -> Record {
    Record::Reserve(Reserve {
        id: id(n),
        at_ms: 7,
        owner: CallOwner {
            organization_id: "org_1".into(),
            ..CallOwner::default()
        },
        amount: Usd::from_units(1000),
        ..Reserve::default()
    })
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

fn delivered(n: u8, units: i128) -> Record {
    Record::Delivered(Delivered {
        id: id(n),
        usage: usage(units),
    })
}

fn settle(n: u8, units: i128) -> Record {
    Record::Settle(Box::new(LedgerEntry {
        id: id(n),
        usage: usage(units),
        charged: Usd::from_units(units),
        ..LedgerEntry::default()
    }))
}

fn file(records: &[Record]) -> Vec<u8> {
    let mut out = header(&[9; 16]).to_vec();
    for record in records {
        write_record(record, &mut out);
    }
    out
}

fn read(file: &[u8]) -> Result<(Vec<Record>, bool), Damage> {
    let mut reader = FrameReader::new(file);
    let mut records = Vec::new();
    loop {
        match reader.read()? {
            FrameRead::Record(record) => records.push(*record),
            FrameRead::End { is_cut, .. } => return Ok((records, is_cut)),
        }
    }
}

fn three() -> [Record; 3] {
    [reserve(1), delivered(1, 10), settle(1, 25)]
}

#[test]
fn written_records_are_read_back() {
    let file = file(&three());
    assert_eq!(read_owner(&file), Ok(Some([9; 16])));
    assert_eq!(read(&file), Ok((three().to_vec(), false)));
}

#[test]
fn a_record_cut_at_any_byte_was_never_written() {
    let whole = file(&three());
    let whole_records = file(&three()[..2]).len();
    for end in whole_records + 1..whole.len() {
        assert_eq!(
            read(&whole[..end]),
            Ok((three()[..2].to_vec(), true)),
            "{end}"
        );
    }
}

#[test]
fn a_record_whose_end_is_still_zero_was_never_written() {
    let whole = file(&three());
    let whole_records = file(&three()[..2]).len();
    for end in whole_records + 1..whole.len() {
        let mut torn = whole.clone();
        torn[end..].fill(0);
        torn.extend_from_slice(&[0; 4096]);
        let (records, _) = read(&torn).unwrap_or_else(|damage| panic!("{end}: {damage:?}"));
        assert_eq!(records, three()[..2].to_vec(), "{end}");
    }
}

#[test]
fn every_flipped_bit_is_found_with_its_place() {
    let mut whole = file(&three());
    let starts: Vec<usize> = (0..3).map(|n| file(&three()[..n]).len()).collect();
    whole.extend_from_slice(&[0; 64]);
    for at in HEADER_BYTES..file(&three()).len() {
        for bit in 0..8 {
            let mut flipped = whole.clone();
            flipped[at] ^= 1 << bit;
            let start = starts.iter().rfind(|start| **start <= at).unwrap();
            let damage = read(&flipped).unwrap_err();
            assert_eq!(damage.offset, *start, "byte {at} bit {bit}");
        }
    }
}

#[test]
fn a_damaged_head_is_found() {
    let mut file = file(&three());
    for at in 0..HEADER_BYTES {
        file[at] ^= 1;
        assert!(read_owner(&file).is_err(), "{at}");
        file[at] ^= 1;
    }
}

#[test]
fn a_file_without_a_header_has_no_owner() {
    assert_eq!(read_owner(&[]), Ok(None));
    assert_eq!(read_owner(&[0; 4096]), Ok(None));
    assert_eq!(read_owner(&header(&[9; 16])[..20]), Ok(None));
}

fn replayed(records: impl IntoIterator<Item = Record>) -> Vec<LedgerEntry> {
    let mut replay = Replay::default();
    records.into_iter().for_each(|record| replay.apply(record));
    replay.into_entries()
}

#[test]
fn an_open_call_is_charged_for_the_delivered_part() {
    let entries = replayed([reserve(1), delivered(1, 10), delivered(1, 30)]);
    assert_eq!(entries.len(), 1);
    assert_eq!(entries[0].outcome, CallOutcome::Killed);
    assert_eq!(entries[0].charged, Usd::from_units(30));
}

#[test]
fn an_open_call_without_a_delivered_part_costs_nothing() {
    assert_eq!(replayed([reserve(1)]), []);
    assert_eq!(
        replayed([reserve(1), delivered(1, 5), Record::Release(id(1))]),
        []
    );
}

#[test]
fn an_open_call_is_never_charged_beyond_its_reservation() {
    let entries = replayed([reserve(1), delivered(1, 1500)]);
    assert_eq!(entries[0].charged, Usd::from_units(1000));
    assert_eq!(entries[0].shortfall, Usd::from_units(500));
}

fn any_record() -> impl Strategy<Value = Record> {
    (0..6_u8, 0..4, 0..2000_i128).prop_map(|(n, kind, units)| match kind {
        0 => reserve(n),
        1 => delivered(n, units),
        2 => settle(n, units),
        _ => Record::Release(id(n)),
    })
}

proptest! {
    #[test]
    fn replaying_twice_is_replaying_once(records in prop::collection::vec(any_record(), 0..40)) {
        let once = replayed(records.clone());
        let twice = replayed(records.iter().chain(&records).cloned());
        // Calls that are still open remain open, and repeated records add nothing to calls that have ended.
        let ended = |entries: &[LedgerEntry]| -> Vec<LedgerEntry> {
            entries.iter().filter(|entry| entry.outcome != CallOutcome::Killed).cloned().collect()
        };
        prop_assert_eq!(ended(&once), ended(&twice));
        let ids: std::collections::BTreeSet<EntryId> = twice.iter().map(|entry| entry.id).collect();
        prop_assert_eq!(ids.len(), twice.len());
    }
}
