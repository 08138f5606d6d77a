//! The types of JSON values, and the errors of a text.

/// The type of a JSON value.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Type {
    Object,
    Array,
    String,
    /// `1`, `-2.5e3`
    Number,
    /// `true`, `false`
    Bool,
    Null,
}

impl Type {
    /// Returns the type as messages to callers name it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Object => "an object",
            Self::Array => "an array",
            Self::String => "a string",
            Self::Number => "a number",
            Self::Bool => "a boolean",
            Self::Null => "null",
        }
    }
}

/// Why a text is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ErrorKind {
    Utf8,
    Syntax,
    /// The text ends inside a value.
    Truncated,
    /// The text nests more than [`MAX_DEPTH`](super::MAX_DEPTH) levels.
    TooDeep,
    /// Half of a surrogate pair, which is not Unicode text.
    LoneSurrogate,
    /// Text follows the value.
    Trailing,
    /// The value has another type than the expected one.
    Type,
}

/// The place and the reason of a refusal.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Error {
    /// Byte offset in the text.
    pub at: usize,
    pub kind: ErrorKind,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind {
            ErrorKind::Utf8 => "not UTF-8",
            ErrorKind::Syntax => "not valid JSON",
            ErrorKind::Truncated => "the JSON text ends inside a value",
            ErrorKind::TooDeep => "more than 128 levels of arrays and objects",
            ErrorKind::LoneSurrogate => "half of a surrogate pair in a string",
            ErrorKind::Trailing => "something stands behind the JSON value",
            ErrorKind::Type => "a value of another type was expected",
        };
        write!(f, "{kind} at byte {}", self.at)
    }
}

impl std::error::Error for Error {}
