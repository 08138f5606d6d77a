//! Reads a JSON body as it arrives: the long data of data URLs is passed on, and only its position stays.
//!
//! The rest of the body is also a JSON text, in which the middle of some strings is missing. It is valid and has the
//! same meaning for code that reads only the first characters of a data URL: the missing data is only base64, white
//! space and line ends.

use std::ops::Range;

use bytes::Bytes;
use sha2::{Digest, Sha256};

/// The base64 characters of a data URL that stay. They suffice to recognise an image.
pub const KEPT_CHARS: usize = 1 << 20;
/// The base64 characters that stay of a data URL of type `application/…`, which is not an image.
pub const KEPT_APPLICATION_CHARS: usize = 1 << 16;
const APPLICATION: &[u8] = b"application";
const SCHEME: &[u8] = b"data:";

/// A body without its long data.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SpooledJson {
    /// The body without the long data.
    pub body: Bytes,
    /// The missing data, in order.
    pub data: Vec<SpooledData>,
}

/// Data that is missing in a body.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SpooledData {
    /// The offset in the body at which the data belongs, inside a string.
    pub at: usize,
    /// The range of the data in the bytes of all data.
    pub range: Range<u64>,
    /// The SHA-256 of the data.
    pub digest: [u8; 32],
}

/// Reads a body in pieces of any size.
#[derive(Debug)]
pub struct SpooledJsonReader {
    /// The characters that stay of data that may be an image, and of other data.
    kept_chars: [usize; 2],
    body: Vec<u8>,
    /// The offset in the body at which the current string begins.
    string_at: usize,
    data: Vec<SpooledData>,
    /// The hash of the current data.
    hash: Sha256,
    state: State,
    /// Whether the previous byte was a backslash.
    is_escaped: bool,
}

/// The place of the next byte.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Outside of strings.
    Outside,
    /// In a string whose first bytes, this many, are those of [`SCHEME`].
    Scheme(usize),
    /// In any other string, or after the missing data of one.
    Text,
    /// In a data URL before its comma.
    Head,
    /// In the data, of which this many more characters stay.
    Kept(usize),
    /// In data that is passed on.
    Spooled,
}

