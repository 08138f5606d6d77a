//! A Pingora service on a listener that is bound before Pingora starts.
//!
//! Pingora binds an address only after its threads have started, and only logs a failure. A listener that is bound
//! earlier reports the failure to the operator, and no other process can take its port in between.

use std::io;
use std::net::TcpListener;
use std::os::fd::IntoRawFd;

use async_trait::async_trait;
use pingora::apps::ServerApp;
use pingora::listeners::{L4BufferSettings, ListenerConfig};
use pingora::server::{ListenFds, ShutdownWatch};
use pingora::services::Service;
use pingora::services::listening::Service as Listening;
use tokio::sync::watch;

/// A service and its listener.
pub struct BoundService<A> {
    service: Listening<A>,
    /// The name under which Pingora finds the listener.
    address: String,
    /// The listener, until Pingora takes it.
    listener: Option<TcpListener>,
    /// Whether the service accepts connections until the process ends, even while the other services stop.
    outlives_shutdown: bool,
}

impl<A> BoundService<A> {
    /// Creates a service that serves this listener and gives its connections these buffers.
    ///
    /// Errors: the error of the operating system if the listener cannot be used.
    pub fn new(
        mut service: Listening<A>,
        listener: TcpListener,
        buffers: L4BufferSettings,
    ) -> io::Result<Self> {
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?.to_string();
        service.add_listener(ListenerConfig::tcp(address.as_str()).l4_buffer(buffers));
        Ok(Self {
            service,
            address,
            listener: Some(listener),
            outlives_shutdown: false,
        })
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

#[async_trait]
impl<A: ServerApp + Send + Sync + 'static> Service for BoundService<A> {
    async fn start_service(
        &mut self,
        fds: Option<ListenFds>,
        shutdown: ShutdownWatch,
        listeners_per_fd: usize,
    ) {
        // Before Pingora binds an address, it looks in this table, which an upgrade fills with inherited listeners.
        if let (Some(fds), Some(listener)) = (&fds, self.listener.take()) {
            fds.lock().add(self.address.clone(), listener.into_raw_fd());
        }
        // The service ends together with its runtime if it is not notified of the shutdown.
        let (_untold, never) = watch::channel(false);
        let shutdown = if self.outlives_shutdown {
            never
        } else {
            shutdown
        };
        Service::start_service(&mut self.service, fds, shutdown, listeners_per_fd).await;
    }

    fn name(&self) -> &str {
        Service::name(&self.service)
    }

    fn threads(&self) -> Option<usize> {
        Service::threads(&self.service)
    }
}
