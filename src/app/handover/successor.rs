//! The new process, as the running one sees it.

use std::io::{BufRead, BufReader, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, ChildStderr};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::{Duration, Instant};

use super::channel::{Channel, Message};
use super::program::Program;

/// How long the new process may take from its start until it serves. Our choice: it reads what a start reads, which takes
/// seconds with the largest catalogue; migrations that take longer need a restart.
pub const START_TIMEOUT: Duration = Duration::from_secs(60);
/// How long a child that has closed its end may take to end, so that its last words and its status are known.
const END_TIMEOUT: Duration = Duration::from_secs(1);
/// How long its last words are waited for after its end.
const LAST_WORDS_TIMEOUT: Duration = Duration::from_secs(1);
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

/// A new process that does not serve yet. If it is dropped, it is killed.
pub struct Successor {
    /// `None` once it is left alone.
    child: Option<Child>,
    channel: Option<Channel>,
    said: LastLines,
    deadline: Instant,
    bound: Duration,
}

impl Successor {
    /// Starts `program`, passes the open files, and waits until it has loaded everything.
    ///
    /// Errors: it was not started, has ended, or was not ready within `bound`. It runs no more then, and nothing has been
    /// given away.
    pub fn start(
        program: &Program,
        files: &OfferedFiles<'_>,
        bound: Duration,
    ) -> Result<Self, UpgradeFailure> {
        let deadline = Instant::now() + bound;
        let unstarted = |error: std::io::Error| UpgradeFailure {
            message: format!("{}: {error}", program.path().display()),
            said: Vec::new(),
        };
        let (channel, theirs) = Channel::pair().map_err(unstarted)?;
        let mut child = program.start_successor(theirs).map_err(unstarted)?;
        let said = LastLines::read(child.stderr.take());
        let mut starting = Self {
            child: Some(child),
            channel: Some(channel),
            said,
            deadline,
            bound,
        };
        match starting.offer(files) {
            Ok(()) => Ok(starting),
            Err(why) => Err(starting.fail(why)),
        }
    }

    /// Passes the state. Returns the pair, over which the two processes ask each other from here on.
    ///
    /// Errors: in words, for [`Self::fail`].
    pub fn pass_state(&mut self, parts: &[StatePart]) -> Result<UnixStream, String> {
        for (name, bytes) in parts {
            let name = name.clone();
            self.send(&Message::State { name }, bytes)?;
        }
        self.send(&Message::StateEnd, &[])?;
        let channel = self.channel.take();
        channel
            .map(Channel::into_stream)
            .ok_or_else(|| "the state was passed before".to_owned())
    }

