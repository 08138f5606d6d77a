//! Key sets of issuers, fetched over HTTP and refreshed.
//!
//! A fetched set stays until a newer one arrives, so the tokens of an unavailable issuer stay valid. A token with an
//! unknown key triggers a refresh, so that new keys count at once. Refreshes are at least [`MIN_REFRESH_INTERVAL`]
//! apart, so that clients cannot cause unlimited fetches. Source: docs/decisions.md 22.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use async_trait::async_trait;
use filters::auth::jwks::{KeySet, read_key_id};
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;
use tokio::runtime::Handle;
use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::outbound::{self, Outbound};

/// The time limit of one fetch.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// The minimum interval between two fetches.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_secs(10);
/// The interval between two regular refreshes.
const REFRESH_INTERVAL: Duration = Duration::from_secs(300);
/// The maximum size of a set.
const MAX_KEY_SET_BYTES: usize = 1 << 20;

/// The keys that one issuer publishes.
pub struct RemoteKeySet {
    url: String,
    client: Outbound,
    handle: Handle,
    current: ArcSwapOption<KeySet>,
    /// The time of the last fetch. Held during a fetch.
    last_fetch: Mutex<Option<Instant>>,
}

impl RemoteKeySet {
    /// Makes the key set of a URL. Fetches run on `handle`; the first one starts with the first token or with
    /// [`Refresh`].
    ///
    /// Errors: the HTTP client cannot be made.
    pub fn new(url: String, handle: Handle) -> reqwest::Result<Self> {
        let client = Outbound::new(FETCH_TIMEOUT, [url.as_str()])?;
        Ok(Self {
            url,
            client,
            handle,
            current: ArcSwapOption::empty(),
            last_fetch: Mutex::new(None),
        })
    }

    /// Returns the URL of the set.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the set with which to check a token, or `None` if none was ever fetched. Refreshes the set if it lacks
    /// the token's key.
    ///
    /// Cost: decodes the token's header; no lock for a known key.
    pub async fn find_for_token(self: &Arc<Self>, token: &str) -> Option<Arc<KeySet>> {
        let current = self.current.load_full();
        let id = read_key_id(token).ok()?;
        if current.as_ref().is_some_and(|set| set.contains(&id)) {
            return current;
        }
        let key_set = Arc::clone(self);
        let refreshed = self.handle.spawn(async move { key_set.refresh().await });
        // A refresh that failed has logged the reason.
        _ = refreshed.await;
        self.current.load_full()
    }

    /// Fetches the set if that is due. Returns the time until it is due again.
    async fn refresh_if_due(&self) -> Duration {
        let age = self.last_fetch.lock().await.map(|at| at.elapsed());
        if let Some(age) = age.filter(|age| *age < REFRESH_INTERVAL) {
            return REFRESH_INTERVAL.saturating_sub(age);
        }
        self.refresh().await;
        REFRESH_INTERVAL
    }

    /// Fetches the set, unless the last fetch was too recent.
    async fn refresh(&self) {
        let mut last_fetch = self.last_fetch.lock().await;
        if last_fetch.is_some_and(|at| at.elapsed() < MIN_REFRESH_INTERVAL) {
            return;
        }
        match self.fetch().await {
            Ok(set) => self.current.store(Some(Arc::new(set))),
            Err(reason) => log::warn!("the keys at {}: {reason}", self.url),
        }
        *last_fetch = Some(Instant::now());
    }

    async fn fetch(&self) -> Result<KeySet, String> {
        let request = self.client.get(&self.url)?;
        let reply = request.send().await.map_err(outbound::describe)?;
        let text = outbound::read_success(reply, MAX_KEY_SET_BYTES).await?;
        KeySet::parse(&text)
    }
}

/// Refreshes key sets at intervals, which go on if another generation of the configuration takes the sets over.
pub struct Refresh(pub Vec<Arc<RemoteKeySet>>);

#[async_trait]
impl BackgroundService for Refresh {
    async fn start(&self, mut stop: ShutdownWatch) {
        while !*stop.borrow() {
            let mut wait = REFRESH_INTERVAL;
            for key_set in &self.0 {
                wait = wait.min(key_set.refresh_if_due().await);
            }
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                _ = stop.changed() => return,
            }
        }
    }
}
