//! Who predicts for bandits, and what was predicted before. Source: docs/facts/decision-engine.md B.
//!
//! A prediction counts until it is [`CACHE_TTL`] old or something else is known of the user. Decisions that want the same
//! one wait for it together.

use std::sync::Arc;
use std::time::Duration;

use filters::decisions::Options;
use filters::decisions::bandit;
use filters::decisions::bandit::CmabRequest;
use filters::decisions::inputs::Predicted;
use futures::future::join_all;
use moka::future::Cache;
use moka::ops::compute::{CompResult, Op};
use tokio::runtime::Handle;

use super::UserKey;
use crate::config::DecisionsConfig;
use crate::telemetry::metrics::Metrics;

/// How many predictions are kept.
const MAX_PREDICTIONS: u64 = 10_000;
const CACHE_TTL: Duration = Duration::from_secs(1800);
/// How long the predictor may take.
const PREDICTION_TIMEOUT: Duration = Duration::from_secs(10);
/// Between the first try and the second, which is the last.
const PAUSE: Duration = Duration::from_millis(100);

/// See the module.
#[derive(Clone)]
pub struct CmabClient(Arc<CmabState>);

struct CmabState {
    endpoint: String,
    client: reqwest::Client,
    handle: Handle,
    kept: Cache<Key, CachedPrediction>,
    metrics: Arc<Metrics>,
}

/// Whose prediction, and in which experiment.
type Key = (UserKey, Box<str>);

#[derive(Clone)]
struct CachedPrediction {
    fingerprint: u32,
    variation: Box<str>,
    uuid: Box<str>,
}

impl From<CachedPrediction> for Predicted {
    fn from(kept: CachedPrediction) -> Self {
        Self::Variation {
            id: kept.variation,
            uuid: kept.uuid,
        }
    }
}

impl CmabClient {
    /// The predictor of a configuration; it is asked on `handle`.
    ///
    /// Errors: no HTTP client can be made.
    pub fn new(
        decisions: &DecisionsConfig,
        handle: Handle,
        metrics: &Arc<Metrics>,
    ) -> reqwest::Result<Self> {
        Ok(Self(Arc::new(CmabState {
            endpoint: decisions.cmab_endpoint.clone(),
            client: reqwest::Client::builder()
                .timeout(PREDICTION_TIMEOUT)
                .build()?,
            handle,
            kept: Cache::builder()
                .max_capacity(MAX_PREDICTIONS)
                .time_to_live(CACHE_TTL)
                .support_invalidation_closures()
                .build(),
            metrics: Arc::clone(metrics),
        })))
    }

    /// Forgets all predictions of an SDK key's users.
    pub fn reset(&self, sdk_key: &str) {
        let key: Box<str> = sdk_key.into();
        let is_of_key = move |((owner, _), _): &Key, _: &CachedPrediction| *owner == key;
        // Refused only without support for closures, which the cache was built with.
        _ = self.0.kept.invalidate_entries_if(is_of_key);
    }

    /// What is predicted for a user, by experiment. Questions are asked at once.
    pub async fn predict(
        &self,
        whose: &UserKey,
        questions: Vec<CmabRequest>,
        options: Options,
    ) -> Vec<(Box<str>, Predicted)> {
        let asked = questions.into_iter().map(|question| {
            let (inner, whose) = (Arc::clone(&self.0), whose.clone());
            let experiment = question.experiment_id.clone();
            let answer = self.0.handle.spawn(async move {
                let kept = inner.answer(whose, &question, options).await;
                kept.map_or(Predicted::Failed, Predicted::from)
            });
            async move { (experiment, answer.await.unwrap_or(Predicted::Failed)) }
        });
        join_all(asked).await
    }
}

impl CmabState {
    async fn answer(
        &self,
        whose: UserKey,
        question: &CmabRequest,
        options: Options,
    ) -> Option<CachedPrediction> {
        let user = whose.1.clone();
        if options.ignore_cmab_cache {
            return self.ask(&user, question).await;
        }
        let key = (whose, question.experiment_id.clone());
        if options.invalidate_user_cmab_cache {
            self.kept.invalidate(&key).await;
        }
        let fingerprint = question.fingerprint();
        let known = self.kept.get(&key).await;
        if let Some(known) = known.filter(|known| known.fingerprint == fingerprint) {
            return Some(known);
        }
        let entry = self.kept.entry(key);
        let result = entry.and_compute_with(async |known| {
            let is_known = known.is_some_and(|known| known.value().fingerprint == fingerprint);
            if is_known {
                return Op::Nop;
            }
            match self.ask(&user, question).await {
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

    /// Asks the predictor, twice at most.
    async fn ask(&self, user: &str, question: &CmabRequest) -> Option<CachedPrediction> {
        let uuid = super::new_uuid();
        let body = question.body(user, &uuid);
        for pause in [Some(PAUSE), None] {
            match self.post(&question.experiment_id, body.clone()).await {
                Ok(variation) => {
                    self.metrics.count_prediction("predicted");
                    return Some(CachedPrediction {
                        fingerprint: question.fingerprint(),
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
        let told = |error: reqwest::Error| error.without_url().to_string();
        let request = self.client.post(self.endpoint.replace("%s", experiment));
        let request = request
            .header("content-type", "application/json")
            .body(body);
        let answer = request.send().await.map_err(told)?;
        let answer = answer.error_for_status().map_err(told)?;
        let body = answer.bytes().await.map_err(told)?;
        bandit::predicted(&body).ok_or_else(|| "the answer holds no prediction".to_owned())
    }
}
