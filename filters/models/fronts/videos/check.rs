//! The 400 rules of an order of a video, in one pass over its bytes. Source: docs/model-gateway.md 2.17.

use std::ops::Range;

use bytes::Bytes;

use super::Videos;
use crate::fault::Fault;
use crate::json::{Type, Walker};
use crate::models::check::media::{self as pictures, Addresses};
use crate::models::check::read::{array, integer, object, required, string};
use crate::models::check::reject::{Reject, other};
use crate::models::check::shape::{Field, plain_request, read_body};
use crate::models::request::{ModelRequest, Payload, Source};
use crate::models::videos::{Callback, VideoFacts, VideoSize};
use crate::money::{Unit, UnitCounts};

/// The longest video. Our choice: what is reserved has a bound.
const MAX_SECONDS: u64 = 600;
/// The longest prompt, in bytes.
const MAX_PROMPT_BYTES: usize = 32 << 10;
/// How many pictures, videos and sounds may be followed, of each. Source: docs/facts/model-gateway.md 1.10.
const MAX_REFERENCES: usize = 3;
/// The longest address and the longest secret of a callback.
const MAX_URL_BYTES: usize = 2048;
const MAX_SECRET_BYTES: usize = 512;

const SECONDS: &str = "an integer from 1 to 600";
const IMAGE: &str = "an https address, or a base64 data URL of an image";
const CALLBACK: &str = "an https address of at most 2,048 bytes, without user name and password";

/// The findings of the pass.
#[derive(Debug, Default)]
pub(super) struct Findings {
    model: Option<Box<str>>,
    prompt_bytes: u64,
    facts: VideoFacts,
    images: u64,
    callback_url: Option<Box<str>>,
    callback_secret: Option<Box<str>>,
}

type Row = Field<Findings>;

pub(super) static FIELDS: [Row; 14] = [
    Row::model(|found, model| found.model = Some(model)),
    Row::own("prompt", prompt).required("a text"),
    Row::own("seconds", |walk, found| {
        seconds(walk).map(|seconds| found.facts.seconds = seconds)
    })
    .required(SECONDS),
    Row::text("size", |found, text| {
        size(text).map(|size| found.facts.size = size)
    })
    .doc("Width and height in pixels; default `1280x720`."),
    Row::flag("audio", |found, audio| found.facts.audio = Some(audio))
        .doc("Whether it has sound; default true."),
    Row::integer("n", 1, 1, |_, _| ()),
    Row::own("image", |walk, found| {
        image(walk, found).map(|place| found.facts.image = Some(place))
    }),
    Row::own("last_frame", |walk, found| {
        image(walk, found).map(|place| found.facts.last_frame = Some(place))
    }),
    Row::own("reference_images", references),
    Row::own("input_reference", |walk, found| {
        let place = image(walk, found)?;
        add_reference(found, place)
    }),
    Row::own("reference_videos", |walk, found| {
        media(walk, "video_url", found, "reference_videos")
    }),
    Row::own("reference_audios", |walk, found| {
        media(walk, "audio_url", found, "reference_audios")
    }),
    Row::text("callback_url", callback_url).doc("Who is told of the end: https, and public."),
    Row::text("callback_secret", secret).doc("Signs the webhook; required beside `callback_url`."),
];

/// Checks a body.
///
/// Cost: one pass; allocates for keys and addresses. Errors: 400 naming the field, what came and what is accepted.
pub(super) fn check(body: Bytes) -> Result<ModelRequest, Fault> {
    let (mut found, members): (Findings, _) = read_body(&[&FIELDS], &body)?;
    check_together(&mut found).map_err(Reject::into_fault)?;
    let output_ms = u64::from(found.facts.seconds) * 1000;
    let units = UnitCounts::default().with(Unit::OutputTime, output_ms);
    let source = Source::new(body, members);
    let payload = Payload::Videos(found.facts);
    let mut request = plain_request(&Videos, found.model, source, payload);
    request.needs.vision = found.images > 0;
    request.cost_inputs.bytes = found.prompt_bytes;
    request.cost_inputs.units = units;
    Ok(ModelRequest {
        text_bytes: found.prompt_bytes,
        units,
        ..request
    })
}

/// Checks what members mean beside each other.
fn check_together(found: &mut Findings) -> Result<(), Reject> {
    let facts = &mut found.facts;
    if facts.last_frame.is_some() && facts.image.is_none() {
        let said = "came without `image`; accepted is a last frame beside a first one";
        return Err(Reject::rule(said).within("last_frame"));
    }
    let has_references = !facts.reference_images.is_empty() || facts.reference_media.is_some();
    if facts.image.is_some() && has_references {
        let said = "came beside references; accepted are frames or references";
        return Err(Reject::rule(said).within("image"));
    }
    let (url, secret) = (found.callback_url.take(), found.callback_secret.take());
    facts.callback = match (url, secret) {
        (Some(url), Some(secret)) => Some(Callback { url, secret }),
        (Some(_), None) => {
            let said =
                "is missing; accepted beside `callback_url` is a text that signs the webhook";
            return Err(Reject::rule(said).within("callback_secret"));
        }
        (None, Some(_)) => {
            let said = format!("is missing beside `callback_secret`; accepted is {CALLBACK}");
            return Err(Reject::rule(said).within("callback_url"));
        }
        (None, None) => None,
    };
    Ok(())
}

