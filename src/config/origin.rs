//! Where each value came from.

use std::collections::BTreeMap;
use std::fmt;

/// Where one value came from.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Origin {
    /// Nobody set it.
    Default,
    /// A line of a file.
    File {
        /// The file, as it was named.
        file: String,
        /// The line, from 1.
        line: usize,
    },
    /// A variable of the environment.
    Variable(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::File { file, line } => write!(f, "{file}:{line}"),
            Self::Variable(name) => write!(f, "env {name}"),
        }
    }
}

/// Every value of the effective configuration with its origin, by dotted key; secrets are shown as references.
#[derive(Clone, Debug, Default)]
pub struct Origins(pub(super) BTreeMap<String, (serde_json::Value, Origin)>);

impl Origins {
    /// The origin of one key, `routing.attempts`.
    pub fn of(&self, key: &str) -> Option<&Origin> {
        self.0.get(key).map(|(_, origin)| origin)
    }

    /// All keys in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &serde_json::Value, &Origin)> {
        self.0
            .iter()
            .map(|(key, (value, origin))| (key.as_str(), value, origin))
    }
}
