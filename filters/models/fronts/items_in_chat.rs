//! Bodies of Responses on the path of chat completions: some editors send them there for models of one family, and read chat
//! completions in return. Source: docs/facts/responses.md 4.

use bytes::Bytes;

use super::chat_completions::ChatCompletions;
use super::responses::Responses;
use crate::fault::Fault;
use crate::fault_code::FaultCode;
use crate::json::{Error, Walker};
use crate::models::chat::conversation::Conversation;
use crate::models::dialects::compaction::Compaction;
use crate::models::dialects::{Dialect, NamedMember};
use crate::models::front::{ClientHead, Front, FrontRow, Received};
use crate::models::operation::Operation;
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::{ModelRequest, Source};
use crate::models::search_loop::SearchFunction;
use crate::models::search_words::{SearchCall, SearchResult, SearchWords};

/// The front of `POST /v1/chat/completions`, whatever its bodies are.
#[derive(Debug)]
pub(super) struct ChatPath;

/// The front of requests that came as items and are answered as chat completions.
#[derive(Debug)]
struct ItemsInChat;

impl Front for ChatPath {
    fn row(&'static self) -> &'static FrontRow {
        ChatCompletions.row()
    }

    /// Cost: none beside that of a chat, unless the chat is refused.
    fn read(&self, head: &ClientHead<'_>, body: Bytes) -> Result<Received, Fault> {
        let fault = match ChatCompletions.read(head, body.clone()) {
            Ok(received) => return Ok(received),
            Err(fault) => fault,
        };
        match has_items(&body) {
            true => ItemsInChat.read(head, body),
            false => Err(fault),
        }
    }

    fn conversation<'a>(&self, request: &'a ModelRequest) -> Result<Conversation<'a>, Fault> {
        ChatCompletions.conversation(request)
    }

    fn name_of(&'static self, member: NamedMember, source: &Source) -> &'static str {
        ChatCompletions.name_of(member, source)
    }

    fn explain(&self, fault: Fault) -> Fault {
        ChatCompletions.explain(fault)
    }

    fn search_words(&self) -> Option<&'static dyn SearchWords> {
        ChatCompletions.search_words()
    }

    fn writer(&self, request: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer> {
        ChatCompletions.writer(request, identity)
    }
}

impl Front for ItemsInChat {
    fn row(&'static self) -> &'static FrontRow {
        static ROW: FrontRow = FrontRow::new(
            ("chat_completions", "/v1/chat/completions"),
            Operation::Chat,
            String::new,
        )
        .speaking(Dialect::Responses);
        &ROW
    }

    fn read(&self, head: &ClientHead<'_>, body: Bytes) -> Result<Received, Fault> {
        let request = match Responses.read(head, body)? {
            Received::Complete(request) => request,
            // The answer is no response, so none can be kept or gone on with.
            Received::Stateful(request) => return Err(request.refusal),
            managed @ Received::Managed(_) => return Ok(managed),
        };
        if request.compaction() != Compaction::No {
            let said = "`input` ends with a `compaction_trigger`, which a chat cannot answer; accepted is `POST /v1/responses` for that";
            return Err(Fault::invalid("input", said).with_code(FaultCode::UnsupportedValue));
        }
        Ok(Received::Complete(ModelRequest {
            front: &Self,
            ..request
        }))
    }

    fn conversation<'a>(&self, request: &'a ModelRequest) -> Result<Conversation<'a>, Fault> {
        Responses.conversation(request)
    }

    fn name_of(&'static self, member: NamedMember, source: &Source) -> &'static str {
        Responses.name_of(member, source)
    }

    fn search_words(&self) -> Option<&'static dyn SearchWords> {
        Some(&NoSearch)
    }

    fn writer(&self, request: &ModelRequest, identity: ReplyIdentity) -> Box<dyn Writer> {
        ChatCompletions.writer(request, identity)
    }
}

/// A search of the web that is offered in items: the gateway does not run it, because the answer has no items.
#[derive(Debug)]
struct NoSearch;

impl SearchWords for NoSearch {
    fn begin(&self, _: &ModelRequest) -> Option<(Vec<u8>, SearchFunction)> {
        None
    }

    fn calls(&self, _: &[u8], _: &str) -> Vec<SearchCall> {
        Vec::new()
    }

    fn proceed(&self, _: &Source, _: &[u8], _: &[SearchResult]) -> Option<Vec<u8>> {
        None
    }

    fn forgo(&self, request: &ModelRequest) -> Option<Vec<u8>> {
        Responses.search_words()?.forgo(request)
    }
}

/// Returns whether a body has `input` and no `messages`.
fn has_items(body: &[u8]) -> bool {
    let (mut has_input, mut has_messages) = (false, false);
    let walked = Walker::new(body).and_then(|mut walk| {
        walk.object(|walk, key| {
            has_input |= key == "input";
            has_messages |= key == "messages";
            walk.skip().map(|_| ())
        })?;
        Ok::<(), Error>(())
    });
    walked.is_ok() && has_input && !has_messages
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use serde_json::{Value, json};

    use super::*;

    fn read(body: &Value) -> Result<Received, Fault> {
        ChatPath.read(&ClientHead::silent(), body.to_string().into())
    }

    #[test]
    fn items_are_read_as_items_and_messages_as_messages() {
        let tools = json!([{"type": "function", "name": "f", "parameters": {"type": "object"}}]);
        for (body, dialect) in [
            (
                json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}]}),
                Dialect::Chat,
            ),
            (
                json!({"model": "m", "messages": [{"role": "user", "content": "Hi"}], "input": "x"}),
                Dialect::Chat,
            ),
            (json!({"model": "m", "input": "Hi"}), Dialect::Responses),
            (
                json!({"model": "m", "input": [{"role": "user", "content": "Hi"}], "tools": tools}),
                Dialect::Responses,
            ),
        ] {
            let Received::Complete(request) = read(&body).unwrap() else {
                unreachable!("no prompt is named");
            };
            assert_eq!(request.front.row().dialect, Some(dialect), "{body}");
            assert_eq!(request.front.row().path, "/v1/chat/completions");
        }
    }

    #[test]
    fn each_fault_names_what_the_client_has_sent() {
        for (body, param) in [
            (json!({"model": "m"}), "messages"),
            (
                json!({"model": "m", "messages": 5, "input": "Hi"}),
                "messages",
            ),
            (json!({"model": "m", "input": []}), "input"),
            (
                json!({"model": "m", "input": "Hi", "tools": [{}]}),
                "tools[0].type",
            ),
        ] {
            let fault = read(&body).unwrap_err();
            assert_eq!(fault.param.as_deref(), Some(param), "{body}");
        }
        let broken = ChatPath
            .parse(Bytes::from_static(b"{\"input\":"))
            .unwrap_err();
        assert_eq!(broken.code(), Some("invalid_json"));
    }
}
