//! Marks what the provider shall cache, where a request says nothing of it.
//! Source: docs/facts/wire-formats.md 3.3, docs/facts/model-gateway.md 7.3.
//!
//! A write costs more than plain input, so that alone is marked which is likely to be read again: long tools and instructions,
//! which stand before every conversation, and a conversation that has gone on. A mark covers all before it, so one more mark
//! writes nothing twice. State that must return as it was is never marked.

use serde_json::value::RawValue;

use super::blocks::{BlockSource, ContentBlock, Turn};
use super::tools::WireTool;

/// Bytes of text that are a token, as in estimates.
const TOKEN_BYTES: u64 = 4;
/// Tokens of an image that is not larger than it should be. Our choice.
const IMAGE_TOKENS: u64 = 1000;
/// Turns of a conversation that has gone on.
const MIN_TURNS: usize = 3;

/// A prompt, in the order in which the provider reads it.
pub(super) struct Prompt<'p, 'a> {
    pub(super) tools: &'p mut [WireTool<'a>],
    pub(super) system: &'p mut [ContentBlock<'a>],
    pub(super) turns: &'p mut [Turn<'a>],
}

impl Prompt<'_, '_> {
    /// Marks at most four places: the tools, the instructions, the last turn of the user and the one before it. Of less than
    /// `min_tokens` the provider caches nothing.
    pub(super) fn mark(self, min_tokens: u64) {
        let min_bytes = min_tokens.saturating_mul(TOKEN_BYTES);
        if self.has_own_marks() {
            return;
        }
        let mut bytes: u64 = self.tools.iter().map(tool_bytes).sum();
        if bytes >= min_bytes {
            mark_tool(self.tools);
        }
        bytes += blocks_bytes(self.system);
        if bytes >= min_bytes {
            mark_last(self.system);
        }
        let last = self.turns.iter().rposition(|turn| turn.role == "user");
        let Some(last) = last.filter(|_| self.turns.len() >= MIN_TURNS) else {
            return;
        };
        let turns = self.turns.get_mut(..=last).unwrap_or_default();
        bytes += turns
            .iter()
            .map(|turn| blocks_bytes(&turn.content))
            .sum::<u64>();
        if bytes < min_bytes {
            return;
        }
        if let Some((last, earlier)) = turns.split_last_mut() {
            mark_last(&mut last.content);
            let mut earlier = earlier.iter_mut().rev();
            earlier.any(|turn| mark_last(&mut turn.content));
        }
    }

    /// Whether a client has put marks into blocks that the provider made.
    fn has_own_marks(&self) -> bool {
        let mut blocks = self.turns.iter().flat_map(|turn| &turn.content);
        blocks.any(|block| {
            matches!(block, ContentBlock::Native(raw) if raw.get().contains("cache_control"))
        })
    }
}

/// Marks the last function that the model sees at once.
fn mark_tool(tools: &mut [WireTool<'_>]) {
    let own = tools.iter_mut().rev().find_map(|tool| match tool {
        WireTool::Function {
            cache_control,
            defer_loading: false,
            ..
        } => Some(cache_control),
        _ => None,
    });
    if let Some(cache_control) = own {
        *cache_control = ephemeral();
    }
}

/// Marks the last block that can be marked; returns whether there is one.
fn mark_last(blocks: &mut [ContentBlock<'_>]) -> bool {
    let own = blocks.iter_mut().rev().find_map(|block| match block {
        ContentBlock::Text { cache_control, .. }
        | ContentBlock::Image { cache_control, .. }
        | ContentBlock::Document { cache_control, .. }
        | ContentBlock::ToolUse { cache_control, .. }
        | ContentBlock::ToolResult { cache_control, .. } => Some(cache_control),
        ContentBlock::Thinking { .. }
        | ContentBlock::RedactedThinking { .. }
        | ContentBlock::Native(_) => None,
    });
    own.map(|cache_control| *cache_control = ephemeral())
        .is_some()
}

/// A mark that holds for five minutes, and five more from each read on.
fn ephemeral() -> Option<&'static RawValue> {
    serde_json::from_str(r#"{"type":"ephemeral"}"#).ok()
}

fn tool_bytes(tool: &WireTool<'_>) -> u64 {
    match tool {
        WireTool::Function {
            name,
            description,
            input_schema,
            ..
        } => {
            let description = description.map_or(0, str::len);
            (name.len() + description + input_schema.get().len()) as u64
        }
        WireTool::ToolSearch { .. } | WireTool::WebSearch { .. } => 0,
    }
}

fn blocks_bytes(blocks: &[ContentBlock<'_>]) -> u64 {
    blocks.iter().map(block_bytes).sum()
}

fn block_bytes(block: &ContentBlock<'_>) -> u64 {
    match block {
        ContentBlock::Text { text, .. } => text.len() as u64,
        ContentBlock::Image { .. } => IMAGE_TOKENS * TOKEN_BYTES,
        ContentBlock::Document { source, .. } => match source {
            BlockSource::Base64 { data, .. } | BlockSource::Text { data, .. } => data.len() as u64,
            BlockSource::Url { .. } => 0,
        },
        ContentBlock::Thinking { thinking, .. } => thinking.len() as u64,
        ContentBlock::RedactedThinking { data } => data.len() as u64,
        ContentBlock::ToolUse { input, .. } => input.get().len() as u64,
        ContentBlock::ToolResult { content, .. } => blocks_bytes(content),
        ContentBlock::Native(raw) => raw.get().len() as u64,
    }
}
