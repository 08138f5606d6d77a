//! Reloads the configuration while requests run.
//!
//! The new configuration is checked whole, and all that can fail is built before anything changes. Then new requests get
//! the new generation. Running requests, streams and connections stay as they are.

use std::net::{SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::boot::BootError;
use super::generation::{self, Generation};
use super::listeners::Listeners;
use super::process::ProcessServices;
use super::sandboxes::Sandboxes;
use super::state::AppState;
use crate::admin::AdminView;
use crate::config::{self, LoadedConfig, Problem, Source};
use crate::proxy::state::CurrentState;

/// Reloads the configuration of a running gateway.
pub struct Reloader {
    process: ProcessServices,
    current: CurrentState,
    view: AdminView,
    listeners: Listeners,
    /// The stop of the process.
    stop: watch::Receiver<bool>,
    /// Held while a reload runs, so that the next one waits.
    state: Mutex<State>,
    /// Whether an upgrade runs, after which another process has the configuration.
    is_paused: AtomicBool,
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
    generation: Generation,
    sandboxes: Sandboxes,
    /// The tasks that send events until the process stops.
    dispatching: Vec<JoinHandle<()>>,
}

/// The parts of a gateway that reloads change.
pub(super) struct Reloadable {
    pub(super) generation: Generation,
    pub(super) sandboxes: Sandboxes,
    pub(super) dispatching: Option<JoinHandle<()>>,
    pub(super) current: CurrentState,
    pub(super) view: AdminView,
    pub(super) listeners: Listeners,
}

/// The outcome of a good reload.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Reloaded {
    /// The configuration is the same as before.
    Unchanged,
    Changed,
}

/// The reasons for which a configuration is not in force: texts for the operator.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused(pub Vec<String>);

impl From<BootError> for Refused {
    fn from(error: BootError) -> Self {
        Self(vec![error.message])
    }
}

impl Reloader {
    pub(super) fn new(
        process: ProcessServices,
        parts: Reloadable,
        stop: watch::Receiver<bool>,
    ) -> Self {
        Self {
            process,
            current: parts.current,
            view: parts.view,
            listeners: parts.listeners,
            stop,
            state: Mutex::new(State {
                generation: parts.generation,
                sandboxes: parts.sandboxes,
                dispatching: parts.dispatching.into_iter().collect(),
            }),
            is_paused: AtomicBool::new(false),
        }
    }

    /// Waits for a reload that runs, and refuses others until the pause ends.
    pub(super) fn pause(&self) -> ReloadPause<'_> {
        let _running = self.state.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// Lets the background tasks of the configuration end what they have begun.
    pub(super) fn stop_claiming(&self) {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.generation.stop();
    }

    /// Returns the generation of new requests.
    pub fn app(&self) -> Arc<AppState> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&state.generation.app)
    }

    /// Returns the addresses of the public listener and of the operator's.
    pub fn addresses(&self) -> (SocketAddr, SocketAddr) {
        self.listeners.addresses()
    }

    /// Reads the configuration again, and puts it in force for new requests. Waits for a reload that runs.
    ///
    /// Blocks: it reads files, and builds what the configuration asks for.
    ///
    /// Errors: the configuration has problems, needs a restart, or cannot be built. Nothing has changed then.
    pub fn reload(&self) -> Result<Reloaded, Refused> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let source = state.generation.loaded.source.clone();
        self.load(&mut state, &source)
    }

    /// Puts the configuration of another source in force.
    ///
    /// Errors: as [`Self::reload`].
    pub fn reload_from(&self, source: &Source) -> Result<Reloaded, Refused> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        self.load(&mut state, source)
    }

    fn load(&self, state: &mut State, source: &Source) -> Result<Reloaded, Refused> {
        if self.is_paused.load(Ordering::Relaxed) {
            let why = "an upgrade runs, and the new process reads the configuration: reload again after it";
            return Err(Refused(vec![why.to_owned()]));
        }
        let environment = state.generation.loaded.environment.clone();
        let loaded = config::load(source, environment);
        let told = |problems: Vec<Problem>| problems.iter().map(ToString::to_string).collect();
        let loaded = loaded.map_err(|problems| Refused(told(problems)))?;
        self.replace(state, loaded)
    }

    fn replace(&self, state: &mut State, mut loaded: LoadedConfig) -> Result<Reloaded, Refused> {
        let catalog = generation::catalog(&loaded.config)?;
        let background = &self.process.background;
        state
            .sandboxes
            .serve(&mut loaded.config, background, &self.stop)?;
        let listeners = self.listeners.prepare(&loaded.config)?;
        let mut next = Generation::build(loaded, catalog, &self.process, Some(&state.generation))?;
        // Nothing fails from here on.
        let (settings, dispatching) = next.start(background, &self.stop);
        self.current.replace(Arc::clone(&next.app.proxy));
        self.view.replace(settings);
        self.listeners.apply(listeners)?;
        state.generation.stop();
        state.dispatching.extend(dispatching);
        self.process.set_limits(&next.loaded.config);
        log::set_max_level(next.loaded.config.log.level.into());
        state.generation = next;
        Ok(Reloaded::Changed)
    }

    /// Closes the public listener, because the process stops.
    pub(super) fn close_public(&self) {
        self.listeners.close_public();
    }

    /// Stops the background tasks of the configuration. Returns the tasks that still send events.
    pub(super) fn stop(&self) -> Vec<JoinHandle<()>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.generation.stop();
        std::mem::take(&mut state.dispatching)
    }
}
