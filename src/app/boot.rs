//! Starts a gateway from a configuration.
//!
//! Everything that can fail at start fails here, before the first request: listeners, store, catalogue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use filters::proxy::OwnOrigin;
use prometheus::IntGauge;
use tokio::runtime::Runtime;
use tokio::sync::watch;

use super::background;
use super::experiments::FlagExperiments;
use super::health::Health;
use super::late_store::LateStore;
use super::listeners::Listeners;
use super::routes;
use super::running::{BackgroundRuntime, Running, StopMode};
use super::state::AppState;
use crate::accounts::AccountsHandle;
use crate::accounts::access_tokens::AccessTokens;
use crate::accounts::copy::AccountsCopy;
use crate::config::{Config, GraphUpstream, ProviderKind, Secret};
use crate::decisions::{DecisionService, Dispatchers};
use crate::graph::Graph;
use crate::ledger::recovery::recover_journals;
use crate::ledger::{self, Ledger};
use crate::limits::{Quotas, Sharing};
use crate::mcp::oauth::OAuthParts;
use crate::mcp::routes::McpParts;
use crate::models::Models;
use crate::models::experiments::Experiments;
use crate::models::media::Media;
use crate::models::planner::{self, Planner};
use crate::models::providers::Provider;
use crate::models::reply_cache::{self, ReplyCache};
use crate::models::sessions::{self, Sessions};
use crate::models::shared_health::HealthSharing;
use crate::models::store_snapshots::StoreSnapshots;
use crate::proxy::address_limits::AddressLimits;
use crate::proxy::body_budget::BodyBudget;
use crate::proxy::clock::Clock;
use crate::proxy::permits::Permits;
use crate::proxy::state::{ProxySettings, ProxyState};
use crate::proxy::tls::{CertificateRefresh, Tls};
use crate::proxy::upload::Spool;
use crate::redis::{Heartbeat, Purpose, Redis};
use crate::sandbox;
use crate::store::{self, FirstRun, Store, StoreLock, StoreSettings, StoreUrl};
use crate::telemetry::logging::AccessLog;
use crate::telemetry::metrics::Metrics;

/// Why the gateway did not start.
#[derive(Debug)]
pub struct BootError {
    /// The message for the operator.
    pub message: String,
    /// Whether the configuration has to change.
    pub is_configuration: bool,
}

impl std::fmt::Display for BootError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for BootError {}

pub(super) fn failed(what: &str, error: impl std::fmt::Display) -> BootError {
    BootError {
        message: format!("{what}: {error}"),
        is_configuration: false,
    }
}

fn misconfigured(message: String) -> BootError {
    BootError {
        message,
        is_configuration: true,
    }
}

