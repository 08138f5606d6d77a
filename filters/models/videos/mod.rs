//! Videos: what wires need to know of a request, and the job that it begins.
//!
//! A [`job`] is what clients see. A [`order`] is what the store keeps of it: what was ordered, and how far it has come. The
//! [`progress`] of a job follows from what its provider says, a [`range`] is a part of its bytes, a [`webhook`] tells the
//! end of a job. All of it is pure; `src/models/videos` asks providers and callbacks.

pub mod job;
pub mod order;
pub mod progress;
pub mod range;
pub mod webhook;

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// What a front found in a request for a video.
#[derive(Clone, Debug, Default)]
pub struct VideoFacts {
    pub seconds: u32,
    pub size: VideoSize,
    /// Whether it has sound; `None`: the client does not say, so it has.
    pub audio: Option<bool>,
    /// The prompt, as JSON.
    pub prompt: Range<usize>,
    /// The address of the first frame, as JSON.
    pub image: Option<Range<usize>>,
    /// The address of the last frame, as JSON.
    pub last_frame: Option<Range<usize>>,
    /// The addresses of pictures of what it shows, as JSON.
    pub reference_images: Vec<Range<usize>>,
    /// The first member that names videos or sounds to follow.
    pub reference_media: Option<&'static str>,
    pub callback: Option<Callback>,
}

/// Who is told of the end of a job.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Callback {
    pub url: Box<str>,
    pub secret: Box<str>,
}

/// Width and height. Units: pixels.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct VideoSize {
    /// From left to right.
    pub width: u16,
    /// From top to bottom.
    pub height: u16,
}

impl Default for VideoSize {
    /// Returns the size of a request that names none.
    fn default() -> Self {
        Self {
            width: 1280,
            height: 720,
        }
    }
}

impl std::fmt::Display for VideoSize {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}x{}", self.width, self.height)
    }
}

/// The least and the most pixels of a side.
const SIDES: std::ops::RangeInclusive<u16> = 64..=8192;

impl VideoSize {
    /// Parses `1280x720`; `None`: it is not a size, or a side is under 64 or over 8,192 pixels.
    pub fn parse(text: &str) -> Option<Self> {
        let side = |text: &str| -> Option<u16> {
            let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
            let side = text.parse().ok().filter(|_| is_plain)?;
            SIDES.contains(&side).then_some(side)
        };
        let (width, height) = text.split_once('x')?;
        Some(Self {
            width: side(width)?,
            height: side(height)?,
        })
    }
}

/// What a mapping makes. An empty list leaves it to the provider.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct VideoLimits {
    pub sizes: Vec<VideoSize>,
    pub seconds: Vec<u32>,
}

impl VideoLimits {
    /// Errors: the field of a request that asks for something else, and why.
    pub fn check(&self, asked: &VideoFacts) -> Result<(), (&'static str, String)> {
        if !self.sizes.is_empty() && !self.sizes.contains(&asked.size) {
            let made = join(&self.sizes);
            return Err(("size", format!("makes {made}, not `{}`", asked.size)));
        }
        if !self.seconds.is_empty() && !self.seconds.contains(&asked.seconds) {
            let made = join(&self.seconds);
            return Err((
                "seconds",
                format!("makes {made} seconds, not {}", asked.seconds),
            ));
        }
        Ok(())
    }
}

fn join<T: ToString>(all: &[T]) -> String {
    let texts: Vec<String> = all.iter().map(T::to_string).collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_has_two_sides_in_pixels() {
        let size = VideoSize {
            width: 1920,
            height: 1080,
        };
        assert_eq!(VideoSize::parse("1920x1080"), Some(size));
        assert_eq!(size.to_string(), "1920x1080");
        for bad in [
            "",
            "x",
            "1920",
            "1920x",
            "x1080",
            "1920X1080",
            "+640x480",
            "640x-480",
            "63x64",
            "8193x64",
            "1920x1080x2",
            " 640x480",
            "99999999x1",
        ] {
            assert_eq!(VideoSize::parse(bad), None, "{bad}");
        }
    }

    /// Contract: model-gateway 2.17 size
    #[test]
    fn a_mapping_makes_what_it_lists() {
        let limits = VideoLimits {
            sizes: vec![VideoSize::default()],
            seconds: vec![4, 8],
        };
        let asked = |seconds, size| VideoFacts {
            seconds,
            size: VideoSize::parse(size).unwrap_or_default(),
            ..VideoFacts::default()
        };
        assert_eq!(limits.check(&asked(8, "1280x720")), Ok(()));
        let (field, why) = limits.check(&asked(8, "720x1280")).unwrap_err();
        assert_eq!((field, &*why), ("size", "makes 1280x720, not `720x1280`"));
        let (field, why) = limits.check(&asked(5, "1280x720")).unwrap_err();
        assert_eq!((field, &*why), ("seconds", "makes 4, 8 seconds, not 5"));
        let open = VideoLimits::default();
        assert_eq!(open.check(&asked(5, "720x1280")), Ok(()));
    }
}
