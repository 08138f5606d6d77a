//! Transcriptions and translations: the 400 rules of their forms, and the texts that answer them, whole or as events.
//!
//! Source: docs/model-gateway.md 2.16.

use bytes::Bytes;

use self::check::{TRANSCRIPTION, TRANSLATION};
use self::events::EventWriter;
use self::whole::TranscriptWriter;
use crate::fault::{Fault, FaultKind};
use crate::models::check::describe::describe;
use crate::models::front::{ClientHead, Front, FrontRow, Received};
use crate::models::operation::Operation;
use crate::models::reply::{ReplyIdentity, Writer};
use crate::models::request::{ModelRequest, Payload};
use crate::models::transcriptions::format::TranscriptFormat;
use crate::multipart::Form;

mod check;
mod events;
mod file;
mod subtitles;
#[cfg(test)]
mod tests;
mod usage;
mod whole;

/// The front of `POST /v1/audio/transcriptions`.
#[derive(Debug)]
pub struct Transcriptions;

/// The front of `POST /v1/audio/translations`.
#[derive(Debug)]
pub struct Translations;

impl Front for Transcriptions {
    fn row(&'static self) -> &'static FrontRow {
        static ROW: FrontRow = FrontRow::new(
            ("transcriptions", "/v1/audio/transcriptions"),
            Operation::Transcriptions,
            || describe(include_str!("transcriptions.json"), &TRANSCRIPTION),
        );
        &ROW
    }

    fn read(&self, _: &ClientHead<'_>, _: Bytes) -> Result<Received, Fault> {
        Err(no_form())
    }

    fn read_upload(&self, form: Form) -> Result<ModelRequest, Fault> {
        check::check(form, &Self, false)
    }

    fn writer(&self, request: &ModelRequest, _: ReplyIdentity) -> Box<dyn Writer> {
        writer(request)
    }
}

impl Front for Translations {
    fn row(&'static self) -> &'static FrontRow {
        static ROW: FrontRow = FrontRow::new(
            ("translations", "/v1/audio/translations"),
            Operation::Translations,
            || describe(include_str!("translations.json"), &TRANSLATION),
        );
        &ROW
    }

    fn read(&self, _: &ClientHead<'_>, _: Bytes) -> Result<Received, Fault> {
        Err(no_form())
    }

    fn read_upload(&self, form: Form) -> Result<ModelRequest, Fault> {
        check::check(form, &Self, true)
    }

    fn writer(&self, request: &ModelRequest, _: ReplyIdentity) -> Box<dyn Writer> {
        writer(request)
    }
}

fn no_form() -> Fault {
    let message = "`Content-Type` is no form; `multipart/form-data` is accepted";
    Fault::new(FaultKind::MediaType, message)
}

fn writer(request: &ModelRequest) -> Box<dyn Writer> {
    let format = match &request.payload {
        Payload::Transcription(facts) => facts.format,
        _ => TranscriptFormat::default(),
    };
    match request.is_stream {
        true => Box::new(EventWriter::default()),
        false => Box::new(TranscriptWriter::new(format)),
    }
}
