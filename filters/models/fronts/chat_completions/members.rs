//! The members of a delta, as a chunk writes them.

use super::items::{LISTS, list_items, other_member};
use super::turn::Turn;
use crate::json::{Str, write_escaped};
use crate::models::chat::piece::Piece;
use crate::models::dialects::state::Maker;

/// The members of pieces that are said together.
#[derive(Default)]
pub(super) struct DeltaMembers<'a> {
    /// Each with a comma behind it.
    pub(super) json: Vec<u8>,
    /// Whether they count as content.
    pub(super) is_content: bool,
    /// Bytes of text.
    pub(super) bytes: u64,
    pub(super) images: u64,
    pub(super) tells_reasoning: bool,
    pub(super) logprobs: Option<&'a str>,
}

/// The text that a piece is a part of, if it is one.
type TextOf = for<'p, 'a> fn(&'p Piece<'a>) -> Option<Str<'a>>;

const TEXTS: [(&str, TextOf); 3] = [
    ("content", |piece| match piece {
        Piece::Text(text) => Some(*text),
        _ => None,
    }),
    ("reasoning", |piece| match piece {
        Piece::Reasoning(text) => Some(*text),
        _ => None,
    }),
    ("refusal", |piece| match piece {
        Piece::Refusal(text) => Some(*text),
        _ => None,
    }),
];

impl<'a> DeltaMembers<'a> {
    /// Reads pieces of a turn in which so many calls have begun. `maker` made them.
    pub(super) fn new(
        pieces: &[Piece<'a>],
        turn: &mut Turn,
        calls: usize,
        maker: Maker<'_>,
    ) -> Self {
        let mut members = Self::default();
        members.write_texts(pieces);
        members.write_lists(pieces, turn, calls, maker);
        members.is_content = !members.json.is_empty();
        for piece in pieces {
            if let Some((key, json)) = other_member(piece, maker) {
                members.write(key, json.as_bytes());
            }
            match piece {
                Piece::Logprobs(json) => members.logprobs = Some(json),
                Piece::Finish(_) => {
                    for (key, json) in turn.members(calls) {
                        members.write(key, json.as_bytes());
                    }
                }
                _ => {}
            }
        }
        members
    }

    /// Returns whether there are any.
    pub(super) fn any(&self) -> bool {
        !self.json.is_empty() || self.logprobs.is_some()
    }

    fn write(&mut self, key: &str, json: &[u8]) {
        write_key(key, &mut self.json);
        self.json.extend_from_slice(json);
        self.json.push(b',');
    }

    fn write_texts(&mut self, pieces: &[Piece<'a>]) {
        for (key, text_of) in TEXTS {
            let start = self.json.len();
            for text in pieces.iter().filter_map(text_of) {
                if text.is_empty() {
                    continue;
                }
                if self.json.len() == start {
                    self.json.reserve(key.len() + text.len() + 8);
                    write_key(key, &mut self.json);
                    self.json.push(b'"');
                }
                self.bytes += text.len() as u64;
                text.write_contents(&mut self.json);
            }
            if self.json.len() > start {
                self.tells_reasoning |= key == "reasoning";
                self.json.extend_from_slice(b"\",");
            }
        }
    }

    fn write_lists(
        &mut self,
        pieces: &[Piece<'a>],
        turn: &mut Turn,
        calls: usize,
        maker: Maker<'_>,
    ) {
        let mut items = Vec::new();
        for piece in pieces {
            turn.note(piece, calls);
            items.extend(list_items(piece, turn, maker));
            if let Piece::Image(image) = piece {
                self.images += image.count();
            }
        }
        for (list, key) in LISTS.into_iter().enumerate() {
            let mut of_list = items.iter().filter(|(of, _)| *of == list);
            let Some((_, first)) = of_list.next() else {
                continue;
            };
            write_key(key, &mut self.json);
            self.json.push(b'[');
            self.json.extend_from_slice(first.as_bytes());
            for (_, items) in of_list {
                self.json.push(b',');
                self.json.extend_from_slice(items.as_bytes());
            }
            self.json.extend_from_slice(b"],");
        }
    }
}

/// Writes a key and its colon.
pub(super) fn write_key(key: &str, out: &mut Vec<u8>) {
    out.push(b'"');
    write_escaped(key, out);
    out.extend_from_slice(b"\":");
}
