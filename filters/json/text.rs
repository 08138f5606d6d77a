//! Strings inside a JSON text, and strings to be written into one.

use std::borrow::Cow;

/// A string to be written into a JSON text.
///
/// A string that goes from one JSON text into another is never unescaped: its bytes are copied.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Str<'a> {
    /// The contents of a JSON string without the quotes, escapes as received.
    Raw(&'a str),
    /// Text without escapes.
    Plain(&'a str),
}

impl<'a> Str<'a> {
    /// Returns whether the text is empty.
    pub fn is_empty(self) -> bool {
        match self {
            Self::Raw(text) | Self::Plain(text) => text.is_empty(),
        }
    }

    /// Returns the length in bytes, escapes included.
    pub fn len(self) -> usize {
        match self {
            Self::Raw(text) | Self::Plain(text) => text.len(),
        }
    }

    /// Returns the text without escapes. Cost: allocates only if there are escapes.
    pub fn unescaped(self) -> Cow<'a, str> {
        match self {
            Self::Plain(text) => Cow::Borrowed(text),
            Self::Raw(text) if memchr::memchr(b'\\', text.as_bytes()).is_none() => {
                Cow::Borrowed(text)
            }
            Self::Raw(text) => Cow::Owned(unescape(text).unwrap_or_else(|| text.to_owned())),
        }
    }

    /// Returns the contents of the JSON string, without quotes. Cost: allocates only for text without escapes.
    pub fn contents(self) -> Cow<'a, str> {
        match self {
            Self::Raw(text) => Cow::Borrowed(text),
            Self::Plain(text) => {
                let mut out = Vec::with_capacity(text.len());
                write_escaped(text, &mut out);
                // Escaping text makes text.
                Cow::Owned(String::from_utf8(out).unwrap_or_default())
            }
        }
    }

    /// Returns the number of characters of the text.
    pub fn count_chars(self) -> u64 {
        let text = match self {
            Self::Plain(text) => return text.chars().count() as u64,
            Self::Raw(text) => text,
        };
        let mut count = text.chars().count();
        let mut rest = text.as_bytes();
        while let Some(at) = memchr::memchr(b'\\', rest) {
            let escape = rest.get(at + 1..).unwrap_or_default();
            // The second half of a surrogate pair is no character of its own.
            count = count.saturating_sub(match escape {
                [b'u', b'd' | b'D', b'c'..=b'f' | b'C'..=b'F', ..] => 6,
                [b'u', ..] => 5,
                _ => 1,
            });
            rest = escape.get(1..).unwrap_or_default();
        }
        count as u64
    }

    /// Writes the contents of the JSON string, without quotes.
    pub fn write_contents(self, out: &mut Vec<u8>) {
        match self {
            Self::Raw(text) => out.extend_from_slice(text.as_bytes()),
            Self::Plain(text) => write_escaped(text, out),
        }
    }

    /// Writes the JSON string with quotes.
    pub fn write(self, out: &mut Vec<u8>) {
        out.reserve(self.len() + 2);
        out.push(b'"');
        self.write_contents(out);
        out.push(b'"');
    }
}

