//! Marks what the provider shall cache, where a request says nothing of it.
//! Source: docs/facts/wire-formats.md 5.2, docs/facts/model-gateway.md 7.3.
//!
//! A write costs more than plain input, so that alone is marked which is likely to be read again: long tools and instructions,
//! and a conversation that has gone on. A mark covers all before it.

use super::blocks::{CachePoint, ContentBlock, WireTurn};
use super::tools::{ToolConfig, WireTool};

/// Bytes of text that are a token, as in estimates.
const TOKEN_BYTES: u64 = 4;
/// Tokens of an image that is not larger than it should be. Our choice.
const IMAGE_TOKENS: u64 = 1000;
/// Turns of a conversation that has gone on.
const MIN_TURNS: usize = 3;

/// A prompt, in the order in which the provider reads it.
pub(super) struct Prompt<'p, 'a> {
    pub(super) tools: Option<&'p mut ToolConfig<'a>>,
    pub(super) system: &'p mut Vec<ContentBlock<'a>>,
    pub(super) turns: &'p mut [WireTurn<'a>],
}

impl Prompt<'_, '_> {
    /// Marks at most four places: the tools, the instructions, the last turn of the user and the one before it. Of less than
    /// `min_tokens` the provider caches nothing.
    pub(super) fn mark(self, min_tokens: u64) {
        let min_bytes = min_tokens.saturating_mul(TOKEN_BYTES);
        let mut bytes = 0;
        if let Some(config) = self.tools {
            bytes += config.tools.iter().map(tool_bytes).sum::<u64>();
            if bytes >= min_bytes {
                config.tools.push(WireTool::CachePoint(CachePoint::USUAL));
            }
        }
        bytes += blocks_bytes(self.system);
        if bytes >= min_bytes && !self.system.is_empty() {
            self.system
                .push(ContentBlock::CachePoint(CachePoint::USUAL));
        }
        let is_users = |turn: &WireTurn<'_>| turn.role == "user";
        let last = self.turns.iter().rposition(is_users);
        let Some(last) = last.filter(|_| self.turns.len() >= MIN_TURNS) else {
            return;
        };
        let turns = self.turns.get_mut(..=last).unwrap_or_default();
        let said = turns.iter().map(|turn| blocks_bytes(&turn.content));
        bytes += said.sum::<u64>();
        if bytes < min_bytes {
            return;
        }
        let users = turns.iter_mut().rev().filter(|turn| is_users(turn));
        for turn in users.take(2) {
            turn.content
                .push(ContentBlock::CachePoint(CachePoint::USUAL));
        }
    }
}

fn tool_bytes(tool: &WireTool<'_>) -> u64 {
    match tool {
        WireTool::ToolSpec(spec) => {
            let description = spec.description.map_or(0, str::len);
            (spec.name.len() + description + spec.input_schema.json.get().len()) as u64
        }
        WireTool::CachePoint(_) => 0,
    }
}

fn blocks_bytes(blocks: &[ContentBlock<'_>]) -> u64 {
    blocks.iter().map(block_bytes).sum()
}

fn block_bytes(block: &ContentBlock<'_>) -> u64 {
    match block {
        ContentBlock::Text(text) => text.len() as u64,
        ContentBlock::OwnText(text) => text.len() as u64,
        ContentBlock::Image(_) => IMAGE_TOKENS * TOKEN_BYTES,
        ContentBlock::Document(document) => document.source.bytes.len() as u64,
        ContentBlock::ToolUse(call) => call.input.get().len() as u64,
        ContentBlock::ToolResult(result) => blocks_bytes(&result.content),
        ContentBlock::ReasoningContent(_) | ContentBlock::CachePoint(_) => 0,
    }
}
