//! Secrets: where the file says they are, and their text once found.

use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::SecretRef;

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

/// Why a secret was not found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Absent {
    /// The variable is not set, or empty.
    Variable(String),
    /// None of the files exists, or it is empty.
    File(Vec<PathBuf>),
    /// The file is there but is no readable text.
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
                write!(f, "{} is absent or empty", shown.join(" and "))
            }
            Self::Unreadable(path, why) => write!(f, "{} cannot be read: {why}", path.display()),
        }
    }
}

/// Finds a secret; white space around it does not count.
///
/// A file named without a folder is looked for in `$CREDENTIALS_DIRECTORY` first.
pub(super) fn find(
    reference: &SecretRef,
    env: &BTreeMap<String, String>,
) -> Result<Secret, Absent> {
    match reference {
        SecretRef::Literal(text) => Ok(Secret::new(text.trim())),
        SecretRef::Env { env: name } => match env.get(name).map(|text| text.trim()) {
            None | Some("") => Err(Absent::Variable(name.clone())),
            Some(text) => Ok(Secret::new(text)),
        },
        SecretRef::File { file } => in_files(&candidates(file, env)),
    }
}

fn candidates(file: &str, env: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let credentials = env
        .get("CREDENTIALS_DIRECTORY")
        .filter(|folder| !folder.is_empty() && !file.contains('/'))
        .map(|folder| Path::new(folder).join(file));
    credentials
        .into_iter()
        .chain([PathBuf::from(file)])
        .collect()
}

fn in_files(paths: &[PathBuf]) -> Result<Secret, Absent> {
    for path in paths {
        match std::fs::read_to_string(path) {
            Ok(text) if !text.trim().is_empty() => return Ok(Secret::new(text.trim())),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(Absent::Unreadable(path.clone(), error.to_string())),
        }
    }
    Err(Absent::File(paths.to_vec()))
}
