//! The two listeners. Both are bound at once, and Pingora serves them on its own thread. A reload may replace them.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use pingora::apps::HttpServerOptions;
use pingora::listeners::L4BufferSettings;
use pingora::protocols::http::v2::server::default_h2_options;
use pingora::server::configuration::ServerConf;
use pingora::server::{RunArgs, Server};
use pingora_proxy::http_proxy;
use tokio::runtime::Handle;
use tokio::sync::watch;

use super::background;
use super::boot::{BootError, failed, misconfigured};
use super::bound::{BoundService, Doors, OpenListener, ReadyListener};
use super::drain::CUT_TIMEOUT;
use super::handover::inherited::InheritedListeners;
use super::running::{ShutdownChannel, StopMode};
use crate::admin::{Admin, AdminListener};
use crate::config::{Config, Listen};
use crate::proxy::connection_state::KEEPALIVE_TIMEOUT;
use crate::proxy::connections::{ConnectionLimiter, CurrentLimiter};
use crate::proxy::hooks::Proxy;
use crate::proxy::state::{CurrentState, ProxyState};
use crate::proxy::tls::{CertificateRefresh, Tls};

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

const PUBLIC_KEY: &str = "listen.address";
const ADMIN_KEY: &str = "admin.address";

/// Both bound listeners with their addresses. Connections wait until Pingora serves them.
pub(super) struct BoundListeners {
    public: TcpListener,
    admin: TcpListener,
    tls: Option<(Tls, CertificateRefresh)>,
    pub(super) public_address: SocketAddr,
    pub(super) admin_address: SocketAddr,
}

/// The listeners that Pingora serves.
pub(super) struct Listeners {
    public: Slot,
    admin: Slot,
    limiter: CurrentLimiter,
    current: CurrentState,
    background: Handle,
    served: Mutex<Served>,
}

/// A place for one listener.
struct Slot {
    key: &'static str,
    doors: Doors,
    open: Mutex<Open>,
}

/// What is open at a place.
struct Open {
    /// The address of the configuration, whose port may be 0.
    configured: SocketAddr,
    address: SocketAddr,
    /// `None` once it is closed.
    listener: Option<OpenListener>,
}

impl Open {
    fn new(configured: SocketAddr, listener: OpenListener) -> Self {
        Self {
            configured,
            address: listener.address,
            listener: Some(listener),
        }
    }
}

/// The settings with which new connections are served.
struct Served {
    settings: ServedSettings,
    /// Stops the refresh of the certificate.
    stop_refresh: watch::Sender<bool>,
}

/// The settings that connections take from their listener. A change makes a new limiter, and a new pool of connections to
/// upstreams.
#[derive(Clone, PartialEq)]
struct ServedSettings {
    listen: Listen,
    in_flight: usize,
    attempts: usize,
}

/// What a reload changes about the listeners, before it is in force. Addresses are bound, and nothing is served yet.
pub(super) struct ListenerChanges {
    public: Option<(SocketAddr, ReadyListener)>,
    admin: Option<(SocketAddr, ReadyListener)>,
    served: Option<(ServedSettings, Option<(Tls, CertificateRefresh)>)>,
}

impl ServedSettings {
    fn new(config: &Config) -> Self {
        Self {
            listen: config.listen.clone(),
            in_flight: config.limits.in_flight,
            attempts: config.routing.attempts as usize,
        }
    }
}

impl BoundListeners {
    /// Binds both, unless they are inherited, and reads the certificate. If a configured port is 0, the operating system
    /// chooses one.
    ///
    /// Errors: an address is not available, or the certificate is unusable.
    pub(super) fn bind(
        config: &Config,
        inherited: &mut InheritedListeners,
    ) -> Result<Self, BootError> {
        let mut take = |address, key: &str| match inherited.take(key, address) {
            Some(listener) => with_address(listener, key),
            None => bind(address, key),
        };
        let (public, public_address) = take(config.listen.address, PUBLIC_KEY)?;
        let (admin, admin_address) = take(config.admin.address, ADMIN_KEY)?;
        inherited.close_rest();
        Ok(Self {
            public,
            admin,
            tls: tls(&config.listen)?,
            public_address,
            admin_address,
        })
    }

