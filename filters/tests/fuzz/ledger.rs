//! Bytes that are read back after a crash: segments of the journal and packed calls.

use filters::ledger::journal::{
    FoundSegment, Record, SegmentId, Watermark, check_lane, decode_record, encode_frame, header,
    read_segment, seal_frame, watermark_frame,
};
use filters::ledger::packed::{pack, unpack};
use filters::ledger::{
    CallOutcome, CallOwner, Charge, CostParts, EntryId, ExperimentNames, Funding, LedgerEntry,
    SessionNames, UsageRecord,
};
use filters::money::{Unit, UnitCounts, Usd};

use crate::choices::Choices;
use crate::damage;
use crate::run::run;

pub fn entry(choices: &mut Choices<'_>) -> LedgerEntry {
    let usd = |choices: &mut Choices<'_>| Usd::from_units(i128::from(choices.number()));
    let text = |choices: &mut Choices<'_>| -> std::sync::Arc<str> { choices.text().into() };
    LedgerEntry {
        id: EntryId(std::array::from_fn(|_| choices.byte())),
        at_ms: 1_800_000_000_000 + i64::from(choices.byte()),
        owner: CallOwner {
            organization_id: text(choices),
            project_id: text(choices),
            key_id: "key_0190c3a2-0000-7000-8000-000000000003".into(),
            member_id: choices.once_in(2).then(|| text(choices)),
            request_id: text(choices),
        },
        funding: Funding::default(),
        usage: UsageRecord {
            model: text(choices),
            prompt_tokens: choices.number(),
            completion_tokens: choices.number(),
            cost: choices.once_in(2).then(|| CostParts {
                total: usd(choices),
                ..CostParts::default()
            }),
            attempts: u32::from(choices.byte()),
            units: UnitCounts::default().with(Unit::Page, choices.number()),
            is_estimated: choices.once_in(2),
            ..UsageRecord::default()
        },
        outcome: *choices.pick(&[
            CallOutcome::Completed,
            CallOutcome::Killed,
            CallOutcome::Broken,
            CallOutcome::Failed,
        ]),
        reserved: usd(choices),
        charged: usd(choices),
        experiment: choices.once_in(3).then(|| {
            std::sync::Arc::new(ExperimentNames {
                flag: choices.text().into(),
                rule: choices.text().into(),
                variation: choices.text().into(),
            })
        }),
        session: choices.once_in(3).then(|| {
            std::sync::Arc::new(SessionNames {
                session: choices.text().into(),
                agent: choices.text().into(),
                parent: choices.text().into(),
            })
        }),
        ..LedgerEntry::default()
    }
}

/// A segment with its records.
pub fn segment(choices: &mut Choices<'_>, id: &SegmentId) -> (Vec<u8>, Vec<Record>) {
    let mut bytes = header(id, Watermark::default()).to_vec();
    let mut records = Vec::new();
    for _ in 0..choices.below(6) {
        let entry = Box::new(entry(choices));
        let record = if choices.once_in(2) {
            Record::Delivered(entry)
        } else {
            Record::Ended(entry)
        };
        let forced = Watermark {
            segment: id.number,
            offset: u32::try_from(bytes.len()).unwrap(),
        };
        let forced = if choices.once_in(4) {
            forced
        } else {
            Watermark::default()
        };
        let mut frame = Vec::new();
        encode_frame(&record, &mut frame);
        seal_frame(&mut frame, id, forced);
        bytes.extend_from_slice(&frame);
        if choices.once_in(8) {
            bytes.extend_from_slice(&watermark_frame(id, forced));
        }
        records.push(record);
    }
    (bytes, records)
}

pub const ID: SegmentId = SegmentId {
    owner: [9; 16],
    lane: 3,
    number: 1,
};

/// Returns whether all of `some` stand in `all`, in this order.
fn is_part(some: &[Record], all: &[Record]) -> bool {
    let mut all = all.iter();
    some.iter().all(|one| all.any(|other| other == one))
}

#[test]
fn a_segment_that_is_cut_holds_what_came_before() {
    run("ledger: cut segments", |choices| {
        let (bytes, records) = segment(choices, &ID);
        let whole = read_segment(&bytes, &ID);
        assert_eq!(whole.records, records);
        assert_eq!(
            (whole.intact_end as usize, whole.mismatch),
            (bytes.len(), None)
        );
        let cut = choices.below(bytes.len() + 1);
        let read = read_segment(&bytes[..cut], &ID);
        assert!(records.starts_with(&read.records), "cut at {cut}");
        let other = SegmentId { number: 2, ..ID };
        assert!(read_segment(&bytes, &other).records.is_empty());
    });
}

#[test]
fn a_damaged_segment_holds_no_record_that_was_not_written() {
    run("ledger: damaged segments", |choices| {
        let (bytes, records) = segment(choices, &ID);
        // Bytes that are copied to another place are frames of this segment: replay takes them by the call's id.
        let mut damaged = bytes.clone();
        for _ in 0..choices.below(4) {
            let at = choices.below(damaged.len());
            match choices.below(3) {
                0 => damaged[at] ^= 1 << choices.below(8),
                1 => damaged.truncate(at),
                _ => {
                    let noise = choices.bytes(40);
                    damaged.splice(at..at, noise);
                }
            }
            if damaged.is_empty() {
                break;
            }
        }
        let read = read_segment(&damaged, &ID);
        assert!(is_part(&read.records, &records));
        assert!(read.intact_end as usize <= damaged.len());
        let _ = check_lane(&[FoundSegment { number: 1, read }]);
        let anything = damage::bytes(choices, bytes);
        let _ = read_segment(&anything, &ID);
        let _ = decode_record(&anything);
    });
}

#[test]
fn packed_calls_are_unpacked_as_they_were() {
    run("ledger: packed calls", |choices| {
        let entries: Vec<LedgerEntry> = (0..choices.below(5)).map(|_| entry(choices)).collect();
        let packed = pack(entries.iter().map(|entry| {
            (
                entry,
                Charge {
                    charged: entry.charged,
                    shortfall: entry.shortfall,
                },
            )
        }));
        assert_eq!(
            unpack(&packed.ids, &packed.calls, |_| true).as_ref(),
            Ok(&entries)
        );
        let calls = damage::bytes(choices, packed.calls);
        let ids = damage::bytes(choices, packed.ids);
        if let Ok(read) = unpack(&ids, &calls, |_| true) {
            assert!(read.len() <= ids.len() / 16);
        }
    });
}
