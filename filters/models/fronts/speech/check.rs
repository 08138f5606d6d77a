//! The 400 rules of a request for speech, in one pass over its bytes. Source: docs/model-gateway.md 2.12.

use bytes::Bytes;

use super::SPEECH;
use crate::fault::Fault;
use crate::json::{Type, Walker};
use crate::models::check::read::{number, object, required, string};
use crate::models::check::reject::{Reject, other};
use crate::models::check::shape::{Field, plain_request, read_body};
use crate::models::request::{ModelRequest, Payload, Source};
use crate::models::speech::SpeechFacts;
use crate::models::speech::format::{AudioFormat, FORMAT_WORDS};
use crate::money::{Unit, UnitCounts};

/// The most characters of an input or of instructions. Source: docs/model-gateway.md 2.12.
const MAX_CHARACTERS: usize = 4096;
/// The speeds that are accepted. Source: docs/model-gateway.md 2.12.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.25..=4.0;
const VOICE: &str = "the name of a voice, or an object with the `id` of one";

/// The findings of the pass.
#[derive(Debug, Default)]
pub(super) struct Findings {
    model: Option<Box<str>>,
    characters: u64,
    /// Bytes of input and instructions.
    text_bytes: u64,
    format: Option<AudioFormat>,
    speed: Option<f64>,
    wants_events: bool,
}

type Row = Field<Findings>;

pub(super) static FIELDS: [Row; 7] = [
    Row::model(|found, model| found.model = Some(model)),
    Row::text("input", |found, input| {
        text(found, input).map(|count| found.characters = count)
    })
    .required("the text to speak"),
    Row::text("instructions", |found, input| {
        text(found, input).map(|_| ())
    })
    .strict(),
    Row::own("voice", |walk, _| voice(walk)).strict(),
    Row::choice("response_format", &FORMAT_WORDS, |found, word| {
        found.format = AudioFormat::from_word(word);
    })
    .strict(),
    Row::own("speed", |walk, found| {
        speed(walk).map(|speed| found.speed = Some(speed))
    }),
    Row::choice("stream_format", &["audio", "sse"], |found, word| {
        found.wants_events = word == "sse";
    })
    .strict(),
];

/// Checks a body.
///
/// Cost: one pass; allocates for keys, never for the input unless it has escapes. Errors: 400 naming the field, what came
/// and what is accepted.
pub(super) fn check(body: Bytes) -> Result<ModelRequest, Fault> {
    let (found, members): (Findings, _) = read_body(&[&FIELDS], &body)?;
    let units = UnitCounts::default().with(Unit::Character, found.characters);
    let payload = Payload::Speech(SpeechFacts {
        format: found.format,
        characters: found.characters,
        speed: found.speed,
    });
    let source = Source::new(body, members);
    let mut request = plain_request(&SPEECH, found.model, source, payload);
    request.needs.speech_format = found.format;
    request.cost_inputs.bytes = found.text_bytes;
    request.cost_inputs.units = units;
    Ok(ModelRequest {
        is_stream: found.wants_events,
        text_bytes: found.text_bytes,
        units,
        ..request
    })
}

/// Checks a text, and returns its characters.
fn text(found: &mut Findings, text: &str) -> Result<u64, Reject> {
    let characters = text.chars().count();
    if text.trim().is_empty() {
        return Err(Reject::rule("is empty; accepted is a text"));
    }
    if characters > MAX_CHARACTERS {
        let said = format!(
            "has {characters} characters; accepted are at most {MAX_CHARACTERS} characters"
        );
        return Err(Reject::rule(said));
    }
    found.text_bytes = found.text_bytes.saturating_add(text.len() as u64);
    Ok(characters as u64)
}

fn voice(walk: &mut Walker<'_>) -> Result<(), Reject> {
    let name = |walk: &mut Walker<'_>| match string(walk)?.is_empty() {
        true => Err(Reject::rule(format!("is empty; accepted is {VOICE}"))),
        false => Ok(()),
    };
    match walk.peek()? {
        Type::String => name(walk),
        Type::Object => {
            let mut id = None;
            object(walk, &["id"], |walk, _| {
                id = Some(name(walk)?);
                Ok(())
            })?;
            required(id, "id", "the id of a voice")
        }
        _ => Err(other(walk, VOICE)),
    }
}

fn speed(walk: &mut Walker<'_>) -> Result<f64, Reject> {
    let speed = number(walk)?;
    if SPEEDS.contains(&speed) {
        return Ok(speed);
    }
    let (slowest, fastest) = (SPEEDS.start(), SPEEDS.end());
    let said = format!("is {speed}; accepted is a number from {slowest} to {fastest}");
    Err(Reject::rule(said))
}
