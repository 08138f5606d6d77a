//! The fenced blocks of a text that is written in Markdown.

/// The most blocks of a text that are looked at.
const MAX_BLOCKS: usize = 8;
const FENCE: &str = "```";

/// A fenced block, without the name of its language.
#[derive(Debug)]
pub(super) struct Block<'t> {
    /// Up to the closing fence, or to the end of a text that was cut off.
    pub(super) inside: &'t str,
    /// Up to the end of the whole text.
    pub(super) rest: &'t str,
}

/// Returns the blocks of a text.
pub(super) fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut text = text;
    while blocks.len() < MAX_BLOCKS
        && let Some((_, behind)) = text.split_once(FENCE)
    {
        let named = behind.find(['\n', '{', '[', '"']).unwrap_or(0);
        let rest = behind.get(named..).unwrap_or_default();
        let rest = rest.trim_start();
        let end = closing_fence(rest).unwrap_or(rest.len());
        blocks.push(Block {
            inside: rest.get(..end).unwrap_or_default().trim_end(),
            rest,
        });
        text = rest.get(end + FENCE.len()..).unwrap_or_default();
    }
    blocks
}

/// Returns where a block ends: at the fence that begins a line, because strings may hold others; else at the next one.
fn closing_fence(text: &str) -> Option<usize> {
    let next = text.find(FENCE)?;
    let begins_line = |at: &usize| {
        let before = text.get(..*at).unwrap_or_default();
        before.trim_end_matches([' ', '\t']).ends_with('\n')
    };
    let mut fences = text.match_indices(FENCE).map(|(at, _)| at);
    Some(fences.find(begins_line).unwrap_or(next))
}
