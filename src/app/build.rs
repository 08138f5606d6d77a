//! Builds the products of a gateway from a configuration. What the products of the configuration before know lives on.

use std::sync::Arc;

use filters::proxy::OwnOrigin;

use super::boot::{BootError, failed};
use super::experiments::FlagExperiments;
use super::health::Health;
use super::process::ProcessServices;
use super::routes;
use super::state::AppState;
use crate::accounts::access_tokens::AccessTokens;
use crate::config::{Config, GraphUpstream};
use crate::decisions::stream_tickets::StreamTickets;
use crate::decisions::{DecisionService, Dispatchers};
use crate::graph::Graph;
use crate::limits::{Quotas, Sharing};
use crate::mcp::oauth::OAuthParts;
use crate::mcp::routes::McpParts;
use crate::models::experiments::Experiments;
use crate::models::media::Media;
use crate::models::planner::Planner;
use crate::models::reply_cache::{self, ReplyCache};
use crate::models::sessions::{self, Sessions};
use crate::models::shared_health::HealthSharing;
use crate::models::{self, Memories, Models};
use crate::proxy::state::{ProxySettings, ProxyState};
use crate::telemetry::metrics::RouteMetrics;
use crate::telemetry::traces::Traces;
use crate::telemetry::traces::export::SpanExport;

/// The products of a configuration before they serve, with their background parts.
pub(super) struct Built {
    pub(super) app: AppState,
    pub(super) dispatchers: Option<Dispatchers>,
    pub(super) health_sharing: Option<HealthSharing>,
    /// Exports traces, where no earlier configuration has the same.
    pub(super) span_export: Option<SpanExport>,
}

/// What goes on from earlier configurations.
#[derive(Default)]
pub(super) struct Previous<'g> {
    pub(super) models: Option<&'g Models>,
    pub(super) quotas: Option<&'g Quotas>,
    pub(super) traces: Option<&'g Arc<Traces>>,
    /// The last flag decisions, even if they are off now.
    pub(super) decisions: Option<&'g DecisionService>,
    /// The last graph service, even if it is off now.
    pub(super) graph: Option<&'g Graph>,
}

/// Lets flags choose models, if there are flag decisions.
fn experiments(decisions: Option<&Arc<DecisionService>>) -> Option<Box<dyn Experiments>> {
    let decisions = decisions.map(Arc::clone)?;
    Some(Box::new(FlagExperiments(decisions)))
}

/// Builds the products and connects them to one router.
pub(super) fn build(
    config: &Config,
    process: &ProcessServices,
    planner: Planner,
    previous: &Previous<'_>,
) -> Result<Built, BootError> {
    let (decisions, dispatchers) = decisions(config, process, previous.decisions)?.unzip();
    let (graph, quotas) = limited(config, process, previous)?;
    let models = models(
        config,
        process,
        (planner, decisions.as_ref()),
        previous.models,
    )?;
    let oauth = oauth(config, process)?;
    let tokens = Arc::clone(&oauth.tokens);
    let mcp = McpParts::new(process.redis.as_ref(), oauth, &process.mcp);
    let products = (decisions.as_ref(), graph.as_ref());
    let router = routes::router(config, health(config, process), &models, products, mcp);
    let (router, openapi) = router.map_err(|error| failed("descriptions of routes", error))?;
    let (traces, span_export) = traces(config, process, previous.traces);
    let proxy = ProxyState {
        settings: ProxySettings::from_config(config),
        metrics: Arc::clone(&process.metrics),
        access_log: Arc::clone(&process.access_log),
        log_export: Arc::clone(&process.log_export),
        calls: Arc::clone(&process.calls),
        accounts: process.accounts.clone(),
        pepper: process.store.pepper().clone(),
        tokens,
        quotas,
        permits: Arc::clone(&process.permits),
        stream_resets: Arc::clone(&process.stream_resets),
        body_budget: Arc::clone(&process.body_budget),
        spool: Arc::clone(&process.spool),
        address_limits: Arc::clone(&process.address_limits),
        route_metrics: RouteMetrics::new(router.routes().len()),
        router,
        clock: process.clock,
        traces,
        tasks: process.ledger.tasks.clone(),
        progress: process.progress.clone(),
        drain: process.drain.clone(),
        is_serving: Arc::clone(&process.is_serving),
    };
    let redis = process.redis.as_ref();
    Ok(Built {
        health_sharing: redis.map(|redis| HealthSharing::new(redis, &models)),
        app: AppState {
            proxy: Arc::new(proxy),
            models,
            decisions,
            graph,
            ledger: Arc::clone(&process.ledger),
            openapi,
        },
        dispatchers,
        span_export,
    })
}

/// Returns the model gateway. Flags may choose its models, if there are flag decisions.
fn models(
    config: &Config,
    process: &ProcessServices,
    (planner, decisions): (Planner, Option<&Arc<DecisionService>>),
    previous: Option<&Models>,
) -> Result<Arc<Models>, BootError> {
    let media = media(config, process, previous)?;
    let ledgers = (Arc::clone(&process.ledger), process.snapshots.clone());
    let memories = memories(config, process, media, previous);
    let shared = (&process.metrics, process.clock);
    let models = Models::new(config, planner, ledgers, memories, shared, previous);
    let models = models.map_err(|error| failed("videos", error))?;
    Ok(Arc::new(models.with_experiments(experiments(decisions))))
}

