//! Secrets: where the file says they are, and their text once found.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The text of a secret.
///
/// It has neither `Debug` nor `Display` on purpose: whoever wants the text has to say so.
#[derive(Clone, Eq, PartialEq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps a text that was read from where the configuration points.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// The text itself; it may go into a header, never into a log, an error or an answer.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// Where a secret was looked for and why it was not found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Absent {
    /// The variable is not set, or empty.
    Variable(String),
    /// None of the files exists, or all are empty.
    File(Vec<PathBuf>),
    /// The file is there but cannot be read.
    Unreadable(PathBuf, String),
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "{name} is not set"),
            Self::File(paths) => {
                let shown: Vec<_> = paths
                    .iter()
                    .map(|path| path.display().to_string())
                    .collect();
                write!(f, "{} is absent or empty", shown.join(", "))
            }
            Self::Unreadable(path, why) => write!(f, "{} cannot be read: {why}", path.display()),
        }
    }
}
