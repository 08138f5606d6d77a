//! Normalises a copy of the path. Rules use the copy: the row on which the request counts, and its handler. The
//! forwarded path is unchanged.

use std::borrow::Cow;

use crate::fault::Fault;

/// The reason for which a path is refused: two readers could understand it as two different paths.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum InvalidPath {
    /// `%` without two hexadecimal digits after it.
    BrokenEscape,
    /// `%2f`, `%5c` or `%25`. Their meaning depends on which server decodes them, and how often.
    EncodedSeparator,
    /// A control character such as NUL, plain or encoded.
    Control,
    /// A byte beyond ASCII, plain or encoded.
    BeyondAscii,
    /// A fragment, which requests do not have.
    Fragment,
    /// `..` after `;` or after an empty segment. Some readers count these as a segment that `..` removes, and some do
    /// not.
    AmbiguousParent,
}

impl InvalidPath {
    /// Returns the message for the caller.
    pub fn message(self) -> &'static str {
        match self {
            Self::BrokenEscape => {
                "the path has a `%` that two hexadecimal digits do not follow: encode it"
            }
            Self::EncodedSeparator => {
                "the path has an encoded `/`, `\\` or `%`: send paths without them"
            }
            Self::Control => "the path has a control character: send printable ASCII",
            Self::BeyondAscii => "the path has a byte beyond ASCII: send printable ASCII",
            Self::Fragment => "the path has a `#`: a request has no fragment",
            Self::AmbiguousParent => {
                "the path has a `..` behind a `;` or an empty segment: send the path that is meant"
            }
        }
    }
}

/// Source: docs/decisions.md 18.
impl From<InvalidPath> for Fault {
    fn from(error: InvalidPath) -> Self {
        Self::invalid("path", error.message())
    }
}

/// Returns the normalised copy of `path`, which has no query.
///
/// The copy is decoded once, has `/` for `\`, each segment cut at `;`, no empty or dot segments, no trailing slash, and
/// lower case. Errors: [`InvalidPath`]. Cost: a path that is already normal is borrowed. Source: docs/decisions.md 18;
/// docs/hostile-input.md 46.
pub fn normalise(path: &str) -> Result<Cow<'_, str>, InvalidPath> {
    if is_normal(path) {
        return Ok(Cow::Borrowed(path));
    }
    let decoded = decode(path)?;
    let mut segments: Vec<&str> = Vec::new();
    let mut is_ambiguous = false;
    // The text before the first slash is not a segment.
    for segment in decoded.strip_prefix('/').unwrap_or(&decoded).split('/') {
        is_ambiguous |= segment.is_empty() || segment.contains(';');
        match segment.split(';').next().unwrap_or_default() {
            "" | "." => {}
            ".." if is_ambiguous => return Err(InvalidPath::AmbiguousParent),
            ".." => drop(segments.pop()),
            segment => segments.push(segment),
        }
    }
    Ok(Cow::Owned(format!("/{}", segments.join("/"))))
}

/// Returns whether a segment of a path, as received, begins with `;`, plain or encoded. Such a segment is missing
/// from the normalised copy, so that `/v1/videos/%3B` would mean the list of all videos.
pub fn has_nameless_segment(path: &str) -> bool {
    let mut segments = path.split(['/', '\\']);
    segments.any(|segment| {
        let escape = segment.get(..3);
        segment.starts_with(';') || escape.is_some_and(|it| it.eq_ignore_ascii_case("%3b"))
    })
}

/// Returns true only for normal paths. The check is quick and returns false for some normal paths too.
fn is_normal(path: &str) -> bool {
    let mut before = None;
    for byte in path.bytes() {
        let is_plain = match byte {
            b'/' => before != Some(b'/'),
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => before.is_some(),
            _ => false,
        };
        if !is_plain {
            return false;
        }
        before = Some(byte);
    }
    path == "/" || before.is_some_and(|last| last != b'/')
}

/// Decodes escapes once, with one kind of slash, in lower case.
fn decode(path: &str) -> Result<String, InvalidPath> {
    let mut decoded = String::with_capacity(path.len());
    let mut bytes = path.bytes();
    while let Some(byte) = bytes.next() {
        let byte = match byte {
            b'%' => decode_escape(bytes.next(), bytes.next())?,
            b'#' => return Err(InvalidPath::Fragment),
            byte => byte,
        };
        if !byte.is_ascii() {
            return Err(InvalidPath::BeyondAscii);
        }
        if byte.is_ascii_control() {
            return Err(InvalidPath::Control);
        }
        let byte = if byte == b'\\' { b'/' } else { byte };
        decoded.push(char::from(byte.to_ascii_lowercase()));
    }
    Ok(decoded)
}

