//! Chat completions: the 400 rules of its requests and of prompt files, and responses as chunks of a stream or as one whole
//! reply; JSON that was asked for is repaired.

use bytes::Bytes;
use serde::Deserialize;

use crate::fault::Fault;
use crate::models::chat::conversation::Conversation;
use crate::models::chat::text::Text;
use crate::models::check::describe::describe;
use crate::models::dialects::{Dialect, NamedMember};
use crate::models::front::{ClientHead, Front, FrontRow, Received};
use crate::models::operation::Operation;
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::{ModelRequest, Payload, Source};
use crate::models::search_words::SearchWords;

mod check;
pub mod chunks;
mod conversation;
mod healed;
mod items;
mod members;
pub mod prompt_file;
mod repeated;
mod search_words;
mod text;
mod tools;
mod turn;
pub mod whole;

#[cfg(test)]
mod healed_tests;
#[cfg(test)]
mod repeated_tests;

use self::chunks::ChunkWriter;
use self::healed::HealedWriter;
use self::repeated::RepeatedWriter;
use self::whole::WholeWriter;

/// The front of `POST /v1/chat/completions`.
#[derive(Debug)]
pub struct ChatCompletions;

impl Front for ChatCompletions {
    fn row(&'static self) -> &'static FrontRow {
        static ROW: FrontRow = FrontRow::new(
            ("chat_completions", "/v1/chat/completions"),
            Operation::Chat,
            || describe(include_str!("description.json"), &[&check::top::FIELDS]),
        )
        .speaking(Dialect::Chat);
        &ROW
    }

    fn read(&self, _: &ClientHead<'_>, body: Bytes) -> Result<Received, Fault> {
        check::check(body, &ChatCompletions)
    }

    fn conversation<'a>(&self, request: &'a ModelRequest) -> Result<Conversation<'a>, Fault> {
        conversation::read(request)
    }

    fn name_of(&'static self, member: NamedMember, source: &Source) -> &'static str {
        match member {
            NamedMember::ImageOutput if source.member("image_config").is_some() => "image_config",
            member => Dialect::Chat.name_of(member),
        }
    }

    fn search_words(&self) -> Option<&'static dyn SearchWords> {
        Some(&search_words::ChatSearch)
    }

    fn writer(&self, request: &ModelRequest, mut identity: ReplyIdentity) -> Box<dyn Writer> {
        identity.id = ["chatcmpl-", &identity.id].concat().into();
        let Payload::Chat(chat) = &request.payload else {
            return Box::new(WholeWriter::new(identity));
        };
        let writer: Box<dyn Writer> = if request.is_stream {
            Box::new(ChunkWriter::new(identity, chat.includes_usage))
        } else {
            Box::new(WholeWriter::new(identity))
        };
        let writer: Box<dyn Writer> = match chat.heals {
            true => Box::new(HealedWriter::new(writer, wants_object(request))),
            false => writer,
        };
        match request.image_count() > Some(1) {
            true => Box::new(RepeatedWriter::new(writer)),
            false => writer,
        }
    }
}

/// Returns whether the answer has to be an object, and not a list.
fn wants_object(request: &ModelRequest) -> bool {
    #[derive(Deserialize)]
    struct Schema<'a> {
        #[serde(borrow, rename = "type")]
        kind: Option<Text<'a>>,
    }
    request.answer_schema().is_none_or(|schema| {
        let schema = serde_json::from_str::<Schema<'_>>(schema);
        schema.is_ok_and(|schema| schema.kind.as_deref() == Some("object"))
    })
}
