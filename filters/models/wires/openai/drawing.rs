//! Images out in this convention: `modalities` that name images, and `image_config` beside them.

use std::borrow::Cow;

use super::request;
use crate::fault::Fault;
use crate::json::{Error, Object, Str, Walker, quoted};
use crate::models::chat::conversation::{BlockKind, Conversation, MediaSource};
use crate::models::chat::facts::ChatFacts;
use crate::models::dialects::chat::{IMAGE_CONFIG, find_image_parameter};
use crate::models::parameter::Parameter;
use crate::models::request::{ModelRequest, RequestMember, Source};
use crate::models::routing::parameters::Treatment;
use crate::models::wires::codec::BodySlice;
use crate::models::wires::wire::Target;

/// Encodes a request for images as the chat that draws them.
pub(super) fn encode(request: &ModelRequest, target: &Target<'_>) -> Result<Vec<BodySlice>, Fault> {
    let conversation = request.front.conversation(request)?;
    let chat = ModelRequest {
        source: chat(&conversation, request),
        ..request.clone()
    };
    request::encode(&chat, &ChatFacts::default(), target)
}

/// Returns the body of a chat that says a request for images.
fn chat(conversation: &Conversation<'_>, request: &ModelRequest) -> Source {
    let (mut body, mut members) = (
        Vec::with_capacity(conversation.body.len() + 1024),
        Vec::new(),
    );
    let mut member = |key: &str, write: &dyn Fn(&mut Vec<u8>)| {
        body.push(if members.is_empty() { b'{' } else { b',' });
        let start = body.len();
        Str::Plain(key).write(&mut body);
        body.push(b':');
        let from = body.len();
        write(&mut body);
        members.push(RequestMember {
            key: key.into(),
            whole: start..body.len(),
            value: from..body.len(),
        });
    };
    member("model", &|out| out.extend(quoted(&request.model).bytes()));
    member("messages", &|out| messages(conversation, out));
    member("image_config", &|out| {
        let mut config = Object::open(out);
        for (key, parameter) in IMAGE_CONFIG {
            if let Some(value) = conversation.option(parameter) {
                config.raw(key, value.get());
            }
            if let Some(count) = request
                .image_count()
                .filter(|_| parameter == Parameter::ImageCount)
            {
                config.number(key, count.into());
            }
        }
        config.close();
    });
    if let Some(word) = request.needs.service_tier.wire_word() {
        member("service_tier", &|out| out.extend(quoted(word).bytes()));
    }
    if request.is_stream {
        member("stream", &|out| out.extend_from_slice(b"true"));
    }
    body.push(b'}');
    Source::new(body.into(), members)
}

/// Writes the turns: a text each, or parts where images stand beside it.
fn messages(conversation: &Conversation<'_>, out: &mut Vec<u8>) {
    out.push(b'[');
    for (at, turn) in conversation.turns.iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        let mut message = Object::open(out);
        message.text("role", "user");
        match turn.blocks.as_slice() {
            [one] => {
                if let BlockKind::Text(text) = &one.kind {
                    message.text("content", text);
                }
            }
            blocks => message.array("content", blocks, |block, out| {
                let mut part = Object::open(out);
                match &block.kind {
                    BlockKind::Text(text) => {
                        part.text("type", "text");
                        part.text("text", text);
                    }
                    BlockKind::Media(media) => {
                        if let MediaSource::Url(url) = &media.source {
                            part.text("type", "image_url");
                            part.object("image_url", |image| image.text("url", url));
                        }
                    }
                    _ => {}
                }
                part.close();
            }),
        }
        message.close();
    }
    out.push(b']');
}

/// Returns what goes out of `image_config`; `None`: nothing does.
pub(super) fn image_config(
    value: &[u8],
    request: &ModelRequest,
    target: &Target<'_>,
) -> Option<Vec<u8>> {
    if !target.draws(request) {
        return None;
    }
    // Of images that are asked for one after the other each request has its own number.
    let of_part = target.images_of_part(request);
    let mut out = b"{".to_vec();
    let mut walk = Walker::over(std::str::from_utf8(value).ok()?);
    let walked = walk.object(|walk, key| {
        let member = walk.skip()?;
        if let Some(parameter) = find_image_parameter(&key)
            && target.parameters.supports(parameter)
        {
            let member = match target.treat(parameter, request) {
                Treatment::Drop => return Ok(()),
                _ if parameter == Parameter::ImageCount => Cow::Owned(of_part.to_string()),
                Treatment::Pass => Cow::Borrowed(member),
                Treatment::Number(number) => Cow::Owned(number.to_string()),
            };
            Str::Plain(&key).write(&mut out);
            out.push(b':');
            out.extend_from_slice(member.as_bytes());
            out.push(b',');
        }
        Ok::<(), Error>(())
    });
    walked.ok()?;
    let last = out.last_mut().filter(|last| **last == b',')?;
    *last = b'}';
    Some(out)
}

/// Returns whether the provider has to be told that images are wanted: the request does not say it itself.
pub(super) fn must_say_modalities(request: &ModelRequest, target: &Target<'_>) -> bool {
    let given = request.source.member("modalities");
    let is_given = given.is_some_and(|given| !request.source.is_null(given));
    !is_given && target.draws(request) && target.parameters.supports(Parameter::Modalities)
}
