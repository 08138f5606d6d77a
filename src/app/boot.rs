//! Starts a gateway from a configuration.
//!
//! Everything that can fail at start fails here, before the first request: listeners, store, catalogue.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

use tokio::runtime::Handle;
use tokio::sync::watch;

use super::generation::{Generation, catalog};
use super::handover::predecessor::{ConnectedPredecessor, Inheritance, Predecessor};
use super::listeners::BoundListeners;
use super::open_store::{self, open, store_failed};
use super::passed_state;
use super::process::ProcessServices;
use super::reload::{Reloadable, Reloader};
use super::running::{BackgroundRuntime, Running, StopMode};
use super::sandboxes::Sandboxes;
use super::state::AppState;
use super::status::{self, Started};
use super::{background, commands, config_watch};
use crate::admin::{Admin, AdminView};
use crate::config::{Config, LoadedConfig};
use crate::console::Console;
use crate::control::server::ControlSocket;
use crate::proxy::state::CurrentState;
use crate::store::StoreLock;
use crate::telemetry::logging::AccessLog;
use crate::telemetry::metrics::Metrics;

/// The reason for which the gateway did not start.
#[derive(Debug)]
pub struct BootError {
    /// The message for the operator.
    pub message: String,
    /// Whether the configuration has to change.
    pub is_configuration: bool,
}

impl std::fmt::Display for BootError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for BootError {}

/// Returns the error of a part that failed.
pub(super) fn failed(what: &str, error: impl std::fmt::Display) -> BootError {
    BootError {
        message: format!("{what}: {error}"),
        is_configuration: false,
    }
}

/// Returns an error that the operator can fix in the configuration.
pub(super) fn misconfigured(message: String) -> BootError {
    BootError {
        message,
        is_configuration: true,
    }
}

/// Starts a gateway.
///
/// Errors: an address is not available, the catalogue is invalid, or the store cannot be opened.
pub fn boot(
    loaded: LoadedConfig,
    access_log: impl FnOnce(&Metrics) -> std::io::Result<AccessLog>,
) -> Result<Running, BootError> {
    boot_with(loaded, Inheritance::default(), access_log)
}

/// Starts a gateway with what it has from another process.
///
/// Errors: as [`boot`], or the predecessor is gone.
pub(super) fn boot_with(
    mut loaded: LoadedConfig,
    mut inheritance: Inheritance,
    access_log: impl FnOnce(&Metrics) -> std::io::Result<AccessLog>,
) -> Result<Running, BootError> {
    // They come first: a failed start must not create a key that it cannot show afterwards.
    let Claims {
        listeners,
        lock,
        control,
    } = Claims::claim(&loaded.config, &mut inheritance)?;
    let (public, admin) = (listeners.public_address, listeners.admin_address);
    let catalog = catalog(&loaded.config)?;
    let (runtime, console) = (background::runtime()?, background::console_runtime()?);
    let background = runtime.handle().clone();
    let metrics = Arc::new(Metrics::new().map_err(|error| failed("metrics", error))?);
    let access_log = access_log(&metrics).map_err(|error| failed("starting the log", error))?;
    let (stop_runtime, stopped) = watch::channel(false);
    let mut sandboxes = Sandboxes::default();
    sandboxes.serve(&mut loaded.config, &background, &stopped)?;
    let opening = open(&loaded.config, (sandboxes.has_provider(), lock), &metrics);
    let opened = runtime.block_on(opening);
    let opened = opened.map_err(|error| store_failed(&error))?;
    let logs = (metrics, access_log);
    let (process, heartbeats) = ProcessServices::start(&loaded.config, &opened, logs, &background)?;
    let generation = Generation::build(loaded, catalog, &process, None)?;
    let app = Arc::clone(&generation.app);
    // Nothing works on the store before this process knows what its predecessor knows.
    let predecessor = inheritance
        .predecessor
        .map(|it| succeed(it, &app, &background));
    let predecessor = predecessor.transpose()?;
    let following = background.spawn(opened.late.follow(stopped.clone()));
    app.proxy.tasks.watch_task("accounts", &following);
    let store = process.store.clone();
    let process = (process, console.handle());
    let (reloader, server, stop) =
        serve_first(generation, (listeners, sandboxes), process, &stopped)?;
    runtime.spawn(config_watch::run(Arc::clone(&reloader), stopped));
    Ok(Running {
        app,
        reloader,
        public,
        admin,
        first_run: opened.first_run,
        stop,
        server: Some(server),
        runtime: Some(BackgroundRuntime {
            runtime,
            console,
            stop: stop_runtime,
            heartbeats,
            store,
            store_lock: opened.lock,
        }),
        predecessor,
        control,
    })
}

