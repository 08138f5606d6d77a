//! Reasoning that only this provider can read: how it goes out to the client, and how it comes back.
//!
//! The carrier is an item of `reasoning_details` with the format [`FORMAT`] and its origin. It holds all members
//! of the item that the provider wants back, as they came. Source: docs/facts/model-gateway.md 10.6.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::input::{InputItem, Summary};
use super::item::Item;
use crate::json::{Object, Str};
use crate::models::chat::tree::ChatMessage;
use crate::models::wires::opaque;

/// What marks our carriers.
const FORMAT: &str = "openai-responses-v1";

/// Returns the carrier of a reasoning item, as JSON; `None` where the provider gave nothing to send back.
///
/// `place` is the number of messages and calls before it in its turn.
pub(super) fn write_details(item: &Item<'_>, origin: &str, place: u64) -> Option<String> {
    let data = item.encrypted_content.filter(|data| !data.is_empty())?;
    let mut out = Vec::with_capacity(data.len() + 256);
    let mut details = Object::open(&mut out);
    details.text("type", "reasoning.encrypted");
    details.text("format", FORMAT);
    details.text("model", origin);
    details.number("index", place);
    if let Some(id) = item.id.filter(|id| !id.is_empty()) {
        details.value("id", |out| id.write(out));
    }
    details.raw("summary", item.summary.unwrap_or("[]"));
    details.value("data", |out| Str::write(data, out));
    details.close();
    String::from_utf8(out).ok()
}

/// Reasoning of an earlier turn.
#[derive(Debug)]
pub(super) struct EarlierReasoning<'a> {
    /// The number of messages and calls before it.
    pub(super) place: u64,
    pub(super) item: InputItem<'a>,
}

/// Returns the reasoning of a turn that this provider has made, in the order of its places.
pub(super) fn earlier_reasoning<'a>(
    message: &'a ChatMessage<'a>,
    origin: Option<&str>,
) -> Vec<EarlierReasoning<'a>> {
    #[derive(Deserialize)]
    struct Carrier<'c> {
        #[serde(default)]
        index: u64,
        #[serde(borrow, default)]
        id: Option<&'c RawValue>,
        #[serde(borrow, default)]
        summary: Option<&'c RawValue>,
        #[serde(borrow)]
        data: &'c RawValue,
    }
    let mut found: Vec<EarlierReasoning<'a>> = Vec::new();
    for raw in opaque::made_by(message, FORMAT, origin) {
        let Ok(carrier) = serde_json::from_str::<Carrier<'a>>(raw.get()) else {
            continue;
        };
        found.push(EarlierReasoning {
            place: carrier.index,
            item: InputItem::Reasoning {
                id: carrier.id,
                summary: carrier.summary.map_or(Summary::None([]), Summary::Given),
                encrypted_content: carrier.data,
            },
        });
    }
    found.sort_by_key(|reasoning| reasoning.place);
    found
}
