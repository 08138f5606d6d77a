//! Embeddings: the 400 rules of its requests, and the list that answers them. Source: docs/model-gateway.md 2.6.

use bytes::Bytes;

use self::writer::ListWriter;
use crate::fault::Fault;
use crate::models::front::{Front, Received};
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::ModelRequest;

mod check;
#[cfg(test)]
mod tests;
mod writer;

/// The front of `POST /v1/embeddings`.
#[derive(Debug)]
pub struct Embeddings;

impl Front for Embeddings {
    fn name(&self) -> &'static str {
        "embeddings"
    }

    fn description(&self) -> &'static str {
        include_str!("description.json")
    }

    fn read(&self, body: Bytes) -> Result<Received, Fault> {
        check::check(body).map(Received::Complete)
    }

    fn writer(&self, _: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer> {
        Box::new(ListWriter::new(&identity.model))
    }
}
