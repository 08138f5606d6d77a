//! The 400 rules of a request for moderation, in one pass over its bytes. Source: docs/model-gateway.md 2.11.

use bytes::Bytes;

use super::MODERATIONS;
use crate::fault::Fault;
use crate::json::{Type, Walker};
use crate::models::check::media::{self, Addresses};
use crate::models::check::read::{array, object, one_of, required, string};
use crate::models::check::reject::{Reject, other};
use crate::models::check::shape::{Field, plain_request, read_body};
use crate::models::moderations::ModerationFacts;
use crate::models::request::{ModelRequest, Payload, Source};

/// The model of a request that names none. Source: docs/facts/model-gateway.md 1.11.
const DEFAULT_MODEL: &str = "omni-moderation-latest";
/// How many texts or parts a request may have. Our choice.
const MAX_ITEMS: usize = 1024;

const INPUT: &str = "a string, an array of strings, or an array of parts";
const PART: &str = "a string, or an object with a `type`";
const IMAGE: &str = "an http or https address, or a base64 data URL of an image";

/// The findings of the pass.
#[derive(Debug, Default)]
pub(super) struct Findings {
    model: Option<Box<str>>,
    results: usize,
    is_parts: bool,
    images: u64,
    text_bytes: u64,
    /// Bytes of the addresses and the data of images.
    image_bytes: u64,
}

type Row = Field<Findings>;

pub(super) static FIELDS: [Row; 2] = [
    Row::optional_model(|found, model| found.model = Some(model))
        .doc("Default `omni-moderation-latest`."),
    Row::own("input", input).required(INPUT),
];

/// Checks a body.
///
/// Cost: one pass; allocates for keys and addresses of images. Errors: 400 naming the field, what came and what is
/// accepted.
pub(super) fn check(body: Bytes) -> Result<ModelRequest, Fault> {
    let (found, members): (Findings, _) = read_body(&[&FIELDS], &body)?;
    let payload = Payload::Moderations(ModerationFacts {
        results: found.results,
        is_text_parts: found.is_parts && found.images == 0,
    });
    let model = found.model.unwrap_or_else(|| DEFAULT_MODEL.into());
    let source = Source::new(body, members);
    let mut request = plain_request(&MODERATIONS, Some(model), source, payload);
    request.needs.vision = found.images > 0;
    let cost_inputs = &mut request.cost_inputs;
    cost_inputs.bytes = cost_inputs.bytes.saturating_sub(found.image_bytes);
    cost_inputs.images = found.images;
    request.text_bytes = found.text_bytes;
    Ok(request)
}

fn input(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    match walk.peek()? {
        Type::String => {
            found.results = 1;
            text(walk, found)
        }
        Type::Array => items(walk, found),
        _ => Err(other(walk, INPUT)),
    }
}

/// An array: of texts, which are judged one by one, or of parts, which are judged together.
fn items(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let mut first = None;
    let count = array(walk, |walk, index| {
        if index >= MAX_ITEMS {
            let said = format!("is one of more than {MAX_ITEMS} items");
            return Err(Reject::rule(said));
        }
        let item = walk.peek()?;
        match (*first.get_or_insert(item), item) {
            (Type::String, Type::String) => text(walk, found),
            (Type::Object, Type::Object) => part(walk, found),
            (Type::String | Type::Object, _) => {
                Err(other(walk, "an item of the same type as the first"))
            }
            _ => Err(other(walk, PART)),
        }
    })?;
    found.is_parts = first == Some(Type::Object);
    found.results = if found.is_parts { 1 } else { count };
    match count {
        0 => Err(Reject::rule(
            "is empty; accepted is at least one text or part",
        )),
        _ => Ok(()),
    }
}

fn part(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let (mut kind, mut has_text, mut has_image) = (None, false, false);
    object(walk, &["type", "text", "image_url"], |walk, key| {
        match key {
            "type" => kind = Some(one_of(walk, &["text", "image_url"])?),
            "text" => {
                text(walk, found)?;
                has_text = true;
            }
            _ => {
                image(walk, found)?;
                has_image = true;
            }
        }
        Ok(())
    })?;
    match required(kind, "type", "`text` or `image_url`")? {
        "text" => required(has_text.then_some(()), "text", "a string"),
        _ => required(has_image.then_some(()), "image_url", "an object with `url`"),
    }
}

fn text(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let bytes = string(walk)?.len() as u64;
    if bytes == 0 {
        return Err(Reject::rule("is empty; accepted is a text"));
    }
    found.text_bytes = found.text_bytes.saturating_add(bytes);
    Ok(())
}

fn image(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let mut has_url = false;
    object(walk, &["url"], |walk, _| {
        let url = string(walk)?;
        found.image_bytes = found.image_bytes.saturating_add(url.len() as u64);
        has_url = true;
        media::picture(&url.unescaped(), Addresses::Http).map(|_| ())
    })?;
    found.images += 1;
    required(has_url.then_some(()), "url", IMAGE)
}
