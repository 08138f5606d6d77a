//! An upgrade in place, as the running process does it: `weirgate upgrade`.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;

use super::drain::Event;
use super::handover::peer::Peer;
use super::handover::predecessor::{STDERR, STORE_LOCK};
use super::handover::program::Program;
use super::handover::successor::{START_TIMEOUT, StatePart, Successor, UpgradeFailure};
use super::passed_state;
use super::reload::Reloader;
use super::state::AppState;
use crate::control::ControlReply;

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
            .filter(|(_, peer)| !peer.has_ended())
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
        let app = self.reloader.app();
        let (there, peer) = watch::channel(None);
        let passed = passed_state::pass_on(&app, &peer);
        match self.connect(&mut successor, (&passed, &there), &app) {
            Ok(peer) => {
                let pid = successor.release();
                _ = self.events.send(Event::HandedOver { pid, peer });
                Ok(pid)
            }
            Err(why) => {
                passed_state::keep(&app);
                app.ledger.end_sharing();
                Err(successor.fail(why))
            }
        }
    }

    /// Passes the state, and waits until the new process serves.
    ///
    /// Errors: in words.
    fn connect(
        &self,
        successor: &mut Successor,
        (passed, there): (&[StatePart], &watch::Sender<Option<Arc<Peer>>>),
        app: &Arc<AppState>,
    ) -> Result<Arc<Peer>, String> {
        let stream = successor.pass_state(passed)?;
        let answer = passed_state::answer_peer(app);
        let peer = Peer::start(&self.background, stream, answer);
        let peer = peer.map_err(|error| error.to_string())?;
        there.send_replace(Some(Arc::clone(&peer)));
        passed_state::share_store(&app.ledger, &peer);
        let returning = self
            .background
            .spawn(Arc::clone(&app.ledger).return_unused());
        if self.wait_until_ready(&peer, successor.time_left()) {
            return Ok(peer);
        }
        returning.abort();
        Err(successor.describe("it has closed its end"))
    }

    fn wait_until_ready(&self, peer: &Peer, bound: Duration) -> bool {
        let ready = async { tokio::time::timeout(bound, peer.ready()).await };
        self.background.block_on(ready).unwrap_or(false)
    }
}
