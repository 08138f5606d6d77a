//! The seam between a public API and the operations: a front parses requests and writes responses.

use std::fmt::Debug;

use bytes::Bytes;

use super::reply::{ReplyIdentity, Writer};
use super::request::ModelRequest;
use crate::fault::Fault;

/// One public API. A front knows no wire.
pub trait Front: Debug + Send + Sync {
    /// Returns its name, which is that of its row in the route table.
    fn name(&self) -> &'static str;

    /// Checks a body.
    ///
    /// Errors: 400 naming the field, what came and what is accepted.
    fn parse(&self, body: Bytes) -> Result<ModelRequest, Fault>;

    /// Returns the writer of one response.
    fn writer(&self, request: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer>;
}
