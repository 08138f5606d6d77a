//! The loopback listener of a sandbox.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use pingora::apps::ServerApp;
use pingora::protocols::l4::stream::Stream;
use pingora::server::ShutdownWatch;

use super::server::ACCEPT_RETRY_DELAY;

/// A bound loopback listener.
#[derive(Debug)]
pub(super) struct LoopbackListener {
    listener: TcpListener,
    address: SocketAddr,
}

impl LoopbackListener {
    /// Binds a free port, so that the address is known before the sandbox serves. Connections wait in the backlog
    /// until then.
    ///
    /// Errors: the operating system has no port.
    pub(super) fn bind() -> io::Result<Self> {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Returns the listening address.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` is true or its sender is dropped.
    ///
    /// Errors: the operating system refuses the listener. A failed accept is logged and retried.
    pub(super) async fn serve<A>(&self, app: Arc<A>, mut shutdown: ShutdownWatch) -> io::Result<()>
    where
        A: ServerApp + Send + Sync + 'static,
    {
        let listener = tokio::net::TcpListener::from_std(self.listener.try_clone()?)?;
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                stopped = shutdown.wait_for(|stop| *stop) => {
                    drop(stopped);
                    return Ok(());
                }
            };
            let Ok((stream, _)) = accepted.inspect_err(|e| log::warn!("sandbox accept: {e}"))
            else {
                // The usual cause is a lack of file descriptors. Without the delay this loop would spin.
                tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                continue;
            };
            let mut stream = Stream::from(stream);
            if stream.set_nodelay().is_ok() {
                let (app, shutdown) = (app.clone(), shutdown.clone());
                tokio::spawn(async move { app.process_new(Box::new(stream), &shutdown).await });
            }
        }
    }
}
