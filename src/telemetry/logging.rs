//! The log: one JSON line per request on stdout, and messages of the process.
//!
//! Lines wait in buffers, about one per worker, which a separate thread empties twenty times a second, and at once where
//! much waits. So a slow reader blocks no worker, and few lines cost a worker an allocation or the wake-up of a thread. The
//! lines of one worker keep their order. Lines that find their buffer full are counted and dropped.

use std::cell::Cell;
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;
use std::time::{Duration, Instant};

use filters::json::{Object, write_number};
use once_cell::sync::OnceCell;
use prometheus::IntCounter;

use crate::priority;
use crate::thread_number::thread_number;

/// The number of buffers. With more threads, some share a buffer.
const BUFFERS: usize = 16;
/// The maximum size of one buffer: some seven thousand lines.
const MAX_BUFFER_BYTES: usize = 4 << 20;
/// A larger buffer is freed once its lines are written, because it only grew while the reader was slow.
const KEPT_BUFFER_BYTES: usize = 256 << 10;
/// The time between two writes, unless a buffer reaches [`WRITE_BYTES`]. A thread that wakes takes the core and its caches
/// from a worker.
const WRITE_INTERVAL: Duration = Duration::from_millis(50);
/// A buffer of this size is written at once: some two hundred lines.
const WRITE_BYTES: usize = 128 << 10;
/// The writer parks after this time without a line, so that an idle process stays asleep. A shorter time would make
/// workers wake the writer more often.
const PARK_AFTER: Duration = Duration::from_secs(1);
/// The least severe level for messages of libraries, whatever `log.level` says. Below it Pingora, h2 and hyper write
/// whole heads with their keys, and database drivers write statements.
const MAX_FOREIGN_LEVEL: log::Level = log::Level::Info;
/// The maximum time that a flush waits.
const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

/// The waiting lines and the thread that writes them. The thread ends when the last clone is dropped.
#[derive(Clone)]
pub struct AccessLog(Arc<Writer>);

/// The thread that writes lines.
struct Writer {
    lines: Arc<PendingLines>,
    thread: Thread,
}

impl Drop for Writer {
    fn drop(&mut self) {
        lock(&self.lines.requests).is_closed = true;
        self.thread.unpark();
    }
}

/// The lines that wait to be written.
struct PendingLines {
    buffers: [LineBuffer; BUFFERS],
    /// Whether the writer waits for a wake-up.
    is_parked: AtomicBool,
    requests: Mutex<Requests>,
    flushed: Condvar,
    dropped: IntCounter,
}

/// Complete lines. The alignment keeps the buffers of two workers in different cache lines.
#[derive(Default)]
#[repr(align(128))]
struct LineBuffer(Mutex<Vec<u8>>);

/// Requests to the writer.
#[derive(Default)]
struct Requests {
    flushes: u64,
    flushed: u64,
    is_closed: bool,
}

impl AccessLog {
    /// Starts a thread that writes lines to `out`.
    ///
    /// Errors: the thread cannot be started.
    pub fn start(out: impl Write + Send + 'static, dropped: IntCounter) -> std::io::Result<Self> {
        Self::start_as("log", out, dropped)
    }

    /// Starts such a thread with a name.
    ///
    /// Errors: the thread cannot be started.
    pub fn start_as(
        name: &str,
        out: impl Write + Send + 'static,
        dropped: IntCounter,
    ) -> std::io::Result<Self> {
        let lines = Arc::new(PendingLines::new(dropped));
        let written = Arc::clone(&lines);
        let thread = std::thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                priority::lower();
                run_writer(&written, out);
            })?;
        let thread = thread.thread().clone();
        Ok(Self(Arc::new(Writer { lines, thread })))
    }

    /// Adds a line without its line end.
    ///
    /// Cost: one lock that no other thread holds for long, and one copy.
    pub fn send(&self, line: impl AsRef<[u8]>) {
        let Writer { lines, thread } = &*self.0;
        let is_much = lines.push(line.as_ref());
        let wakes = lines.is_parked.load(Ordering::Relaxed)
            && lines.is_parked.swap(false, Ordering::Relaxed);
        if is_much || wakes {
            thread.unpark();
        }
    }

    /// Waits until all lines added so far are written. It does not wait for a reader that has stopped reading.
    pub fn flush(&self) {
        let Writer { lines, thread } = &*self.0;
        let mut requests = lock(&lines.requests);
        requests.flushes += 1;
        let wanted = requests.flushes;
        thread.unpark();
        let is_waiting = |requests: &mut Requests| requests.flushed < wanted;
        // A timeout is ignored, because the process ends anyway.
        _ = lines
            .flushed
            .wait_timeout_while(requests, FLUSH_TIMEOUT, is_waiting);
    }
}

impl PendingLines {
    fn new(dropped: IntCounter) -> Self {
        Self {
            buffers: Default::default(),
            is_parked: AtomicBool::new(false),
            requests: Mutex::default(),
            flushed: Condvar::new(),
            dropped,
        }
    }

    /// Adds a line. Returns whether the buffer has just reached [`WRITE_BYTES`].
    fn push(&self, line: &[u8]) -> bool {
        let mut buffer = lock(&self.own_buffer().0);
        let before = buffer.len();
        if before + line.len() >= MAX_BUFFER_BYTES {
            self.dropped.inc();
            return false;
        }
        buffer.extend_from_slice(line);
        buffer.push(b'\n');
        before < WRITE_BYTES && buffer.len() >= WRITE_BYTES
    }

