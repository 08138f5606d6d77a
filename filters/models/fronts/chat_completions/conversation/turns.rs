//! The order of a turn: what a message carries stands between its texts and calls, where it was said.
//! Source: docs/model-gateway.md 2.2, docs/decisions.md 4.

use std::borrow::Cow;
use std::vec::IntoIter;

use super::carried::{Carried, TextPlace};
use super::message::Message;
use crate::models::chat::conversation::{Block, BlockKind, Role, Turn};
use crate::models::chat::text::BlockText;

/// Reasoning that waits for its place: the number of messages and calls before it.
type Between<'a> = std::iter::Peekable<IntoIter<(u64, Block<'a>)>>;

impl<'a> Message<'a> {
    /// Returns what was given to the model as a turn.
    pub(super) fn given(self, role: Role) -> Turn<'a> {
        Turn {
            name: self.name,
            ..Turn::new(role, self.at, self.content)
        }
    }

    /// Returns what the model said as a turn: what it carried and its content, its images, its calls.
    pub(super) fn into_turn(mut self) -> Turn<'a> {
        // What the model has not said is not a piece of what it said.
        self.content
            .retain(|block| !matches!(&block.kind, BlockKind::Text(text) if text.is_empty()));
        let (blocks, divided) = match self.is_plain() {
            true => {
                let mut blocks = std::mem::take(&mut self.content);
                blocks.append(&mut self.images);
                blocks.append(&mut self.calls);
                (blocks, Vec::new())
            }
            false => self.weave_all(),
        };
        Turn {
            role: Role::Assistant,
            name: self.name,
            phase: self.phase,
            at: self.at,
            blocks,
            divided,
        }
    }

    /// Takes the blocks, with what the message carries in its places, and the same turn divided.
    #[inline(never)]
    fn weave_all(&mut self) -> (Vec<Block<'a>>, Vec<Turn<'a>>) {
        let mut carried = *self.carried.take().unwrap_or_default();
        carried.within.sort_by_key(|(place, _)| *place);
        carried.beside.sort_by_key(|(place, _)| *place);
        carried.between.sort_by_key(|(place, _)| *place);
        self.sign(&mut carried);
        let divided = self.divide(&carried);
        let mut between = carried.between.into_iter().peekable();
        let is_said = self.content.iter().any(is_said);
        let mut blocks = Vec::with_capacity(self.content.len() + self.calls.len());
        take_due(&mut between, 0, &mut blocks);
        let is_before = |((offset, _), _): &(TextPlace, Block<'a>)| *offset == 0;
        let (before, behind): (Vec<_>, Vec<_>) = carried.beside.into_iter().partition(is_before);
        blocks.extend(before.into_iter().map(|(_, block)| block));
        let content = std::mem::take(&mut self.content);
        weave(content, self.is_text, carried.within, &mut blocks);
        blocks.extend(self.refusal.take());
        blocks.append(&mut self.images);
        blocks.extend(behind.into_iter().map(|(_, block)| block));
        for (place, call) in (u64::from(is_said)..).zip(self.calls.drain(..)) {
            take_due(&mut between, place, &mut blocks);
            blocks.push(call);
        }
        blocks.extend(between.map(|(_, block)| block));
        (blocks, divided)
    }

    /// Returns whether the order of the message is that of its members.
    fn is_plain(&self) -> bool {
        let is_divided = !self.items.is_empty() || self.refusal.is_some() || self.is_after_calls;
        !is_divided && self.carried.is_none()
    }

    /// Puts the signatures to what they sign: the last text, or an image.
    fn sign(&mut self, carried: &mut Carried<'a>) {
        for (image, state) in carried.signatures.drain(..) {
            let signed = match image {
                Some(number) => self.images.get_mut(number),
                None => self.content.iter_mut().rfind(|block| is_said(block)),
            };
            if let Some(signed) = signed {
                signed.states.push(state);
            }
        }
    }

    /// Returns the turn's messages and calls each by itself, where their order or their number is another than that of a
    /// content and its calls.
    fn divide(&self, carried: &Carried<'a>) -> Vec<Turn<'a>> {
        if self.items.is_empty() && self.refusal.is_none() && !self.is_after_calls {
            return Vec::new();
        }
        let mut said = match self.items.is_empty() {
            true => self.content.clone(),
            false => Vec::new(),
        };
        said.extend(self.refusal.clone());
        let is_said = said.iter().any(is_said);
        let said = is_said.then(|| (self.phase.clone(), said));
        let (first, last) = match self.is_after_calls {
            false => (said, None),
            true => (None, said),
        };
        let mut parts: Vec<_> = first.into_iter().collect();
        let mut items = self.items.iter().peekable();
        for (number, call) in self.calls.iter().enumerate() {
            while let Some(item) = items.next_if(|item| item.preceding_calls <= number as f64) {
                parts.push((item.phase.clone(), vec![item.block.clone()]));
            }
            parts.push((None, vec![call.clone()]));
        }
        parts.extend(items.map(|item| (item.phase.clone(), vec![item.block.clone()])));
        parts.extend(last);
        let mut between = carried.between.clone().into_iter().peekable();
        let parts = (0..).zip(parts).map(|(place, (phase, said))| {
            let mut blocks = Vec::with_capacity(said.len());
            take_due(&mut between, place, &mut blocks);
            blocks.extend(said);
            Turn {
                phase,
                ..Turn::new(Role::Assistant, self.at, blocks)
            }
        });
        parts.collect()
    }
}

/// Returns whether a block of content says anything.
fn is_said(block: &Block<'_>) -> bool {
    match &block.kind {
        BlockKind::Text(text) => !text.is_empty(),
        BlockKind::Refusal(_) => true,
        _ => false,
    }
}

/// Takes the reasoning that led to the message or call of this number.
fn take_due<'a>(between: &mut Between<'a>, number: u64, blocks: &mut Vec<Block<'a>>) {
    while let Some((_, block)) = between.next_if(|(place, _)| *place <= number) {
        blocks.push(block);
    }
}

