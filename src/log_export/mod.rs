//! The export of logs: the line of each call of a model goes to storage that speaks S3's API, to ClickHouse, or to a folder.
//!
//! A request hands its line to buffers in memory, which a thread empties into the [`spool`] every 50 ms. Another thread,
//! [`sender`], sends the [`segment`]s of the spool to the [`destination`] until they have arrived. So a destination that is slow, dead
//! or frozen costs requests nothing, and a kill costs the lines of the last 50 ms. [`columns`] are the members of a line.
//! The settings may change while it runs; what waits then goes where the new ones say.
//! Source: docs/log-export.md

mod clock;
pub mod columns;
mod destination;
mod segment;
mod sender;
mod spool;

use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use arc_swap::ArcSwapOption;
use once_cell::sync::OnceCell;
use prometheus::IntCounterVec;
use tokio::runtime::Handle;

use self::clock::now_s;
pub use self::destination::try_out;
use self::sender::Sender;
use self::spool::{Spool, count_lines};
use crate::config::LogExportConfig;
use crate::telemetry::logging::AccessLog;
use crate::telemetry::metrics::LogExportMetrics;

/// The same complaint is logged once in this time.
const COMPLAINT_INTERVAL: Duration = Duration::from_secs(60);
/// The maximum time of [`LogExport::close`], of which the log's own flush may take two seconds.
pub const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// The export of the process. Its threads start with the first configuration that switches it on.
pub struct LogExport {
    shared: Arc<Shared>,
    running: OnceCell<Running>,
    background: Handle,
}

/// The parts of an export that was switched on once.
struct Running {
    lines: AccessLog,
    sender: Sender,
}

/// What requests, the writer and the sender share.
struct Shared {
    config: ArcSwapOption<LogExportConfig>,
    spool: Mutex<Spool>,
    metrics: LogExportMetrics,
    /// Fetches of AWS's credentials, by outcome.
    fetches: IntCounterVec,
}

impl LogExport {
    /// Returns an export that is off. `background` runs its requests.
    pub fn new(
        state_dir: &Path,
        (metrics, fetches): (&LogExportMetrics, &IntCounterVec),
        background: Handle,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                config: ArcSwapOption::empty(),
                spool: Mutex::new(Spool::new(state_dir)),
                metrics: metrics.clone(),
                fetches: fetches.clone(),
            }),
            running: OnceCell::new(),
            background,
        }
    }

    /// Puts a configuration in force, also for the lines that wait. `None` switches the export off; the lines that wait then stay
    /// on disk.
    ///
    /// Errors: its threads cannot be started. It is off then.
    pub fn set(&self, config: Option<&LogExportConfig>) -> io::Result<()> {
        let current = self.shared.config.load();
        if current.as_deref() == config {
            return Ok(());
        }
        if config.is_some() {
            self.running.get_or_try_init(|| self.start())?;
        }
        if let (None, Some(running)) = (config, self.running.get()) {
            running.lines.flush();
            self.shared.spool().seal();
        }
        self.shared.config.store(config.cloned().map(Arc::new));
        if let Some(running) = self.running.get() {
            running.sender.wake();
        }
        Ok(())
    }

    fn start(&self) -> io::Result<Running> {
        let writer = SpoolWriter {
            shared: Arc::clone(&self.shared),
            complaint: Complaint::default(),
        };
        let queue_full = self.shared.metrics.lines.with_label_values(&["queue_full"]);
        Ok(Running {
            lines: AccessLog::start_as("log export", writer, queue_full)?,
            sender: Sender::start(Arc::clone(&self.shared), self.background.clone())?,
        })
    }

    /// Returns whether lines are exported. Cost: one load.
    pub fn is_on(&self) -> bool {
        self.shared.config.load().is_some()
    }

    /// Adds a line without its line end. Cost: one lock that no other thread holds for long, and one copy.
    pub fn send(&self, line: impl AsRef<[u8]>) {
        if let Some(running) = self.running.get() {
            running.lines.send(line);
        }
    }

    /// Writes all lines to disk, and tries for some seconds to send what waits. The rest stays on disk.
    pub fn close(&self) {
        let Some(running) = self.running.get() else {
            return;
        };
        running.lines.flush();
        self.shared.spool().seal();
        running.sender.stop();
    }
}

impl Shared {
    fn spool(&self) -> MutexGuard<'_, Spool> {
        self.spool.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, outcome: &str, lines: u64) {
        if lines > 0 {
            self.metrics
                .lines
                .with_label_values(&[outcome])
                .inc_by(lines);
        }
    }

    /// Shows what waits.
    fn observe(&self) {
        let (bytes, oldest_s) = {
            let spool = self.spool();
            (spool.bytes(), spool.oldest_s())
        };
        let age_s = oldest_s.map_or(0, |oldest_s| now_s().saturating_sub(oldest_s));
        let shown = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        self.metrics.spool_bytes.set(shown(bytes));
        self.metrics.oldest_seconds.set(shown(age_s));
    }
}

/// A complaint that is logged once a minute.
#[derive(Default)]
struct Complaint(Option<Instant>);

impl Complaint {
    fn log(&mut self, text: &str) {
        let is_due = |last: Instant| last.elapsed() >= COMPLAINT_INTERVAL;
        if self.0.is_none_or(is_due) {
            self.0 = Some(Instant::now());
            log::warn!("log export: {text}");
        }
    }
}

/// Writes lines to the spool.
struct SpoolWriter {
    shared: Arc<Shared>,
    complaint: Complaint,
}

impl Write for SpoolWriter {
    /// Takes whole lines alone, all of them.
    fn write(&mut self, lines: &[u8]) -> io::Result<usize> {
        let Some(config) = self.shared.config.load_full() else {
            // It was switched off a moment ago.
            self.shared.count("off", count_lines(lines));
            return Ok(lines.len());
        };
        let appended = self.shared.spool().append(lines, &config, now_s());
        self.shared.count("spooled", appended.spooled);
        self.shared.count("spool_full", appended.dropped);
        if appended.dropped > 0 {
            let most = config.spool_bytes;
            let text = format!("log_export.spool_bytes = {most} is full, so new lines are dropped");
            self.complaint.log(&text);
        }
        if let Some((lines, error)) = appended.failed {
            self.shared.count("failed", lines);
            self.complaint
                .log(&format!("lines cannot be written to disk: {error}"));
        }
        Ok(lines.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
