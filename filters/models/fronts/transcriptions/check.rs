//! The 400 rules of a form, field by field. Source: docs/model-gateway.md 2.16.

use bytes::Bytes;

use super::file::read_audio;
use crate::fault::{Fault, FaultKind, quoted};
use crate::fault_code::FaultCode;
use crate::models::chat::data_url;
use crate::models::check::reject::Reject;
use crate::models::check::shape::{Field, Table, find_text, is_none_of};
use crate::models::check::top::MODEL;
use crate::models::front::Front;
use crate::models::parameter::AskedParameters;
use crate::models::request::{ModelRequest, Needs, Payload, Source};
use crate::models::transcriptions::format::{FORMAT_WORDS, TranscriptFormat};
use crate::models::transcriptions::{AudioFile, AudioTime, TranscriptionFacts};
use crate::money::{CostInputs, Unit, UnitCounts};
use crate::multipart::{Form, FormField};

/// Ways to name audio that is elsewhere.
const ELSEWHERE: [&str; 3] = ["url", "file_url", "file_id"];
/// The most speakers that are known. Source: docs/model-gateway.md 2.16.
const MAX_SPEAKERS: usize = 4;
/// Bytes of text that are estimated to be a token. Source: docs/decisions.md 14.
const BYTES_PER_TOKEN: u64 = 4;

/// The findings.
#[derive(Debug, Default)]
pub(super) struct Findings {
    model: Option<Box<str>>,
    format: TranscriptFormat,
    is_stream: bool,
    has_granularities: bool,
    has_includes: bool,
    speakers: usize,
    references: usize,
    /// Bytes of all texts that may be prompts.
    text_bytes: u64,
    fields: Vec<(Box<str>, Bytes)>,
}

type Row = Field<Findings>;

/// The fields of a form for transcriptions.
pub(super) static TRANSCRIPTION: [&[Row]; 3] = [
    &[
        Row::model(|found, model| found.model = Some(model)),
        Row::text("prompt", |_, _| Ok(())).doc("Words that may occur."),
        Row::choice("response_format", &FORMAT_WORDS, take_format),
    ],
    &SHARED,
    &MORE,
];

/// The fields of a form for translations.
pub(super) static TRANSLATION: [&[Row]; 2] = [
    &[
        Row::model(|found, model| found.model = Some(model))
            .doc("A model that lists translations."),
        Row::text("prompt", |_, _| Ok(())).doc("Words that may occur, in English."),
        Row::choice("response_format", FORMAT_WORDS.split_at(5).0, take_format),
    ],
    &SHARED,
];

static SHARED: [Row; 2] = [
    Row::nothing("file", "is a text; accepted is a file, with a `filename`"),
    Row::text("temperature", |_, text| temperature(text)).doc("A number from 0 to 1."),
];

/// What only transcriptions tell of; translations check it, too.
static MORE: [Row; 6] = [
    Row::text("language", |_, text| language(text)).doc("What is spoken, such as `en`."),
    Row::flag("stream", |found, is_stream| found.is_stream = is_stream)
        .doc("With the formats `json`, `text` and `diarized_json`."),
    Row::choice(
        "timestamp_granularities[]",
        &["word", "segment"],
        |found, _| found.has_granularities = true,
    )
    .doc("With `verbose_json`."),
    Row::choice("include[]", &["logprobs"], |found, _| {
        found.has_includes = true;
    })
    .doc("With `json`."),
    Row::text("known_speaker_names[]", |found, _| {
        found.speakers += 1;
        Ok(())
    })
    .doc("As many as there are references."),
    Row::text("known_speaker_references[]", |found, text| {
        found.references += 1;
        reference(text)
    })
    .doc("Base64 data URLs of audio."),
];

fn take_format(found: &mut Findings, word: &'static str) {
    found.format = TranscriptFormat::from_word(word).unwrap_or_default();
}

/// Checks a form.
///
/// Errors: 400 naming the field, what came and what is accepted.
pub(super) fn check(
    form: Form,
    front: &'static dyn Front,
    is_translation: bool,
) -> Result<ModelRequest, Fault> {
    let mut found = Findings::default();
    let mut seen: Vec<Box<str>> = Vec::new();
    for field in form.fields {
        let name = field.name.clone();
        let once = check_name(&name, &seen);
        let read = once.and_then(|()| found.read(field, is_translation));
        read.map_err(|reject| reject.within(&name).into_fault())?;
        seen.push(name);
    }
    let audio = read_audio(form.files)?;
    found.check_together().map_err(Reject::into_fault)?;
    Ok(found.into_request((front, is_translation), audio, form.boundary))
}

/// Checks that a field may stand here, behind those that were `seen`.
fn check_name(name: &str, seen: &[Box<str>]) -> Result<(), Reject> {
    let base = name.split('[').next().unwrap_or_default();
    let is_single = find_text(&TRANSCRIPTION, base).is_some_and(|row| !row.is_list());
    if is_single && base != name {
        let said = format!("is no list; accepted is one `{base}`");
        return Err(Reject::rule(said));
    }
    if is_single && seen.iter().any(|known| **known == *name) {
        return Err(Reject::rule("stands twice; accepted is one"));
    }
    if ELSEWHERE.contains(&name) {
        let said = "names audio that is elsewhere; accepted is an upload in `file`";
        return Err(Reject::rule(said).with_code(FaultCode::NotSupportedYet));
    }
    match name {
        "" => Err(Reject::rule("is a field without a name")),
        _ => Ok(()),
    }
}

