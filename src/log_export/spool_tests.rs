#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use std::fs::OpenOptions;
use std::time::Duration;

use super::*;
use crate::config::{Compression, DestinationConfig};

/// Longer than a test takes.
const LONG: Duration = Duration::from_secs(60);

fn config(batch_bytes: u64, spool_bytes: u64) -> LogExportConfig {
    LogExportConfig {
        destination: DestinationConfig::Folder("out".into()),
        compression: Compression::Gzip,
        batch_bytes,
        batch_interval: LONG,
        spool_bytes,
        timeout: LONG,
    }
}

fn now_s() -> u64 {
    SegmentName::new(Compression::None).begun_s()
}

/// Appends lines of four bytes, each a number. Returns how many were written and dropped.
fn append(spool: &mut Spool, numbers: std::ops::Range<u32>, config: &LogExportConfig) -> [u64; 2] {
    let lines: String = numbers.map(|number| format!("{number:03}\n")).collect();
    let appended = spool.append(lines.as_bytes(), config, now_s());
    assert!(appended.failed.is_none());
    [appended.spooled, appended.dropped]
}

/// Takes all segments as if they were sent.
fn drain(spool: &mut Spool) -> Vec<String> {
    let next = std::iter::from_fn(|| {
        let segment = spool.take_next()?;
        let text = String::from_utf8(segment.read().unwrap()).unwrap();
        spool.sent(&segment);
        Some(text)
    });
    next.collect()
}

fn files(folder: &Path) -> usize {
    fs::read_dir(folder.join(FOLDER)).map_or(0, Iterator::count)
}

#[test]
fn lines_become_batches_of_whole_lines_which_leave_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let (mut spool, config) = (Spool::new(folder.path()), config(10, 1000));
    assert_eq!(append(&mut spool, 0..5, &config), [5, 0]);
    assert!(spool.oldest_s().is_some());
    spool.seal();
    assert_eq!(spool.bytes(), 20);
    // A batch of ten bytes has room for two lines, and the third one ends it.
    assert_eq!(drain(&mut spool), ["000\n001\n002\n", "003\n004\n"]);
    assert_eq!((spool.bytes(), spool.oldest_s()), (0, None));
    assert_eq!(files(folder.path()), 0);
}

#[test]
fn a_line_longer_than_a_batch_is_one() {
    let folder = tempfile::tempdir().unwrap();
    let (mut spool, config) = (Spool::new(folder.path()), config(10, 1000));
    let long = "x".repeat(50) + "\n";
    let lines = format!("000\n{long}001\n");
    assert_eq!(spool.append(lines.as_bytes(), &config, now_s()).spooled, 3);
    spool.seal();
    assert_eq!(drain(&mut spool).concat(), lines);
}

#[test]
fn what_finds_no_room_is_dropped_and_what_was_there_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let (mut spool, config) = (Spool::new(folder.path()), config(8, 20));
    assert_eq!(append(&mut spool, 0..9, &config), [5, 4]);
    assert_eq!(append(&mut spool, 9..10, &config), [0, 1]);
    let segment = spool.take_next().unwrap();
    spool.sent(&segment);
    assert_eq!(append(&mut spool, 10..11, &config), [1, 0]);
    spool.seal();
    assert_eq!(drain(&mut spool).concat(), "002\n003\n004\n010\n");
}

#[test]
fn a_segment_is_sealed_by_its_age_and_by_the_hour() {
    let folder = tempfile::tempdir().unwrap();
    let (mut spool, mut config) = (Spool::new(folder.path()), config(1000, 10_000));
    append(&mut spool, 0..1, &config);
    spool.seal_if_due(&config, now_s());
    assert!(spool.take_next().is_none());
    spool.seal_if_due(&config, now_s() + 3600);
    assert_eq!(drain(&mut spool), ["000\n"]);
    append(&mut spool, 1..2, &config);
    config.batch_interval = Duration::ZERO;
    spool.seal_if_due(&config, now_s());
    assert_eq!(drain(&mut spool), ["001\n"]);
}

#[test]
fn what_a_killed_process_wrote_is_sent_once_under_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(8, 1000);
    let mut killed = Spool::new(folder.path());
    append(&mut killed, 0..3, &config);
    let sending = killed.take_next().unwrap();
    let open = &mut killed.open.as_mut().unwrap().segment;
    open.file.write_all(b"{\"cut").unwrap();
    let names = [sending.name, open.name];
    let [mut one, mut other] = [(); 2].map(|()| Spool::new(folder.path()));
    one.take_over_left();
    assert!(
        one.take_next().is_none(),
        "a running process owns its segments"
    );
    drop((killed, sending));
    one.take_over_left();
    other.take_over_left();
    assert!(other.take_next().is_none());
    let left = [one.take_next().unwrap(), one.take_next().unwrap()];
    assert_eq!([left[0].name, left[1].name], names);
    assert_eq!(left[0].read().unwrap(), b"000\n001\n");
    assert_eq!(left[1].read().unwrap(), b"002\n");
}

#[test]
fn what_could_not_be_sent_lets_others_go_first() {
    let folder = tempfile::tempdir().unwrap();
    let (mut spool, config) = (Spool::new(folder.path()), config(4, 1000));
    append(&mut spool, 0..3, &config);
    spool.seal();
    let segment = spool.take_next().unwrap();
    let begun_s = segment.name.begun_s();
    spool.not_sent(segment);
    assert_eq!(spool.oldest_s(), Some(begun_s));
    assert_eq!(drain(&mut spool), ["001\n", "002\n", "000\n"]);
}

#[test]
fn lines_that_the_disk_refuses_are_counted_and_taken_back() {
    let folder = tempfile::tempdir().unwrap();
    let (mut spool, config) = (Spool::new(folder.path()), config(100, 1000));
    append(&mut spool, 0..1, &config);
    let full = OpenOptions::new().append(true).open("/dev/full").unwrap();
    let open = &mut spool.open.as_mut().unwrap().segment;
    let file = std::mem::replace(&mut open.file, full);
    let appended = spool.append(b"001\n002\n", &config, now_s());
    assert_eq!(appended.failed.unwrap().0, 2);
    // A device has no length, so the segment was sealed with what was whole.
    let mut segment = spool.take_next().unwrap();
    segment.file = file;
    assert_eq!(segment.read().unwrap(), b"000\n");
}

#[test]
fn files_that_are_no_segments_stay_where_they_are() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join(FOLDER)).unwrap();
    fs::write(folder.path().join(FOLDER).join("notes.txt"), "a\n").unwrap();
    let mut spool = Spool::new(folder.path());
    spool.take_over_left();
    assert!(spool.take_next().is_none());
    assert_eq!(files(folder.path()), 1);
}

#[test]
fn while_many_segments_wait_the_open_one_grows() {
    let folder = tempfile::tempdir().unwrap();
    let (mut spool, mut config) = (Spool::new(folder.path()), config(1000, 1_000_000));
    config.batch_interval = Duration::ZERO;
    for number in 0..200 {
        append(&mut spool, number..number + 1, &config);
    }
    assert_eq!(spool.sealed.len(), MAX_SEALED_BY_AGE);
    assert_eq!(files(folder.path()), MAX_SEALED_BY_AGE + 1);
    spool.seal();
    assert_eq!(drain(&mut spool).concat().len(), 200 * 4);
}
