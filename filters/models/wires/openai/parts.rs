//! Content in parts, as some providers of this convention answer.

use crate::json::{Error, Str, Type, Walker};
use crate::models::chat::piece::Piece;
use crate::models::reply::Sink;
use crate::models::wires::scan::text;

/// Content in parts: `text`, and `thinking` that holds texts itself. Source: docs/facts/wire-formats.md 5.3.
pub(super) fn content_parts(parts: &str, index: u32, sink: &mut dyn Sink) -> Result<(), Error> {
    Walker::over(parts).array(|walk, _| {
        if walk.peek()? != Type::Object {
            return walk.skip().map(|_| ());
        }
        let mut thinking = None;
        let mut content = None;
        walk.object(|walk, key| {
            match &*key {
                "text" => content = text(walk)?,
                "thinking" if walk.peek()? == Type::Array => thinking = Some(walk.skip()?),
                _ => _ = walk.skip()?,
            }
            Ok::<(), Error>(())
        })?;
        if let Some(thinking) = thinking {
            Walker::over(thinking).array(|walk, _| {
                let reasoning = part_text(walk)?.map(Piece::Reasoning);
                sink.pieces(index, reasoning.as_slice());
                Ok::<(), Error>(())
            })?;
        }
        if let Some(content) = content {
            sink.pieces(index, &[Piece::Text(content)]);
        }
        Ok(())
    })
}

fn part_text<'a>(walk: &mut Walker<'a>) -> Result<Option<Str<'a>>, Error> {
    let mut found = None;
    if walk.peek()? != Type::Object {
        walk.skip()?;
        return Ok(None);
    }
    walk.object(|walk, key| {
        if key == "text" {
            found = text(walk)?;
            Ok(())
        } else {
            walk.skip().map(|_| ())
        }
    })?;
    Ok(found)
}
