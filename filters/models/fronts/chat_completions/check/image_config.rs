//! `image_config`. Source: docs/model-gateway.md 2.1.

use super::Findings;
use super::top::Row;
use crate::models::parameter::Parameter;

const QUALITIES: [&str; 6] = ["low", "medium", "high", "xhigh", "max", "auto"];
/// The most images of one answer. Our choice: the bound that image generation has (docs/model-gateway.md 2.7).
const MAX_IMAGES: u64 = 10;

/// Its members. With any that is set it asks for images; `auto` asks for nothing more.
pub(super) static IMAGE_CONFIG: [Row; 6] = [
    Row::text("aspect_ratio", |found, ratio| {
        ask(found, Parameter::ImageAspectRatio, !ratio.is_empty());
        Ok(())
    }),
    Row::text("image_size", |found, size| {
        ask(found, Parameter::ImageSize, !size.is_empty());
        Ok(())
    }),
    Row::choice("image_quality", &QUALITIES, |found, word| {
        ask(found, Parameter::ImageQuality, word != "auto");
    }),
    Row::choice("moderation", &["auto", "low"], |found, word| {
        ask(found, Parameter::ImageModeration, word != "auto");
    }),
    Row::integer("n", 1, MAX_IMAGES, |found, count| {
        found.needs.image_output = Some(true);
        // Not in the set: a provider that draws one at a time is asked several times.
        found
            .asked
            .numbers
            .push((Parameter::ImageCount, count as f64));
    }),
    Row::number("seed", |found, _| ask(found, Parameter::ImageSeed, true)),
];

fn ask(found: &mut Findings, parameter: Parameter, is_asked: bool) {
    found.needs.image_output = Some(true);
    if is_asked {
        found.asked.set.insert(parameter);
    }
}
