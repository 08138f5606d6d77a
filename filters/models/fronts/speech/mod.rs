//! Speech: the 400 rules of its requests, and the audio that answers them, as a file or as events.
//!
//! Source: docs/model-gateway.md 2.12.

use bytes::Bytes;

use self::writer::{EventWriter, FileWriter};
use crate::fault::Fault;
use crate::models::front::{Front, Received};
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::{ModelRequest, Payload};

mod check;
#[cfg(test)]
mod tests;
mod writer;

/// The front of `POST /v1/audio/speech`.
#[derive(Debug)]
pub struct Speech;

impl Front for Speech {
    fn name(&self) -> &'static str {
        "speech"
    }

    fn description(&self) -> &'static str {
        include_str!("description.json")
    }

    fn read(&self, body: Bytes) -> Result<Received, Fault> {
        check::check(body).map(Received::Complete)
    }

    fn writer(&self, request: &ModelRequest, _: ReplyIdentity) -> Box<dyn Writer> {
        let format = match &request.payload {
            Payload::Speech(facts) => facts.format,
            _ => None,
        };
        match request.is_stream {
            true => Box::new(EventWriter::new(format)),
            false => Box::new(FileWriter::new(format)),
        }
    }
}
