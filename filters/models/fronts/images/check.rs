//! The 400 rules of a request for images, in one pass over its bytes. Source: docs/model-gateway.md 2.7.

use std::ops::Range;

use bytes::Bytes;

use super::body;
use super::input::{self, Inputs};
use crate::fault::Fault;
use crate::json::{Type, Walker};
use crate::models::chat::facts::ChatFacts;
use crate::models::chat::tree::read_tree;
use crate::models::check::read::{boolean, integer, one_of, required, string};
use crate::models::check::reject::{Reject, other};
use crate::models::check::top::{members, model};
use crate::models::front::Front;
use crate::models::images::{ImageFacts, ImageOptions, MAX_COUNT};
use crate::models::parameter::{AskedParameters, Parameter};
use crate::models::request::{ModelRequest, Needs, Payload};
use crate::models::routing::resolve::AUTO;
use crate::money::{CostInputs, ServiceTier, UnitCounts};

const QUALITIES: [&str; 8] = [
    "standard", "hd", "low", "medium", "high", "xhigh", "max", "auto",
];
/// Those of an edit: the names of retired models are none of them.
const EDIT_QUALITIES: [&str; 6] = ["low", "medium", "high", "xhigh", "max", "auto"];
/// The most unfinished images of a stream. Source: docs/facts/wire-formats.md 6.4.
const MAX_PARTIAL_IMAGES: u64 = 3;
/// The longest size or ratio.
const MAX_WORD_BYTES: usize = 64;

/// The findings of the pass.
#[derive(Debug, Default)]
pub(super) struct Findings {
    pub(super) model: Option<Box<str>>,
    /// Where the prompt stands, and its bytes.
    pub(super) prompt: Option<(Range<usize>, u64)>,
    pub(super) inputs: Inputs,
    pub(super) count: u32,
    pub(super) options: ImageOptions,
    pub(super) tier: ServiceTier,
    pub(super) is_stream: bool,
    user: Option<Box<str>>,
    /// Keys and places of members that the gateway does not know.
    pub(super) unknown: Vec<(Box<str>, Range<usize>)>,
}

/// Checks a body.
///
/// Cost: one pass, and one copy of the prompt and the images into the chat that stands for the request. Errors: 400 naming
/// the field, what came and what is accepted.
pub(super) fn check(
    body: &Bytes,
    is_edit: bool,
    front: &'static dyn Front,
) -> Result<ModelRequest, Fault> {
    let mut found = Findings {
        count: 1,
        ..Findings::default()
    };
    pass(body, is_edit, &mut found).map_err(Reject::into_fault)?;
    let model = found.model.take().unwrap_or_else(|| AUTO.into());
    let (source, places) = body::write(body, &model, &found);
    let text_bytes = found.prompt.as_ref().map_or(0, |(_, bytes)| *bytes);
    let inputs = found.inputs;
    let unknown = found.unknown.into_iter().map(|(key, place)| {
        let value = body.get(place).unwrap_or_default();
        (key, String::from_utf8_lossy(value).into())
    });
    let images = inputs.places.len() as u64;
    Ok(ModelRequest {
        front,
        model,
        is_stream: found.is_stream,
        strategy: None,
        session: found.user.filter(|user| !user.is_empty()),
        needs: Needs {
            choices: 1,
            service_tier: found.tier,
            vision: images > 0,
            media: inputs.needs,
            image_output: Some(true),
            ..Needs::default()
        },
        cost_inputs: CostInputs {
            bytes: (source.body.len() as u64).saturating_sub(inputs.bytes),
            images,
            // Each image is drawn on its own.
            choices: u64::from(found.count),
            ..CostInputs::default()
        },
        text_bytes,
        units: UnitCounts::default(),
        asked: asked(&found.options, found.count),
        source,
        managed: None,
        payload: Payload::Images(
            ChatFacts::plain(inputs.remote, read_tree),
            ImageFacts {
                is_edit,
                count: found.count,
                prompt: places.prompt,
                images: places.images,
                options: found.options,
                unknown: unknown.collect(),
            },
        ),
    })
}

/// The parameters that have to act at the provider, or a provider that ignores them would draw another image.
fn asked(options: &ImageOptions, count: u32) -> AskedParameters {
    let given = [
        (Parameter::ImageAspectRatio, options.aspect_ratio.is_some()),
        (Parameter::ImageSize, options.size.is_some()),
        (Parameter::ImageQuality, options.quality.is_some()),
        (Parameter::ImageModeration, options.moderation.is_some()),
        (Parameter::ImageStyle, options.style.is_some()),
        (Parameter::ImageBackground, options.background.is_some()),
        (
            Parameter::InputFidelity,
            options.input_fidelity == Some("high"),
        ),
        (Parameter::OutputFormat, options.output_format.is_some()),
        (
            Parameter::OutputCompression,
            options.output_compression.is_some(),
        ),
    ];
    let given = given.into_iter().filter(|(_, is_given)| *is_given);
    AskedParameters {
        set: given.map(|(parameter, _)| parameter).collect(),
        // Not in the set: a provider that draws one at a time is asked several times.
        numbers: vec![(Parameter::ImageCount, f64::from(count))],
    }
}

