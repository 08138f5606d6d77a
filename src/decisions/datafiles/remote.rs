//! Datafiles by URL. They are fetched at the first use of an SDK key, refreshed periodically, and cached on disk.
//!
//! Each key has one fetch at a time, and other requests wait for it. A failed fetch is remembered for a while, so
//! that no caller can cause endless fetches. If the source fails, the last good datafile on disk is used, also after
//! a restart.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use filters::decisions::EvaluationRules;
use filters::decisions::credentials::split_key;
use filters::decisions::datafile_source::{SourceAnswer, datafile_url};
use futures::StreamExt;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;
use reqwest::StatusCode;
use reqwest::header::{AUTHORIZATION, IF_MODIFIED_SINCE, LAST_MODIFIED};
use tokio::runtime::Handle;
use tokio::time::Instant;

use super::announcer::Announcer;
use super::cache;
use super::cache::{DatafileCache, FetchState, Slot};
use super::deferred_drop::drop_later;
use super::disk_cache::DiskCache;
use super::loaded::LoadedDatafile;
use super::local::{ProjectLookup, key_hint};
use super::negative_cache::{FetchFailure, NegativeCache};
use super::state::{DatafileOrigin, DatafileRefresh, DatafileState};
use crate::config::DecisionsConfig;
use crate::decisions::mutex::lock;
use crate::outbound::{self, Outbound};
use crate::telemetry::metrics::Metrics;

/// The maximum time of a fetch.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// The minimum time between two fetches of a datafile because clients know of another one.
const CATCH_UP_INTERVAL: Duration = Duration::from_secs(5);
/// The maximum number of concurrent refreshes. A source that does not respond does not delay the others.
const MAX_POLLS: usize = 16;

/// Datafiles that are fetched by URL.
pub struct RemoteDatafiles {
    template: String,
    client: Outbound,
    handle: Handle,
    disk_cache: DiskCache,
    rules: EvaluationRules,
    max_bytes: u64,
    poll_interval: Duration,
    cache: Arc<DatafileCache>,
    /// The keys whose first fetch is running.
    pending: Arc<Mutex<HashMap<Box<str>, Arc<Slot>>>>,
    /// The time of the last refresh of all, or of the start.
    polled: Arc<Mutex<Instant>>,
    negative_cache: NegativeCache,
    metrics: Arc<Metrics>,
    announcer: Announcer,
}

/// The reply of the source.
enum SourceReply {
    Datafile(Bytes, Option<String>),
    Unchanged,
    Refused(StatusCode),
    Failed(String),
}

impl RemoteDatafiles {
    /// Returns the source of a configuration, or `None` if it has none. Fetches run on `handle`. The datafiles of a previous
    /// source go on if they come from the same URL and are read by the same rules, and so do its failures, its running
    /// fetches and the time of the next refresh.
    ///
    /// Errors: no HTTP client can be created.
    pub fn new(
        decisions: &DecisionsConfig,
        state_dir: &std::path::Path,
        handle: Handle,
        metrics: &Arc<Metrics>,
        announcer: Announcer,
        previous: Option<&Self>,
    ) -> reqwest::Result<Option<Self>> {
        let Some(template) = decisions.datafile_url.clone() else {
            return Ok(None);
        };
        let rules = decisions.protocol.rules();
        let is_same = |it: &&Self| it.template == template && it.rules == rules;
        let same = previous.filter(is_same);
        let refused_for = decisions.unknown_key_ttl;
        Ok(Some(Self {
            client: match same {
                Some(same) => same.client.clone(),
                None => Outbound::new(FETCH_TIMEOUT, [template.as_str()])?,
            },
            template,
            handle,
            disk_cache: DiskCache::new(state_dir),
            rules,
            max_bytes: decisions.datafile_max_bytes,
            poll_interval: decisions.poll_interval,
            cache: same.map_or_else(Arc::default, |same| Arc::clone(&same.cache)),
            pending: same.map_or_else(Arc::default, |same| Arc::clone(&same.pending)),
            polled: match same {
                Some(same) => Arc::clone(&same.polled),
                None => Arc::new(Mutex::new(Instant::now())),
            },
            negative_cache: match same {
                Some(same) => same.negative_cache.keeping(refused_for),
                None => NegativeCache::new(refused_for),
            },
            metrics: Arc::clone(metrics),
            announcer,
        }))
    }

    /// Returns the project of an SDK key, and fetches it at the first use. Cost: no lock for a cached key.
    pub async fn find(self: &Arc<Self>, sdk_key: &str) -> ProjectLookup {
        if let Some(found) = self.find_cached(sdk_key) {
            return found;
        }
        let (this, key): (_, Box<str>) = (Arc::clone(self), sdk_key.into());
        let found = self
            .handle
            .spawn(async move { this.fetch_once(&key).await });
        found.await.unwrap_or(ProjectLookup::Unusable)
    }

