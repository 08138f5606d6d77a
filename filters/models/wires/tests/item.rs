//! For the tests of operations whose replies are lists: what goes out, and the items that come back.
#![allow(clippy::unwrap_used, reason = "tests")]

use bytes::Bytes;
use serde_json::Value;

use super::{Failure, Quirks, ReplyHead, Target, Wire, decode_reply};
use crate::fault::Fault;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::usage::Usage;

pub(super) fn target(quirks: &Quirks) -> Target<'_> {
    Target {
        key_id: Some("key_1"),
        ..Target::plain("here", "up x", quirks)
    }
}

/// Path and body of the upstream request.
pub(super) fn encoded(
    wire: &Wire,
    request: &ModelRequest,
    quirks: &Quirks,
) -> Result<(String, Value), Fault> {
    let target = target(quirks);
    let body = wire.encode(request, &target)?.concat();
    let operation = request.payload.operation();
    let head = wire.head(operation, false, target.model, quirks).unwrap();
    Ok((head.path, serde_json::from_slice(&body).unwrap()))
}

/// What a sink got.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Got {
    pub(super) items: Vec<Value>,
    pub(super) members: Vec<(String, Value)>,
    pub(super) usage: Option<Usage>,
}

impl Sink for Got {
    fn item(&mut self, item: &[u8]) {
        self.items.push(serde_json::from_slice(item).unwrap());
    }

    fn member(&mut self, key: &str, value: &str) {
        let value = serde_json::from_str(value).unwrap();
        self.members.push((key.to_owned(), value));
    }

    fn usage(&mut self, usage: Usage) {
        self.usage = Some(usage);
    }
}

/// Reads a reply of this status.
pub(super) fn read(
    wire: &'static Wire,
    request: &ModelRequest,
    status: u16,
    body: &[u8],
) -> Result<Got, Failure> {
    let quirks = Quirks::default();
    let head = ReplyHead::new(status, b"application/json");
    let mut decoder = decode_reply(wire, request, &target(&quirks), &head).unwrap();
    let mut got = Got::default();
    decoder.feed(&Bytes::copy_from_slice(body), &mut got)?;
    decoder.end(&mut got)?;
    Ok(got)
}