/// Starts a gateway.
///
/// Errors: an address is not available, the catalogue is invalid, the store cannot be opened.
pub fn boot(
    mut config: Config,
    access_log: impl FnOnce(&Metrics) -> std::io::Result<AccessLog>,
) -> Result<Running, BootError> {
    // The listeners come first: a start that fails must not create a key that it cannot show afterwards.
    let listeners = Listeners::bind(&config)?;
    let (public, admin) = (listeners.public_address, listeners.admin_address);
    let catalog = planner::load_catalog(&config).map_err(misconfigured)?;
    let tls = tls(&config)?.unzip();
    let runtime = background::runtime()?;
    let metrics = Arc::new(Metrics::new().map_err(|error| failed("metrics", error))?);
    let access_log = access_log(&metrics).map_err(|error| failed("starting the log", error))?;
    let sandboxes = Sandboxes::bind(&mut config)?;
    let opened = runtime.block_on(open(&config, sandboxes.model.is_some(), &metrics));
    let opened = opened.map_err(|error| store_failed(&error))?;
    let (late, store) = (opened.late, opened.store);
    let shared = Shared {
        accounts: late.accounts.clone(),
        snapshots: opened.snapshots,
        ledger: Arc::clone(&late.ledger),
        metrics,
        access_log: Arc::new(access_log),
        clock: Clock::start(),
    };
    let providers = providers(&config, &store)?;
    let planner = Planner::new(&config, &providers, catalog, &shared.metrics);
    let built = build(&config, &runtime, &store, planner, shared)?;
    let (stop_runtime, stopped) = watch::channel(false);
    let tasks = &built.app.proxy.tasks;
    tasks.watch_task("accounts", &runtime.spawn(late.follow(stopped.clone())));
    background::refresh(&runtime, &providers, &built.app, &stopped);
    sandboxes.spawn(&runtime, &stopped);
    background::spawn(&runtime, tls.1, &stopped);
    if let Some(sharing) = built.health_sharing {
        runtime.spawn(sharing.run(stopped.clone()));
    }
    background::work_on_videos(&runtime, &built.app, &stopped);
    background::sweep_oauth(&runtime, &built.app, &stopped);
    let dispatching = built.dispatchers.map(|it| runtime.spawn(it.run(stopped)));
    let of_events = dispatching.iter();
    of_events.for_each(|task| tasks.watch_task("events", task));
    let (stop, stop_mode) = watch::channel(StopMode::No);
    let server = listeners.serve(&config, &built.app.proxy, tls.0, stop_mode)?;
    built.app.proxy.is_serving.store(true, Ordering::Relaxed);
    Ok(Running {
        app: built.app,
        public,
        admin,
        first_run: opened.first_run,
        stop,
        server: Some(server),
        runtime: Some(BackgroundRuntime {
            runtime,
            stop: stop_runtime,
            dispatching,
            heartbeats: built.heartbeats,
            store,
            store_lock: opened.lock,
        }),
    })
}

/// Services that several products share.
struct Shared {
    accounts: AccountsHandle,
    snapshots: StoreSnapshots,
    ledger: Arc<Ledger>,
    metrics: Arc<Metrics>,
    access_log: Arc<AccessLog>,
    clock: Clock,
}

/// A gateway before it listens, with the parts that run in the background.
struct Built {
    app: AppState,
    dispatchers: Option<Dispatchers>,
    heartbeats: Vec<Heartbeat>,
    health_sharing: Option<HealthSharing>,
}

/// Lets flags choose models, if there are flag decisions.
fn experiments(decisions: Option<&Arc<DecisionService>>) -> Option<Box<dyn Experiments>> {
    let decisions = decisions.map(Arc::clone)?;
    Some(Box::new(FlagExperiments(decisions)))
}

