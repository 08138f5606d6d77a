//! The 400 rules of a request for images, in one pass over its bytes. Source: docs/model-gateway.md 2.7.

use std::ops::Range;

use bytes::Bytes;

use super::input::{self, Inputs};
use crate::fault::Fault;
use crate::json::Walker;
use crate::models::check::read::string;
use crate::models::check::reject::{Reject, other};
use crate::models::check::shape::{Field, read_all};
use crate::models::front::Front;
use crate::models::images::{ImageFacts, ImageOptions, MAX_COUNT};
use crate::models::parameter::{AskedParameters, Parameter};
use crate::models::request::{ModelRequest, Needs, Payload, Source};
use crate::models::routing::resolve::AUTO;
use crate::money::{CostInputs, ServiceTier, UnitCounts};

const QUALITIES: [&str; 8] = [
    "standard", "hd", "low", "medium", "high", "xhigh", "max", "auto",
];
/// The qualities of an edit, without the names of retired models.
const EDIT_QUALITIES: [&str; 6] = ["low", "medium", "high", "xhigh", "max", "auto"];
/// The most unfinished images of a stream. Source: docs/facts/wire-formats.md 6.4.
const MAX_PARTIAL_IMAGES: u64 = 3;
/// The longest size or ratio.
const MAX_WORD_BYTES: usize = 64;

const OF_EDITS: &str = "is no field of image generation; `/v1/images/edits` takes images";
const OF_FORMS: &str =
    "is a file of a form; accepted in JSON is `images`, an array of objects with `image_url`";

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

type Row = Field<Findings>;

/// The members of a request for new images.
pub(super) static GENERATIONS: [&[Row]; 2] = [
    &SHARED,
    &[
        Row::choice("quality", &QUALITIES, take_quality),
        Row::choice("style", &["vivid", "natural"], |found, word| {
            found.options.style = Some(word);
        }),
        Row::nothing("image", OF_EDITS).doc("Of edits."),
        Row::nothing("images", OF_EDITS).strict().doc("Of edits."),
        Row::own("input_fidelity", |walk, _| {
            Err(other(walk, "none, because there is no image to be true to"))
        }),
    ],
];

/// Those of an edit.
pub(super) static EDITS: [&[Row]; 2] = [
    &SHARED,
    &[
        Row::choice("quality", &EDIT_QUALITIES, take_quality),
        Row::own("images", |walk, found| {
            input::images(walk, &mut found.inputs)
        })
        .required(input::IMAGES),
        Row::choice("input_fidelity", &["high", "low"], |found, word| {
            found.options.input_fidelity = Some(word);
        }),
        Row::nothing("image", OF_FORMS).doc("Of forms."),
        Row::nothing("image[]", OF_FORMS).doc("Of forms."),
    ],
];

static SHARED: [Row; 15] = [
    Row::optional_model(|found, model| found.model = Some(model)).doc("Default `auto`."),
    Row::own("prompt", |walk, found| {
        prompt(walk).map(|it| found.prompt = Some(it))
    })
    .required("a text that is not empty"),
    Row::integer("n", 1, MAX_COUNT as u64, |found, count| {
        found.count = count as u32
    })
    .doc("Images."),
    Row::text("size", |found, text| {
        size_or_ratio(text).map(|size| found.options.size = size)
    })
    .doc("Such as `1024x1024`."),
    Row::text("aspect_ratio", |found, text| {
        size_or_ratio(text).map(|ratio| found.options.aspect_ratio = ratio)
    })
    .doc("Such as `16:9`; wins over `size`."),
    Row::choice("moderation", &["auto", "low"], |found, word| {
        found.options.moderation = not_auto(word)
    }),
    Row::choice("response_format", &["b64_json"], |_, _| ()),
    Row::choice("service_tier", &ServiceTier::WORDS, |found, word| {
        found.tier = ServiceTier::from_word(word)
    }),
    Row::choice(
        "background",
        &["transparent", "opaque", "auto"],
        |found, word| {
            found.options.background = not_auto(word);
        },
    ),
    Row::choice("output_format", &["png", "jpeg", "webp"], |found, word| {
        found.options.output_format = Some(word)
    }),
    Row::integer("output_compression", 0, 100, |found, percent| {
        found.options.output_compression = u8::try_from(percent).ok();
    })
    .doc("Of `jpeg` and `webp`."),
    Row::flag("stream", |found, is_stream| found.is_stream = is_stream),
    Row::integer("partial_images", 0, MAX_PARTIAL_IMAGES, |found, count| {
        found.options.partial_images = u8::try_from(count).ok();
    })
    .doc("Unfinished images of a stream."),
    Row::text("user", |found, user| {
        found.user = Some(user.into());
        Ok(())
    })
    .doc("Names the session."),
    Row::nothing(
        "mask",
        "is not supported; accepted are `images` and a `prompt` that says what to change",
    )
    .doc("Not supported."),
];

