//! Keys that issuers publish, fetched and looked at again.
//!
//! A set that was read once stays until a better one comes: an issuer that is away takes nobody's tokens from them.
//! A token of a key that is not in it makes us look again, so that new keys count at once; not more often than
//! [`AGAIN`], so that nobody can make us ask without end. Source: docs/decisions.md 22.

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

/// How long an issuer may take.
const FETCH_TIMEOUT: Duration = Duration::from_secs(5);
/// The least time between two looks.
const AGAIN: Duration = Duration::from_secs(10);
/// The most time between two looks.
const REFRESH: Duration = Duration::from_secs(300);
/// The most bytes of a set.
const MAX_KEY_SET_BYTES: usize = 1 << 20;

/// The keys that one issuer publishes.
pub struct RemoteKeySet {
    url: String,
    client: reqwest::Client,
    handle: Handle,
    current: ArcSwapOption<KeySet>,
    /// Held while the issuer is asked; when it was last.
    asked: Mutex<Option<Instant>>,
}

impl RemoteKeySet {
    /// Keys at a URL; fetches run on `handle`, the first one with the first token or [`Refresh`].
    ///
    /// Errors: no HTTP client can be made.
    pub fn new(url: String, handle: Handle) -> reqwest::Result<Self> {
        Ok(Self {
            url,
            client: reqwest::Client::builder().timeout(FETCH_TIMEOUT).build()?,
            handle,
            current: ArcSwapOption::empty(),
            asked: Mutex::new(None),
        })
    }

    /// The set to check a token with; `None`: there was never one. Asks the issuer where the set we have lacks the
    /// token's key.
    ///
    /// Cost: reads the token's head; no lock for a key that is known.
    pub async fn for_token(self: &Arc<Self>, token: &str) -> Option<Arc<KeySet>> {
        let current = self.current.load_full();
        let id = read_key_id(token).ok()?;
        if current.as_ref().is_some_and(|set| set.contains(&id)) {
            return current;
        }
        let published = Arc::clone(self);
        let looked = self.handle.spawn(async move { published.look().await });
        // A look that did not end has told why itself.
        _ = looked.await;
        self.current.load_full()
    }

    /// Asks the issuer, unless somebody just did.
    async fn look(&self) {
        let mut asked = self.asked.lock().await;
        if asked.is_some_and(|at| at.elapsed() < AGAIN) {
            return;
        }
        match self.fetch().await {
            Ok(set) => self.current.store(Some(Arc::new(set))),
            Err(why) => log::warn!("the keys at {}: {why}", self.url),
        }
        *asked = Some(Instant::now());
    }

    async fn fetch(&self) -> Result<KeySet, String> {
        let told = |error: reqwest::Error| error.without_url().to_string();
        let sent = self.client.get(&self.url).send().await.map_err(told)?;
        let mut answer = sent.error_for_status().map_err(told)?;
        let mut text = Vec::new();
        while let Some(part) = answer.chunk().await.map_err(told)? {
            if text.len() + part.len() > MAX_KEY_SET_BYTES {
                return Err(format!("more than {MAX_KEY_SET_BYTES} bytes"));
            }
            text.extend_from_slice(&part);
        }
        KeySet::parse(&text)
    }
}

/// Looks at the keys now and then.
pub struct Refresh(pub Vec<Arc<RemoteKeySet>>);

#[async_trait]
impl BackgroundService for Refresh {
    async fn start(&self, mut stop: ShutdownWatch) {
        while !*stop.borrow() {
            for published in &self.0 {
                published.look().await;
            }
            tokio::select! {
                () = tokio::time::sleep(REFRESH) => {}
                _ = stop.changed() => {}
            }
        }
    }
}
