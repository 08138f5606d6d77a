//! The pull parser.

use std::borrow::Cow;

use super::{MAX_DEPTH, Str};

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
    /// More than [`MAX_DEPTH`] levels.
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

/// A pull parser over one JSON text.
///
/// Cost: no allocation but for keys that hold escapes; one pass.
#[derive(Debug)]
pub struct Walker<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    key_at: usize,
}

impl<'a> Walker<'a> {
    /// A walker at the start of `bytes`.
    ///
    /// Errors: [`What::Utf8`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Self::over(text)),
            Err(error) => Err(Error {
                at: error.valid_up_to(),
                what: What::Utf8,
            }),
        }
    }

    /// A walker at the start of `text`.
    pub fn over(text: &'a str) -> Self {
        Self {
            text,
            at: 0,
            depth: 0,
            key_at: 0,
        }
    }

    /// The byte offset in the text.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Where the key of the member at hand begins, at its quote. Only inside [`Self::object`], before the value.
    pub fn key_at(&self) -> usize {
        self.key_at
    }

    /// The type of the value that stands next.
    pub fn peek(&mut self) -> Result<Type, Error> {
        self.white();
        match self.byte() {
            Some(b'{') => Ok(Type::Object),
            Some(b'[') => Ok(Type::Array),
            Some(b'"') => Ok(Type::String),
            Some(b't' | b'f') => Ok(Type::Bool),
            Some(b'n') => Ok(Type::Null),
            Some(b'-' | b'0'..=b'9') => Ok(Type::Number),
            _ => Err(self.syntax()),
        }
    }

    /// Walks an object: `member` is called at each value, and must consume it.
    pub fn object<E: From<Error>>(
        &mut self,
        mut member: impl FnMut(&mut Self, Cow<'a, str>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'{')?;
        if self.closes(b'}') {
            return Ok(());
        }
        loop {
            self.white();
            self.key_at = self.at;
            if self.byte() != Some(b'"') {
                return Err(self.syntax().into());
            }
            let key = self.string()?.unescaped();
            self.expect(b':')?;
            member(self, key)?;
            if self.next_or_close(b'}')? {
                return Ok(());
            }
        }
    }

    /// Walks an array: `item` is called at each value, and must consume it.
    pub fn array<E: From<Error>>(
        &mut self,
        mut item: impl FnMut(&mut Self, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'[')?;
        if self.closes(b']') {
            return Ok(());
        }
        let mut index = 0;
        loop {
            item(self, index)?;
            index += 1;
            if self.next_or_close(b']')? {
                return Ok(());
            }
        }
    }

    /// The string that stands next.
    pub fn string(&mut self) -> Result<Str<'a>, Error> {
        self.white();
        if self.byte() != Some(b'"') {
            return Err(self.other_type());
        }
        let start = self.at + 1;
        self.skip_string()?;
        Ok(Str::Raw(
            self.text
                .get(start..self.at.saturating_sub(1))
                .unwrap_or_default(),
        ))
    }

    /// The number that stands next, as written.
    pub fn number(&mut self) -> Result<&'a str, Error> {
        self.white();
        let start = self.at;
        self.skip_number()?;
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    /// The boolean that stands next.
    pub fn boolean(&mut self) -> Result<bool, Error> {
        self.white();
        match self.byte() {
            Some(b't') => self.word("true").map(|()| true),
            Some(b'f') => self.word("false").map(|()| false),
            _ => Err(self.other_type()),
        }
    }

    /// Whether `null` stands next; consumed if so.
    pub fn null(&mut self) -> Result<bool, Error> {
        if self.peek()? != Type::Null {
            return Ok(false);
        }
        self.word("null").map(|()| true)
    }

    /// Skips the value that stands next; answers its text.
    pub fn skip(&mut self) -> Result<&'a str, Error> {
        self.white();
        let start = self.at;
        self.skip_value()?;
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    /// Makes sure that nothing but white space is left.
    pub fn end(&mut self) -> Result<(), Error> {
        self.white();
        if self.at == self.text.len() {
            return Ok(());
        }
        Err(Error {
            at: self.at,
            what: What::Trailing,
        })
    }

    fn skip_value(&mut self) -> Result<(), Error> {
        // Iterative: a text of any depth must not reach the end of the stack.
        let mut open: Vec<u8> = Vec::new();
        loop {
            match self.peek()? {
                Type::Object => {
                    self.open(b'{')?;
                    if !self.closes(b'}') {
                        open.push(b'}');
                        self.key()?;
                        continue;
                    }
                }
                Type::Array => {
                    self.open(b'[')?;
                    if !self.closes(b']') {
                        open.push(b']');
                        continue;
                    }
                }
                Type::String => self.skip_string()?,
                Type::Number => self.skip_number()?,
                Type::Bool => {
                    self.boolean()?;
                }
                Type::Null => self.word("null")?,
            }
            loop {
                let Some(&close) = open.last() else {
                    return Ok(());
                };
                if !self.next_or_close(close)? {
                    if close == b'}' {
                        self.key()?;
                    }
                    break;
                }
                open.pop();
            }
        }
    }

    fn key(&mut self) -> Result<(), Error> {
        self.white();
        if self.byte() != Some(b'"') {
            return Err(self.syntax());
        }
        self.skip_string()?;
        self.expect(b':')
    }

    fn skip_string(&mut self) -> Result<(), Error> {
        self.at += 1;
        loop {
            let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
            let Some(clean) = rest
                .iter()
                .position(|&b| b == b'"' || b == b'\\' || b < 0x20)
            else {
                return Err(Error {
                    at: self.text.len(),
                    what: What::Truncated,
                });
            };
            self.at += clean;
            match rest.get(clean) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(());
                }
                Some(b'\\') => self.skip_escape()?,
                _ => return Err(self.syntax()),
            }
        }
    }

    fn skip_escape(&mut self) -> Result<(), Error> {
        let start = self.at;
        self.at += 1;
        match self.byte() {
            Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => {
                self.at += 1;
                Ok(())
            }
            Some(b'u') => {
                let lone = Error {
                    at: start,
                    what: What::LoneSurrogate,
                };
                match self.unit()? {
                    0xD800..=0xDBFF => {
                        if self.byte() != Some(b'\\') {
                            return Err(lone);
                        }
                        self.at += 1;
                        if self.byte() != Some(b'u') || !(0xDC00..=0xDFFF).contains(&self.unit()?) {
                            return Err(lone);
                        }
                        Ok(())
                    }
                    0xDC00..=0xDFFF => Err(lone),
                    _ => Ok(()),
                }
            }
            _ => Err(self.syntax()),
        }
    }

    /// The code unit of `uXXXX`, which stands next.
    fn unit(&mut self) -> Result<u32, Error> {
        let digits = self
            .text
            .get(self.at + 1..self.at + 5)
            .ok_or_else(|| self.syntax())?;
        if !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
            return Err(self.syntax());
        }
        self.at += 5;
        u32::from_str_radix(digits, 16).map_err(|_| self.syntax())
    }

    fn skip_number(&mut self) -> Result<(), Error> {
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        match self.byte() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(self.other_type()),
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.byte(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.byte(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Result<(), Error> {
        let start = self.at;
        while matches!(self.byte(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start {
            Err(self.syntax())
        } else {
            Ok(())
        }
    }

    fn open(&mut self, bracket: u8) -> Result<(), Error> {
        self.white();
        if self.byte() != Some(bracket) {
            return Err(self.other_type());
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error {
                at: self.at,
                what: What::TooDeep,
            });
        }
        self.at += 1;
        Ok(())
    }

    /// Whether the array or object just opened is empty; consumes the bracket if so.
    fn closes(&mut self, bracket: u8) -> bool {
        self.white();
        let closes = self.byte() == Some(bracket);
        if closes {
            self.at += 1;
            self.depth = self.depth.saturating_sub(1);
        }
        closes
    }

    /// After a value: true at the end of the array or object, false behind a comma.
    fn next_or_close(&mut self, bracket: u8) -> Result<bool, Error> {
        self.white();
        match self.byte() {
            Some(b',') => {
                self.at += 1;
                Ok(false)
            }
            Some(byte) if byte == bracket => {
                self.at += 1;
                self.depth = self.depth.saturating_sub(1);
                Ok(true)
            }
            _ => Err(self.syntax()),
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Error> {
        self.white();
        if self.byte() != Some(byte) {
            return Err(self.syntax());
        }
        self.at += 1;
        Ok(())
    }

    fn word(&mut self, word: &str) -> Result<(), Error> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return Err(self.syntax());
        }
        self.at += word.len();
        Ok(())
    }

    fn white(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn syntax(&self) -> Error {
        let what = if self.at >= self.text.len() {
            What::Truncated
        } else {
            What::Syntax
        };
        Error { at: self.at, what }
    }

    fn other_type(&self) -> Error {
        match self.byte() {
            Some(b'{' | b'[' | b'"' | b't' | b'f' | b'n' | b'-' | b'0'..=b'9') => Error {
                at: self.at,
                what: What::Type,
            },
            _ => self.syntax(),
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