    /// Returns whether a key needs no fetch.
    pub fn is_known(&self, sdk_key: &str) -> bool {
        self.find_cached(sdk_key).is_some()
    }

    /// Returns what is known of each datafile that is in memory.
    pub fn states(&self) -> Vec<DatafileState> {
        let host = reqwest::Url::parse(&self.template).ok();
        let host = host.and_then(|url| url.host_str().map(str::to_owned));
        let state = |key: &str, slot: &Slot| {
            let last = slot.last_fetch.load_full();
            let origin = DatafileOrigin::Host(host.clone().unwrap_or_default());
            let refresh = DatafileRefresh {
                is_running: slot.fetch_state.try_lock().is_err(),
                error: last.as_ref().and_then(|last| last.error.clone()),
                age: last.map(|last| last.at.elapsed()),
                interval: Some(self.poll_interval),
            };
            DatafileState::new(key, (origin, refresh), slot.current.load_full())
        };
        let all = self.cache.all();
        all.iter().map(|(key, slot)| state(key, slot)).collect()
    }

    /// Returns the number of SDK keys whose first fetch has just failed.
    pub fn failed_keys(&self) -> usize {
        self.negative_cache.count()
    }

    /// Refreshes the datafiles of all keys that begin with one of `prefixes`.
    pub async fn refresh(self: &Arc<Self>, prefixes: &[String]) {
        for (key, slot) in self.cache.all().iter() {
            if !prefixes.iter().any(|prefix| key.starts_with(prefix)) {
                continue;
            }
            let (this, key, slot) = (Arc::clone(self), key.clone(), Arc::clone(slot));
            let refreshed = self
                .handle
                .spawn(async move { this.refresh_slot(&key, &slot).await });
            // The panic of a task is already logged.
            _ = refreshed.await;
        }
    }

    /// Fetches the datafile of a key again for a client that knows of another one, unless this was done just now. Requests in
    /// the meantime wait for the result.
    pub async fn catch_up(self: &Arc<Self>, sdk_key: &str) {
        let Some(slot) = self.cache.all().get(sdk_key).map(Arc::clone) else {
            return;
        };
        let (this, key): (_, Box<str>) = (Arc::clone(self), sdk_key.into());
        let caught_up = self.handle.spawn(async move {
            let mut state = slot.fetch_state.lock().await;
            let last = state.caught_up.map(|last| last.elapsed());
            if state.is_evicted || last.is_some_and(|passed| passed < CATCH_UP_INTERVAL) {
                return;
            }
            state.caught_up = Some(Instant::now());
            this.fetch(&key, &slot, &mut state).await;
        });
        // The panic of a task is already logged.
        _ = caught_up.await;
    }

    /// Returns the result for a key that need not be fetched.
    fn find_cached(&self, sdk_key: &str) -> Option<ProjectLookup> {
        let loaded = self.cache.get(sdk_key).map(ProjectLookup::Project);
        loaded.or_else(|| self.negative_cache.find(sdk_key))
    }

    /// Fetches the datafile of a key for the first time. Requests in the meantime wait for the result.
    async fn fetch_once(self: &Arc<Self>, key: &str) -> ProjectLookup {
        let slot = Arc::clone(lock(&self.pending).entry(key.into()).or_default());
        let mut state = slot.fetch_state.lock().await;
        let found = match self.find_cached(key) {
            Some(found) => found,
            None => self.fetch_first(key, &slot, &mut state).await,
        };
        // The result is cached now, so requests find it there after this entry is removed.
        let mut pending = lock(&self.pending);
        if pending.get(key).is_some_and(|one| Arc::ptr_eq(one, &slot)) {
            pending.remove(key);
        }
        found
    }

    async fn fetch_first(
        self: &Arc<Self>,
        key: &str,
        slot: &Arc<Slot>,
        state: &mut FetchState,
    ) -> ProjectLookup {
        let refused = self.fetch(key, slot, state).await;
        let Some(loaded) = slot.current.load_full() else {
            let (failure, found) = match refused {
                Some(status) => (
                    FetchFailure::Refused(status),
                    ProjectLookup::Refused(status),
                ),
                None => (FetchFailure::Failed, ProjectLookup::Unusable),
            };
            self.negative_cache.add(key, failure);
            return found;
        };
        for (key, evicted) in self.cache.add(key, slot) {
            let this = Arc::clone(self);
            tokio::spawn(async move { this.drop_evicted(&key, &evicted).await });
        }
        ProjectLookup::Project(loaded)
    }

    /// Drops an entry that the cache has evicted.
    async fn drop_evicted(&self, key: &str, slot: &Slot) {
        let mut state = slot.fetch_state.lock().await;
        state.is_evicted = true;
        slot.current.swap(None).into_iter().for_each(drop_later);
        self.metrics.count_datafile("dropped");
        log::warn!("datafile of {}: dropped, there are too many", key_hint(key));
        // The key may have been fetched again in the meantime.
        if self.cache.get(key).is_none() {
            self.disk_cache.remove(key).await;
        }
    }

