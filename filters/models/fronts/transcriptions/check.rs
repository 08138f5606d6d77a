//! The 400 rules of a form, field by field. Source: docs/model-gateway.md 2.16.

use bytes::Bytes;

use super::file::read_audio;
use crate::fault::{Fault, FaultKind, quoted};
use crate::models::chat::data_url;
use crate::models::check::reject::Reject;
use crate::models::check::top::{MODEL, plain_model};
use crate::models::front::Front;
use crate::models::parameter::AskedParameters;
use crate::models::request::{ModelRequest, Needs, Payload, Source};
use crate::models::transcriptions::format::{FORMAT_WORDS, TranscriptFormat};
use crate::models::transcriptions::{AudioFile, AudioTime, TranscriptionFacts};
use crate::money::{CostInputs, Unit, UnitCounts};
use crate::multipart::{Form, FormField};

/// Fields that a form has once.
const SINGLE: [&str; 7] = [
    "model",
    "language",
    "prompt",
    "response_format",
    "temperature",
    "stream",
    "file",
];
/// Ways to name audio that is elsewhere.
const ELSEWHERE: [&str; 3] = ["url", "file_url", "file_id"];
/// The most speakers that are known. Source: docs/model-gateway.md 2.16.
const MAX_SPEAKERS: usize = 4;
/// Bytes of text that are estimated to be a token. Source: docs/decisions.md 14.
const BYTES_PER_TOKEN: u64 = 4;

/// The findings.
#[derive(Debug, Default)]
struct Findings {
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
    let is_single = SINGLE.contains(&base);
    if is_single && base != name {
        let said = format!("is no list; accepted is one `{base}`");
        return Err(Reject::rule(said));
    }
    if is_single && seen.iter().any(|known| **known == *name) {
        return Err(Reject::rule("stands twice; accepted is one"));
    }
    if ELSEWHERE.contains(&name) {
        let said = "names audio that is elsewhere; accepted is an upload in `file`";
        return Err(Reject::rule(said).with_code("not_supported_yet"));
    }
    match name {
        "" => Err(Reject::rule("is a field without a name")),
        "file" => Err(Reject::rule(
            "is a text; accepted is a file, with a `filename`",
        )),
        _ => Ok(()),
    }
}

impl Findings {
    fn read(&mut self, field: FormField, is_translation: bool) -> Result<(), Reject> {
        let Ok(text) = std::str::from_utf8(&field.content) else {
            return Err(Reject::rule("is no text; accepted is UTF-8"));
        };
        let name = field.name.strip_suffix("[]").unwrap_or(&field.name);
        let mut is_passed = true;
        match name {
            "model" => {
                self.model = Some(plain_model(text)?);
                is_passed = false;
            }
            "response_format" => {
                self.format = format(text, is_translation)?;
                is_passed = false;
            }
            "stream" => {
                self.is_stream = boolean(text)?;
                is_passed = false;
                if self.is_stream && is_translation {
                    return Err(Reject::rule("is true; translations are not streamed"));
                }
            }
            "language" => language(text)?,
            "temperature" => temperature(text)?,
            "timestamp_granularities" => {
                one_of(text, &["word", "segment"])?;
                self.has_granularities = true;
            }
            "include" => {
                one_of(text, &["logprobs"])?;
                self.has_includes = true;
            }
            "known_speaker_names" => self.speakers += 1,
            "known_speaker_references" => {
                reference(text)?;
                self.references += 1;
            }
            _ => {}
        }
        if is_passed {
            let is_audio = name == "known_speaker_references";
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

fn is_none_of(text: &str, accepted: &str) -> Reject {
    let came = quoted(text);
    Reject::rule(format!("is \"{came}\"; accepted is {accepted}"))
}

fn one_of(text: &str, accepted: &[&str]) -> Result<(), Reject> {
    match accepted.contains(&text) {
        true => Ok(()),
        false => Err(is_none_of(text, &accepted.join(", "))),
    }
}

fn format(text: &str, is_translation: bool) -> Result<TranscriptFormat, Reject> {
    let known = FORMAT_WORDS.len() - usize::from(is_translation);
    let words = FORMAT_WORDS.get(..known).unwrap_or_default();
    one_of(text, words)?;
    Ok(TranscriptFormat::from_word(text).unwrap_or_default())
}

fn boolean(text: &str) -> Result<bool, Reject> {
    match text {
        "true" | "True" => Ok(true),
        "false" | "False" => Ok(false),
        _ => Err(is_none_of(text, "true or false")),
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
    fault.with_code("invalid_parameters")
}
