//! Images out over this wire: a tool that the provider runs. Source: docs/facts/wire-formats.md 2.3.

use serde_json::{Map, Value};

use crate::fault::Fault;
use crate::models::chat::conversation::Conversation;
use crate::models::images::ImageFacts;
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;
use crate::models::routing::parameters::Treatment;
use crate::models::wires::drawn;
use crate::models::wires::wire::Target;

/// Returns whether a request gets the tool: only where it asks for images, because they cost more than words.
pub(super) fn is_wanted(request: &ModelRequest, target: &Target<'_>) -> bool {
    request.needs.image_output == Some(true) && target.image_output != Some(false)
}

/// Returns the tool; `None`: the request asks for no images.
///
/// Errors: 400 for a ratio or a size that this wire has no word for.
pub(super) fn tool(
    request: &ModelRequest,
    chat: &Conversation<'_>,
    target: &Target<'_>,
) -> Result<Option<Value>, Fault> {
    if !is_wanted(request, target) {
        return Ok(None);
    }
    let mut tool = Map::new();
    tool.insert("type".to_owned(), "image_generation".into());
    let passes = |parameter| target.treat(parameter, request) == Treatment::Pass;
    if let Some(size) = size(chat, passes)? {
        tool.insert("size".to_owned(), size.into());
    }
    let words = [
        ("quality", Parameter::ImageQuality),
        ("moderation", Parameter::ImageModeration),
    ];
    for (key, parameter) in words {
        if let Some(word) = chat.option_text(parameter).filter(|_| passes(parameter)) {
            tool.insert(key.to_owned(), (*word).into());
        }
    }
    if let Some(images) = request.payload.images() {
        add_options(images, request, target, &mut tool);
    }
    Ok(Some(Value::Object(tool)))
}

/// Adds the options that a request for images has beyond `image_config`.
fn add_options(
    images: &ImageFacts,
    request: &ModelRequest,
    target: &Target<'_>,
    tool: &mut Map<String, Value>,
) {
    let options = &images.options;
    let words = [
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
        let passes = target.treat(parameter, request) == Treatment::Pass;
        if let Some(word) = word.filter(|_| passes) {
            tool.insert(key.to_owned(), word.into());
        }
    }
    let passes = target.treat(Parameter::OutputCompression, request) == Treatment::Pass;
    if let Some(compression) = options.output_compression.filter(|_| passes) {
        tool.insert("output_compression".to_owned(), compression.into());
    }
    if let Some(count) = options.partial_images.filter(|_| request.is_stream) {
        tool.insert("partial_images".to_owned(), count.into());
    }
    let action = if images.is_edit { "edit" } else { "generate" };
    tool.insert("action".to_owned(), action.into());
}

/// Returns width and height. A ratio takes precedence over a size.
fn size(
    chat: &Conversation<'_>,
    passes: impl Fn(Parameter) -> bool,
) -> Result<Option<String>, Fault> {
    let given = |parameter| {
        let word = chat.option_text(parameter);
        word.filter(|word| !word.is_empty() && passes(parameter))
    };
    let (ratio, size) = (
        given(Parameter::ImageAspectRatio),
        given(Parameter::ImageSize),
    );
    let (ratio, size) = (ratio.as_deref(), size.as_deref());
    let is_pixels = size.is_none_or(|size| {
        let (width, height) = size.split_once('x').unwrap_or((size, size));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        size == "auto" || size.contains('x') && is_number(width) && is_number(height)
    });
    // 1K is the size that the three ratios have.
    if !is_pixels && size != Some("1K") {
        return Err(unsaid(
            Parameter::ImageSize,
            size,
            "`auto`, `1K`, or pixels such as `1024x1024`",
        ));
    }
    let Some(ratio) = ratio else {
        return Ok(size.filter(|_| is_pixels).map(str::to_owned));
    };
    match drawn::size_of_ratio(ratio) {
        Some(size) => Ok(Some(size.to_owned())),
        None => Err(unsaid(
            Parameter::ImageAspectRatio,
            Some(ratio),
            "`1:1`, `3:2` or `2:3`",
        )),
    }
}

fn unsaid(parameter: Parameter, came: Option<&str>, accepted: &str) -> Fault {
    let path = parameter.as_str();
    let came: String = came.unwrap_or_default().chars().take(40).collect();
    let message = format!("`{path}` is {came:?}; the chosen provider takes {accepted}");
    Fault::invalid(path, message)
}
