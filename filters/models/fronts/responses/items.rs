//! Items of a checked body, in the words that all dialects have.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde_json::value::RawValue;

use super::tools::{ToolNames, text_arguments};
use crate::json::{Error, Type, Walker};
use crate::models::chat::conversation::{
    Block, BlockKind, CacheMarks, Media, MediaKind, MediaSource, Role, State, Turn,
};
use crate::models::chat::text::{BlockText, Text};
use crate::models::dialects::Dialect;
use crate::models::dialects::compaction;
use crate::models::dialects::state::sealed_dialect;
use crate::models::fronts::signed_blocks::{SignedBlocks, results_turn};

/// The mark of a prefix for providers that are told how long they keep it.
static CONTROL: LazyLock<Box<RawValue>> = LazyLock::new(|| {
    RawValue::from_string(r#"{"type":"ephemeral"}"#.to_owned()).unwrap_or_default()
});

/// Puts items into turns: what the model said together is one, and the results of its calls are the next.
pub(super) struct ReadTurns<'a, 'n> {
    pub(super) names: &'n ToolNames,
    turns: Vec<Turn<'a>>,
    /// What the model says at the moment.
    said: SignedBlocks<'a>,
    /// The results at the moment.
    results: Vec<Block<'a>>,
    /// Where a summary stands that only the provider can read that has made it.
    pub(super) foreign_summary: Option<u32>,
}

/// An item of any type.
#[derive(Default)]
struct Item<'a> {
    kind: Option<Cow<'a, str>>,
    role: Option<Cow<'a, str>>,
    /// A walker that stands before the content or the output.
    content: Option<Walker<'a>>,
    call_id: Option<Text<'a>>,
    name: Option<Text<'a>>,
    namespace: Option<Text<'a>>,
    arguments: Option<Walker<'a>>,
    input: Option<Text<'a>>,
    summary: Option<Walker<'a>>,
    encrypted_content: Option<Text<'a>>,
    result: Option<Text<'a>>,
    output_format: Option<Text<'a>>,
    tools: Option<Walker<'a>>,
    has_summary: bool,
}

impl<'a, 'n> ReadTurns<'a, 'n> {
    pub(super) fn new(names: &'n ToolNames) -> Self {
        Self {
            names,
            turns: Vec::new(),
            said: SignedBlocks::default(),
            results: Vec::new(),
            foreign_summary: None,
        }
    }

    /// Reads the next value of the body: instructions.
    pub(super) fn instructions(&mut self, walk: &mut Walker<'a>) -> Result<(), Error> {
        if walk.peek()? == Type::String {
            let block = text_block(walk)?;
            self.push(Role::System, block.at, vec![block]);
        }
        Ok(())
    }

    /// Reads the next value of the body: a string, or an array of items.
    pub(super) fn input(&mut self, walk: &mut Walker<'a>) -> Result<(), Error> {
        if walk.peek()? == Type::String {
            let block = text_block(walk)?;
            self.push(Role::User, block.at, vec![block]);
            return Ok(());
        }
        walk.array(|walk, _| {
            walk.peek()?;
            let at = offset(walk);
            let item = Item::read(walk)?;
            self.item(item, at)
        })
    }

    /// Says what the user says behind all items.
    pub(super) fn ask(&mut self, text: &'static str) {
        let block = Block::new(BlockKind::Text(Cow::Borrowed(text).into()), 0);
        self.push(Role::User, 0, vec![block]);
    }

