//! A request in the words of this wire. Source: docs/facts/wire-formats.md 6.4, 7.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use super::form;
use crate::fault::Fault;
use crate::json::Walker;
use crate::models::images::{ImageFacts, ImageOptions, pixels, ratio_of};
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;
use crate::models::routing::parameters::Treatment;
use crate::models::wires::codec::BodySlice;
use crate::models::wires::drawn;
use crate::models::wires::wire::{Target, write_body};

/// The members that the wire writes itself, and those by which a provider draws more than was reserved for: none of them
/// passes as an unknown one.
const OWN: [&str; 25] = [
    "model",
    "prompt",
    "n",
    "size",
    "aspect_ratio",
    "resolution",
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
    "image",
    "images",
    "mask",
    "user",
    "frame_count",
    "num_images",
    "num_outputs",
    "batch_size",
];
/// The ratios that providers draw, where they draw by ratio.
const RATIOS: [&str; 13] = [
    "1:1", "2:3", "3:2", "3:4", "4:3", "9:16", "16:9", "1:2", "2:1", "9:19.5", "19.5:9", "9:20",
    "20:9",
];
/// The most images that they edit at once.
const MAX_INPUTS: usize = 3;

/// How an API for images says what is drawn.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum ImagesDialect {
    /// By sizes in pixels.
    Sizes,
    /// By ratio and resolution.
    Ratios,
}

/// A request that is being written.
struct Drawing<'a> {
    images: &'a ImageFacts,
    request: &'a ModelRequest,
    target: &'a Target<'a>,
}

impl Drawing<'_> {
    /// Returns whether a parameter goes out.
    fn passes(&self, parameter: Parameter) -> bool {
        self.target.treat(parameter, self.request) == Treatment::Pass
    }

    /// Returns a JSON string of the body.
    fn text(&self, place: &std::ops::Range<usize>) -> Cow<'_, str> {
        let raw = self.request.source.body.get(place.clone());
        let raw = std::str::from_utf8(raw.unwrap_or_default()).unwrap_or_default();
        let text = Walker::over(raw).string();
        text.map_or(Cow::Borrowed(""), crate::json::Str::unescaped)
    }
}

/// Encodes a request, or the part of it that one call draws.
pub(super) fn encode(
    dialect: ImagesDialect,
    images: &ImageFacts,
    request: &ModelRequest,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let drawing = Drawing {
        images,
        request,
        target,
    };
    let mut body = common(&drawing);
    match dialect {
        ImagesDialect::Sizes => add_by_size(&drawing, &mut body)?,
        ImagesDialect::Ratios => add_by_ratio(&drawing, &mut body)?,
    }
    add_unknown(&drawing, &mut body);
    if !images.is_edit {
        return write_body(&body, request.source.body.len());
    }
    let inputs: Vec<_> = images
        .images
        .iter()
        .map(|place| drawing.text(place))
        .collect();
    match dialect {
        ImagesDialect::Sizes => form::write(&body, &inputs, target.inlined),
        ImagesDialect::Ratios => {
            let input = |url: &Cow<'_, str>| {
                let fetched = target.inlined.find(url).map(|image| &*image.url);
                json!({ "type": "image_url", "url": fetched.unwrap_or(url) })
            };
            match inputs.as_slice() {
                [one] => body.insert("image".to_owned(), input(one)),
                several if several.len() <= MAX_INPUTS => {
                    let several: Vec<Value> = several.iter().map(input).collect();
                    body.insert("images".to_owned(), several.into())
                }
                several => {
                    let message = format!(
                        "`images` has {} items; the chosen provider edits at most {MAX_INPUTS}",
                        several.len()
                    );
                    return Err(Fault::invalid("images", message));
                }
            };
            write_body(&body, request.source.body.len())
        }
    }
}