/// Builds the products and joins them behind one router.
fn build(
    config: &Config,
    runtime: &Runtime,
    store: &Store,
    planner: Planner,
    shared: Shared,
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
    let oauth = oauth(config, store, (&ledger, &shared.accounts))?;
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

/// Returns what the authorization server of `/mcp` shares with the rest.
fn oauth(
    config: &Config,
    store: &Store,
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
    let max_connections = config.listen.max_connections_per_ip;
    Ok(OAuthParts {
        ledger: Arc::clone(ledger),
        accounts: accounts.clone(),
        pepper: store.pepper().clone(),
        tokens: Arc::new(tokens),
        address_limits: Arc::new(AddressLimits::new(max_connections)),
        own_origin,
    })
}

/// Returns what the probes ask.
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

/// The store, what its first start created, the snapshot of its accounts, and their money.
struct Opened {
    lock: Option<StoreLock>,
    store: Store,
    first_run: Option<FirstRun>,
    snapshots: StoreSnapshots,
    late: LateStore,
}

async fn open(
    config: &Config,
    has_sandbox: bool,
    metrics: &Arc<Metrics>,
) -> Result<Opened, ledger::LedgerError> {
    let settings = StoreSettings::from_config(&config.store)?;
    let lock = StoreLock::acquire(&settings.url)?;
    // A journal that cannot be read stops the start before the store is migrated. So the version that wrote it can still
    // start, and bring its calls to the store.
    let recovered = recover_journals(&config.store.state_dir)?;
    // SQLite is a file, whose copy would be no safer than the file.
    let copy = match &settings.url {
        StoreUrl::Sqlite(_) => None,
        url => Some(AccountsCopy::new(&config.store.state_dir, &url.redacted())),
    };
    let preparing = prepare(settings.clone(), copy, has_sandbox);
    let Prepared {
        store,
        first_run,
        accounts,
        snapshots,
        is_ready,
    } = store::in_background(preparing).await?;
    let ledger = Ledger::detached(&config.store, store.clone(), Arc::clone(metrics))?;
    if is_ready {
        ledger.attach(&config.store, recovered).await?;
    }
    let late = LateStore {
        settings,
        config: config.store.clone(),
        store: store.clone(),
        accounts,
        ledger,
        is_ready,
    };
    Ok(Opened {
        lock,
        store,
        first_run,
        snapshots,
        late,
    })
}

/// A store, and its accounts.
struct Prepared {
    store: Store,
    first_run: Option<FirstRun>,
    accounts: AccountsHandle,
    snapshots: StoreSnapshots,
    /// Whether the store has answered.
    is_ready: bool,
}

/// Opens the store and reads its accounts, or those of the copy if the store does not answer and there may be a copy.
async fn prepare(
    settings: StoreSettings,
    copy: Option<AccountsCopy>,
    has_sandbox: bool,
) -> Result<Prepared, store::StoreError> {
    let may_be_away = copy.is_some();
    let opened = Store::prepare(&settings).await?;
    let is_ready = match opened.store.make_ready(&settings).await {
        Ok(()) => true,
        Err(error) if may_be_away && error.is_unavailable() => {
            log::warn!("{error}: credit cannot be spent until the store answers");
            false
        }
        Err(error) => return Err(error),
    };
    let snapshots = StoreSnapshots::new(opened.store.pepper().fingerprint());
    let subscriber = snapshots.clone();
    let accounts = AccountsHandle::empty(copy, move |rows| subscriber.update(rows));
    let mut first_run = None;
    if is_ready {
        let now_ms = jiff::Timestamp::now().as_millisecond();
        first_run = store::first_run(&opened, has_sandbox, now_ms).await?;
        accounts.read_again(&opened.store).await?;
    } else {
        accounts.read_copy(&opened.store);
    }
    Ok(Prepared {
        store: opened.store,
        first_run,
        accounts,
        snapshots,
        is_ready,
    })
}

/// Returns where uploads go.
fn spool(config: &Config) -> Result<Spool, BootError> {
    let spool = Spool::new(&config.store.state_dir, config.limits.spooled_bytes);
    spool.map_err(|error| failed("the folder of uploads in store.state_dir", error))
}

/// Returns what fetches images for providers, and the budget of bodies, in which they count.
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

/// Returns what model calls remember: images, replies if they may take memory, and sessions.
fn memories(
    config: &Config,
    store: &Store,
    media: Media,
    redis: Option<&Redis>,
    metrics: &Arc<Metrics>,
) -> (Media, Option<Arc<ReplyCache>>, Sessions) {
    let pepper = store.pepper();
    let secrets = reply_cache::SECRET_PURPOSES.map(|purpose| pepper.derive(purpose));
    let replies = ReplyCache::new(config.reply_cache_bytes, &secrets, redis, metrics);
    let secret = pepper.derive(sessions::SECRET_PURPOSE);
    let sessions = Sessions::new(&secret, config.routing.sticky_ttl, redis);
    (media, replies, sessions)
}

/// Returns TLS and the service that refreshes its certificate, if connections are to be encrypted.
fn tls(config: &Config) -> Result<Option<(Tls, CertificateRefresh)>, BootError> {
    let listen = &config.listen;
    let files = listen.tls.as_ref();
    let tls = files.map(|files| Tls::new(files, listen.http2)).transpose();
    tls.map_err(|error| misconfigured(error.to_string()))
}

/// Returns the graph service, if one is configured.
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

/// Returns the quotas of organizations.
fn quotas(
    config: &Config,
    sharing: Option<&Sharing>,
    metrics: &Metrics,
) -> Result<Quotas, BootError> {
    Quotas::new(config, sharing, &metrics.limiter_decisions)
        .map_err(|group| misconfigured(format!("limits.requests_per_minute: {group:?}")))
}

/// Returns what counts requests in windows: the graph service, if one is configured, and the quotas of organizations.
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
    let quotas = quotas(config, sharing.as_ref(), metrics)?;
    Ok((graph, quotas))
}

