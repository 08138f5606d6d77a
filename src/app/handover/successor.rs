//! The new process, as the running one sees it.

use std::io::{BufRead, BufReader, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStderr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::channel::{Channel, Message};
use super::program::Program;

/// How long the new process may take from its start until it serves. Our choice: it reads what a start reads, which takes
/// seconds with the largest catalogue; migrations that take longer need a restart.
pub const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a child that has closed its end may take to end, so that its last words and its status are known.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// The interval at which its end is looked for.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
/// The most lines that a failed start is quoted with.
const MAX_LINES: usize = 40;
/// The longest line that is quoted.
const MAX_LINE_BYTES: u64 = 4 << 10;

/// A part of the state in memory: its name and its bytes.
pub type StatePart = (String, Vec<u8>);

/// What passes to the new process before it opens anything: open files with their names.
pub type OfferedFiles<'f> = [(&'f str, BorrowedFd<'f>)];

/// The reason for which the new process does not serve.
#[derive(Debug)]
pub struct UpgradeFailure {
    /// What went wrong.
    pub message: String,
    /// What the new process said on stderr.
    pub said: Vec<String>,
}

/// A new process that serves.
pub struct Successor {
    pub pid: u32,
    /// Our end of the pair, which the new process watches.
    pub stream: UnixStream,
}

/// Starts `program` and hands over to it. Blocks until it serves.
///
/// `state` is called when the new process has loaded everything. After that, nothing may be counted here that the new
/// process would not know of.
///
/// Errors: it was not started, has ended, or has not become ready within `bound`, and has been killed. Nothing has been given
/// away then.
pub fn hand_over(
    program: &Program,
    files: &OfferedFiles<'_>,
    state: impl FnOnce() -> Vec<StatePart>,
    bound: Duration,
) -> Result<Successor, UpgradeFailure> {
    let deadline = Instant::now() + bound;
    let unstarted = |error: std::io::Error| UpgradeFailure {
        message: format!("{}: {error}", program.path().display()),
        said: Vec::new(),
    };
    let (channel, theirs) = Channel::pair().map_err(unstarted)?;
    let mut child = program.start_successor(theirs).map_err(unstarted)?;
    let said = LastLines::read(child.stderr.take());
    let mut starting = Starting {
        channel,
        deadline,
        bound,
    };
    match starting.hand_over(files, state) {
        Ok(()) => Ok(Successor {
            pid: child.id(),
            stream: starting.channel.into_stream(),
        }),
        Err(why) => {
            let message = end(&mut child, why);
            Err(UpgradeFailure {
                message,
                said: said.lines(),
            })
        }
    }
}

/// A new process that does not serve yet.
struct Starting {
    channel: Channel,
    deadline: Instant,
    bound: Duration,
}

impl Starting {
    /// Errors: in words.
    fn hand_over(
        &mut self,
        files: &OfferedFiles<'_>,
        state: impl FnOnce() -> Vec<StatePart>,
    ) -> Result<(), String> {
        let (names, files): (Vec<&str>, Vec<BorrowedFd<'_>>) = files.iter().copied().unzip();
        let sent = self.channel.send_files(&files);
        sent.map_err(|error| self.describe(&error))?;
        let offer = Message::Offer {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            files: names.into_iter().map(str::to_owned).collect(),
        };
        self.send(&offer, &[])?;
        self.expect(&Message::Loaded)?;
        for (name, bytes) in state() {
            self.send(&Message::State { name }, &bytes)?;
        }
        self.send(&Message::StateEnd, &[])?;
        self.expect(&Message::Ready)
    }

    fn send(&mut self, message: &Message, body: &[u8]) -> Result<(), String> {
        let sent = self.channel.send(message, body, self.deadline);
        sent.map_err(|error| self.describe(&error))
    }

    fn expect(&mut self, expected: &Message) -> Result<(), String> {
        match self.channel.receive(self.deadline) {
            Ok((message, _)) if message == *expected => Ok(()),
            Ok((message, _)) => Err(format!("the new process says {message:?} out of turn")),
            Err(error) => Err(self.describe(&error)),
        }
    }

    fn describe(&self, error: &std::io::Error) -> String {
        match Instant::now() >= self.deadline {
            true => format!(
                "the new process was not ready within {} s",
                self.bound.as_secs()
            ),
            false => format!("the new process has ended before it was ready ({error})"),
        }
    }
}

/// Waits for a child that is ending, or kills it. Returns what is known.
fn end(child: &mut Child, why: String) -> String {
    let until = Instant::now() + END_TIMEOUT;
    while Instant::now() < until {
        if let Ok(Some(status)) = child.try_wait() {
            return format!("{why}: {status}");
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    _ = child.kill();
    _ = child.wait();
    format!("{why}; it was killed")
}

/// The last lines of a child's stderr, which also appear on our own.
#[derive(Clone, Default)]
struct LastLines(Arc<Mutex<Vec<String>>>);

impl LastLines {
    /// Reads until the child, or what it has started, closes it.
    fn read(stderr: Option<ChildStderr>) -> Self {
        let lines = Self::default();
        let (Some(stderr), kept) = (stderr, lines.clone()) else {
            return lines;
        };
        let read = move || {
            let mut reader = BufReader::new(stderr);
            let mut line = Vec::new();
            while (&mut reader)
                .take(MAX_LINE_BYTES)
                .read_until(b'\n', &mut line)
                .is_ok_and(|it| it > 0)
            {
                kept.push(String::from_utf8_lossy(&line).trim_end().to_owned());
                line.clear();
            }
        };
        // Without the thread a failed start is reported without its reason.
        _ = std::thread::Builder::new()
            .name("successor".to_owned())
            .spawn(read);
        lines
    }

    fn push(&self, line: String) {
        use std::io::Write;
        _ = writeln!(std::io::stderr(), "{line}");
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == MAX_LINES {
            lines.remove(0);
        }
        lines.push(line);
    }

    fn lines(&self) -> Vec<String> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.clone()
    }
}
