//! Blocks of a checked body, in the words that all dialects have.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{Walker, offset_of};
use crate::models::chat::conversation::{
    Block, BlockKind, CacheMarks, Media, MediaKind, MediaSource, Native, State,
};
use crate::models::chat::text::{BlockText, Text};
use crate::models::dialects::Dialect;
use crate::models::dialects::state::sealed_dialect;

/// The beginning of the text by which Claude Code says who sends a request. Only the vendor reads it.
const ATTRIBUTION: &str = "x-anthropic-billing-header";

/// What marks the end of a prefix for providers that are told where alone.
static BREAKPOINT: LazyLock<Box<RawValue>> = LazyLock::new(|| {
    RawValue::from_string(r#"{"mode":"explicit"}"#.to_owned()).unwrap_or_default()
});

/// Content: a string or an array of blocks, as JSON.
#[derive(Deserialize)]
#[serde(transparent)]
pub(super) struct Content<'a>(#[serde(borrow)] &'a RawValue);

impl Content<'_> {
    /// Returns its offset in the body.
    pub(super) fn at(&self, body: &str) -> u32 {
        offset_of(body, self.0.get())
    }
}

/// A block of any type.
#[derive(Deserialize)]
struct Said<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    text: Option<&'a RawValue>,
    #[serde(borrow, default)]
    source: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content: Option<Content<'a>>,
    #[serde(borrow, default)]
    id: Option<Text<'a>>,
    #[serde(borrow, default)]
    name: Option<Text<'a>>,
    #[serde(borrow, default)]
    input: Option<&'a RawValue>,
    #[serde(borrow, default)]
    tool_use_id: Option<Text<'a>>,
    #[serde(default)]
    is_error: Option<bool>,
    #[serde(borrow, default)]
    thinking: Option<Text<'a>>,
    #[serde(borrow, default)]
    signature: Option<Text<'a>>,
    #[serde(borrow, default)]
    data: Option<Text<'a>>,
    #[serde(borrow, default)]
    title: Option<Text<'a>>,
    #[serde(borrow, default)]
    tool_name: Option<Text<'a>>,
    #[serde(borrow, default)]
    cache_control: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct SaidSource<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    media_type: Option<Text<'a>>,
    #[serde(borrow, default)]
    data: Option<Text<'a>>,
    #[serde(borrow, default)]
    url: Option<Text<'a>>,
    #[serde(borrow, default)]
    file_id: Option<Text<'a>>,
}

/// Reads content. Names of tools that results refer to are added to `referenced`.
pub(super) fn read<'a>(
    body: &'a str,
    content: &Content<'a>,
    referenced: &mut Vec<Cow<'a, str>>,
) -> Vec<Block<'a>> {
    let json = content.0;
    let at = content.at(body);
    if json.get().starts_with('"') {
        let text = text(json);
        return text.map(|text| Block::new(text, at)).into_iter().collect();
    }
    let said: Vec<&RawValue> = serde_json::from_str(json.get()).unwrap_or_default();
    let mut blocks: Vec<Block<'a>> = Vec::with_capacity(said.len());
    // A signature that stands before what it signs, if that is a call; else it signs the text before it.
    let mut signature: Option<State<'a>> = None;
    for json in said {
        let Ok(said) = serde_json::from_str::<Said<'a>>(json.get()) else {
            continue;
        };
        if let Some(state) = said.signature_of_contents() {
            sign_text(&mut blocks, signature.replace(state));
            continue;
        }
        let Some(mut block) = said.into_block(body, json, referenced) else {
            continue;
        };
        match signature.take() {
            Some(state) if matches!(block.kind, BlockKind::Call { .. }) => block.states.push(state),
            state => sign_text(&mut blocks, state),
        }
        blocks.push(block);
    }
    sign_text(&mut blocks, signature);
    blocks
}

fn sign_text<'a>(blocks: &mut [Block<'a>], state: Option<State<'a>>) {
    let mut texts = blocks.iter_mut().rev();
    let signed = texts.find(|block| matches!(block.kind, BlockKind::Text(_)));
    if let Some((signed, state)) = signed.zip(state) {
        signed.states.push(state);
    }
}

/// Returns whether a block is the result of a call.
pub(super) fn is_result(block: &Block<'_>) -> bool {
    matches!(block.kind, BlockKind::Result { .. })
}

/// Returns whether a block says who sends the request.
pub(super) fn is_attribution(block: &Block<'_>) -> bool {
    matches!(&block.kind, BlockKind::Text(text) if text.starts_with(ATTRIBUTION))
}

