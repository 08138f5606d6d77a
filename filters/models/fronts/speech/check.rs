//! The 400 rules of a request for speech, in one pass over its bytes. Source: docs/model-gateway.md 2.12.

use bytes::Bytes;

use super::Speech;
use crate::fault::Fault;
use crate::json::{Type, Walker};
use crate::models::check::read::{number, object, one_of, required, string};
use crate::models::check::reject::{Reject, other};
use crate::models::check::top::{MODEL, members, model};
use crate::models::parameter::AskedParameters;
use crate::models::request::{ModelRequest, Needs, Payload, RequestMember, Source};
use crate::models::speech::SpeechFacts;
use crate::models::speech::format::{AudioFormat, FORMAT_WORDS};
use crate::money::{CostInputs, Unit, UnitCounts};

/// The most characters of an input or of instructions. Source: docs/model-gateway.md 2.12.
const MAX_CHARACTERS: usize = 4096;
/// The speeds that are accepted. Source: docs/model-gateway.md 2.12.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.25..=4.0;
const VOICE: &str = "the name of a voice, or an object with the `id` of one";

/// The findings of the pass.
#[derive(Debug, Default)]
struct Findings {
    model: Option<Box<str>>,
    characters: Option<u64>,
    /// Bytes of input and instructions.
    text_bytes: u64,
    format: Option<AudioFormat>,
    speed: Option<f64>,
    wants_events: bool,
}

/// Checks a body.
///
/// Cost: one pass; allocates for keys, never for the input unless it has escapes. Errors: 400 naming the field, what came
/// and what is accepted.
pub(super) fn check(body: Bytes) -> Result<ModelRequest, Fault> {
    let mut found = Findings::default();
    let members = pass(&body, &mut found).map_err(Reject::into_fault)?;
    let characters = found.characters.unwrap_or_default();
    let units = UnitCounts::default().with(Unit::Character, characters);
    Ok(ModelRequest {
        front: &Speech,
        model: found.model.unwrap_or_default(),
        is_stream: found.wants_events,
        strategy: None,
        session: None,
        needs: Needs {
            choices: 1,
            speech_format: found.format,
            ..Needs::default()
        },
        cost_inputs: CostInputs {
            bytes: found.text_bytes,
            choices: 1,
            draws: Some(false),
            units,
            ..CostInputs::default()
        },
        text_bytes: found.text_bytes,
        units,
        asked: AskedParameters::default(),
        source: Source::new(body, members),
        managed: None,
        payload: Payload::Speech(SpeechFacts {
            format: found.format,
            characters,
            speed: found.speed,
        }),
    })
}

fn pass(body: &Bytes, found: &mut Findings) -> Result<Vec<RequestMember>, Reject> {
    let mut walk = Walker::new(body)?;
    let members = members(&mut walk, |walk, key| member(walk, key, found))?;
    walk.end()?;
    required(found.model.as_ref(), "model", MODEL)?;
    required(found.characters, "input", "the text to speak")?;
    Ok(members)
}

fn member(walk: &mut Walker<'_>, key: &str, found: &mut Findings) -> Result<(), Reject> {
    match key {
        "model" => found.model = Some(model(walk)?),
        "input" => found.characters = Some(text(walk, found)?),
        "instructions" => _ = text(walk, found)?,
        "voice" => voice(walk)?,
        "response_format" => {
            found.format = AudioFormat::from_word(one_of(walk, &FORMAT_WORDS)?);
        }
        "speed" => found.speed = speed(walk)?,
        "stream_format" => found.wants_events = one_of(walk, &["audio", "sse"])? == "sse",
        _ => _ = walk.skip()?,
    }
    Ok(())
}

/// Reads a text, and returns its characters.
fn text(walk: &mut Walker<'_>, found: &mut Findings) -> Result<u64, Reject> {
    let text = string(walk)?.unescaped();
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

fn speed(walk: &mut Walker<'_>) -> Result<Option<f64>, Reject> {
    if walk.null()? {
        return Ok(None);
    }
    let speed = number(walk)?;
    if SPEEDS.contains(&speed) {
        return Ok(Some(speed));
    }
    let (slowest, fastest) = (SPEEDS.start(), SPEEDS.end());
    let said = format!("is {speed}; accepted is a number from {slowest} to {fastest}");
    Err(Reject::rule(said))
}
