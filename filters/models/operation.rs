//! What a client asks of a model.

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
    /// The operation as a message to the caller calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Chat => "chat completions",
            Self::Embeddings => "embeddings",
        }
    }

    /// The member of a request that holds the prompt.
    pub fn prompt_member(self) -> &'static str {
        match self {
            Self::Chat => "messages",
            Self::Embeddings => "input",
        }
    }

    /// Whether `auto` may choose the model.
    ///
    /// Our choice: not for embeddings, because vectors of different models cannot be compared.
    pub fn takes_auto(self) -> bool {
        self == Self::Chat
    }

    /// The operations of a `type` of the catalogue, where no `operations` are listed.
    pub fn from_model_type(model_type: &str) -> &'static [Self] {
        match model_type {
            "chat" => &[Self::Chat],
            "embedding" => &[Self::Embeddings],
            _ => &[],
        }
    }
}
