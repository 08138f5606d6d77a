//! Builds the products of a gateway from its configuration.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use filters::proxy::OwnOrigin;
use prometheus::IntGauge;
use tokio::runtime::Runtime;

use super::boot::{BootError, failed, misconfigured};
use super::experiments::FlagExperiments;
use super::health::Health;
use super::routes;
use super::state::AppState;
use crate::accounts::AccountsHandle;
use crate::accounts::access_tokens::AccessTokens;
use crate::config::{Config, GraphUpstream, Secret};
use crate::decisions::{DecisionService, Dispatchers};
use crate::graph::Graph;
use crate::ledger::Ledger;
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
use crate::models::store_snapshots::StoreSnapshots;
use crate::models::{self, Memories, Models};
use crate::proxy::address_limits::AddressLimits;
use crate::proxy::body_budget::BodyBudget;
use crate::proxy::clock::Clock;
use crate::proxy::permits::Permits;
use crate::proxy::state::{ProxySettings, ProxyState};
use crate::proxy::upload::Spool;
use crate::redis::{Heartbeat, Purpose, Redis};
use crate::store::Store;
use crate::telemetry::logging::AccessLog;
use crate::telemetry::metrics::Metrics;

/// Services that several products share.
pub(super) struct SharedServices {
    pub(super) accounts: AccountsHandle,
    pub(super) snapshots: StoreSnapshots,
    pub(super) ledger: Arc<Ledger>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) access_log: Arc<AccessLog>,
    pub(super) clock: Clock,
}

/// A gateway before it listens, with its background parts.
pub(super) struct Built {
    pub(super) app: AppState,
    pub(super) dispatchers: Option<Dispatchers>,
    pub(super) heartbeats: Vec<Heartbeat>,
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
    runtime: &Runtime,
    store: &Store,
    planner: Planner,
    shared: SharedServices,
) -> Result<Built, BootError> {
    let (metrics, ledger) = (shared.metrics, shared.ledger);
    let (redis, heartbeat) = redis(config, &metrics)?.unzip();
    let (agent_redis, agent_heartbeat) = agent_redis(config)?.unzip();
    let decisions_redis = agent_redis.as_ref().or(redis.as_ref());
    let (decisions, dispatchers) = decisions(config, runtime, &metrics, decisions_redis)?.unzip();
    let (graph, quotas) = limited(config, runtime, redis.as_ref(), &metrics)?;
    let (media, body_budget) = media(config, runtime, &metrics)?;
    let ledgers = (Arc::clone(&ledger), shared.snapshots);
    let memories = memories(config, store, media, redis.as_ref(), &metrics);
    let models = Models::new(config, planner, ledgers, memories, (&metrics, shared.clock));
    let models = models.map_err(|error| failed("videos", error))?;
    let models = Arc::new(models.with_experiments(experiments(decisions.as_ref())));
    let health = health(config, &shared.accounts, &ledger, redis.clone());
    let oauth = oauth(config, (runtime, store), (&ledger, &shared.accounts))?;
    let (tokens, address_limits) = (Arc::clone(&oauth.tokens), Arc::clone(&oauth.address_limits));
    let mcp = McpParts::new(redis.as_ref(), oauth);
    let products = (decisions.as_ref(), graph.as_ref());
    let router = routes::router(config, health, &models, products, mcp);
    let (router, openapi) = router.map_err(|error| failed("descriptions of routes", error))?;
    let proxy = ProxyState {
        settings: ProxySettings::from_config(config),
        metrics,
        access_log: shared.access_log,
        accounts: shared.accounts,
        pepper: store.pepper().clone(),
        tokens,
        quotas,
        permits: Arc::new(Permits::new(config.limits.in_flight)),
        stream_resets: Arc::default(),
        body_budget,
        spool: spool(config)?,
        address_limits,
        router,
        clock: shared.clock,
        tasks: ledger.tasks.clone(),
        is_serving: AtomicBool::new(false),
    };
    Ok(Built {
        health_sharing: redis.map(|it| HealthSharing::new(&it, &models)),
        app: AppState {
            proxy: Arc::new(proxy),
            models,
            decisions,
            graph,
            ledger,
            openapi,
        },
        dispatchers,
        heartbeats: heartbeat.into_iter().chain(agent_heartbeat).collect(),
    })
}

/// Returns the endpoint for probes.
fn health(
    config: &Config,
    accounts: &AccountsHandle,
    ledger: &Arc<Ledger>,
    redis: Option<Redis>,
) -> Health {
    Health {
        accounts: accounts.clone(),
        ledger: Arc::clone(ledger),
        redis,
        client_ip_header: config.listen.client_ip_header.clone(),
    }
}

