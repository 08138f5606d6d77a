//! Reasoning that only this provider can read: how it goes out to the client, and how it comes back.
//!
//! Its state is the encrypted content; the id and the summary go beside it, because the provider wants them back as they came.
//! Source: docs/facts/model-gateway.md 10.6.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::input::{InputItem, Summary};
use super::item::Item;
use crate::json::Str;
use crate::models::chat::conversation::Block;
use crate::models::chat::piece::{StateOf, StatePiece};
use crate::models::dialects::Dialect;

/// The state of a reasoning item that waits for the item that follows it. Texts are contents of JSON strings.
#[derive(Debug)]
pub(super) struct UnsaidState {
    id: Option<Box<str>>,
    summary: Box<str>,
    data: Box<str>,
    /// The number of messages and calls before it in its turn.
    place: u64,
}

impl UnsaidState {
    /// The state of an item; `None`: the provider gave nothing to send back.
    pub(super) fn new(item: &Item<'_>, place: u64) -> Option<Self> {
        let data = item.encrypted_content.filter(|data| !data.is_empty())?;
        let id = item.id.filter(|id| !id.is_empty());
        Some(Self {
            id: id.map(|id| id.contents().into()),
            summary: item.summary.unwrap_or("[]").into(),
            data: data.contents().into(),
            place,
        })
    }

    pub(super) fn piece(&self) -> StatePiece<'_> {
        StatePiece {
            of: StateOf::Item {
                id: self.id.as_deref().map(Str::Raw),
                summary: &self.summary,
            },
            dialect: Dialect::Responses,
            number: self.place,
            data: Str::Raw(&self.data),
        }
    }
}

/// Returns the item of a block of reasoning that this provider has made; `None`: it is broken.
pub(super) fn earlier_reasoning<'a>(block: &'a Block<'_>) -> Option<InputItem<'a>> {
    #[derive(Deserialize)]
    struct ReasoningItem<'i> {
        #[serde(borrow, default)]
        id: Option<&'i RawValue>,
        #[serde(borrow, default)]
        summary: Option<&'i RawValue>,
        #[serde(borrow, default)]
        encrypted_content: Option<Cow<'i, str>>,
    }
    let state = block.states.first()?;
    // Where the client's dialect has no item, the state holds all of it.
    let json = match state.item {
        "" => &state.text,
        item => item,
    };
    let item: ReasoningItem<'a> = serde_json::from_str(json).ok()?;
    let summary = item.summary.map_or(Summary::None([]), Summary::Given);
    Some(InputItem::Reasoning {
        id: item.id,
        summary,
        encrypted_content: item.encrypted_content.unwrap_or(Cow::Borrowed(&state.text)),
    })
}
