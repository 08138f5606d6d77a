//! The pull parser.

use std::borrow::Cow;

use super::error::{Error, Type, What};
use super::{MAX_DEPTH, Str};

/// A pull parser over one JSON text.
///
/// Cost: no allocation but for keys that hold escapes; one pass.
#[derive(Debug)]
pub struct Walker<'a> {
    pub(super) text: &'a str,
    pub(super) at: usize,
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
            let (key, has_escapes) = self.key()?;
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
                Type::String => _ = self.skip_string()?,
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

    /// The key that stands next, as written, and whether it holds escapes; the colon behind it is consumed.
    fn key(&mut self) -> Result<(&'a str, bool), Error> {
        self.white();
        if self.byte() != Some(b'"') {
            return Err(self.syntax());
        }
        let start = self.at + 1;
        let has_escapes = self.skip_string()?;
        let key = self.text.get(start..self.at.saturating_sub(1));
        self.expect(b':')?;
        Ok((key.unwrap_or_default(), has_escapes))
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

    pub(super) fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    pub(super) fn syntax(&self) -> Error {
        let what = if self.at >= self.text.len() {
            What::Truncated
        } else {
            What::Syntax
        };
        Error { at: self.at, what }
    }

    pub(super) fn other_type(&self) -> Error {
        match self.byte() {
            Some(b'{' | b'[' | b'"' | b't' | b'f' | b'n' | b'-' | b'0'..=b'9') => Error {
                at: self.at,
                what: What::Type,
            },
            _ => self.syntax(),
        }
    }
}