/// Returns the parts that the authorization server of `/mcp` shares with the rest.
fn oauth(
    config: &Config,
    (runtime, store): (&Runtime, &Store),
    (ledger, accounts): (&Arc<Ledger>, &AccountsHandle),
) -> Result<OAuthParts, BootError> {
    let public = config
        .mcp
        .as_ref()
        .and_then(|mcp| mcp.origins.public.clone());
    let own_origin = OwnOrigin {
        public,
        is_encrypted: config.listen.tls.is_some(),
    };
    let tokens = AccessTokens::new(store.pepper(), own_origin.clone());
    let tokens = tokens.map_err(|error| failed("access tokens", format!("{error:?}")))?;
    let documents = ClientDocuments::new(runtime.handle().clone(), []);
    let listen = &config.listen;
    let address_limits = AddressLimits::new(listen.max_connections_per_ip, &listen.trusted_proxies);
    Ok(OAuthParts {
        store: store_turns(Arc::clone(ledger)),
        accounts: accounts.clone(),
        pepper: store.pepper().clone(),
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
    runtime: &Runtime,
    metrics: &Arc<Metrics>,
) -> Result<(Media, Arc<BodyBudget>), BootError> {
    let body_budget = Arc::new(BodyBudget::new(config.limits.buffered_bytes));
    let handle = runtime.handle().clone();
    let max_inlined_bytes = config.limits.body_bytes.chat;
    let media = Media::new(
        &config.media,
        max_inlined_bytes,
        handle,
        &body_budget,
        metrics,
    );
    let media = media.map_err(|error| failed("media", error))?;
    Ok((media, body_budget))
}

/// Returns the memories of model calls.
fn memories(
    config: &Config,
    store: &Store,
    media: Media,
    redis: Option<&Redis>,
    metrics: &Arc<Metrics>,
) -> Memories {
    let pepper = store.pepper();
    let secrets = reply_cache::SECRET_PURPOSES.map(|purpose| pepper.derive(purpose));
    let reply_cache = ReplyCache::new(config.reply_cache_bytes, &secrets, redis, metrics);
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
    runtime: &Runtime,
    sharing: Option<&Sharing>,
    metrics: &Arc<Metrics>,
) -> Result<Option<Graph>, BootError> {
    let Some(graph) = &config.graph else {
        return Ok(None);
    };
    let GraphUpstream::At(url) = &graph.upstream else {
        return Err(failed("graph", "the sandbox has no port"));
    };
    Graph::new(graph, url, config, (runtime.handle(), sharing), metrics)
        .map(Some)
        .map_err(|error| failed("graph", error))
}

/// Returns the flag decisions and the dispatchers of their events, if they are configured.
fn decisions(
    config: &Config,
    runtime: &Runtime,
    metrics: &Arc<Metrics>,
    redis: Option<&Redis>,
) -> Result<Option<(Arc<DecisionService>, Dispatchers)>, BootError> {
    let state_dir = &config.store.state_dir;
    let build =
        |decisions| DecisionService::build(decisions, state_dir, runtime.handle(), metrics, redis);
    let built = config.decisions.as_ref().map(build).transpose();
    let built = built.map_err(|error| failed("decisions", error))?;
    Ok(built.map(|(service, dispatchers)| (Arc::new(service), dispatchers)))
}

/// Returns the parts that count requests in windows: the graph service, if configured, and the quotas of
/// organizations.
fn limited(
    config: &Config,
    runtime: &Runtime,
    redis: Option<&Redis>,
    metrics: &Arc<Metrics>,
) -> Result<(Option<Arc<Graph>>, Quotas), BootError> {
    let sharing = redis.map(|redis| Sharing {
        redis: redis.clone(),
        on_outage: config.shared.on_outage,
        is_exact: config.limits.shared_exact,
        leased_units: metrics.limiter_leased_units.clone(),
    });
    let graph = graph(config, runtime, sharing.as_ref(), metrics)?.map(Arc::new);
    let quotas = Quotas::new(config, sharing.as_ref(), &metrics.limiter_decisions);
    Ok((graph, quotas))
}

/// Returns the connection to Redis and its heartbeat if limits are shared.
fn redis(config: &Config, metrics: &Metrics) -> Result<Option<(Redis, Heartbeat)>, BootError> {
    let Some(url) = &config.shared.redis else {
        return Ok(None);
    };
    start_redis(url, Purpose::Shared, metrics.limiter_degraded.clone()).map(Some)
}

/// Returns the connection to the Redis of agent mode and its heartbeat, if it is configured.
fn agent_redis(config: &Config) -> Result<Option<(Redis, Heartbeat)>, BootError> {
    let decisions = config.decisions.as_ref();
    let Some(url) = decisions.and_then(|decisions| decisions.agent_redis.as_ref()) else {
        return Ok(None);
    };
    // The published gauge is about limits, so this one is not published.
    let gauge = IntGauge::new("agent_redis_degraded", "1 while it does not answer");
    let gauge = gauge.map_err(|error| failed("metrics", error))?;
    start_redis(url, Purpose::Agent, gauge).map(Some)
}

fn start_redis(
    url: &Secret,
    purpose: Purpose,
    is_degraded: IntGauge,
) -> Result<(Redis, Heartbeat), BootError> {
    let started = Redis::start(url.expose(), purpose, is_degraded);
    started.map_err(|error| misconfigured(format!("{}: {error}", purpose.setting())))
}