/// Checks a body.
///
/// Cost: one pass. Errors: 400 naming the field, what came and what is accepted.
pub(super) fn check(
    body: &Bytes,
    is_edit: bool,
    front: &'static dyn Front,
) -> Result<ModelRequest, Fault> {
    let fields = if is_edit { &EDITS } else { &GENERATIONS };
    let (mut found, members) = read_all(fields, body, unknown).map_err(Reject::into_fault)?;
    check_together(&found.options).map_err(Reject::into_fault)?;
    found.count = found.count.max(1);
    let model = found.model.take().unwrap_or_else(|| AUTO.into());
    let (prompt, text_bytes) = found.prompt.unwrap_or_default();
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
            bytes: (body.len() as u64).saturating_sub(inputs.bytes),
            images,
            // Each image is drawn on its own.
            choices: u64::from(found.count),
            ..CostInputs::default()
        },
        text_bytes,
        units: UnitCounts::default(),
        asked: asked(&found.options, found.count),
        source: Source::new(body.clone(), members),
        managed: None,
        promise: None,
        own_headers: Vec::new(),
        payload: Payload::Images(ImageFacts {
            is_edit,
            count: found.count,
            prompt,
            images: inputs.places,
            remote: inputs.remote,
            options: found.options,
            unknown: unknown.collect(),
        }),
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

/// Reads an unknown member: what a provider makes of it is its own affair.
fn unknown(walk: &mut Walker<'_>, key: &str, found: &mut Findings) -> Result<(), Reject> {
    if walk.null()? {
        return Ok(());
    }
    let start = walk.at();
    walk.skip()?;
    found.unknown.push((key.into(), start..walk.at()));
    Ok(())
}

/// Checks what members mean beside each other.
fn check_together(options: &ImageOptions) -> Result<(), Reject> {
    let format = options.output_format;
    if options.output_compression.is_some() && !matches!(format, Some("jpeg" | "webp")) {
        let said =
            "came without `output_format` of `jpeg` or `webp`; accepted is one of them beside it";
        return Err(Reject::rule(said).within("output_compression"));
    }
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
fn size_or_ratio(word: &str) -> Result<Option<Box<str>>, Reject> {
    let is_word = word.len() <= MAX_WORD_BYTES && !word.chars().any(char::is_control);
    if !is_word {
        let said = format!("is longer than {MAX_WORD_BYTES} bytes or holds control characters");
        return Err(Reject::rule(format!(
            "{said}; accepted is a text such as `1024x1024` or `16:9`"
        )));
    }
    Ok(Some(word)
        .filter(|word| !matches!(*word, "" | "auto"))
        .map(Into::into))
}

/// `standard` and `hd` are the words of retired models: the usual quality, and a better one.
fn take_quality(found: &mut Findings, word: &'static str) {
    found.options.quality = match word {
        "standard" | "auto" => None,
        "hd" => Some("high"),
        word => Some(word),
    };
}

fn not_auto(word: &'static str) -> Option<&'static str> {
    (word != "auto").then_some(word)
}
