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
use tokio::time::Instant;

use super::running::{BackgroundRuntime, Running, ShutdownChannel, StopMode};
use crate::accounts::AccountsHandle;
use crate::admin::Admin;
use crate::app::state::{AppState, Settings};
use crate::config::{Config, GraphUpstream, ProviderKind};
use crate::decisions::{DecisionService, Dispatchers};
use crate::graph::Graph;
use crate::ledger::{self, Ledger};
use crate::limits::Quotas;
use crate::models::planner;
use crate::models::planner::Planner;
use crate::models::providers::{ByokSnapshot, Provider};
use crate::proxy::connections::{ConnectionLimiter, KEEPALIVE};
use crate::proxy::hooks::Proxy;
use crate::proxy::origin::DnsRefresh;
use crate::redis::{Heartbeat, Redis};
use crate::sandbox;
use crate::store::{self, FirstRun, Store};
use crate::telemetry::logging::AccessLog;
use crate::telemetry::metrics::Metrics;

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
    lines: impl FnOnce(&Metrics) -> std::io::Result<AccessLog>,
) -> Result<Running, BootError> {
    // First of all: a start that fails must not make a key that nobody gets to see.
    let (public, admin) = claim(&config)?;
    let catalog = planner::catalog(&config).map_err(misconfigured)?;
    let organs = organs()?;
    let metrics = Arc::new(Metrics::new().map_err(|error| failed("metrics", error))?);
    let lines = Arc::new(lines(&metrics).map_err(|error| failed("starting the log", error))?);
    let model = bind_sandbox(&mut config)?;
    let queries = bind_graph_sandbox(&mut config)?;
    let opened = organs.block_on(open(&config, model.is_some(), &metrics));
    let OpenedStore {
        store,
        first_run,
        accounts,
        byok_keys,
        ledger,
    } = opened.map_err(|error| store_failed(&error))?;
    let upstreams = upstreams(&config, &store)?;
    let (redis, heart) = redis(&config, &metrics)?.unzip();
    let (flags, tellers) = flags(&config, &organs, &metrics, redis.as_ref())?.unzip();
    let house = Arc::new(AppState {
        settings: Settings::new(&config),
        quotas: quotas(&config, redis.as_ref(), &metrics)?,
        graph: graph(&config, &organs, redis.as_ref())?,
        metrics,
        lines,
        accounts: accounts.clone(),
        byok_keys,
        pepper: store.pepper().clone(),
        routes: Planner::new(&config, &upstreams, catalog),
        flags,
        ledger,
        redis,
        room: Arc::new(Semaphore::new(config.limits.in_flight)),
        begun: Instant::now(),
        is_serving: AtomicBool::new(false),
    });
    let (stop_organs, stopped) = watch::channel(false);
    organs.spawn(accounts.run_refresh(store, stopped.clone()));
    keep(&organs, &upstreams, &house, &stopped);
    spawn(&organs, model, &stopped);
    spawn(&organs, queries, &stopped);
    let dispatching = tellers.map(|it| organs.spawn(it.run(stopped)));
    let (stop, asked) = watch::channel(StopMode::No);
    let server = start(&config, &house, public, admin, asked)?;
    let running = Running {
        house,
        public,
        admin,
        first_run,
        stop,
        server: Some(server),
        organs: Some(BackgroundRuntime {
            runtime: organs,
            stop: stop_organs,
            dispatching,
            heart,
        }),
    };
    running.wait_until_open()?;
    Ok(running)
}

/// The store and the parts of the gateway that are read from it.
struct OpenedStore {
    store: Store,
    first_run: Option<FirstRun>,
    accounts: AccountsHandle,
    byok_keys: Arc<ByokSnapshot>,
    ledger: Arc<Ledger>,
}

