//! Whole replies, and the events of a stream. Source: docs/facts/wire-formats.md 6.4.

use bytes::Bytes;

use crate::json::{Error, Str, Type, Walker};
use crate::models::reply::Sink;
use crate::models::usage::Usage;
use crate::models::wires::decoder::{Decoder, Progress, ReplyHead};
use crate::models::wires::decoder::{EventDecoder, EventStream, Frame, WholeReply, truncated};
use crate::models::wires::drawn;
use crate::models::wires::error_body::classify_error;
use crate::models::wires::failure::Failure;
use crate::models::wires::scan::{count, malformed, object, seconds, text};
use crate::money::ServiceTier;

/// Returns the decoder of a reply that should have so many images.
pub(super) fn decoder(count: u64, head: &ReplyHead) -> Box<dyn Decoder> {
    if let Some(framing) = head.events {
        let events = ImageEvents {
            count,
            completed: 0,
        };
        return Box::new(EventStream::new(events, framing));
    }
    Box::new(WholeReply::new(read_whole))
}

fn read_whole(body: &Bytes, sink: &mut dyn Sink) -> Result<(), Failure> {
    let mut walk = Walker::new(body).map_err(malformed)?;
    let reply = Reply::read(&mut walk).map_err(malformed)?;
    walk.end().map_err(malformed)?;
    if let Some(error) = reply.error {
        return Err(classify_error(error));
    }
    let Some(data) = reply.data else {
        return Err(Failure::malformed("the provider's reply holds no images"));
    };
    reply.tell(sink);
    let mut has_address = false;
    let walked = Walker::over(data).array(|walk, _| {
        let image = Reply::read(walk)?;
        has_address |= image.data.is_none() && image.url.is_some();
        image.hand_out(sink);
        Ok::<(), Error>(())
    });
    walked.map_err(malformed)?;
    if has_address {
        let detail = "the provider's reply holds an address in place of an image";
        return Err(Failure::malformed(detail));
    }
    Ok(())
}

/// A reply, one of its images, or an event: which members are set depends on what it is. Lists and objects are JSON texts.
#[derive(Debug, Default)]
struct Reply<'a> {
    kind: Option<Str<'a>>,
    created: Option<u64>,
    error: Option<&'a str>,
    data: Option<&'a str>,
    b64_json: Option<Str<'a>>,
    url: Option<Str<'a>>,
    revised_prompt: Option<Str<'a>>,
    number: Option<u64>,
    /// Keys and values of what says how it is written.
    written: Vec<(&'static str, &'a str)>,
    service_tier: Option<Str<'a>>,
    usage: Option<Usage>,
}

const WRITTEN: [&str; 4] = ["background", "output_format", "quality", "size"];

impl<'a> Reply<'a> {
    fn read(walk: &mut Walker<'a>) -> Result<Self, Error> {
        let mut read = Self::default();
        if walk.peek()? != Type::Object {
            return walk.skip().map(|_| read);
        }
        walk.object(|walk, key| {
            match &*key {
                "type" => read.kind = text(walk)?,
                "created" | "created_at" => read.created = seconds(walk)?,
                "error" if walk.peek()? != Type::Null => read.error = Some(walk.skip()?),
                "data" if walk.peek()? == Type::Array => read.data = Some(walk.skip()?),
                "b64_json" => read.b64_json = text(walk)?,
                "url" => read.url = text(walk)?,
                "revised_prompt" => read.revised_prompt = text(walk)?,
                "partial_image_index" => read.number = walk.skip()?.parse().ok(),
                "service_tier" => read.service_tier = text(walk)?,
                "usage" => read.usage = usage(walk.skip()?),
                key => {
                    let known = WRITTEN.into_iter().find(|known| *known == key);
                    let value = walk.skip()?;
                    read.written.extend(known.map(|known| (known, value)));
                }
            }
            Ok::<(), Error>(())
        })?;
        Ok(read)
    }

