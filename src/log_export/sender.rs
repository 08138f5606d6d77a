//! Sends segments until they have arrived, one at a time, on a thread of its own.
//!
//! A segment is removed once the destination has confirmed it. After a failure the next try waits, twice as long each time up to a
//! minute, and another segment goes first: one that the destination does not take does not stand in the way of the others.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::Bytes;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::clock::now_s;
use super::destination::{Batch, Destination};
use super::segment::Segment;
use super::spool::count_lines;
use super::{Complaint, Shared};
use crate::config::{Compression, LogExportConfig};
use crate::priority;

/// How often is looked whether a segment is due.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);
/// How often is looked for segments of processes that no longer run.
const LEFT_INTERVAL: Duration = Duration::from_secs(5);
/// The pauses after the first failure and after many.
const MIN_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_secs(60);
/// How long what waits is still sent after a stop.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a stop waits for the end of the thread.
const END_TIMEOUT: Duration = Duration::from_secs(3);
/// The level of zstd, which is its usual one.
const ZSTD_LEVEL: i32 = 3;

/// The thread that sends.
pub(super) struct Sender {
    stop: watch::Sender<bool>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Unparks the thread.
    handle: std::thread::Thread,
}

impl Sender {
    /// Starts the thread.
    ///
    /// Errors: it cannot be started.
    pub(super) fn start(shared: Arc<Shared>, runtime: Handle) -> io::Result<Self> {
        let (stop, stopped) = watch::channel(false);
        let sending = Sending {
            shared,
            runtime,
            stopped,
            destination: None,
            left_at: None,
            pause: MIN_PAUSE,
            next_try: Instant::now(),
            complaint: Complaint::default(),
            has_failed: false,
        };
        let thread = std::thread::Builder::new().name("log sender".to_owned());
        let thread = thread.spawn(move || {
            priority::lower();
            sending.run();
        })?;
        Ok(Self {
            stop,
            handle: thread.thread().clone(),
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Lets it look at once.
    pub(super) fn wake(&self) {
        self.handle.unpark();
    }

    /// Stops it, and waits for its end, but not for long.
    pub(super) fn stop(&self) {
        self.stop.send_replace(true);
        self.wake();
        let thread = self
            .thread
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        let deadline = Instant::now() + END_TIMEOUT;
        let is_running = || thread.as_ref().is_some_and(|thread| !thread.is_finished());
        while is_running() && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        self.wake();
    }
}

/// The state of the thread.
struct Sending {
    shared: Arc<Shared>,
    runtime: Handle,
    stopped: watch::Receiver<bool>,
    /// The destination of a configuration.
    destination: Option<(Arc<LogExportConfig>, Destination)>,
    /// When was last looked for what other processes have left.
    left_at: Option<Instant>,
    pause: Duration,
    next_try: Instant,
    complaint: Complaint,
    has_failed: bool,
}

impl Sending {
    fn run(mut self) {
        let mut ends_at = None;
        loop {
            if *self.stopped.borrow() {
                let ends_at = *ends_at.get_or_insert_with(|| Instant::now() + DRAIN_TIMEOUT);
                if Instant::now() >= ends_at || !self.send_one() {
                    return;
                }
            } else if !self.send_one() {
                std::thread::park_timeout(LOOK_INTERVAL);
            }
        }
    }

    /// Sends a segment if one is due. Returns whether one has arrived, so that another may follow at once.
    fn send_one(&mut self) -> bool {
        let config = self.shared.config.load_full();
        let Some(config) = config else {
            return false;
        };
        self.tend(&config);
        if Instant::now() < self.next_try {
            return false;
        }
        let Some(segment) = self.shared.spool().take_next() else {
            return false;
        };
        let result = self.send(&config, &segment);
        match result {
            Ok(lines) => {
                self.shared.spool().sent(&segment);
                self.shared.count("exported", lines);
                self.record_success();
            }
            Err(why) => {
                self.shared.spool().not_sent(segment);
                self.record_failure(&why);
            }
        }
        self.shared.observe();
        !self.has_failed
    }

    /// Does what is due whether or not something is sent.
    fn tend(&mut self, config: &LogExportConfig) {
        let is_due = |at: Instant| at.elapsed() >= LEFT_INTERVAL;
        let looks = self.left_at.is_none_or(is_due);
        {
            let mut spool = self.shared.spool();
            spool.seal_if_due(config, now_s());
            if looks {
                spool.take_over_left();
            }
        }
        if looks {
            self.left_at = Some(Instant::now());
        }
        self.shared.observe();
    }

    fn record_success(&mut self) {
        if std::mem::take(&mut self.has_failed) {
            self.complaint = Complaint::default();
            log::warn!("log export: batches arrive again");
        }
        self.pause = MIN_PAUSE;
        self.next_try = Instant::now();
    }

    fn record_failure(&mut self, why: &str) {
        self.shared.metrics.failures.inc();
        self.has_failed = true;
        // Several processes do not come back at once.
        let jitter = Duration::from_millis(fastrand::u64(..250));
        self.next_try = Instant::now() + self.pause + jitter;
        self.pause = (self.pause * 2).min(MAX_PAUSE);
        let bytes = self.shared.spool().bytes();
        self.complaint.log(&format!(
            "{why}; {bytes} bytes of lines wait, and are sent again"
        ));
    }

    /// Sends a segment. Returns how many lines it has.
    ///
    /// Errors: why it has not arrived, or may not have.
    fn send(&mut self, config: &Arc<LogExportConfig>, segment: &Segment) -> Result<u64, String> {
        let is_same = |(of, _): &(Arc<LogExportConfig>, _)| Arc::ptr_eq(of, config);
        if !self.destination.as_ref().is_some_and(is_same) {
            let destination = Destination::new(config, &self.shared.fetches)?;
            self.destination = Some((Arc::clone(config), destination));
            // Another destination may take what this one did not.
            self.pause = MIN_PAUSE;
        }
        let Some((_, destination)) = &self.destination else {
            return Err("there is no destination".to_owned());
        };
        let unreadable = |error: io::Error| format!("{}: {error}", segment.path.display());
        let lines = segment.read().map_err(unreadable)?;
        let count = count_lines(&lines);
        let body = compress(lines, segment.name.compression).map_err(unreadable)?;
        let batch = Batch {
            name: segment.name,
            body,
        };
        let sending = deliver(destination, batch, &self.shared, self.stopped.clone());
        self.runtime.block_on(sending).map(|()| count)
    }
}

/// Sends a batch, and shows meanwhile what waits. After a stop it may take [`DRAIN_TIMEOUT`].
async fn deliver(
    destination: &Destination,
    batch: Batch,
    shared: &Shared,
    mut stopped: watch::Receiver<bool>,
) -> Result<(), String> {
    let given_up = async {
        _ = stopped.wait_for(|is_stopped| *is_stopped).await;
        tokio::time::sleep(DRAIN_TIMEOUT).await;
    };
    let sending = destination.send(batch);
    tokio::pin!(given_up, sending);
    let mut looks = tokio::time::interval(LOOK_INTERVAL);
    loop {
        tokio::select! {
            result = &mut sending => return result,
            () = &mut given_up => return Err("the process stops".to_owned()),
            _ = looks.tick() => shared.observe(),
        }
    }
}

/// Compresses lines. The same lines give the same bytes.
///
/// Errors: none but for lack of memory.
fn compress(lines: Vec<u8>, compression: Compression) -> io::Result<Bytes> {
    match compression {
        Compression::None => Ok(lines.into()),
        Compression::Gzip => {
            let level = flate2::Compression::default();
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), level);
            io::Write::write_all(&mut encoder, &lines)?;
            encoder.finish().map(Bytes::from)
        }
        Compression::Zstd => zstd::bulk::compress(&lines, ZSTD_LEVEL).map(Bytes::from),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::io::Read;

    use super::*;

    #[test]
    fn batches_are_compressed_as_their_names_say_and_each_time_alike() {
        let lines = b"{\"a\":1}\n".repeat(10_000);
        for compression in [Compression::None, Compression::Gzip, Compression::Zstd] {
            let once = compress(lines.clone(), compression).unwrap();
            assert_eq!(compress(lines.clone(), compression).unwrap(), once);
            let mut read = Vec::new();
            match compression {
                Compression::None => read.extend_from_slice(&once),
                Compression::Gzip => {
                    let mut decoder = flate2::read::GzDecoder::new(&once[..]);
                    decoder.read_to_end(&mut read).unwrap();
                }
                Compression::Zstd => read = zstd::bulk::decompress(&once, lines.len()).unwrap(),
            }
            assert_eq!(read, lines);
            let is_smaller = once.len() < lines.len() / 10;
            assert_eq!(is_smaller, compression != Compression::None);
        }
    }
}
