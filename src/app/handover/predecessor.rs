//! The running process, as the new one sees it, and all that is inherited from it.

use std::fs::File;
use std::io;
use std::net::TcpListener;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::net::sockopt::socket_type;
use rustix::stdio::{dup2_stderr, dup2_stdin};
use tokio::runtime::Handle;

use super::channel::{Channel, Message};
use super::inherited::InheritedListeners;
use super::peer::{AnswerPeer, Peer};
use super::successor::StatePart;

/// The name of the lock of the store among passed files.
pub const STORE_LOCK: &str = "store.lock";
/// The name of the predecessor's stderr among passed files.
pub const STDERR: &str = "stderr";
/// How long the predecessor may take for each step. It kills a successor that takes longer than its own bound.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);

/// What a starting process has from another one, and where it is reached.
#[derive(Default)]
pub struct Inheritance {
    pub listeners: InheritedListeners,
    /// The lock of a SQLite store, which both processes hold for a while.
    pub store_lock: Option<File>,
    /// The process to which this one is the successor.
    pub predecessor: Option<Predecessor>,
    /// Where to bind the socket of commands; `None`: nowhere, or later, because the predecessor still has it.
    pub control_path: Option<PathBuf>,
}

/// The process whose place this one takes.
pub struct Predecessor {
    /// Its process id.
    pub pid: u32,
    /// Its version.
    pub version: String,
    channel: Channel,
    /// Its stderr, which becomes ours once it no longer reports what we say.
    stderr: Option<OwnedFd>,
}

/// Returns whether a running process has started this one: the standard input is a socket.
pub fn is_offered() -> bool {
    socket_type(io::stdin().as_fd()).is_ok()
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
            version,
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

    /// Lets the two processes ask each other from here on.
    ///
    /// Errors: the operating system's.
    pub fn connect(
        self,
        runtime: &Handle,
        answer: Arc<AnswerPeer>,
    ) -> io::Result<ConnectedPredecessor> {
        Ok(ConnectedPredecessor {
            pid: self.pid,
            version: self.version,
            peer: Peer::start(runtime, self.channel.into_stream(), answer)?,
            stderr: self.stderr,
        })
    }
}

/// The predecessor, once this process has its state.
pub struct ConnectedPredecessor {
    pub pid: u32,
    pub version: String,
    pub peer: Arc<Peer>,
    stderr: Option<OwnedFd>,
}

impl ConnectedPredecessor {
    /// Says that this process serves, so that the predecessor stops.
    ///
    /// Errors: its stderr cannot be ours.
    pub fn replace(&mut self) -> io::Result<()> {
        if let Some(stderr) = self.stderr.take() {
            dup2_stderr(stderr)?;
        }
        self.peer.say_ready();
        Ok(())
    }
}
