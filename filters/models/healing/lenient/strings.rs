//! Quoted text of a value that is nearly JSON.

use super::Reader;
use super::words::{cut_value, literal};

/// Quotation marks, each with its closing one.
const QUOTES: [(char, char); 5] = [
    ('"', '"'),
    ('\'', '\''),
    ('\u{201c}', '\u{201d}'),
    ('\u{2018}', '\u{2019}'),
    ('`', '`'),
];

/// Returns the mark that closes a quotation; `None`: it is not a quotation mark.
pub(super) fn closing(open: char) -> Option<char> {
    let mut quotes = QUOTES.iter();
    quotes
        .find(|(known, _)| *known == open)
        .map(|(_, close)| *close)
}

impl Reader<'_> {
    /// Reads a string in any quotation marks; at the end of the text it ends.
    pub(super) fn string(&mut self) -> Option<String> {
        let open = self.step()?;
        let close = closing(open)?;
        self.is_fixed |= open != '"';
        let mut text = String::new();
        loop {
            let Some(next) = self.step() else {
                self.is_cut = true;
                return Some(text);
            };
            match next {
                '\\' => self.escape(&mut text),
                mark if mark == close || mark == open => {
                    if self.ends_string(mark) {
                        return Some(text);
                    }
                    self.is_fixed = true;
                    text.push(mark);
                }
                other => {
                    self.is_fixed |= other < ' ';
                    text.push(other);
                }
            }
        }
    }

    /// Returns whether a quotation mark ends its string: what follows goes on with the value around it.
    fn ends_string(&self, mark: char) -> bool {
        let rest = self.rest();
        let behind = rest.trim_start();
        let Some(next) = behind.chars().next() else {
            return true;
        };
        match next {
            ':' | '}' | ']' | '/' | '#' | ';' | '=' => true,
            ',' => {
                // Behind the comma of a list or an object comes a value or a key, and not a word of the sentence.
                let behind = behind.get(1..).unwrap_or_default().trim_start();
                !behind.starts_with(char::is_alphabetic) || begins_member(behind)
            }
            // Without a comma: the next string begins in its own line.
            other => {
                let gap = rest.len() - behind.len();
                let gap = rest.get(..gap).unwrap_or_default();
                other == mark && gap.contains('\n')
            }
        }
    }

    fn escape(&mut self, text: &mut String) {
        let Some(next) = self.step() else { return };
        match next {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'r' => text.push('\r'),
            'b' => text.push('\u{8}'),
            'f' => text.push('\u{c}'),
            '"' | '\\' | '/' => text.push(next),
            'u' => self.code_point(4, 'u', text),
            'x' => {
                self.is_fixed = true;
                self.code_point(2, 'x', text);
            }
            '\n' => self.is_fixed = true,
            // A path, a formula or an expression, whose backslash means itself.
            other if other.is_alphanumeric() => {
                self.is_fixed = true;
                text.extend(['\\', other]);
            }
            // A mark of another language, escaped as that wants it.
            other => {
                self.is_fixed = true;
                text.push(other);
            }
        }
    }

    /// Reads an escaped character of so many hexadecimal digits, and the other half of a surrogate pair.
    fn code_point(&mut self, digits: usize, letter: char, text: &mut String) {
        let Some(first) = hexadecimal(self.rest(), digits) else {
            if self.rest().len() < digits && self.rest().bytes().all(|b| b.is_ascii_hexdigit()) {
                // The text ends inside of it.
                self.at = self.text.len();
            } else {
                self.is_fixed = true;
                text.extend(['\\', letter]);
            }
            return;
        };
        self.at += digits;
        let code = match self.low_half(first) {
            Some(low) => {
                self.at += 2 + digits;
                0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00)
            }
            None => first,
        };
        let character = char::from_u32(code);
        self.is_fixed |= character.is_none();
        text.push(character.unwrap_or(char::REPLACEMENT_CHARACTER));
    }

    /// Returns the second half of a surrogate pair, which stands next.
    fn low_half(&self, high: u32) -> Option<u32> {
        if !(0xd800..0xdc00).contains(&high) {
            return None;
        }
        let low = hexadecimal(self.rest().strip_prefix("\\u")?, 4)?;
        (0xdc00..0xe000).contains(&low).then_some(low)
    }
}

fn hexadecimal(text: &str, digits: usize) -> Option<u32> {
    let digits = text.get(..digits)?;
    let is_hexadecimal = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_hexadecimal.then(|| u32::from_str_radix(digits, 16).ok())?
}

/// Returns whether a text begins with a bare key, or a word that stands for a value.
fn begins_member(text: &str) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-');
    let end = text.find(|c| !is_word(c)).unwrap_or(text.len());
    let (word, rest) = text.split_at_checked(end).unwrap_or_default();
    let follows = rest.trim_start();
    if follows.is_empty() {
        return cut_value(word).is_some();
    }
    let is_value = literal(word).is_some();
    follows.starts_with([':', '=']) || is_value && follows.starts_with([',', ']', '}'])
}
