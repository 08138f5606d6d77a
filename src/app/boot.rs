//! From a configuration to a gateway that listens.
//!
//! Everything that can fail fails here, before the first request: the store, the catalogue, the addresses.
//! Organs (the store's refresh, look-ups of names, sandboxes) live on a small runtime of their own, so that
//! nothing they do takes a worker from a request.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;

use pingora::apps::HttpServerOptions;
use pingora::apps::http_app::HttpServer;
use pingora::listeners::{L4BufferSettings, ListenerConfig};
use pingora::protocols::http::v2::server::default_h2_options;
use pingora::server::configuration::ServerConf;
use pingora::server::{RunArgs, Server};
use pingora::services::background::BackgroundService;
use pingora::services::listening::Service;
use pingora_proxy::http_proxy;
use tokio::runtime::Runtime;
use tokio::sync::{Semaphore, watch};

use super::health::Health;
use super::routes;
use super::running::{BackgroundRuntime, Running, ShutdownChannel, StopMode};
use super::state::AppState;
use crate::accounts::AccountsHandle;
use crate::admin::Admin;
use crate::config::{Config, GraphUpstream, ProviderKind};
use crate::decisions::{DecisionService, Dispatchers};
use crate::graph::Graph;
use crate::ledger::{self, Ledger};
use crate::limits::Quotas;
use crate::models::Models;
use crate::models::planner;
use crate::models::planner::Planner;
use crate::models::providers::Provider;
use crate::proxy::clock::Clock;
use crate::proxy::connections::{ConnectionLimiter, KEEPALIVE};
use crate::proxy::hooks::Proxy;
use crate::proxy::origin::DnsRefresh;
use crate::proxy::state::{ProxySettings, ProxyState};
use crate::redis::{Heartbeat, Redis};
use crate::sandbox;
use crate::store::{self, FirstRun, Store};
use crate::telemetry::logging::AccessLog;
use crate::telemetry::metrics::Metrics;
use filters::accounts::Pepper;

/// Of a client's connection. Head and body of a usual answer fit, so that they leave in one write; Pingora's own
/// 1460 bytes cost a second one as soon as `metadata` is in it. What is read is smaller than Pingora's 64 KiB,
/// because every open stream keeps its buffers.
const READ_BUFFER: usize = 16 << 10;
const WRITE_BUFFER: usize = 8 << 10;
/// Connections to providers that are kept, at least.
const KEPT_CONNECTIONS: usize = 1024;
/// Tries of one attempt: other keys and one repetition on a fresh connection, with the caller's own keys and then with
/// the platform's.
const TRIES_PER_ATTEMPT: usize = 8;

