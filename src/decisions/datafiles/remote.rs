//! Datafiles by URL: fetched at the first use of an SDK key, looked at again now and then, kept on disk.
//!
//! One fetch per key at a time, whoever asks meanwhile waits for it. A key that the source refuses is remembered
//! for a while, and so is one for which it failed, so that nobody can make us ask without end. The last good copy on
//! disk answers where the source does not, also after a restart.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use filters::decisions::credentials::split_key;
use filters::decisions::datafile_source::{SourceAnswer, datafile_url};
use filters::decisions::{EvaluationRules, Project};
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, IF_MODIFIED_SINCE, LAST_MODIFIED};
use tokio::runtime::Handle;

use super::cache;
use super::cache::{CacheEntry, DatafileCache, Slot};
use super::deferred_drop::drop_later;
use super::disk_cache::DiskCache;
use super::local::{LoadedDatafile, ProjectLookup, shown, tell};
use super::negative_cache::{NegativeCache, Why};
use crate::config::DecisionsConfig;
use crate::decisions::lock;
use crate::decisions::notifications::Notifications;
use crate::telemetry::metrics::Metrics;

/// How long the source may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);

/// See the module.
pub struct RemoteDatafiles {
    template: String,
    client: reqwest::Client,
    handle: Handle,
    copies: DiskCache,
    rules: EvaluationRules,
    max_bytes: u64,
    poll_interval: Duration,
    shelf: DatafileCache,
    /// Those whose first fetch is not over.
    pending: Mutex<HashMap<Box<str>, Arc<Slot>>>,
    turned_away: NegativeCache,
    metrics: Arc<Metrics>,
    notices: Option<Notifications>,
}

/// What the source said.
enum Said {
    Datafile(Bytes, Option<String>),
    Unchanged,
    Refused(StatusCode),
    Nothing(String),
}

impl RemoteDatafiles {
    /// Asks the source of a configuration, where there is one; fetches run on `handle`.
    ///
    /// Errors: no HTTP client can be made.
    pub fn new(
        decisions: &DecisionsConfig,
        state_dir: &std::path::Path,
        handle: Handle,
        metrics: &Arc<Metrics>,
        notices: Option<Notifications>,
    ) -> reqwest::Result<Option<Self>> {
        let Some(template) = decisions.datafile_url.clone() else {
            return Ok(None);
        };
        Ok(Some(Self {
            template,
            client: reqwest::Client::builder().timeout(FETCH_TIMEOUT).build()?,
            handle,
            copies: DiskCache::new(state_dir),
            rules: decisions.protocol.rules(),
            max_bytes: decisions.datafile_max_bytes,
            poll_interval: decisions.poll_interval,
            shelf: DatafileCache::default(),
            pending: Mutex::default(),
            turned_away: NegativeCache::new(decisions.unknown_key_ttl),
            metrics: Arc::clone(metrics),
            notices,
        }))
    }

    /// What an SDK key stands for; asks the source the first time. Cost: no lock for a key that is known.
    pub async fn find(self: &Arc<Self>, sdk_key: &str) -> ProjectLookup {
        if let Some(found) = self.known(sdk_key) {
            return found;
        }
        let (fetched, key): (_, Box<str>) = (Arc::clone(self), sdk_key.into());
        let found = self.handle.spawn(async move { fetched.first(&key).await });
        found.await.unwrap_or(ProjectLookup::Unusable)
    }

    /// Looks again at the datafiles of all keys that begin with one of these.
    pub async fn refresh(self: &Arc<Self>, prefixes: &[String]) {
        for (key, slot) in self.shelf.all().iter() {
            if !prefixes.iter().any(|prefix| key.starts_with(prefix)) {
                continue;
            }
            let (fetched, key, slot) = (Arc::clone(self), key.clone(), Arc::clone(slot));
            let looked = self
                .handle
                .spawn(async move { fetched.look_again(&key, &slot).await });
            // A look that did not end has told why itself.
            _ = looked.await;
        }
    }

    /// What is known without asking the source.
    fn known(&self, sdk_key: &str) -> Option<ProjectLookup> {
        let loaded = self.shelf.get(sdk_key).map(ProjectLookup::Project);
        loaded.or_else(|| self.turned_away.of(sdk_key))
    }