/// The members that both dialects have.
fn common(drawing: &Drawing<'_>) -> Map<String, Value> {
    let Drawing {
        images,
        request,
        target,
    } = drawing;
    let options = &images.options;
    let mut body = Map::new();
    let mut put = |key: &str, value: Value| _ = body.insert(key.to_owned(), value);
    put("model", target.model.into());
    put("prompt", drawing.text(&images.prompt).into());
    let count = target.images_of_part(request);
    if count > 1 {
        put("n", count.into());
    }
    let words = [
        ("quality", options.quality, Parameter::ImageQuality),
        ("moderation", options.moderation, Parameter::ImageModeration),
        ("style", options.style, Parameter::ImageStyle),
        ("background", options.background, Parameter::ImageBackground),
        (
            "input_fidelity",
            options.input_fidelity,
            Parameter::InputFidelity,
        ),
        (
            "output_format",
            options.output_format,
            Parameter::OutputFormat,
        ),
    ];
    for (key, word, parameter) in words {
        if let Some(word) = word.filter(|_| drawing.passes(parameter)) {
            put(key, word.into());
        }
    }
    if let Some(tier) = request.needs.service_tier.wire_word() {
        put("service_tier", tier.into());
    }
    let compression = options.output_compression;
    if let Some(compression) = compression.filter(|_| drawing.passes(Parameter::OutputCompression))
    {
        put("output_compression", compression.into());
    }
    if target.parameters.supports(Parameter::ResponseFormat) {
        put("response_format", "b64_json".into());
    }
    body
}

/// Adds the size: the one that a ratio stands for takes precedence.
fn add_by_size(drawing: &Drawing<'_>, body: &mut Map<String, Value>) -> Result<(), Fault> {
    let ImageOptions {
        size,
        aspect_ratio,
        partial_images,
        ..
    } = &drawing.images.options;
    let size = match aspect_ratio.as_deref() {
        None => size.as_deref(),
        Some(ratio) => Some(drawn::size_of_ratio(ratio).ok_or_else(|| {
            unsaid(
                "aspect_ratio",
                ratio,
                "`1:1`, `3:2` or `2:3`; it takes a `size` in pixels too",
            )
        })?),
    };
    if let Some(size) = size {
        let size = match size {
            "1K" | "1k" => "1024x1024",
            other if pixels(other).is_some() => other,
            other => return Err(unsaid("size", other, "pixels such as `1024x1024`")),
        };
        body.insert("size".to_owned(), size.into());
    }
    if drawing.request.is_stream {
        body.insert("stream".to_owned(), true.into());
        if let Some(count) = partial_images {
            body.insert("partial_images".to_owned(), (*count).into());
        }
    }
    Ok(())
}

/// Adds ratio and resolution: a size in pixels stands for both.
fn add_by_ratio(drawing: &Drawing<'_>, body: &mut Map<String, Value>) -> Result<(), Fault> {
    let ImageOptions {
        size, aspect_ratio, ..
    } = &drawing.images.options;
    let in_pixels = size.as_deref().and_then(pixels);
    let ratio = match (aspect_ratio.as_deref(), in_pixels) {
        (Some(ratio), _) => Some(ratio),
        (None, None) => None,
        (None, Some(size)) => Some(ratio_of(size, &RATIOS).ok_or_else(|| {
            let came = drawing.images.options.size.as_deref().unwrap_or_default();
            unsaid("size", came, &format!("the ratios {}", RATIOS.join(", ")))
        })?),
    };
    if let Some(ratio) = ratio {
        body.insert("aspect_ratio".to_owned(), ratio.into());
    }
    let resolution = match (size.as_deref(), in_pixels) {
        (None, _) => None,
        (_, Some((width, height))) => Some(if width.max(height) > 1792 { "2k" } else { "1k" }),
        (Some("1K" | "1k"), None) => Some("1k"),
        (Some("2K" | "2k"), None) => Some("2k"),
        (Some(other), None) => return Err(unsaid("size", other, "`1K`, `2K` or pixels")),
    };
    if let Some(resolution) = resolution {
        body.insert("resolution".to_owned(), resolution.into());
    }
    Ok(())
}

/// Adds the members that the gateway does not know, as far as the provider's quirks let them pass.
fn add_unknown(drawing: &Drawing<'_>, body: &mut Map<String, Value>) {
    for (key, value) in &drawing.images.unknown {
        if !OWN.contains(&&**key)
            && drawing.target.quirks.passes_unknown(key, &OWN)
            && let Ok(value) = serde_json::from_str(value)
        {
            body.insert(key.to_string(), value);
        }
    }
}

fn unsaid(param: &str, came: &str, accepted: &str) -> Fault {
    let message = format!("`{param}` is {came:?}; the chosen provider takes {accepted}");
    Fault::invalid(param, message)
}