/// Escapes `text` and writes it as the contents of a JSON string.
pub fn write_escaped(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    if is_short_and_plain(rest) {
        out.extend_from_slice(rest);
        return;
    }
    while let Some(at) = find_special(rest) {
        let (clean, tail) = rest.split_at(at);
        out.extend_from_slice(clean);
        let Some((&byte, after)) = tail.split_first() else {
            return;
        };
        match byte {
            b'"' => out.extend_from_slice(br#"\""#),
            b'\\' => out.extend_from_slice(br"\\"),
            b'\n' => out.extend_from_slice(br"\n"),
            b'\r' => out.extend_from_slice(br"\r"),
            b'\t' => out.extend_from_slice(br"\t"),
            _ => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
        }
        rest = after;
    }
    out.extend_from_slice(rest);
}

/// Splits a JSON string without escapes into its contents and the rest, which begins at the closing quote. `bytes`
/// begins after the opening quote. Returns `None` if the string has escapes or does not end.
pub fn split_plain_string(bytes: &[u8]) -> Option<(&str, &[u8])> {
    let (text, rest) = bytes.split_at_checked(find_special(bytes)?)?;
    let text = std::str::from_utf8(text).ok()?;
    rest.starts_with(b"\"").then_some((text, rest))
}

/// Returns the length of a string of less than 16 bytes without escapes, which keys and most words are. `bytes`
/// begins after the opening quote. Returns `None` for any other string.
#[inline]
pub(super) fn short_string_length(bytes: &[u8]) -> Option<usize> {
    for start in [0, 8] {
        let word = bytes.get(start..)?.first_chunk()?;
        let special = mark_special(u64::from_le_bytes(*word));
        if special != 0 {
            let length = start + special.trailing_zeros() as usize / 8;
            return (bytes.get(length) == Some(&b'"')).then_some(length);
        }
    }
    None
}

/// Finds the first byte that ends a run of plain text in a JSON string: a quote, a backslash or a control character.
///
/// Cost: short strings such as keys are compared eight bytes at once. Longer ones are compared in blocks, which the
/// compiler vectorises; a loop that may end at each byte took ten times as long. Long plain text after these blocks
/// is searched in windows, at a fifth of the cost of blocks. A window has an end: otherwise a text with a line end
/// every few bytes would be searched to its end for each of them.
pub(super) fn find_special(bytes: &[u8]) -> Option<usize> {
    const SHORT: usize = 32;
    const BLOCKS: usize = 4;
    let Some((head, long)) = bytes.split_at_checked(SHORT) else {
        return find_special_by_words(bytes);
    };
    if let Some(at) = find_special_by_words(head) {
        return Some(at);
    }
    let blocks = count_plain_blocks(long, BLOCKS);
    let mut plain = SHORT + blocks * BLOCK;
    if blocks == BLOCKS {
        plain += WINDOW * count_plain_windows(bytes.get(plain..)?);
        plain += BLOCK * count_plain_blocks(bytes.get(plain..)?, usize::MAX);
    }
    find_special_by_words(bytes.get(plain..)?).map(|at| plain + at)
}

/// Finds it likewise in a JSON text, behind the opening quote of a string. The string ends before long, so the end or an escape is
/// searched first, and control characters only before it.
///
/// Cost: a long text is searched in windows, which stay in the cache of the processor between the two.
pub(super) fn find_special_in_string(bytes: &[u8]) -> Option<usize> {
    const SHORT: usize = 32;
    const WINDOW: usize = 4096;
    let Some(head) = bytes.get(..SHORT) else {
        return find_special_by_words(bytes);
    };
    if let Some(at) = find_special_by_words(head) {
        return Some(at);
    }
    let windows = bytes.chunks(WINDOW).enumerate();
    for (number, window) in windows {
        let end = memchr::memchr2(b'"', b'\\', window);
        let before = end.and_then(|end| window.get(..end)).unwrap_or(window);
        let at = match has_control(before) {
            true => find_special_by_words(before),
            false => end,
        };
        if let Some(at) = at {
            return Some(number * WINDOW + at);
        }
    }
    None
}

/// Returns whether bytes hold a control character.
///
/// Cost: four words at once, which the compiler vectorises.
fn has_control(bytes: &[u8]) -> bool {
    let mark = |word: &[u8; 8]| mark_control(u64::from_le_bytes(*word));
    // The last word overlaps the one before.
    let Some(last) = bytes.last_chunk() else {
        return bytes.iter().any(|&b| b < 0x20);
    };
    let (words, _) = bytes.as_chunks::<8>();
    let (blocks, words) = words.as_chunks::<4>();
    let mut any = [mark(last), 0, 0, 0];
    for [a, b, c, d] in blocks {
        let [e, f, g, h] = any;
        any = [e | mark(a), f | mark(b), g | mark(c), h | mark(d)];
    }
    let [a, b, c, d] = any;
    let any = words
        .iter()
        .fold(a | b | c | d, |any, word| any | mark(word));
    any & HIGH != 0
}

const BLOCK: usize = 32;
const WINDOW: usize = 512;

/// Counts the plain blocks at the start, up to `most`.
fn count_plain_blocks(bytes: &[u8], most: usize) -> usize {
    let is_plain = |block: &&[u8]| !block.iter().fold(false, |any, &b| any | is_special(b));
    let blocks = bytes.chunks_exact(BLOCK).take(most);
    blocks.take_while(is_plain).count()
}

/// Counts the plain windows at the start.
fn count_plain_windows(bytes: &[u8]) -> usize {
    let is_plain = |window: &&[u8]| {
        let least = window.iter().fold(u8::MAX, |least, &b| least.min(b));
        least >= 0x20 && memchr::memchr2(b'"', b'\\', window).is_none()
    };
    bytes.chunks_exact(WINDOW).take_while(is_plain).count()
}

/// Returns whether a text is plain, for texts as short as most names. Returns false for every other text, plain or
/// not.
///
/// Cost: no branch per byte, because the last word overlaps the one before.
fn is_short_and_plain(bytes: &[u8]) -> bool {
    const SHORT: usize = 64;
    if bytes.len() > SHORT {
        return false;
    }
    let mark = |word: &[u8; 8]| mark_special(u64::from_le_bytes(*word));
    let Some(last) = bytes.last_chunk::<8>() else {
        return !bytes.iter().fold(false, |any, &b| any | is_special(b));
    };
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().fold(mark(last), |any, word| any | mark(word)) == 0
}

fn is_special(b: u8) -> bool {
    (b < 0x20) | (b == b'"') | (b == b'\\')
}

fn find_special_by_words(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let special = mark_special(u64::from_le_bytes(*word));
        if special != 0 {
            return Some(number * 8 + special.trailing_zeros() as usize / 8);
        }
    }
    // Two overlapping halves of a word show whether the rest needs a search.
    if let (Some([a, b, c, d]), Some([e, f, g, h])) = (rest.first_chunk(), rest.last_chunk())
        && mark_special(u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h])) == 0
    {
        return None;
    }
    let at = rest.iter().position(|&b| is_special(b))?;
    Some(words.len() * 8 + at)
}

