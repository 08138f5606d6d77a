//! The chat that a request for images stands for: "The image operations are implemented on top of chat completion routing, so
//! their options are forwarded to the underlying chat completion". Source: docs/model-gateway.md 4.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::value::{RawValue, to_raw_value};

use crate::json::{Str, Walker};
use crate::models::chat::conversation::{
    AnswerForm, Block, BlockKind, Conversation, Media, MediaKind, MediaSource, Role, Turn,
};
use crate::models::chat::text::Text;
use crate::models::dialects::Dialect;
use crate::models::images::{ImageFacts, ImageOptions};
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;

/// Returns one turn of the user, of the prompt and the images behind it, and how the image is drawn.
pub(super) fn read<'a>(request: &'a ModelRequest, images: &'a ImageFacts) -> Conversation<'a> {
    let body = std::str::from_utf8(&request.source.body).unwrap_or_default();
    let block = |place: &Range<usize>, kind: fn(Cow<'a, str>) -> BlockKind<'a>| {
        let mut walk = Walker::over(body.get(place.clone()).unwrap_or_default());
        let text = walk.string().map_or(Cow::Borrowed(""), Str::unescaped);
        Block::new(kind(text), u32::try_from(place.start).unwrap_or(u32::MAX))
    };
    let mut blocks = vec![block(&images.prompt, |text| BlockKind::Text(text.into()))];
    blocks.extend(images.images.iter().map(|place| block(place, image)));
    Conversation {
        dialect: Dialect::Chat,
        body,
        turns: vec![Turn::new(Role::User, 0, blocks)],
        tools: Vec::new(),
        choice: None,
        form: AnswerForm::Text,
        stop: Vec::new(),
        options: options(&images.options),
    }
}

fn image(url: Cow<'_, str>) -> BlockKind<'_> {
    BlockKind::Media(Media {
        kind: MediaKind::Image,
        source: MediaSource::Url(Text(url)),
        name: None,
        detail: None,
    })
}

/// Those options that chats have too.
fn options(own: &ImageOptions) -> Vec<(Parameter, Cow<'_, RawValue>)> {
    let words = [
        (Parameter::ImageAspectRatio, own.aspect_ratio.as_deref()),
        (Parameter::ImageSize, own.size.as_deref()),
        (Parameter::ImageQuality, own.quality),
        (Parameter::ImageModeration, own.moderation),
    ];
    let raw = |(parameter, word): (_, Option<&str>)| {
        let raw = to_raw_value(word?).ok()?;
        Some((parameter, Cow::Owned(raw)))
    };
    words.into_iter().filter_map(raw).collect()
}
