//! What a value is, and why a text is refused.

/// What a JSON value is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Type {
    /// `{…}`
    Object,
    /// `[…]`
    Array,
    /// `"…"`
    String,
    /// `1`, `-2.5e3`
    Number,
    /// `true`, `false`
    Bool,
    /// `null`
    Null,
}

impl Type {
    /// The word for messages to callers.
    pub fn word(self) -> &'static str {
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
pub enum What {
    /// Not UTF-8.
    Utf8,
    /// Not JSON at this place.
    Syntax,
    /// The text ends inside a value.
    Truncated,
    /// More than [`MAX_DEPTH`](super::MAX_DEPTH) levels.
    TooDeep,
    /// Half of a surrogate pair: no Unicode text.
    LoneSurrogate,
    /// Something stands behind the value.
    Trailing,
    /// The value is of another type than the one asked for.
    Type,
}

/// Where and why a text is refused.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Error {
    /// Byte offset in the text.
    pub at: usize,
    /// Why.
    pub what: What,
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let what = match self.what {
            What::Utf8 => "not UTF-8",
            What::Syntax => "not valid JSON",
            What::Truncated => "the JSON text ends inside a value",
            What::TooDeep => "more than 128 levels of arrays and objects",
            What::LoneSurrogate => "half of a surrogate pair in a string",
            What::Trailing => "something stands behind the JSON value",
            What::Type => "a value of another type was expected",
        };
        write!(f, "{what} at byte {}", self.at)
    }
}

impl std::error::Error for Error {}
