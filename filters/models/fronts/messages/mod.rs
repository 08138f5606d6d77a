//! Messages: the 400 rules of its requests, and responses as events or as one whole message. Claude Code and the SDKs of its
//! vendor speak it, and any model answers.
//!
//! [`check`] reads a request, [`conversation`] and [`blocks`] say it in the words of all dialects, [`writer`] makes the response
//! in one of the two [`shape`]s, or passes on what a provider says in the same words ([`relay`]). [`search_words`] are for searches of the web that the gateway runs. Source: docs/facts/messages.md.

mod answer;
mod blocks;
mod check;
mod citations;
mod conversation;
mod error;
mod judge;
mod relay;
mod safeguards;
mod search_blocks;
mod search_words;
mod shape;
mod tool_types;
pub mod unified_limits;
mod writer;

pub use error::MessagesError;

#[cfg(test)]
mod citations_tests;
#[cfg(test)]
mod relay_tests;
#[cfg(test)]
mod safeguards_tests;
#[cfg(test)]
mod search_turn_tests;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use super::counted::{Counted, CountingApi, estimate};
use crate::fault::Fault;
use crate::fault_code::FaultCode;
use crate::models::chat::conversation::Conversation;
use crate::models::check::describe::describe;
use crate::models::dialects::{Dialect, NamedMember};
use crate::models::front::{ClientHead, Front, FrontRow, Received};
use crate::models::judge_words::JudgeWords;
use crate::models::operation::Operation;
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::{ModelRequest, Source};
use crate::models::search_words::SearchWords;

/// The front of `POST /v1/messages`.
#[derive(Debug)]
pub struct Messages;

impl Front for Messages {
    fn row(&'static self) -> &'static FrontRow {
        static ROW: FrontRow = FrontRow::new(("messages", "/v1/messages"), Operation::Chat, || {
            describe(include_str!("description.json"), &[&check::top::FIELDS])
        })
        .speaking(Dialect::Messages)
        .passing("anthropic-")
        .kept_alive_by("event: ping\ndata: {\"type\": \"ping\"}\n\n");
        &ROW
    }

    fn read(&self, _: &ClientHead<'_>, body: Bytes) -> Result<Received, Fault> {
        check::check(body, &Messages, false)
    }

    fn conversation<'a>(&self, request: &'a ModelRequest) -> Result<Conversation<'a>, Fault> {
        conversation::read(request)
    }

    fn name_of(&'static self, member: NamedMember, _: &Source) -> &'static str {
        Dialect::Messages.name_of(member)
    }

    fn judge_words(&self) -> Option<&'static dyn JudgeWords> {
        Some(&judge::MessagesJudge)
    }

    fn search_words(&self) -> Option<&'static dyn SearchWords> {
        Some(&search_words::MessagesSearch)
    }

    fn writer(&self, request: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer> {
        let stops = request.source.member("stop_sequences");
        let stops = stops.map(|stops| serde_json::from_slice(request.source.value(stops)));
        let stops = stops.and_then(Result::ok).flatten().unwrap_or_default();
        writer::writer(request, identity, stops)
    }
}

/// The API of `POST /v1/messages/count_tokens`.
pub static COUNTING: CountingApi = CountingApi {
    dialect: Dialect::Messages,
    read: |_, body| count_tokens(body),
    member: "input_tokens",
};

/// Reads a request that asks for no answer, but for how many tokens it has.
///
/// Errors: 400 naming the field, what came and what is accepted.
pub fn count_tokens(body: Bytes) -> Result<Counted, Fault> {
    let request = match check::check(body, &Messages, true)? {
        Received::Complete(request) => request,
        Received::Managed(_) => {
            let message = "`model` or `prompt` names a prompt or a flag; accepted is a model id";
            return Err(Fault::invalid("model", message).with_code(FaultCode::InvalidParameters));
        }
        Received::Stateful(request) => return Err(request.refusal),
    };
    Ok(Counted {
        estimate: estimate(&request),
        request,
    })
}