/// Opens the store and reads the first snapshots. Errors: the store or the ledger did not start.
async fn open(
    config: &Config,
    has_sandbox: bool,
    metrics: &Arc<Metrics>,
) -> Result<OpenedStore, ledger::LedgerError> {
    let opened = Store::open(&store::StoreSettings::from_config(&config.store)?).await?;
    let now_ms = jiff::Timestamp::now().as_millisecond();
    let first_run = store::first_run(&opened, has_sandbox, now_ms).await?;
    let byok_keys = Arc::new(ByokSnapshot::new(opened.store.pepper().mark()));
    let subscriber = Arc::clone(&byok_keys);
    let accounts = AccountsHandle::load(&opened.store, move |rows| subscriber.update(rows)).await?;
    let store = opened.store;
    let ledger = Ledger::start(&config.store, store.clone(), Arc::clone(metrics)).await?;
    Ok(OpenedStore {
        store,
        first_run,
        accounts,
        byok_keys,
        ledger,
    })
}

/// Looks names, keys and datafiles up and drops windows that have ended, now and then, until `stop`.
fn keep(
    organs: &Runtime,
    upstreams: &[Arc<Provider>],
    house: &AppState,
    stop: &watch::Receiver<bool>,
) {
    let graph = house.graph.as_ref();
    let (keyless, on): (Vec<_>, Vec<_>) = upstreams.iter().partition(|it| it.keys.is_empty());
    let origins = on.iter().map(|upstream| &upstream.origin);
    let origins = origins.chain(graph.map(|graph| &graph.origin));
    let lookups = DnsRefresh {
        always: origins.cloned().collect(),
        // Nobody may ever have a key for them: the first request that has one looks.
        once_known: keyless.iter().map(|it| Arc::clone(&it.origin)).collect(),
    };
    spawn(organs, Some(lookups), stop);
    spawn(organs, Some(house.quotas.sweeper()), stop);
    spawn(organs, graph.map(Graph::sweeper), stop);
    spawn(organs, graph.map(Graph::keys), stop);
    let followers = house.flags.as_ref().map(DecisionService::followers);
    for follower in followers.unwrap_or_default() {
        let stop = stop.clone();
        organs.spawn(async move { follower.start(stop).await });
    }
}

/// The graph service's organ.
fn graph(
    config: &Config,
    organs: &Runtime,
    redis: Option<&Redis>,
) -> Result<Option<Graph>, BootError> {
    let Some(graph) = &config.graph else {
        return Ok(None);
    };
    let GraphUpstream::At(url) = &graph.upstream else {
        return Err(failed("graph", "the sandbox has no port"));
    };
    Graph::new(graph, url, config, organs.handle(), redis)
        .map(Some)
        .map_err(|error| failed("graph", error))
}

/// The decision endpoints' organ, and who sends its events.
fn flags(
    config: &Config,
    organs: &Runtime,
    metrics: &Arc<Metrics>,
    redis: Option<&Redis>,
) -> Result<Option<(DecisionService, Dispatchers)>, BootError> {
    let state_dir = &config.store.state_dir;
    let build =
        |decisions| DecisionService::build(decisions, state_dir, organs.handle(), metrics, redis);
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
fn organs() -> Result<Runtime, BootError> {
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
fn spawn<O>(organs: &Runtime, organ: Option<O>, stop: &watch::Receiver<bool>)
where
    O: BackgroundService + Send + Sync + 'static,
{
    if let Some(organ) = organ {
        let stop = stop.clone();
        organs.spawn(async move { organ.start(stop).await });
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

fn upstreams(config: &Config, store: &Store) -> Result<Arc<[Arc<Provider>]>, BootError> {
    let key = store.pepper().mark();
    let providers = config.providers.iter().chain(&config.keyless_providers);
    let upstreams: pingora::Result<Vec<_>> = providers
        .map(|provider| Provider::new(provider, &config.routing, &key).map(Arc::new))
        .collect();
    Ok(upstreams
        .map_err(|error| failed("providers", error))?
        .into())
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
    house: &Arc<AppState>,
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
    let mut gateway = Service::new("gateway".to_owned(), front(config, house, &server));
    let buffers = L4BufferSettings::new(READ_BUFFER, WRITE_BUFFER);
    gateway.add_listener(ListenerConfig::tcp(public.to_string()).l4_buffer(buffers));
    server.add_service(gateway);
    let mut operators = Service::new(
        "admin".to_owned(),
        HttpServer::new_app(Admin {
            house: Arc::clone(house),
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
fn front(config: &Config, house: &Arc<AppState>, server: &Server) -> ConnectionLimiter {
    let hooks = Proxy {
        house: Arc::clone(house),
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
        &house.metrics,
    )
}
