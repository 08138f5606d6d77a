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
use crate::decisions::{DecisionService, Dispatchers};
use crate::graph::Graph;
use crate::limits::{Quotas, Sharing};
use crate::mcp::oauth::documents::ClientDocuments;
use crate::mcp::oauth::{OAuthParts, store_turns};
use crate::mcp::routes::McpParts;
use crate::models::experiments::Experiments;
use crate::models::media::Media;
use crate::models::planner::Planner;
use crate::models::reply_cache::{self, ReplyCache};
use crate::models::sessions::{self, Sessions};
use crate::models::shared_health::HealthSharing;
use crate::models::{self, Memories, Models};
use crate::proxy::address_limits::AddressLimits;
use crate::proxy::body_budget::BodyBudget;
use crate::proxy::permits::Permits;
use crate::proxy::state::{ProxySettings, ProxyState};
use crate::proxy::upload::Spool;
use crate::telemetry::metrics::RouteMetrics;

/// The products of a configuration before they serve, with their background parts.
pub(super) struct Built {
    pub(super) app: AppState,
    pub(super) dispatchers: Option<Dispatchers>,
    pub(super) health_sharing: Option<HealthSharing>,
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
    previous: Option<&AppState>,
) -> Result<Built, BootError> {
    let metrics = &process.metrics;
    let (decisions, dispatchers) = decisions(config, process)?.unzip();
    let (graph, quotas) = limited(config, process, previous)?;
    let (media, body_budget) = media(config, process)?;
    let ledgers = (Arc::clone(&process.ledger), process.snapshots.clone());
    let memories = memories(config, process, media);
    let models = Models::new(config, planner, ledgers, memories, (metrics, process.clock));
    let models = models.map_err(|error| failed("videos", error))?;
    let models = Arc::new(models.with_experiments(experiments(decisions.as_ref())));
    let oauth = oauth(config, process)?;
    let (tokens, address_limits) = (Arc::clone(&oauth.tokens), Arc::clone(&oauth.address_limits));
    let mcp = McpParts::new(process.redis.as_ref(), oauth);
    let products = (decisions.as_ref(), graph.as_ref());
    let router = routes::router(config, health(config, process), &models, products, mcp);
    let (router, openapi) = router.map_err(|error| failed("descriptions of routes", error))?;
    let proxy = ProxyState {
        settings: ProxySettings::from_config(config),
        metrics: Arc::clone(metrics),
        access_log: Arc::clone(&process.access_log),
        accounts: process.accounts.clone(),
        pepper: process.store.pepper().clone(),
        tokens,
        quotas,
        permits: Arc::new(Permits::new(config.limits.in_flight)),
        stream_resets: Arc::clone(&process.stream_resets),
        body_budget,
        spool: spool(config)?,
        address_limits,
        route_metrics: RouteMetrics::new(router.routes().len()),
        router,
        clock: process.clock,
        tasks: process.ledger.tasks.clone(),
        is_serving: Arc::clone(&process.is_serving),
    };
    Ok(Built {
        health_sharing: process
            .redis
            .as_ref()
            .map(|redis| HealthSharing::new(redis, &models)),
        app: AppState {
            proxy: Arc::new(proxy),
            models,
            decisions,
            graph,
            ledger: Arc::clone(&process.ledger),
            openapi,
        },
        dispatchers,
    })
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
    let documents = ClientDocuments::new(process.background.clone(), []);
    let listen = &config.listen;
    let address_limits = AddressLimits::new(listen.max_connections_per_ip, &listen.trusted_proxies);
    Ok(OAuthParts {
        store: store_turns(Arc::clone(&process.ledger)),
        accounts: process.accounts.clone(),
        pepper: pepper.clone(),
        tokens: Arc::new(tokens),
        address_limits: Arc::new(address_limits),
        documents: documents.map_err(|error| failed("documents of clients", error))?,
        own_origin,
    })
}

/// Returns the folder of uploads.
fn spool(config: &Config) -> Result<Spool, BootError> {
    let spool = Spool::new(&config.store.state_dir, config.limits.spooled_bytes);
    spool.map_err(|error| failed("the folder of uploads in store.state_dir", error))
}

/// Returns the fetcher of images for providers, and the budget of bodies, in which images count.
fn media(
    config: &Config,
    process: &ProcessServices,
) -> Result<(Media, Arc<BodyBudget>), BootError> {
    let body_budget = Arc::new(BodyBudget::new(config.limits.buffered_bytes));
    let handle = process.background.clone();
    let max_inlined_bytes = config.limits.body_bytes.chat;
    let media = Media::new(
        &config.media,
        max_inlined_bytes,
        handle,
        &body_budget,
        &process.metrics,
    );
    let media = media.map_err(|error| failed("media", error))?;
    Ok((media, body_budget))
}

/// Returns the memories of model calls.
fn memories(config: &Config, process: &ProcessServices, media: Media) -> Memories {
    let (pepper, redis) = (process.store.pepper(), process.redis.as_ref());
    let secrets = reply_cache::SECRET_PURPOSES.map(|purpose| pepper.derive(purpose));
    let reply_cache = ReplyCache::new(config.reply_cache_bytes, &secrets, redis, &process.metrics);
    let secret = pepper.derive(sessions::SECRET_PURPOSE);
    Memories {
        media,
        reply_cache,
        sessions: Sessions::new(&secret, config.routing.sticky_ttl, redis),
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
) -> Result<Option<(Arc<DecisionService>, Dispatchers)>, BootError> {
    let (state_dir, handle) = (&config.store.state_dir, &process.background);
    let redis = process.agent_redis.as_ref().or(process.redis.as_ref());
    let build =
        |decisions| DecisionService::build(decisions, state_dir, handle, &process.metrics, redis);
    let built = config.decisions.as_ref().map(build).transpose();
    let built = built.map_err(|error| failed("decisions", error))?;
    Ok(built.map(|(service, dispatchers)| (Arc::new(service), dispatchers)))
}

/// Returns the parts that count requests in windows: the graph service, if configured, and the quotas of
/// organizations.
fn limited(
    config: &Config,
    process: &ProcessServices,
    previous: Option<&AppState>,
) -> Result<(Option<Arc<Graph>>, Quotas), BootError> {
    let metrics = &process.metrics;
    let sharing = process.redis.as_ref().map(|redis| Sharing {
        redis: redis.clone(),
        on_outage: config.shared.on_outage,
        is_exact: config.limits.shared_exact,
        leased_units: metrics.limiter_leased_units.clone(),
    });
    let before = previous.and_then(|previous| previous.graph.as_deref());
    let graph = graph(config, process, sharing.as_ref(), before)?.map(Arc::new);
    let before = previous.map(|previous| &previous.proxy.quotas);
    let quotas = Quotas::new(config, sharing.as_ref(), &metrics.limiter_decisions, before);
    Ok((graph, quotas))
}
