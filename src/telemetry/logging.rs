//! What the process says: one JSON line per request on stdout, and messages of its own beside them.
//!
//! Lines go through a bounded queue to a thread of its own, because a reader that stalls must not stall a
//! worker; lines that find the queue full are counted and dropped.

use std::cell::Cell;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use filters::json::{Object, write_number};
use prometheus::IntCounter;

/// How many lines may wait.
const QUEUE: usize = 16 << 10;
/// How long the writer lets lines gather. A worker that had to wake it for every line paid a tenth of a small
/// request for that; lines that arrive while it sleeps cost no system call.
const FLUSH_INTERVAL: Duration = Duration::from_millis(5);

enum LogItem {
    Line(Vec<u8>),
    Flush(SyncSender<()>),
}

/// The queue of lines.
#[derive(Clone)]
pub struct AccessLog {
    queue: SyncSender<LogItem>,
    dropped: IntCounter,
}

impl AccessLog {
    /// Lines to `out`, written by a thread of its own.
    ///
    /// Errors: the thread cannot be started.
    pub fn to(out: impl Write + Send + 'static, dropped: IntCounter) -> std::io::Result<Self> {
        let (queue, items) = sync_channel(QUEUE);
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || write(items, out))?;
        Ok(Self { queue, dropped })
    }

    /// Queues a line without its line end.
    pub fn send(&self, line: Vec<u8>) {
        if let Err(TrySendError::Full(_)) = self.queue.try_send(LogItem::Line(line)) {
            self.dropped.inc();
        }
    }

    /// Waits until all lines queued so far are written.
    pub fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.queue.send(LogItem::Flush(done)).is_ok() {
            // The writer drops its end where it is gone: nothing is left to wait for.
            _ = wait.recv_timeout(Duration::from_secs(2));
        }
    }
}

fn write(items: Receiver<LogItem>, mut out: impl Write) {
    let mut buffer = Vec::with_capacity(64 << 10);
    while let Ok(first) = items.recv() {
        if matches!(first, LogItem::Line(_)) {
            std::thread::sleep(FLUSH_INTERVAL);
        }
        let mut flushed = Vec::new();
        for item in std::iter::once(first).chain(items.try_iter().take(QUEUE)) {
            match item {
                LogItem::Line(line) => {
                    buffer.extend_from_slice(&line);
                    buffer.push(b'\n');
                }
                LogItem::Flush(done) => flushed.push(done),
            }
        }
        // A closed stdout is no reason to stop serving.
        _ = out.write_all(&buffer).and_then(|()| out.flush());
        buffer.clear();
        for done in flushed {
            _ = done.send(());
        }
    }
}

thread_local! {
    /// The second written last, and its text: most lines of a busy process share it.
    static SECOND: Cell<(i64, [u8; 19])> = const { Cell::new((i64::MIN, [0; 19])) };
}

/// Writes the wall clock as `time`, RFC 3339 in UTC with microseconds.
pub fn write_now(line: &mut Object<'_>) {
    let now = jiff::Timestamp::now();
    let (mut second, mut text) = SECOND.get();
    if second != now.as_second() {
        second = now.as_second();
        let written = now.strftime("%Y-%m-%dT%H:%M:%S").to_string();
        if let Some(written) = written.as_bytes().first_chunk() {
            text = *written;
        }
        SECOND.set((second, text));
    }
    // The digits of one and the microseconds are those of the microseconds behind a one.
    let us = 1_000_000 + now.subsec_nanosecond().unsigned_abs() / 1000;
    line.value("time", |out| {
        out.push(b'"');
        out.extend_from_slice(&text);
        let dot = out.len();
        write_number(u64::from(us), out);
        if let Some(one) = out.get_mut(dot) {
            *one = b'.';
        }
        out.extend_from_slice(b"Z\"");
    });
}

/// Sends the messages of all libraries to the lines, as JSON too.
struct Messages(OnceLock<AccessLog>);

static MESSAGES: Messages = Messages(OnceLock::new());

impl log::Log for Messages {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &log::Record<'_>) {
        let Some(lines) = self.0.get().filter(|_| self.enabled(record.metadata())) else {
            return;
        };
        let mut out = Vec::new();
        let mut line = Object::open(&mut out);
        write_now(&mut line);
        line.text("level", &record.level().as_str().to_ascii_lowercase());
        line.text("target", record.target());
        line.text("message", &record.args().to_string());
        line.close();
        lines.send(out);
    }

    fn flush(&self) {}
}

/// Makes `lines` take the messages of all libraries; only the first call counts.
pub fn install(lines: &AccessLog, level: log::LevelFilter) {
    if MESSAGES.0.set(lines.clone()).is_ok() && log::set_logger(&MESSAGES).is_ok() {
        log::set_max_level(level);
    }
}

/// Lines that nobody reads, for servers inside tests and benches.
///
/// Errors: the thread cannot be started.
pub fn sink(dropped: &IntCounter) -> std::io::Result<Arc<AccessLog>> {
    AccessLog::to(std::io::sink(), dropped.clone()).map(Arc::new)
}
