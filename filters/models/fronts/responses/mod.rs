//! Responses: the 400 rules of its requests, and answers as events or as one whole response. Codex and the SDKs of its vendor speak
//! it, and any model answers.
//!
//! [`check`] reads a request, [`conversation`], [`items`] and [`tools`] say it in the words of all dialects, [`writer`] makes the
//! response of items ([`output`]), or passes on what a provider says in the same words ([`relay`]). [`search_words`] are for searches
//! of the web that the gateway runs, and [`compact`] is the front of histories that are to be summarized. Source: docs/facts/responses.md.

mod check;
mod citations;
mod compact;
mod conversation;
mod error;
mod head;
mod items;
mod output;
mod relay;
mod search_words;
mod tool_types;
mod tools;
mod writer;

pub use compact::Compact;
pub use error::ResponsesError;

#[cfg(test)]
mod compact_tests;
#[cfg(test)]
mod stored_tests;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use self::head::ResponseHead;
use crate::fault::Fault;
use crate::json::Object;
use crate::models::chat::conversation::Conversation;
use crate::models::check::describe::describe;
use crate::models::dialects::compaction::Compaction;
use crate::models::dialects::{Dialect, NamedMember};
use crate::models::front::{ClientHead, Front, FrontRow, Received};
use crate::models::operation::Operation;
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::{ModelRequest, Source};
use crate::models::search_words::SearchWords;
use crate::models::stored_responses::progress;

/// The front of `POST /v1/responses`.
#[derive(Debug)]
pub struct Responses;

impl Front for Responses {
    fn row(&'static self) -> &'static FrontRow {
        static ROW: FrontRow =
            FrontRow::new(("responses", "/v1/responses"), Operation::Chat, || {
                describe(include_str!("description.json"), &[&check::top::FIELDS])
            })
            .speaking(Dialect::Responses)
            // Clients count the time since the last event that has data.
            .kept_alive_by("event: keepalive\ndata: {\"type\":\"keepalive\"}\n\n");
        &ROW
    }

    fn read(&self, _: &ClientHead<'_>, body: Bytes) -> Result<Received, Fault> {
        check::check(body, &Responses, Compaction::No)
    }

    fn conversation<'a>(&self, request: &'a ModelRequest) -> Result<Conversation<'a>, Fault> {
        conversation::read(request)
    }

    fn name_of(&'static self, member: NamedMember, _: &Source) -> &'static str {
        Dialect::Responses.name_of(member)
    }

    fn search_words(&self) -> Option<&'static dyn SearchWords> {
        Some(&search_words::ResponsesSearch)
    }

    fn queued(&self, request: &ModelRequest, created_s: u64) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let mut response = Object::open(&mut out);
        ResponseHead::new(request, ("", created_s)).write_queued(&mut response);
        response.close();
        Some(out)
    }

    fn failed(&self, queued: &str, fault: &Fault) -> Option<Vec<u8>> {
        let error = ResponsesError::new(fault).of_response();
        let failed = progress::failed(queued, &error).ok()?;
        Some(failed.into_bytes())
    }

    fn writer(&self, request: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer> {
        writer::writer(request, identity)
    }
}
