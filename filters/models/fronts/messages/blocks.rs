//! Blocks of a checked body, in the words that all dialects have.

use std::borrow::Cow;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::json::{Error, Type, Walker, offset_of};
use crate::models::chat::conversation::{
    Block, BlockKind, CacheMarks, Media, MediaKind, MediaSource, Native, State,
};
use crate::models::chat::text::{BlockText, Text};
use crate::models::check::read::{boolean, expect, object_of_set};
use crate::models::check::reject::Reject;
use crate::models::dialects::Dialect;
use crate::models::dialects::state::sealed_dialect;
use crate::models::fronts::signed_blocks::SignedBlocks;

/// The beginning of the text by which Claude Code says who sends a request. Only the vendor reads it.
const ATTRIBUTION: &str = "x-anthropic-billing-header";

/// What marks the end of a prefix for providers that are told where alone.
static BREAKPOINT: LazyLock<Box<RawValue>> = LazyLock::new(|| {
    RawValue::from_string(r#"{"mode":"explicit"}"#.to_owned()).unwrap_or_default()
});

/// The members of a block of any type.
const MEMBERS: [&str; 15] = [
    "type",
    "text",
    "content",
    "id",
    "name",
    "input",
    "tool_use_id",
    "is_error",
    "cache_control",
    "thinking",
    "signature",
    "data",
    "source",
    "title",
    "tool_name",
];

/// A block of any type.
#[derive(Default)]
struct Said<'a> {
    kind: Text<'a>,
    text: Option<BlockText<'a>>,
    source: Option<&'a str>,
    content: Option<Content<'a>>,
    id: Option<Text<'a>>,
    name: Option<Text<'a>>,
    input: Option<&'a str>,
    tool_use_id: Option<Text<'a>>,
    is_error: bool,
    thinking: Option<Text<'a>>,
    signature: Option<Text<'a>>,
    data: Option<Text<'a>>,
    title: Option<Text<'a>>,
    tool_name: Option<Text<'a>>,
    cache_control: Option<&'a RawValue>,
}