    /// Returns the turns.
    pub(super) fn finish(mut self) -> Vec<Turn<'a>> {
        self.end_said();
        self.end_results();
        self.turns
    }

    fn item(&mut self, item: Item<'a>, at: u32) -> Result<(), Error> {
        let kind = item.kind.as_deref().unwrap_or("message");
        match kind {
            "message" => self.message(item, at),
            "reasoning" => self.reasoning(item, at),
            "function_call" => {
                let arguments = text_of(item.arguments)?;
                self.call(item.call_id, (item.namespace, item.name), arguments, at);
                Ok(())
            }
            "custom_tool_call" => {
                let text = text_arguments(item.input.as_deref().unwrap_or_default());
                self.call(item.call_id, (item.namespace, item.name), text.into(), at);
                Ok(())
            }
            "tool_search_call" => {
                let arguments = match item.arguments {
                    Some(mut walk) => walk.skip()?,
                    None => "{}",
                };
                // A search that the vendor has run has no id.
                if item.call_id.is_some() {
                    let name = Some(Text("tool_search".into()));
                    self.call(item.call_id, (None, name), arguments.into(), at);
                }
                Ok(())
            }
            "function_call_output" | "custom_tool_call_output" => {
                let content = parts(item.content)?;
                self.result(item.call_id, content, at);
                Ok(())
            }
            "tool_search_output" => {
                if item.call_id.is_some() {
                    let text = found_tools(item.tools, self.names)?;
                    let content = vec![Block::new(owned(text), at)];
                    self.result(item.call_id, content, at);
                }
                Ok(())
            }
            "image_generation_call" => {
                self.drawn(item, at);
                Ok(())
            }
            "compaction" => {
                self.summary(&item, at);
                Ok(())
            }
            // What a provider has run is known to that provider alone, and tools stand in their list.
            _ => Ok(()),
        }
    }

    fn message(&mut self, item: Item<'a>, at: u32) -> Result<(), Error> {
        let role = match item.role.as_deref() {
            Some("assistant") => Role::Assistant,
            Some("system") => Role::System,
            Some("developer") => Role::Developer,
            _ => Role::User,
        };
        let blocks = parts(item.content)?;
        if role == Role::Assistant {
            for block in blocks {
                self.say(block, at);
            }
            return Ok(());
        }
        if !blocks.is_empty() {
            self.push(role, at, blocks);
        }
        Ok(())
    }

    /// An image that a model has drawn.
    fn drawn(&mut self, item: Item<'a>, at: u32) {
        let Some(data) = item.result.filter(|data| !data.is_empty()) else {
            return;
        };
        let format = item.output_format.as_deref().unwrap_or("png");
        let url = ["data:image/", format, ";base64,", &data].concat();
        let drawn = BlockKind::Media(Media {
            kind: MediaKind::Drawn,
            source: MediaSource::Url(Text(url.into())),
            name: None,
            detail: None,
        });
        self.say(Block::new(drawn, at), at);
    }

    /// What stands for a history that was summarized.
    fn summary(&mut self, item: &Item<'a>, at: u32) {
        let content = item.encrypted_content.as_deref().unwrap_or_default();
        match compaction::open(content) {
            Some(summary) => {
                let block = Block::new(owned(summary), at);
                self.push(Role::User, at, vec![block]);
            }
            None => self.foreign_summary = Some(at),
        }
    }

    /// Reasoning without state is nobody's.
    fn reasoning(&mut self, item: Item<'a>, at: u32) -> Result<(), Error> {
        let Some(text) = item.encrypted_content.filter(|text| !text.is_empty()) else {
            return Ok(());
        };
        let dialect = sealed_dialect(&text).unwrap_or(Dialect::Responses);
        let state = State {
            dialect: Some(dialect),
            text,
            item: "",
        };
        let has_parts = item.has_summary;
        let said = reasoning_text(item.summary)? + &reasoning_text(item.content)?;
        let is_hidden = !has_parts && said.is_empty();
        if dialect == Dialect::Contents && is_hidden {
            self.end_results();
            self.said.begin(at);
            self.said.sign(state);
            return Ok(());
        }
        let kind = match dialect {
            // The state holds all of it.
            Dialect::Responses => BlockKind::Redacted,
            _ if is_hidden => BlockKind::Redacted,
            _ => BlockKind::Reasoning(Text(said.into())),
        };
        let mut block = Block::new(kind, at);
        block.states.push(state);
        self.say(block, at);
        Ok(())
    }

    fn call(
        &mut self,
        id: Option<Text<'a>>,
        (namespace, name): (Option<Text<'a>>, Option<Text<'a>>),
        input: Cow<'a, str>,
        at: u32,
    ) {
        let name = name.unwrap_or_default();
        let flat = self.names.flat(namespace.as_deref(), &name).into_owned();
        let call = BlockKind::Call {
            id: id.unwrap_or_default(),
            name: Text(flat.into()),
            input: Text(input),
        };
        self.say(Block::new(call, at), at);
    }

    fn result(&mut self, call: Option<Text<'a>>, content: Vec<Block<'a>>, at: u32) {
        self.end_said();
        let result = BlockKind::Result {
            call,
            content,
            is_error: false,
        };
        self.results.push(Block::new(result, at));
    }

    fn say(&mut self, block: Block<'a>, at: u32) {
        self.end_results();
        self.said.begin(at);
        self.said.push(block);
    }

    fn end_said(&mut self) {
        self.turns.extend(self.said.take_turn());
    }

    fn end_results(&mut self) {
        self.turns.extend(results_turn(&mut self.results));
    }

    fn push(&mut self, role: Role, at: u32, blocks: Vec<Block<'a>>) {
        self.end_said();
        self.end_results();
        self.turns.push(Turn::new(role, at, blocks));
    }
}

