//! State that only its maker can read, as wires get it back from the client.
//!
//! The front of a chat seals it for its maker. A wire of another dialect opens what its target has made, and leaves out
//! everything else ([`keep_own`]); that of the same dialect opens it in the body. Source: docs/decisions.md 4.
//!
//! A provider refuses its own state too, once another of its accounts has made it or a key was changed: [`is_refused`].

use std::borrow::Cow;

use crate::models::chat::conversation::{Block, BlockKind, Conversation, Native, State};
use crate::models::chat::text::Text;
use crate::models::dialects::Dialect;
use crate::models::dialects::state::is_sealed;
use crate::models::dialects::told_reasoning::ToldReasoning;
use crate::models::wires::wire::Target;

/// Leaves in a conversation the state and the blocks alone that a target has made and that it takes back: state of its own
/// model, opened, and blocks of its provider that `knows` returns true for. What has no seal goes to all that speak the
/// dialect. What is left out is counted.
pub(super) fn keep_own(
    conversation: &mut Conversation<'_>,
    dialect: Dialect,
    target: &Target<'_>,
    knows: impl Fn(&Native<'_>) -> bool,
) {
    let (maker, takes) = (target.maker, !target.refuses_state);
    let left_out = target.left_out_state;
    let open = |state: &mut State<'_>| {
        let is_theirs = takes && state.dialect == Some(dialect);
        if is_theirs && !is_sealed(&state.text) {
            return true;
        }
        let opened = is_theirs
            .then(|| maker.open(dialect, &state.text))
            .flatten();
        let opened = opened.map(Cow::into_owned);
        match opened {
            Some(opened) => state.text = Text(opened.into()),
            None => {
                left_out.add();
                return false;
            }
        }
        true
    };
    let is_native = |native: &Native<'_>| {
        let is_made = |seal: &Text<'_>| maker.any_model().open(dialect, seal).is_some();
        let stays = takes
            && native.dialect.is_none_or(|other| other == dialect)
            && native.seal.as_ref().is_none_or(is_made)
            && knows(native);
        if !stays {
            left_out.add();
        }
        stays
    };
    conversation.retain(open, is_native);
    let blocks = conversation.turns.iter_mut().flat_map(|it| &mut it.blocks);
    blocks.for_each(tell_reasoning);
}

/// Turns a state that holds its reasoning into the block that it was.
fn tell_reasoning(block: &mut Block<'_>) {
    if !matches!(block.kind, BlockKind::Redacted) {
        return;
    }
    if let Some(state) = block.states.first_mut()
        && let Some(told) = ToldReasoning::read(&state.text)
    {
        state.text = Text(told.signature.into());
        block.kind = BlockKind::Reasoning(Text(told.reasoning.into()));
    }
}

/// Codes of refused state.
const REFUSED_CODES: [&str; 2] = ["invalid_encrypted_content", "invalid_thinking_signature"];

/// Words of refused state, in lower case. Source: docs/facts/wire-formats.md 7.4.
const REFUSED_WORDS: [&str; 8] = [
    "signature` in `thinking`",
    "data` in `redacted_thinking`",
    "`redacted_thinking` blocks in the latest assistant message cannot be modified",
    "thought signature is not valid",
    "invalid thought signature",
    "corrupted thought signature",
    "encrypted content could not be",
    "bound to a different conversation",
];

/// Returns whether a refusal is about the state that went back.
pub(super) fn is_refused(code: Option<&str>, message: &str) -> bool {
    let message = message.to_ascii_lowercase();
    code.is_some_and(|code| REFUSED_CODES.contains(&code))
        || REFUSED_WORDS.iter().any(|words| message.contains(words))
}

#[cfg(test)]
#[path = "opaque_tests.rs"]
mod tests;
