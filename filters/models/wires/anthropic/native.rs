//! Blocks of tools that the provider has run, in turns that go back to it. Changed, moved or foreign ones are refused upstream.

use std::collections::HashSet;

use serde::Deserialize;

use super::open_block::is_native;
use crate::models::chat::conversation::{Block, BlockKind, Conversation, Native};

/// What a block is, and the provider's call that it is or answers.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Head {
    #[serde(rename = "type")]
    kind: String,
    id: Option<String>,
    tool_use_id: Option<String>,
}

/// Returns whether the provider makes blocks of this type. Others are a client's own, and would pass all checks of what a
/// request may hold.
pub(super) fn is_known(native: &Native<'_>) -> bool {
    is_native(&Head::read(native).kind)
}

/// Leaves out the calls of the provider that have no result, which it would refuse, but for those of the last turn, with which
/// it goes on.
pub(super) fn leave_out_open(conversation: &mut Conversation<'_>) {
    let earlier = conversation.turns.split_last_mut();
    for turn in earlier.into_iter().flat_map(|(_, earlier)| earlier) {
        let heads = turn.blocks.iter().filter_map(head);
        let answered: HashSet<String> = heads.filter_map(|head| head.tool_use_id).collect();
        let is_open = |block: &Block<'_>| {
            let id = head(block).and_then(|head| head.id);
            id.is_some_and(|id| !answered.contains(&id))
        };
        turn.blocks.retain(|block| !is_open(block));
        turn.join_texts();
    }
}

/// Returns the head of a native block; `None` for other blocks.
fn head(block: &Block<'_>) -> Option<Head> {
    match &block.kind {
        BlockKind::Native(native) => Some(Head::read(native)),
        _ => None,
    }
}

impl Head {
    fn read(native: &Native<'_>) -> Self {
        serde_json::from_str(native.json.get()).unwrap_or_default()
    }
}
