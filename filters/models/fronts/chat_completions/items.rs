//! What pieces add to the lists of a message, and what stands beside its calls and its other members.
//!
//! State that only its maker can read goes through the client sealed, and blocks of tools that a provider ran with a seal of
//! their maker. Source: docs/decisions.md 4.

use std::borrow::Cow;

use crate::json::{Object, Str, Walker};
use crate::models::chat::piece::{Citation, Image, Piece, Search, StateOf, StatePiece};
use crate::models::dialects::chat_state::{seal_items, seal_vendors, seal_whole};
use crate::models::dialects::state::Maker;
use crate::models::search_loop::pages::Page;

use super::turn::Turn;

/// The lists of a message, in the order in which they are written.
pub(super) const LISTS: [&str; 4] = [
    "reasoning_details",
    "vendor_native_blocks",
    "annotations",
    "images",
];
const DETAILS: usize = 0;
const BLOCKS: usize = 1;
const ANNOTATIONS: usize = 2;
const IMAGES: usize = 3;

/// Returns what a piece adds to which list: the inside of a JSON array. `turn` has taken the piece; `maker` made it.
pub(super) fn list_items<'a>(
    piece: &Piece<'a>,
    turn: &Turn,
    maker: Maker<'_>,
) -> Option<(usize, Cow<'a, str>)> {
    let mut out = Vec::new();
    let (list, said) = match piece {
        Piece::Details(items) => (DETAILS, Some(*items)),
        Piece::State(state) => {
            write_state(state, turn, maker, &mut out);
            (DETAILS, None)
        }
        Piece::Native {
            dialect,
            number,
            json,
        } => {
            let more = |object: &mut Object<'_>| {
                object.text("format", dialect.state_format());
                object.number("block_index", *number);
                object.number("text_offset", turn.chars);
            };
            let (mut walk, maker) = (Walker::over(json), (maker.any_model(), *dialect));
            if seal_whole(&mut walk, maker, more, &mut out).is_err() {
                // A provider's block is an object; anything else is left out.
                out.clear();
            }
            (BLOCKS, None)
        }
        Piece::Citation(citation) => (ANNOTATIONS, write_citation(citation, &mut out)),
        Piece::Search(search) => {
            write_found(search, &mut out);
            (ANNOTATIONS, None)
        }
        Piece::Image(image) => (IMAGES, write_image(image, &mut out)),
        _ => return None,
    };
    let items = match said {
        Some(said) => Cow::Borrowed(said),
        None => String::from_utf8(out).unwrap_or_default().into(),
    };
    (!items.is_empty()).then_some((list, items))
}

/// Returns the member of the message that a piece is, beside the texts, the lists and the calls.
pub(super) fn other_member<'a>(
    piece: &Piece<'a>,
    maker: Maker<'_>,
) -> Option<(&'a str, Cow<'a, str>)> {
    match piece {
        Piece::Other { key, json } => Some((key, Cow::Borrowed(json))),
        Piece::Safeguards(json) => Some(("vendor_safeguard_results", Cow::Borrowed(json))),
        Piece::State(state) if state.of == StateOf::Extra(None) => {
            let extra = seal_vendors(&state.data.unescaped(), maker)?;
            Some(("extra_content", extra.into()))
        }
        _ => None,
    }
}

/// Returns the key of the call whose state a piece is, and the `extra_content` of this call.
pub(super) fn extra_of_call(piece: &Piece<'_>, maker: Maker<'_>) -> Option<(u64, Option<String>)> {
    let Piece::State(state) = piece else {
        return None;
    };
    match state.of {
        StateOf::Extra(Some(key)) => Some((key, seal_vendors(&state.data.unescaped(), maker))),
        StateOf::Call(key) => {
            let mut out = Vec::new();
            let mut extra = Object::open(&mut out);
            extra.object("google", |signed| {
                signed.text(
                    "thought_signature",
                    &maker.seal(state.dialect, &state.data.unescaped()),
                );
            });
            extra.close();
            Some((key, String::from_utf8(out).ok()))
        }
        _ => None,
    }
}

/// Writes an image as an item. Returns the items instead where a provider of the convention said them.
pub(super) fn write_image<'a>(image: &Image<'a>, out: &mut Vec<u8>) -> Option<&'a str> {
    let (media_type, data) = match image {
        Image::Said { items, .. } => return Some(items),
        Image::Data { media_type, data } => (media_type, data.unescaped()),
    };
    out.reserve(data.len() + 80);
    out.extend_from_slice(br#"{"type":"image_url","image_url":{"url":"data:"#);
    Str::Plain(media_type).write_contents(out);
    out.extend_from_slice(b";base64,");
    Str::Plain(&data).write_contents(out);
    out.extend_from_slice(br#""}}"#);
    None
}

/// Writes the state of the reasoning, of the text or of an image as an item of `reasoning_details`.
fn write_state(state: &StatePiece<'_>, turn: &Turn, maker: Maker<'_>, out: &mut Vec<u8>) {
    match state.of {
        StateOf::Call(_) | StateOf::Extra(_) => return,
        StateOf::Details => {
            out.extend_from_slice(seal_items(&state.data.unescaped(), maker).as_bytes());
            return;
        }
        _ => {}
    }
    let is_shown = matches!(state.of, StateOf::Reasoning(_));
    let mut item = Object::open(out);
    item.text(
        "type",
        match is_shown {
            true => "reasoning.text",
            false => "reasoning.encrypted",
        },
    );
    item.text("format", state.dialect.state_format());
    match state.of {
        StateOf::Reasoning(_) | StateOf::Redacted => {
            item.number("index", state.number);
            item.number("text_offset", turn.chars);
        }
        StateOf::Item { id, summary } => {
            item.number("index", state.number);
            if let Some(id) = id {
                item.value("id", |out| id.write(out));
            }
            item.raw("summary", summary);
        }
        _ => {}
    }
    if let StateOf::Reasoning(text) = state.of {
        item.value("text", |out| text.write(out));
    }
    let key = if is_shown { "signature" } else { "data" };
    item.text(key, &maker.seal(state.dialect, &state.data.unescaped()));
    if state.of == StateOf::Image {
        item.number("image", turn.images.saturating_sub(1));
    }
    item.close();
}

/// Writes the pages that a search of the gateway's has found. The whole answer rests on them.
fn write_found(search: &Search<'_>, out: &mut Vec<u8>) {
    let pages = search.found.unwrap_or("[]");
    let pages: Vec<Page> = serde_json::from_str(pages).unwrap_or_default();
    for (at, page) in pages.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let citation = Citation::Page {
            url: Str::Plain(&page.url),
            title: Some(Str::Plain(&page.title)),
            start: 0,
            end: 0,
        };
        write_citation(&citation, out);
    }
}

/// Shape: `{"type": "url_citation", "url_citation": {"url", "title", "start_index", "end_index"}}`.
fn write_citation<'a>(citation: &Citation<'a>, out: &mut Vec<u8>) -> Option<&'a str> {
    let (url, title, start, end) = match *citation {
        Citation::Said(items) => return Some(items),
        Citation::Page {
            url,
            title,
            start,
            end,
        } => (url, title, start, end),
    };
    let mut annotation = Object::open(out);
    annotation.text("type", "url_citation");
    annotation.object("url_citation", |page| {
        page.value("url", |out| url.write(out));
        page.value("title", |out| title.unwrap_or(Str::Plain("")).write(out));
        page.number("start_index", start);
        page.number("end_index", end);
    });
    annotation.close();
    None
}
