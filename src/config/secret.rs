//! Secrets, and the search for them by the references in the configuration.

use std::collections::BTreeMap;
use std::fmt;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::file::SecretRef;

/// The text of a secret.
///
/// It has neither `Debug` nor `Display`, so that code cannot print it by accident.
#[derive(Clone, Eq, PartialEq)]
pub struct Secret(Arc<str>);

impl Secret {
    /// Wraps a text to which the configuration refers.
    pub fn new(text: impl Into<Arc<str>>) -> Self {
        Self(text.into())
    }

    /// Returns the text. It may go into a header, never into a log, an error or a response.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

/// A secret of arbitrary bytes: all bytes of its file.
///
/// It has neither `Debug` nor `Display`, like [`Secret`].
#[derive(Clone, Eq, PartialEq)]
pub struct SecretBytes(Arc<[u8]>);

impl SecretBytes {
    /// Wraps bytes to which the configuration refers.
    pub fn new(bytes: impl Into<Arc<[u8]>>) -> Self {
        Self(bytes.into())
    }

    /// Returns the bytes. They may go into a hash, never into a log, an error or a response.
    pub fn expose(&self) -> &[u8] {
        &self.0
    }
}

/// The reason for which a secret was not found.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Absent {
    /// The variable is not set, or is empty.
    Variable(String),
    /// None of the files exists, or the file is empty.
    File(Vec<PathBuf>),
    /// The file cannot be read, or is not text although text is required.
    Unreadable(PathBuf, String),
}

impl Absent {
    /// Returns the cure: how to provide the secret.
    pub(super) fn cure(&self) -> String {
        match self {
            Self::Variable(name) => format!("set {name}"),
            Self::File(paths) => format!("write it to {}", joined(paths, " or ")),
            Self::Unreadable(path, _) => {
                format!("let the service's user read {}", path.display())
            }
        }
    }
}

fn joined(paths: &[PathBuf], word: &str) -> String {
    let shown = paths.iter().map(|path| path.display().to_string());
    shown.collect::<Vec<_>>().join(word)
}

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Variable(name) => write!(f, "{name} is not set"),
            Self::File(paths) => write!(f, "{} is absent or empty", joined(paths, " and ")),
            Self::Unreadable(path, why) => write!(f, "{} cannot be read: {why}", path.display()),
        }
    }
}

/// Finds a secret and trims white space around it.
///
/// A file named without a folder is searched in `$CREDENTIALS_DIRECTORY` first.
pub(super) fn find_text(
    reference: &SecretRef,
    env: &BTreeMap<String, String>,
) -> Result<Secret, Absent> {
    match reference {
        SecretRef::Literal(text) => Ok(Secret::new(text.trim())),
        SecretRef::Env { env: name } => match env.get(name).map(|text| text.trim()) {
            None | Some("") => Err(Absent::Variable(name.clone())),
            Some(text) => Ok(Secret::new(text)),
        },
        SecretRef::File { file } => read_first(&candidate_paths(file, env), |bytes| {
            let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
            let text = text.trim();
            Ok((!text.is_empty()).then(|| Secret::new(text)))
        }),
    }
}

/// Finds the secret that a command is referred to: `env:NAME` or `file:PATH`.
///
/// Errors: another form, which is not repeated because it may be the secret itself; or it is not there.
pub fn find_referred(
    reference: &str,
    env: impl IntoIterator<Item = (String, String)>,
) -> Result<Secret, String> {
    let reference = match reference.split_once(':') {
        Some(("env", name)) if !name.is_empty() => SecretRef::Env { env: name.into() },
        Some(("file", path)) if !path.is_empty() => SecretRef::File { file: path.into() },
        _ => {
            return Err(
                "it is no reference; accepted are env:NAME and file:PATH, never the secret itself"
                    .to_owned(),
            );
        }
    };
    let found = find_text(&reference, &env.into_iter().collect());
    found.map_err(|absent| format!("{absent}; {}", absent.cure()))
}

