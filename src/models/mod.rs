//! The model gateway: one call becomes one exchange of several attempts, each with one provider.
//!
//! [`handler`] opens a call, [`planner`] plans its attempts among the [`providers`], [`exchange`] runs them,
//! [`reply_cache`] replays earlier replies, and [`sessions`] keep their provider. A [`deployment`] has the facts that
//! all calls of a model at a provider share. [`shared_health`] exchanges the health of providers between processes.
//! [`explain`] tells how a request would be routed.
//! [`store_snapshots`] has the BYOK keys, the [`prompts`] and the [`budgets`] of callers. [`experiments`] let flags choose models.
//! [`videos`] are jobs after their order, [`stored_responses`] are kept for their clients, and [`jobs`] is what work on jobs
//! shares. [`provider_counts`] asks providers how long prompts are. [`endpoints`] respond to requests that need no provider. [`routes`] has the
//! rows of the route table.

pub mod budgets;
pub mod deployment;
pub mod endpoints;
pub mod exchange;
pub mod experiments;
pub mod explain;
pub mod handler;
mod handover;
pub mod hedging;
pub mod jobs;
pub mod media;
pub mod metrics;
pub mod passthrough;
pub mod planner;
pub mod prompt_lines;
pub mod prompts;
pub mod provider_counts;
pub mod providers;
pub mod reply_cache;
pub mod retry_budget;
pub mod routes;
pub mod sessions;
pub mod shared_health;
pub mod store_snapshots;
pub mod stored_responses;
pub mod unknown_names;
mod upstream_head;
pub mod videos;

use std::sync::Arc;

use crate::config::{Config, Plans};
use crate::ledger::Ledger;
use crate::proxy::buffered::state::Timeouts;
use crate::proxy::clock::Clock;
use crate::proxy::hedge::HedgeConnector;
use crate::telemetry::metrics::Metrics;

use self::budgets::BudgetSnapshot;
use self::experiments::Experiments;
use self::hedging::Hedging;
use self::media::Media;
use self::planner::Planner;
use self::prompts::PromptSnapshot;
use self::provider_counts::ProviderCounts;
use self::providers::ByokSnapshot;
use self::reply_cache::ReplyCache;
use self::retry_budget::RetryBudget;
use http::HeaderName;

use self::sessions::Sessions;
use self::store_snapshots::StoreSnapshots;
use self::stored_responses::StoredResponses;
use self::videos::Videos;

/// The state that all model calls share.
pub struct Models {
    /// Catalogue, providers and their health.
    pub planner: Planner,
    pub ledger: Arc<Ledger>,
    pub byok_keys: Arc<ByokSnapshot>,
    pub prompts: Arc<PromptSnapshot>,
    /// What people say of budgets.
    pub budgets: Arc<BudgetSnapshot>,
    /// Decides the flags of experiments; `None` if the process has no flag decisions.
    pub experiments: Option<Box<dyn Experiments>>,
    /// Fetches images for providers that only accept images in the body.
    pub media: Media,
    /// The cache of replies, or `None` if it is off for every project.
    pub reply_cache: Option<Arc<ReplyCache>>,
    /// The providers of sessions.
    pub sessions: Sessions,
    /// Seals the state that goes through clients.
    pub state_secret: [u8; 32],
    /// The clients and settings for video jobs.
    pub videos: Videos,
    /// The responses of the store. Requests go through [`Models::kept_responses`].
    pub stored_responses: Arc<StoredResponses>,
    /// Asks providers how many tokens requests have.
    pub provider_counts: ProviderCounts,
    pub plans: Plans,
    pub metrics: Arc<Metrics>,
    pub clock: Clock,
    /// Limits second and later fallbacks.
    pub retry_budget: Arc<RetryBudget>,
    /// The parts of hedges, or `None` if hedges are off.
    hedging: Option<Hedging>,
    /// Makes the connections of the gateway's own calls.
    own_connector: Arc<HedgeConnector>,
    /// Names this process to those with which it shares measurements.
    process: u128,
    /// Whether requests may name prompts.
    pub prompts_enabled: bool,
    /// The model that judges calls in auto mode of Claude Code.
    judge_model: Option<Arc<str>>,
    /// The header that only holds API keys, beside which callers may bring credentials of their own.
    key_header: HeaderName,
    /// The maximum bytes of a chat request, also with its prompt.
    pub max_chat_bytes: usize,
    /// Whether lines of calls are exported, some of them with their content.
    is_exported: bool,
    stream_timeouts: Timeouts,
    whole_timeouts: Timeouts,
}

