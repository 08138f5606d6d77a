//! Images by predictions: a request draws up to four, each of which is a prediction. Source: docs/facts/clouds.md 3.

use std::collections::BTreeMap;

use bytes::Bytes;
use serde_json::{Map, Value, json};

use super::failure::{classify_error, find_error};
use crate::fault::Fault;
use crate::json::{Str, Walker};
use crate::models::chat::piece::{Finish, Piece};
use crate::models::images::{ImageFacts, pixels, ratio_of};
use crate::models::parameter::Parameter;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::routing::parameters::{Parameters, Treatment};
use crate::models::routing::providers::ProviderDefaults;
use crate::models::routing::{WrittenBounds, WrittenParameters};
use crate::models::usage::Usage;
use crate::models::wires::codec::{BodySlice, OperationCodec};
use crate::models::wires::decoder::WholeReply;
use crate::models::wires::failure::Failure;
use crate::models::wires::scan::{items, object, string};
use crate::models::wires::wire::{Target, write_body};

/// Images that are drawn at once.
const AT_ONCE: f64 = 4.0;
/// The ratios that the models draw.
const RATIOS: [&str; 5] = ["1:1", "3:4", "4:3", "9:16", "16:9"];
/// The longest side in pixels of an image of the usual size.
const USUAL_SIDE: u32 = 1792;
/// The members that are written here or that other APIs have, and those by which a provider draws more than was reserved for or
/// puts it elsewhere: none of them passes as an unknown one.
const OWN: [&str; 25] = [
    "model",
    "prompt",
    "n",
    "size",
    "aspect_ratio",
    "quality",
    "style",
    "moderation",
    "background",
    "input_fidelity",
    "output_format",
    "output_compression",
    "service_tier",
    "response_format",
    "stream",
    "partial_images",
    "user",
    "instances",
    "parameters",
    "sampleCount",
    "sampleImageSize",
    "aspectRatio",
    "outputOptions",
    "includeRaiReason",
    "storageUri",
];

pub(super) static CODEC: OperationCodec<ImageFacts> =
    OperationCodec::new("/models/{model}:predict", encode, |_, _, _, _| {
        Box::new(WholeReply::new(read))
    });

/// Returns what predictions do with parameters.
pub(super) fn defaults() -> ProviderDefaults {
    let count = WrittenBounds {
        min: None,
        max: Some(AT_ONCE),
        outside: None,
    };
    let more = WrittenParameters {
        pass: vec![
            Parameter::ImageAspectRatio,
            Parameter::ImageSize,
            Parameter::ImageCount,
            Parameter::OutputFormat,
            Parameter::OutputCompression,
        ],
        bounds: BTreeMap::from([(Parameter::ImageCount, count)]),
        ..WrittenParameters::default()
    };
    ProviderDefaults {
        parameters: Parameters::of_another_convention().with(&more),
        ..ProviderDefaults::plain()
    }
}

/// Encodes a request, or the part of it that one call draws.
///
/// Errors: a 400 that names a size, a ratio or a format that the models do not draw.
fn encode(
    request: &ModelRequest,
    facts: &ImageFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let mut parameters = Map::new();
    for (key, value) in &facts.unknown {
        if target.quirks.passes_unknown(key, &OWN)
            && let Ok(value) = serde_json::from_str(value)
        {
            parameters.insert(key.to_string(), value);
        }
    }
    let count = target.images_of_part(request);
    parameters.insert("sampleCount".to_owned(), count.into());
    // Without it nothing says that a filter has refused an image.
    parameters.insert("includeRaiReason".to_owned(), true.into());
    let options = output_options(request, facts, target)?;
    if !options.is_empty() {
        parameters.insert("outputOptions".to_owned(), Value::Object(options));
    }
    add_shape(facts, &mut parameters)?;
    let prompt = request.source.body.get(facts.prompt.clone());
    let prompt = Walker::new(prompt.unwrap_or_default())
        .and_then(|mut walk| Ok(walk.string()?.unescaped().into_owned()));
    let instance = json!({ "prompt": prompt.unwrap_or_default() });
    write_body(
        &json!({ "instances": [instance], "parameters": parameters }),
        request.source.body.len(),
    )
}