    async fn refresh_slot(&self, key: &str, slot: &Slot) {
        let mut state = slot.fetch_state.lock().await;
        if !state.is_evicted {
            self.fetch(key, slot, &mut state).await;
        }
    }

    /// Fetches the datafile, and puts a usable one in force. Returns the status if the source refuses the key.
    async fn fetch(&self, key: &str, slot: &Slot, state: &mut FetchState) -> Option<StatusCode> {
        let is_first = slot.current.load().is_none();
        let error = match self.request(key, state.modified.as_deref()).await {
            SourceReply::Unchanged => {
                slot.end_fetch(None);
                return None;
            }
            SourceReply::Refused(status) => {
                slot.end_fetch(Some(format!("the source answered {status}")));
                return Some(status);
            }
            SourceReply::Datafile(text, modified) => match self.parse(text.clone()).await {
                Ok(loaded) => {
                    let loaded = Arc::new(loaded);
                    let replaced = slot.current.swap(Some(Arc::clone(&loaded)));
                    replaced.into_iter().for_each(drop_later);
                    self.announcer.announce(key, &loaded);
                    state.modified = modified;
                    slot.end_fetch(None);
                    self.metrics.count_datafile("loaded");
                    self.disk_cache.write(key, &text).await;
                    return None;
                }
                Err(error) => error,
            },
            SourceReply::Failed(error) => error,
        };
        self.metrics.count_datafile("refused");
        log::warn!("datafile of {}: {error}", key_hint(key));
        slot.end_fetch(Some(error));
        if is_first
            && let Some(text) = self.disk_cache.read(key).await
            && let Ok(loaded) = self.parse(text.into()).await
        {
            slot.current.store(Some(Arc::new(loaded)));
            self.metrics.count_datafile("from_disk");
        }
        None
    }

    async fn request(&self, key: &str, modified: Option<&str>) -> SourceReply {
        let (_, token) = split_key(key);
        let mut request = match self.client.get(&datafile_url(&self.template, key)) {
            Ok(request) => request,
            Err(error) => return SourceReply::Failed(error.to_string()),
        };
        if let Some(modified) = modified {
            request = request.header(IF_MODIFIED_SINCE, modified);
        }
        if !token.is_empty() {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let reply = match request.send().await {
            Ok(reply) => reply,
            Err(error) => return SourceReply::Failed(outbound::describe(error)),
        };
        let status = reply.status();
        match SourceAnswer::from_status(status) {
            SourceAnswer::Datafile => {}
            SourceAnswer::Unchanged => return SourceReply::Unchanged,
            SourceAnswer::Refused => return SourceReply::Refused(status),
            SourceAnswer::Failed => {
                return SourceReply::Failed(format!("the source answered {status}"));
            }
        }
        let modified = reply.headers().get(LAST_MODIFIED);
        let modified = modified
            .and_then(|one| one.to_str().ok())
            .map(str::to_owned);
        let max_bytes = usize::try_from(self.max_bytes).unwrap_or(usize::MAX);
        match outbound::read_body(reply, max_bytes).await {
            Ok(text) => SourceReply::Datafile(text, modified),
            Err(error) => SourceReply::Failed(error),
        }
    }

    /// Indexes a datafile on a thread for blocking work.
    async fn parse(&self, text: Bytes) -> Result<LoadedDatafile, String> {
        let rules = self.rules;
        let parsed = tokio::task::spawn_blocking(move || LoadedDatafile::parse(text, rules));
        parsed.await.map_err(|error| error.to_string())?
    }
}

/// Refreshes all fetched datafiles periodically.
pub struct Poll(pub Arc<RemoteDatafiles>);

#[async_trait]
impl BackgroundService for Poll {
    async fn start(&self, mut shutdown: ShutdownWatch) {
        let disk_cache = self.0.disk_cache.clone();
        tokio::task::spawn_blocking(move || disk_cache.sweep(cache::MAX_DATAFILES));
        loop {
            // Reloads, however frequent, do not put a refresh off.
            let due = *lock(&self.0.polled) + self.0.poll_interval;
            tokio::select! {
                () = tokio::time::sleep_until(due) => {}
                _ = shutdown.changed() => return,
            }
            *lock(&self.0.polled) = Instant::now();
            let all: Vec<_> = {
                let all = self.0.cache.all();
                let all = all
                    .iter()
                    .map(|(key, slot)| (key.clone(), Arc::clone(slot)));
                all.collect()
            };
            let refresh = |(key, slot): (Box<str>, Arc<Slot>)| {
                let datafiles = Arc::clone(&self.0);
                async move { datafiles.refresh_slot(&key, &slot).await }
            };
            futures::stream::iter(all)
                .for_each_concurrent(MAX_POLLS, refresh)
                .await;
        }
    }
}