/// Puts what stood within a text between its pieces. Where the content is not a single text, what stood behind its beginning
/// stands behind its end.
fn weave<'a>(
    mut content: Vec<Block<'a>>,
    is_text: bool,
    within: Vec<(TextPlace, Block<'a>)>,
    blocks: &mut Vec<Block<'a>>,
) {
    let mut only = None;
    if is_text && !within.is_empty() {
        only = content.pop();
    }
    let Some(mut rest) = only else {
        let is_before = |((offset, _), _): &(TextPlace, Block<'a>)| *offset == 0;
        let (before, behind): (Vec<_>, Vec<_>) = within.into_iter().partition(is_before);
        blocks.extend(before.into_iter().map(|(_, block)| block));
        blocks.extend(content);
        blocks.extend(behind.into_iter().map(|(_, block)| block));
        return;
    };
    let mut said = 0;
    for ((offset, _), block) in within {
        let piece = cut(&mut rest, offset.saturating_sub(said));
        blocks.extend(piece.map(|piece| Block::new(BlockKind::Text(piece), rest.at)));
        blocks.push(block);
        said = offset;
    }
    let is_empty = !is_said(&rest) && rest.states.is_empty();
    blocks.extend((!is_empty).then_some(rest));
}

/// Cuts the first characters of a text off; `None`: there are none.
fn cut<'a>(block: &mut Block<'a>, chars: u64) -> Option<BlockText<'a>> {
    let BlockKind::Text(text) = &mut block.kind else {
        return None;
    };
    let chars = usize::try_from(chars).unwrap_or(usize::MAX);
    let at = text.char_indices().nth(chars);
    let at = at.map_or(text.len(), |(at, _)| at);
    if at == 0 {
        return None;
    }
    let (piece, rest): (Cow<'a, str>, Cow<'a, str>) = match std::mem::take(text).into_text() {
        Cow::Borrowed(whole) => {
            let (piece, rest) = whole.split_at(at);
            (Cow::Borrowed(piece), Cow::Borrowed(rest))
        }
        Cow::Owned(mut whole) => {
            let rest = whole.split_off(at);
            (Cow::Owned(whole), Cow::Owned(rest))
        }
    };
    *text = rest.into();
    Some(piece.into())
}
