//! How a client says a request and reads the response: one public API.

use std::fmt::Debug;

use bytes::Bytes;

use super::reply::{ReplyIdentity, Writer};
use super::request::ModelRequest;
use crate::fault::Fault;

/// One public API. A front knows no wire.
pub trait Front: Debug + Send + Sync {
    /// Checks a body.
    ///
    /// Errors: 400 naming the field, what came and what is accepted.
    fn parse(&self, body: Bytes) -> Result<ModelRequest, Fault>;

    /// Returns the writer of one response.
    fn writer(&self, request: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer>;
}
