//! The chat that a request for images stands for: "The image operations are implemented on top of chat completion
//! routing, so their options are forwarded to the underlying chat completion". Source: docs/model-gateway.md 4.

use std::ops::Range;

use bytes::Bytes;

use super::check::Findings;
use crate::json::{Object, Str};
use crate::models::images::ImageOptions;
use crate::models::request::{RequestMember, Source};

/// Where the prompt and the images stand in the chat.
pub(super) struct Places {
    pub(super) prompt: Range<usize>,
    pub(super) images: Vec<Range<usize>>,
}

/// Writes the chat of a checked body.
pub(super) fn write(body: &Bytes, model: &str, found: &Findings) -> (Source, Places) {
    let mut chat = Chat {
        out: Vec::with_capacity(body.len() + 1024),
        members: Vec::with_capacity(5),
    };
    let mut places = Places {
        prompt: 0..0,
        images: Vec::with_capacity(found.inputs.places.len()),
    };
    chat.member("model", |out| Str::Plain(model).write(out));
    chat.member("messages", |out| message(body, found, &mut places, out));
    chat.member("image_config", |out| image_config(body, found, out));
    if let Some(word) = found.tier.wire_word() {
        chat.member("service_tier", |out| Str::Plain(word).write(out));
    }
    if found.is_stream {
        chat.member("stream", |out| out.extend_from_slice(b"true"));
    }
    chat.out.push(b'}');
    let source = Source::new(chat.out.into(), chat.members);
    (source, places)
}

struct Chat {
    out: Vec<u8>,
    members: Vec<RequestMember>,
}

impl Chat {
    fn member(&mut self, key: &str, value: impl FnOnce(&mut Vec<u8>)) {
        let out = &mut self.out;
        out.push(if self.members.is_empty() { b'{' } else { b',' });
        let start = out.len();
        Str::Plain(key).write(out);
        out.push(b':');
        let from = out.len();
        value(out);
        self.members.push(RequestMember {
            key: key.into(),
            whole: start..out.len(),
            value: from..out.len(),
        });
    }
}

/// One message of the user: the prompt, and the images behind it.
fn message(body: &Bytes, found: &Findings, places: &mut Places, out: &mut Vec<u8>) {
    let copy = |place: &Range<usize>, out: &mut Vec<u8>| {
        let start = out.len();
        out.extend_from_slice(body.get(place.clone()).unwrap_or_default());
        start..out.len()
    };
    let prompt = found
        .prompt
        .as_ref()
        .map_or(0..0, |(place, _)| place.clone());
    out.extend_from_slice(b"[{\"role\":\"user\",\"content\":");
    if found.inputs.places.is_empty() {
        places.prompt = copy(&prompt, out);
    } else {
        out.extend_from_slice(b"[{\"type\":\"text\",\"text\":");
        places.prompt = copy(&prompt, out);
        for place in &found.inputs.places {
            out.extend_from_slice(b"},{\"type\":\"image_url\",\"image_url\":{\"url\":");
            places.images.push(copy(place, out));
            out.push(b'}');
        }
        out.extend_from_slice(b"}]");
    }
    out.extend_from_slice(b"}]");
}

/// `image_config`: what chats know of it, and the rest, which the wires take from the facts. It stands here all the same,
/// so that the key of a cached reply counts it.
fn image_config(body: &Bytes, found: &Findings, out: &mut Vec<u8>) {
    let ImageOptions {
        size,
        aspect_ratio,
        quality,
        style,
        moderation,
        background,
        input_fidelity,
        output_format,
        output_compression,
        partial_images,
    } = &found.options;
    let mut config = Object::open(out);
    config.optional_text("aspect_ratio", aspect_ratio.as_deref());
    config.optional_text("image_size", size.as_deref());
    config.optional_text("image_quality", *quality);
    config.optional_text("moderation", *moderation);
    config.number("n", found.count.into());
    config.optional_text("style", *style);
    config.optional_text("background", *background);
    config.optional_text("input_fidelity", *input_fidelity);
    config.optional_text("output_format", *output_format);
    let numbers = [
        ("output_compression", output_compression),
        ("partial_images", partial_images),
    ];
    for (key, number) in numbers {
        if let Some(number) = number {
            config.number(key, u64::from(*number));
        }
    }
    if !found.unknown.is_empty() {
        config.value("unknown", |out| unknown(body, found, out));
    }
    config.close();
}

fn unknown(body: &Bytes, found: &Findings, out: &mut Vec<u8>) {
    for (at, (key, place)) in found.unknown.iter().enumerate() {
        out.push(if at == 0 { b'{' } else { b',' });
        Str::Plain(key).write(out);
        out.push(b':');
        out.extend_from_slice(body.get(place.clone()).unwrap_or_default());
    }
    out.push(b'}');
}
