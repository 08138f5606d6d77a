#![allow(clippy::unwrap_used, reason = "tests")]

use std::sync::mpsc::{Receiver, Sender, channel};

use super::*;

/// Keeps the written bytes, and blocks each write until the test allows it.
struct SlowReader {
    written: Arc<Mutex<Vec<u8>>>,
    allowed: Receiver<()>,
}

impl Write for SlowReader {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        _ = self.allowed.recv();
        lock(&self.written).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

struct Log {
    access_log: AccessLog,
    written: Arc<Mutex<Vec<u8>>>,
    dropped: IntCounter,
    allow: Option<Sender<()>>,
}

fn start() -> Log {
    let (allow, allowed) = channel();
    let written = Arc::new(Mutex::default());
    let dropped = IntCounter::new("dropped", "Lines.").unwrap();
    let reader = SlowReader {
        written: Arc::clone(&written),
        allowed,
    };
    Log {
        access_log: AccessLog::start(reader, dropped.clone()).unwrap(),
        written,
        dropped,
        allow: Some(allow),
    }
}

impl Log {
    /// Lets the reader read everything from now on.
    fn allow_all(&mut self) {
        self.allow = None;
    }

    fn text(&self) -> String {
        String::from_utf8(lock(&self.written).clone()).unwrap()
    }
}

#[test]
fn a_flush_waits_for_the_lines_before_it() {
    let mut log = start();
    log.allow_all();
    for line in 0..1000 {
        log.access_log.send(format!("line {line}"));
    }
    log.access_log.flush();
    let expected: String = (0..1000).map(|line| format!("line {line}\n")).collect();
    assert_eq!(log.text(), expected);
}

#[test]
fn lines_of_one_thread_keep_their_order() {
    let mut log = start();
    log.allow_all();
    std::thread::scope(|scope| {
        for worker in 0..4 {
            let access_log = log.access_log.clone();
            scope.spawn(move || {
                for line in 0..500 {
                    access_log.send(format!("{worker} {line}"));
                }
            });
        }
    });
    log.access_log.flush();
    let text = log.text();
    for worker in 0..4 {
        let start = format!("{worker} ");
        let lines = text.lines().filter_map(|line| line.strip_prefix(&*start));
        let expected = (0..500).map(|line| line.to_string());
        assert!(lines.eq(expected), "{worker}");
    }
}

#[test]
fn a_reader_that_stops_costs_lines_and_blocks_nobody() {
    let mut log = start();
    let line = "x".repeat(1023);
    // The first lines are on their way to the reader, the next ones fill the buffer.
    let fitting = MAX_BUFFER_BYTES / 1024;
    for _ in 0..3 * fitting {
        log.access_log.send(&line);
    }
    assert!(
        log.dropped.get() as usize >= fitting - 1,
        "{}",
        log.dropped.get()
    );
    log.allow_all();
    log.access_log.flush();
    let lines = log.text().lines().count();
    assert_eq!(lines + log.dropped.get() as usize, 3 * fitting);
    assert!(log.text().lines().all(|written| written == line));
}

#[test]
fn a_parked_writer_is_woken_by_the_next_line() {
    let mut log = start();
    log.allow_all();
    let lines = &log.access_log.0.lines;
    let parked = Instant::now() + 4 * PARK_AFTER;
    while !lines.is_parked.load(Ordering::Relaxed) {
        assert!(Instant::now() < parked);
        std::thread::park_timeout(WRITE_INTERVAL);
    }
    log.access_log.send("line");
    let written = Instant::now() + PARK_AFTER;
    while log.text() != "line\n" {
        assert!(Instant::now() < written);
        std::thread::park_timeout(WRITE_INTERVAL);
    }
}

#[test]
fn the_last_lines_are_written_when_the_log_is_dropped() {
    let mut log = start();
    log.allow_all();
    log.access_log.send("last");
    let written = Arc::clone(&log.written);
    drop(log);
    let end = Instant::now() + FLUSH_TIMEOUT;
    while *lock(&written) != b"last\n" {
        assert!(Instant::now() < end);
        std::thread::park_timeout(WRITE_INTERVAL);
    }
}

#[test]
fn the_line_that_fills_a_batch_asks_for_its_write() {
    let lines = PendingLines::new(IntCounter::new("dropped", "Lines.").unwrap());
    let line = [b'x'; 1023];
    let asks: Vec<bool> = (0..4 * WRITE_BYTES / 1024)
        .map(|_| lines.push(&line))
        .collect();
    let full = WRITE_BYTES / 1024 - 1;
    let expected: Vec<bool> = (0..asks.len()).map(|at| at == full).collect();
    assert_eq!(asks, expected);
}
