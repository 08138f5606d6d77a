//! The calls that a decoder makes of a sink, as bytes, so that they can be made again.
//!
//! Shape: one [`SinkEvent`] after the other in the format of `postcard`. Texts are insides of JSON strings.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::json::Str;
use crate::models::chat::piece::Piece;
use crate::models::reply::Sink;

/// One call of a sink.
#[derive(Debug, Deserialize, Serialize)]
pub(super) enum SinkEvent<'a> {
    /// [`Sink::text`].
    Text(u32, #[serde(borrow)] Str<'a>),
    /// [`Sink::pieces`].
    Pieces(u32, #[serde(borrow)] Vec<Piece<'a>>),
    /// [`Sink::member`].
    Member(&'a str, &'a str),
    /// [`Sink::item`].
    Item(&'a str),
}

impl<'a> SinkEvent<'a> {
    /// Takes the first event off `bytes`.
    pub(super) fn take(bytes: &mut &'a [u8]) -> Option<Self> {
        let (event, rest) = postcard::take_from_bytes(bytes).ok()?;
        *bytes = rest;
        Some(event)
    }

    /// Appends it to `out`; `None`: it cannot be written.
    pub(super) fn write(&self, out: &mut Vec<u8>) -> Option<()> {
        let written = postcard::to_extend(self, std::mem::take(out));
        *out = written.ok()?;
        Some(())
    }

    /// Makes the call.
    pub(super) fn put_into(&self, sink: &mut dyn Sink) {
        match self {
            SinkEvent::Text(choice, text) => sink.text(*choice, *text),
            SinkEvent::Pieces(choice, pieces) => sink.pieces(*choice, pieces),
            SinkEvent::Member(key, value) => sink.member(key, value),
            SinkEvent::Item(item) => sink.item(item.as_bytes()),
        }
    }
}

/// The inside of the JSON string.
impl Serialize for Str<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.contents())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Str<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <&str>::deserialize(deserializer).map(Self::Raw)
    }
}
