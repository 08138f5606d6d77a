//! What views may use: the generation in force, the store, and what the process is doing.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use filters::accounts::TermsFile;
use once_cell::sync::OnceCell;
use tokio::runtime::Handle;

use super::access::ConsoleAccess;
use super::capacity::Capacity;
use super::once::DoneForms;
use super::store_answers::StoreAnswers;
use crate::app::state::AppState;
use crate::control::status::ProcessStatus;
use crate::encryption::SealError;
use crate::models::unknown_names::unknown_names;
use crate::store::Store;

/// The path of the console.
pub const PATH: &str = "/console";
/// The path of links that sign in once.
pub(super) const ENTER: &str = "/console/enter";
/// How long a page waits for the store.
pub(super) const STORE_TIMEOUT: Duration = Duration::from_secs(10);

/// What pages show and change.
pub struct Console {
    store: Store,
    background: Handle,
    thread: Handle,
    pub(super) capacity: Capacity,
    pub(super) access: ConsoleAccess,
    pub(super) settings: ArcSwap<ConsoleSettings>,
    pub(super) done_forms: DoneForms,
    status: OnceCell<Box<AskStatus>>,
    pub(super) answers: Arc<StoreAnswers>,
}

type AskStatus = dyn Fn() -> Option<ProcessStatus> + Send + Sync;

/// What the configuration in force says, and the generation that it made. A reload replaces it.
pub struct ConsoleSettings {
    pub app: Arc<AppState>,
    /// The hash of `admin.token`.
    pub token_hash: Option<[u8; 32]>,
    /// `admin.write`.
    pub is_writable: bool,
    /// Whether the public listener speaks TLS.
    pub is_encrypted: bool,
    /// The names of the providers of the configuration, also of those that are off.
    pub providers: Vec<String>,
}

impl Console {
    /// Makes the console of a process. The store is asked on the runtime of the background services, and pages are made on
    /// another one, of one thread.
    ///
    /// Errors: never, because the key of the sessions has the cipher's length.
    pub fn new(
        store: Store,
        (background, thread): (Handle, Handle),
        settings: ConsoleSettings,
    ) -> Result<Self, SealError> {
        let access = ConsoleAccess::new(store.pepper())?;
        Ok(Self {
            store,
            background,
            thread,
            capacity: Capacity::default(),
            access,
            settings: ArcSwap::from_pointee(settings),
            done_forms: DoneForms::default(),
            status: OnceCell::new(),
            answers: Arc::default(),
        })
    }

    /// Puts the settings of another generation in force.
    pub fn replace(&self, settings: ConsoleSettings) {
        self.settings.store(Arc::new(settings));
    }

    /// Says how to ask what the process is doing. Only the first call counts.
    pub fn set_status(&self, ask: impl Fn() -> Option<ProcessStatus> + Send + Sync + 'static) {
        _ = self.status.set(Box::new(ask));
    }

    /// Returns the generation in force.
    pub fn app(&self) -> Arc<AppState> {
        Arc::clone(&self.settings.load().app)
    }

    /// Returns whether changes are allowed.
    pub fn is_writable(&self) -> bool {
        self.settings.load().is_writable
    }

    /// Returns a warning for each model and provider in the rules of a key that the gateway does not know.
    pub(super) fn unknown_names(&self, terms: &TermsFile) -> Vec<String> {
        let settings = self.settings.load();
        unknown_names(
            terms,
            &settings.providers,
            settings.app.models.planner.catalog(),
        )
    }

    /// Returns the store. Its queries run within [`Self::with_store`].
    pub fn store(&self) -> &Store {
        &self.store
    }

    /// Returns the runtime of the background services.
    pub fn background(&self) -> &Handle {
        &self.background
    }

    /// Returns the runtime of the thread that makes pages and streams.
    pub fn thread(&self) -> &Handle {
        &self.thread
    }

    /// Returns what the process is doing; `None` while it starts.
    pub fn status(&self) -> Option<ProcessStatus> {
        self.status.get().and_then(|ask| ask())
    }

    /// Returns the address of the public listener as seen from this machine; `None` while the process starts.
    pub fn public_url(&self) -> Option<String> {
        let status = self.status()?;
        let address = from_here(status.listeners.first()?.parse().ok()?);
        let is_encrypted = self.settings.load().is_encrypted;
        let scheme = if is_encrypted { "https" } else { "http" };
        Some(format!("{scheme}://{address}"))
    }

    /// Makes a link that signs a person in once. Returns its path and query. Without a token it is the path of the overview.
    ///
    /// Errors: the operating system gave no random bytes.
    pub fn make_link(&self, name: &str) -> Result<String, SealError> {
        if self.settings.load().token_hash.is_none() {
            return Ok(PATH.to_owned());
        }
        let code = self.access.make_link(name)?;
        Ok(format!("{ENTER}?code={code}"))
    }
}

/// Returns the address by which this machine reaches a listener.
pub fn from_here(mut listener: SocketAddr) -> SocketAddr {
    if listener.ip().is_unspecified() {
        listener.set_ip(match listener {
            SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        });
    }
    listener
}
