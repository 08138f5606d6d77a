//! A front whose requests are one JSON body, and whose responses have one writer.

use bytes::Bytes;

use crate::fault::Fault;
use crate::models::front::{ClientHead, Front, FrontRow, Received};
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::ModelRequest;

/// Such a front.
#[derive(Debug)]
pub struct PlainFront {
    pub(super) row: FrontRow,
    pub(super) check: fn(Bytes) -> Result<ModelRequest, Fault>,
    pub(super) writer: fn(&ModelRequest, ReplyIdentity) -> Box<dyn Writer>,
}

impl Front for PlainFront {
    fn row(&'static self) -> &'static FrontRow {
        &self.row
    }

    fn read(&self, _: &ClientHead<'_>, body: Bytes) -> Result<Received, Fault> {
        (self.check)(body).map(Received::Complete)
    }

    fn writer(&self, request: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer> {
        (self.writer)(request, identity)
    }
}
