//! State on its way back: where replies have handed it out, and where it stood. Source: docs/decisions.md 4.

use serde::Deserialize;
use serde_json::Value;

use super::raw;
use crate::json::{Error, Str, Walker};
use crate::models::chat::conversation::{Block, BlockKind, Native, State};
use crate::models::chat::text::Text;
use crate::models::dialects::Dialect;
use crate::models::dialects::chat_state::ORIGIN;
use crate::models::dialects::state::is_sealed;

/// The characters of text before a block, and its number among blocks.
pub(super) type TextPlace = (u64, u64);

/// What a message carries beside its text, its images and its calls.
#[derive(Debug, Default)]
pub(super) struct Carried<'a> {
    /// What stood within the text.
    pub(super) within: Vec<(TextPlace, Block<'a>)>,
    /// What stood before or behind all of it.
    pub(super) beside: Vec<(TextPlace, Block<'a>)>,
    /// Reasoning, each with the number of messages and calls before it.
    pub(super) between: Vec<(u64, Block<'a>)>,
    /// State of the text or, by its number, of an image.
    pub(super) signatures: Vec<(Option<usize>, State<'a>)>,
}

/// What says whose an item of `reasoning_details` is.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Tag<'a> {
    #[serde(borrow)]
    format: Text<'a>,
}

/// Thinking within the text.
#[derive(Deserialize)]
struct Thinking<'a> {
    #[serde(default)]
    index: u64,
    #[serde(default)]
    text_offset: u64,
    #[serde(borrow, default)]
    text: Text<'a>,
    #[serde(borrow, default)]
    signature: Text<'a>,
    #[serde(borrow, default)]
    data: Text<'a>,
}

/// The signature of a text or of an image.
#[derive(Deserialize)]
struct Signature<'a> {
    #[serde(borrow)]
    data: Text<'a>,
    #[serde(default)]
    image: Option<usize>,
}

/// A reasoning item; its wire reads the rest of its members.
#[derive(Deserialize)]
struct ReasoningItem<'a> {
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    data: Text<'a>,
}

impl<'a> Carried<'a> {
    /// Adds an item of `reasoning_details` at `at`. Those in a format that no wire has, and broken ones, count for nothing.
    pub(super) fn add(&mut self, item: &'a str, at: u32) {
        let Tag { format } = serde_json::from_str(item).unwrap_or_default();
        let Some(dialect) = Dialect::find_format(&format) else {
            return;
        };
        let state = |text: Text<'a>, item| State {
            dialect: is_sealed(&text).then_some(dialect),
            text,
            item,
        };
        let block = |kind, state| Block {
            states: vec![state],
            ..Block::new(kind, at)
        };
        match dialect {
            Dialect::Chat | Dialect::Completions | Dialect::Converse | Dialect::ChatV2 => {}
            Dialect::Messages => {
                let Ok(item) = serde_json::from_str::<Thinking<'a>>(item) else {
                    return;
                };
                let (kind, text) = match (item.signature.is_empty(), item.data.is_empty()) {
                    (false, _) => (BlockKind::Reasoning(item.text), item.signature),
                    (true, false) => (BlockKind::Redacted, item.data),
                    (true, true) => return,
                };
                let place = (item.text_offset, item.index);
                self.within.push((place, block(kind, state(text, ""))));
            }
            Dialect::Responses => {
                if let Ok(read) = serde_json::from_str::<ReasoningItem<'a>>(item) {
                    let block = block(BlockKind::Redacted, state(read.data, item));
                    self.between.push((read.index, block));
                }
            }
            Dialect::Contents => {
                if let Ok(item) = serde_json::from_str::<Signature<'a>>(item) {
                    self.signatures.push((item.image, state(item.data, "")));
                }
            }
        }
    }

    /// Adds an item of `vendor_native_blocks` at `at`: a block, and beside its own members whose it is and where it stood.
    pub(super) fn add_native(&mut self, item: &str, at: u32) {
        let (mut format, mut seal) = (None, None);
        let (mut index, mut offset) = (0, 0);
        let mut own = String::with_capacity(item.len());
        let read = Walker::over(item).object(|walk, key| {
            let value = walk.skip()?;
            let word = || serde_json::from_str::<String>(value).unwrap_or_default();
            match &*key {
                "format" => format = Some(word()),
                ORIGIN => seal = Some(Text(word().into())),
                "block_index" => index = value.parse().unwrap_or(0),
                "text_offset" => offset = value.parse().unwrap_or(0),
                key => {
                    own.push(if own.is_empty() { '{' } else { ',' });
                    let mut name = Vec::new();
                    Str::Plain(key).write(&mut name);
                    own.extend([&String::from_utf8_lossy(&name), ":", value]);
                }
            }
            Ok::<(), Error>(())
        });
        own.push_str(if own.is_empty() { "{}" } else { "}" });
        let dialect = format.as_deref().map(Dialect::find_format);
        // A format that no wire has is of somebody else.
        let (Ok(()), Some(json), false) = (read, raw(&own), dialect == Some(None)) else {
            return;
        };
        let dialect = dialect.flatten();
        let native = Native {
            dialect,
            seal,
            json: json.to_owned(),
        };
        let list = match dialect {
            Some(Dialect::Contents) => &mut self.beside,
            _ => &mut self.within,
        };
        let block = Block::new(BlockKind::Native(native), at);
        list.push(((offset, index), block));
    }
}

/// Reads the state beside a call or a text: an object by vendors, each with its signature. That of a client of the vendor has no
/// seal.
pub(super) fn beside<'a>(walk: &mut Walker<'a>) -> Result<Vec<State<'a>>, Error> {
    let mut states = Vec::new();
    super::members(walk, |walk, vendor| {
        let own = walk.skip()?;
        let (Some(dialect), Ok(own)) = (
            Dialect::from_vendor(vendor),
            serde_json::from_str::<Value>(own),
        ) else {
            return Ok(());
        };
        let signature = own.get("thought_signature").and_then(Value::as_str);
        states.extend(signature.map(|signature| State {
            dialect: Some(dialect),
            text: Text(signature.to_owned().into()),
            item: "",
        }));
        Ok(())
    })?;
    Ok(states)
}