/// Adds ratio and size: a size in pixels stands for both.
fn add_shape(facts: &ImageFacts, parameters: &mut Map<String, Value>) -> Result<(), Fault> {
    let size = facts.options.size.as_deref();
    let in_pixels = size.and_then(pixels);
    let ratio = match (facts.options.aspect_ratio.as_deref(), in_pixels) {
        (None, None) => None,
        (Some(ratio), _) if RATIOS.contains(&ratio) => Some(ratio),
        (Some(ratio), _) => return Err(unsaid("aspect_ratio", ratio, &RATIOS.join(", "))),
        (None, Some(pixels)) => Some(ratio_of(pixels, &RATIOS).ok_or_else(|| {
            let ratios = format!("the ratios {}", RATIOS.join(", "));
            unsaid("size", size.unwrap_or_default(), &ratios)
        })?),
    };
    if let Some(ratio) = ratio {
        parameters.insert("aspectRatio".to_owned(), ratio.into());
    }
    let word = match (size, in_pixels) {
        (None, _) => None,
        (_, Some((width, height))) => (width.max(height) > USUAL_SIDE).then_some("2K"),
        (Some("1K" | "1k"), None) => Some("1K"),
        (Some("2K" | "2k"), None) => Some("2K"),
        (Some(other), None) => return Err(unsaid("size", other, "`1K`, `2K` or pixels")),
    };
    if let Some(word) = word {
        parameters.insert("sampleImageSize".to_owned(), word.into());
    }
    Ok(())
}

/// Returns in which format images come.
fn output_options(
    request: &ModelRequest,
    facts: &ImageFacts,
    target: &Target<'_>,
) -> Result<Map<String, Value>, Fault> {
    let mut out = Map::new();
    let passes = |parameter| target.treat(parameter, request) == Treatment::Pass;
    let options = &facts.options;
    let format = options.output_format;
    if let Some(format) = format.filter(|_| passes(Parameter::OutputFormat)) {
        if !matches!(format, "png" | "jpeg") {
            return Err(unsaid("output_format", format, "`png` or `jpeg`"));
        }
        let media_type = format!("image/{format}");
        out.insert("mimeType".to_owned(), media_type.into());
    }
    let percent = options.output_compression;
    if let Some(percent) = percent.filter(|_| passes(Parameter::OutputCompression)) {
        out.insert("compressionQuality".to_owned(), percent.into());
    }
    Ok(out)
}

fn unsaid(param: &str, came: &str, accepted: &str) -> Fault {
    let message = format!("`{param}` is {came:?}; the chosen provider takes {accepted}");
    Fault::invalid(param, message)
}

/// Reads a whole reply. Images that a filter has refused are missing in it; without any the whole answer is refused. The provider bills
/// images, and no tokens.
fn read(body: &Bytes, sink: &mut dyn Sink) -> Result<(), Failure> {
    let text = std::str::from_utf8(body).unwrap_or_default().trim_ascii();
    let members = object(text, ["predictions"]);
    let predictions = members.and_then(|[predictions]| items(predictions));
    let Some(predictions) = predictions else {
        let error = find_error(body).map(|error| classify_error(&error));
        let nothing = || Failure::malformed("the provider's reply holds no images");
        return Err(error.unwrap_or_else(nothing));
    };
    sink.usage(Usage::default());
    let mut count = 0;
    for prediction in predictions {
        let keys = ["bytesBase64Encoded", "mimeType", "prompt"];
        let [data, media_type, prompt] = object(prediction, keys).unwrap_or_default();
        let Some(data) = string(data).filter(|data| !data.is_empty()) else {
            continue;
        };
        if count == 0
            && let Some(format) = format_of(media_type)
        {
            sink.member("output_format", format);
        }
        count += 1;
        sink.item(&image(data, string(prompt)));
    }
    if count == 0 {
        sink.pieces(0, &[Piece::Finish(Finish::Filtered)]);
    }
    Ok(())
}

/// Returns the format that a media type names, as JSON; `None`: it is no known one.
fn format_of(media_type: &str) -> Option<&'static str> {
    match media_type {
        "\"image/png\"" => Some("\"png\""),
        "\"image/jpeg\"" => Some("\"jpeg\""),
        "\"image/webp\"" => Some("\"webp\""),
        _ => None,
    }
}

/// Returns an image in the public shape.
fn image(data: Str<'_>, prompt: Option<Str<'_>>) -> Vec<u8> {
    let mut out = Vec::with_capacity(data.len() + 64);
    out.extend_from_slice(b"{\"b64_json\":");
    data.write(&mut out);
    if let Some(prompt) = prompt.filter(|prompt| !prompt.is_empty()) {
        out.extend_from_slice(b",\"revised_prompt\":");
        prompt.write(&mut out);
    }
    out.push(b'}');
    out
}
