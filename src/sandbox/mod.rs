//! The sandboxes: services inside the process, each on a loopback port of its own. [`GraphSandbox`] is the one for queries.
//!
//! The model sandbox is a model provider that answers, streams and fails on demand.
//!
//! It speaks the OpenAI chat-completions convention, so the gateway reaches it as it reaches any provider. No key is asked for. The same request gets the same answer, byte for byte:
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
mod echo;
mod graph;
mod port;
mod schema;
mod serve;

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;

pub use self::graph::GraphSandbox;
use self::port::Port;

/// The sandbox's model provider, bound to a loopback port; it serves once it runs as a background service.
#[derive(Debug)]
pub struct ModelSandbox(Port);

impl ModelSandbox {
    /// Takes a free loopback port. Errors: the operating system's, when no port can be had.
    pub fn bind() -> io::Result<ModelSandbox> {
        Port::bind().map(ModelSandbox)
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// The base URL a client of the convention takes: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address())
    }

    /// Serves until `shutdown` says true or its sender is gone.
    ///
    /// Errors: the operating system's, when the listener cannot be used at all.
    pub async fn serve(&self, shutdown: ShutdownWatch) -> io::Result<()> {
        self.0.serve(Arc::new(serve::Chat), shutdown).await
    }
}

#[async_trait]
impl BackgroundService for ModelSandbox {
    async fn start(&self, shutdown: ShutdownWatch) {
        if let Err(e) = self.serve(shutdown).await {
            log::error!("the model sandbox at {} stopped: {e}", self.address());
        }
    }
}