    /// Serves both on a new thread until `stop_mode` asks to stop.
    pub(super) fn serve(
        self,
        config: &Config,
        (current, admin): (&CurrentState, Admin),
        background: Handle,
        stop_mode: watch::Receiver<StopMode>,
    ) -> Result<(Listeners, JoinHandle<()>), BootError> {
        let settings = ServedSettings::new(config);
        let mut server = Server::new_with_opt_and_conf(None, server_conf(config));
        server.bootstrap();
        let (tls, stop_refresh) = start_refresh(self.tls, &background);
        let limiter = limiter(&settings, current, tls, None);
        let limiter = CurrentLimiter::new(limiter);
        let buffers = L4BufferSettings::new(READ_BUFFER_BYTES, WRITE_BUFFER_BYTES);
        let (proxy, public) = BoundService::new("gateway", limiter.clone(), buffers);
        let public = Slot::open(PUBLIC_KEY, public, (config.listen.address, self.public))?;
        server.add_service(proxy.showing(current.get().progress.clone()));
        let (service, admin) = BoundService::new(
            "admin",
            AdminListener::new(admin),
            L4BufferSettings::default(),
        );
        let admin = Slot::open(ADMIN_KEY, admin, (config.admin.address, self.admin))?;
        // Probes and metrics stay available while the last requests end.
        server.add_service(service.with_threads(1).outliving_shutdown());
        let thread = std::thread::Builder::new()
            .name("server".to_owned())
            .spawn(move || {
                let shutdown_signal = Box::new(ShutdownChannel(tokio::sync::Mutex::new(stop_mode)));
                server.run(RunArgs { shutdown_signal });
            })
            .map_err(|error| failed("starting threads", error))?;
        let listeners = Listeners {
            public,
            admin,
            limiter,
            current: current.clone(),
            background,
            served: Mutex::new(Served {
                settings,
                stop_refresh,
            }),
        };
        Ok((listeners, thread))
    }
}

impl Listeners {
    /// Prepares the listeners of another configuration.
    ///
    /// Errors: an address is not available, or the certificate is unusable. Nothing has changed then.
    pub(super) fn prepare(&self, config: &Config) -> Result<ListenerChanges, BootError> {
        let settings = ServedSettings::new(config);
        let is_new = {
            let served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
            served.settings != settings
        };
        let served = is_new.then(|| Ok((settings, tls(&config.listen)?)));
        Ok(ListenerChanges {
            public: self.public.prepare(config.listen.address)?,
            admin: self.admin.prepare(config.admin.address)?,
            served: served.transpose()?,
        })
    }

    /// Puts changes in force for new connections.
    pub(super) fn apply(&self, changes: ListenerChanges) {
        if let Some((settings, tls)) = changes.served {
            let (tls, stop_refresh) = start_refresh(tls, &self.background);
            let before = self.limiter.get();
            let limiter = limiter(&settings, &self.current, tls, Some(&before));
            self.limiter.replace(limiter);
            let mut served = self.served.lock().unwrap_or_else(PoisonError::into_inner);
            served.stop_refresh.send_replace(true);
            *served = Served {
                settings,
                stop_refresh,
            };
        }
        self.public.replace(changes.public);
        self.admin.replace(changes.admin);
    }

    /// Closes the public listener. New connections are refused, and its connections stay open.
    pub(super) fn close_public(&self) {
        self.public.close();
    }

    /// Returns the addresses of both listeners.
    pub(super) fn addresses(&self) -> (SocketAddr, SocketAddr) {
        (self.public.address(), self.admin.address())
    }

    /// Returns the sockets, each with the key of its address.
    ///
    /// Errors: the operating system's.
    pub(super) fn sockets(&self) -> io::Result<Vec<(&'static str, TcpListener)>> {
        let both = [&self.public, &self.admin].into_iter();
        let sockets = both.filter_map(|slot| Some(slot.socket()?.map(|it| (slot.key, it))));
        sockets.collect()
    }

    /// Closes both listeners; their connections stay open.
    pub(super) fn close(&self) {
        self.public.close();
        self.admin.close();
    }
}

impl Slot {
    /// Opens a listener, which was bound for this configured address.
    fn open(
        key: &'static str,
        doors: Doors,
        (configured, listener): (SocketAddr, TcpListener),
    ) -> Result<Self, BootError> {
        let ready = ready(listener, key)?;
        let open = doors.open(ready);
        Ok(Self {
            key,
            doors,
            open: Mutex::new(Open::new(configured, open)),
        })
    }

