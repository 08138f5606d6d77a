//! A Pingora service whose listeners are bound before it serves them, and may come and go while it runs.
//!
//! Pingora binds an address only after its threads have started, only logs a failure, and keeps the listeners with which
//! it has started. A listener that is bound earlier reports the failure to the operator, and no other process can take
//! its port in between.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::IntoRawFd;
use std::sync::Arc;

use async_trait::async_trait;
use pingora::apps::ServerApp;
use pingora::listeners::{L4BufferSettings, ListenerConfig};
use pingora::protocols::Stream;
use pingora::server::{ListenFds, ShutdownWatch};
use pingora::services::Service;
use pingora::services::listening::Service as Listening;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::proxy::progress::WorkerProgress;

/// A service that serves the listeners that its [`Doors`] open.
pub struct BoundService<A> {
    name: &'static str,
    app: Arc<A>,
    buffers: L4BufferSettings,
    threads: Option<usize>,
    opened: UnboundedReceiver<NewListener>,
    /// Whether the service accepts connections until the process ends, even while the other services stop.
    outlives_shutdown: bool,
    /// Counts rounds among the tasks of the service.
    progress: Option<WorkerProgress>,
}

/// Opens listeners of a service, before it starts and while it runs.
#[derive(Clone)]
pub struct Doors(UnboundedSender<NewListener>);

/// A listener on its way to its service.
struct NewListener {
    listener: TcpListener,
    /// The name under which Pingora finds it.
    address: String,
    close: watch::Sender<bool>,
}

/// An open listener. Dropping it closes the listener; its connections stay open.
pub struct OpenListener {
    /// The address at which it listens.
    pub address: SocketAddr,
    /// The same socket as that of the service.
    pub socket: TcpListener,
    close: watch::Sender<bool>,
}

impl Drop for OpenListener {
    fn drop(&mut self) {
        self.close.send_replace(true);
    }
}

/// A listener that can be opened, at this address.
pub struct ReadyListener {
    new: NewListener,
    open: OpenListener,
}

impl ReadyListener {
    /// Prepares a bound listener.
    ///
    /// Errors: the error of the operating system if the listener cannot be used.
    pub fn new(listener: TcpListener) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let socket = listener.try_clone()?;
        let (close, _) = watch::channel(false);
        Ok(Self {
            new: NewListener {
                listener,
                address: address.to_string(),
                close: close.clone(),
            },
            open: OpenListener {
                address,
                socket,
                close,
            },
        })
    }
}

impl Doors {
    /// Opens a listener. Connections wait until the service accepts them, and are refused if it has ended.
    pub fn open(&self, ready: ReadyListener) -> OpenListener {
        // The end of the service is the end of the process.
        _ = self.0.send(ready.new);
        ready.open
    }
}

impl<A> BoundService<A> {
    /// Creates a service without listeners, which gives its connections these buffers.
    pub fn new(name: &'static str, app: A, buffers: L4BufferSettings) -> (Self, Doors) {
        let (doors, opened) = unbounded_channel();
        let service = Self {
            name,
            app: Arc::new(app),
            buffers,
            threads: None,
            opened,
            outlives_shutdown: false,
            progress: None,
        };
        (service, Doors(doors))
    }

    /// Gives the service this number of threads of its own.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self {
            threads: Some(threads),
            ..self
        }
    }

    /// Shows whether the threads of the service run, until they end.
    #[must_use]
    pub fn showing(self, progress: WorkerProgress) -> Self {
        Self {
            progress: Some(progress),
            ..self
        }
    }

    /// Keeps the service running until the process ends.
    #[must_use]
    pub fn outliving_shutdown(self) -> Self {
        Self {
            outlives_shutdown: true,
            ..self
        }
    }
}

/// The application of one listener.
struct Shared<A> {
    app: Arc<A>,
    /// The stop of the process. A listener that closes earlier leaves its connections alone.
    stop: ShutdownWatch,
}

#[async_trait]
impl<A: ServerApp + Send + Sync + 'static> ServerApp for Shared<A> {
    async fn process_new(
        self: &Arc<Self>,
        stream: Stream,
        _closing: &ShutdownWatch,
    ) -> Option<Stream> {
        self.app.process_new(stream, &self.stop).await
    }
}

#[async_trait]
impl<A: ServerApp + Send + Sync + 'static> Service for BoundService<A> {
    async fn start_service(
        &mut self,
        fds: Option<ListenFds>,
        shutdown: ShutdownWatch,
        listeners_per_fd: usize,
    ) {
        // What still runs after the shutdown is watched, too, so the task ends with the runtime alone.
        if let Some(progress) = self.progress.take() {
            tokio::spawn(progress.count_rounds());
        }
        // The service ends together with its runtime if it is not notified of the shutdown.
        let (_untold, never) = watch::channel(false);
        let stop = if self.outlives_shutdown {
            never
        } else {
            shutdown
        };
        let mut stopped = stop.clone();
        let mut endpoints = JoinSet::new();
        let mut closers = Vec::new();
        loop {
            tokio::select! {
                Some(new) = self.opened.recv() => {
                    let app = Shared {
                        app: Arc::clone(&self.app),
                        stop: stop.clone(),
                    };
                    let mut service = Listening::new(self.name.to_owned(), app);
                    let config = ListenerConfig::tcp(new.address.as_str());
                    service.add_listener(config.l4_buffer(self.buffers));
                    // Before Pingora binds an address, it looks in this table, which an upgrade of its own would fill.
                    if let Some(fds) = &fds {
                        fds.lock().add(new.address, new.listener.into_raw_fd());
                    }
                    let (fds, closing) = (fds.clone(), new.close.subscribe());
                    closers.retain(|closer: &watch::Sender<bool>| closer.receiver_count() > 0);
                    closers.push(new.close);
                    endpoints.spawn(async move {
                        Service::start_service(&mut service, fds, closing, listeners_per_fd).await;
                    });
                }
                Some(_) = endpoints.join_next() => {}
                _ = stopped.wait_for(|is_asked| *is_asked) => break,
            }
        }
        for closer in closers {
            closer.send_replace(true);
        }
        while endpoints.join_next().await.is_some() {}
        self.app.cleanup().await;
    }

    fn name(&self) -> &str {
        self.name
    }

    fn threads(&self) -> Option<usize> {
        self.threads
    }
}