impl SpooledJsonReader {
    /// Begins a body. It takes memory as it comes.
    #[expect(
        clippy::new_without_default,
        reason = "there is more than one beginning"
    )]
    pub fn new() -> Self {
        Self::with_kept_chars([KEPT_CHARS, KEPT_APPLICATION_CHARS])
    }

    fn with_kept_chars(kept_chars: [usize; 2]) -> Self {
        Self {
            kept_chars,
            body: Vec::new(),
            string_at: 0,
            data: Vec::new(),
            hash: Sha256::new(),
            state: State::Outside,
            is_escaped: false,
        }
    }

    /// Reads a piece, and appends long data in it to `spooled`.
    ///
    /// Cost: one copy of the piece, and a hash of the long data. Text that is not JSON stays unchanged.
    pub fn feed(&mut self, mut piece: &[u8], spooled: &mut Vec<u8>) {
        while let [byte, behind @ ..] = piece {
            let run = piece.get(..self.run(piece)).unwrap_or_default();
            if run.is_empty() {
                self.step(*byte, spooled);
                piece = behind;
                continue;
            }
            match self.state {
                State::Spooled => self.spool(run, spooled),
                _ => self.body.extend_from_slice(run),
            }
            piece = piece.get(run.len()..).unwrap_or_default();
        }
    }

    /// Returns how much memory the body takes, with the room for what comes next.
    pub fn held_bytes(&self) -> usize {
        self.body.capacity()
    }

    /// Returns the body.
    pub fn finish(mut self) -> SpooledJson {
        if self.state == State::Spooled {
            self.end_data();
            if self.is_escaped {
                self.body.push(b'\\');
            }
        }
        SpooledJson {
            body: self.body.into(),
            data: self.data,
        }
    }

    /// Returns how many of the next bytes do not change the state.
    fn run(&self, piece: &[u8]) -> usize {
        let end = match self.state {
            _ if self.is_escaped => Some(0),
            State::Outside => memchr::memchr(b'"', piece),
            State::Text => memchr::memchr2(b'"', b'\\', piece),
            State::Spooled => piece.iter().position(|b| !is_base64(*b) && *b != b' '),
            State::Scheme(_) | State::Head | State::Kept(_) => Some(0),
        };
        end.unwrap_or(piece.len())
    }

    fn step(&mut self, byte: u8, spooled: &mut Vec<u8>) {
        let was_escaped = std::mem::take(&mut self.is_escaped);
        if self.state == State::Spooled {
            match (was_escaped, byte) {
                (true, b'/' | b'n' | b'r' | b't') => return self.spool(&[b'\\', byte], spooled),
                (false, b'\\') => return self.is_escaped = true,
                _ => {}
            }
            self.end_data();
            if was_escaped {
                // The backslash of another escape was held back until now.
                self.body.push(b'\\');
            }
        }
        self.body.push(byte);
        self.state = match (self.state, byte) {
            (State::Scheme(_), _) if was_escaped => State::Text,
            (state, _) if was_escaped => state,
            (State::Outside, b'"') => {
                self.string_at = self.body.len();
                State::Scheme(0)
            }
            (State::Outside, _) => State::Outside,
            (_, b'"') => State::Outside,
            (state, b'\\') => {
                self.is_escaped = true;
                state
            }
            (State::Scheme(came), _) => match SCHEME.get(came) {
                Some(next) if !next.eq_ignore_ascii_case(&byte) => State::Text,
                _ if came + 1 == SCHEME.len() => State::Head,
                _ => State::Scheme(came + 1),
            },
            (State::Head, b',') => State::Kept(self.kept_char_count()),
            (State::Kept(left), _) if is_base64(byte) => match left {
                ..=1 => self.begin_data(),
                _ => State::Kept(left - 1),
            },
            (state, _) => state,
        };
    }

    /// Returns how many characters stay of the current data URL, whose head has arrived.
    fn kept_char_count(&self) -> usize {
        let start = self.string_at + SCHEME.len();
        let named = self.body.get(start..start + APPLICATION.len());
        let is_application = named.is_some_and(|named| named.eq_ignore_ascii_case(APPLICATION));
        let [image, other] = self.kept_chars;
        if is_application { other } else { image }
    }

    fn begin_data(&mut self) -> State {
        let start = self.data.last().map_or(0, |last| last.range.end);
        self.data.push(SpooledData {
            at: self.body.len(),
            range: start..start,
            digest: [0; 32],
        });
        State::Spooled
    }

    fn spool(&mut self, bytes: &[u8], spooled: &mut Vec<u8>) {
        spooled.extend_from_slice(bytes);
        self.hash.update(bytes);
        if let Some(data) = self.data.last_mut() {
            data.range.end += bytes.len() as u64;
        }
    }

    fn end_data(&mut self) {
        let digest = self.hash.finalize_reset().into();
        if let Some(data) = self.data.last_mut() {
            data.digest = digest;
        }
        self.data.pop_if(|data| data.range.is_empty());
        self.state = State::Text;
    }
}

