//! `generationConfig`.

use super::Findings;
use crate::json::{Type, Walker};
use crate::models::check::read::{array, boolean, expect, integer, limit, number, string};
use crate::models::check::reject::{Reject, other};
use crate::models::fronts::contents::members::object;
use crate::models::parameter::Parameter;
use crate::models::request::Effort;

/// The most stop sequences. Our choice: no provider takes as many.
const MAX_STOPS: usize = 8192;

/// The most choices, as the vendor has it. Source: docs/facts/contents.md 1.
const MAX_CHOICES: u64 = 8;

const CONFIG: [&str; 25] = [
    "temperature",
    "topP",
    "topK",
    "candidateCount",
    "maxOutputTokens",
    "stopSequences",
    "responseMimeType",
    "responseSchema",
    "responseJsonSchema",
    "_responseJsonSchema",
    "responseFormat",
    "seed",
    "presencePenalty",
    "frequencyPenalty",
    "responseLogprobs",
    "logprobs",
    "thinkingConfig",
    "responseModalities",
    "speechConfig",
    "imageConfig",
    "mediaResolution",
    "audioTimestamp",
    "routingConfig",
    "enableAffectiveDialog",
    "modelSelectionConfig",
];

/// `generationConfig`.
pub(super) fn generation_config(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let mut schemas = 0;
    object(walk, &CONFIG, |walk, key| {
        match key {
            "temperature" => found.temperature = Some(number(walk)?),
            "topP" => found.top_p = Some(number(walk)?),
            // A wish, which hosts of the dialect follow.
            "topK" => _ = number(walk)?,
            "candidateCount" => {
                found.needs.choices = integer(walk, 1, MAX_CHOICES)? as u32;
            }
            "maxOutputTokens" => found.max_tokens = Some(limit(walk)?),
            "stopSequences" => stop_sequences(walk, found)?,
            "responseMimeType" => media_type(walk, found)?,
            "responseSchema" | "responseJsonSchema" | "_responseJsonSchema" => {
                schemas += 1;
                schema(walk, found, schemas)?;
            }
            "seed" => {
                number(walk)?;
                found.set.insert(Parameter::Seed);
            }
            "presencePenalty" => penalty(walk, Parameter::PresencePenalty, found)?,
            "frequencyPenalty" => penalty(walk, Parameter::FrequencyPenalty, found)?,
            "responseLogprobs" => {
                if boolean(walk)? {
                    native("responseLogprobs", "probabilities of tokens", found);
                }
            }
            "logprobs" => {
                integer(walk, 0, 20)?;
                native("logprobs", "probabilities of tokens", found);
            }
            "thinkingConfig" => thinking(walk, found)?,
            "responseModalities" => modalities(walk, found)?,
            "speechConfig" => {
                expect(walk, Type::Object, "an object")?;
                walk.skip()?;
                native("speechConfig", "speech in answers", found);
            }
            "responseFormat" => {
                walk.skip()?;
                native("responseFormat", "`responseFormat`", found);
            }
            "imageConfig" => {
                expect(walk, Type::Object, "an object")?;
                walk.skip()?;
                native("imageConfig", "options of drawn images", found);
            }
            // How closely media are looked at, and what is the vendor's alone: wishes.
            _ => _ = walk.skip()?,
        }
        Ok(())
    })
}

/// Notes a member that only hosts of the dialect know.
fn native(key: &'static str, what: &str, found: &mut Findings) {
    let what = what.to_owned();
    let member = match key {
        "responseLogprobs" => "generationConfig.responseLogprobs",
        "logprobs" => "generationConfig.logprobs",
        "speechConfig" => "generationConfig.speechConfig",
        "responseFormat" => "generationConfig.responseFormat",
        "imageConfig" => "generationConfig.imageConfig",
        "responseMimeType" => "generationConfig.responseMimeType",
        _ => "generationConfig.responseModalities",
    };
    found.note_native(member, || what);
}

