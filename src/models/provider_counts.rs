//! What providers are asked how many tokens a request has with, and which of them are not asked for a while.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::Semaphore;

use crate::config::Config;
use crate::outbound::Outbound;

/// How long a provider may take before the estimate counts.
const TIMEOUT: Duration = Duration::from_secs(3);
/// How many counts of providers run at once. Others are estimated.
const MAX_RUNNING: usize = 64;

/// What asks providers for counts.
pub struct ProviderCounts {
    pub outbound: Outbound,
    /// Those that run at once.
    pub running: Arc<Semaphore>,
    /// Until when providers are not asked, in milliseconds of the wall clock.
    resting: Arc<Mutex<HashMap<Arc<str>, u64>>>,
}

impl ProviderCounts {
    /// What a previous value asks now counts, and so do the pauses of providers.
    ///
    /// Errors: no HTTP client can be created.
    pub fn new(config: &Config, previous: Option<&Self>) -> reqwest::Result<Self> {
        let urls = config.written_provider_urls();
        Ok(Self {
            // Its connections belong to the runtime of each request.
            outbound: Outbound::direct(TIMEOUT, urls)?,
            running: match previous {
                Some(previous) => Arc::clone(&previous.running),
                None => Arc::new(Semaphore::new(MAX_RUNNING)),
            },
            resting: previous.map_or_else(Arc::default, |it| Arc::clone(&it.resting)),
        })
    }

    /// Returns whether a provider is not asked now.
    pub fn rests(&self, provider: &str, now_ms: u64) -> bool {
        let resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        resting.get(provider).is_some_and(|until| *until > now_ms)
    }

    /// Asks a provider no more until then.
    pub fn rest(&self, provider: &Arc<str>, until_ms: u64) {
        let mut resting = self.resting.lock().unwrap_or_else(PoisonError::into_inner);
        resting.insert(Arc::clone(provider), until_ms);
    }
}
