//! Speech: the 400 rules of its requests, and the audio that answers them, as a file or as events.
//!
//! Source: docs/model-gateway.md 2.12.

use self::writer::{EventWriter, FileWriter};
use super::plain_front::PlainFront;
use crate::models::check::describe::describe;
use crate::models::front::FrontRow;
use crate::models::operation::Operation;
use crate::models::request::Payload;

mod check;
#[cfg(test)]
mod tests;
mod writer;

/// The front of `POST /v1/audio/speech`.
pub static SPEECH: PlainFront = PlainFront {
    row: FrontRow::new(("speech", "/v1/audio/speech"), Operation::Speech, || {
        describe(include_str!("description.json"), &[&check::FIELDS])
    }),
    check: check::check,
    writer: |request, _| {
        let format = match &request.payload {
            Payload::Speech(facts) => facts.format,
            _ => None,
        };
        match request.is_stream {
            true => Box::new(EventWriter::new(format)),
            false => Box::new(FileWriter::new(format)),
        }
    },
};