fn decode_escape(high: Option<u8>, low: Option<u8>) -> Result<u8, InvalidPath> {
    let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
    let (Some(high), Some(low)) = (digit(high), digit(low)) else {
        return Err(InvalidPath::BrokenEscape);
    };
    match u8::try_from(high * 16 + low) {
        Ok(b'/' | b'\\' | b'%') => Err(InvalidPath::EncodedSeparator),
        Ok(byte) => Ok(byte),
        Err(_) => Err(InvalidPath::BrokenEscape),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn spellings_of_one_path_are_one_path() {
        for path in [
            "/content/v2",
            "//content/v2",
            "/content//v2",
            "/./content/v2",
            "/x/../content/v2",
            "/../content/v2",
            "/content/v2/",
            "/content/v2/.",
            "/content/v2/x/%2e%2E",
            "/CONTENT/V2",
            "/content/v2;a=b",
            "/content;x/v2%3bb",
            "/%63ontent/v2",
            "\\content\\v2",
            "content/v2",
        ] {
            assert_eq!(normalise(path).unwrap(), "/content/v2", "{path}");
        }
    }

    #[test]
    fn paths_with_two_meanings_are_refused() {
        for (path, error) in [
            ("/content%2fv2", InvalidPath::EncodedSeparator),
            ("/content%5Cv2", InvalidPath::EncodedSeparator),
            ("/%2563ontent/v2", InvalidPath::EncodedSeparator),
            ("/content/v2%00", InvalidPath::Control),
            ("/content/v2%0a", InvalidPath::Control),
            ("/content/v2\u{7f}", InvalidPath::Control),
            ("/content/v2%", InvalidPath::BrokenEscape),
            ("/content/v2%4", InvalidPath::BrokenEscape),
            ("/content/v2%+4", InvalidPath::BrokenEscape),
            ("/%u0063ontent/v2", InvalidPath::BrokenEscape),
            ("/content/v2%c3%a9", InvalidPath::BeyondAscii),
            ("/é", InvalidPath::BeyondAscii),
            ("/content/v2#x", InvalidPath::Fragment),
            ("/content/v2//..", InvalidPath::AmbiguousParent),
            ("/x//../content/v2", InvalidPath::AmbiguousParent),
            ("//../content/v2", InvalidPath::AmbiguousParent),
            ("/content/v2/\\..", InvalidPath::AmbiguousParent),
            ("/content//v2/x/%2e%2e", InvalidPath::AmbiguousParent),
            ("/content/v2/x/;/../..", InvalidPath::AmbiguousParent),
            ("/content/v2/x;a/..", InvalidPath::AmbiguousParent),
            ("/content/v2/.;/..", InvalidPath::AmbiguousParent),
            ("/content/v2/x/..;", InvalidPath::AmbiguousParent),
            ("/content/v2/x/%2e.%3bb", InvalidPath::AmbiguousParent),
        ] {
            assert_eq!(normalise(path), Err(error), "{path}");
        }
    }

    #[test]
    fn a_segment_of_parameters_alone_has_no_name() {
        for path in ["/v1/videos/;", "/v1/%3B%29/x", "/v1\\%3ba", "/;a=b/v1"] {
            assert!(has_nameless_segment(path), "{path}");
        }
        for path in ["/v1/videos/a;b", "/v1/%3C", "/v1//x", "/v1/%3", "/v1/é;"] {
            assert!(!has_nameless_segment(path), "{path}");
        }
    }

    #[test]
    fn a_path_that_is_normal_is_borrowed() {
        for path in ["/", "/content/v2", "/api/content/v3/types"] {
            assert!(matches!(normalise(path), Ok(Cow::Borrowed(_))), "{path}");
        }
        assert_eq!(normalise("").unwrap(), "/");
    }

    #[test]
    fn a_bad_path_is_the_callers_fault() {
        assert_eq!(Fault::from(InvalidPath::Control).status(), 400);
    }

    proptest! {
        #[test]
        fn normalising_twice_changes_nothing_more(path in "[/.;%a-cA-C02eE\\\\]{0,24}") {
            if let Ok(once) = normalise(&path) {
                let twice = normalise(&once).map(Cow::into_owned);
                prop_assert_eq!(twice, Ok(once.into_owned()));
            }
        }

        #[test]
        fn any_text_is_normalised_or_refused(path: String) {
            let _ = normalise(&path);
        }
    }
}
