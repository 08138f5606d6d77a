//! A gateway that listens: how it is asked to stop, and how it ends.

use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use async_trait::async_trait;
use pingora::server::{ShutdownSignal, ShutdownSignalWatch};
use tokio::runtime::Runtime;
use tokio::sync::watch;

use crate::app::state::AppState;
use crate::decisions::events::queue;
use crate::redis::Heartbeat;
use crate::store::FirstRun;

/// The most that an end may take: Pingora's, the ledger's and the one of what no request waits for have limits of their
/// own, which add up to less.
const SHUTDOWN_TIMEOUT: Duration = queue::DRAIN_TIMEOUT.saturating_add(Duration::from_secs(5));

/// A gateway that listens.
pub struct Running {
    /// Its parts.
    pub app: AppState,
    /// The public listener.
    pub public: SocketAddr,
    /// The operator's listener.
    pub admin: SocketAddr,
    /// What the first start made.
    pub first_run: Option<FirstRun>,
    pub(super) stop: watch::Sender<StopMode>,
    pub(super) server: Option<JoinHandle<()>>,
    pub(super) runtime: Option<BackgroundRuntime>,
}

/// What no request waits for.
pub(super) struct BackgroundRuntime {
    pub(super) runtime: Runtime,
    pub(super) stop: watch::Sender<bool>,
    /// Sends what decisions have to tell.
    pub(super) dispatching: Option<tokio::task::JoinHandle<()>>,
    /// Holds the connection to what is shared.
    pub(super) heartbeat: Option<Heartbeat>,
}

impl BackgroundRuntime {
    /// Ends them, in an order in which each has what it needs.
    fn end(self) {
        // What decisions have to tell goes out before the end.
        if let Some(dispatching) = self.dispatching {
            _ = self.runtime.block_on(dispatching);
        }
        self.runtime.shutdown_timeout(Duration::from_millis(200));
        if let Some(heartbeat) = self.heartbeat {
            heartbeat.stop();
        }
    }
}

/// How a gateway is asked to stop.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum StopMode {
    /// Not at all.
    No,
    /// Listeners close; what runs may end within the grace period.
    Gracefully,
    /// At once.
    Now,
}

/// Hands what was asked of [`Running`] on to Pingora.
pub(super) struct ShutdownChannel(pub(super) tokio::sync::Mutex<watch::Receiver<StopMode>>);

#[async_trait]
impl ShutdownSignalWatch for ShutdownChannel {
    async fn recv(&self) -> ShutdownSignal {
        let mut asked = self.0.lock().await;
        let stop = asked
            .wait_for(|stop| *stop != StopMode::No)
            .await
            .map_or(StopMode::Now, |stop| *stop);
        match stop {
            StopMode::Gracefully => ShutdownSignal::GracefulTerminate,
            StopMode::No | StopMode::Now => ShutdownSignal::FastShutdown,
        }
    }
}

impl Running {
    /// Asks it to stop.
    pub fn stop(&self, stop: StopMode) {
        self.app.proxy.is_serving.store(false, Ordering::Relaxed);
        self.stop.send_replace(stop);
    }

    /// Ends what no request waits for: what calls cost is written down, what decisions have to tell is sent for some
    /// seconds and the rest is on disk, and other processes are told goodbye. Nothing that requests which still run have
    /// to tell is taken any more.
    pub fn end(&mut self) {
        self.end_after(None);
    }

    fn end_after(&mut self, server: Option<JoinHandle<()>>) {
        let runtime = self.runtime.take();
        if let Some(runtime) = &runtime {
            runtime.stop.send_replace(true);
        }
        let ledger = Arc::clone(&self.app.ledger);
        let (ended, wait) = mpsc::channel();
        // Pingora's end may not be waited for without a limit: a test that fails must not hang.
        std::thread::spawn(move || {
            if let Some(server) = server {
                _ = server.join();
            }
            ledger.close();
            if let Some(runtime) = runtime {
                runtime.end();
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
