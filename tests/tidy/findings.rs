//! What a rule finds.

use crate::source::Source;

/// A violation of a rule in a file.
#[derive(Debug)]
pub struct Finding {
    /// The module, name or package that is wrong.
    pub key: String,
    /// `path:line: message`.
    pub text: String,
}

impl Finding {
    /// A finding at a byte offset.
    pub fn new(file: &Source, at: usize, key: &str, message: impl AsRef<str>) -> Self {
        Self {
            key: key.to_owned(),
            text: file.finding(at, message.as_ref()),
        }
    }
}
