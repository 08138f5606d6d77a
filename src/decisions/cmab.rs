//! The client of the predictor for contextual bandits, and its cache. Source: docs/facts/decision-engine.md B.
//!
//! A prediction is reused until it is [`CACHE_TTL`] old or the user's attributes change. Decisions that need the same
//! prediction wait for it together.

use std::sync::Arc;
use std::time::Duration;

use filters::decisions::Options;
use filters::decisions::cmab;
use filters::decisions::cmab::CmabRequest;
use filters::decisions::inputs::Predicted;
use futures::future::join_all;
use moka::future::Cache;
use moka::ops::compute::{CompResult, Op};
use tokio::runtime::Handle;

use super::user_key::UserKey;
use super::uuid::new_uuid;
use crate::config::DecisionsConfig;
use crate::outbound::{self, Outbound};
use crate::telemetry::metrics::Metrics;

/// The capacity of the cache.
const MAX_CACHE_BYTES: u64 = 32 << 20;
/// The approximate size of a prediction without its texts.
const ENTRY_BYTES: usize = 160;
const CACHE_TTL: Duration = Duration::from_secs(1800);
/// The maximum bytes of a reply.
const MAX_REPLY_BYTES: usize = 1 << 20;
/// The maximum time of a request.
const PREDICTION_TIMEOUT: Duration = Duration::from_secs(10);
/// The pause between the first try and the second, which is the last.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// The client of the predictor, and its cache.
#[derive(Clone)]
pub struct CmabClient(Arc<CmabState>);

struct CmabState {
    endpoint: String,
    /// Whether the operator wrote the endpoint.
    is_written: bool,
    client: Outbound,
    handle: Handle,
    cache: Cache<CacheKey, CachedPrediction>,
    metrics: Arc<Metrics>,
}

/// The user and the experiment of a prediction.
type CacheKey = (UserKey, Box<str>);

#[derive(Clone)]
struct CachedPrediction {
    fingerprint: u32,
    variation: Box<str>,
    uuid: Box<str>,
}

fn weight(((sdk_key, user), experiment): &CacheKey, cached: &CachedPrediction) -> u32 {
    let keys = sdk_key.len() + user.len() + experiment.len();
    let bytes = ENTRY_BYTES + keys + cached.variation.len() + cached.uuid.len();
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

impl From<CachedPrediction> for Predicted {
    fn from(cached: CachedPrediction) -> Self {
        Self::Variation {
            id: cached.variation,
            uuid: cached.uuid,
        }
    }
}

impl CmabClient {
    /// Returns the client of a configuration. Requests run on `handle`. A previous client of the same endpoint is the same,
    /// with its predictions.
    ///
    /// Errors: no HTTP client can be created.
    pub fn new(
        decisions: &DecisionsConfig,
        handle: Handle,
        metrics: &Arc<Metrics>,
        previous: Option<&Self>,
    ) -> reqwest::Result<Self> {
        let endpoint = decisions.cmab_endpoint.as_str();
        let is_written = decisions.is_cmab_written;
        let is_same = |it: &&Self| it.0.endpoint == endpoint && it.0.is_written == is_written;
        if let Some(same) = previous.filter(is_same) {
            return Ok(same.clone());
        }
        let written = decisions.is_cmab_written.then_some(endpoint);
        Ok(Self(Arc::new(CmabState {
            endpoint: decisions.cmab_endpoint.clone(),
            is_written,
            client: Outbound::new(PREDICTION_TIMEOUT, written)?,
            handle,
            cache: Cache::builder()
                .max_capacity(MAX_CACHE_BYTES)
                .weigher(weight)
                .time_to_live(CACHE_TTL)
                .support_invalidation_closures()
                .build(),
            metrics: Arc::clone(metrics),
        })))
    }

    /// Removes the predictions of all users of an SDK key.
    pub fn reset(&self, sdk_key: &str) {
        let key: Box<str> = sdk_key.into();
        let is_of_key = move |((owner, _), _): &CacheKey, _: &CachedPrediction| *owner == key;
        // This only fails in a cache that was built without support for closures.
        _ = self.0.cache.invalidate_entries_if(is_of_key);
    }

    /// Returns the predictions for a user by experiment. All requests run at once.
    pub async fn predict(
        &self,
        user_key: &UserKey,
        requests: Vec<CmabRequest>,
        options: Options,
    ) -> Vec<(Box<str>, Predicted)> {
        let running = requests.into_iter().map(|request| {
            let (state, user_key) = (Arc::clone(&self.0), user_key.clone());
            let experiment = request.experiment_id.clone();
            let task = self.0.handle.spawn(async move {
                let prediction = state.find_or_fetch(user_key, &request, options).await;
                prediction.map_or(Predicted::Failed, Predicted::from)
            });
            async move { (experiment, task.await.unwrap_or(Predicted::Failed)) }
        });
        join_all(running).await
    }
}

impl CmabState {
    /// Returns the cached prediction, or fetches one.
    async fn find_or_fetch(
        &self,
        user_key: UserKey,
        request: &CmabRequest,
        options: Options,
    ) -> Option<CachedPrediction> {
        let user = user_key.1.clone();
        if options.ignore_cmab_cache {
            return self.fetch(&user, request).await;
        }
        let key = (user_key, request.experiment_id.clone());
        if options.invalidate_user_cmab_cache {
            self.cache.invalidate(&key).await;
        }
        let fingerprint = request.fingerprint();
        let known = self.cache.get(&key).await;
        if let Some(known) = known.filter(|known| known.fingerprint == fingerprint) {
            return Some(known);
        }
        let entry = self.cache.entry(key);
        let result = entry.and_compute_with(async |known| {
            let is_known = known.is_some_and(|known| known.value().fingerprint == fingerprint);
            if is_known {
                return Op::Nop;
            }
            match self.fetch(&user, request).await {
                Some(predicted) => Op::Put(predicted),
                None => Op::Remove,
            }
        });
        match result.await {
            CompResult::Inserted(entry)
            | CompResult::ReplacedWith(entry)
            | CompResult::Unchanged(entry) => Some(entry.into_value()),
            CompResult::Removed(_) | CompResult::StillNone(_) => None,
        }
    }

    /// Fetches a prediction, in at most two tries.
    async fn fetch(&self, user: &str, request: &CmabRequest) -> Option<CachedPrediction> {
        let uuid = new_uuid();
        let body = request.body(user, &uuid);
        for pause in [Some(RETRY_PAUSE), None] {
            match self.post(&request.experiment_id, body.clone()).await {
                Ok(variation) => {
                    self.metrics.count_prediction("predicted");
                    return Some(CachedPrediction {
                        fingerprint: request.fingerprint(),
                        variation,
                        uuid: uuid.into(),
                    });
                }
                Err(why) => log::warn!("a prediction failed: {why}"),
            }
            if let Some(pause) = pause {
                tokio::time::sleep(pause).await;
            }
        }
        self.metrics.count_prediction("failed");
        None
    }

    async fn post(&self, experiment: &str, body: Vec<u8>) -> Result<Box<str>, String> {
        let request = self.client.post(&self.endpoint.replace("%s", experiment))?;
        let request = request
            .header("content-type", "application/json")
            .body(body);
        let reply = request.send().await.map_err(outbound::describe)?;
        let body = outbound::read_success(reply, MAX_REPLY_BYTES).await?;
        cmab::read_prediction(&body).ok_or_else(|| "the answer holds no prediction".to_owned())
    }
}
