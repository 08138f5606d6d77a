//! Datafiles by URL: fetched at the first use of an SDK key, looked at again now and then, kept on disk.
//!
//! One fetch per key at a time, whoever asks meanwhile waits for it. A key that the source refuses is remembered
//! for a while, so that nobody can make us ask without end. The last good copy on disk answers where the source
//! does not, also after a restart.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arc_swap::{ArcSwap, ArcSwapOption};
use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use filters::flags::{Compat, Project};
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, IF_MODIFIED_SINCE, LAST_MODIFIED};
use sha2::{Digest, Sha256};
use tokio::runtime::Handle;

use super::lock;
use super::notices::Notices;
use super::projects::{Found, Loaded, tell};
use crate::config::Decisions;
use crate::metrics::Metrics;

/// How long the source may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many refused keys are remembered; all are forgotten when there are more.
const REFUSED: usize = 10_000;

/// See the module.
pub struct Fetched {
    template: String,
    client: reqwest::Client,
    handle: Handle,
    folder: PathBuf,
    compat: Compat,
    max_bytes: u64,
    refused_for: Duration,
    poll_interval: Duration,
    slots: ArcSwap<HashMap<Box<str>, Arc<Slot>>>,
    pending: Mutex<HashMap<Box<str>, Arc<Slot>>>,
    refused: Mutex<HashMap<Box<str>, Instant>>,
    metrics: Arc<Metrics>,
    notices: Option<Notices>,
}

#[derive(Default)]
struct Slot {
    current: ArcSwapOption<Loaded>,
    /// Held while the source is asked; holds when the datafile was last changed, in the source's words.
    modified: tokio::sync::Mutex<Option<String>>,
}

/// What the source said.
enum Said {
    Datafile(Bytes, Option<String>),
    Unchanged,
    Refused,
    Nothing(String),
}

impl Fetched {
    /// Asks the source of a configuration, where there is one; fetches run on `handle`.
    ///
    /// Errors: no HTTP client can be made.
    pub fn new(
        decisions: &Decisions,
        state_dir: &std::path::Path,
        handle: Handle,
        metrics: &Arc<Metrics>,
        notices: Option<Notices>,
    ) -> reqwest::Result<Option<Self>> {
        let Some(template) = decisions.datafile_url.clone() else {
            return Ok(None);
        };
        Ok(Some(Self {
            template,
            client: reqwest::Client::builder().timeout(PATIENCE).build()?,
            handle,
            folder: state_dir.join("datafiles"),
            compat: decisions.compat,
            max_bytes: decisions.datafile_max_bytes,
            refused_for: decisions.unknown_key_ttl,
            poll_interval: decisions.poll_interval,
            slots: ArcSwap::default(),
            pending: Mutex::default(),
            refused: Mutex::default(),
            metrics: Arc::clone(metrics),
            notices,
        }))
    }

    /// What an SDK key stands for; asks the source the first time. Cost: no lock for a key that is known.
    pub async fn find(self: &Arc<Self>, sdk_key: &str) -> Found {
        if let Some(loaded) = self.known(sdk_key) {
            return Found::Project(loaded);
        }
        if self.is_refused(sdk_key) {
            return Found::Unknown;
        }
        let (fetched, key): (_, Box<str>) = (Arc::clone(self), sdk_key.into());
        let found = self.handle.spawn(async move { fetched.first(&key).await });
        found.await.unwrap_or(Found::Unusable)
    }

    /// Looks again at the datafiles of all keys that begin with one of these.
    pub async fn refresh(self: &Arc<Self>, prefixes: &[String]) {
        let slots = self.slots.load_full();
        for (key, slot) in slots.iter() {
            if !prefixes.iter().any(|prefix| key.starts_with(prefix)) {
                continue;
            }
            let (fetched, key, slot) = (Arc::clone(self), key.clone(), Arc::clone(slot));
            let looked = self.handle.spawn(async move {
                let mut modified = slot.modified.lock().await;
                fetched.look(&key, &slot, &mut modified).await
            });
            // A look that did not end has told why itself.
            _ = looked.await;
        }
    }

    fn known(&self, sdk_key: &str) -> Option<Arc<Loaded>> {
        self.slots.load().get(sdk_key)?.current.load_full()
    }

    fn is_refused(&self, sdk_key: &str) -> bool {
        let refused = lock(&self.refused);
        refused
            .get(sdk_key)
            .is_some_and(|at| at.elapsed() < self.refused_for)
    }

