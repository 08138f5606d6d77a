//! Content and its parts. Source: docs/model-gateway.md 2.3.

use serde::Deserialize;

use super::carried::beside;
use super::{each, members, offset, text, value};
use crate::json::{Error, Type, Walker};
use crate::models::chat::conversation::{Block, BlockKind, Media, MediaKind, MediaSource};
use crate::models::chat::text::{BlockText, Text};

/// Reads content: a text, or parts.
pub(super) fn content<'a>(walk: &mut Walker<'a>) -> Result<Vec<Block<'a>>, Error> {
    let at = offset(walk)?;
    if walk.peek()? == Type::String {
        let said = BlockKind::Text(BlockText::read(walk)?);
        // A vector that grows has room for four.
        return Ok(vec![Block::new(said, at)]);
    }
    let mut blocks = Vec::new();
    each(walk, |walk| {
        blocks.extend(part(walk)?);
        Ok(())
    })?;
    Ok(blocks)
}

/// What a part holds, by its type.
const SAID: [&str; 5] = ["text", "refusal", "image_url", "input_audio", "file"];

/// Reads a part: of its members the one counts that its type names.
fn part<'a>(walk: &mut Walker<'a>) -> Result<Option<Block<'a>>, Error> {
    let mut block = Block::new(BlockKind::Redacted, offset(walk)?);
    let (mut part_type, mut said) = (None, ["null"; 5]);
    members(walk, |walk, key| {
        match key {
            "type" => part_type = text(walk)?,
            "extra_content" => block.states = beside(walk)?,
            "cache_control" => block.marks.control = value(walk)?,
            "prompt_cache_breakpoint" => block.marks.breakpoint = value(walk)?,
            _ => {
                let json = walk.skip()?;
                let place = SAID.iter().zip(&mut said).find(|(name, _)| **name == key);
                place.into_iter().for_each(|(_, said)| *said = json);
            }
        }
        Ok(())
    })?;
    let part_type = part_type.unwrap_or_default();
    let mut said = SAID.iter().zip(said);
    let said = said.find(|(name, _)| **name == &*part_type);
    let json = said.map_or("null", |(_, json)| json);
    let kind = match &*part_type {
        "text" if json.starts_with('"') => {
            Some(BlockKind::Text(BlockText::read(&mut Walker::over(json))?))
        }
        "text" => None,
        "refusal" => {
            let text = text(&mut Walker::over(json))?;
            text.map(|text| BlockKind::Refusal(text.into()))
        }
        "image_url" => image(json, MediaKind::Image),
        "input_audio" => audio(json),
        _ => file(json),
    };
    if !matches!(kind, Some(BlockKind::Text(_))) {
        // Of parts only texts are signed.
        block.states.clear();
    }
    Ok(kind.map(|kind| Block { kind, ..block }))
}

/// Reads `image_url`; `None`: it has no address.
pub(super) fn image(json: &str, kind: MediaKind) -> Option<BlockKind<'_>> {
    #[derive(Deserialize)]
    struct ImageUrl<'a> {
        #[serde(borrow)]
        url: Text<'a>,
        detail: Option<Text<'a>>,
    }
    let image: ImageUrl<'_> = serde_json::from_str(json).ok()?;
    Some(BlockKind::Media(Media {
        kind,
        source: MediaSource::Url(image.url),
        name: None,
        detail: image.detail,
    }))
}

/// Reads `input_audio`.
fn audio(json: &str) -> Option<BlockKind<'_>> {
    #[derive(Deserialize)]
    struct InputAudio<'a> {
        #[serde(borrow)]
        data: Text<'a>,
        format: Text<'a>,
    }
    let InputAudio { data, format } = serde_json::from_str(json).ok()?;
    Some(BlockKind::Media(Media {
        kind: MediaKind::Audio,
        source: MediaSource::Data { data, format },
        name: None,
        detail: None,
    }))
}

/// Reads `file`. A file in the body counts more than the id of one.
fn file(json: &str) -> Option<BlockKind<'_>> {
    #[derive(Deserialize)]
    struct File<'a> {
        #[serde(borrow)]
        filename: Option<Text<'a>>,
        file_data: Option<Text<'a>>,
        file_id: Option<Text<'a>>,
    }
    let file: File<'_> = serde_json::from_str(json).ok()?;
    let data = file.file_data.filter(|data| !data.is_empty());
    let source = match (data, file.file_id) {
        (None, Some(id)) => MediaSource::Id(id),
        (data, _) => MediaSource::Url(data.unwrap_or_default()),
    };
    Some(BlockKind::Media(Media {
        kind: MediaKind::Document,
        source,
        name: file.filename.filter(|name| !name.is_empty()),
        detail: None,
    }))
}
