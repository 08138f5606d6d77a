//! Reloads the configuration while requests run.
//!
//! The new configuration is checked whole, and all that can fail is built before anything changes. Then new requests get
//! the new generation. Running requests, streams and connections stay as they are.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::boot::BootError;
use super::generation::{self, Generation};
use super::listeners::Listeners;
use super::process::ProcessServices;
use super::sandboxes::Sandboxes;
use super::state::AppState;
use crate::admin::AdminView;
use crate::config::{self, ConfigChanges, LoadedConfig, Problem, Server, Source};
use crate::console::{self, Console};
use crate::proxy::state::CurrentState;
use crate::store::StoreUrl;
use crate::telemetry::reload::ReloadResult;

/// Reloads the configuration of a running gateway.
pub struct Reloader {
    process: ProcessServices,
    current: CurrentState,
    view: AdminView,
    console: Arc<Console>,
    listeners: Listeners,
    /// The stop of the process.
    stop: watch::Receiver<bool>,
    /// Held while a reload runs, so that the next one waits. Files may take long to read, so nothing else waits for it.
    turn: Mutex<Sandboxes>,
    /// Held for moments.
    state: Mutex<State>,
    /// Whether an upgrade runs, after which another process has the configuration, or this process stops.
    is_paused: AtomicBool,
    /// Whether a reload waits for its turn.
    is_requested: AtomicBool,
    watches_files: watch::Sender<bool>,
}

/// No reload begins until it is dropped.
pub(super) struct ReloadPause<'r>(&'r Reloader);

impl ReloadPause<'_> {
    /// Lets no reload begin in this process any more.
    pub(super) fn keep(self) {
        std::mem::forget(self);
    }
}

impl Drop for ReloadPause<'_> {
    fn drop(&mut self) {
        self.0.is_paused.store(false, Ordering::Relaxed);
    }
}

/// What a reload replaces.
struct State {
    generation: Arc<Generation>,
    /// The tasks that send events and traces until the process stops.
    dispatching: Vec<JoinHandle<()>>,
}

/// The parts of a gateway that reloads change.
pub(super) struct Reloadable {
    pub(super) generation: Generation,
    pub(super) sandboxes: Sandboxes,
    pub(super) dispatching: Vec<JoinHandle<()>>,
    pub(super) current: CurrentState,
    pub(super) view: AdminView,
    pub(super) console: Arc<Console>,
    pub(super) listeners: Listeners,
}

/// The outcome of a good reload.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reloaded {
    /// The configuration is the same as before.
    Unchanged,
    /// These changes are in force for new requests.
    Changed(ConfigChanges),
}

/// The reasons for which a configuration is not in force.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct RefusedReload {
    /// Refused: its text is to be changed. Failed: something else is.
    pub result: ReloadResult,
    /// Texts for the operator.
    pub problems: Vec<String>,
}

impl RefusedReload {
    fn of_text(problems: &[Problem]) -> Self {
        let texts = problems.iter().map(ToString::to_string);
        Self {
            result: ReloadResult::Refused,
            problems: texts.map(|text| text.trim_end().to_owned()).collect(),
        }
    }
}

impl From<BootError> for RefusedReload {
    fn from(error: BootError) -> Self {
        Self {
            result: match error.is_configuration {
                true => ReloadResult::Refused,
                false => ReloadResult::Failed,
            },
            problems: vec![error.message],
        }
    }
}

impl Reloader {
    pub(super) fn new(
        process: ProcessServices,
        parts: Reloadable,
        stop: watch::Receiver<bool>,
    ) -> Self {
        let watches = parts.generation.loaded.config.server.watch;
        Self {
            process,
            watches_files: watch::channel(watches).0,
            current: parts.current,
            view: parts.view,
            console: parts.console,
            listeners: parts.listeners,
            stop,
            turn: Mutex::new(parts.sandboxes),
            state: Mutex::new(State {
                generation: Arc::new(parts.generation),
                dispatching: parts.dispatching,
            }),
            is_paused: AtomicBool::new(false),
            is_requested: AtomicBool::new(false),
        }
    }

