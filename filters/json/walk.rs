//! A pull parser over JSON text.

use std::borrow::Cow;

use super::error::{Error, ErrorKind, Type};
use super::{MAX_DEPTH, Str};

/// A pull parser over one JSON text.
///
/// Cost: one pass; only keys with escapes allocate.
#[derive(Clone, Debug)]
pub struct Walker<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
    depth: u32,
    key_at: usize,
}

impl<'a> Walker<'a> {
    /// Creates a walker at the start of `bytes`.
    ///
    /// Errors: [`ErrorKind::Utf8`].
    pub fn new(bytes: &'a [u8]) -> Result<Self, Error> {
        if let Ok(text) = simdutf8::basic::from_utf8(bytes) {
            return Ok(Self::over(text));
        }
        // The fast check does not say where the text is not UTF-8.
        let place = std::str::from_utf8(bytes).map_err(|error| error.valid_up_to());
        Err(Error {
            at: place.err().unwrap_or_default(),
            kind: ErrorKind::Utf8,
        })
    }

    /// Creates a walker at the start of `text`.
    pub fn over(text: &'a str) -> Self {
        Self::from(text, 0)
    }

    /// Creates a walker at a byte offset of `text`, before a value. It walks that value alone.
    pub fn from(text: &'a str, at: usize) -> Self {
        Self {
            text,
            at,
            depth: 0,
            key_at: 0,
        }
    }

    /// Returns the byte offset in the text.
    pub fn at(&self) -> usize {
        self.at
    }

    /// Returns the offset of the current member's key, at its quote. It is valid inside [`Self::object`], before the
    /// value is consumed.
    pub fn key_at(&self) -> usize {
        self.key_at
    }

    /// Returns the type of the next value.
    pub fn peek(&mut self) -> Result<Type, Error> {
        self.skip_whitespace();
        match self.byte() {
            Some(b'{') => Ok(Type::Object),
            Some(b'[') => Ok(Type::Array),
            Some(b'"') => Ok(Type::String),
            Some(b't' | b'f') => Ok(Type::Bool),
            Some(b'n') => Ok(Type::Null),
            Some(b'-' | b'0'..=b'9') => Ok(Type::Number),
            _ => Err(self.syntax_error()),
        }
    }