/// Returns the traces of requests and the task that exports them. Unchanged traces go on with the task that they have.
fn traces(
    config: &Config,
    process: &ProcessServices,
    previous: Option<&Arc<Traces>>,
) -> (Option<Arc<Traces>>, Option<SpanExport>) {
    let Some(wanted) = &config.telemetry else {
        return (None, None);
    };
    if let Some(same) = previous.filter(|previous| previous.config() == wanted) {
        return (Some(Arc::clone(same)), None);
    }
    let (traces, export) = Traces::new(wanted, &process.metrics.spans);
    (Some(Arc::new(traces)), Some(export))
}

/// Returns the endpoint for probes.
fn health(config: &Config, process: &ProcessServices) -> Health {
    Health {
        accounts: process.accounts.clone(),
        ledger: Arc::clone(&process.ledger),
        redis: process.redis.clone(),
        client_ip_header: config.listen.client_ip_header.clone(),
    }
}

/// Returns the parts that the authorization server of `/mcp` shares with the rest.
fn oauth(config: &Config, process: &ProcessServices) -> Result<OAuthParts, BootError> {
    let public = config
        .mcp
        .as_ref()
        .and_then(|mcp| mcp.origins.public.clone());
    let own_origin = OwnOrigin {
        public,
        is_encrypted: config.listen.tls.is_some(),
    };
    let pepper = process.store.pepper();
    let tokens = AccessTokens::new(pepper, own_origin.clone());
    let tokens = tokens.map_err(|error| failed("access tokens", format!("{error:?}")))?;
    Ok(OAuthParts {
        store: process.store_turns.clone(),
        accounts: process.accounts.clone(),
        pepper: pepper.clone(),
        tokens: Arc::new(tokens),
        address_limits: Arc::clone(&process.address_limits),
        documents: process.client_documents.clone(),
        own_origin,
    })
}

/// Returns what fetches images for providers.
fn media(
    config: &Config,
    process: &ProcessServices,
    previous: Option<&Models>,
) -> Result<Media, BootError> {
    let media = Media::new(
        &config.media,
        config.limits.body_bytes.chat,
        process.background.clone(),
        &process.body_budget,
        (&process.metrics, previous.map(|previous| &previous.media)),
    );
    media.map_err(|error| failed("media", error))
}

/// Returns the memories of model calls.
fn memories(
    config: &Config,
    process: &ProcessServices,
    media: Media,
    previous: Option<&Models>,
) -> Memories {
    let (pepper, redis) = (process.store.pepper(), process.redis.as_ref());
    let secrets = reply_cache::SECRET_PURPOSES.map(|purpose| pepper.derive(purpose));
    let before = previous.and_then(|previous| previous.reply_cache.as_ref());
    let max_bytes = config.reply_cache_bytes;
    let reply_cache = ReplyCache::new(max_bytes, &secrets, redis, &process.metrics, before);
    let secret = pepper.derive(sessions::SECRET_PURPOSE);
    let before = previous.map(|previous| &previous.sessions);
    Memories {
        media,
        reply_cache,
        sessions: Sessions::new(&secret, config.routing.sticky_ttl, redis, before),
        state_secret: pepper.derive(models::STATE_PURPOSE),
    }
}

/// Returns the graph service if it is configured.
fn graph(
    config: &Config,
    process: &ProcessServices,
    sharing: Option<&Sharing>,
    previous: Option<&Graph>,
) -> Result<Option<Graph>, BootError> {
    let Some(graph) = &config.graph else {
        return Ok(None);
    };
    let GraphUpstream::At(url) = &graph.upstream else {
        return Err(failed("graph", "the sandbox has no port"));
    };
    let around = (&process.background, sharing);
    Graph::new(graph, url, config, around, (&process.metrics, previous))
        .map(Some)
        .map_err(|error| failed("graph", error))
}

/// Returns the flag decisions and the dispatchers of their events, if they are configured.
fn decisions(
    config: &Config,
    process: &ProcessServices,
    previous: Option<&DecisionService>,
) -> Result<Option<(Arc<DecisionService>, Dispatchers)>, BootError> {
    let (state_dir, handle) = (&config.store.state_dir, &process.background);
    let redis = process.agent_redis.as_ref().or(process.redis.as_ref());
    let Some(decisions) = &config.decisions else {
        return Ok(None);
    };
    let tickets = StreamTickets::new(process.store.pepper());
    let tickets = tickets.map_err(|_| failed("decisions", "no key can be derived"))?;
    let around = (&process.metrics, redis, tickets);
    let built = DecisionService::build(decisions, state_dir, handle, around, previous);
    let (service, dispatchers) = built.map_err(|error| failed("decisions", error))?;
    Ok(Some((Arc::new(service), dispatchers)))
}

/// Returns the parts that count requests in windows: the graph service, if configured, and the quotas of
/// organizations.
fn limited(
    config: &Config,
    process: &ProcessServices,
    previous: &Previous<'_>,
) -> Result<(Option<Arc<Graph>>, Quotas), BootError> {
    let metrics = &process.metrics;
    let sharing = process.redis.as_ref().map(|redis| Sharing {
        redis: redis.clone(),
        on_outage: config.shared.on_outage,
        is_exact: config.limits.shared_exact,
        leased_units: metrics.limiter_leased_units.clone(),
    });
    let graph = graph(config, process, sharing.as_ref(), previous.graph)?.map(Arc::new);
    let quotas = Quotas::new(
        config,
        sharing.as_ref(),
        &metrics.limiter_decisions,
        previous.quotas,
    );
    Ok((graph, quotas))
}