    /// Returns how long it may still take.
    pub fn time_left(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    /// Leaves the process alone, because it serves. Returns its id.
    pub fn release(mut self) -> u32 {
        self.child.take().map_or(0, |child| child.id())
    }

    /// Ends the process. Returns the reason with what it has said.
    pub fn fail(mut self, why: String) -> UpgradeFailure {
        // It sees the end of the pair, and ends by itself.
        self.channel = None;
        let message = match &mut self.child {
            Some(child) => end(child, why),
            None => why,
        };
        UpgradeFailure {
            message,
            said: self.said.lines(),
        }
    }

    /// Returns the reason for which it is not ready.
    pub fn describe(&self, reason: &str) -> String {
        match self.time_left().is_zero() {
            true => format!(
                "the new process was not ready within {} s",
                self.bound.as_secs_f32()
            ),
            false => format!("the new process has ended before it was ready ({reason})"),
        }
    }

    /// Errors: in words.
    fn offer(&mut self, files: &OfferedFiles<'_>) -> Result<(), String> {
        let (names, files): (Vec<&str>, Vec<BorrowedFd<'_>>) = files.iter().copied().unzip();
        let sent = self
            .channel
            .as_ref()
            .map(|channel| channel.send_files(&files));
        sent.transpose()
            .map_err(|error| self.describe(&error.to_string()))?;
        let offer = Message::Offer {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            files: names.into_iter().map(str::to_owned).collect(),
        };
        self.send(&offer, &[])?;
        let deadline = self.deadline;
        match self
            .channel
            .as_mut()
            .map(|channel| channel.receive(deadline))
        {
            Some(Ok((Message::Loaded, _))) => Ok(()),
            Some(Ok((message, _))) => Err(format!("the new process says {message:?} out of turn")),
            Some(Err(error)) => Err(self.describe(&error.to_string())),
            None => Err("the state was passed before".to_owned()),
        }
    }

    fn send(&mut self, message: &Message, body: &[u8]) -> Result<(), String> {
        let deadline = self.deadline;
        let channel = self.channel.as_mut();
        let sent = channel.map(|channel| channel.send(message, body, deadline));
        sent.transpose()
            .map(|_| ())
            .map_err(|error| self.describe(&error.to_string()))
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child
            && matches!(child.try_wait(), Ok(None))
        {
            _ = child.kill();
            _ = child.wait();
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
struct LastLines {
    lines: Arc<Mutex<Vec<String>>>,
    /// Its sender is dropped once all lines are read.
    reading: mpsc::Receiver<()>,
}

impl LastLines {
    /// Reads until the child, or what it has started, closes it.
    fn read(stderr: Option<ChildStderr>) -> Self {
        let (until_end, reading) = mpsc::channel();
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let kept = Arc::clone(&lines);
        let read = move || {
            let _until_end: mpsc::Sender<()> = until_end;
            let Some(stderr) = stderr else { return };
            let mut reader = BufReader::new(stderr);
            let mut line = Vec::new();
            while (&mut reader)
                .take(MAX_LINE_BYTES)
                .read_until(b'\n', &mut line)
                .is_ok_and(|it| it > 0)
            {
                keep(&kept, String::from_utf8_lossy(&line).trim_end().to_owned());
                line.clear();
            }
        };
        // Without the thread a failed start is reported without its reason.
        _ = std::thread::Builder::new()
            .name("successor".to_owned())
            .spawn(read);
        Self { lines, reading }
    }

    /// Returns the last lines of a child that has ended.
    fn lines(&self) -> Vec<String> {
        // Something else may have the child's end of the pipe, so the wait is short.
        _ = self.reading.recv_timeout(LAST_WORDS_TIMEOUT);
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.clone()
    }
}

/// Shows a line on our stderr, and keeps it in place of the oldest one.
fn keep(lines: &Mutex<Vec<String>>, line: String) {
    use std::io::Write;
    _ = writeln!(std::io::stderr(), "{line}");
    let mut lines = lines.lock().unwrap_or_else(PoisonError::into_inner);
    if lines.len() == MAX_LINES {
        lines.remove(0);
    }
    lines.push(line);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use std::os::unix::fs::PermissionsExt;
    use std::path::Path;

    use super::*;

    fn script(folder: &Path, lines: &str) -> Program {
        let path = folder.join("program");
        std::fs::write(&path, format!("#!/bin/sh\n{lines}\n")).unwrap();
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        Program::at(path)
    }

    fn failure(lines: &str, bound_ms: u64) -> UpgradeFailure {
        let folder = tempfile::tempdir().unwrap();
        let program = script(folder.path(), lines);
        let bound = Duration::from_millis(bound_ms);
        Successor::start(&program, &[], bound).err().unwrap()
    }

    #[test]
    fn one_that_ends_is_quoted_with_its_status() {
        let failed = failure("echo first >&2; echo last >&2; exit 3", 20_000);
        assert!(failed.message.contains("exit status: 3"), "{failed:?}");
        assert_eq!(failed.said, ["first", "last"]);
    }

    #[test]
    fn one_that_hangs_is_killed_at_the_bound() {
        let started = Instant::now();
        let failed = failure("echo waiting >&2; exec sleep 60", 1_000);
        assert!(started.elapsed() < Duration::from_secs(20));
        assert!(
            failed.message.contains("not ready within 1 s"),
            "{failed:?}"
        );
        assert!(failed.message.contains("killed"), "{failed:?}");
        assert_eq!(failed.said, ["waiting"]);
    }

    #[test]
    fn one_that_says_something_else_is_given_up() {
        let garbage = "printf 'HTTP/1.1 200 OK\\r\\n\\r\\n' >&0; exec sleep 60";
        let failed = failure(garbage, 20_000);
        assert!(
            failed.message.contains("no message of a handover"),
            "{failed:?}"
        );
        let much = "i=0; while [ $i -lt 200 ]; do echo line $i >&2; i=$((i+1)); done; exit 1";
        let failed = failure(much, 20_000);
        assert_eq!(failed.said.len(), MAX_LINES);
        assert_eq!(failed.said.last().map(String::as_str), Some("line 199"));
    }

    #[test]
    fn one_that_cannot_be_executed_is_named() {
        let program = Program::at("/nowhere/weirgate".into());
        let failed = Successor::start(&program, &[], Duration::from_secs(1));
        let failed = failed.err().unwrap();
        assert!(
            failed.message.starts_with("/nowhere/weirgate: "),
            "{failed:?}"
        );
    }
}
