//! Events that say the same as the one before with another text.
//!
//! A provider repeats everything around the text in each event of an answer. Where an event has the very bytes
//! that stood around the text of the event read before, and between them the inside of one JSON string, nothing
//! but this string has to be read: whatever the rest meant, it means again.

use crate::json::{Str, Walker, split_plain_string};
use crate::models::chat::piece::Piece;
use crate::models::reply::Sink;

/// Random letters by which some providers hide the length of a text; never looked at.
const PADDING: &[u8] = b"\"obfuscation\":\"";

/// The one text of an event that has no other news.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain<'a> {
    pub(super) index: u32,
    pub(super) member: TemplateMember,
    /// As it stands in the event.
    pub(super) text: &'a str,
}

/// Whose text it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum TemplateMember {
    Content,
    Reasoning,
}

/// What stood around the text of the event before.
#[derive(Debug)]
pub(super) struct EventTemplate {
    index: u32,
    member: TemplateMember,
    /// Up to the text's opening quote, with it.
    before: Box<[u8]>,
    /// From the text's closing quote to the end, or to the opening quote of the padding.
    after: Box<[u8]>,
    /// From the padding's closing quote to the end.
    end: Option<Box<[u8]>>,
}

impl EventTemplate {
    /// What stands around the text of an event. `None` where the text does not lie in it.
    pub(super) fn from_event(event: &[u8], plain: &Plain<'_>) -> Option<Self> {
        let start = (plain.text.as_ptr() as usize).checked_sub(event.as_ptr() as usize)?;
        let after = event.get(start + plain.text.len()..)?;
        let (after, end) = match memchr::memmem::rfind(after, PADDING) {
            Some(at) => {
                let (after, padded) = after.split_at_checked(at + PADDING.len())?;
                let quote = padded.iter().position(|&b| b == b'"' || b == b'\\')?;
                (after, Some(padded.get(quote..)?.into()))
            }
            None => (after, None),
        };
        Some(Self {
            index: plain.index,
            member: plain.member,
            before: event.get(..start)?.into(),
            after: after.into(),
            end,
        })
    }

    /// Hands the text of `event` to `sink`; returns false where it does not fit the template.
    pub(super) fn read(&self, event: &[u8], sink: &mut dyn Sink) -> bool {
        let Some(text) = self.text(event) else {
            return false;
        };
        match self.member {
            TemplateMember::Content => sink.text(self.index, text),
            TemplateMember::Reasoning => sink.pieces(self.index, &[Piece::Reasoning(text)]),
        }
        true
    }

    /// Returns the text of an event that fits.
    fn text<'a>(&self, event: &'a [u8]) -> Option<Str<'a>> {
        let rest = event.strip_prefix(&*self.before)?;
        let (text, rest) = string(event, rest)?;
        let rest = rest.strip_prefix(&*self.after)?;
        match &self.end {
            None => rest.is_empty().then_some(text),
            Some(end) => {
                let (_, rest) = string(event, rest)?;
                (rest == &**end).then_some(text)
            }
        }
    }
}

/// The JSON string whose opening quote stands before `rest`, the end of `event`, and what follows from its closing quote on.
fn string<'a>(event: &'a [u8], rest: &'a [u8]) -> Option<(Str<'a>, &'a [u8])> {
    if let Some((text, rest)) = split_plain_string(rest) {
        return Some((Str::Raw(text), rest));
    }
    let quoted = event.get(event.len().checked_sub(rest.len() + 1)?..)?;
    let text = std::str::from_utf8(quoted).ok()?;
    let string = Walker::over(text).string().ok()?;
    Some((string, quoted.get(string.len() + 1..)?))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]

    use proptest::prelude::*;

    use super::super::reply::Reading;
    use super::super::stream::ChunkEvents;
    use crate::models::fronts::chat_completions::chunks::ChunkWriter;
    use crate::models::reply::{ReplyIdentity, Sink, Writer};
    use crate::models::wires::decoder::{EventDecoder, Frame};
    use crate::models::wires::failure::Failure;

    fn stream() -> ChunkWriter {
        let identity = ReplyIdentity {
            id: "i".into(),
            created: 1,
            model: "m".into(),
            maker: "m".into(),
        };
        ChunkWriter::new(identity, false)
    }

    fn decode(decoder: &mut ChunkEvents, data: &str, sink: &mut dyn Sink) -> Result<(), Failure> {
        let event = Frame {
            name: "",
            data: data.as_bytes(),
        };
        decoder.event(event, sink).map(|_| ())
    }

    /// The chunks of these events, read one after the other, and each on its own.
    fn both(events: &[String]) -> [Vec<u8>; 2] {
        let mut sinks = [stream(), stream()];
        let mut decoder = ChunkEvents::new(Reading::default());
        for event in events {
            decode(&mut decoder, event, &mut sinks[0]).unwrap();
            decode(
                &mut ChunkEvents::new(Reading::default()),
                event,
                &mut sinks[1],
            )
            .unwrap();
        }
        sinks.map(|mut sink| sink.take().into())
    }

    fn event(member: &str, text: &str, top: &str) -> String {
        let text = serde_json::to_string(text).unwrap();
        format!(r#"{{"id":"x","choices":[{{"index":0,"delta":{{"{member}":{text}}}}}]{top}}}"#)
    }

    proptest! {
        #[test]
        fn an_alike_event_says_what_it_would_say_alone(
            texts in proptest::collection::vec(("(content|reasoning|reasoning_content|refusal)", ".{0,12}", 0..5_usize), 1..12)
        ) {
            let tops = [
                "",
                r#","usage":null,"obfuscation":"aGk"#,
                r#","obfuscation":"aGk\"4"#,
                r#","k":1"#,
                r#","k":2"#,
            ];
            let events: Vec<String> = texts
                .iter()
                .enumerate()
                .map(|(at, (member, text, top))| {
                    let mut top = tops[*top].to_owned();
                    if top.contains("obf") {
                        top.push_str(&format!("{at}\""));
                    }
                    event(member, text, &top)
                })
                .collect();
            let [together, alone] = both(&events);
            prop_assert_eq!(together, alone);
        }
    }

    #[test]
    fn what_is_no_text_between_the_same_bytes_is_refused() {
        let good = event("content", "a", "");
        for bad in [r#"a\ud800"#, "a\u{1}", r#"a\x"#, r#"a","b":"c\"#] {
            let bad = good.replace(r#""a""#, &format!("\"{bad}\""));
            let mut decoder = ChunkEvents::new(Reading::default());
            decode(&mut decoder, &good, &mut stream()).unwrap();
            assert!(decode(&mut decoder, &bad, &mut stream()).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_member_between_the_same_bytes_is_seen() {
        let good = event("content", "a", "");
        let more = good.replace(r#""a""#, r#""a","refusal":"no""#);
        let [together, alone] = both(&[good, more]);
        assert_eq!(together, alone);
        assert!(String::from_utf8(together).unwrap().contains("refusal"));
    }
}
