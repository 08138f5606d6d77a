//! Chat completions: the 400 rules of its requests, and responses as chunks of a stream or as one whole reply.

use bytes::Bytes;

use crate::fault::Fault;
use crate::models::request::ModelRequest;

mod check;
pub mod envelope;
pub mod fold;
mod members;
pub mod stream;
mod tools;

/// The front of `POST /v1/chat/completions`.
#[derive(Debug)]
pub struct ChatCompletions;

impl ChatCompletions {
    /// Checks a body.
    ///
    /// Errors: 400 naming the field, what came and what is accepted.
    pub fn parse(&self, body: Bytes) -> Result<ModelRequest, Fault> {
        check::check(body)
    }
}
