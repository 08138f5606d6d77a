//! The running process, as the new one sees it, and all that is inherited from it.

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_type;
use rustix::stdio::{dup2_stderr, dup2_stdin};

use super::channel::{Channel, Message};
use super::inherited::InheritedListeners;
use super::successor::StatePart;

/// The name of the lock of the store among passed files.
pub const STORE_LOCK: &str = "store.lock";
/// The name of the predecessor's stderr among passed files.
pub const STDERR: &str = "stderr";
/// How long the predecessor may take for each step. It kills a successor that takes longer than its own bound.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);

/// What a starting process has from another one.
#[derive(Default)]
pub struct Inheritance {
    pub listeners: InheritedListeners,
    /// The lock of a SQLite store, which both processes hold for a while.
    pub store_lock: Option<File>,
    /// The process to which this one is the successor.
    pub predecessor: Option<Predecessor>,
}

/// The process whose place this one takes.
pub struct Predecessor {
    /// Its process id.
    pub pid: u32,
    channel: Channel,
    /// Its stderr, which becomes ours once it no longer reports what we say.
    stderr: Option<OwnedFd>,
}

impl Inheritance {
    /// Takes the listeners of a service manager. Call it before the process has other threads.
    pub fn from_service_manager() -> Self {
        Self {
            listeners: InheritedListeners::from_service_manager(),
            ..Self::default()
        }
    }

    /// Takes what the predecessor passes over the standard input.
    ///
    /// Errors: the standard input is no socket of a running process.
    pub fn from_predecessor() -> io::Result<Self> {
        let stdin = io::stdin().as_fd().try_clone_to_owned()?;
        socket_type(&stdin)?;
        // Children of this process, and their successors, must not keep the pair open.
        dup2_stdin(File::open("/dev/null")?)?;
        let mut channel = Channel::from_fd(stdin);
        let deadline = Instant::now() + STEP_TIMEOUT;
        let passed = channel.receive_files(deadline)?;
        let (
            Message::Offer {
                version,
                pid,
                files,
            },
            _,
        ) = channel.receive(deadline)?
        else {
            return Err(io::Error::other("the running process offers nothing"));
        };
        log::info!("this process takes the place of process {pid}, version {version}");
        let mut inheritance = Self::default();
        let mut stderr = None;
        for (name, file) in files.iter().zip(passed) {
            match name.as_str() {
                STORE_LOCK => inheritance.store_lock = Some(File::from(file)),
                STDERR => stderr = Some(file),
                name => inheritance.listeners.add(name, TcpListener::from(file))?,
            }
        }
        inheritance.predecessor = Some(Predecessor {
            pid,
            channel,
            stderr,
        });
        Ok(inheritance)
    }
}

impl Predecessor {
    /// Says that everything is loaded, and returns the predecessor's state.
    ///
    /// Errors: it is gone, or has given this process up.
    pub fn take_state(&mut self) -> io::Result<Vec<StatePart>> {
        let deadline = Instant::now() + STEP_TIMEOUT;
        self.channel.send(&Message::Loaded, &[], deadline)?;
        let mut parts = Vec::new();
        loop {
            match self.channel.receive(deadline)? {
                (Message::State { name }, bytes) => parts.push((name, bytes)),
                (Message::StateEnd, _) => return Ok(parts),
                (other, _) => {
                    let message = format!("the running process says {other:?} out of turn");
                    return Err(io::Error::other(message));
                }
            }
        }
    }

    /// Says that this process serves, so that the predecessor stops. Returns the pair, whose other end closes when the
    /// predecessor has ended.
    ///
    /// Errors: it is gone, or has given this process up.
    pub fn replace(mut self) -> io::Result<UnixStream> {
        if let Some(stderr) = self.stderr.take() {
            dup2_stderr(stderr)?;
        }
        let deadline = Instant::now() + STEP_TIMEOUT;
        self.channel.send(&Message::Ready, &[], deadline)?;
        Ok(self.channel.into_stream())
    }
}
