//! The sandboxes: services inside the process, each on its own loopback port.
//!
//! The model sandbox is a model provider that replies, streams and fails on demand. It speaks the OpenAI
//! chat-completions convention, so the gateway reaches it like any provider. It requires no key. The same request
//! always gets the same reply, byte for byte. It uses no clock and no randomness, except for videos, whose ids
//! contain the time of the order. [`GraphSandbox`] is the sandbox for queries.
//!
//! | model | behaviour |
//! |---|---|
//! | `sandbox-chat` | replies |
//! | `sandbox-image` | replies with text and an image |
//! | `sandbox-slow` | replies after 2 s; streams 50 ms per event |
//! | `sandbox-401`, `sandbox-429`, `sandbox-500` | refuses with that status; 429 with `retry-after: 1` |
//! | `sandbox-cut` | closes the connection half-way through the reply |
//! | `sandbox-error-event` | 200, then an error object: the first event of a stream, or the body |
//! | `sandbox-hang` | reads the request and sends nothing until the client disconnects |
//! | `sandbox-decision` | decides by the words that state and questions share |
//! `sandbox-moderation` | flags texts with the word `violence` or `hate` |
//! `sandbox-ocr` | returns pages that name their document |
//! | `sandbox-rerank` | ranks documents by the words that they share with the query |
//! | `sandbox-search` | finds pages that repeat the query |
//! `sandbox-video` | makes a video within a second; a prompt with the word `fail` or `filter` makes it fail, and
//! `slow` makes it take a minute |
//!
//! Any other model is a 404. `response` makes the replies, `request` reads the fields that shape them, and `schema`
//! makes example values for schemas.
//!
//! Deliberately absent: authentication, limits, and checks of the request beyond valid, complete JSON. The gateway is
//! responsible for the requests that it forwards.

mod budget;
mod decisions;
mod echo;
mod embeddings;
mod graph;
mod listener;
mod moderations;
mod ocr;
mod request;
mod rerank;
mod response;
mod schema;
mod search;
mod server;
mod speech;
mod transcriptions;
mod videos;

#[cfg(test)]
mod tests;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use async_trait::async_trait;
use pingora::server::ShutdownWatch;
use pingora::services::background::BackgroundService;

pub use self::graph::GraphSandbox;
use self::listener::LoopbackListener;

/// The model sandbox, bound to a loopback port. It serves while it runs as a background service.
#[derive(Debug)]
pub struct ModelSandbox(LoopbackListener);

impl ModelSandbox {
    /// Binds a free loopback port. Errors: the operating system has no port.
    pub fn bind() -> io::Result<ModelSandbox> {
        LoopbackListener::bind().map(ModelSandbox)
    }

    /// Returns the listening address.
    pub fn address(&self) -> SocketAddr {
        self.0.address()
    }

    /// Returns the base URL for clients of the convention: `http://127.0.0.1:PORT/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address())
    }

    /// Serves until `shutdown` is true or its sender is dropped.
    ///
    /// Errors: the operating system refuses the listener.
    pub async fn serve(&self, shutdown: ShutdownWatch) -> io::Result<()> {
        self.0.serve(Arc::new(server::ChatServer), shutdown).await
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