    /// Waits for a reload that runs, and refuses others until the pause ends.
    pub(super) fn pause(&self) -> ReloadPause<'_> {
        let _running = self.turn();
        self.is_paused.store(true, Ordering::Relaxed);
        ReloadPause(self)
    }

    /// Returns the sockets of the listeners, each with the key of its address.
    ///
    /// Errors: the operating system's.
    pub(super) fn sockets(&self) -> std::io::Result<Vec<(&'static str, TcpListener)>> {
        self.listeners.sockets()
    }

    /// Closes all listeners; their connections stay open.
    pub(super) fn close_listeners(&self) {
        self.listeners.close();
    }

    /// Lets the background tasks of the configuration end what they have begun. No reload starts others.
    pub(super) fn stop_claiming(&self) {
        self.is_paused.store(true, Ordering::Relaxed);
        let state = self.lock();
        state.generation.stop();
    }

    /// Returns the generation of new requests.
    pub fn app(&self) -> Arc<AppState> {
        let state = self.lock();
        Arc::clone(&state.generation.app)
    }

    /// Returns the addresses of the public listener and of the operator's.
    pub fn addresses(&self) -> (SocketAddr, SocketAddr) {
        self.listeners.addresses()
    }

    /// Reads the configuration again, and puts it in force for new requests. Waits for a reload that runs. The outcome is in
    /// the log, in metrics and in `/readyz?verbose`.
    ///
    /// Blocks: it reads files, and builds what the configuration asks for.
    ///
    /// Errors: the configuration has problems, needs a restart, or cannot be built. Nothing has changed then.
    pub fn reload(&self) -> Result<Reloaded, RefusedReload> {
        let mut turn = self.turn();
        // What is asked for from here on is not in the files that this reload reads.
        self.is_requested.store(false, Ordering::Relaxed);
        let (source, _) = self.source();
        self.load(&mut turn, &source)
    }

    /// Puts the configuration of another source in force.
    ///
    /// Errors: as [`Self::reload`].
    pub fn reload_from(&self, source: &Source) -> Result<Reloaded, RefusedReload> {
        self.load(&mut self.turn(), source)
    }

    /// Reloads on a thread of its own. While one waits for its turn, further requests are served by it.
    pub fn request_reload(self: &Arc<Self>) {
        if self.is_requested.swap(true, Ordering::Relaxed) {
            return;
        }
        let reloader = Arc::clone(self);
        let thread = std::thread::Builder::new().name("reload".to_owned());
        // The outcome is recorded.
        if let Err(error) = thread.spawn(move || _ = reloader.reload()) {
            self.is_requested.store(false, Ordering::Relaxed);
            log::error!("the configuration was not reloaded, and stays as it is: {error}");
        }
    }

    /// Returns what a reload would change.
    ///
    /// Errors: the configuration has problems, or an upgrade runs.
    pub fn diff(&self) -> Result<ConfigChanges, RefusedReload> {
        let generation = self.generation();
        let loaded = self.read(&generation, &generation.loaded.source)?;
        Ok(config::changes(&generation.loaded, &loaded))
    }

    /// Returns the settings of the process.
    pub(super) fn server(&self) -> Server {
        self.lock().generation.loaded.config.server.clone()
    }

    /// Returns where the configuration comes from, and the environment with which it is read.
    pub(super) fn source(&self) -> (Source, BTreeMap<String, String>) {
        let generation = self.generation();
        let loaded = &generation.loaded;
        (loaded.source.clone(), loaded.environment.clone())
    }

    /// Returns the address of the console. With a token it signs a person of this name in once.
    ///
    /// Errors: the operating system gave no random bytes.
    pub(super) fn console_link(&self, name: &str) -> Result<String, String> {
        let (_, admin) = self.addresses();
        let admin = console::from_here(admin);
        let link = self.console.make_link(name);
        let link = link.map_err(|_| "the system gave no random bytes".to_owned())?;
        Ok(format!("http://{admin}{link}"))
    }

    /// Returns where the store is, without credentials.
    pub(super) fn store_url(&self) -> String {
        let url = StoreUrl::parse(&self.generation().loaded.config.store.url);
        url.map(|url| url.redacted()).unwrap_or_default()
    }

    /// Returns whether the shared Redis answers; `None`: none is configured.
    pub(super) fn is_redis_available(&self) -> Option<bool> {
        let redis = self.process.redis.as_ref();
        redis.map(|redis| !redis.is_unavailable())
    }

    /// Returns whether changed files are to be noticed, now and later.
    pub(super) fn watches_files(&self) -> watch::Receiver<bool> {
        self.watches_files.subscribe()
    }

    fn turn(&self) -> MutexGuard<'_, Sandboxes> {
        self.turn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn generation(&self) -> Arc<Generation> {
        Arc::clone(&self.lock().generation)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Errors: an upgrade runs, or the process stops.
    fn check_pause(&self) -> Result<(), RefusedReload> {
        if !self.is_paused.load(Ordering::Relaxed) {
            return Ok(());
        }
        let why = "an upgrade runs, or this process stops: the next process reads the configuration, reload again after it";
        Err(RefusedReload {
            result: ReloadResult::Failed,
            problems: vec![why.to_owned()],
        })
    }

    /// Loads a source and records the outcome.
    fn load(&self, sandboxes: &mut Sandboxes, source: &Source) -> Result<Reloaded, RefusedReload> {
        let previous = self.generation();
        let outcome = self.read(&previous, source);
        let outcome = outcome.and_then(|loaded| self.replace((sandboxes, &previous), loaded));
        let (reloads, now) = (&self.process.metrics.reloads, Timestamp::now());
        match &outcome {
            Ok(Reloaded::Unchanged) => reloads.record_unchanged(now),
            Ok(Reloaded::Changed(_)) => {
                reloads.record_ok(&self.process.config_hash(&self.generation().loaded), now);
            }
            Err(refused) => reloads.record_problems(refused.result, &refused.problems, now),
        }
        outcome
    }

    fn read(&self, current: &Generation, source: &Source) -> Result<LoadedConfig, RefusedReload> {
        self.check_pause()?;
        let environment = current.loaded.environment.clone();
        let loaded = config::load(source, environment);
        let loaded = loaded.map_err(|problems| RefusedReload::of_text(&problems))?;
        match &loaded.config.models.catalog {
            Ok(_) => Ok(loaded),
            Err(problems) => Err(RefusedReload::of_text(problems)),
        }
    }

    fn replace(
        &self,
        (sandboxes, previous): (&mut Sandboxes, &Generation),
        mut loaded: LoadedConfig,
    ) -> Result<Reloaded, RefusedReload> {
        let changes = config::changes(&previous.loaded, &loaded);
        if changes.is_empty() {
            return Ok(Reloaded::Unchanged);
        }
        let refusals = changes.refusals();
        if !refusals.is_empty() {
            return Err(RefusedReload::of_text(&refusals));
        }
        let catalog = generation::catalog(&loaded.config)?;
        let background = &self.process.background;
        sandboxes.serve(&mut loaded.config, background, &self.stop)?;
        let listeners = self.listeners.prepare(&loaded.config)?;
        let mut next = Generation::build(loaded, catalog, &self.process, Some(previous))?;
        self.check_pause()?;
        self.process.set_log_export(&next.loaded.config)?;
        // Nothing fails from here on.
        let (settings, dispatching) = next.start(background, &self.stop);
        self.current.replace(Arc::clone(&next.app.proxy));
        self.view.replace(settings);
        self.console.replace(next.console());
        self.listeners.apply(listeners);
        let config = &next.loaded.config;
        self.process.set_limits(config);
        log::set_max_level(config.log.level.into());
        self.watches_files.send_replace(config.server.watch);
        let mut state = self.lock();
        state.generation.stop();
        state.dispatching.retain(|task| !task.is_finished());
        state.dispatching.extend(dispatching);
        state.generation = Arc::new(next);
        Ok(Reloaded::Changed(changes))
    }

    /// Closes the public listener, because the process stops.
    pub(super) fn close_public(&self) {
        self.listeners.close_public();
    }

    /// Stops the background tasks of the configuration. Returns the tasks that still send events and traces.
    pub(super) fn stop(&self) -> Vec<JoinHandle<()>> {
        let mut state = self.lock();
        state.generation.stop();
        std::mem::take(&mut state.dispatching)
    }
}
