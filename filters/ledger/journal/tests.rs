#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]
use proptest::prelude::*;

use super::super::{
    CallMarks, CallOutcome, CostParts, EntryId, ExperimentNames, LedgerEntry, SessionNames,
    UsageRecord,
};
use super::*;
use crate::money::{UnitCounts, Usd};

/// Returns the entry of the call with this number.
pub(super) fn entry(n: u32, units: i128, outcome: CallOutcome) -> LedgerEntry {
    let mut id = [0; 16];
    id[..4].copy_from_slice(&n.to_le_bytes());
    LedgerEntry {
        id: EntryId(id),
        usage: UsageRecord {
            cost: Some(CostParts {
                total: Usd::from_units(units),
                ..CostParts::default()
            }),
            ..UsageRecord::default()
        },
        charged: Usd::from_units(units),
        outcome,
        ..LedgerEntry::default()
    }
}

pub(super) fn delivered(n: u32, units: i128) -> Record {
    Record::Delivered(Box::new(entry(n, units, CallOutcome::Killed)))
}

pub(super) fn ended(n: u32, units: i128) -> Record {
    Record::Ended(Box::new(entry(n, units, CallOutcome::Completed)))
}

/// A segment that is being written.
pub(super) struct Written {
    pub(super) id: SegmentId,
    pub(super) bytes: Vec<u8>,
    /// The offset of each frame.
    pub(super) frames: Vec<usize>,
}

impl Written {
    pub(super) fn begin(number: u32, before: Watermark) -> Self {
        let id = SegmentId {
            owner: [9; 16],
            lane: 3,
            number,
        };
        Self {
            id,
            bytes: header(&id, before).to_vec(),
            frames: Vec::new(),
        }
    }

    pub(super) fn append(&mut self, record: &Record, forced: Watermark) {
        let mut frame = Vec::new();
        encode_frame(record, &mut frame);
        seal_frame(&mut frame, &self.id, forced);
        self.frames.push(self.bytes.len());
        self.bytes.extend_from_slice(&frame);
    }

    pub(super) fn end(&self) -> Watermark {
        Watermark {
            segment: self.id.number,
            offset: u32::try_from(self.bytes.len()).unwrap(),
        }
    }

    pub(super) fn read(&self, bytes: &[u8]) -> FoundSegment {
        FoundSegment {
            number: self.id.number,
            read: read_segment(bytes, &self.id),
        }
    }
}

fn three() -> [Record; 3] {
    [delivered(1, 10), ended(1, 25), ended(2, 7)]
}

fn unforced(records: &[Record]) -> Written {
    let mut file = Written::begin(1, Watermark::default());
    for record in records {
        file.append(record, Watermark::default());
    }
    file
}

#[test]
fn written_records_are_read_back() {
    let mut file = unforced(&three());
    let end = file.end();
    file.bytes
        .extend_from_slice(&watermark_frame(&file.id, end));
    file.bytes.extend_from_slice(&[0; 64]);
    let read = read_segment(&file.bytes, &file.id);
    assert_eq!(read.records, three());
    assert_eq!((read.forced, read.mismatch), (end, None));
    assert_eq!(read.before, Some(Watermark::default()));
    assert_eq!(read.intact_end as usize, file.bytes.len() - 64);
}

#[test]
fn a_record_of_any_length_is_encoded_alike() {
    for length in [0, 800, 1000, 1024, 1100, 5000] {
        let mut entry = entry(1, 7, CallOutcome::Completed);
        entry.usage.model = "m".repeat(length).into();
        let record = Record::Ended(Box::new(entry));
        let mut frame = vec![9; 3];
        encode_frame(&record, &mut frame);
        let (_, bytes) = frame.split_at(FRAME_HEAD_BYTES);
        assert_eq!(
            bytes,
            postcard::to_stdvec(&RecordRef::from(&record)).unwrap()
        );
        assert_eq!(frame_length(&frame), Some(frame.len()));
        assert_eq!(decode_record(bytes).unwrap(), record);
    }
}

#[test]
fn the_call_of_an_experiment_stands_behind_its_names_and_others_are_written_as_ever() {
    let mut entry = LedgerEntry {
        at_ms: 1,
        is_stream: true,
        ..LedgerEntry::default()
    };
    // The kind, the id, the time, and so on: as versions without experiments wrote it.
    let mut plain = [0; 45];
    (plain[0], plain[17], plain[44]) = (1, 2, 1);
    let written = |entry: &LedgerEntry| postcard::to_stdvec(&RecordRef::Ended(entry)).unwrap();
    assert_eq!(written(&entry), plain);
    let record = Record::Ended(Box::new(entry.clone()));
    assert_eq!(decode_record(&plain).unwrap(), record);
    entry.experiment = Some(std::sync::Arc::new(ExperimentNames {
        flag: "f".into(),
        rule: "".into(),
        variation: "v".into(),
    }));
    let names = [3, 1, 1, b'f', 0, 1, b'v'];
    let expected = [&names[..], &[0; 7], &plain[1..]].concat();
    assert_eq!(written(&entry), expected);
    entry.usage.units = UnitCounts::from_array([1, 2, 3, 4, 5, 600]);
    entry.usage.cost = Some(CostParts {
        units: Usd::from_units(7),
        ..CostParts::default()
    });
    read_back(entry);
}

