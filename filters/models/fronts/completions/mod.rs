//! Completions: the 400 rules of its requests, and texts as events or as one whole response. Base models complete a text; a chat
//! model answers it as what the user says. Source: docs/completions.md.

mod check;
mod conversation;
mod logprobs;
mod writer;

#[cfg(test)]
mod tests;

use bytes::Bytes;

use super::stop_cut::StopCut;
use crate::fault::Fault;
use crate::models::chat::conversation::Conversation;
use crate::models::check::describe::describe;
use crate::models::dialects::{Dialect, NamedMember};
use crate::models::front::{ClientHead, Front, FrontRow, Received};
use crate::models::operation::Operation;
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::{ModelRequest, Source};

/// The front of `POST /v1/completions`.
#[derive(Debug)]
pub struct Completions;

impl Front for Completions {
    fn row(&'static self) -> &'static FrontRow {
        static ROW: FrontRow =
            FrontRow::new(("completions", "/v1/completions"), Operation::Chat, || {
                describe(include_str!("description.json"), &[&check::FIELDS])
            })
            .speaking(Dialect::Completions);
        &ROW
    }

    fn read(&self, _: &ClientHead<'_>, body: Bytes) -> Result<Received, Fault> {
        check::check(body).map(Received::Complete)
    }

    fn conversation<'a>(&self, request: &'a ModelRequest) -> Result<Conversation<'a>, Fault> {
        conversation::read(request)
    }

    fn name_of(&'static self, member: NamedMember, _: &Source) -> &'static str {
        Dialect::Completions.name_of(member)
    }

    fn writer(&self, request: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer> {
        // Hosts of the dialect cut a text themselves, and what they echo of a prompt may hold its stop sequences.
        let is_own = identity.maker.dialect == Some(Dialect::Completions);
        let stops = match is_own || request.needs.native.is_some() {
            true => Vec::new(),
            false => conversation::stops(&request.source),
        };
        let stops = StopCut::new(stops.into_iter().map(Box::<str>::from));
        Box::new(writer::TextWriter::new(request, identity, stops))
    }
}