impl<'a> Item<'a> {
    fn read(walk: &mut Walker<'a>) -> Result<Self, Error> {
        let mut item = Self::default();
        walk.object(|walk, key| {
            let kind = walk.peek()?;
            let slot = match &*key {
                "content" | "output" if kind != Type::Null => &mut item.content,
                "arguments" => &mut item.arguments,
                "summary" if kind == Type::Array => &mut item.summary,
                "tools" => &mut item.tools,
                _ if kind == Type::String => return item.text(&key, walk),
                _ => return walk.skip().map(|_| ()),
            };
            *slot = Some(walk.clone());
            let json = walk.skip()?;
            if key == "summary" {
                item.has_summary = json.contains('{');
            }
            Ok::<(), Error>(())
        })?;
        Ok(item)
    }

    /// Reads a member that is a text.
    fn text(&mut self, key: &str, walk: &mut Walker<'a>) -> Result<(), Error> {
        let slot = match key {
            "type" => {
                self.kind = Some(walk.text()?);
                return Ok(());
            }
            "role" => {
                self.role = Some(walk.text()?);
                return Ok(());
            }
            "call_id" => &mut self.call_id,
            "name" => &mut self.name,
            "namespace" => &mut self.namespace,
            "input" => &mut self.input,
            "encrypted_content" => &mut self.encrypted_content,
            "result" => &mut self.result,
            "output_format" => &mut self.output_format,
            _ => return walk.skip().map(|_| ()),
        };
        *slot = Some(Text(walk.text()?));
        Ok(())
    }
}

/// A part of content.
#[derive(Default)]
struct Part<'a> {
    kind: Option<Cow<'a, str>>,
    text: Option<BlockText<'a>>,
    refusal: Option<BlockText<'a>>,
    image_url: Option<Text<'a>>,
    detail: Option<Text<'a>>,
    file_id: Option<Text<'a>>,
    file_data: Option<Text<'a>>,
    filename: Option<Text<'a>>,
    sound: Option<MediaSource<'a>>,
    breakpoint: Option<&'a RawValue>,
}

impl<'a> Part<'a> {
    fn read(walk: &mut Walker<'a>) -> Result<Self, Error> {
        let mut part = Self::default();
        walk.object(|walk, key| {
            let kind = walk.peek()?;
            match (&*key, kind) {
                ("type", Type::String) => part.kind = Some(walk.text()?),
                ("text", Type::String) => part.text = Some(BlockText::read(walk)?),
                ("refusal", Type::String) => part.refusal = Some(BlockText::read(walk)?),
                ("image_url", Type::String) => part.image_url = Some(Text(walk.text()?)),
                ("detail", Type::String) => part.detail = Some(Text(walk.text()?)),
                ("file_id", Type::String) => part.file_id = Some(Text(walk.text()?)),
                ("file_data", Type::String) => part.file_data = Some(Text(walk.text()?)),
                ("filename", Type::String) => part.filename = Some(Text(walk.text()?)),
                ("input_audio", Type::Object) => part.sound = Some(sound(walk)?),
                ("prompt_cache_breakpoint", Type::Object) => {
                    part.breakpoint = serde_json::from_str(walk.skip()?).ok();
                }
                _ => _ = walk.skip()?,
            }
            Ok::<(), Error>(())
        })?;
        Ok(part)
    }

