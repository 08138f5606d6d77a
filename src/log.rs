//! What the process says: one JSON line per request on stdout, and messages of its own beside them.
//!
//! Lines go through a bounded queue to a thread of its own, because a reader that stalls must not stall a
//! worker; lines that find the queue full are counted and dropped.

use std::io::Write;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};

use prometheus::IntCounter;

/// How many lines may wait.
const QUEUE: usize = 16 << 10;

enum Item {
    Line(Vec<u8>),
    Flush(SyncSender<()>),
}

/// The queue of lines.
#[derive(Clone)]
pub struct Lines {
    queue: SyncSender<Item>,
    dropped: IntCounter,
}

impl Lines {
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
        if let Err(TrySendError::Full(_)) = self.queue.try_send(Item::Line(line)) {
            self.dropped.inc();
        }
    }

    /// Waits until all lines queued so far are written.
    pub fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.queue.send(Item::Flush(done)).is_ok() {
            // The writer drops its end where it is gone: nothing is left to wait for.
            _ = wait.recv_timeout(std::time::Duration::from_secs(2));
        }
    }
}

fn write(items: Receiver<Item>, mut out: impl Write) {
    let mut buffer = Vec::with_capacity(64 << 10);
    while let Ok(first) = items.recv() {
        let mut flushed = Vec::new();
        for item in std::iter::once(first).chain(items.try_iter().take(256)) {
            match item {
                Item::Line(line) => {
                    buffer.extend_from_slice(&line);
                    buffer.push(b'\n');
                }
                Item::Flush(done) => flushed.push(done),
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

/// Sends the messages of all libraries to the lines, as JSON too.
struct Messages(OnceLock<Lines>);

static MESSAGES: Messages = Messages(OnceLock::new());

impl log::Log for Messages {
    fn enabled(&self, metadata: &log::Metadata<'_>) -> bool {
        metadata.level() <= log::max_level()
    }

    fn log(&self, record: &log::Record<'_>) {
        let Some(lines) = self.0.get().filter(|_| self.enabled(record.metadata())) else {
            return;
        };
        let line = serde_json::json!({
            "time": jiff::Timestamp::now().to_string(),
            "level": record.level().as_str().to_ascii_lowercase(),
            "target": record.target(),
            "message": record.args().to_string(),
        });
        lines.send(line.to_string().into_bytes());
    }

    fn flush(&self) {}
}

/// Makes `lines` take the messages of all libraries; only the first call counts.
pub fn install(lines: &Lines, level: log::LevelFilter) {
    if MESSAGES.0.set(lines.clone()).is_ok() && log::set_logger(&MESSAGES).is_ok() {
        log::set_max_level(level);
    }
}

/// Lines that nobody reads, for servers inside tests and benches.
///
/// Errors: the thread cannot be started.
pub fn sink(dropped: &IntCounter) -> std::io::Result<Arc<Lines>> {
    Lines::to(std::io::sink(), dropped.clone()).map(Arc::new)
}