    /// Returns the address at which it listens, also once it is closed.
    fn address(&self) -> SocketAddr {
        self.lock().address
    }

    /// Returns a handle of the socket, unless it is closed.
    fn socket(&self) -> Option<io::Result<TcpListener>> {
        let open = self.lock();
        open.listener.as_ref().map(|it| it.socket.try_clone())
    }

    fn close(&self) {
        self.lock().listener = None;
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Binds an address if it is another one than before.
    fn prepare(
        &self,
        wanted: SocketAddr,
    ) -> Result<Option<(SocketAddr, ReadyListener)>, BootError> {
        if self.lock().configured == wanted {
            return Ok(None);
        }
        let (listener, _) = bind(wanted, self.key)?;
        Ok(Some((wanted, ready(listener, self.key)?)))
    }

    /// Opens the new listener, if there is one, and then closes the previous one.
    fn replace(&self, new: Option<(SocketAddr, ReadyListener)>) {
        let Some((configured, ready)) = new else {
            return;
        };
        let mut open = self.lock();
        // A closed one stays closed, because the process stops.
        if open.listener.is_some() {
            *open = Open::new(configured, self.doors.open(ready));
        }
    }
}

fn bind(address: SocketAddr, key: &str) -> Result<(TcpListener, SocketAddr), BootError> {
    let listener =
        TcpListener::bind(address).map_err(|error| failed(&format!("{key} {address}"), error))?;
    with_address(listener, key)
}

fn ready(listener: TcpListener, key: &str) -> Result<ReadyListener, BootError> {
    ReadyListener::new(listener).map_err(|error| failed(key, error))
}

fn with_address(listener: TcpListener, key: &str) -> Result<(TcpListener, SocketAddr), BootError> {
    let address = listener.local_addr().map_err(|error| failed(key, error))?;
    Ok((listener, address))
}

/// Returns TLS and the service that refreshes its certificate, if TLS is configured.
fn tls(listen: &Listen) -> Result<Option<(Tls, CertificateRefresh)>, BootError> {
    let files = listen.tls.as_ref();
    let tls = files.map(|files| Tls::new(files, listen.http2)).transpose();
    tls.map_err(|error| misconfigured(error.to_string()))
}

/// Starts the refresh of a certificate. Returns what stops it.
fn start_refresh(
    tls: Option<(Tls, CertificateRefresh)>,
    background: &Handle,
) -> (Option<Tls>, watch::Sender<bool>) {
    let (stop, stopped) = watch::channel(false);
    let (tls, refresh) = tls.unzip();
    background::spawn(background, refresh, &stopped);
    (tls, stop)
}

fn server_conf(config: &Config) -> ServerConf {
    ServerConf {
        threads: config.server.worker_threads(),
        // What is cut at the end of the grace period has some time to say so.
        grace_period_seconds: Some((config.server.grace_period + CUT_TIMEOUT).as_secs()),
        graceful_shutdown_timeout_seconds: Some(1),
        ..proxy_conf(&ServedSettings::new(config))
    }
}

/// Returns the part of Pingora's configuration that its proxy reads.
fn proxy_conf(settings: &ServedSettings) -> ServerConf {
    ServerConf {
        upstream_keepalive_pool_size: MIN_IDLE_CONNECTIONS.max(settings.in_flight),
        max_retries: settings.attempts * (TRIES_PER_ATTEMPT + MAX_PARTS),
        ..ServerConf::default()
    }
}

/// Returns Pingora's proxy with our hooks, behind the limits on connections. The connections of the limiter before count
/// on.
fn limiter(
    settings: &ServedSettings,
    current: &CurrentState,
    tls: Option<Tls>,
    before: Option<&ConnectionLimiter>,
) -> ConnectionLimiter {
    let hooks = Proxy {
        current: current.clone(),
    };
    let mut proxy = http_proxy(&Arc::new(proxy_conf(settings)), hooks);
    let listen = &settings.listen;
    let mut options = HttpServerOptions::default();
    options.h2c = listen.http2;
    options.h2_idle_timeout = Some(KEEPALIVE_TIMEOUT);
    proxy.server_options = Some(options);
    let mut h2 = default_h2_options();
    h2.max_header_list_size(u32::try_from(listen.header_bytes).unwrap_or(u32::MAX));
    proxy.h2_options = Some(h2);
    let state: &ProxyState = &current.get();
    ConnectionLimiter::new((proxy, tls), listen, state, before)
}
