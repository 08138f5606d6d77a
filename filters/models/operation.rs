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
}

impl Operation {
    /// Returns the name for messages to the caller.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat completions",
            Self::Embeddings => "embeddings",
        }
    }

    /// Returns what its answers are, in the words of `GET /v1/models`.
    pub fn output_modality(self) -> &'static str {
        match self {
            Self::Chat => "text",
            Self::Embeddings => "embedding",
        }
    }

    /// Returns the member of a request that holds the prompt.
    pub fn prompt_member(self) -> &'static str {
        match self {
            Self::Chat => "messages",
            Self::Embeddings => "input",
        }
    }

    /// Returns whether `auto` may choose the model.
    ///
    /// Our choice: not for embeddings, because vectors of different models cannot be compared.
    pub fn takes_auto(self) -> bool {
        self == Self::Chat
    }

    /// Returns the operations that a `type` of the catalogue serves, unless the model lists its `operations`.
    pub fn from_model_type(model_type: &str) -> &'static [Self] {
        match model_type {
            "chat" => &[Self::Chat],
            "embedding" => &[Self::Embeddings],
            _ => &[],
        }
    }
}
