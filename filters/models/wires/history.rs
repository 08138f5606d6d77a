//! What every wire of another convention needs to say a history of messages.

use std::collections::HashMap;

use crate::fault::Fault;
use crate::models::chat::conversation::{Block, BlockKind, Conversation, MediaKind, Role, Turn};
use crate::models::chat::text::BlockText;
use crate::models::dialects::{Dialect, NamedMember};

/// The ids of the calls of a history: clients repeat them, and those of one provider are too long for another.
#[derive(Debug, Default)]
pub(super) struct CallIds {
    /// The ids given so far, and the last number that was appended to each.
    given: HashMap<String, u32>,
}

impl CallIds {
    /// The most characters of an id before its number. The most that a provider takes with it are 64.
    const LENGTH: usize = 56;

    /// Returns an id for the next call that no other call has: of accepted characters, the others are replaced.
    pub(super) fn unique(&mut self, id: &str, is_accepted: impl Fn(char) -> bool) -> String {
        let accepted = id.chars().map(|c| if is_accepted(c) { c } else { '_' });
        let mut clean: String = accepted.take(Self::LENGTH).collect();
        if clean.is_empty() {
            clean.push_str("call");
        }
        let Some(mut number) = self.given.get(&clean).copied() else {
            self.given.insert(clean.clone(), 1);
            return clean;
        };
        // The number goes on from the last one, so many calls of one id cost no more than as many others.
        let numbered = loop {
            number += 1;
            let numbered = format!("{clean}_{number}");
            if !self.given.contains_key(&numbered) {
                break numbered;
            }
        };
        self.given.insert(clean, number);
        self.given.insert(numbered.clone(), 1);
        numbered
    }
}

/// The fault of a result, at `at`, that answers no call.
pub(super) fn no_call(conversation: &Conversation<'_>, at: u32) -> Fault {
    let said = "answers no call of the assistant's message before it";
    conversation.fault(at, Some(NamedMember::AnsweredCall), said)
}

/// The fault of a turn, at `at`, whose calls have no result.
pub(super) fn open_calls(conversation: &Conversation<'_>, at: u32) -> Fault {
    let said = "has calls without a result; each needs a `tool` message right behind it";
    conversation.fault(at, Some(NamedMember::Calls), said)
}

/// Checks that instructions, or what the assistant has said, are texts. Errors: 400 naming the part that is not.
pub(super) fn check_texts(conversation: &Conversation<'_>, turn: &Turn<'_>) -> Result<(), Fault> {
    let is_other = |block: &&Block<'_>| match &block.kind {
        BlockKind::Media(media) => media.kind != MediaKind::Drawn,
        _ => false,
    };
    let Some(block) = turn.blocks.iter().find(is_other) else {
        return Ok(());
    };
    let role = match turn.role {
        Role::Assistant => "the assistant",
        _ => "instructions",
    };
    let said = format!("is no text; the chosen provider takes only texts of {role}");
    Err(conversation.fault(block.at, None, &said))
}

/// Turns instructions between messages into the user's words, each marked as what it is: most models of other dialects take
/// instructions at the beginning alone. In chat completions they stay where they are. Source: docs/facts/messages.md 2.
pub(super) fn fold_instructions(conversation: &mut Conversation<'_>) {
    if conversation.dialect == Dialect::Chat {
        return;
    }
    let is_instruction = |turn: &Turn<'_>| matches!(turn.role, Role::System | Role::Developer);
    let mut turns = conversation.turns.iter_mut();
    let later = turns.by_ref().skip_while(|turn| is_instruction(turn));
    for turn in later.filter(|turn| is_instruction(turn)) {
        turn.role = Role::User;
        for block in &mut turn.blocks {
            if let BlockKind::Text(text) = &mut block.kind {
                let marked = format!("<system-reminder>\n{}\n</system-reminder>", &**text);
                *text = BlockText::from(std::borrow::Cow::Owned(marked));
            }
        }
    }
}
