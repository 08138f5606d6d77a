//! The content of a call for the export of logs: what is asked, and the text of the answer, each up to a bound.
//!
//! What is asked are the members of the body in which the APIs carry it, as they came. Other members are left out, because some
//! hold secrets, such as the authorization of a hosted tool. The text of the answer is copied while it passes from its decoder to
//! its writer, so no reply is read twice, whatever API the client speaks.

use std::ops::Range;

use bytes::Bytes;

use super::chat::piece::Piece;
use super::reply::Sink;
use super::request::Source;
use crate::json::{Object, Str, quoted};

/// The maximum bytes of what is asked, and of the text of an answer.
pub const MAX_CONTENT_BYTES: usize = 64 << 10;

/// The members of bodies that hold what is asked, in all APIs.
const ASKED: [&str; 12] = [
    "messages",
    "input",
    "prompt",
    "instructions",
    "system",
    "contents",
    "systemInstruction",
    "system_instruction",
    "query",
    "documents",
    "questions",
    "document",
];

/// A text up to [`MAX_CONTENT_BYTES`].
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct CutText {
    text: String,
    is_cut: bool,
}

impl CutText {
    /// Returns the start of a text.
    pub fn from_text(text: &str) -> Self {
        let mut cut = Self::default();
        cut.push(text);
        cut
    }

    /// Appends as much of a text as there is room for. From the first character that has none on, nothing is appended.
    pub fn push(&mut self, text: &str) {
        if self.is_cut {
            return;
        }
        let room = MAX_CONTENT_BYTES.saturating_sub(self.text.len());
        let end = text.floor_char_boundary(room);
        self.text.push_str(text.get(..end).unwrap_or_default());
        self.is_cut = end < text.len();
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Returns what a request asks: a JSON object with the members of its body that say it.
pub fn asked(source: &Source) -> CutText {
    let mut out = CutText::default();
    let mut separator = "{";
    for member in &source.members {
        if !ASKED.contains(&&*member.key) {
            continue;
        }
        let value = source.body.get(member.value.clone()).unwrap_or_default();
        // A piece of a text that is cut may end within a character.
        let room = value.get(..MAX_CONTENT_BYTES + 4).unwrap_or(value);
        let Some(value) = valid_start(room) else {
            continue;
        };
        for part in [separator, &quoted(&member.key), ":", value] {
            out.push(part);
        }
        separator = ",";
    }
    if separator == "{" {
        out.push(separator);
    }
    out.push("}");
    out
}

/// Returns the text at the start of bytes; `None`: they are no text.
fn valid_start(bytes: &[u8]) -> Option<&str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => Some(text),
        Err(error) if error.error_len().is_none() => {
            std::str::from_utf8(bytes.get(..error.valid_up_to())?).ok()
        }
        Err(_) => None,
    }
}

/// Writes the members of the content: `request`, `answer`, and `content_cut` if one of them is not whole.
pub fn write(asked: &CutText, answer: &CutText, line: &mut Object<'_>) {
    line.text("request", asked.as_str());
    line.text("answer", answer.as_str());
    if asked.is_cut || answer.is_cut {
        line.bool("content_cut", true);
    }
}

/// A sink that copies the text of the first choice.
pub struct CopyingText<'a> {
    /// What the client's response is made by.
    pub sink: &'a mut dyn Sink,
    pub answer: &'a mut CutText,
}

impl CopyingText<'_> {
    fn copy(&mut self, choice: u32, text: Str<'_>) {
        if choice == 0 && !self.answer.is_cut {
            self.answer.push(&text.unescaped());
        }
    }
}

impl Sink for CopyingText<'_> {
    fn inner(&mut self) -> Option<&mut dyn Sink> {
        Some(self.sink)
    }

    fn pieces(&mut self, choice: u32, pieces: &[Piece<'_>]) {
        for piece in pieces {
            if let Piece::Text(text) | Piece::Refusal(text) = piece {
                self.copy(choice, *text);
            }
        }
        self.sink.pieces(choice, pieces);
    }

    fn text(&mut self, choice: u32, text: Str<'_>) {
        self.copy(choice, text);
        self.sink.text(choice, text);
    }

    fn items(&mut self, body: &Bytes, place: Range<usize>) {
        self.sink.items(body, place);
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;
    use crate::models::request::RequestMember;

    fn source(members: &[(&str, &str)]) -> Source {
        let mut body = String::new();
        let members = members.iter().map(|(key, value)| {
            let start = body.len();
            body.push_str(value);
            RequestMember {
                key: (*key).into(),
                whole: start..body.len(),
                value: start..body.len(),
            }
        });
        let members = members.collect();
        Source {
            body: body.into(),
            members,
            spooled: Vec::new(),
        }
    }

    struct Dropping(Vec<String>);

    impl Sink for Dropping {
        fn pieces(&mut self, choice: u32, pieces: &[Piece<'_>]) {
            self.0.push(format!("{choice} {}", pieces.len()));
        }
    }

    #[test]
    fn what_is_asked_has_the_members_of_the_content_alone() {
        let asked = asked(&source(&[
            ("model", "\"m\""),
            ("messages", "[{\"role\":\"user\"}]"),
            ("tools", "[{\"authorization\":\"hunter2\"}]"),
            ("system", "\"é\""),
        ]));
        assert_eq!(
            asked.as_str(),
            "{\"messages\":[{\"role\":\"user\"}],\"system\":\"é\"}"
        );
        assert!(!asked.is_cut);
        assert_eq!(super::asked(&source(&[("model", "1")])).as_str(), "{}");
    }

    #[test]
    fn content_is_cut_at_the_border_of_a_character() {
        let long = format!("\"a{}\"", "é".repeat(MAX_CONTENT_BYTES));
        let asked = asked(&source(&[("input", &long), ("query", "1")]));
        assert!(asked.is_cut);
        assert!(asked.as_str().ends_with('é'));
        assert!((MAX_CONTENT_BYTES - 1..=MAX_CONTENT_BYTES).contains(&asked.as_str().len()));
        let mut line = Vec::new();
        let mut object = Object::open(&mut line);
        write(&asked, &CutText::default(), &mut object);
        object.close();
        let line: serde_json::Value = serde_json::from_slice(&line).unwrap();
        assert_eq!(line["content_cut"], true);
        assert_eq!(line["request"].as_str(), Some(asked.as_str()));
    }

    #[test]
    fn the_text_of_the_first_choice_is_copied_and_all_passes_on() {
        let (mut sink, mut answer) = (Dropping(Vec::new()), CutText::default());
        let mut copying = CopyingText {
            sink: &mut sink,
            answer: &mut answer,
        };
        copying.text(0, Str::Raw("a\\n"));
        copying.text(1, Str::Plain("other"));
        let pieces = [
            Piece::Reasoning(Str::Plain("hm")),
            Piece::Text(Str::Plain("b")),
            Piece::Refusal(Str::Plain("no")),
        ];
        copying.pieces(0, &pieces);
        assert_eq!(answer.as_str(), "a\nbno");
        assert_eq!(sink.0, ["0 1", "1 1", "0 3"]);
    }

    #[test]
    fn nothing_follows_a_text_that_was_cut() {
        let mut text = CutText::default();
        text.push(&"x".repeat(MAX_CONTENT_BYTES - 1));
        text.push("é");
        text.push("y");
        assert_eq!(text.as_str().len(), MAX_CONTENT_BYTES - 1);
        assert!(text.is_cut);
    }
}
