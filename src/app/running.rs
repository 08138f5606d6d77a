//! A running gateway: stopping it and waiting for its end.

use std::net::SocketAddr;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use pingora::server::{ShutdownSignal, ShutdownSignalWatch};
use tokio::runtime::{Handle, Runtime};
use tokio::sync::watch;

use super::handover::predecessor::ConnectedPredecessor;
use super::reload::Reloader;
use crate::app::state::AppState;
use crate::control::server::ControlSocket;
use crate::decisions::events::queue;
use crate::log_export::CLOSE_TIMEOUT;
use crate::redis::Heartbeat;
use crate::store::{FirstRun, Store, StoreLock};

/// The time limit for closing the store's file properly.
const STORE_CLOSE_TIMEOUT: Duration = Duration::from_secs(1);
/// The maximum time of a shutdown. Pingora, the ledger and the background services have their own limits, whose sum
/// is less.
const SHUTDOWN_TIMEOUT: Duration = queue::DRAIN_TIMEOUT
    .saturating_add(CLOSE_TIMEOUT)
    .saturating_add(Duration::from_secs(5));

/// A running gateway.
pub struct Running {
    /// The generation that the start built. Reloads make others: [`Reloader::app`].
    pub app: Arc<AppState>,
    pub reloader: Arc<Reloader>,
    pub public: SocketAddr,
    pub admin: SocketAddr,
    /// The organization and key that the first start created.
    pub first_run: Option<FirstRun>,
    pub(super) stop: watch::Sender<StopMode>,
    pub(super) server: Option<JoinHandle<()>>,
    pub(super) runtime: Option<BackgroundRuntime>,
    /// The process whose place this one takes.
    pub(super) predecessor: Option<ConnectedPredecessor>,
    /// The socket of commands, until they are served.
    pub(super) control: Option<ControlSocket>,
}

/// The runtime of the background services.
pub(super) struct BackgroundRuntime {
    pub(super) runtime: Runtime,
    pub(super) console: Runtime,
    pub(super) stop: watch::Sender<bool>,
    /// Keeps the connection to Redis alive.
    pub(super) heartbeats: Vec<Heartbeat>,
    pub(super) store: Store,
    /// Keeps other servers from using the store.
    pub(super) store_lock: Option<StoreLock>,
}

impl BackgroundRuntime {
    /// Stops the services, each before the ones that it needs.
    fn end(self, dispatching: Vec<tokio::task::JoinHandle<()>>) {
        self.console.shutdown_background();
        // The events of decisions are sent first.
        for dispatching in dispatching {
            _ = self.runtime.block_on(dispatching);
        }
        self.runtime.block_on(close(&self.store));
        drop(self.store_lock);
        self.runtime.shutdown_timeout(Duration::from_millis(200));
        for heartbeat in self.heartbeats {
            heartbeat.stop();
        }
    }
}

/// Closes the store's file properly, and its connections.
async fn close(store: &Store) {
    let closed = tokio::time::timeout(STORE_CLOSE_TIMEOUT, async {
        let whole = store.checkpoint().await;
        store.close().await;
        whole
    });
    match closed.await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => log::warn!("a part of the store stays in its write-ahead log: {error}"),
        Err(_) => log::warn!("a part of the store stays in its write-ahead log: it is busy"),
    }
}

/// The way in which a gateway is stopped.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StopMode {
    No,
    /// Close the listeners. Running requests may end within the grace period.
    Gracefully,
    /// Stop at once.
    Now,
}

/// Passes the stop mode of [`Running`] to Pingora.
pub(super) struct ShutdownChannel(pub(super) tokio::sync::Mutex<watch::Receiver<StopMode>>);

#[async_trait]
impl ShutdownSignalWatch for ShutdownChannel {
    async fn recv(&self) -> ShutdownSignal {
        let mut stop_mode = self.0.lock().await;
        let requested = stop_mode
            .wait_for(|mode| *mode != StopMode::No)
            .await
            .map_or(StopMode::Now, |mode| *mode);
        match requested {
            StopMode::Gracefully => ShutdownSignal::GracefulTerminate,
            StopMode::No | StopMode::Now => ShutdownSignal::FastShutdown,
        }
    }
}

impl Running {
    /// Asks the gateway to stop.
    pub fn stop(&self, mode: StopMode) {
        self.fail_readiness();
        self.reloader.close_public();
        self.stop.send_replace(mode);
    }

    /// Fails `/readyz`, so that load balancers look elsewhere.
    pub(super) fn fail_readiness(&self) {
        self.app.proxy.is_serving.store(false, Ordering::Relaxed);
    }

    /// Returns the runtime of the background services.
    pub(super) fn background(&self) -> Option<&Handle> {
        self.runtime.as_ref().map(|it| it.runtime.handle())
    }

    /// Returns another handle of the lock of a SQLite store.
    ///
    /// Errors: the operating system's.
    pub(super) fn store_lock(&self) -> std::io::Result<Option<OwnedFd>> {
        let lock = self.runtime.as_ref().and_then(|it| it.store_lock.as_ref());
        lock.map(|lock| lock.as_fd().try_clone_to_owned())
            .transpose()
    }

    /// Writes this process into the lock of a SQLite store, as the one that serves.
    pub(super) fn name_store_holder(&mut self) {
        let lock = self.runtime.as_mut().and_then(|it| it.store_lock.as_mut());
        if let Some(Err(error)) = lock.map(StoreLock::name_holder) {
            log::warn!("the lock of the store names another process: {error}");
        }
    }

    /// Ends the background services. The ledger writes the costs of calls. Events of decisions are sent for some
    /// seconds, and the rest stays on disk; so are lines of the log export. The heartbeat signs off from Redis. Running requests can no longer add
    /// anything.
    pub fn end(&mut self) {
        self.end_after(None);
    }

    fn end_after(&mut self, server: Option<JoinHandle<()>>) {
        let runtime = self.runtime.take();
        if let Some(runtime) = &runtime {
            runtime.stop.send_replace(true);
        }
        let ledger = Arc::clone(&self.app.ledger);
        let log_export = Arc::clone(&self.app.proxy.log_export);
        let dispatching = self.reloader.stop();
        let (ended, wait) = mpsc::channel();
        // The wait for Pingora has a limit, so that a failing test does not hang.
        std::thread::spawn(move || {
            if let Some(server) = server {
                _ = server.join();
            }
            ledger.close();
            // Its requests run on the runtime.
            log_export.close();
            if let Some(runtime) = runtime {
                runtime.end(dispatching);
            }
            _ = ended.send(());
        });
        _ = wait.recv_timeout(SHUTDOWN_TIMEOUT);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop(StopMode::Now);
        let server = self.server.take();
        self.end_after(server);
    }
}