    /// Hands out what it says of all its images.
    fn tell(&self, sink: &mut dyn Sink) {
        sink.identity(None, self.created);
        for (key, value) in &self.written {
            sink.member(key, value);
        }
        let tier = self.service_tier.map(Str::unescaped);
        if let Some(tier) = tier.as_deref().and_then(ServiceTier::from_reply) {
            sink.service_tier(tier);
        }
        if let Some(usage) = self.usage {
            sink.usage(usage);
        }
    }

    /// Hands out the image that it is.
    fn hand_out(&self, sink: &mut dyn Sink) -> bool {
        let Some(image) = self.image() else {
            return false;
        };
        sink.item(&image);
        true
    }

    /// The image in the public shape; `None`: it has none.
    fn image(&self) -> Option<Vec<u8>> {
        let data = self.b64_json.filter(|data| !data.is_empty())?;
        let mut image = Vec::with_capacity(data.len() + 64);
        image.extend_from_slice(b"{\"b64_json\":");
        data.write(&mut image);
        if let Some(prompt) = self.revised_prompt.filter(|prompt| !prompt.is_empty()) {
            image.extend_from_slice(b",\"revised_prompt\":");
            prompt.write(&mut image);
        }
        image.push(b'}');
        Some(image)
    }
}

/// Reads `usage`. Output tokens that are not told apart are those of images.
fn usage(json: &str) -> Option<Usage> {
    let details = ["input_tokens_details", "output_tokens_details"];
    let [input, output] = object(json, ["input_tokens", "output_tokens"])?;
    let [of_input, of_output] = object(json, details)?;
    if input.is_empty() && output.is_empty() {
        return None;
    }
    let [images, cached] = object(of_input, ["image_tokens", "cached_tokens"]).unwrap_or_default();
    let [drawn] = object(of_output, ["image_tokens"]).unwrap_or_default();
    let prompt = count(input).unwrap_or(0);
    let completion = count(output).unwrap_or(0);
    let drawn = match drawn {
        "" => completion,
        drawn => count(drawn).unwrap_or(0),
    };
    Some(Usage {
        prompt,
        completion,
        image_prompt: count(images).unwrap_or(0),
        cached: count(cached).unwrap_or(0).min(prompt),
        image_completion: drawn.min(completion),
        ..Usage::default()
    })
}

/// Reads events.
#[derive(Debug)]
struct ImageEvents {
    /// How many images should come.
    count: u64,
    completed: u64,
}

impl EventDecoder for ImageEvents {
    fn event(&mut self, event: Frame<'_>, sink: &mut dyn Sink) -> Result<Progress, Failure> {
        let data = event.data.trim_ascii();
        if data.is_empty() || data.starts_with(b"[DONE]") {
            return Ok(Progress::Open);
        }
        let mut walk = Walker::new(data).map_err(malformed)?;
        let read = Reply::read(&mut walk).map_err(malformed)?;
        let kind = read.kind.map(Str::unescaped);
        let kind = kind.as_deref().unwrap_or(event.name);
        if let Some(error) = read.error {
            return Err(classify_error(error));
        }
        if kind == "error" {
            let whole = std::str::from_utf8(data).unwrap_or_default();
            return Err(classify_error(whole));
        }
        if kind.ends_with(".partial_image") {
            read.tell(sink);
            if let Some(data) = read.b64_json {
                sink.partial(&drawn::partial(data, read.number.unwrap_or(0)));
            }
        } else if kind.ends_with(".completed") {
            read.tell(sink);
            self.completed += u64::from(read.hand_out(sink));
        }
        Ok(match self.completed >= self.count {
            true => Progress::Complete,
            false => Progress::Open,
        })
    }

    /// A provider may draw fewer than it was asked for.
    fn end(&mut self, _: &mut dyn Sink) -> Result<Progress, Failure> {
        match self.completed {
            0 => Err(truncated()),
            _ => Ok(Progress::Complete),
        }
    }
}