/// Why the gateway did not start.
#[derive(Debug)]
pub struct BootError {
    /// What to tell the operator.
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

/// Starts a gateway. Errors: the store cannot be opened, the catalogue is wrong, an address cannot be had.
pub fn boot(
    mut config: Config,
    access_log: impl FnOnce(&Metrics) -> std::io::Result<AccessLog>,
) -> Result<Running, BootError> {
    // First of all: a start that fails must not make a key that nobody gets to see.
    let (public, admin) = claim(&config)?;
    let catalog = planner::catalog(&config).map_err(misconfigured)?;
    let runtime = background_runtime()?;
    let metrics = Arc::new(Metrics::new().map_err(|error| failed("metrics", error))?);
    let access_log =
        Arc::new(access_log(&metrics).map_err(|error| failed("starting the log", error))?);
    let model = bind_sandbox(&mut config)?;
    let queries = bind_graph_sandbox(&mut config)?;
    let opened = runtime.block_on(open(&config, model.is_some(), &metrics));
    let (store, first_run, accounts, ledger) = opened.map_err(|error| store_failed(&error))?;
    let providers = providers(&config, &store)?;
    let (redis, heartbeat) = redis(&config, &metrics)?.unzip();
    let (decisions, dispatchers) = decisions(&config, &runtime, &metrics, redis.as_ref())?.unzip();
    let clock = Clock::start();
    let graph = graph(&config, &runtime, redis.as_ref(), (&metrics, clock))?;
    let planner = Planner::new(&config, &providers, catalog);
    let ledger_of_models = Arc::clone(&ledger);
    let callers = accounts.clone();
    let models = Models::new(
        &config,
        planner,
        ledger_of_models,
        callers,
        Arc::clone(&metrics),
        clock,
    );
    let quotas = quotas(&config, redis.as_ref(), &metrics)?;
    let parts = Parts {
        models: Arc::new(models),
        decisions: decisions.map(Arc::new),
        graph: graph.map(Arc::new),
        accounts: accounts.clone(),
        pepper: store.pepper().clone(),
        ledger,
        redis,
        quotas,
        metrics,
        access_log,
        clock,
    };
    let app = assemble(&config, parts);
    let (stop_runtime, stopped) = watch::channel(false);
    runtime.spawn(accounts.follow(store, stopped.clone()));
    keep(&runtime, &providers, &app, &stopped);
    spawn(&runtime, model, &stopped);
    spawn(&runtime, queries, &stopped);
    let dispatching = dispatchers.map(|it| runtime.spawn(it.run(stopped)));
    let (stop, asked) = watch::channel(StopMode::No);
    let server = start(&config, &app.proxy, public, admin, asked)?;
    let running = Running {
        app,
        public,
        admin,
        first_run,
        stop,
        server: Some(server),
        runtime: Some(BackgroundRuntime {
            runtime,
            stop: stop_runtime,
            dispatching,
            heartbeat,
        }),
    };
    running.wait_until_open()?;
    Ok(running)
}

/// What the requests of a gateway share, made one by one.
struct Parts {
    models: Arc<Models>,
    decisions: Option<Arc<DecisionService>>,
    graph: Option<Arc<Graph>>,
    accounts: AccountsHandle,
    pepper: Pepper,
    ledger: Arc<Ledger>,
    redis: Option<Redis>,
    quotas: Quotas,
    metrics: Arc<Metrics>,
    access_log: Arc<AccessLog>,
    clock: Clock,
}

/// Joins the parts behind one router.
fn assemble(config: &Config, parts: Parts) -> AppState {
    let health = Health {
        accounts: parts.accounts.clone(),
        ledger: Arc::clone(&parts.ledger),
        redis: parts.redis,
        client_ip_header: config.listen.client_ip_header.clone(),
    };
    let (decisions, graph) = (parts.decisions.as_ref(), parts.graph.as_ref());
    let router = routes::router(config, health, &parts.models, decisions, graph);
    let state = ProxyState {
        settings: ProxySettings::from_config(config),
        metrics: parts.metrics,
        access_log: parts.access_log,
        accounts: parts.accounts,
        pepper: parts.pepper,
        quotas: parts.quotas,
        in_flight: Arc::new(Semaphore::new(config.limits.in_flight)),
        router,
        clock: parts.clock,
        is_serving: AtomicBool::new(false),
    };
    AppState {
        proxy: Arc::new(state),
        models: parts.models,
        decisions: parts.decisions,
        graph: parts.graph,
        ledger: parts.ledger,
    }
}

/// The store, what its first start made, the snapshot of its accounts, and their money.
async fn open(
    config: &Config,
    has_sandbox: bool,
    metrics: &Arc<Metrics>,
) -> Result<(Store, Option<FirstRun>, AccountsHandle, Arc<Ledger>), ledger::LedgerError> {
    let opened = Store::open(&store::StoreSettings::of(&config.store)?).await?;
    let now_ms = jiff::Timestamp::now().as_millisecond();
    let first_run = store::first_run(&opened, has_sandbox, now_ms).await?;
    let accounts = AccountsHandle::load(&opened.store).await?;
    let store = opened.store;
    let ledger = Ledger::start(&config.store, store.clone(), Arc::clone(metrics)).await?;
    Ok((store, first_run, accounts, ledger))
}

/// Looks names, keys and datafiles up and drops windows that have ended, now and then, until `stop`.
fn keep(
    runtime: &Runtime,
    providers: &[Arc<Provider>],
    app: &AppState,
    stop: &watch::Receiver<bool>,
) {
    let graph = app.graph.as_deref();
    let (keyless, on): (Vec<_>, Vec<_>) = providers.iter().partition(|it| it.keys.is_empty());
    let origins = on.iter().map(|provider| &provider.origin);
    let origins = origins.chain(graph.map(|graph| &graph.origin));
    let lookups = DnsRefresh {
        always: origins.cloned().collect(),
        // Nobody may ever have a key for them: the first request that has one looks.
        once_known: keyless.iter().map(|it| Arc::clone(&it.origin)).collect(),
    };
    spawn(runtime, Some(lookups), stop);
    spawn(runtime, Some(app.proxy.quotas.sweeper()), stop);
    spawn(runtime, graph.map(Graph::sweeper), stop);
    spawn(runtime, graph.map(Graph::keys), stop);
    let followers = app
        .decisions
        .as_deref()
        .map(DecisionService::background_tasks);
    for follower in followers.unwrap_or_default() {
        let stop = stop.clone();
        runtime.spawn(async move { follower.start(stop).await });
    }
}

/// The graph service, where one is configured.
fn graph(
    config: &Config,
    runtime: &Runtime,
    redis: Option<&Redis>,
    shared: (&Arc<Metrics>, Clock),
) -> Result<Option<Graph>, BootError> {
    let Some(graph) = &config.graph else {
        return Ok(None);
    };
    let GraphUpstream::At(url) = &graph.upstream else {
        return Err(failed("graph", "the sandbox has no port"));
    };
    Graph::new(graph, url, config, (runtime.handle(), redis), shared)
        .map(Some)
        .map_err(|error| failed("graph", error))
}

/// The flag decisions, and what dispatches their events.
fn decisions(
    config: &Config,
    runtime: &Runtime,
    metrics: &Arc<Metrics>,
    redis: Option<&Redis>,
) -> Result<Option<(DecisionService, Dispatchers)>, BootError> {
    let state_dir = &config.store.state_dir;
    let build =
        |decisions| DecisionService::build(decisions, state_dir, runtime.handle(), metrics, redis);
    let built = config.decisions.as_ref().map(build).transpose();
    built.map_err(|error| failed("decisions", error))
}

/// The quotas of organizations.
fn quotas(config: &Config, redis: Option<&Redis>, metrics: &Metrics) -> Result<Quotas, BootError> {
    Quotas::new(config, redis, &metrics.limiter_decisions)
        .map_err(|group| misconfigured(format!("limits.requests_per_minute: {group:?}")))
}

/// The connection to what is shared, where something is.
fn redis(config: &Config, metrics: &Metrics) -> Result<Option<(Redis, Heartbeat)>, BootError> {
    let Some(url) = &config.shared.redis else {
        return Ok(None);
    };
    let started = Redis::start(url.expose(), metrics.limiter_degraded.clone());
    started
        .map(Some)
        .map_err(|error| misconfigured(format!("shared.redis: {error}")))
}

/// The runtime of everything that no request waits for.
fn background_runtime() -> Result<Runtime, BootError> {
    // What they call is reached with the one crypto provider; a second gateway in the process finds it set.
    _ = rustls::crypto::ring::default_provider().install_default();
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .thread_name("organs")
        .enable_all()
        .build()
        .map_err(|error| failed("starting threads", error))
}

/// Runs an organ, where there is one, until `stop`.
fn spawn<O>(runtime: &Runtime, organ: Option<O>, stop: &watch::Receiver<bool>)
where
    O: BackgroundService + Send + Sync + 'static,
{
    if let Some(organ) = organ {
        let stop = stop.clone();
        runtime.spawn(async move { organ.start(stop).await });
    }
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

/// Takes a port for the model sandbox where one is configured, and points its provider at it.
fn bind_sandbox(config: &mut Config) -> Result<Option<sandbox::ModelSandbox>, BootError> {
    let mut sandboxes = config
        .providers
        .iter_mut()
        .filter(|provider| provider.kind == ProviderKind::Sandbox);
    let Some(first) = sandboxes.next() else {
        return Ok(None);
    };
    let model =
        sandbox::ModelSandbox::bind().map_err(|error| failed("the model sandbox", error))?;
    first.base_url = model.base_url();
    for other in sandboxes {
        other.base_url = model.base_url();
    }
    Ok(Some(model))
}

/// The same for the graph sandbox.
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
    let key = store.pepper().mark();
    let providers = config.providers.iter().chain(&config.keyless_providers);
    let built: pingora::Result<Vec<_>> = providers
        .map(|provider| Provider::new(provider, &config.routing, &key).map(Arc::new))
        .collect();
    Ok(built.map_err(|error| failed("providers", error))?.into())
}

/// Makes sure that both addresses are free, and chooses the ports where they are 0.
///
/// Pingora binds later and would only log a failure. Both are held at once: the system may hand a port out
/// again as soon as it is let go.
fn claim(config: &Config) -> Result<(SocketAddr, SocketAddr), BootError> {
    let bind = |address: SocketAddr, key: &str| {
        let listener = TcpListener::bind(address)
            .map_err(|error| failed(&format!("{key} {address}"), error))?;
        let address = listener.local_addr().map_err(|error| failed(key, error))?;
        Ok((listener, address))
    };
    let (public, public_address) = bind(config.listen.address, "listen.address")?;
    let (admin, admin_address) = bind(config.admin.address, "admin.address")?;
    drop((public, admin));
    Ok((public_address, admin_address))
}

fn start(
    config: &Config,
    state: &Arc<ProxyState>,
    public: SocketAddr,
    admin: SocketAddr,
    asked: watch::Receiver<StopMode>,
) -> Result<JoinHandle<()>, BootError> {
    let conf = ServerConf {
        threads: config.server.threads,
        upstream_keepalive_pool_size: KEPT_CONNECTIONS.max(config.limits.in_flight),
        max_retries: config.routing.attempts as usize * TRIES_PER_ATTEMPT,
        grace_period_seconds: Some(config.server.grace_period.as_secs()),
        graceful_shutdown_timeout_seconds: Some(1),
        ..ServerConf::default()
    };
    let mut server = Server::new_with_opt_and_conf(None, conf);
    server.bootstrap();
    let mut gateway = Service::new("gateway".to_owned(), limited_proxy(config, state, &server));
    let buffers = L4BufferSettings::new(READ_BUFFER, WRITE_BUFFER);
    gateway.add_listener(ListenerConfig::tcp(public.to_string()).l4_buffer(buffers));
    server.add_service(gateway);
    let mut operators = Service::new(
        "admin".to_owned(),
        HttpServer::new_app(Admin {
            state: Arc::clone(state),
        }),
    );
    operators.threads = Some(1);
    operators.add_tcp(&admin.to_string());
    server.add_service(operators);
    std::thread::Builder::new()
        .name("server".to_owned())
        .spawn(move || {
            let shutdown_signal = Box::new(ShutdownChannel(tokio::sync::Mutex::new(asked)));
            server.run(RunArgs { shutdown_signal });
        })
        .map_err(|error| failed("starting threads", error))
}

/// Pingora's proxy with our hooks, behind the limits of connections.
fn limited_proxy(config: &Config, state: &Arc<ProxyState>, server: &Server) -> ConnectionLimiter {
    let hooks = Proxy {
        state: Arc::clone(state),
    };
    let mut proxy = http_proxy(&server.configuration, hooks);
    let listen = &config.listen;
    let mut options = HttpServerOptions::default();
    options.h2c = listen.http2;
    options.h2_idle_timeout = Some(KEEPALIVE);
    proxy.server_options = Some(options);
    let mut h2 = default_h2_options();
    h2.max_header_list_size(u32::try_from(listen.header_bytes).unwrap_or(u32::MAX));
    proxy.h2_options = Some(h2);
    ConnectionLimiter::new(
        proxy,
        listen.max_connections,
        listen.header_timeout,
        &state.metrics,
    )
}
