//! The parts of a candidate, as chunks tell them or as a whole answer has them. Calls are whole, state stands at the part behind it.
//! Source: docs/facts/contents.md 2.

use super::grounding::Grounds;
use crate::json::{Error, Object, Str, Walker};
use crate::models::chat::input::object;
use crate::models::chat::piece::Search;
use crate::models::dialects::Dialect;
use crate::models::fronts::sequencer::{BlockKind, BlockWriter};

/// The parts.
#[derive(Debug, Default)]
pub(super) struct Parts {
    /// Those that have not gone out, with commas between them.
    pub(super) out: Vec<u8>,
    /// Whether texts go out in pieces.
    is_stream: bool,
    /// Whether the client wants to read what is thought.
    tells_thoughts: bool,
    /// The open text of a whole answer, or the arguments of the open call: the inside of a JSON string.
    text: Vec<u8>,
    /// What is thought in the open block.
    thought: String,
    /// The id and the name of the open call, insides of JSON strings.
    call: Option<(Box<str>, Box<str>)>,
    /// State that belongs to the part that comes next.
    state: Option<String>,
    /// What the answer rests on.
    pub(super) grounds: Grounds,
}

impl Parts {
    pub(super) fn new(is_stream: bool, tells_thoughts: bool) -> Self {
        Self {
            is_stream,
            tells_thoughts,
            ..Self::default()
        }
    }

    /// Writes state that no part has come for.
    pub(super) fn finish(&mut self) {
        if self.state.is_some() {
            self.text_part(Str::Plain(""));
        }
    }

    /// Writes a part with the members that `write` writes, and the state that waits.
    fn part(&mut self, write: impl FnOnce(&mut Object<'_>)) {
        let state = self.state.take();
        self.bare_part(|part| {
            write(part);
            part.optional_text("thoughtSignature", state.as_deref());
        });
    }

    /// Writes a part without state.
    fn bare_part(&mut self, write: impl FnOnce(&mut Object<'_>)) {
        if !self.out.is_empty() {
            self.out.push(b',');
        }
        let mut part = Object::open(&mut self.out);
        write(&mut part);
        part.close();
    }

    fn text_part(&mut self, text: Str<'_>) {
        self.part(|part| part.value("text", |out| text.write(out)));
    }

    fn thought_part(&mut self, text: Str<'_>) {
        self.bare_part(|part| {
            part.value("text", |out| text.write(out));
            part.bool("thought", true);
        });
    }

    /// Keeps state for the part that comes next.
    fn hold(&mut self, state: &str) {
        self.finish();
        self.state = Some(state.to_owned());
    }

    /// Takes the text of the block that ends.
    fn take_text(&mut self) -> String {
        String::from_utf8(std::mem::take(&mut self.text)).unwrap_or_default()
    }
}

impl BlockWriter for Parts {
    const DIALECT: Dialect = Dialect::Contents;
    const REFUSAL: BlockKind = BlockKind::Text;
    const HAS_IMAGES: bool = true;

    fn reasoning(&self) -> Option<&str> {
        Some(&self.thought)
    }

    fn open(&mut self, _: usize, kind: BlockKind, call: Option<(&str, &str)>) {
        if kind == BlockKind::Thinking {
            self.thought.clear();
        }
        self.text.clear();
        self.call = call.map(|(id, name)| (id.into(), name.into()));
    }

    fn part(&mut self, _: usize, kind: BlockKind, part: Str<'_>) {
        match kind {
            BlockKind::Call => part.write_contents(&mut self.text),
            BlockKind::Thinking => {
                self.thought.push_str(&part.unescaped());
                match (self.tells_thoughts, self.is_stream) {
                    (false, _) => {}
                    (true, true) => self.thought_part(part),
                    (true, false) => part.write_contents(&mut self.text),
                }
            }
            BlockKind::Text | BlockKind::Refusal => match self.is_stream {
                true => self.text_part(part),
                false => part.write_contents(&mut self.text),
            },
        }
    }

    /// Grounds of the answer are told at its end.
    fn cite(&mut self, _: usize, _: &str) {}

    fn close(&mut self, _: usize, kind: BlockKind, signature: Option<&str>) {
        let text = self.take_text();
        match kind {
            BlockKind::Call => {
                let (id, name) = self.call.take().unwrap_or_default();
                let args = object(&Str::Raw(&text).unescaped());
                self.part(|part| {
                    part.object("functionCall", |call| {
                        call.value("id", |out| Str::Raw(&id).write(out));
                        call.value("name", |out| Str::Raw(&name).write(out));
                        call.raw("args", args.get());
                    });
                });
            }
            BlockKind::Thinking if !text.is_empty() => self.thought_part(Str::Raw(&text)),
            BlockKind::Text | BlockKind::Refusal if !text.is_empty() => {
                self.text_part(Str::Raw(&text));
            }
            _ => {}
        }
        if let Some(signature) = signature {
            self.hold(signature);
        }
    }

    /// A part of a tool that the provider ran.
    fn whole(&mut self, _: usize, json: &str) {
        self.bare_part(|part| {
            _ = Walker::over(json).object(|walk, key| {
                let value = walk.skip()?;
                if key != "type" {
                    part.foreign(&key, value);
                }
                Ok::<(), Error>(())
            });
        });
    }

    fn redacted(&mut self, _: usize, data: &str) {
        self.hold(data);
    }

    fn image(&mut self, _: usize, media_type: &str, data: Str<'_>) {
        self.part(|part| {
            part.object("inlineData", |inline| {
                inline.text("mimeType", media_type);
                inline.value("data", |out| data.write(out));
            });
        });
    }

    fn search(&mut self, _: usize, _: &str, search: &Search<'_>) -> usize {
        self.grounds.search(search);
        0
    }
}
