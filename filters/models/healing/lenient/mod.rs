//! Reads a value that is nearly JSON, and writes it as JSON.
//!
//! What models make of JSON: comments, other quotation marks, keys without them, commas too many, words of
//! Python and JavaScript, line ends inside of strings, and an end that is missing. [`strings`] reads quoted text, [`words`]
//! the rest; the structure is read here.
//!
//! Cost: one pass. A quotation mark looks ahead, but never beyond the next one.

mod strings;
mod words;

use crate::json::{MAX_DEPTH, write_escaped};

/// A value as JSON.
#[derive(Debug)]
pub(super) struct Repaired {
    pub(super) json: String,
    /// Where it ends in the text. Units: bytes.
    pub(super) end: usize,
    /// Its syntax was not that of JSON.
    pub(super) is_fixed: bool,
    /// The text ended before it did.
    pub(super) is_cut: bool,
    /// Two members stood side by side.
    pub(super) lacks_comma: bool,
}

/// Reads the object or list at the beginning of a text; `None`: it cannot be told what it says.
pub(super) fn repair(text: &str) -> Option<Repaired> {
    if !text.starts_with(['{', '[']) {
        return None;
    }
    let mut reader = Reader {
        text,
        at: 0,
        out: Vec::with_capacity(text.len() + 16),
        depth: 0,
        is_fixed: false,
        is_cut: false,
        lacks_comma: false,
    };
    reader.value()?;
    Some(Repaired {
        json: String::from_utf8(reader.out).ok()?,
        end: reader.at,
        is_fixed: reader.is_fixed,
        is_cut: reader.is_cut,
        lacks_comma: reader.lacks_comma,
    })
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    out: Vec<u8>,
    depth: u32,
    is_fixed: bool,
    is_cut: bool,
    lacks_comma: bool,
}

/// What follows a separator, and how many members came before.
#[derive(Default)]
struct Members {
    count: usize,
    has_separator: bool,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn step(&mut self) -> Option<char> {
        let next = self.peek()?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn take(&mut self, word: &str) -> bool {
        let is_there = self.rest().starts_with(word);
        if is_there {
            self.at += word.len();
        }
        is_there
    }

    /// Skips white space, comments, and the dots with which models leave something out.
    fn space(&mut self) {
        loop {
            let rest = self.rest();
            let behind = rest.trim_start_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
            self.at += rest.len() - behind.len();
            let skipped = comment_length(behind);
            if skipped == 0 {
                return;
            }
            self.is_fixed = true;
            self.at += skipped;
        }
    }

    /// Reads the value that stands next.
    fn value(&mut self) -> Option<()> {
        match self.peek()? {
            '{' => self.nested(Self::object),
            '[' => self.nested(Self::list),
            mark if strings::closing(mark).is_some() => {
                let text = self.string()?;
                self.write(&text);
                Some(())
            }
            _ => self.bare_value(),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Option<()>) -> Option<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return None;
        }
        self.step();
        read(self)?;
        self.depth -= 1;
        Some(())
    }

    fn list(&mut self) -> Option<()> {
        self.out.push(b'[');
        let mut items = Members::default();
        while self.goes_on(']', '}', &mut items) {
            self.separate(&items);
            self.value()?;
            items = items.after_one();
        }
        self.out.push(b']');
        Some(())
    }

    fn object(&mut self) -> Option<()> {
        self.out.push(b'{');
        let mut members = Members::default();
        while self.goes_on('}', ']', &mut members) {
            let before = self.out.len();
            self.separate(&members);
            if !self.member()? {
                // The text ends in a key, which says nothing yet.
                self.out.truncate(before);
                break;
            }
            members = members.after_one();
        }
        self.out.push(b'}');
        Some(())
    }

    /// Reads up to the next item or member; false: there is none, and its bracket, if it is there, is read.
    ///
    /// The bracket of the other kind belongs to what stands around: the own one is missing.
    fn goes_on(&mut self, close: char, other: char, members: &mut Members) -> bool {
        loop {
            self.space();
            match self.peek() {
                None => {
                    self.is_cut = true;
                    return false;
                }
                Some(next) if next == close => {
                    self.step();
                    self.is_fixed |= members.has_separator;
                    return false;
                }
                Some(next) if next == other => {
                    self.is_fixed = true;
                    return false;
                }
                Some(mark @ (',' | ';')) => {
                    self.step();
                    self.is_fixed |= mark == ';' || members.has_separator || members.count == 0;
                    members.has_separator = true;
                }
                Some(_) => {
                    self.lacks_comma |= members.count > 0 && !members.has_separator;
                    return true;
                }
            }
        }
    }

    fn separate(&mut self, members: &Members) {
        if members.count > 0 {
            self.out.push(b',');
        }
    }

    /// Reads a key and its value; `Some(false)`: the text ends before the value.
    fn member(&mut self) -> Option<bool> {
        let key = match self.peek()? {
            mark if strings::closing(mark).is_some() => self.string()?,
            _ => self.bare_key()?,
        };
        self.space();
        if self.rest().is_empty() {
            self.is_cut = true;
            return Some(false);
        }
        if !self.take(":") {
            if !(self.take("=>") || self.take("=")) {
                return None;
            }
            self.is_fixed = true;
        }
        self.space();
        self.write(&key);
        self.out.push(b':');
        match self.peek() {
            None => {
                self.is_cut = true;
                return Some(false);
            }
            // A key without a value.
            Some(',' | '}') => {
                self.is_fixed = true;
                self.out.extend_from_slice(b"null");
            }
            Some(_) => self.value()?,
        }
        Some(true)
    }

    fn write(&mut self, text: &str) {
        self.out.push(b'"');
        write_escaped(text, &mut self.out);
        self.out.push(b'"');
    }
}

impl Members {
    fn after_one(self) -> Self {
        Self {
            count: self.count + 1,
            has_separator: false,
        }
    }
}

/// Returns the length of the comment, or of the dots, with which a text begins; 0: there are none.
fn comment_length(text: &str) -> usize {
    if text.starts_with("//") || text.starts_with('#') {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return text.find("*/").map_or(text.len(), |end| end + 2);
    }
    let dots = ["...", "\u{2026}"];
    let dots = dots.iter().find(|dots| text.starts_with(**dots));
    dots.map_or(0, |dots| dots.len())
}
