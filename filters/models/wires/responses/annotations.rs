//! Annotations: flat here, nested in the convention. Source: docs/facts/wire-formats.md 2.3.

use super::item::members;
use crate::json::{Error, Object, Walker, write_number};

/// What the convention knows.
const KIND: &str = "\"url_citation\"";

/// Returns the annotations of a part as the inside of a JSON array.
///
/// The places of an annotation count the characters of its part. All parts become one text, so they move by the `chars`
/// of the parts before.
pub(super) fn write_annotations(list: Option<&str>, chars: u64) -> Result<String, Error> {
    let mut out = Vec::new();
    if let Some(list) = list {
        Walker::over(list).array(|walk, _| write_annotation(walk, chars, &mut out))?;
    }
    Ok(String::from_utf8(out).unwrap_or_default())
}

fn write_annotation(walk: &mut Walker<'_>, chars: u64, out: &mut Vec<u8>) -> Result<(), Error> {
    let (mut kind, mut citation) = (None, Vec::new());
    members(walk, |walk, key| {
        let value = walk.skip()?;
        match key {
            "type" => kind = Some(value),
            "url" | "title" | "start_index" | "end_index" => citation.push((key.to_owned(), value)),
            _ => {}
        }
        Ok(())
    })?;
    if kind != Some(KIND) {
        return Ok(());
    }
    if !out.is_empty() {
        out.push(b',');
    }
    let mut annotation = Object::open(out);
    annotation.raw("type", KIND);
    annotation.object("url_citation", |written| {
        for (key, value) in &citation {
            match value
                .parse::<u64>()
                .ok()
                .filter(|_| key.ends_with("_index"))
            {
                Some(place) => written.value(key, |out| {
                    write_number(place.saturating_add(chars), out);
                }),
                None => written.raw(key, value),
            }
        }
    });
    annotation.close();
    Ok(())
}
