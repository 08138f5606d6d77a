//! Chat completions: the 400 rules of its requests and of prompt files, and responses as chunks of a stream or as one whole reply.

use bytes::Bytes;

use crate::fault::Fault;
use crate::models::front::{Front, Received};
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::{ModelRequest, Payload};

mod check;
pub mod chunks;
mod head;
mod members;
pub mod prompt_file;
mod text;
mod tools;
pub mod whole;

use self::chunks::ChunkWriter;
use self::whole::WholeWriter;

/// The front of `POST /v1/chat/completions`.
#[derive(Debug)]
pub struct ChatCompletions;

impl Front for ChatCompletions {
    fn name(&self) -> &'static str {
        "chat_completions"
    }

    fn read(&self, body: Bytes) -> Result<Received, Fault> {
        check::check(body, &ChatCompletions)
    }

    fn writer(&self, request: &ModelRequest, mut identity: ReplyIdentity) -> Box<dyn Writer> {
        identity.id = ["chatcmpl-", &identity.id].concat().into();
        if !request.is_stream {
            return Box::new(WholeWriter::new(identity));
        }
        let includes_usage = matches!(&request.payload, Payload::Chat(chat) if chat.includes_usage);
        Box::new(ChunkWriter::new(identity, includes_usage))
    }
}