fn penalty(
    walk: &mut Walker<'_>,
    parameter: Parameter,
    found: &mut Findings,
) -> Result<(), Reject> {
    if number(walk)? != 0.0 {
        found.set.insert(parameter);
    }
    Ok(())
}

fn stop_sequences(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let count = array(walk, |walk, _| {
        let text = string(walk)?.unescaped();
        found.needs.blank_stop |= text.trim().is_empty();
        Ok(())
    })?;
    if count > MAX_STOPS {
        let said = format!("holds {count} sequences; accepted are at most {MAX_STOPS}");
        return Err(Reject::rule(said));
    }
    Ok(())
}

fn media_type(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let text = string(walk)?.unescaped();
    match &*text {
        "" | "text/plain" => {}
        "application/json" => found.is_json = true,
        "text/x.enum" => native("responseMimeType", "answers of `text/x.enum`", found),
        other => {
            let shown: String = other.chars().take(64).collect();
            let said = format!(
                "is {shown:?}; accepted is `text/plain`, `application/json` or `text/x.enum`"
            );
            return Err(Reject::rule(said));
        }
    }
    Ok(())
}

/// A schema of the answer: one of the vendor's subset, or any JSON schema.
fn schema(walk: &mut Walker<'_>, found: &mut Findings, schemas: u32) -> Result<(), Reject> {
    if schemas > 1 {
        let said =
            "stands beside another schema; accepted is `responseSchema` or `responseJsonSchema`";
        return Err(Reject::rule(said));
    }
    if !matches!(walk.peek()?, Type::Object | Type::Bool) {
        return Err(other(walk, "an object: a schema"));
    }
    let length = walk.skip()?.len();
    found.schema = Some(walk.at() - length..walk.at());
    found.text_bytes += length as u64;
    Ok(())
}

/// `{includeThoughts, thinkingBudget}` or `{includeThoughts, thinkingLevel}`.
fn thinking(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    const LEVELS: &str = "one of MINIMAL, LOW, MEDIUM, HIGH, XHIGH";
    let keys = ["includeThoughts", "thinkingBudget", "thinkingLevel"];
    object(walk, &keys, |walk, key| {
        match key {
            "includeThoughts" => _ = boolean(walk)?,
            "thinkingBudget" => {
                let budget = number(walk)?;
                found.effort = match budget {
                    0.0 => Some(Effort::None),
                    // The model decides.
                    ..0.0 => None,
                    ..4096.0 => Some(Effort::Low),
                    ..16384.0 => Some(Effort::Medium),
                    _ => Some(Effort::High),
                };
            }
            _ => {
                if walk.peek()? != Type::String {
                    return Err(other(walk, LEVELS));
                }
                let word = walk.string()?.unescaped().to_ascii_lowercase();
                if word == "thinking_level_unspecified" {
                    return Ok(());
                }
                let level = Effort::from_word(&word).filter(|level| *level != Effort::None);
                found.effort = Some(level.ok_or_else(|| {
                    let shown: String = word.chars().take(40).collect();
                    Reject::rule(format!("is {shown:?}; accepted is {LEVELS}"))
                })?);
            }
        }
        Ok(())
    })
}

/// `TEXT`, `IMAGE`, `AUDIO`.
fn modalities(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let (mut text, mut image) = (false, false);
    array(walk, |walk, _| {
        let word = string(walk)?.unescaped().to_ascii_uppercase();
        match &*word {
            "TEXT" => text = true,
            "IMAGE" => image = true,
            "MODALITY_UNSPECIFIED" => {}
            other => {
                let shown: String = other.chars().take(40).collect();
                native(
                    "responseModalities",
                    &format!("answers of {shown:?}"),
                    found,
                );
            }
        }
        Ok(())
    })?;
    match (image, text) {
        (true, _) => found.needs.image_output = Some(true),
        (false, true) => found.needs.image_output = Some(false),
        (false, false) => {}
    }
    Ok(())
}
