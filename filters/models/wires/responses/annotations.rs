//! Annotations. Source: docs/facts/wire-formats.md 2.3.

use super::item::members;
use crate::json::{Error, Walker};
use crate::models::chat::piece::{Citation, Piece};
use crate::models::wires::scan::text;

/// Returns the citations of a part.
///
/// The places of an annotation count the characters of its part. All parts become one text, so they move by the `chars`
/// of the parts before. Other annotations than citations of pages are left out.
pub(super) fn citations(list: Option<&str>, chars: u64) -> Result<Vec<Piece<'_>>, Error> {
    let mut citations = Vec::new();
    if let Some(list) = list {
        Walker::over(list).array(|walk, _| {
            citations.extend(citation(walk, chars)?);
            Ok::<(), Error>(())
        })?;
    }
    Ok(citations)
}

fn citation<'a>(walk: &mut Walker<'a>, chars: u64) -> Result<Option<Piece<'a>>, Error> {
    let (mut kind, mut url, mut title) = (None, None, None);
    let (mut start, mut end) = (0_u64, 0_u64);
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
    let page = |url| Citation::Page {
        url,
        title,
        start: chars.saturating_add(start),
        end: chars.saturating_add(end),
    };
    Ok(url.filter(|_| is_citation).map(page).map(Piece::Citation))
}
