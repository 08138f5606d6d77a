//! The two listeners. Both are bound at once, and Pingora serves them on its own thread.

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;

use pingora::apps::HttpServerOptions;
use pingora::apps::http_app::HttpServer;
use pingora::listeners::L4BufferSettings;
use pingora::protocols::http::v2::server::default_h2_options;
use pingora::server::configuration::ServerConf;
use pingora::server::{RunArgs, Server};
use pingora::services::listening::Service;
use pingora_proxy::http_proxy;
use tokio::sync::watch;

use super::boot::{BootError, failed};
use super::bound::BoundService;
use super::running::{ShutdownChannel, StopMode};
use crate::admin::Admin;
use crate::config::Config;
use crate::models::cloud_credentials::CredentialSource;
use crate::proxy::connection_state::KEEPALIVE_TIMEOUT;
use crate::proxy::connections::ConnectionLimiter;
use crate::proxy::hooks::Proxy;
use crate::proxy::state::ProxyState;
use crate::proxy::tls::Tls;

/// The read buffer of a client's connection. It is smaller than Pingora's 64 KiB, because every open stream has one.
const READ_BUFFER_BYTES: usize = 16 << 10;
/// The write buffer of a client's connection. Head and body of a usual response fit, so that one write sends both.
/// With Pingora's 1460 bytes, a response with `metadata` needs a second write.
const WRITE_BUFFER_BYTES: usize = 8 << 10;
/// The minimum size of the pool of idle connections to providers.
const MIN_IDLE_CONNECTIONS: usize = 1024;
/// The tries of one attempt: other keys and one repetition on a new connection, for BYOK keys and then for platform
/// keys.
const TRIES_PER_ATTEMPT: usize = 8;
/// The maximum number of parts of an attempt: the most inputs of an embeddings request that are sent one by one. Each
/// part is a try, and the exchange decides how many there are.
const MAX_PARTS: usize = 2048;

/// Both bound listeners with their addresses. Connections wait until Pingora serves them.
pub(super) struct Listeners {
    public: TcpListener,
    admin: TcpListener,
    pub(super) public_address: SocketAddr,
    pub(super) admin_address: SocketAddr,
}

impl Listeners {
    /// Binds both. If a configured port is 0, the operating system chooses one.
    ///
    /// Errors: an address is not available.
    pub(super) fn bind(config: &Config) -> Result<Self, BootError> {
        let (public, public_address) = bind(config.listen.address, "listen.address")?;
        let (admin, admin_address) = bind(config.admin.address, "admin.address")?;
        Ok(Self {
            public,
            admin,
            public_address,
            admin_address,
        })
    }

    /// Serves both on a new thread until `stop_mode` asks to stop.
    pub(super) fn serve(
        self,
        config: &Config,
        (state, sources): (&Arc<ProxyState>, Vec<Arc<CredentialSource>>),
        tls: Option<Tls>,
        stop_mode: watch::Receiver<StopMode>,
    ) -> Result<JoinHandle<()>, BootError> {
        let mut server = Server::new_with_opt_and_conf(None, server_conf(config));
        server.bootstrap();
        let proxy = limited_proxy(config, state, tls, &server);
        let proxy = Service::new("gateway".to_owned(), proxy);
        let buffers = L4BufferSettings::new(READ_BUFFER_BYTES, WRITE_BUFFER_BYTES);
        let proxy = BoundService::new(proxy, self.public, buffers);
        server.add_service(proxy.map_err(|error| failed("listen.address", error))?);
        let admin = Admin::new(state, config.admin.token.as_ref(), sources);
        let mut admin = Service::new("admin".to_owned(), HttpServer::new_app(admin));
        admin.threads = Some(1);
        let admin = BoundService::new(admin, self.admin, L4BufferSettings::default());
        // Probes and metrics stay available while the last requests end.
        let admin = admin.map_err(|error| failed("admin.address", error))?;
        server.add_service(admin.outliving_shutdown());
        std::thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || {
                let shutdown_signal = Box::new(ShutdownChannel(tokio::sync::Mutex::new(stop_mode)));
                server.run(RunArgs { shutdown_signal });
            })
            .map_err(|error| failed("starting threads", error))
    }
}

fn bind(address: SocketAddr, key: &str) -> Result<(TcpListener, SocketAddr), BootError> {
    let listener =
        TcpListener::bind(address).map_err(|error| failed(&format!("{key} {address}"), error))?;
    let address = listener.local_addr().map_err(|error| failed(key, error))?;
    Ok((listener, address))
}

fn server_conf(config: &Config) -> ServerConf {
    ServerConf {
        threads: config.server.worker_threads(),
        upstream_keepalive_pool_size: MIN_IDLE_CONNECTIONS.max(config.limits.in_flight),
        max_retries: config.routing.attempts as usize * (TRIES_PER_ATTEMPT + MAX_PARTS),
        grace_period_seconds: Some(config.server.grace_period.as_secs()),
        graceful_shutdown_timeout_seconds: Some(1),
        ..ServerConf::default()
    }
}

/// Returns Pingora's proxy with our hooks, behind the limits on connections.
fn limited_proxy(
    config: &Config,
    state: &Arc<ProxyState>,
    tls: Option<Tls>,
    server: &Server,
) -> ConnectionLimiter {
    let hooks = Proxy {
        state: Arc::clone(state),
    };
    let mut proxy = http_proxy(&server.configuration, hooks);
    let listen = &config.listen;
    let mut options = HttpServerOptions::default();
    options.h2c = listen.http2;
    options.h2_idle_timeout = Some(KEEPALIVE_TIMEOUT);
    proxy.server_options = Some(options);
    let mut h2 = default_h2_options();
    h2.max_header_list_size(u32::try_from(listen.header_bytes).unwrap_or(u32::MAX));
    proxy.h2_options = Some(h2);
    ConnectionLimiter::new(proxy, tls, listen, state)
}