fn prompt(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    walk.peek()?;
    let start = walk.at();
    let text = string(walk)?;
    let bytes = text.len();
    if text.unescaped().trim().is_empty() {
        return Err(Reject::rule("is empty; accepted is a text"));
    }
    if bytes > MAX_PROMPT_BYTES {
        let said = format!("has {bytes} bytes; accepted are at most {MAX_PROMPT_BYTES}");
        return Err(Reject::rule(said));
    }
    found.prompt_bytes = bytes as u64;
    found.facts.prompt = start..walk.at();
    Ok(())
}

/// A number, or its digits as a text, as the convention has it.
fn seconds(walk: &mut Walker<'_>) -> Result<u32, Reject> {
    if walk.peek()? != Type::String {
        return Ok(integer(walk, 1, MAX_SECONDS)? as u32);
    }
    let text = walk.string()?.unescaped();
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let value = text.parse().ok().filter(|_| is_plain);
    let value = value.filter(|value| (1..=MAX_SECONDS).contains(value));
    match value {
        Some(value) => Ok(value as u32),
        None => {
            let shown: String = text.chars().take(40).collect();
            let said = format!("is {shown:?}; accepted is {SECONDS}");
            Err(Reject::rule(said))
        }
    }
}

fn size(text: &str) -> Result<VideoSize, Reject> {
    VideoSize::parse(text).ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        let said =
            format!("is {shown:?}; accepted is a width and a height in pixels as in `1280x720`");
        Reject::rule(said)
    })
}

/// An image: an address, or an object that holds it. Returns where the address stands.
fn image(walk: &mut Walker<'_>, found: &mut Findings) -> Result<Range<usize>, Reject> {
    let mut place = None;
    match walk.peek()? {
        Type::String => place = Some(image_url(walk)?),
        Type::Object => object(walk, &["image_url", "url"], |walk, _| {
            place = Some(match walk.peek()? {
                Type::Object => nested_url(walk)?,
                _ => image_url(walk)?,
            });
            Ok(())
        })?,
        _ => return Err(other(walk, IMAGE)),
    }
    found.images += 1;
    required(place, "image_url", IMAGE)
}

/// `{url}`, as chats have it.
fn nested_url(walk: &mut Walker<'_>) -> Result<Range<usize>, Reject> {
    let mut place = None;
    object(walk, &["url"], |walk, _| {
        place = Some(image_url(walk)?);
        Ok(())
    })?;
    required(place, "url", IMAGE)
}

fn image_url(walk: &mut Walker<'_>) -> Result<Range<usize>, Reject> {
    walk.peek()?;
    let start = walk.at();
    let url = string(walk)?.unescaped();
    pictures::picture(&url, Addresses::Https)?;
    Ok(start..walk.at())
}

fn references(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let count = array(walk, |walk, _| {
        let place = image(walk, found)?;
        add_reference(found, place)
    })?;
    not_empty(count)
}

fn add_reference(found: &mut Findings, place: Range<usize>) -> Result<(), Reject> {
    if found.facts.reference_images.len() >= MAX_REFERENCES {
        return Err(too_many());
    }
    found.facts.reference_images.push(place);
    Ok(())
}

fn too_many() -> Reject {
    Reject::rule(format!("is one of more than {MAX_REFERENCES} references"))
}

fn not_empty(count: usize) -> Result<(), Reject> {
    match count {
        0 => Err(Reject::rule("is empty; accepted are 1 to 3 references")),
        _ => Ok(()),
    }
}

/// Videos or sounds to follow, which only their providers fetch.
fn media(
    walk: &mut Walker<'_>,
    key: &'static str,
    found: &mut Findings,
    name: &'static str,
) -> Result<(), Reject> {
    let count = array(walk, |walk, index| {
        if index >= MAX_REFERENCES {
            return Err(too_many());
        }
        let mut has_url = false;
        let mut url = |walk: &mut Walker<'_>| {
            has_url = true;
            pictures::https_address(&string(walk)?.unescaped())
        };
        match walk.peek()? {
            Type::Object => object(walk, &[key, "url"], |walk, _| url(walk))?,
            _ => url(walk)?,
        }
        required(has_url.then_some(()), key, pictures::HTTPS)
    })?;
    found.facts.reference_media = Some(name);
    not_empty(count)
}

/// Whether its host may be asked is checked where the names of hosts are known.
fn callback_url(found: &mut Findings, url: &str) -> Result<(), Reject> {
    let rest = url.strip_prefix("https://").or(url.strip_prefix("http://"));
    let authority = rest.map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    let is_address = authority.is_some_and(|it| !it.is_empty() && !it.contains(['@', '\\']));
    let is_clean = url.bytes().all(|byte| byte.is_ascii_graphic());
    match is_address && is_clean && url.len() <= MAX_URL_BYTES {
        true => found.callback_url = Some(url.into()),
        false => return Err(Reject::rule(format!("is none; accepted is {CALLBACK}"))),
    }
    Ok(())
}

fn secret(found: &mut Findings, secret: &str) -> Result<(), Reject> {
    if !(1..=MAX_SECRET_BYTES).contains(&secret.len()) {
        let said = format!("is empty or too long; accepted are 1 to {MAX_SECRET_BYTES} bytes");
        return Err(Reject::rule(said));
    }
    found.callback_secret = Some(secret.into());
    Ok(())
}