    /// Walks an object. `member` is called at each value and must consume it.
    pub fn object<E: From<Error>>(
        &mut self,
        mut member: impl FnMut(&mut Self, Cow<'a, str>) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'{')?;
        if self.close_if_empty(b'}') {
            return Ok(());
        }
        loop {
            self.skip_whitespace();
            self.key_at = self.at;
            let (key, has_escapes) = self.read_key()?;
            let key = if has_escapes {
                Str::Raw(key).unescaped()
            } else {
                Cow::Borrowed(key)
            };
            member(self, key)?;
            if self.next_or_close(b'}')? {
                return Ok(());
            }
        }
    }

    /// Walks an array. `item` is called at each value and must consume it.
    pub fn array<E: From<Error>>(
        &mut self,
        mut item: impl FnMut(&mut Self, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'[')?;
        if self.close_if_empty(b']') {
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

    /// Reads the next value, a string.
    pub fn string(&mut self) -> Result<Str<'a>, Error> {
        let (contents, _) = self.string_contents()?;
        Ok(Str::Raw(contents))
    }

    /// Reads the next value, a string, without its escapes. A text that has none is borrowed.
    pub fn text(&mut self) -> Result<Cow<'a, str>, Error> {
        match self.string_contents()? {
            (contents, false) => Ok(Cow::Borrowed(contents)),
            (contents, true) => Ok(Str::Raw(contents).unescaped()),
        }
    }

    /// Reads it likewise, and returns its JSON too.
    pub fn text_and_json(&mut self) -> Result<(Cow<'a, str>, &'a str), Error> {
        self.skip_whitespace();
        let start = self.at;
        let text = self.text()?;
        Ok((text, self.text.get(start..self.at).unwrap_or_default()))
    }

    /// Reads the next value, a string: what stands between its quotes, and whether that has escapes.
    fn string_contents(&mut self) -> Result<(&'a str, bool), Error> {
        self.skip_whitespace();
        if self.byte() != Some(b'"') {
            return Err(self.type_error());
        }
        let start = self.at + 1;
        let has_escapes = self.skip_string()?;
        let contents = self.text.get(start..self.at.saturating_sub(1));
        Ok((contents.unwrap_or_default(), has_escapes))
    }

    /// Reads the next value, a number, and returns its text.
    pub fn number(&mut self) -> Result<&'a str, Error> {
        self.skip_whitespace();
        let start = self.at;
        self.skip_number()?;
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    /// Reads the next value, a boolean.
    pub fn boolean(&mut self) -> Result<bool, Error> {
        self.skip_whitespace();
        match self.byte() {
            Some(b't') => self.expect_literal("true").map(|()| true),
            Some(b'f') => self.expect_literal("false").map(|()| false),
            _ => Err(self.type_error()),
        }
    }

    /// Returns whether the next value is `null`, and consumes it if so.
    pub fn null(&mut self) -> Result<bool, Error> {
        if self.peek()? != Type::Null {
            return Ok(false);
        }
        self.expect_literal("null").map(|()| true)
    }

    /// Skips the next value and returns its text.
    pub fn skip(&mut self) -> Result<&'a str, Error> {
        self.skip_whitespace();
        let start = self.at;
        self.skip_value()?;
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    /// Skips the next value, an array of numbers, and returns its text.
    ///
    /// Cost: for a long array much less than [`Self::skip`], because its numbers are not parsed: bytes that occur in
    /// numbers, commas and white space are accepted in any order.
    pub fn numbers(&mut self) -> Result<&'a str, Error> {
        self.skip_whitespace();
        if self.byte() != Some(b'[') {
            return Err(self.type_error());
        }
        let start = self.at;
        if !self.skip_number_bytes()? {
            self.skip_short_numbers()?;
        }
        Ok(self.text.get(start..self.at).unwrap_or_default())
    }

    /// Checks that only white space is left.
    pub fn end(&mut self) -> Result<(), Error> {
        self.skip_whitespace();
        if self.at == self.text.len() {
            return Ok(());
        }
        Err(Error {
            at: self.at,
            kind: ErrorKind::Trailing,
        })
    }

    fn skip_short_numbers(&mut self) -> Result<(), Error> {
        self.array(|walk, _| walk.number().map(|_| ()))
    }

    fn skip_value(&mut self) -> Result<(), Error> {
        // The loop is iterative, so that deep text cannot overflow the stack.
        let mut open: Vec<u8> = Vec::new();
        loop {
            match self.peek()? {
                Type::Object => {
                    self.open(b'{')?;
                    if !self.close_if_empty(b'}') {
                        open.push(b'}');
                        self.read_key()?;
                        continue;
                    }
                }
                Type::Array => {
                    self.open(b'[')?;
                    if !self.close_if_empty(b']') {
                        open.push(b']');
                        continue;
                    }
                }
                Type::String => _ = self.skip_string()?,
                Type::Number => self.skip_number()?,
                Type::Bool => {
                    self.boolean()?;
                }
                Type::Null => self.expect_literal("null")?,
            }
            loop {
                let Some(&bracket) = open.last() else {
                    return Ok(());
                };
                if !self.next_or_close(bracket)? {
                    if bracket == b'}' {
                        self.read_key()?;
                    }
                    break;
                }
                open.pop();
            }
        }
    }

    /// Reads the next key and the colon after it. Returns the key's text and whether it has escapes.
    fn read_key(&mut self) -> Result<(&'a str, bool), Error> {
        self.skip_whitespace();
        if self.byte() != Some(b'"') {
            return Err(self.syntax_error());
        }
        let start = self.at + 1;
        let has_escapes = self.skip_string()?;
        let key = self.text.get(start..self.at.saturating_sub(1));
        self.expect_byte(b':')?;
        Ok((key.unwrap_or_default(), has_escapes))
    }

    fn open(&mut self, bracket: u8) -> Result<(), Error> {
        self.skip_whitespace();
        if self.byte() != Some(bracket) {
            return Err(self.type_error());
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(Error {
                at: self.at,
                kind: ErrorKind::TooDeep,
            });
        }
        self.at += 1;
        Ok(())
    }

    /// Returns whether the opened array or object is empty, and consumes the closing bracket if so.
    fn close_if_empty(&mut self, bracket: u8) -> bool {
        self.skip_whitespace();
        let is_empty = self.byte() == Some(bracket);
        if is_empty {
            self.at += 1;
            self.depth = self.depth.saturating_sub(1);
        }
        is_empty
    }

    /// Reads the byte after a value. Returns true at the end of the array or object, false after a comma.
    fn next_or_close(&mut self, bracket: u8) -> Result<bool, Error> {
        self.skip_whitespace();
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
            _ => Err(self.syntax_error()),
        }
    }

    fn expect_byte(&mut self, byte: u8) -> Result<(), Error> {
        self.skip_whitespace();
        if self.byte() != Some(byte) {
            return Err(self.syntax_error());
        }
        self.at += 1;
        Ok(())
    }

    fn expect_literal(&mut self, word: &str) -> Result<(), Error> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        if !rest.starts_with(word.as_bytes()) {
            return Err(self.syntax_error());
        }
        self.at += word.len();
        Ok(())
    }

    fn skip_whitespace(&mut self) {
        while matches!(self.byte(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    pub(super) fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn syntax_error(&self) -> Error {
        let kind = if self.at >= self.text.len() {
            ErrorKind::Truncated
        } else {
            ErrorKind::Syntax
        };
        Error { at: self.at, kind }
    }

    pub(super) fn type_error(&self) -> Error {
        match self.byte() {
            Some(b'{' | b'[' | b'"' | b't' | b'f' | b'n' | b'-' | b'0'..=b'9') => Error {
                at: self.at,
                kind: ErrorKind::Type,
            },
            _ => self.syntax_error(),
        }
    }
}
