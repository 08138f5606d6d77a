//! The operations of the model gateway.

use serde::Deserialize;

/// An operation of the model gateway.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    /// An answer to a conversation.
    Chat,
    /// Vectors that stand for texts.
    Embeddings,
    /// Audio of a text that is spoken.
    Speech,
}

impl Operation {
    /// Returns the name for messages to the caller.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat completions",
            Self::Embeddings => "embeddings",
            Self::Speech => "speech",
        }
    }

    /// Returns what its answers are, in the words of `GET /v1/models`.
    pub fn output_modality(self) -> &'static str {
        match self {
            Self::Chat => "text",
            Self::Embeddings => "embedding",
            Self::Speech => "audio",
        }
    }

    /// Returns the member of a request that holds the prompt.
    pub fn prompt_member(self) -> &'static str {
        match self {
            Self::Chat => "messages",
            Self::Embeddings | Self::Speech => "input",
        }
    }

    /// Returns whether `auto` may choose the model.
    ///
    /// Our choice: not for embeddings, because vectors of different models cannot be compared.
    pub fn takes_auto(self) -> bool {
        self == Self::Chat
    }

    /// Returns whether replies may be cached. Our choice: not those of media, which are large.
    pub fn is_cacheable(self) -> bool {
        self != Self::Speech
    }

    /// Returns the operations that a `type` of the catalogue serves, unless the model lists its `operations`.
    pub fn from_model_type(model_type: &str) -> &'static [Self] {
        match model_type {
            "chat" => &[Self::Chat],
            "embedding" => &[Self::Embeddings],
            "speech" => &[Self::Speech],
            _ => &[],
        }
    }
}
