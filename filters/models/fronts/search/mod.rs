//! Searches of the web: the 400 rules of its requests, and the results that answer them. Source: docs/model-gateway.md
//! 2.14.

use bytes::Bytes;

use super::item_list::{ItemWriter, ListEnd};
use crate::fault::Fault;
use crate::models::front::{Front, Received};
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::ModelRequest;

mod check;
#[cfg(test)]
mod tests;

/// The front of `POST /v1/search`.
#[derive(Debug)]
pub struct Search;

impl Front for Search {
    fn name(&self) -> &'static str {
        "search"
    }

    fn description(&self) -> &'static str {
        include_str!("description.json")
    }

    fn read(&self, body: Bytes) -> Result<Received, Fault> {
        check::check(body).map(Received::Complete)
    }

    fn writer(&self, _: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer> {
        Box::new(ItemWriter::of_results(identity, write_end))
    }
}

fn write_end(end: &ListEnd<'_>, out: &mut Vec<u8>) {
    out.push(b']');
    if let Some(time) = end.member("server_time") {
        out.extend_from_slice(b",\"server_time\":");
        out.extend_from_slice(time.as_bytes());
    }
    out.push(b'}');
}
