//! The model sandbox: a model provider inside the process that answers, streams and fails on demand.
//!
//! It speaks the OpenAI chat-completions convention on a loopback port of its own, so the gateway reaches
//! it as it reaches any provider. No key is asked for. The same request gets the same answer, byte for byte:
//! no clock, no randomness.
//!
//! | model | does |
//! |---|---|
//! | `sandbox-chat` | answers |
//! | `sandbox-slow` | answers after 2 s, streamed text 50 ms per event |
//! | `sandbox-401`, `sandbox-429`, `sandbox-500` | refuses with that status; 429 with `retry-after: 1` |
//! | `sandbox-cut` | closes the connection half-way through the answer |
//! | `sandbox-error-event` | 200, then an error object: the first event of a stream, or the body |
//! | `sandbox-hang` | reads the request and says nothing until the caller gives up |
//!
//! Any other model is a 404. [`answer`] says what the answers are, [`ask`] what of a request counts,
//! [`schema`] how values for a schema are made up.
//!
//! Deliberately absent: authentication, limits, every endpoint but `POST /v1/chat/completions`, checking
//! of the request beyond being JSON. What the gateway forwards is the gateway's responsibility.

mod answer;
mod ask;
mod schema;
mod serve;

#[cfg(test)]
mod tests;

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use async_trait::async_trait;
use pingora::apps::ServerApp;
use pingora::protocols::l4::stream::Stream;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;

/// The sandbox's model provider, bound to a loopback port; it serves once it runs as a background service.
///
/// `background_service("model sandbox", model)` makes the service to add to the Pingora server. Connections
/// made before it runs wait in the listener's backlog.
#[derive(Debug)]
pub struct Model {
    listener: TcpListener,
    address: SocketAddr,
}

impl Model {
    /// Takes a free loopback port, so that the address is known before anything serves.
    ///
    /// Errors: the operating system's, when no port can be had.
    pub fn bind() -> io::Result<Model> {
        let listener = TcpListener::bind((std::net::Ipv4Addr::LOCALHOST, 0))?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Model { listener, address })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The base URL a client of the convention takes: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Serves until `shutdown` says true or its sender is gone.
    ///
    /// Errors: the operating system's, when the listener cannot be used at all. A failed accept is
    /// logged and the next one tried.
    pub async fn serve(&self, mut shutdown: ShutdownWatch) -> io::Result<()> {
        let listener = tokio::net::TcpListener::from_std(self.listener.try_clone()?)?;
        let app = Arc::new(serve::Chat);
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
                tokio::time::sleep(serve::ACCEPT_PAUSE).await;
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

#[async_trait]
impl BackgroundService for Model {
    async fn start(&self, shutdown: ShutdownWatch) {
        if let Err(e) = self.serve(shutdown).await {
            log::error!("the model sandbox at {} stopped: {e}", self.address);
        }
    }
}