/// What a start takes before it builds anything.
struct Claims {
    listeners: BoundListeners,
    lock: Option<StoreLock>,
    control: Option<ControlSocket>,
}

impl Claims {
    /// Errors: an address, the store or the socket of commands is another process's.
    fn claim(config: &Config, inheritance: &mut Inheritance) -> Result<Self, BootError> {
        let listeners = BoundListeners::bind(config, &mut inheritance.listeners)?;
        let lock = open_store::lock(config, inheritance.store_lock.take())?;
        let control = inheritance.control_path.as_ref();
        let control = control.map(|path| commands::bind(path, false)).transpose();
        let control = control.map_err(|error| failed("server.upgrade_socket", error))?;
        Ok(Self {
            listeners,
            lock,
            control: control.flatten(),
        })
    }
}

/// What reloads a first generation, the thread that serves it, and what stops that.
type FirstServed = (Arc<Reloader>, JoinHandle<()>, watch::Sender<StopMode>);

/// Starts the background tasks of the first generation, and serves it.
fn serve_first(
    mut generation: Generation,
    (bound, sandboxes): (BoundListeners, Sandboxes),
    (process, console): (ProcessServices, &Handle),
    stopped: &watch::Receiver<bool>,
) -> Result<FirstServed, BootError> {
    let background = process.background.clone();
    let (settings, dispatching) = generation.start(&background, stopped);
    let console = Console::new(
        process.store.clone(),
        (background.clone(), console.clone()),
        generation.console(),
    );
    let console = console.map_err(|error| failed("the console", format!("{error:?}")))?;
    let console = Arc::new(console);
    let (stop, stop_mode) = watch::channel(StopMode::No);
    let current = CurrentState::new(Arc::clone(&generation.app.proxy));
    let view = AdminView::new(settings);
    let config = &generation.loaded.config;
    let admin = Admin::new(&current, &view, Arc::clone(&console));
    let (listeners, server) = bound.serve(config, (&current, admin), background, stop_mode)?;
    generation
        .app
        .proxy
        .is_serving
        .store(true, Ordering::Relaxed);
    let hash = process.config_hash(&generation.loaded);
    process.metrics.reloads.start(&hash, jiff::Timestamp::now());
    let parts = Reloadable {
        generation,
        sandboxes,
        dispatching,
        current,
        view,
        console: Arc::clone(&console),
        listeners,
    };
    let reloader = Arc::new(Reloader::new(process, parts, stopped.clone()));
    let (weak, started) = (Arc::downgrade(&reloader), Started::now());
    console.set_status(move || {
        let reloader = weak.upgrade()?;
        Some(status::gather(&reloader, started))
    });
    Ok((reloader, server, stop))
}

/// Takes in the state of the predecessor, and shares the store with it until it has ended.
///
/// Errors: it is gone, or has given this process up.
fn succeed(
    mut predecessor: Predecessor,
    app: &Arc<AppState>,
    background: &Handle,
) -> Result<ConnectedPredecessor, BootError> {
    let gone = |error: std::io::Error| failed("the running process", error);
    let parts = predecessor.take_state().map_err(gone)?;
    passed_state::take_in(app, parts);
    let answer = passed_state::answer_peer(app);
    let connected = predecessor.connect(background, answer).map_err(gone)?;
    passed_state::share_store(&app.ledger, &connected.peer);
    let (ledger, peer, pid) = (
        Arc::clone(&app.ledger),
        Arc::clone(&connected.peer),
        connected.pid,
    );
    background.spawn(async move {
        peer.gone().await;
        ledger.end_sharing();
        log::info!("process {pid} has ended, whose place this one took");
    });
    Ok(connected)
}
