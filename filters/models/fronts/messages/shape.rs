//! The two shapes of a response: events, and one whole message.

use super::search_blocks;
use crate::json::{Object, Str, write_number};
use crate::models::chat::input::object;
use crate::models::chat::piece::Search;
use crate::models::dialects::Dialect;
use crate::models::fronts::sequencer::{BlockKind, BlockWriter};
use crate::sse::{join_lines, write_name};

/// A shape.
pub(super) trait Shape: BlockWriter + Default + Send + Sync {
    /// Whether it is an event stream.
    const IS_STREAM: bool;

    /// Begins the message. `head` writes its id and model, `usage` what is known of the prompt.
    fn begin(&mut self, head: &dyn Fn(&mut Object<'_>), usage: &dyn Fn(&mut Vec<u8>));

    /// Ends the message. `stop` writes why it ended, `usage` what it took, `more` the members behind.
    fn end(
        &mut self,
        head: &dyn Fn(&mut Object<'_>),
        stop: &dyn Fn(&mut Object<'_>),
        usage: &dyn Fn(&mut Vec<u8>),
        more: &dyn Fn(&mut Object<'_>),
    );

    /// Ends a message that broke off.
    fn fail(&mut self, error: &[u8]);

    /// Returns the bytes that were written.
    fn out(&mut self) -> &mut Vec<u8>;

    /// Returns whether none were.
    fn is_empty(&self) -> bool;
}

/// Events.
#[derive(Debug, Default)]
pub(super) struct Events {
    out: Vec<u8>,
}

/// One whole message.
#[derive(Debug, Default)]
pub(super) struct Whole {
    out: Vec<u8>,
    /// The inside of the array of blocks.
    content: Vec<u8>,
    /// The arguments of the open call.
    input: String,
    /// The inside of the array of the open text's citations.
    citations: Vec<u8>,
}

/// Writes an event.
pub(super) fn write_event(name: &str, data: &[u8], out: &mut Vec<u8>) {
    write_name(name, out);
    out.extend_from_slice(b"data: ");
    let start = out.len();
    out.extend_from_slice(data);
    join_lines(out.get_mut(start..).unwrap_or_default());
    out.extend_from_slice(b"\n\n");
}

/// Returns a block of reasoning that is not shown.
fn redacted(data: &str) -> String {
    let mut block = Vec::with_capacity(data.len() + 48);
    let mut object = Object::open(&mut block);
    object.text("type", "redacted_thinking");
    object.text("data", data);
    object.close();
    String::from_utf8(block).unwrap_or_default()
}

impl Events {
    fn event(&mut self, name: &'static str, data: impl FnOnce(&mut Object<'_>)) {
        write_name(name, &mut self.out);
        self.out.extend_from_slice(b"data: ");
        let mut object = Object::open(&mut self.out);
        object.text("type", name);
        data(&mut object);
        object.close();
        self.out.extend_from_slice(b"\n\n");
    }

    /// Writes everything of a delta up to its text.
    fn delta(&mut self, index: usize, kind: &str, key: &str) {
        self.out.extend_from_slice(
            b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":",
        );
        write_number(index as u64, &mut self.out);
        self.out.extend_from_slice(b",\"delta\":{\"type\":\"");
        self.out.extend_from_slice(kind.as_bytes());
        self.out.extend_from_slice(b"\",\"");
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }
}

impl BlockWriter for Events {
    const DIALECT: Dialect = Dialect::Messages;
    const REFUSAL: BlockKind = BlockKind::Text;

    fn open(&mut self, index: usize, kind: BlockKind, call: Option<(&str, &str)>) {
        self.event("content_block_start", |event| {
            event.number("index", index as u64);
            match call {
                None if kind == BlockKind::Thinking => event.raw(
                    "content_block",
                    r#"{"type":"thinking","thinking":"","signature":""}"#,
                ),
                None => event.raw("content_block", r#"{"type":"text","text":""}"#),
                Some((id, name)) => event.object("content_block", |block| {
                    block.text("type", "tool_use");
                    block.value("id", |out| Str::Raw(id).write(out));
                    block.value("name", |out| Str::Raw(name).write(out));
                    block.raw("input", "{}");
                }),
            }
        });
    }

    fn part(&mut self, index: usize, kind: BlockKind, part: Str<'_>) {
        let (delta, key) = match kind {
            BlockKind::Text | BlockKind::Refusal => ("text_delta", "text"),
            BlockKind::Thinking => ("thinking_delta", "thinking"),
            BlockKind::Call => ("input_json_delta", "partial_json"),
        };
        self.delta(index, delta, key);
        part.write(&mut self.out);
        self.out.extend_from_slice(b"}}\n\n");
    }

    fn cite(&mut self, index: usize, json: &str) {
        self.delta(index, "citations_delta", "citation");
        self.out.extend_from_slice(json.as_bytes());
        self.out.extend_from_slice(b"}}\n\n");
    }

    fn close(&mut self, index: usize, _: BlockKind, signature: Option<&str>) {
        if let Some(signature) = signature {
            self.delta(index, "signature_delta", "signature");
            Str::Plain(signature).write(&mut self.out);
            self.out.extend_from_slice(b"}}\n\n");
        }
        self.event("content_block_stop", |event| {
            event.number("index", index as u64);
        });
    }

    fn whole(&mut self, index: usize, json: &str) {
        let mut data = Vec::with_capacity(json.len() + 80);
        let mut event = Object::open(&mut data);
        event.text("type", "content_block_start");
        event.number("index", index as u64);
        event.raw("content_block", json);
        event.close();
        write_event("content_block_start", &data, &mut self.out);
        self.event("content_block_stop", |event| {
            event.number("index", index as u64);
        });
    }

    fn redacted(&mut self, index: usize, data: &str) {
        self.whole(index, &redacted(data));
    }

    fn search(&mut self, index: usize, id: &str, search: &Search<'_>) -> usize {
        self.event("content_block_start", |event| {
            event.number("index", index as u64);
            event.value("content_block", |out| {
                search_blocks::write_call(id, "{}", out);
            });
        });
        let input = search_blocks::input(search);
        self.part(index, BlockKind::Call, Str::Plain(&input));
        self.close(index, BlockKind::Call, None);
        let mut result = Vec::new();
        search_blocks::write_result(id, search, &mut result);
        self.whole(index + 1, &String::from_utf8(result).unwrap_or_default());
        2
    }
}

impl Shape for Events {
    const IS_STREAM: bool = true;

    fn begin(&mut self, head: &dyn Fn(&mut Object<'_>), usage: &dyn Fn(&mut Vec<u8>)) {
        self.event("message_start", |event| {
            event.object("message", |message| {
                head(message);
                message.raw("content", "[]");
                message.raw("stop_reason", "null");
                message.raw("stop_sequence", "null");
                message.value("usage", usage);
            });
        });
    }

    fn end(
        &mut self,
        _: &dyn Fn(&mut Object<'_>),
        stop: &dyn Fn(&mut Object<'_>),
        usage: &dyn Fn(&mut Vec<u8>),
        more: &dyn Fn(&mut Object<'_>),
    ) {
        self.event("message_delta", |event| {
            event.object("delta", stop);
            event.value("usage", usage);
            more(event);
        });
        self.event("message_stop", |_| ());
    }

    fn fail(&mut self, error: &[u8]) {
        write_event("error", error, &mut self.out);
    }

    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    fn is_empty(&self) -> bool {
        self.out.is_empty()
    }
}

impl BlockWriter for Whole {
    const DIALECT: Dialect = Dialect::Messages;
    const REFUSAL: BlockKind = BlockKind::Text;

    fn open(&mut self, _: usize, kind: BlockKind, call: Option<(&str, &str)>) {
        if !self.content.is_empty() {
            self.content.push(b',');
        }
        match (kind, call) {
            (BlockKind::Text | BlockKind::Refusal, _) => self
                .content
                .extend_from_slice(b"{\"type\":\"text\",\"text\":\""),
            (BlockKind::Thinking, _) => {
                self.content
                    .extend_from_slice(b"{\"type\":\"thinking\",\"thinking\":\"");
            }
            (BlockKind::Call, call) => {
                let (id, name) = call.unwrap_or_default();
                self.content
                    .extend_from_slice(b"{\"type\":\"tool_use\",\"id\":");
                Str::Raw(id).write(&mut self.content);
                self.content.extend_from_slice(b",\"name\":");
                Str::Raw(name).write(&mut self.content);
                self.content.extend_from_slice(b",\"input\":");
                self.input.clear();
            }
        }
    }

    fn part(&mut self, _: usize, kind: BlockKind, part: Str<'_>) {
        match kind {
            BlockKind::Call => self.input.push_str(&part.contents()),
            _ => part.write_contents(&mut self.content),
        }
    }

    fn cite(&mut self, _: usize, json: &str) {
        if !self.citations.is_empty() {
            self.citations.push(b',');
        }
        self.citations.extend_from_slice(json.as_bytes());
    }

    fn close(&mut self, _: usize, kind: BlockKind, signature: Option<&str>) {
        match kind {
            BlockKind::Text | BlockKind::Refusal => {
                self.content.push(b'"');
                if !self.citations.is_empty() {
                    self.content.extend_from_slice(b",\"citations\":[");
                    self.content.append(&mut self.citations);
                    self.content.push(b']');
                }
            }
            BlockKind::Thinking => {
                self.content.extend_from_slice(b"\",\"signature\":");
                Str::Plain(signature.unwrap_or_default()).write(&mut self.content);
            }
            BlockKind::Call => {
                // Pieces of escapes are escapes only once they are joined.
                let input = Str::Raw(&self.input).unescaped();
                self.content
                    .extend_from_slice(object(&input).get().as_bytes());
            }
        }
        self.content.push(b'}');
    }

    fn whole(&mut self, _: usize, json: &str) {
        if !self.content.is_empty() {
            self.content.push(b',');
        }
        self.content.extend_from_slice(json.as_bytes());
    }

    fn redacted(&mut self, index: usize, data: &str) {
        self.whole(index, &redacted(data));
    }

    fn search(&mut self, index: usize, id: &str, search: &Search<'_>) -> usize {
        let mut call = Vec::new();
        search_blocks::write_call(id, &search_blocks::input(search), &mut call);
        let mut result = Vec::new();
        search_blocks::write_result(id, search, &mut result);
        for block in [call, result] {
            self.whole(index, &String::from_utf8(block).unwrap_or_default());
        }
        2
    }
}

impl Shape for Whole {
    const IS_STREAM: bool = false;

    fn begin(&mut self, _: &dyn Fn(&mut Object<'_>), _: &dyn Fn(&mut Vec<u8>)) {}

    fn end(
        &mut self,
        head: &dyn Fn(&mut Object<'_>),
        stop: &dyn Fn(&mut Object<'_>),
        usage: &dyn Fn(&mut Vec<u8>),
        more: &dyn Fn(&mut Object<'_>),
    ) {
        let content = std::mem::take(&mut self.content);
        self.out.reserve(content.len() + 1024);
        let mut message = Object::open(&mut self.out);
        head(&mut message);
        message.value("content", |out| {
            out.push(b'[');
            out.extend_from_slice(&content);
            out.push(b']');
        });
        stop(&mut message);
        message.value("usage", usage);
        more(&mut message);
        message.close();
    }

    /// Writes nothing: the head has not gone out, so the error becomes a response of its own.
    fn fail(&mut self, _: &[u8]) {}

    fn out(&mut self) -> &mut Vec<u8> {
        &mut self.out
    }

    fn is_empty(&self) -> bool {
        self.out.is_empty()
    }
}
