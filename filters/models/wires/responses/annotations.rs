//! Annotations: flat here, nested in the convention. Source: docs/facts/wire-formats.md 2.3.

use super::item::members;
use crate::json::{Error, Walker};
use crate::models::wires::citation::Citation;
use crate::models::wires::scan::text;

/// Returns the annotations of a part as the inside of a JSON array.
///
/// The places of an annotation count the characters of its part. All parts become one text, so they move by the `chars`
/// of the parts before. Other annotations than citations of pages are left out.
pub(super) fn write_annotations(list: Option<&str>, chars: u64) -> Result<String, Error> {
    let mut out = Vec::new();
    if let Some(list) = list {
        Walker::over(list).array(|walk, _| write_annotation(walk, chars, &mut out))?;
    }
    Ok(String::from_utf8(out).unwrap_or_default())
}

fn write_annotation(walk: &mut Walker<'_>, chars: u64, out: &mut Vec<u8>) -> Result<(), Error> {
    let (mut kind, mut url, mut title) = (None, None, None);
    let (mut start, mut end) = (0, 0);
    members(walk, |walk, key| {
        match key {
            "type" => kind = text(walk)?,
            "url" => url = text(walk)?,
            "title" => title = text(walk)?,
            "start_index" => start = walk.skip()?.parse().unwrap_or(0),
            "end_index" => end = walk.skip()?.parse().unwrap_or(0),
            _ => _ = walk.skip()?,
        }
        Ok(())
    })?;
    let is_citation = kind.is_some_and(|kind| kind.unescaped() == "url_citation");
    if let Some(url) = url.filter(|_| is_citation) {
        let citation = Citation {
            url,
            title,
            start: chars.saturating_add(start),
            end: chars.saturating_add(end),
        };
        citation.write(out);
    }
    Ok(())
}