    /// The first look at a key's datafile; who comes while it runs waits for it, and is told what it brought.
    async fn first(self: &Arc<Self>, key: &str) -> ProjectLookup {
        let slot = Arc::clone(lock(&self.pending).entry(key.into()).or_default());
        let mut asked = slot.asked.lock().await;
        let found = match self.known(key) {
            Some(found) => found,
            None => self.first_of(key, &slot, &mut asked).await,
        };
        // What it brought is known by now to whoever finds no entry any more.
        let mut pending = lock(&self.pending);
        if pending.get(key).is_some_and(|one| Arc::ptr_eq(one, &slot)) {
            pending.remove(key);
        }
        found
    }

    async fn first_of(
        self: &Arc<Self>,
        key: &str,
        slot: &Arc<Slot>,
        asked: &mut CacheEntry,
    ) -> ProjectLookup {
        let refused = self.look(key, slot, asked).await;
        let Some(loaded) = slot.current.load_full() else {
            let (why, found) = match refused {
                Some(status) => (Why::Refused(status), ProjectLookup::Refused(status)),
                None => (Why::Failed, ProjectLookup::Unusable),
            };
            self.turned_away.add(key, why);
            return found;
        };
        for (key, out) in self.shelf.add(key, slot) {
            let fetched = Arc::clone(self);
            tokio::spawn(async move { fetched.let_go(&key, &out).await });
        }
        ProjectLookup::Project(loaded)
    }

    /// Ends what is on the shelf no more.
    async fn let_go(&self, key: &str, slot: &Slot) {
        let mut asked = slot.asked.lock().await;
        asked.is_out = true;
        slot.current.swap(None).into_iter().for_each(drop_later);
        self.metrics.datafile("dropped");
        log::warn!("datafile of {}: dropped, there are too many", shown(key));
        // It may have come back meanwhile.
        if self.shelf.get(key).is_none() {
            self.copies.remove(key).await;
        }
    }

    async fn look_again(&self, key: &str, slot: &Slot) {
        let mut asked = slot.asked.lock().await;
        if !asked.is_out {
            self.look(key, slot, &mut asked).await;
        }
    }

    /// Asks the source; what it says that can be used is in force afterwards. Answers the status it refused the
    /// key with, where it did.
    async fn look(&self, key: &str, slot: &Slot, asked: &mut CacheEntry) -> Option<StatusCode> {
        let is_first = slot.current.load().is_none();
        let why = match self.ask(key, asked.modified.as_deref()).await {
            Said::Unchanged => return None,
            Said::Refused(status) => return Some(status),
            Said::Datafile(text, at) => match self.parse(text.clone()).await {
                Ok(loaded) => {
                    tell(self.notices.as_ref(), key, &loaded);
                    let before = slot.current.swap(Some(Arc::new(loaded)));
                    before.into_iter().for_each(drop_later);
                    asked.modified = at;
                    self.metrics.datafile("loaded");
                    self.copies.write(key, &text).await;
                    return None;
                }
                Err(why) => why,
            },
            Said::Nothing(why) => why,
        };
        self.metrics.datafile("refused");
        log::warn!("datafile of {}: {why}", shown(key));
        if is_first
            && let Some(text) = self.copies.read(key).await
            && let Ok(loaded) = self.parse(text.into()).await
        {
            slot.current.store(Some(Arc::new(loaded)));
            self.metrics.datafile("from_disk");
        }
        None
    }

    async fn ask(&self, key: &str, modified: Option<&str>) -> Said {
        let (_, token) = split_key(key);
        let mut request = self.client.get(datafile_url(&self.template, key));
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
        let status = answer.status();
        match SourceAnswer::from_status(status) {
            SourceAnswer::Datafile => {}
            SourceAnswer::Unchanged => return Said::Unchanged,
            SourceAnswer::Refused => return Said::Refused(status),
            SourceAnswer::Failed => return Said::Nothing(format!("the source answered {status}")),
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
    async fn parse(&self, text: Bytes) -> Result<LoadedDatafile, String> {
        let rules = self.rules;
        let parsed = tokio::task::spawn_blocking(move || {
            let project = Project::parse(&text, rules).map_err(|error| error.to_string())?;
            Ok(LoadedDatafile { project, text })
        });
        parsed.await.map_err(|error| error.to_string())?
    }
}

/// Looks at all fetched datafiles again, now and then.
pub struct Poll(pub Arc<RemoteDatafiles>);

#[async_trait]
impl BackgroundService for Poll {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let copies = self.0.copies.clone();
        tokio::task::spawn_blocking(move || copies.sweep(cache::MAX_DATAFILES));
        loop {
            tokio::select! {
                () = tokio::time::sleep(self.0.poll_interval) => {}
                _ = shutdown.changed() => return,
            }
            for (key, slot) in self.0.shelf.all().iter() {
                self.0.look_again(key, slot).await;
            }
        }
    }
}
