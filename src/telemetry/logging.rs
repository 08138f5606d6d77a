//! The log: one JSON line per request on stdout, and messages of the process between them.
//!
//! Lines go through a bounded queue to a separate thread, because a slow reader must not block a worker. Lines that
//! find the queue full are counted and dropped.

use std::cell::Cell;
use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use filters::json::{Object, write_number};
use prometheus::IntCounter;

/// The capacity of the queue.
const QUEUE_LINES: usize = 16 << 10;
/// How long the writer collects lines. Waking it for each line cost a worker a tenth of a small request; lines that
/// arrive while it sleeps cost no system call.
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
    /// Starts a thread that writes lines to `out`.
    ///
    /// Errors: the thread cannot be started.
    pub fn start(out: impl Write + Send + 'static, dropped: IntCounter) -> std::io::Result<Self> {
        let (queue, items) = sync_channel(QUEUE_LINES);
        std::thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || run_writer(items, out))?;
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
            // If the writer has ended, it has dropped its sender and nothing is left to wait for.
            _ = wait.recv_timeout(Duration::from_secs(2));
        }
    }
}

fn run_writer(items: Receiver<LogItem>, mut out: impl Write) {
    let mut buffer = Vec::with_capacity(64 << 10);
    while let Ok(first) = items.recv() {
        if matches!(first, LogItem::Line(_)) {
            std::thread::sleep(FLUSH_INTERVAL);
        }
        let mut flushed = Vec::new();
        for item in std::iter::once(first).chain(items.try_iter().take(QUEUE_LINES)) {
            match item {
                LogItem::Line(line) => {
                    buffer.extend_from_slice(&line);
                    buffer.push(b'\n');
                }
                LogItem::Flush(done) => flushed.push(done),
            }
        }
        // A closed stdout does not stop the server.
        _ = out.write_all(&buffer).and_then(|()| out.flush());
        buffer.clear();
        for done in flushed {
            _ = done.send(());
        }
    }
}

thread_local! {
    /// The last formatted second and its text, which most lines of a busy process share.
    static LAST_SECOND: Cell<(i64, [u8; 19])> = const { Cell::new((i64::MIN, [0; 19])) };
}

/// Writes the current time as `time`, RFC 3339 in UTC with microseconds.
pub fn write_now(line: &mut Object<'_>) {
    let now = jiff::Timestamp::now();
    let (mut second, mut text) = LAST_SECOND.get();
    if second != now.as_second() {
        second = now.as_second();
        let formatted = now.strftime("%Y-%m-%dT%H:%M:%S").to_string();
        if let Some(bytes) = formatted.as_bytes().first_chunk() {
            text = *bytes;
        }
        LAST_SECOND.set((second, text));
    }
    // The digits of one million plus the microseconds are a 1 followed by the padded microseconds.
    let us = 1_000_000 + now.subsec_nanosecond().unsigned_abs() / 1000;
    line.value("time", |out| {
        out.push(b'"');
        out.extend_from_slice(&text);
        let dot = out.len();
        write_number(u64::from(us), out);
        if let Some(byte) = out.get_mut(dot) {
            *byte = b'.';
        }
        out.extend_from_slice(b"Z\"");
    });
}

/// Sends the messages of all libraries to the log as JSON.
struct Messages(OnceLock<AccessLog>);

static MESSAGES: Messages = Messages(OnceLock::new());

impl log::Log for Messages {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &log::Record<'_>) {
        let Some(access_log) = self.0.get().filter(|_| self.enabled(record.metadata())) else {
            return;
        };
        let mut out = Vec::new();
        let mut line = Object::open(&mut out);
        write_now(&mut line);
        line.text("level", &record.level().as_str().to_ascii_lowercase());
        line.text("target", record.target());
        line.text("message", &record.args().to_string());
        line.close();
        access_log.send(out);
    }

    fn flush(&self) {}
}

/// Sends the messages of all libraries to `access_log`. Only the first call has an effect.
pub fn install(access_log: &AccessLog, level: log::LevelFilter) {
    if MESSAGES.0.set(access_log.clone()).is_ok() && log::set_logger(&MESSAGES).is_ok() {
        log::set_max_level(level);
    }
}

/// Returns a log that discards its lines, for servers in tests and benches.
///
/// Errors: the thread cannot be started.
pub fn sink(dropped: &IntCounter) -> std::io::Result<Arc<AccessLog>> {
    AccessLog::start(std::io::sink(), dropped.clone()).map(Arc::new)
}
