//! Strings as they stand in a JSON text, and strings that still have to be put into one.

use std::borrow::Cow;

/// A string on its way into a JSON text.
///
/// What comes out of a JSON text and goes into another is never unescaped: its bytes are copied.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Str<'a> {
    /// The inside of a JSON string, without the quotes, escapes as they came.
    Raw(&'a str),
    /// Text without escapes.
    Plain(&'a str),
}

impl<'a> Str<'a> {
    /// Whether there is no text.
    pub fn is_empty(self) -> bool {
        match self {
            Self::Raw(text) | Self::Plain(text) => text.is_empty(),
        }
    }

    /// Its length as written, in bytes.
    pub fn len(self) -> usize {
        match self {
            Self::Raw(text) | Self::Plain(text) => text.len(),
        }
    }

    /// The text without escapes. Cost: allocates only where there are escapes.
    pub fn unescaped(self) -> Cow<'a, str> {
        match self {
            Self::Plain(text) => Cow::Borrowed(text),
            Self::Raw(text) if memchr::memchr(b'\\', text.as_bytes()).is_none() => {
                Cow::Borrowed(text)
            }
            Self::Raw(text) => {
                let quoted = format!("\"{text}\"");
                Cow::Owned(serde_json::from_str(&quoted).unwrap_or_else(|_| text.to_owned()))
            }
        }
    }

    /// Writes the inside of the JSON string, without quotes.
    pub fn write_inside(self, out: &mut Vec<u8>) {
        match self {
            Self::Raw(text) => out.extend_from_slice(text.as_bytes()),
            Self::Plain(text) => write_escaped(text, out),
        }
    }

    /// Writes the JSON string, with quotes.
    pub fn write(self, out: &mut Vec<u8>) {
        out.push(b'"');
        self.write_inside(out);
        out.push(b'"');
    }
}

/// Writes text as the inside of a JSON string.
pub fn write_escaped(text: &str, out: &mut Vec<u8>) {
    let mut rest = text.as_bytes();
    while let Some(at) = special(rest) {
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

/// Where the first byte stands that ends a run of plain text in a JSON string: a quote, a backslash or a control.
///
/// Cost: short strings, as keys are, are looked at eight bytes at once, and long ones in blocks whose bytes the
/// compiler compares all at once; a search that may end at each byte took ten times as long.
pub(super) fn special(bytes: &[u8]) -> Option<usize> {
    const SHORT: usize = 32;
    const BLOCK: usize = 32;
    let Some((head, long)) = bytes.split_at_checked(SHORT) else {
        return special_by_words(bytes);
    };
    if let Some(at) = special_by_words(head) {
        return Some(at);
    }
    let is_clean = |block: &&[u8]| !block.iter().fold(false, |any, &b| any | is_special(b));
    let clean = SHORT + BLOCK * long.chunks_exact(BLOCK).take_while(is_clean).count();
    special_by_words(bytes.get(clean..)?).map(|at| clean + at)
}

fn is_special(b: u8) -> bool {
    (b < 0x20) | (b == b'"') | (b == b'\\')
}

fn special_by_words(bytes: &[u8]) -> Option<usize> {
    let (words, rest) = bytes.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        let found = marks(u64::from_le_bytes(*word));
        if found != 0 {
            return Some(number * 8 + found.trailing_zeros() as usize / 8);
        }
    }
    // Two halves of a word that overlap tell whether there is anything to look for.
    if let (Some([a, b, c, d]), Some([e, f, g, h])) = (rest.first_chunk(), rest.last_chunk())
        && marks(u64::from_le_bytes([*a, *b, *c, *d, *e, *f, *g, *h])) == 0
    {
        return None;
    }
    let at = rest.iter().position(|&b| is_special(b))?;
    Some(words.len() * 8 + at)
}

/// The high bit of each byte that is special. A borrow may set further ones, above the first.
fn marks(word: u64) -> u64 {
    const EACH: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = EACH * 0x80;
    let quote = word ^ (EACH * u64::from(b'"'));
    let slash = word ^ (EACH * u64::from(b'\\'));
    let found = quote.wrapping_sub(EACH) & !quote
        | slash.wrapping_sub(EACH) & !slash
        | word.wrapping_sub(EACH * 0x20) & !word;
    found & HIGH
}
