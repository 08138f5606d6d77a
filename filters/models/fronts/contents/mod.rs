//! Contents: the 400 rules of its requests, and answers as events, as an array or as one whole response. Gemini CLI and the SDKs of
//! its vendor speak it, and any model answers.
//!
//! The path says the model and the form of the answer, which [`compose`] writes into the body, so that a body says all. [`check`]
//! reads a request, [`conversation`] and [`turns`] say it in the words of all dialects, [`writer`] makes the response of [`output`],
//! or passes on what a provider says in the same words ([`relay`]). [`search_words`] are for searches of the web that the gateway
//! runs. Source: docs/facts/contents.md.

mod check;
mod compose;
mod conversation;
mod error;
mod grounding;
mod media;
pub(super) mod members;
mod output;
mod relay;
mod schema;
mod search_words;
mod turns;
mod writer;

pub use compose::model_of_path;
pub use error::ContentsError;

#[cfg(test)]
mod relay_tests;
#[cfg(test)]
mod tests;

use bytes::Bytes;

use super::counted::{Counted, CountingApi, estimate};
use crate::fault::Fault;
use crate::models::chat::conversation::Conversation;
use crate::models::check::describe::describe;
use crate::models::dialects::{Dialect, NamedMember};
use crate::models::front::{ClientHead, Front, FrontRow, Received};
use crate::models::operation::Operation;
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::{ModelRequest, Source};
use crate::models::search_words::SearchWords;

/// A front of chats in this API.
#[derive(Debug)]
pub struct Contents {
    row: FrontRow,
    is_stream: bool,
}

/// The front of `POST /v1beta/models/{model}:generateContent`.
pub static GENERATE: Contents = Contents {
    row: FrontRow::new(
        ("generate_content", "/v1beta/models/**:generateContent"),
        Operation::Chat,
        || describe(include_str!("generate.json"), &[&check::top::FIELDS]),
    )
    .speaking(Dialect::Contents)
    .also_at("/v1/models/**:generateContent"),
    is_stream: false,
};

/// The front of `POST /v1beta/models/{model}:streamGenerateContent`.
pub static STREAM_GENERATE: Contents = Contents {
    row: FrontRow::new(
        (
            "stream_generate_content",
            "/v1beta/models/**:streamGenerateContent",
        ),
        Operation::Chat,
        || describe(include_str!("stream.json"), &[&check::top::FIELDS]),
    )
    .speaking(Dialect::Contents)
    .also_at("/v1/models/**:streamGenerateContent"),
    is_stream: true,
};

impl Front for Contents {
    fn row(&'static self) -> &'static FrontRow {
        &self.row
    }

    fn read(&self, head: &ClientHead<'_>, body: Bytes) -> Result<Received, Fault> {
        let body = compose::compose(head, body, self.is_stream)?;
        check::check(body, self.itself()).map(Received::Complete)
    }

    fn conversation<'a>(&self, request: &'a ModelRequest) -> Result<Conversation<'a>, Fault> {
        conversation::read(request)
    }

    fn name_of(&'static self, member: NamedMember, _: &Source) -> &'static str {
        Dialect::Contents.name_of(member)
    }

    fn search_words(&self) -> Option<&'static dyn SearchWords> {
        Some(&search_words::ContentsSearch)
    }

    fn keepalive(&'static self, request: &ModelRequest) -> Option<&'static str> {
        // Between the items of an array there is no place for a comment.
        (!writer::is_array(&request.source)).then_some(self.row.keepalive)
    }

    fn writer(&self, request: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer> {
        writer::writer(request, identity)
    }
}

impl Contents {
    fn itself(&self) -> &'static Self {
        match self.is_stream {
            true => &STREAM_GENERATE,
            false => &GENERATE,
        }
    }
}

/// The API of `POST /v1beta/models/{model}:countTokens`.
pub static COUNTING: CountingApi = CountingApi {
    dialect: Dialect::Contents,
    read: count_tokens,
    member: "totalTokens",
};

/// Reads a request that asks for no answer, but for how many tokens it has: contents, or a whole request in
/// `generateContentRequest`.
///
/// Errors: 400 naming the field, what came and what is accepted.
pub fn count_tokens(head: &ClientHead<'_>, body: Bytes) -> Result<Counted, Fault> {
    let body = compose::unwrapped(body)?;
    let body = compose::compose(head, body, false)?;
    let request = check::check(body, &GENERATE)?;
    Ok(Counted {
        estimate: estimate(&request),
        request,
    })
}