    /// Returns the buffer of this thread.
    fn own_buffer(&self) -> &LineBuffer {
        let [first, ..] = &self.buffers;
        self.buffers.get(thread_number() % BUFFERS).unwrap_or(first)
    }

    fn is_empty(&self) -> bool {
        let mut buffers = self.buffers.iter();
        buffers.all(|buffer| lock(&buffer.0).is_empty())
    }
}

fn run_writer(lines: &PendingLines, mut out: impl Write) {
    let mut batch = Vec::new();
    let mut last_write = Instant::now();
    loop {
        // Requests are read first, so that the lines before them are written now.
        let (flushes, is_closed) = {
            let requests = lock(&lines.requests);
            (requests.flushes, requests.is_closed)
        };
        if write_lines(lines, &mut batch, &mut out) {
            last_write = Instant::now();
        }
        answer_flushes(lines, flushes);
        if is_closed {
            return;
        }
        if last_write.elapsed() < PARK_AFTER {
            std::thread::park_timeout(WRITE_INTERVAL);
        } else {
            park(lines);
            last_write = Instant::now();
        }
    }
}

/// Writes all waiting lines. Returns whether there were any.
fn write_lines(lines: &PendingLines, batch: &mut Vec<u8>, out: &mut impl Write) -> bool {
    let mut has_lines = false;
    for buffer in &lines.buffers {
        // The worker gets the empty buffer of the previous batch and continues while this one is written.
        std::mem::swap(&mut *lock(&buffer.0), batch);
        if batch.is_empty() {
            continue;
        }
        has_lines = true;
        // A closed stdout does not stop the server.
        _ = out.write_all(batch);
        batch.clear();
        batch.shrink_to(KEPT_BUFFER_BYTES);
    }
    if has_lines {
        _ = out.flush();
    }
    has_lines
}

fn answer_flushes(lines: &PendingLines, flushes: u64) {
    let mut requests = lock(&lines.requests);
    if requests.flushed < flushes {
        requests.flushed = flushes;
        lines.flushed.notify_all();
    }
}

/// Waits for the next line or request.
///
/// A worker that adds a line after the check also locks the buffer after the check, so it sees `is_parked`.
fn park(lines: &PendingLines) {
    lines.is_parked.store(true, Ordering::Relaxed);
    if lines.is_empty() {
        std::thread::park();
    }
    lines.is_parked.store(false, Ordering::Relaxed);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// The last formatted second and its text, which most lines of a busy process share.
    static LAST_SECOND: Cell<(i64, [u8; 19])> = const { Cell::new((i64::MIN, [0; 19])) };
}

/// Writes a time as `time`, RFC 3339 in UTC with microseconds. `unix_us` are microseconds since 1970.
pub fn write_time(line: &mut Object<'_>, unix_us: u64) {
    let unix_s = i64::try_from(unix_us / 1_000_000).unwrap_or(i64::MAX);
    let (mut second, mut text) = LAST_SECOND.get();
    if second != unix_s {
        second = unix_s;
        let time = jiff::Timestamp::from_second(second).unwrap_or_default();
        let formatted = time.strftime("%Y-%m-%dT%H:%M:%S").to_string();
        if let Some(bytes) = formatted.as_bytes().first_chunk() {
            text = *bytes;
        }
        LAST_SECOND.set((second, text));
    }
    line.value("time", |out| {
        out.push(b'"');
        out.extend_from_slice(&text);
        let dot = out.len();
        // One million plus the microseconds has the digit 1 followed by the padded microseconds.
        write_number(1_000_000 + unix_us % 1_000_000, out);
        if let Some(byte) = out.get_mut(dot) {
            *byte = b'.';
        }
        out.extend_from_slice(b"Z\"");
    });
}

/// Sends the messages of all libraries to the log as JSON.
struct Messages(OnceCell<AccessLog>);

static MESSAGES: Messages = Messages(OnceCell::new());

impl log::Log for Messages {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        let is_safe = is_own_target(metadata.target()) || metadata.level() <= MAX_FOREIGN_LEVEL;
        is_safe && metadata.level() <= log::max_level()
    }

    fn log(&self, record: &log::Record<'_>) {
        let Some(access_log) = self.0.get().filter(|_| self.enabled(record.metadata())) else {
            return;
        };
        let mut out = Vec::new();
        let mut line = Object::open(&mut out);
        let unix_us = jiff::Timestamp::now().as_microsecond();
        write_time(&mut line, u64::try_from(unix_us).unwrap_or_default());
        line.text("level", &record.level().as_str().to_ascii_lowercase());
        line.text("target", record.target());
        let message = record.args().to_string();
        let is_own = is_own_target(record.target());
        line.text(
            "message",
            if is_own {
                &message
            } else {
                without_bytes(&message)
            },
        );
        line.close();
        access_log.send(out);
    }

    fn flush(&self) {}
}

/// Returns whether a message comes from this product, whose messages never contain parts of requests.
fn is_own_target(target: &str) -> bool {
    let root = target.split("::").next();
    matches!(root, Some("weirgate" | "filters"))
}

/// Returns a library's message without received bytes. Pingora quotes a malformed head with its keys after `buf: `,
/// also in errors.
fn without_bytes(message: &str) -> &str {
    let end = message.find("buf: ").unwrap_or(message.len());
    message.get(..end).unwrap_or_default()
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

#[cfg(test)]
#[path = "logging_tests.rs"]
mod tests;