/// One in each byte of a word.
const EACH: u64 = u64::from_le_bytes([1; 8]);
/// The high bit of each byte of a word.
const HIGH: u64 = EACH * 0x80;

/// Sets the high bit of each special byte. A borrow may also set bits above the first of these.
fn mark_special(word: u64) -> u64 {
    let quote = word ^ (EACH * u64::from(b'"'));
    let slash = word ^ (EACH * u64::from(b'\\'));
    let special =
        quote.wrapping_sub(EACH) & !quote | slash.wrapping_sub(EACH) & !slash | mark_control(word);
    special & HIGH
}

/// Sets the high bit of each control character likewise, and any other bits.
fn mark_control(word: u64) -> u64 {
    word.wrapping_sub(EACH * 0x20) & !word
}

/// Returns the text of a JSON string's contents; `None`: an escape is broken.
fn unescape(contents: &str) -> Option<String> {
    let mut out = String::with_capacity(contents.len());
    let mut rest = contents;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (plain, escape) = rest.split_at_checked(at)?;
        out.push_str(plain);
        let (letter, behind) = (*escape.as_bytes().get(1)?, escape.get(2..)?);
        let (character, behind) = match letter {
            b'"' | b'\\' | b'/' => (char::from(letter), behind),
            b'b' => ('\u{8}', behind),
            b'f' => ('\u{c}', behind),
            b'n' => ('\n', behind),
            b'r' => ('\r', behind),
            b't' => ('\t', behind),
            b'u' => unescape_unit(behind)?,
            _ => return None,
        };
        out.push(character);
        rest = behind;
    }
    out.push_str(rest);
    Some(out)
}

/// Returns the character of the digits of `\uXXXX`, or of a pair of them, and what follows.
fn unescape_unit(digits: &str) -> Option<(char, &str)> {
    let unit = |digits: &str| {
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        u16::from_str_radix(digits, 16).ok().filter(|_| is_hex)
    };
    let (first, rest) = digits.split_at_checked(4)?;
    let first = unit(first)?;
    if !(0xD800..0xDC00).contains(&first) {
        return Some((char::from_u32(first.into())?, rest));
    }
    let (second, rest) = rest.strip_prefix("\\u")?.split_at_checked(4)?;
    let pair = char::decode_utf16([first, unit(second)?]).next()?;
    Some((pair.ok()?, rest))
}