fn pass(body: &Bytes, is_edit: bool, found: &mut Findings) -> Result<(), Reject> {
    let mut walk = Walker::new(body)?;
    members(&mut walk, |walk, key| {
        if walk.peek()? == Type::Null && !matches!(key, "prompt" | "images") {
            // Not in the contract, but the OpenAI convention takes null for "unset".
            return walk.null().map(|_| ()).map_err(Reject::from);
        }
        match key {
            "images" if is_edit => input::images(walk, &mut found.inputs),
            "background" | "input_fidelity" | "output_format" | "output_compression" => {
                output(walk, key, is_edit, found)
            }
            _ => member(walk, key, is_edit, found),
        }
    })?;
    walk.end()?;
    required(found.prompt.as_ref(), "prompt", "a text that is not empty")?;
    if is_edit {
        required(found.inputs.places.first(), "images", input::IMAGES)?;
    }
    let format = found.options.output_format;
    if found.options.output_compression.is_some() && !matches!(format, Some("jpeg" | "webp")) {
        let said =
            "came without `output_format` of `jpeg` or `webp`; accepted is one of them beside it";
        return Err(Reject::rule(said).within("output_compression"));
    }
    Ok(())
}

fn member(
    walk: &mut Walker<'_>,
    key: &str,
    is_edit: bool,
    found: &mut Findings,
) -> Result<(), Reject> {
    let options = &mut found.options;
    match key {
        "model" => found.model = Some(model(walk)?),
        "prompt" => found.prompt = Some(prompt(walk)?),
        "n" => found.count = integer(walk, 1, MAX_COUNT.into())? as u32,
        "size" => options.size = size_or_ratio(walk)?,
        "aspect_ratio" => options.aspect_ratio = size_or_ratio(walk)?,
        "quality" => {
            let words = if is_edit {
                &EDIT_QUALITIES[..]
            } else {
                &QUALITIES
            };
            options.quality = quality(one_of(walk, words)?);
        }
        "style" if !is_edit => options.style = Some(one_of(walk, &["vivid", "natural"])?),
        "moderation" => options.moderation = not_auto(one_of(walk, &["auto", "low"])?),
        "response_format" => _ = one_of(walk, &["b64_json"])?,
        "service_tier" => {
            found.tier = match one_of(walk, &["auto", "default", "flex", "priority"])? {
                "flex" => ServiceTier::Flex,
                "priority" => ServiceTier::Priority,
                _ => ServiceTier::Standard,
            };
        }
        "stream" => found.is_stream = boolean(walk)?,
        "partial_images" => {
            let count = integer(walk, 0, MAX_PARTIAL_IMAGES)?;
            options.partial_images = u8::try_from(count).ok();
        }
        "user" => found.user = Some(string(walk)?.unescaped().into()),
        _ => unknown(walk, key, is_edit, found)?,
    }
    Ok(())
}

/// How the image is written: of the contract for edits, and of the convention for both.
fn output(
    walk: &mut Walker<'_>,
    key: &str,
    is_edit: bool,
    found: &mut Findings,
) -> Result<(), Reject> {
    let options = &mut found.options;
    match key {
        "background" => {
            options.background = not_auto(one_of(walk, &["transparent", "opaque", "auto"])?);
        }
        "output_format" => options.output_format = Some(one_of(walk, &["png", "jpeg", "webp"])?),
        "output_compression" => {
            options.output_compression = u8::try_from(integer(walk, 0, 100)?).ok();
        }
        _ if is_edit => options.input_fidelity = Some(one_of(walk, &["high", "low"])?),
        _ => return Err(other(walk, "none, because there is no image to be true to")),
    }
    Ok(())
}

/// Members of other APIs that mean something which would be lost, and members that nobody knows.
fn unknown(
    walk: &mut Walker<'_>,
    key: &str,
    is_edit: bool,
    found: &mut Findings,
) -> Result<(), Reject> {
    let elsewhere = match key {
        "mask" => {
            Some("is not supported; accepted are `images` and a `prompt` that says what to change")
        }
        "image" | "image[]" if is_edit => Some(
            "is a file of a form; accepted in JSON is `images`, an array of objects with `image_url`",
        ),
        "image" | "images" if !is_edit => {
            Some("is no field of image generation; `/v1/images/edits` takes images")
        }
        _ => None,
    };
    if let Some(said) = elsewhere {
        return Err(Reject::rule(said));
    }
    let start = walk.at();
    walk.skip()?;
    found.unknown.push((key.into(), start..walk.at()));
    Ok(())
}

/// The prompt: where it stands, and its bytes.
fn prompt(walk: &mut Walker<'_>) -> Result<(Range<usize>, u64), Reject> {
    walk.peek()?;
    let start = walk.at();
    let text = string(walk)?;
    if text.is_empty() {
        return Err(Reject::rule(
            "is empty; accepted is a text that is not empty",
        ));
    }
    Ok((start..walk.at(), text.len() as u64))
}

/// A size or a ratio; `auto` and an empty text ask for nothing.
fn size_or_ratio(walk: &mut Walker<'_>) -> Result<Option<Box<str>>, Reject> {
    let word = string(walk)?.unescaped();
    let is_word = word.len() <= MAX_WORD_BYTES && !word.chars().any(char::is_control);
    if !is_word {
        let said = format!("is longer than {MAX_WORD_BYTES} bytes or holds control characters");
        return Err(Reject::rule(format!(
            "{said}; accepted is a text such as `1024x1024` or `16:9`"
        )));
    }
    Ok(Some(&*word)
        .filter(|word| !matches!(*word, "" | "auto"))
        .map(Into::into))
}

/// `standard` and `hd` are the words of retired models: the usual quality, and a better one.
fn quality(word: &'static str) -> Option<&'static str> {
    match word {
        "standard" | "auto" => None,
        "hd" => Some("high"),
        word => Some(word),
    }
}

fn not_auto(word: &'static str) -> Option<&'static str> {
    (word != "auto").then_some(word)
}
