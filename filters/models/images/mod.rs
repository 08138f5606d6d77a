//! Images: what wires need to know of a request for some.

use std::ops::Range;

use super::chat::inlined::RemoteImage;

/// The most images of one request. Source: docs/model-gateway.md 2.7.
pub const MAX_COUNT: u32 = 10;
/// The most images that one request edits. Source: docs/model-gateway.md 2.7.
pub const MAX_INPUTS: usize = 16;

/// What a front found in a request for images.
#[derive(Clone, Debug)]
pub struct ImageFacts {
    /// Whether images are edited; else they are made of the prompt alone.
    pub is_edit: bool,
    /// How many images are asked for, from 1 to [`MAX_COUNT`].
    pub count: u32,
    /// The prompt: a JSON string of the body.
    pub prompt: Range<usize>,
    /// The images to edit: JSON strings of the body, each an address or a data URL.
    pub images: Vec<Range<usize>>,
    /// Those of them that are addresses.
    pub remote: Vec<RemoteImage>,
    pub options: ImageOptions,
    /// Members that the gateway does not know, as key and JSON value.
    pub unknown: Vec<(Box<str>, Box<str>)>,
}

/// How images are drawn; absent: as the model does by itself. Source: docs/model-gateway.md 2.7.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct ImageOptions {
    /// `1024x1024`, `2K` or as the provider says it.
    pub size: Option<Box<str>>,
    /// Width to height, such as `16:9`.
    pub aspect_ratio: Option<Box<str>>,
    /// `low` to `max`.
    pub quality: Option<&'static str>,
    /// `vivid` or `natural`.
    pub style: Option<&'static str>,
    /// `low`: what the provider's filter lets pass is more.
    pub moderation: Option<&'static str>,
    /// `transparent` or `opaque`.
    pub background: Option<&'static str>,
    /// `high` or `low`.
    pub input_fidelity: Option<&'static str>,
    /// `png`, `jpeg` or `webp`.
    pub output_format: Option<&'static str>,
    /// 0 to 100.
    pub output_compression: Option<u8>,
    /// How many unfinished images a stream may show, 0 to 3.
    pub partial_images: Option<u8>,
}

/// Reads a size in pixels, such as `1536x1024`; `None`: it is not one.
pub fn pixels(size: &str) -> Option<(u32, u32)> {
    let (width, height) = size.split_once('x')?;
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        text.parse()
            .ok()
            .filter(|number| is_number && *number > 0_u32)
    };
    number(width).zip(number(height))
}

/// Returns which of the `known` ratios, such as `16:9`, a width and a height have; `None`: they are more than 3 % off any of
/// them.
pub fn ratio_of<'k>((width, height): (u32, u32), known: &[&'k str]) -> Option<&'k str> {
    let wanted = f64::from(width) / f64::from(height);
    let off = |ratio: &str| {
        let (width, height) = ratio.split_once(':')?;
        let ratio = width.parse::<f64>().ok()? / height.parse::<f64>().ok()?;
        Some((ratio / wanted).ln().abs())
    };
    let offs = known
        .iter()
        .filter_map(|ratio| off(ratio).map(|off| (off, *ratio)));
    let (off, nearest) = offs.min_by(|(one, _), (other, _)| one.total_cmp(other))?;
    (off < 0.03).then_some(nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_in_pixels_has_the_nearest_ratio() {
        const KNOWN: [&str; 4] = ["1:1", "3:2", "16:9", "9:16"];
        for (size, expected) in [
            ("1024x1024", Some("1:1")),
            ("1536x1024", Some("3:2")),
            ("1792x1024", Some("16:9")),
            ("720x1280", Some("9:16")),
            ("1000x100", None),
        ] {
            assert_eq!(
                pixels(size).and_then(|pixels| ratio_of(pixels, &KNOWN)),
                expected,
                "{size}"
            );
        }
        for none in [
            "2K",
            "x",
            "1x",
            "0x5",
            "-1x5",
            "+1x5",
            "1x2x3",
            "99999999999x1",
        ] {
            assert_eq!(pixels(none), None, "{none}");
        }
    }
}
