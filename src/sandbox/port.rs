//! A loopback port that a sandbox serves.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use pingora::apps::ServerApp;
use pingora::protocols::l4::stream::Stream;
use pingora::server::ShutdownWatch;

use super::serve::ACCEPT_PAUSE;

/// See the module.
#[derive(Debug)]
pub(super) struct Port {
    listener: TcpListener,
    address: SocketAddr,
}

impl Port {
    /// Takes a free one, so that the address is known before anything serves. Connections made before it is served
    /// wait in its backlog.
    ///
    /// Errors: the operating system's, when no port can be had.
    pub(super) fn bind() -> io::Result<Self> {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Where it is.
    pub(super) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `shutdown` says true or its sender is gone.
    ///
    /// Errors: the operating system's, when the listener cannot be used at all. A failed accept is
    /// logged and the next one tried.
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
                // Out of file descriptors is the usual reason: without the pause this loop would spin.
                tokio::time::sleep(ACCEPT_PAUSE).await;
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
