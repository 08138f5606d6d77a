//! The blocks of a turn whose state stands in blocks of its own: a signature of a host of contents signs the call behind it, or
//! else the text before it.

use crate::models::chat::conversation::{Block, BlockKind, Role, State, Turn};

/// Blocks in the making.
#[derive(Debug, Default)]
pub(super) struct SignedBlocks<'a> {
    /// Where their turn has begun.
    at: Option<u32>,
    blocks: Vec<Block<'a>>,
    /// A signature whose block has not come.
    signature: Option<State<'a>>,
}

impl<'a> SignedBlocks<'a> {
    /// Begins a turn of the assistant at `at`, unless one has begun.
    pub(super) fn begin(&mut self, at: u32) {
        self.at.get_or_insert(at);
    }

    pub(super) fn has_begun(&self) -> bool {
        self.at.is_some()
    }

    /// Returns the turn of the assistant that has begun, if it says something. The next blocks are of another.
    pub(super) fn take_turn(&mut self) -> Option<Turn<'a>> {
        let at = self.at.take()?;
        let blocks = std::mem::take(self).finish();
        (!blocks.is_empty()).then(|| Turn::new(Role::Assistant, at, blocks))
    }

    /// Takes a signature.
    pub(super) fn sign(&mut self, state: State<'a>) {
        let earlier = self.signature.replace(state);
        self.sign_text(earlier);
    }

    /// Takes a block.
    pub(super) fn push(&mut self, mut block: Block<'a>) {
        match self.signature.take() {
            Some(state) if matches!(block.kind, BlockKind::Call { .. }) => {
                block.states.push(state);
            }
            state => self.sign_text(state),
        }
        self.blocks.push(block);
    }

    /// Takes a block that bears its own signature.
    pub(super) fn push_signed(&mut self, mut block: Block<'a>, state: State<'a>) {
        let earlier = self.signature.take();
        self.sign_text(earlier);
        block.states.push(state);
        self.blocks.push(block);
    }

    /// Returns the blocks.
    pub(super) fn finish(mut self) -> Vec<Block<'a>> {
        let signature = self.signature.take();
        self.sign_text(signature);
        self.blocks
    }

    fn sign_text(&mut self, state: Option<State<'a>>) {
        let mut texts = self.blocks.iter_mut().rev();
        let signed = texts.find(|block| matches!(block.kind, BlockKind::Text(_)));
        if let Some((signed, state)) = signed.zip(state) {
            signed.states.push(state);
        }
    }
}

/// Returns the turn of the user that results of calls are, if there are some. The next results are of another.
pub(super) fn results_turn<'a>(results: &mut Vec<Block<'a>>) -> Option<Turn<'a>> {
    let at = results.first()?.at;
    Some(Turn::new(Role::User, at, std::mem::take(results)))
}