/// Returns the connection to Redis and its heartbeat, if limits are shared.
fn redis(config: &Config, metrics: &Metrics) -> Result<Option<(Redis, Heartbeat)>, BootError> {
    let Some(url) = &config.shared.redis else {
        return Ok(None);
    };
    start_redis(url, Purpose::Shared, metrics.limiter_degraded.clone()).map(Some)
}

/// Returns the connection to the Redis of agent mode and its heartbeat, if there is one.
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

fn store_failed(error: &ledger::LedgerError) -> BootError {
    match error {
        ledger::LedgerError::Store(error) => BootError {
            message: format!("store: {error}"),
            is_configuration: error.is_configuration(),
        },
        other => failed("the journal of calls", other),
    }
}

/// The built-in upstreams that are configured.
struct Sandboxes {
    model: Option<sandbox::ModelSandbox>,
    graph: Option<sandbox::GraphSandbox>,
}

impl Sandboxes {
    /// Serves them until `stop`.
    fn spawn(self, runtime: &Runtime, stop: &watch::Receiver<bool>) {
        background::spawn(runtime, self.model, stop);
        background::spawn(runtime, self.graph, stop);
    }

    /// Binds them and sets their addresses in the configuration.
    fn bind(config: &mut Config) -> Result<Self, BootError> {
        Ok(Self {
            model: bind_model_sandbox(config)?,
            graph: bind_graph_sandbox(config)?,
        })
    }
}

fn bind_model_sandbox(config: &mut Config) -> Result<Option<sandbox::ModelSandbox>, BootError> {
    let mut sandboxes = config
        .providers
        .iter_mut()
        .filter(|provider| provider.kind == ProviderKind::Sandbox);
    let Some(first_provider) = sandboxes.next() else {
        return Ok(None);
    };
    let model =
        sandbox::ModelSandbox::bind().map_err(|error| failed("the model sandbox", error))?;
    first_provider.base_urls = vec![model.base_url()];
    for provider in sandboxes {
        provider.base_urls = vec![model.base_url()];
    }
    Ok(Some(model))
}

fn bind_graph_sandbox(config: &mut Config) -> Result<Option<sandbox::GraphSandbox>, BootError> {
    let graph = config.graph.as_mut();
    let Some(graph) = graph.filter(|graph| graph.upstream == GraphUpstream::Sandbox) else {
        return Ok(None);
    };
    let sandbox =
        sandbox::GraphSandbox::bind().map_err(|error| failed("the graph sandbox", error))?;
    let url = format!("http://{}", sandbox.address());
    let url = url
        .parse()
        .map_err(|error| failed("the graph sandbox", error))?;
    graph.upstream = GraphUpstream::At(url);
    Ok(Some(sandbox))
}

fn providers(config: &Config, store: &Store) -> Result<Arc<[Arc<Provider>]>, BootError> {
    let key = store.pepper().fingerprint();
    let built: Result<Vec<_>, String> = planner::enabled_providers(config)
        .map(|provider| {
            Provider::new(provider, &config.routing, config.media.fetch, &key).map(Arc::new)
        })
        .collect();
    Ok(built.map_err(|error| failed("providers", error))?.into())
}