    /// Returns the block that it is; `None`: other dialects have no words for it.
    fn into_block(self, at: u32) -> Option<Block<'a>> {
        let media = |kind, source, name, detail| {
            BlockKind::Media(Media {
                kind,
                source,
                name,
                detail,
            })
        };
        let kind = match self.kind.as_deref()? {
            "refusal" => BlockKind::Refusal(self.refusal?),
            "input_image" => {
                let source = MediaSource::Url(self.image_url?);
                media(MediaKind::Image, source, None, self.detail)
            }
            "input_file" => {
                let source = match (self.file_data, self.file_id) {
                    (Some(data), _) => MediaSource::Url(data),
                    (None, id) => MediaSource::Id(id?),
                };
                media(MediaKind::Document, source, self.filename, None)
            }
            "input_audio" => media(MediaKind::Audio, self.sound?, None, None),
            _ => BlockKind::Text(self.text?),
        };
        Some(Block {
            kind,
            at,
            marks: CacheMarks {
                control: self.breakpoint.map(|_| &**CONTROL),
                breakpoint: self.breakpoint,
            },
            states: Vec::new(),
        })
    }
}

fn sound<'a>(walk: &mut Walker<'a>) -> Result<MediaSource<'a>, Error> {
    let (mut data, mut format) = (Text::default(), Text::default());
    walk.object(|walk, key| {
        match (&*key, walk.peek()?) {
            ("data", Type::String) => data = Text(walk.text()?),
            ("format", Type::String) => format = Text(walk.text()?),
            _ => _ = walk.skip()?,
        }
        Ok::<(), Error>(())
    })?;
    Ok(MediaSource::Data { data, format })
}

/// Reads content: a string, or an array of parts. Anything else holds none.
fn parts(walk: Option<Walker<'_>>) -> Result<Vec<Block<'_>>, Error> {
    let Some(mut walk) = walk else {
        return Ok(Vec::new());
    };
    match walk.peek()? {
        Type::String => Ok(vec![text_block(&mut walk)?]),
        Type::Array => {
            let mut blocks = Vec::new();
            walk.array(|walk, _| {
                walk.peek()?;
                let at = offset(walk);
                let part = Part::read(walk)?;
                blocks.extend(part.into_block(at));
                Ok::<(), Error>(())
            })?;
            Ok(blocks)
        }
        _ => Ok(Vec::new()),
    }
}

/// Returns the texts of a list of reasoning.
fn reasoning_text(walk: Option<Walker<'_>>) -> Result<String, Error> {
    let blocks = parts(walk)?;
    let texts = blocks.iter().filter_map(|block| match &block.kind {
        BlockKind::Text(text) => Some(&**text),
        _ => None,
    });
    let texts: Vec<&str> = texts.collect();
    // A host of another dialect signs its text as it was said, which is one part.
    Ok(texts.join("\n\n"))
}

fn text_block<'a>(walk: &mut Walker<'a>) -> Result<Block<'a>, Error> {
    let at = offset(walk);
    Ok(Block::new(BlockKind::Text(BlockText::read(walk)?), at))
}

fn text_of(walk: Option<Walker<'_>>) -> Result<Cow<'_, str>, Error> {
    let Some(mut walk) = walk else {
        return Ok(Cow::Borrowed("{}"));
    };
    match walk.peek()? {
        Type::String => walk.text(),
        _ => Ok(Cow::Borrowed("{}")),
    }
}

/// Returns what a model is told of the tools that a search has found.
fn found_tools(walk: Option<Walker<'_>>, names: &ToolNames) -> Result<String, Error> {
    let json = match walk {
        Some(mut walk) => walk.skip()?,
        None => "[]",
    };
    let found = super::tools::names_in(json, names);
    Ok(match found.is_empty() {
        true => "No tools were found.".to_owned(),
        false => format!("These tools can be called now: {}.", found.join(", ")),
    })
}

fn owned<'a>(text: String) -> BlockKind<'a> {
    BlockKind::Text(Cow::<str>::Owned(text).into())
}

/// Returns the offset in the body that a walker has come to.
pub(super) fn offset(walk: &Walker<'_>) -> u32 {
    u32::try_from(walk.at()).unwrap_or(u32::MAX)
}