impl<'a> Said<'a> {
    /// Returns the signature of a call or a text, if the block is one that a contents' host has made.
    fn signature_of_contents(&self) -> Option<State<'a>> {
        let data = self
            .data
            .as_ref()
            .filter(|_| &*self.kind == "redacted_thinking")?;
        (sealed_dialect(data) == Some(Dialect::Contents)).then(|| State {
            dialect: Some(Dialect::Contents),
            text: data.clone(),
            item: "",
        })
    }

    /// Returns the block; `None`: other dialects have no words for it.
    fn into_block(
        self,
        body: &'a str,
        json: &'a RawValue,
        referenced: &mut Vec<Cow<'a, str>>,
    ) -> Option<Block<'a>> {
        let at = offset_of(body, json.get());
        let control = self.cache_control.filter(|mark| mark.get() != "null");
        let marks = CacheMarks {
            control,
            breakpoint: control.map(|_| &**BREAKPOINT),
        };
        let kind = self.kind.clone();
        let (kind, state) = match &*kind {
            "text" => (text(self.text?)?, None),
            "image" => (media(MediaKind::Image, source(self.source?)?, None)?, None),
            "document" => (document(source(self.source?)?, self.title)?, None),
            "tool_use" => (self.call()?, None),
            "tool_result" => (self.result(body, referenced), None),
            "thinking" => self.thinking()?,
            "redacted_thinking" => (BlockKind::Redacted, Some(state(self.data?))),
            "tool_reference" => {
                let name = self.tool_name?;
                referenced.push(name.0.clone());
                (
                    owned(format!("The tool `{}` can be called now.", &*name)),
                    None,
                )
            }
            "search_result" => (self.found(body, referenced), None),
            _ => (native(json), None),
        };
        Some(Block {
            kind,
            at,
            marks,
            states: state.into_iter().collect(),
        })
    }
}

impl<'a> Said<'a> {
    fn call(self) -> Option<BlockKind<'a>> {
        let input = self.input.map_or("{}", RawValue::get);
        Some(BlockKind::Call {
            id: self.id?,
            name: self.name?,
            input: Text(input.into()),
        })
    }

    fn result(self, body: &'a str, referenced: &mut Vec<Cow<'a, str>>) -> BlockKind<'a> {
        let content = self.content.as_ref();
        let content = content.map(|content| read(body, content, referenced));
        BlockKind::Result {
            call: self.tool_use_id,
            content: content.unwrap_or_default(),
            is_error: self.is_error == Some(true),
        }
    }

    /// Thinking without a signature is nobody's.
    fn thinking(self) -> Option<(BlockKind<'a>, Option<State<'a>>)> {
        let signature = self.signature.filter(|signature| !signature.is_empty())?;
        let state = state(signature);
        let kind = match state.dialect {
            // The state holds all of it.
            Some(Dialect::Responses) => BlockKind::Redacted,
            _ => BlockKind::Reasoning(self.thinking?),
        };
        Some((kind, Some(state)))
    }

    /// The texts of a page, under its title.
    fn found(self, body: &'a str, referenced: &mut Vec<Cow<'a, str>>) -> BlockKind<'a> {
        let content = self.content.as_ref();
        let found = content.map(|content| read(body, content, referenced));
        let texts = found
            .iter()
            .flatten()
            .filter_map(|block| match &block.kind {
                BlockKind::Text(text) => Some(&**text),
                _ => None,
            });
        let said: Vec<&str> = self.title.as_deref().into_iter().chain(texts).collect();
        owned(said.join("\n"))
    }
}

fn owned<'a>(text: String) -> BlockKind<'a> {
    BlockKind::Text(Cow::<str>::Owned(text).into())
}

/// Returns state, which a host of this dialect has said bare, or one of any dialect with a seal.
fn state(text: Text<'_>) -> State<'_> {
    State {
        dialect: Some(sealed_dialect(&text).unwrap_or(Dialect::Messages)),
        text,
        item: "",
    }
}

fn source(json: &RawValue) -> Option<SaidSource<'_>> {
    serde_json::from_str(json.get()).ok()
}

fn native<'a>(json: &RawValue) -> BlockKind<'a> {
    BlockKind::Native(Native {
        dialect: Some(Dialect::Messages),
        seal: None,
        json: json.to_owned(),
    })
}

fn text<'a>(json: &'a RawValue) -> Option<BlockKind<'a>> {
    let text = BlockText::read(&mut Walker::over(json.get())).ok()?;
    Some(BlockKind::Text(text))
}

fn media<'a>(
    kind: MediaKind,
    source: SaidSource<'a>,
    name: Option<Text<'a>>,
) -> Option<BlockKind<'a>> {
    let source = match &*source.kind {
        "base64" => {
            let (media_type, data) = (source.media_type?, source.data?);
            let url = ["data:", &media_type, ";base64,", &data].concat();
            MediaSource::Url(Text(url.into()))
        }
        "file" => MediaSource::Id(source.file_id?),
        _ => MediaSource::Url(source.url?),
    };
    Some(BlockKind::Media(Media {
        kind,
        source,
        name,
        detail: None,
    }))
}

/// A document. One that is a text reaches other models as a text, under its title.
fn document<'a>(source: SaidSource<'a>, title: Option<Text<'a>>) -> Option<BlockKind<'a>> {
    if &*source.kind != "text" {
        return media(MediaKind::Document, source, title);
    }
    let data = source.data?;
    Some(BlockKind::Text(match title {
        Some(title) => Cow::<str>::Owned(format!("{}\n\n{}", &*title, &*data)).into(),
        None => data.into(),
    }))
}
