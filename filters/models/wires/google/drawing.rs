//! Images out over this wire. Source: docs/facts/wire-formats.md 4.1.

use serde_json::{Map, Value};

use crate::fault::Fault;
use crate::models::chat::conversation::Conversation;
use crate::models::images::{pixels, ratio_of};
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;
use crate::models::routing::parameters::Treatment;
use crate::models::wires::wire::Target;

/// The ratios that the models draw.
const RATIOS: [&str; 10] = [
    "1:1", "2:3", "3:2", "3:4", "4:3", "4:5", "5:4", "9:16", "16:9", "21:9",
];
/// The sizes, by the longer side in pixels up to which each is meant.
const SIZES: [(u32, &str); 3] = [(1792, "1K"), (2560, "2K"), (u32::MAX, "4K")];

/// Returns what makes the model draw, and how: members of the generation's configuration.
///
/// Errors: 400 for a size in pixels whose ratio the models do not draw.
pub(super) fn members(
    request: &ModelRequest,
    chat: &Conversation<'_>,
    target: &Target<'_>,
) -> Result<Map<String, Value>, Fault> {
    let asked = chat.option(Parameter::Modalities);
    let asked = asked.and_then(|asked| serde_json::from_str(asked.get()).ok());
    let asked: Vec<String> = asked.unwrap_or_default();
    let words: Vec<Value> = match asked.iter().any(|word| word == "image") {
        true => asked
            .iter()
            .map(|word| word.to_ascii_uppercase().into())
            .collect(),
        false => vec!["TEXT".into(), "IMAGE".into()],
    };
    let mut out = Map::new();
    out.insert("responseModalities".to_owned(), words.into());
    let passes = |parameter| target.treat(parameter, request) == Treatment::Pass;
    let given = |parameter| {
        let word = chat.option_text(parameter)?;
        (!word.is_empty() && passes(parameter)).then(|| word.into_owned())
    };
    let size = given(Parameter::ImageSize);
    let in_pixels = size.as_deref().and_then(pixels);
    // A ratio takes precedence over the one that a size has.
    let ratio = given(Parameter::ImageAspectRatio);
    let ratio = match (ratio, in_pixels) {
        (None, Some(pixels)) => Some(ratio_of(pixels, &RATIOS).ok_or_else(unsaid)?.to_owned()),
        (ratio, _) => ratio,
    };
    let mut image = Map::new();
    if let Some(ratio) = ratio {
        image.insert("aspectRatio".to_owned(), ratio.into());
    }
    if let Some(size) = size {
        let size = match in_pixels {
            Some(pixels) => size_of(pixels),
            None => named_size(&size),
        };
        image.insert("imageSize".to_owned(), size.into());
    }
    if !image.is_empty() {
        out.insert("imageConfig".to_owned(), Value::Object(image));
    }
    let seed = chat.option(Parameter::ImageSeed);
    let seed = seed.filter(|_| passes(Parameter::ImageSeed));
    if let Some(seed) = seed.and_then(|raw| serde_json::from_str(raw.get()).ok()) {
        out.insert("seed".to_owned(), seed);
    }
    Ok(out)
}

/// Half of 1K is a number at this provider.
fn named_size(size: &str) -> &str {
    if size.eq_ignore_ascii_case("0.5K") {
        "512"
    } else {
        size
    }
}

/// Returns the name of a size in pixels.
fn size_of((width, height): (u32, u32)) -> &'static str {
    let side = width.max(height);
    let mut sizes = SIZES.iter();
    sizes
        .find(|(most, _)| side <= *most)
        .map_or("4K", |(_, name)| name)
}

fn unsaid() -> Fault {
    let param = Parameter::ImageSize.as_str();
    let known = RATIOS.join(", ");
    let message = format!(
        "`{param}` has a ratio of width to height that the chosen provider does not draw; it draws {known}"
    );
    Fault::invalid(param, message)
}