/// The content of a block.
enum Content<'a> {
    Read(Vec<Block<'a>>),
    /// A walker that stands before content of a block whose type was not known there.
    Unread(Walker<'a>),
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

/// What blocks are read with.
pub(super) struct Reader<'a> {
    pub(super) body: &'a str,
    /// The names of tools that results refer to.
    pub(super) referenced: Vec<Cow<'a, str>>,
}

impl<'a> Reader<'a> {
    /// Reads the next value of the body: a string, or an array of blocks. Anything else holds none.
    pub(super) fn content(&mut self, walk: &mut Walker<'a>) -> Result<Vec<Block<'a>>, Error> {
        match walk.peek()? {
            Type::String => {
                let at = offset(walk);
                let text = BlockKind::Text(BlockText::read(walk)?);
                Ok(vec![Block::new(text, at)])
            }
            Type::Array => self.blocks(walk),
            _ => walk.skip().map(|_| Vec::new()),
        }
    }

    fn blocks(&mut self, walk: &mut Walker<'a>) -> Result<Vec<Block<'a>>, Error> {
        let mut blocks = SignedBlocks::default();
        walk.array(|walk, _| {
            walk.peek()?;
            let start = walk.at();
            let Some(said) = self.said(walk)? else {
                return Ok(());
            };
            if let Some(state) = said.signature_of_contents() {
                blocks.sign(state);
                return Ok(());
            }
            let json = self.body.get(start..walk.at()).unwrap_or_default();
            if let Some(block) = self.block(said, json)? {
                blocks.push(block);
            }
            Ok::<(), Error>(())
        })?;
        Ok(blocks.finish())
    }

    /// Reads the members of a block; `None`: one came twice or is of another type, so the block says nothing.
    fn said(&mut self, walk: &mut Walker<'a>) -> Result<Option<Said<'a>>, Error> {
        let (start, names) = (walk.clone(), self.referenced.len());
        let (mut said, mut has_type) = (Said::default(), false);
        let read = object_of_set(walk, &MEMBERS, |walk, key| {
            has_type |= key == "type";
            self.member(walk, key, &mut said)
        });
        if read.is_err() {
            *walk = start;
            walk.skip()?;
            self.referenced.truncate(names);
        }
        Ok((read.is_ok() && has_type).then_some(said))
    }

    fn member(
        &mut self,
        walk: &mut Walker<'a>,
        key: &str,
        said: &mut Said<'a>,
    ) -> Result<(), Reject> {
        match key {
            "type" => said.kind = text(walk)?,
            "text" if walk.peek()? == Type::String => said.text = Some(BlockText::read(walk)?),
            "content" => {
                said.content = Some(if said.holds_content() {
                    Content::Read(self.content(walk)?)
                } else {
                    let start = walk.clone();
                    walk.skip()?;
                    Content::Unread(start)
                });
            }
            "id" => said.id = Some(text(walk)?),
            "name" => said.name = Some(text(walk)?),
            "input" => said.input = Some(walk.skip()?),
            "tool_use_id" => said.tool_use_id = Some(text(walk)?),
            "is_error" => said.is_error = boolean(walk)?,
            "cache_control" => said.cache_control = serde_json::from_str(walk.skip()?).ok(),
            "thinking" => said.thinking = Some(text(walk)?),
            "signature" => said.signature = Some(text(walk)?),
            "data" => said.data = Some(text(walk)?),
            "source" => said.source = Some(walk.skip()?),
            "title" => said.title = Some(text(walk)?),
            "tool_name" => said.tool_name = Some(text(walk)?),
            _ => _ = walk.skip()?,
        }
        Ok(())
    }

    /// Returns a block, whose JSON this is; `None`: other dialects have no words for it.
    fn block(&mut self, said: Said<'a>, json: &'a str) -> Result<Option<Block<'a>>, Error> {
        let marks = CacheMarks {
            control: said.cache_control,
            breakpoint: said.cache_control.map(|_| &**BREAKPOINT),
        };
        let kind = match said.holds_content() {
            true => Some((self.holding(said)?, None)),
            false => self.plain(said, json),
        };
        Ok(kind.map(|(kind, state)| Block {
            kind,
            at: offset_of(self.body, json),
            marks,
            states: state.into_iter().collect(),
        }))
    }

    /// Returns the kind of a block that holds others: a result, or a page that was found, whose texts stand under its title.
    fn holding(&mut self, said: Said<'a>) -> Result<BlockKind<'a>, Error> {
        let content = match said.content {
            Some(Content::Read(blocks)) => blocks,
            Some(Content::Unread(mut walk)) => self.content(&mut walk)?,
            None => Vec::new(),
        };
        if &*said.kind == "tool_result" {
            return Ok(BlockKind::Result {
                call: said.tool_use_id,
                content,
                is_error: said.is_error,
            });
        }
        let texts = content.iter().filter_map(|block| match &block.kind {
            BlockKind::Text(text) => Some(&**text),
            _ => None,
        });
        let said: Vec<&str> = said.title.as_deref().into_iter().chain(texts).collect();
        Ok(owned(said.join("\n")))
    }

    /// Returns the kind of a block that holds no others, and its state.
    fn plain(&mut self, said: Said<'a>, json: &str) -> Option<(BlockKind<'a>, Option<State<'a>>)> {
        Some(match &*said.kind {
            "text" => (BlockKind::Text(said.text?), None),
            "image" => (media(MediaKind::Image, source(said.source?)?, None)?, None),
            "document" => (document(source(said.source?)?, said.title)?, None),
            "tool_use" => (said.call()?, None),
            "thinking" => said.thinking()?,
            "redacted_thinking" => (BlockKind::Redacted, Some(state(said.data?))),
            "tool_reference" => {
                let name = said.tool_name?;
                let text = owned(format!("The tool `{}` can be called now.", &*name));
                self.referenced.push(name.0);
                (text, None)
            }
            _ => (native(json)?, None),
        })
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

    /// Returns whether the block holds others, as far as its type has come.
    fn holds_content(&self) -> bool {
        matches!(&*self.kind, "tool_result" | "search_result")
    }

    fn call(self) -> Option<BlockKind<'a>> {
        Some(BlockKind::Call {
            id: self.id?,
            name: self.name?,
            input: Text(self.input.unwrap_or("{}").into()),
        })
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

fn source(json: &str) -> Option<SaidSource<'_>> {
    serde_json::from_str(json).ok()
}

fn native<'a>(json: &str) -> Option<BlockKind<'a>> {
    Some(BlockKind::Native(Native {
        dialect: Some(Dialect::Messages),
        seal: None,
        json: serde_json::from_str(json).ok()?,
    }))
}

/// Reads the next value, a string.
fn text<'a>(walk: &mut Walker<'a>) -> Result<Text<'a>, Reject> {
    expect(walk, Type::String, "a string")?;
    Ok(Text(walk.text()?))
}

/// Returns the offset in the body that a walker has come to.
pub(super) fn offset(walk: &Walker<'_>) -> u32 {
    u32::try_from(walk.at()).unwrap_or(u32::MAX)
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