fn read_back(entry: LedgerEntry) {
    let entry = Box::new(entry);
    for record in [Record::Delivered(entry.clone()), Record::Ended(entry)] {
        let bytes = postcard::to_stdvec(&RecordRef::from(&record)).unwrap();
        assert_eq!(decode_record(&bytes).unwrap(), record);
    }
}

#[test]
fn the_call_of_a_session_stands_behind_its_names() {
    let mut call = entry(1, 7, CallOutcome::Completed);
    let plain = postcard::to_stdvec(&RecordRef::Ended(&call)).unwrap();
    call.session = Some(std::sync::Arc::new(SessionNames {
        session: "s".into(),
        agent: "a".into(),
        parent: "".into(),
    }));
    let written = postcard::to_stdvec(&RecordRef::Ended(&call)).unwrap();
    let names = [5, 1, b's', 1, b'a', 0, 0];
    assert_eq!(written, [&names[..], &plain[1..]].concat());
    read_back(call.clone());
    call.experiment = Some(std::sync::Arc::default());
    call.usage.units = UnitCounts::from_array([1, 2, 3, 4, 5, 600]);
    read_back(call);
}

#[test]
fn the_call_of_a_budget_stands_behind_its_marks() {
    let mut call = entry(1, 7, CallOutcome::Completed);
    let plain = postcard::to_stdvec(&RecordRef::Ended(&call)).unwrap();
    call.marks = Some(std::sync::Arc::new(CallMarks {
        tags: ["t".into()].into(),
        budgets: ["b".into()].into(),
    }));
    let written = postcard::to_stdvec(&RecordRef::Ended(&call)).unwrap();
    let marks = [7, 1, 1, b't', 1, 1, b'b', 0, 0];
    assert_eq!(written, [&marks[..], &plain[1..]].concat());
    read_back(call.clone());
    call.session = Some(std::sync::Arc::default());
    call.experiment = Some(std::sync::Arc::default());
    read_back(call);
}

#[test]
fn the_bytes_of_another_segment_hold_no_record() {
    let file = unforced(&three());
    for other in [
        SegmentId {
            number: 2,
            ..file.id
        },
        SegmentId { lane: 4, ..file.id },
        SegmentId {
            owner: [8; 16],
            ..file.id
        },
    ] {
        assert!(read_segment(&file.bytes, &other).records.is_empty());
    }
}

#[test]
fn a_file_of_zeros_is_no_mismatch() {
    for file in [vec![], vec![0; 7], vec![0; 4096]] {
        let read = read_segment(&file, &SegmentId::default());
        assert_eq!((read.mismatch, read.intact_end), (None, 0));
    }
}

#[test]
fn a_later_segment_tells_where_an_earlier_one_ended() {
    let mut first = Written::begin(1, Watermark::default());
    first.append(&ended(1, 5), Watermark::default());
    first.append(&ended(2, 5), Watermark::default());
    let first_end = first.end();
    let mut second = Written::begin(2, first_end);
    second.append(&ended(3, 5), Watermark::default());
    // Nothing was forced: the first segment may lack its second record.
    let cut = &first.bytes[..first.frames[1]];
    let lane = [first.read(cut), second.read(&second.bytes)];
    assert_eq!(check_lane(&lane), Ok(vec![]));
    // The second segment was forced, and so the first one had been.
    let forced = second.end();
    second.append(&ended(4, 5), forced);
    let lane = [first.read(cut), second.read(&second.bytes)];
    let damage = check_lane(&lane).unwrap_err();
    assert_eq!(damage.segment, 1);
    assert_eq!(damage.offset as usize, first.frames[1]);
    // The disk refused the end of the first segment, so the lane had gone on after its first record.
    let confirmed = Watermark {
        segment: 1,
        offset: u32::try_from(first.frames[1]).unwrap(),
    };
    let mut second = Written::begin(2, confirmed);
    second.append(&ended(2, 5), Watermark::default());
    let forced = second.end();
    second.append(&ended(4, 5), forced);
    let lane = [first.read(cut), second.read(&second.bytes)];
    assert_eq!(check_lane(&lane), Ok(vec![]));
}

fn replayed(records: impl IntoIterator<Item = Record>) -> Vec<LedgerEntry> {
    let mut replay = Replay::default();
    records.into_iter().for_each(|record| replay.apply(record));
    replay.into_entries()
}

#[test]
fn a_running_call_is_charged_for_the_delivered_part() {
    let entries = replayed([delivered(1, 10), delivered(1, 30)]);
    assert_eq!(entries, [entry(1, 30, CallOutcome::Killed)]);
}

#[test]
fn a_call_ends_once() {
    let entries = replayed([
        delivered(1, 10),
        ended(1, 25),
        ended(1, 99),
        delivered(1, 30),
    ]);
    assert_eq!(entries, [entry(1, 25, CallOutcome::Completed)]);
}

fn any_record() -> impl Strategy<Value = Record> {
    (0..6_u32, any::<bool>(), 0..2000_i128).prop_map(|(n, has_ended, units)| {
        if has_ended {
            ended(n, units)
        } else {
            delivered(n, units)
        }
    })
}

proptest! {
    #[test]
    fn replaying_twice_is_replaying_once(records in prop::collection::vec(any_record(), 0..40)) {
        let once = replayed(records.clone());
        let twice = replayed(records.iter().chain(&records).cloned());
        prop_assert_eq!(once, twice);
    }
}
