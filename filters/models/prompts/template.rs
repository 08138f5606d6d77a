//! The messages of a prompt, cut once into what stays and what a request fills in.
//!
//! `{{name}}` in any text of a message is a variable: a letter or `_`, then letters, digits, `_`, `.` and `-`; white space
//! inside the braces is allowed. Values are put in as text and never expanded.

use std::ops::Range;

use crate::json::{Str, Walker, write_escaped};

use super::tree::Node;

const OPENING: &str = "{{";
const CLOSING: &str = "}}";

/// A value of a variable.
#[derive(Clone, Copy, Debug)]
pub enum PromptValue<'a> {
    Text(Str<'a>),
    /// A number, as it is written.
    Number(&'a str),
    /// `true` or `false`.
    Bool(bool),
}

impl<'a> PromptValue<'a> {
    /// Returns a value of JSON; an object as its text, which is how prompts show one.
    pub fn from_json(json: &'a str) -> Self {
        match (Walker::over(json).string().ok(), json) {
            (Some(text), _) => Self::Text(text),
            (None, "true" | "false") => Self::Bool(json == "true"),
            (None, object) if object.starts_with('{') => Self::Text(Str::Plain(object)),
            (None, number) => Self::Number(number),
        }
    }
}

impl PromptValue<'_> {
    fn write(self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => text.write_contents(out),
            Self::Number(number) => out.extend_from_slice(number.as_bytes()),
            Self::Bool(flag) => out.extend_from_slice(if flag { b"true" } else { b"false" }),
        }
    }

    /// Returns about as many bytes as the value takes.
    fn len(self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Number(number) => number.len(),
            Self::Bool(_) => 5,
        }
    }
}

/// Bytes that stay, and the variable that follows them.
#[derive(Clone, Debug)]
struct Piece {
    literal: Range<usize>,
    variable: Option<usize>,
}

/// Messages as JSON, without the brackets around them, in pieces.
#[derive(Clone, Debug, Default)]
pub struct Template {
    text: Box<str>,
    pieces: Vec<Piece>,
}

/// A part of a text.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum TextPart<'a> {
    /// Text that stays.
    Literal(&'a str),
    Variable(&'a str),
    /// Braces around something that is not a name, or that are not closed.
    Malformed(&'a str),
}

impl Template {
    /// Compiles messages; `number` returns the number of a variable.
    pub(super) fn compile(messages: &[Node], mut number: impl FnMut(&str) -> usize) -> Self {
        let mut text = Vec::new();
        let mut pieces = Vec::new();
        let mut start = 0;
        for (at, message) in messages.iter().enumerate() {
            if at > 0 {
                text.push(b',');
            }
            message.write(&mut text, &mut |value, text| {
                text.push(b'"');
                for part in text_parts(value) {
                    match part {
                        TextPart::Variable(name) => {
                            pieces.push(Piece {
                                literal: start..text.len(),
                                variable: Some(number(name)),
                            });
                            start = text.len();
                        }
                        TextPart::Literal(literal) | TextPart::Malformed(literal) => {
                            write_escaped(literal, text);
                        }
                    }
                }
                text.push(b'"');
            });
        }
        pieces.push(Piece {
            literal: start..text.len(),
            variable: None,
        });
        Self {
            text: String::from_utf8(text).unwrap_or_default().into(),
            pieces,
        }
    }

    /// Returns about as many bytes as [`Self::render`] writes; escapes of texts that have none yet may add to them.
    pub fn rendered_bytes(&self, values: &[PromptValue<'_>]) -> usize {
        let variables = self.pieces.iter().filter_map(|piece| piece.variable);
        let values = variables.filter_map(|number| values.get(number));
        values.fold(self.text.len(), |sum, value| {
            sum.saturating_add(value.len())
        })
    }

    /// Writes the messages with these values, by the numbers of their variables.
    ///
    /// Cost: one copy of each piece; a value without escapes is copied in runs.
    pub fn render(&self, values: &[PromptValue<'_>], out: &mut Vec<u8>) {
        for piece in &self.pieces {
            let literal = self.text.as_bytes().get(piece.literal.clone());
            out.extend_from_slice(literal.unwrap_or_default());
            if let Some(value) = piece.variable.and_then(|number| values.get(number)) {
                value.write(out);
            }
        }
    }
}

/// Returns the parts of a text.
pub fn text_parts(text: &str) -> impl Iterator<Item = TextPart<'_>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let opening = rest.find(OPENING).unwrap_or(rest.len());
        // Of more braces the inner ones belong to the variable.
        let braces = rest.bytes().skip(opening).take_while(|byte| *byte == b'{');
        let literal = opening + braces.count().saturating_sub(OPENING.len());
        if literal > 0 {
            let (head, tail) = rest.split_at(literal);
            rest = tail;
            return Some(TextPart::Literal(head));
        }
        let inner = rest.get(OPENING.len()..).unwrap_or_default();
        let Some((name, tail)) = inner.split_once(CLOSING) else {
            return Some(TextPart::Malformed(std::mem::take(&mut rest)));
        };
        let whole = rest.get(..name.len() + OPENING.len() + CLOSING.len());
        rest = tail;
        let trimmed = name.trim_ascii();
        Some(match is_variable_name(trimmed) {
            true => TextPart::Variable(trimmed),
            false => TextPart::Malformed(whole.unwrap_or_default()),
        })
    })
}

/// Returns whether a variable may have this name.
pub fn is_variable_name(name: &str) -> bool {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    name.starts_with(|char: char| char.is_ascii_alphabetic() || char == '_')
        && name.len() <= MAX_VARIABLE_NAME_BYTES
        && name.bytes().all(is_inner)
}

/// The longest name of a variable.
const MAX_VARIABLE_NAME_BYTES: usize = 128;
