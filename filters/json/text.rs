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
            Self::Raw(text) if !text.contains('\\') => Cow::Borrowed(text),
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
    while let Some(at) = rest
        .iter()
        .position(|&b| b < 0x20 || b == b'"' || b == b'\\')
    {
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