impl Findings {
    fn read(&mut self, field: FormField, is_translation: bool) -> Result<(), Reject> {
        let Ok(text) = std::str::from_utf8(&field.content) else {
            return Err(Reject::rule("is no text; accepted is UTF-8"));
        };
        let table: &Table<_> = if is_translation {
            &TRANSLATION
        } else {
            &TRANSCRIPTION
        };
        let row = find_text(table, &field.name).or_else(|| find_text(&[&MORE], &field.name));
        if let Some(row) = row {
            row.read_text(text, self)?;
        }
        if self.is_stream && is_translation {
            return Err(Reject::rule("is true; translations are not streamed"));
        }
        if !matches!(&*field.name, "model" | "response_format" | "stream") {
            let is_audio = field.name.starts_with("known_speaker_references");
            let bytes = if is_audio { 0 } else { text.len() };
            self.text_bytes = self.text_bytes.saturating_add(bytes as u64);
            self.fields.push((field.name, field.content.into()));
        }
        Ok(())
    }

    /// Checks what the fields say together.
    fn check_together(&self) -> Result<(), Reject> {
        if self.model.is_none() {
            let said = format!("is missing; accepted is {MODEL}");
            return Err(Reject::rule(said).within("model"));
        }
        let word = self.format.as_str();
        let needs = |field: &str, accepted: &str| {
            let said =
                format!("does not go with the `response_format` {word}; accepted is {accepted}");
            Err(Reject::rule(said).within(field))
        };
        if self.has_granularities && self.format != TranscriptFormat::VerboseJson {
            return needs("timestamp_granularities[]", "verbose_json");
        }
        if self.has_includes && self.format != TranscriptFormat::Json {
            return needs("include[]", "json");
        }
        if self.is_stream && self.format.needs_timestamps() {
            return needs("stream", "json, text or diarized_json");
        }
        let (speakers, references) = (self.speakers, self.references);
        if speakers.max(references) > MAX_SPEAKERS || speakers != references {
            let said = format!(
                "are {speakers}, and `known_speaker_references[]` {references}; accepted are as many of both, at most \
                 {MAX_SPEAKERS}"
            );
            return Err(Reject::rule(said).within("known_speaker_names[]"));
        }
        Ok(())
    }

    fn into_request(
        self,
        (front, is_translation): (&'static dyn Front, bool),
        audio: AudioFile,
        boundary: Box<str>,
    ) -> ModelRequest {
        let time = audio.time;
        let tokens = AudioTime::tokens(time.expected_ms);
        let units = |ms| UnitCounts::ZERO.with(Unit::InputTime, ms);
        ModelRequest {
            front,
            model: self.model.unwrap_or_default(),
            is_stream: self.is_stream,
            strategy: None,
            session: None,
            needs: Needs {
                choices: 1,
                timestamps: self.format.needs_timestamps(),
                diarization: self.format.needs_diarization(),
                ..Needs::default()
            },
            cost_inputs: CostInputs {
                bytes: self.text_bytes,
                audio: 1 + self.references as u64,
                choices: 1,
                draws: Some(false),
                units: units(time.max_ms),
                ..CostInputs::default()
            },
            text_bytes: tokens
                .saturating_mul(BYTES_PER_TOKEN)
                .saturating_add(self.text_bytes),
            units: units(time.expected_ms),
            asked: AskedParameters::default(),
            source: Source::default(),
            managed: None,
            promise: None,
            own_headers: Vec::new(),
            payload: Payload::Transcription(TranscriptionFacts {
                is_translation,
                format: self.format,
                fields: self.fields,
                audio,
                boundary,
            }),
        }
    }
}

fn temperature(text: &str) -> Result<(), Reject> {
    let number: Option<f64> = text.parse().ok();
    match number {
        Some(number) if (0.0..=1.0).contains(&number) => Ok(()),
        _ => Err(is_none_of(text, "a number from 0 to 1")),
    }
}

/// A language: letters of its code, and maybe what tells it apart.
fn language(text: &str) -> Result<(), Reject> {
    let mut parts = text.split('-');
    let code = parts.next().unwrap_or_default();
    let is_code = (2..=3).contains(&code.len()) && code.bytes().all(|b| b.is_ascii_alphabetic());
    let is_part = |part: &str| {
        (2..=8).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    match is_code && parts.all(is_part) {
        true => Ok(()),
        false => Err(is_none_of(text, "a code of ISO 639, such as en")),
    }
}

/// A recording of a speaker.
fn reference(text: &str) -> Result<(), Reject> {
    let media_type = data_url::media_type(text);
    match media_type.is_some_and(|media_type| media_type.starts_with("audio/")) {
        true => Ok(()),
        false => Err(Reject::rule(
            "is none; accepted is a base64 data URL of audio",
        )),
    }
}

/// A file where none belongs, or none where one does.
pub(super) fn wrong_file(field: &str, said: &str) -> Fault {
    let shown = quoted(field);
    let message = format!("`{shown}` {said}");
    let fault = Fault::new(FaultKind::Invalid, message).with_param(shown);
    fault.with_code(FaultCode::InvalidParameters)
}