fn is_base64(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'=' | b'-' | b'_')
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use proptest::prelude::*;

    use super::*;

    fn read(kept_chars: usize, pieces: &[&[u8]]) -> (SpooledJson, Vec<u8>) {
        let mut reader = SpooledJsonReader::with_kept_chars([kept_chars, 2]);
        let mut spooled = Vec::new();
        for piece in pieces {
            reader.feed(piece, &mut spooled);
        }
        (reader.finish(), spooled)
    }

    /// What stays of a body, with `<data>` in the places of what goes on.
    fn shown(body: &str) -> String {
        let (read, spooled) = read(4, &[body.as_bytes()]);
        let mut shown = String::from_utf8(read.body.to_vec()).unwrap();
        for data in read.data.iter().rev() {
            let range = data.range.start as usize..data.range.end as usize;
            let text = std::str::from_utf8(&spooled[range.clone()]).unwrap();
            shown.insert_str(data.at, &format!("<{text}>"));
            assert_eq!(
                data.digest,
                <[u8; 32]>::from(Sha256::digest(&spooled[range]))
            );
        }
        shown
    }

    #[test]
    fn the_long_data_of_data_urls_goes_on_and_nothing_else() {
        for (body, expected) in [
            (
                r#"{"a":"data:x;base64,QUJDREVG","b":1}"#,
                r#"{"a":"data:x;base64,QUJD<REVG>","b":1}"#,
            ),
            (
                r#"["DATA:;a=\",\",Q=-_\/\n /+A\u003d=","data:,abcdef","data:,abcd"]"#,
                r#"["DATA:;a=\",\",Q=-_<\/\n /+A>\u003d=","data:,abcd<ef>","data:,abcd"]"#,
            ),
            (
                r#""data:Application\/pdf,abcdef""#,
                r#""data:Application\/pdf,ab<cdef>""#,
            ),
            (
                r#""data:applicatio,abcdef""#,
                r#""data:applicatio,abcd<ef>""#,
            ),
            (r#""data:,abcdef%gh""#, r#""data:,abcd<ef>%gh""#),
            (r#""data:,ab\"cdef""#, r#""data:,ab\"cd<ef>""#),
            (r#""data:,abcde\"f""#, r#""data:,abcd<e>\"f""#),
            (r#""data:,abcdef\"#, r#""data:,abcd<ef>\"#),
            (r#""data:,abcdef"#, r#""data:,abcd<ef>"#),
            (r#""\u0064ata:,abcdef""#, r#""\u0064ata:,abcdef""#),
            (r#""data\:,abcdef""#, r#""data\:,abcdef""#),
            (r#""date:,abcdef""#, r#""date:,abcdef""#),
            (r#"data:,abcdef"#, r#"data:,abcdef"#),
            (r#"" data:,abcdef""#, r#"" data:,abcdef""#),
            (r#""\\","data:,abcdef""#, r#""\\","data:,abcd<ef>""#),
        ] {
            assert_eq!(shown(body), expected, "{body}");
        }
    }

    #[test]
    fn of_long_data_only_the_beginning_stays() {
        let mut reader = SpooledJsonReader::new();
        let mut spooled = Vec::new();
        reader.feed(br#"{"a":"data:application/pdf;base64,"#, &mut spooled);
        for _ in 0..400 {
            reader.feed(&[b'A'; 65_536], &mut spooled);
            spooled.clear();
        }
        reader.feed(b"\"}", &mut spooled);
        assert!(reader.held_bytes() < 2 * (KEPT_APPLICATION_CHARS + 100));
        let read = reader.finish();
        assert!(read.body.len() < KEPT_APPLICATION_CHARS + 100);
        assert_eq!(read.data[0].range, 0..399 * 65_536);
    }

    #[test]
    fn a_body_takes_memory_as_it_comes() {
        let mut reader = SpooledJsonReader::new();
        assert_eq!(reader.held_bytes(), 0);
        reader.feed(b"{", &mut Vec::new());
        assert!(reader.held_bytes() < 100);
    }

    proptest! {
        #[test]
        fn a_body_is_the_same_wherever_it_is_cut(
            parts in prop::collection::vec(prop::sample::select(vec![
                "\"", "data:", "DATA:", "application/", ",", "abcdefgh", "=", "\\", "\\/", "\\n", "\\\"", "\\u0041", " ", "{", "}", "é", "%",
            ]), 0..40),
            cuts in prop::collection::vec(1..9_usize, 1..40),
        ) {
            let body = parts.concat();
            let whole = read(4, &[body.as_bytes()]);
            let (mut pieces, mut rest) = (Vec::new(), body.as_bytes());
            for cut in cuts {
                let (piece, behind) = rest.split_at(cut.min(rest.len()));
                pieces.push(piece);
                rest = behind;
            }
            pieces.push(rest);
            prop_assert_eq!(&read(4, &pieces), &whole);
            // With the missing data in its place the body is the one that came.
            let (mut joined, mut from) = (Vec::new(), 0);
            for data in &whole.0.data {
                joined.extend_from_slice(&whole.0.body[from..data.at]);
                joined.extend_from_slice(&whole.1[data.range.start as usize..data.range.end as usize]);
                from = data.at;
            }
            joined.extend_from_slice(&whole.0.body[from..]);
            prop_assert_eq!(joined, body.as_bytes());
            // What stays is JSON where the body is.
            let is_json = |text: &[u8]| serde_json::from_slice::<serde_json::Value>(text).is_ok();
            prop_assert_eq!(is_json(&whole.0.body), is_json(body.as_bytes()));
        }
    }
}