/// What the gateway remembers between calls.
pub struct Memories {
    pub media: Media,
    /// Replies, if they may be stored.
    pub reply_cache: Option<Arc<ReplyCache>>,
    pub sessions: Sessions,
    /// Seals the state that clients remember.
    pub state_secret: [u8; 32],
}

/// The purpose of the secret that seals state. Processes with other secrets do not open it.
pub const STATE_PURPOSE: &str = "sealing state of providers, version 1";

impl Models {
    /// Returns the responses that clients ask to be kept, if the configuration keeps any.
    pub fn kept_responses(&self) -> Option<&Arc<StoredResponses>> {
        let stored = &self.stored_responses;
        stored.is_on().then_some(stored)
    }

    /// Creates the state from a configuration. Of a previous state go on: the budget of fallbacks, the connections of the
    /// gateway's own calls, and what is known of providers that count tokens.
    ///
    /// Errors: no HTTP client can be created.
    pub fn new(
        config: &Config,
        planner: Planner,
        (ledger, snapshots): (Arc<Ledger>, StoreSnapshots),
        memories: Memories,
        (metrics, clock): (&Arc<Metrics>, Clock),
        previous: Option<&Self>,
    ) -> reqwest::Result<Self> {
        let routing = &config.routing;
        let stream_timeouts = Timeouts {
            first_event: routing.first_event_timeout,
            idle: routing.idle_timeout,
            attempt: routing.stream_total_timeout,
            request: routing.deadline,
            keepalive: routing.keepalive,
        };
        Ok(Self {
            planner,
            stored_responses: Arc::new(StoredResponses::new(config, &ledger)),
            ledger,
            byok_keys: snapshots.byok_keys,
            prompts: snapshots.prompts,
            budgets: snapshots.budgets,
            experiments: None,
            prompts_enabled: config.prompts_enabled,
            judge_model: config.judge_model.clone(),
            key_header: config.listen.key_header.clone(),
            max_chat_bytes: config.limits.body_bytes.chat,
            is_exported: config.log_export.is_some(),
            media: memories.media,
            reply_cache: memories.reply_cache,
            sessions: memories.sessions,
            state_secret: memories.state_secret,
            videos: Videos::new(config)?,
            provider_counts: ProviderCounts::new(config, previous.map(|it| &it.provider_counts))?,
            plans: config.plans,
            metrics: Arc::clone(metrics),
            clock,
            retry_budget: previous.map_or_else(Arc::default, |it| Arc::clone(&it.retry_budget)),
            hedging: routing.hedge_after.map(|after| {
                let previous = previous.and_then(|it| it.hedging.as_ref());
                Hedging::new(after, previous)
            }),
            own_connector: previous.map_or_else(Arc::default, |it| Arc::clone(&it.own_connector)),
            process: previous.map_or_else(|| uuid::Uuid::now_v7().as_u128(), |it| it.process),
            stream_timeouts,
            whole_timeouts: Timeouts {
                attempt: routing.total_timeout,
                ..stream_timeouts
            },
        })
    }

    /// Sets the decider of the flags of experiments.
    #[must_use]
    pub fn with_experiments(mut self, experiments: Option<Box<dyn Experiments>>) -> Self {
        self.experiments = experiments;
        self
    }

    /// Returns the timeouts of a call. `streams` tells that the response is streamed, and `takes_comments` that it
    /// consists of events, between which comments may stand.
    fn timeouts(&self, streams: bool, takes_comments: bool) -> Timeouts {
        let stream_timeouts = self.stream_timeouts;
        match (streams, takes_comments) {
            (false, _) => self.whole_timeouts,
            (true, true) => stream_timeouts,
            // Without comments, none is due before the end of the request.
            (true, false) => Timeouts {
                keepalive: stream_timeouts.request,
                ..stream_timeouts
            },
        }
    }
}
