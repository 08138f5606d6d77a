//! The text of a secret that a source has given.

use std::sync::Arc;

/// The text of a secret.
///
/// It has no `Display`, and its `Debug` hides it, so that code cannot print it by accident.
#[derive(Clone, Eq, PartialEq)]
pub struct SecretText(Arc<str>);

impl SecretText {
    /// Wraps a text.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the text. It may go into a request or a signature, never into a log, an error or a response.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Debug for SecretText {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("(hidden)")
    }
}
