//! What a provider needs back of an earlier turn beside texts and calls: its thinking, and the blocks of tools that it ran.
//!
//! Each goes back as it was, where it stood in the text: changed, moved or foreign ones are refused upstream.

use std::borrow::Cow;
use std::collections::HashSet;

use serde::Deserialize;

use super::FORMAT;
use super::blocks::ContentBlock;
use super::messages::plain;
use super::open_block::is_native;
use crate::models::chat::tree::ChatMessage;
use crate::models::wires::opaque::{self, NativeBlock};

/// A block of an earlier turn.
#[derive(Debug)]
pub(super) struct EarlierBlock<'a> {
    /// The characters of text before it.
    offset: u64,
    /// Its place among the blocks.
    index: u64,
    block: ContentBlock<'a>,
}

/// Returns what goes back of a turn, in its order. A call of the provider without its result only goes back where the turn
/// `is_last`: then the provider goes on with it.
pub(super) fn earlier_state<'a>(
    message: &'a ChatMessage<'a>,
    origin: Option<&str>,
    is_last: bool,
) -> Vec<EarlierBlock<'a>> {
    let mut state = thinking(message, origin);
    let native = NativeBlock::of_turn(message, FORMAT, origin);
    // A block of another type is a client's own: it would pass all checks of what a request may hold.
    let native: Vec<(Head, NativeBlock)> = native
        .into_iter()
        .map(|earlier| (Head::read(&earlier), earlier))
        .filter(|(head, _)| is_native(&head.kind))
        .collect();
    let answered: HashSet<String> = native
        .iter()
        .filter_map(|(head, _)| head.tool_use_id.clone())
        .collect();
    for (head, earlier) in native {
        let is_open = head.id.is_some_and(|id| !answered.contains(&id));
        if is_open && !is_last {
            continue;
        }
        state.push(EarlierBlock {
            offset: earlier.offset,
            index: earlier.index,
            block: ContentBlock::Native(earlier.block),
        });
    }
    state.sort_by_key(|earlier| (earlier.offset, earlier.index));
    state
}

/// Puts the blocks between the pieces of the text. Where the turn has no single text, those that stood behind its beginning
/// stand behind its end.
pub(super) fn weave<'a>(
    state: Vec<EarlierBlock<'a>>,
    text: Option<&'a str>,
    content: Vec<ContentBlock<'a>>,
) -> Vec<ContentBlock<'a>> {
    let mut blocks = Vec::with_capacity(state.len() + content.len() + 1);
    let Some(mut text) = text else {
        let (before, behind): (Vec<_>, Vec<_>) =
            state.into_iter().partition(|earlier| earlier.offset == 0);
        blocks.extend(before.into_iter().map(|earlier| earlier.block));
        blocks.extend(content);
        blocks.extend(behind.into_iter().map(|earlier| earlier.block));
        return blocks;
    };
    let mut said = 0;
    for earlier in state {
        let chars = usize::try_from(earlier.offset.saturating_sub(said)).unwrap_or(usize::MAX);
        let at = text.char_indices().nth(chars);
        let (before, rest) = text.split_at(at.map_or(text.len(), |(at, _)| at));
        blocks.extend(plain(before));
        blocks.push(earlier.block);
        said = earlier.offset;
        text = rest;
    }
    blocks.extend(plain(text));
    blocks
}

/// Thinking that this model signed.
fn thinking<'a>(message: &'a ChatMessage<'a>, origin: Option<&str>) -> Vec<EarlierBlock<'a>> {
    #[derive(Deserialize)]
    struct Carrier<'c> {
        #[serde(default)]
        index: u64,
        #[serde(default)]
        text_offset: u64,
        #[serde(borrow, default)]
        text: Cow<'c, str>,
        #[serde(borrow, default)]
        signature: Cow<'c, str>,
        #[serde(borrow, default)]
        data: Cow<'c, str>,
    }
    let mut state = Vec::new();
    for raw in opaque::made_by(message, FORMAT, origin) {
        let Ok(carrier) = serde_json::from_str::<Carrier<'a>>(raw.get()) else {
            continue;
        };
        let block = if !carrier.signature.is_empty() {
            ContentBlock::Thinking {
                thinking: carrier.text,
                signature: carrier.signature,
            }
        } else if !carrier.data.is_empty() {
            ContentBlock::RedactedThinking { data: carrier.data }
        } else {
            continue;
        };
        state.push(EarlierBlock {
            offset: carrier.text_offset,
            index: carrier.index,
            block,
        });
    }
    state
}

/// What a block is, and the provider's call that it is or answers.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    #[serde(rename = "type")]
    kind: String,
    id: Option<String>,
    tool_use_id: Option<String>,
}

impl Head {
    fn read(earlier: &NativeBlock) -> Self {
        serde_json::from_str(earlier.block.get()).unwrap_or_default()
    }
}
