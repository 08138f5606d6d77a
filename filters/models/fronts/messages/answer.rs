//! What the gateway reads of a whole answer that it has written itself.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::models::chat::text::Text;

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    content: &'a RawValue,
}

/// A call of a tool of the client's, or of a function of the gateway's.
#[derive(Deserialize)]
pub(super) struct AnsweredCall<'a> {
    #[serde(borrow, rename = "type")]
    kind: Text<'a>,
    #[serde(borrow, default)]
    pub(super) id: Text<'a>,
    #[serde(borrow, default)]
    pub(super) name: Text<'a>,
    /// A JSON object.
    #[serde(borrow, default)]
    pub(super) input: Option<&'a RawValue>,
}

/// Returns the blocks of an answer: a JSON array.
pub(super) fn content(answer: &[u8]) -> Option<&str> {
    let answer: Answer<'_> = serde_json::from_slice(answer).ok()?;
    Some(answer.content.get())
}

/// Returns the calls of an answer, in their order.
pub(super) fn calls(answer: &[u8]) -> Vec<AnsweredCall<'_>> {
    let blocks = content(answer).map(serde_json::from_str::<Vec<&RawValue>>);
    let blocks = blocks.and_then(Result::ok).unwrap_or_default();
    let blocks = blocks.into_iter();
    let calls =
        blocks.filter_map(|block| serde_json::from_str::<AnsweredCall<'_>>(block.get()).ok());
    calls.filter(|call| &*call.kind == "tool_use").collect()
}
