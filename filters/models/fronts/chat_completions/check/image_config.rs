//! `image_config`. Source: docs/model-gateway.md 2.1.

use super::Findings;
use crate::json::Walker;
use crate::models::check::read::{integer, number, object_of_set, one_of, string};
use crate::models::check::reject::Reject;
use crate::models::parameter::Parameter;

const MEMBERS: [&str; 6] = [
    "aspect_ratio",
    "image_size",
    "image_quality",
    "moderation",
    "n",
    "seed",
];
const QUALITIES: [&str; 6] = ["low", "medium", "high", "xhigh", "max", "auto"];
/// The most images of one answer. Our choice: the bound that image generation has (docs/model-gateway.md 2.7).
const MAX_IMAGES: u64 = 10;

/// The object. With any member that is set it asks for images; `auto` asks for nothing more.
pub(super) fn image_config(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    object_of_set(walk, &MEMBERS, |walk, key| {
        found.needs.image_output = Some(true);
        let (parameter, is_asked) = match key {
            "image_quality" => (Parameter::ImageQuality, one_of(walk, &QUALITIES)? != "auto"),
            "moderation" => (
                Parameter::ImageModeration,
                one_of(walk, &["auto", "low"])? != "auto",
            ),
            "n" => {
                let count = integer(walk, 1, MAX_IMAGES)?;
                // Not in the set: a provider that draws one at a time is asked several times.
                let count = (Parameter::ImageCount, count as f64);
                found.asked.numbers.push(count);
                return Ok(());
            }
            "seed" => {
                number(walk)?;
                (Parameter::ImageSeed, true)
            }
            _ => {
                let is_given = !string(walk)?.is_empty();
                let parameter = match key {
                    "aspect_ratio" => Parameter::ImageAspectRatio,
                    _ => Parameter::ImageSize,
                };
                (parameter, is_given)
            }
        };
        if is_asked {
            found.asked.set.insert(parameter);
        }
        Ok(())
    })
}
