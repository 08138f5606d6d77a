//! Dialects: the ways to say a chat. A front speaks one to clients, a wire one to providers.
//!
//! [`chat`] has the members of chat completions, [`completions`] those of completions, [`contents`] those of Contents,
//! [`messages`] those of Messages, [`responses`] those of Responses. [`state`] is what only its maker can read, which goes through clients sealed, and [`chat_state`] finds it in
//! chat completions. [`compaction`] is a history that was summarized.

use serde::{Deserialize, Serialize};

use super::parameter::Parameter;

pub mod chat;
pub mod chat_state;
pub mod compaction;
pub mod completions;
pub mod contents;
pub mod messages;
pub mod responses;
pub mod state;
pub mod told_reasoning;

/// Members that speak to the gateway and never reach a provider, in the dialects that have no others.
pub const GATEWAY_MEMBERS: [&str; 3] = ["routing", "free_models_only", "no_reasoning"];

/// A way to say a chat.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Dialect {
    /// Chat completions.
    Chat,
    /// Messages.
    Messages,
    /// Responses.
    Responses,
    /// Contents.
    Contents,
    /// Completions: a text that goes on.
    Completions,
    /// Bedrock's Converse, which no front speaks.
    Converse,
    /// Version 2 of an API of chats, with plans and citations, which no front speaks.
    ChatV2,
}

/// What a fault names of a request, which each API says in its own words.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NamedMember {
    Parameter(Parameter),
    Model,
    Stream,
    /// How many answers are asked for.
    Choices,
    /// The choice of the provider.
    Routing,
    ServiceTier,
    Effort,
    /// The most tokens of reasoning.
    ReasoningBudget,
    ReasoningMode,
    /// What asks for images.
    ImageOutput,
    /// All turns of a history.
    Turns,
    /// Images, audio and files of a history.
    Media,
    Role,
    Content,
    /// The calls of a turn.
    Calls,
    /// The call that a result answers.
    AnsweredCall,
    /// The id of a file in a part.
    FileId,
}

impl From<Parameter> for NamedMember {
    fn from(parameter: Parameter) -> Self {
        Self::Parameter(parameter)
    }
}

impl Dialect {
    /// Returns the format that marks state of this dialect, on its way through a client; none of chat's own, and none of a dialect without state.
    pub const fn state_format(self) -> &'static str {
        match self {
            // Converse has the state of Messages.
            Self::Chat | Self::Completions | Self::Converse | Self::ChatV2 => "",
            Self::Messages => "anthropic-claude-v1",
            Self::Responses => "openai-responses-v1",
            Self::Contents => "google-gemini-v1",
        }
    }

    /// Returns the dialect whose state has this format; `None`: the gateway has not made it.
    pub fn find_format(format: &str) -> Option<Self> {
        [Self::Messages, Self::Responses, Self::Contents]
            .into_iter()
            .find(|dialect| dialect.state_format() == format)
    }

    /// Returns the dialect of the vendor whose name is the key of state beside a call or a text.
    pub fn from_vendor(vendor: &str) -> Option<Self> {
        (vendor == "google").then_some(Self::Contents)
    }

    /// Returns what the dialect calls a member.
    pub fn name_of(self, member: NamedMember) -> &'static str {
        match self {
            Self::Chat | Self::Converse | Self::ChatV2 => chat::name_of(member),
            Self::Messages => messages::name_of(member),
            Self::Responses => responses::name_of(member),
            Self::Completions => completions::name_of(member),
            Self::Contents => contents::name_of(member),
        }
    }

    /// Returns a path to a place of a request, `messages[2].content`, as the dialect writes it.
    pub fn path(self, path: String) -> String {
        match self {
            // The vendor writes `messages.2.content`.
            Self::Messages => path.replace('[', ".").replace(']', ""),
            Self::Chat
            | Self::Responses
            | Self::Contents
            | Self::Completions
            | Self::Converse
            | Self::ChatV2 => path,
        }
    }
}

/// Returns the keys of members.
const fn keys_of<const N: usize>(
    members: &[(&'static str, Option<Parameter>); N],
) -> [&'static str; N] {
    let mut keys = [""; N];
    let mut slots: &mut [&str] = &mut keys;
    let mut members: &[(&str, Option<Parameter>)] = members;
    while let ([slot, more_slots @ ..], [(key, _), more @ ..]) = (slots, members) {
        *slot = key;
        (slots, members) = (more_slots, more);
    }
    keys
}
