//! The blocks of a turn whose state stands in blocks of its own: a signature of a host of contents signs the call behind it, or
//! else the text before it.

use crate::models::chat::conversation::{Block, BlockKind, State};

/// Blocks in the making.
#[derive(Debug, Default)]
pub(super) struct SignedBlocks<'a> {
    blocks: Vec<Block<'a>>,
    /// A signature whose block has not come.
    signature: Option<State<'a>>,
}

impl<'a> SignedBlocks<'a> {
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
