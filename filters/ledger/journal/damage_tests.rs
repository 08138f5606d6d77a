//! A segment of 64 KiB, damaged in every way that a disk knows.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::panic,
    reason = "tests"
)]
use std::collections::BTreeMap;

use super::super::EntryId;
use super::tests::{Written, delivered, ended};
use super::*;
use crate::money::Usd;

const SEGMENT_BYTES: usize = 64 << 10;
const PAGE_BYTES: usize = 4096;

/// A full segment. The disk had confirmed parts of it, as later records say.
struct Fixture {
    written: Written,
    records: Vec<Record>,
    file: Vec<u8>,
    /// The offset up to which the disk had confirmed it, as its last records say.
    forced: usize,
}

impl Fixture {
    fn new() -> Self {
        let mut written = Written::begin(1, Watermark::default());
        let mut forced = Watermark::default();
        let mut records = Vec::new();
        while written.bytes.len() < SEGMENT_BYTES - 4096 {
            let n = u32::try_from(records.len()).unwrap();
            let mut record = match n % 4 {
                0 => delivered(n, 5),
                _ => ended(n / 4 * 4 + n % 4 - 1, 10 + i128::from(n)),
            };
            let (Record::Delivered(entry) | Record::Ended(entry)) = &mut record;
            entry.owner.request_id = "x".repeat(2500 + n as usize).into();
            written.append(&record, forced);
            records.push(record);
            if n % 4 == 3 {
                // The force ends some records later.
                forced = Watermark {
                    segment: 1,
                    offset: u32::try_from(written.frames[n as usize - 2]).unwrap(),
                };
            }
        }
        let mut file = written.bytes.clone();
        file.resize(SEGMENT_BYTES, 0);
        let forced = written.read(&file).read.forced.offset as usize;
        Self {
            written,
            records,
            file,
            forced,
        }
    }

    /// Checks what a start makes of these bytes. `bad_from` is the first byte that is not as it was.
    fn check(&self, bytes: &[u8], bad_from: usize) {
        let lane = [self.written.read(bytes)];
        let read = &lane[0].read;
        // No record is invented, and none that stood before the first bad byte is lost.
        let mut known = self.records.iter();
        let all_known = read
            .records
            .iter()
            .all(|record| known.any(|it| it == record));
        assert!(all_known, "{bad_from}: an invented record");
        let frames = &self.written.frames;
        let kept = frames.partition_point(|start| *start <= bad_from);
        assert!(
            read.records
                .starts_with(&self.records[..kept.saturating_sub(1)]),
            "{bad_from}"
        );
        match check_lane(&lane) {
            // The frame that tells the last watermark may itself be gone.
            Err(damage) => {
                assert!((damage.offset as usize) < self.forced, "{bad_from}");
                let start = frames.iter().rfind(|start| **start <= bad_from);
                let start = start.copied().filter(|_| bad_from >= HEADER_BYTES);
                assert_eq!(damage.offset as usize, start.unwrap_or(0), "{bad_from}");
            }
            Ok(_) => {
                assert!(
                    bad_from >= read.forced.offset as usize,
                    "{bad_from}: damage is missed"
                );
                self.check_charges(&read.records);
            }
        }
    }

    /// Checks that each call is charged once, with an amount that was recorded for it.
    fn check_charges(&self, records: &[Record]) {
        let mut replay = Replay::default();
        records
            .iter()
            .cloned()
            .for_each(|record| replay.apply(record));
        let mut charges: BTreeMap<EntryId, Usd> = BTreeMap::new();
        for entry in replay.into_entries() {
            assert!(charges.insert(entry.id, entry.charged).is_none());
            let was_recorded = self.records.iter().any(|record| {
                let (Record::Delivered(known) | Record::Ended(known)) = record;
                (known.id, known.charged) == (entry.id, entry.charged)
            });
            assert!(was_recorded);
        }
    }
}

#[test]
fn every_flipped_byte_is_damage_with_its_place_or_a_torn_tail() {
    let fixture = Fixture::new();
    let end = fixture.written.bytes.len();
    let mut bytes = fixture.file.clone();
    for at in 0..end {
        bytes[at] ^= 1 << (at % 8);
        fixture.check(&bytes, at);
        bytes[at] ^= 1 << (at % 8);
    }
    // A byte behind the last record is a torn tail, whatever it is.
    for at in (end..SEGMENT_BYTES).step_by(7) {
        bytes[at] ^= 0xff;
        let lane = [fixture.written.read(&bytes)];
        assert_eq!(lane[0].read.records, fixture.records);
        assert_eq!(check_lane(&lane).map(|torn| torn.len()), Ok(1), "{at}");
        bytes[at] ^= 0xff;
    }
}

#[test]
fn a_segment_cut_anywhere_keeps_all_records_before_the_cut() {
    let fixture = Fixture::new();
    for end in 0..fixture.written.bytes.len() {
        let lane = [fixture.written.read(&fixture.file[..end])];
        let frames = &fixture.written.frames;
        let whole = frames.iter().skip(1).filter(|start| **start <= end).count();
        assert_eq!(lane[0].read.records, &fixture.records[..whole], "{end}");
        assert!(check_lane(&lane).is_ok(), "{end}: no frame tells of more");
    }
}

#[test]
fn pages_of_the_tail_may_be_missing_in_any_order() {
    let fixture = Fixture::new();
    let forced = fixture.forced;
    let first = forced / PAGE_BYTES;
    let pages: Vec<usize> = (first..SEGMENT_BYTES / PAGE_BYTES).collect();
    for missing in 1..1_u32 << pages.len() {
        let mut bytes = fixture.file.clone();
        let mut bad_from = usize::MAX;
        for (bit, page) in pages.iter().enumerate() {
            if missing & (1 << bit) != 0 {
                let start = (page * PAGE_BYTES).max(forced);
                bytes[start..(page + 1) * PAGE_BYTES].fill(0);
                bad_from = bad_from.min(start);
            }
        }
        let lane = [fixture.written.read(&bytes)];
        assert!(
            check_lane(&lane).is_ok(),
            "{missing:b}: nothing confirmed is missing"
        );
        fixture.check(&bytes, bad_from);
    }
}

#[test]
fn a_missing_page_of_the_forced_part_is_damage() {
    let fixture = Fixture::new();
    let forced = fixture.forced;
    for page in 0..forced / PAGE_BYTES {
        let mut bytes = fixture.file.clone();
        bytes[page * PAGE_BYTES..(page + 1) * PAGE_BYTES].fill(0);
        let lane = [fixture.written.read(&bytes)];
        let damage = check_lane(&lane).unwrap_err();
        assert!(damage.offset as usize <= page * PAGE_BYTES, "{page}");
    }
}