    /// The first look at a key's datafile; who comes while it runs waits for it.
    async fn first(&self, key: &str) -> Found {
        let slot = Arc::clone(lock(&self.pending).entry(key.into()).or_default());
        let mut modified = slot.modified.lock().await;
        if let Some(loaded) = slot.current.load_full() {
            return Found::Project(loaded);
        }
        if self.is_refused(key) {
            return Found::Unknown;
        }
        let is_refused = self.look(key, &slot, &mut modified).await;
        lock(&self.pending).remove(key);
        match slot.current.load_full() {
            Some(loaded) => {
                self.slots.rcu(|slots| {
                    let mut slots = HashMap::clone(slots);
                    slots.insert(key.into(), Arc::clone(&slot));
                    slots
                });
                Found::Project(loaded)
            }
            None if is_refused => {
                let mut refused = lock(&self.refused);
                if refused.len() >= REFUSED {
                    refused.clear();
                }
                refused.insert(key.into(), Instant::now());
                Found::Unknown
            }
            None => Found::Unusable,
        }
    }

    /// Asks the source; what it says that can be used is in force afterwards. Answers whether it refused the key.
    async fn look(&self, key: &str, slot: &Slot, modified: &mut Option<String>) -> bool {
        let is_first = slot.current.load().is_none();
        let why = match self.ask(key, modified.as_deref()).await {
            Said::Unchanged => return false,
            Said::Refused => return true,
            Said::Datafile(text, at) => match self.parse(text.clone()).await {
                Ok(loaded) => {
                    tell(self.notices.as_ref(), key, &loaded);
                    slot.current.store(Some(Arc::new(loaded)));
                    *modified = at;
                    self.metrics.datafile("loaded");
                    self.keep(key, &text).await;
                    return false;
                }
                Err(why) => why,
            },
            Said::Nothing(why) => why,
        };
        self.metrics.datafile("refused");
        log::warn!("datafile of {}: {why}", super::projects::shown(key));
        if is_first
            && let Ok(text) = tokio::fs::read(self.file(key)).await
            && let Ok(loaded) = self.parse(text.into()).await
        {
            slot.current.store(Some(Arc::new(loaded)));
            self.metrics.datafile("from_disk");
        }
        false
    }

    async fn ask(&self, key: &str, modified: Option<&str>) -> Said {
        let (name, token) = key.split_once(':').unwrap_or((key, ""));
        let mut request = self.client.get(self.template.replace("%s", name));
        if let Some(modified) = modified {
            request = request.header(IF_MODIFIED_SINCE, modified);
        }
        if !token.is_empty() {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let nothing = |error: reqwest::Error| Said::Nothing(error.without_url().to_string());
        let mut answer = match request.send().await {
            Ok(answer) => answer,
            Err(error) => return nothing(error),
        };
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::NOT_MODIFIED => return Said::Unchanged,
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND => {
                return Said::Refused;
            }
            status => return Said::Nothing(format!("the source answered {status}")),
        }
        let at = answer.headers().get(LAST_MODIFIED);
        let at = at.and_then(|at| at.to_str().ok()).map(str::to_owned);
        let mut text = BytesMut::new();
        loop {
            match answer.chunk().await {
                Ok(Some(piece)) => text.extend_from_slice(&piece),
                Ok(None) => return Said::Datafile(text.freeze(), at),
                Err(error) => return nothing(error),
            }
            if text.len() as u64 > self.max_bytes {
                return Said::Nothing(format!("it has more than {} bytes", self.max_bytes));
            }
        }
    }

    /// Indexes off the runtime's own threads.
    async fn parse(&self, text: Bytes) -> Result<Loaded, String> {
        let compat = self.compat;
        let parsed = tokio::task::spawn_blocking(move || {
            let project = Project::parse(&text, compat).map_err(|error| error.to_string())?;
            Ok(Loaded { project, text })
        });
        parsed.await.map_err(|error| error.to_string())?
    }

    /// Where the last good copy is. The name tells nothing about the key.
    fn file(&self, key: &str) -> PathBuf {
        let digest = Sha256::digest(key.as_bytes());
        let name: String = digest
            .iter()
            .take(16)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        self.folder.join(format!("{name}.json"))
    }

    async fn keep(&self, key: &str, text: &[u8]) {
        let (file, draft) = (self.file(key), self.file(key).with_extension("new"));
        let kept = async {
            tokio::fs::create_dir_all(&self.folder).await?;
            tokio::fs::write(&draft, text).await?;
            tokio::fs::rename(&draft, &file).await
        };
        if let Err(error) = kept.await {
            log::warn!("{}: {error}", file.display());
        }
    }
}

/// Looks at all fetched datafiles again, now and then.
pub struct Poll(pub Arc<Fetched>);

#[async_trait]
impl BackgroundService for Poll {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.0.poll_interval) => {}
                _ = shutdown.changed() => return,
            }
            let slots = self.0.slots.load_full();
            for (key, slot) in slots.iter() {
                // Whoever decides may hold the one before; it is freed here once nobody does.
                let before = slot.current.load_full();
                let mut modified = slot.modified.lock().await;
                self.0.look(key, slot, &mut modified).await;
                while before.as_ref().is_some_and(|before| {
                    let is_out = slot
                        .current
                        .load()
                        .as_ref()
                        .is_none_or(|now| !Arc::ptr_eq(now, before));
                    is_out && Arc::strong_count(before) > 1
                }) {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            }
        }
    }
}
