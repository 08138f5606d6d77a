//! A front whose requests are one JSON body, and whose responses have one writer.

use std::sync::LazyLock;

use bytes::Bytes;

use crate::fault::Fault;
use crate::models::front::{Front, Received};
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::ModelRequest;

/// Such a front.
#[derive(Debug)]
pub struct PlainFront {
    pub(super) name: &'static str,
    pub(super) description: LazyLock<String>,
    pub(super) check: fn(Bytes) -> Result<ModelRequest, Fault>,
    pub(super) writer: fn(&ModelRequest, ReplyIdentity) -> Box<dyn Writer>,
}

impl Front for PlainFront {
    fn name(&self) -> &'static str {
        self.name
    }

    fn description(&'static self) -> &'static str {
        &self.description
    }

    fn read(&self, body: Bytes) -> Result<Received, Fault> {
        (self.check)(body).map(Received::Complete)
    }

    fn writer(&self, request: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer> {
        (self.writer)(request, identity)
    }
}
