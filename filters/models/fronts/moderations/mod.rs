//! Moderations: the 400 rules of its requests, and the results that answer them. Source: docs/model-gateway.md 2.11.

use bytes::Bytes;

use super::item_list::{ItemWriter, ListEnd};
use crate::fault::Fault;
use crate::json::Str;
use crate::models::front::{Front, Received};
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::ModelRequest;

mod check;
#[cfg(test)]
mod tests;

/// The front of `POST /v1/moderations`.
#[derive(Debug)]
pub struct Moderations;

impl Front for Moderations {
    fn name(&self) -> &'static str {
        "moderations"
    }

    fn description(&self) -> &'static str {
        include_str!("description.json")
    }

    fn read(&self, body: Bytes) -> Result<Received, Fault> {
        check::check(body).map(Received::Complete)
    }

    fn writer(&self, _: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer> {
        let begin = b"{\"results\":[".to_vec();
        Box::new(ItemWriter::new(identity, begin, write_end))
    }
}

fn write_end(end: &ListEnd<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"],\"id\":\"modr-");
    Str::Plain(&end.identity.id).write_contents(out);
    out.extend_from_slice(b"\",\"model\":");
    Str::Plain(&end.identity.model).write(out);
    out.push(b'}');
}
