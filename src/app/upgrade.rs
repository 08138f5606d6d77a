//! An upgrade in place, as the running process does it: `weirgate upgrade`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use futures::FutureExt;
use tokio::runtime::Handle;

use super::drain::Event;
use super::handover::peer::{AnswerPeer, Peer};
use super::handover::predecessor::{STDERR, STORE_LOCK};
use super::handover::program::Program;
use super::handover::successor::{START_TIMEOUT, Successor, UpgradeFailure};
use super::reload::Reloader;
use crate::control::ControlReply;
use crate::ledger::Ledger;

/// What the two processes tell each other about leases of credit and limits.
const LEASES: &str = "leases";

/// Starts the next process and hands over to it, once.
pub(super) struct Upgrade {
    pub(super) program: io::Result<Program>,
    pub(super) reloader: Arc<Reloader>,
    /// The lock of a SQLite store.
    pub(super) store_lock: Option<OwnedFd>,
    pub(super) background: Handle,
    /// The process whose place this one took.
    pub(super) predecessor: Option<(u32, Arc<Peer>)>,
    /// Tells the main thread that the next process serves.
    pub(super) events: mpsc::Sender<Event>,
    pub(super) is_running: AtomicBool,
}

impl Upgrade {
    /// Hands over to a new process. Blocks until that one serves, or runs no more.
    pub(super) fn run(&self) -> ControlReply {
        if let Some((pid, _)) = self
            .predecessor
            .as_ref()
            .filter(|(_, peer)| !peer.is_gone())
        {
            return ControlReply::failed(format!(
                "the process before this one, {pid}, still ends what it serves: upgrade again after that, or end it at once with `kill {pid}`"
            ));
        }
        if self.is_running.swap(true, Ordering::Relaxed) {
            return ControlReply::failed("an upgrade runs already: it ends within a minute");
        }
        // A reload that runs is waited for, and none begins until this is over.
        let pause = self.reloader.pause();
        match self.hand_over() {
            Ok(pid) => {
                pause.keep();
                ControlReply::done(format!(
                    "process {pid} serves; process {} ends what it serves",
                    std::process::id()
                ))
            }
            Err(UpgradeFailure { message, said }) => {
                self.is_running.store(false, Ordering::Relaxed);
                let ours = std::process::id();
                log::error!("the upgrade has failed, process {ours} serves on: {message}");
                said.iter()
                    .for_each(|line| log::error!("the new process: {line}"));
                ControlReply {
                    problems: said,
                    ..ControlReply::failed(format!("{message}. Process {ours} serves on"))
                }
            }
        }
    }

    /// Returns the id of the process that serves now.
    fn hand_over(&self) -> Result<u32, UpgradeFailure> {
        let failed = |error: &io::Error| UpgradeFailure {
            message: error.to_string(),
            said: Vec::new(),
        };
        let program = self.program.as_ref().map_err(failed)?;
        let sockets = self.reloader.sockets().map_err(|error| failed(&error))?;
        let stderr = io::stderr();
        let lock = self.store_lock.as_ref();
        let files: Vec<_> = sockets
            .iter()
            .map(|(key, socket)| (*key, socket.as_fd()))
            .chain(lock.map(|lock| (STORE_LOCK, lock.as_fd())))
            .chain([(STDERR, stderr.as_fd())])
            .collect();
        let mut successor = Successor::start(program, &files, START_TIMEOUT)?;
        let stream = match successor.pass_state(&[]) {
            Ok(stream) => stream,
            Err(why) => return Err(successor.fail(why)),
        };
        let ledger = Arc::clone(&self.reloader.app().ledger);
        let answer = answer_peer(Arc::clone(&ledger));
        let peer = match Peer::start(&self.background, stream, answer) {
            Ok(peer) => peer,
            Err(error) => return Err(successor.fail(error.to_string())),
        };
        share_store(&ledger, &peer);
        let returning = self.background.spawn(Arc::clone(&ledger).return_unused());
        if !self.wait_until_ready(&peer, successor.time_left()) {
            returning.abort();
            ledger.end_sharing();
            let why = successor.describe("it has closed its end");
            return Err(successor.fail(why));
        }
        let pid = successor.release();
        _ = self.events.send(Event::HandedOver { pid, peer });
        Ok(pid)
    }

    fn wait_until_ready(&self, peer: &Peer, bound: Duration) -> bool {
        let ready = async { tokio::time::timeout(bound, peer.ready()).await };
        self.background.block_on(ready).unwrap_or(false)
    }
}

/// Begins to share the store with the other process.
pub(super) fn share_store(ledger: &Ledger, peer: &Arc<Peer>) {
    let peer = Arc::downgrade(peer);
    ledger.begin_sharing(move |text| {
        if let Some(peer) = peer.upgrade() {
            peer.tell(LEASES, text.as_bytes());
        }
    });
}

/// Answers the other process.
pub(super) fn answer_peer(ledger: Arc<Ledger>) -> Arc<AnswerPeer> {
    Arc::new(move |about: &str, body: Vec<u8>| {
        if about == LEASES
            && let Ok(text) = std::str::from_utf8(&body)
        {
            ledger.hear_peer(text);
        }
        async { Vec::new() }.boxed()
    })
}