/// Finds a secret of arbitrary bytes. Files are not trimmed.
pub(super) fn find_bytes(
    reference: &SecretRef,
    env: &BTreeMap<String, String>,
) -> Result<SecretBytes, Absent> {
    match reference {
        SecretRef::File { file } => read_first(&candidate_paths(file, env), |bytes| {
            Ok((!bytes.is_empty()).then(|| SecretBytes::new(bytes)))
        }),
        _ => find_text(reference, env).map(|found| SecretBytes::new(found.expose().as_bytes())),
    }
}

/// Returns the path of a named file, which is in the folder of credentials if it exists there.
pub(super) fn find_file(file: &str, env: &BTreeMap<String, String>) -> PathBuf {
    let mut paths = candidate_paths(file, env).into_iter();
    let found = paths.find(|path| path.exists());
    found.unwrap_or_else(|| PathBuf::from(file))
}

/// Returns the paths at which a named file is searched, in this order.
pub(super) fn candidate_paths(file: &str, env: &BTreeMap<String, String>) -> Vec<PathBuf> {
    let credentials = env
        .get("CREDENTIALS_DIRECTORY")
        .filter(|folder| !folder.is_empty() && !file.contains('/'))
        .map(|folder| Path::new(folder).join(file));
    credentials
        .into_iter()
        .chain([PathBuf::from(file)])
        .collect()
}

/// Reads the first file with contents. `read` converts them.
fn read_first<T>(
    paths: &[PathBuf],
    read: impl Fn(&[u8]) -> Result<Option<T>, String>,
) -> Result<T, Absent> {
    let unreadable = |path: &PathBuf, why: String| Absent::Unreadable(path.clone(), why);
    for path in paths {
        match std::fs::read(path) {
            Ok(bytes) => {
                if let Some(found) = read(&bytes).map_err(|why| unreadable(path, why))? {
                    return Ok(found);
                }
            }
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(unreadable(path, error.to_string())),
        }
    }
    Err(Absent::File(paths.to_vec()))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn in_file(bytes: &[u8]) -> (tempfile::TempDir, SecretRef) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        std::fs::write(&path, bytes).unwrap();
        let file = path.to_str().unwrap().to_owned();
        (folder, SecretRef::File { file })
    }

    #[test]
    fn a_secret_of_bytes_is_taken_as_it_stands() {
        let bytes = [0xFF, 0x00, b' ', b'\n'];
        let (_folder, reference) = in_file(&bytes);
        let found = find_bytes(&reference, &BTreeMap::new()).ok().unwrap();
        assert_eq!(found.expose(), bytes);
    }

    #[test]
    fn a_secret_of_text_loses_the_white_space_around_it_and_must_be_text() {
        let (_folder, reference) = in_file(b" sk-1\n");
        assert_eq!(
            find_text(&reference, &BTreeMap::new())
                .ok()
                .unwrap()
                .expose(),
            "sk-1"
        );
        let (_folder, reference) = in_file(&[0xFF]);
        let absent = find_text(&reference, &BTreeMap::new()).err().unwrap();
        assert!(matches!(absent, Absent::Unreadable(..)));
    }

    #[test]
    fn a_command_is_referred_to_a_secret_and_never_repeats_what_is_none() {
        let env = || [("NAME".to_owned(), " sk-1 ".to_owned())];
        let found =
            |reference: &str| find_referred(reference, env()).map(|it| it.expose().to_owned());
        assert_eq!(found("env:NAME"), Ok("sk-1".to_owned()));
        let (_folder, file) = in_file(b"sk-2\n");
        let SecretRef::File { file } = file else {
            return;
        };
        assert_eq!(found(&format!("file:{file}")), Ok("sk-2".to_owned()));
        assert_eq!(
            found("env:OTHER").unwrap_err(),
            "OTHER is not set; set OTHER"
        );
        for bad in ["sk-3", "env:", "file:", "", "key:sk-3"] {
            let error = found(bad).unwrap_err();
            assert!(
                error.contains("env:NAME") && !error.contains("sk-3"),
                "{error}"
            );
        }
    }

    #[test]
    fn an_empty_file_is_no_secret() {
        let (_folder, reference) = in_file(b"");
        assert!(find_bytes(&reference, &BTreeMap::new()).is_err());
    }
}
