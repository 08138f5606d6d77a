//! Parses form-encoded queries, and the media type of a head.

use std::borrow::Cow;

use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue};

/// A `name=value` pair of a query as received.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Pair<'q> {
    /// The text before the first `=`.
    pub name: &'q str,
    /// The text after the first `=`, or an empty text.
    pub value: &'q str,
}

impl<'q> Pair<'q> {
    /// Returns the decoded name.
    pub fn decoded_name(self) -> Cow<'q, str> {
        decode(self.name)
    }

    /// Returns the decoded value.
    pub fn decoded_value(self) -> Cow<'q, str> {
        decode(self.value)
    }
}

/// Iterates over the pairs of a query, which has no leading `?`.
pub fn pairs(query: &str) -> impl Iterator<Item = Pair<'_>> {
    query
        .split('&')
        .filter(|pair| !pair.is_empty())
        .map(|pair| {
            // Same as `split_once`, without its cost for patterns of several bytes.
            let equals = memchr::memchr(b'=', pair.as_bytes());
            let parts = equals.and_then(|at| Some((pair.get(..at)?, pair.get(at + 1..)?)));
            let (name, value) = parts.unwrap_or((pair, ""));
            Pair { name, value }
        })
}

/// Iterates over the decoded values of a parameter, in order.
pub fn values<'q>(query: &'q str, name: &str) -> impl Iterator<Item = Cow<'q, str>> {
    pairs(query)
        .filter(move |pair| pair.decoded_name() == name)
        .map(Pair::decoded_value)
}

/// Decodes `+` to a space and `%xx` to its byte. Invalid escapes remain, and invalid UTF-8 becomes U+FFFD.
///
/// Cost: a text without `+` and `%` is borrowed.
pub fn decode(text: &str) -> Cow<'_, str> {
    if !text.bytes().any(|byte| byte == b'%' || byte == b'+') {
        return Cow::Borrowed(text);
    }
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let escape = after.split_first_chunk::<2>().filter(|_| byte == b'%');
        let escaped = escape.and_then(|([high, low], after)| Some((hex(*high, *low)?, after)));
        let space = if byte == b'+' { b' ' } else { byte };
        let (byte, after) = escaped.unwrap_or((space, after));
        decoded.push(byte);
        rest = after;
    }
    Cow::Owned(String::from_utf8_lossy(&decoded).into_owned())
}

/// Returns the media type of `Content-Type` without parameters, or an empty slice.
pub fn media_type(headers: &HeaderMap) -> &[u8] {
    let value = headers.get(CONTENT_TYPE);
    let value = value.map_or(&b""[..], HeaderValue::as_bytes);
    let essence = value.split(|&b| b == b';').next();
    essence.unwrap_or_default().trim_ascii()
}

fn hex(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_query_is_its_pairs() {
        let texts = |query| {
            let texts = pairs(query).map(|pair| format!("{}|{}", pair.decoded_name(), pair.value));
            texts.collect::<Vec<_>>()
        };
        assert_eq!(texts("a=1&&b=2=3&c&%64="), ["a|1", "b|2=3", "c|", "d|"]);
        assert!(texts("").is_empty());
    }

    #[test]
    fn what_is_no_escape_stays() {
        for (text, plain) in [
            ("a+b%2B", "a b+"),
            ("%", "%"),
            ("%4", "%4"),
            ("%zz%%41", "%zz%A"),
            ("%ff", "\u{fffd}"),
            ("%c3%A9", "é"),
        ] {
            assert_eq!(decode(text), plain);
        }
    }

    proptest! {
        #[test]
        fn an_encoded_text_is_the_text(text: String) {
            let encoded: String = text.bytes().map(|byte| format!("%{byte:02x}")).collect();
            prop_assert_eq!(decode(&encoded), text);
        }
    }
}
