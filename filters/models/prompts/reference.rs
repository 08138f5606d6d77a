//! How a request names a prompt. Source: docs/model-gateway.md 2.1 (`model`, `prompt`).

use crate::fault::quoted;

/// The label that counts where a request names neither label nor version.
pub const PRODUCTION: &str = "production";
/// The label of the newest version, which cannot be moved.
pub const LATEST: &str = "latest";
/// The prefix of a model string that names a prompt.
pub const PREFIX: &str = "@prompt/";

/// The longest name and the longest label.
const MAX_NAME_BYTES: usize = 128;

/// A prompt by its name, and the version that is meant.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PromptReference {
    pub name: Box<str>,
    pub version: VersionReference,
}

/// A version by its number or a label.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum VersionReference {
    Label(Box<str>),
    /// The version of this number, from 1.
    Number(u64),
}

impl Default for VersionReference {
    fn default() -> Self {
        Self::Label(PRODUCTION.into())
    }
}

impl VersionReference {
    /// Reads a number or a label.
    pub fn new(text: &str) -> Self {
        if text.bytes().all(|byte| byte.is_ascii_digit()) {
            Self::Number(text.parse().unwrap_or(u64::MAX))
        } else {
            Self::Label(text.into())
        }
    }
}

impl std::fmt::Display for VersionReference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Label(label) => f.write_str(label),
            Self::Number(number) => write!(f, "{number}"),
        }
    }
}

impl PromptReference {
    /// Reads `name`, `name@label` or `name@version`. `None`: a part is empty.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, version) = match text.split_once('@') {
            Some((_, "")) => return None,
            Some((name, version)) => (name, VersionReference::new(version)),
            None => (text, VersionReference::default()),
        };
        let name = (!name.is_empty()).then(|| name.into())?;
        Some(Self { name, version })
    }
}

impl std::fmt::Display for PromptReference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}@{}", self.name, self.version)
    }
}

/// Checks the name of a prompt. It stands in model strings, so it has no `@`.
///
/// Errors: what is wrong.
pub fn check_prompt_name(name: &str) -> Result<(), String> {
    check_word(name, "/")
}

/// Checks a label. A label of digits alone would be a version.
///
/// Errors: what is wrong.
pub fn check_label(label: &str) -> Result<(), String> {
    check_word(label, "")?;
    if label.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(format!(
            "`{label}` is the number of a version; accepted is a word"
        ));
    }
    Ok(())
}

/// Checks a label that is to be moved to a version.
///
/// Errors: what is wrong.
pub fn check_movable_label(label: &str) -> Result<(), String> {
    match label {
        LATEST => Err("`latest` is always the newest version and cannot be moved".to_owned()),
        label => check_label(label),
    }
}

fn check_word(word: &str, more: &str) -> Result<(), String> {
    let is_inner =
        |char: char| char.is_ascii_alphanumeric() || "_.-".contains(char) || more.contains(char);
    let begins_well = word.starts_with(|char: char| char.is_ascii_alphanumeric() || char == '_');
    if begins_well && word.len() <= MAX_NAME_BYTES && word.chars().all(is_inner) {
        return Ok(());
    }
    let shown = quoted(word);
    let separators = if more.is_empty() {
        "`_`, `.` and `-`"
    } else {
        "`_`, `.`, `-` and `/`"
    };
    Err(format!(
        "{shown:?} is no name; accepted are 1 to {MAX_NAME_BYTES} letters, digits, {separators}, the first a letter, a digit or `_`"
    ))
}
