//! The 400 rules of a request for embeddings, in one pass over its bytes. Source: docs/model-gateway.md 2.6.

use std::ops::Range;
use std::sync::OnceLock;

use bytes::Bytes;

use super::EMBEDDINGS;
use crate::fault::Fault;
use crate::json::{Type, Walker};
use crate::models::check::read::{array, integer, string};
use crate::models::check::reject::{Reject, other};
use crate::models::check::shape::{Field, U32, plain_request, read_body};
use crate::models::embeddings::batch::Input;
use crate::models::embeddings::{EmbeddingFacts, Encoding};
use crate::models::parameter::{AskedParameters, Parameter};
use crate::models::request::{ModelRequest, Payload, Source};

/// How many inputs a request may have. Our choice: as many as OpenAI takes.
const MAX_INPUTS: usize = 2048;
const INPUT: &str =
    "a string, an array of strings, an array of integers, or an array of arrays of integers";

/// The findings of the pass.
#[derive(Debug, Default)]
pub(super) struct Findings {
    model: Option<Box<str>>,
    inputs: Vec<Input>,
    are_tokens: bool,
    encoding: Encoding,
    dimensions: Option<u32>,
}

type Row = Field<Findings>;

pub(super) static FIELDS: [Row; 5] = [
    Row::model(|found, model| found.model = Some(model)),
    Row::own("input", input).required(INPUT),
    Row::choice("encoding_format", &["float", "base64"], |found, word| {
        found.encoding = match word {
            "base64" => Encoding::Base64,
            _ => Encoding::Float,
        };
    })
    .strict(),
    Row::integer("dimensions", 1, U32, |found, length| {
        found.dimensions = u32::try_from(length).ok();
    })
    .strict()
    .doc("The length of vectors, of models that can shorten them."),
    Row::text("user", |_, _| Ok(()))
        .strict()
        .doc("Accepted; the provider gets an opaque id of the key."),
];

/// Checks a body.
///
/// Cost: one pass; allocates for keys and for the places of the inputs. Errors: 400 naming the field, what came and what is accepted.
pub(super) fn check(body: Bytes) -> Result<ModelRequest, Fault> {
    let (found, members): (Findings, _) = read_body(&[&FIELDS], &body)?;
    let (are_tokens, dimensions) = (found.are_tokens, found.dimensions);
    let asked = asked(&found);
    let text_bytes = found.inputs.iter().map(|input| input.bytes);
    let text_bytes = text_bytes.fold(0, u64::saturating_add);
    let payload = Payload::Embeddings(EmbeddingFacts {
        inputs: found.inputs,
        encoding: found.encoding,
        dimensions,
        longest_text: OnceLock::new(),
    });
    let source = Source::new(body, members);
    let mut request = plain_request(&EMBEDDINGS, found.model, source, payload);
    request.needs.token_inputs = are_tokens;
    request.needs.dimensions = dimensions.is_some();
    Ok(ModelRequest {
        text_bytes,
        asked,
        ..request
    })
}

/// The parameters that a provider may refuse.
fn asked(found: &Findings) -> AskedParameters {
    let mut asked = AskedParameters::default();
    if found.are_tokens {
        asked.set.insert(Parameter::TokenInputs);
    }
    if found.dimensions.is_some() {
        asked.set.insert(Parameter::Dimensions);
    }
    asked
}

fn input(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    match walk.peek()? {
        Type::String => text(walk, found),
        Type::Array => items(walk, found),
        _ => Err(other(walk, INPUT)),
    }
}

/// An array: of texts, of tokens, which are one input together, or of arrays of tokens.
fn items(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let mut first = None;
    let start = walk.at();
    let count = array(walk, |walk, _| {
        let item = walk.peek()?;
        let start = walk.at();
        match (*first.get_or_insert(item), item) {
            (Type::String, Type::String) => text(walk, found),
            (Type::Number, Type::Number) => token(walk),
            (Type::Array, Type::Array) => {
                let count = array(walk, |walk, _| token(walk))?;
                tokens(count, start..walk.at(), found)
            }
            (Type::String | Type::Number | Type::Array, _) => {
                Err(other(walk, "an item of the same type as the first"))
            }
            _ => Err(other(walk, "a string, an integer or an array of integers")),
        }
    })?;
    match first {
        None => Err(Reject::rule("is empty; accepted is at least one input")),
        Some(Type::Number) => tokens(count, start..walk.at(), found),
        Some(_) => Ok(()),
    }
}

fn text(walk: &mut Walker<'_>, found: &mut Findings) -> Result<(), Reject> {
    let start = walk.at();
    let bytes = string(walk)?.len() as u64;
    if bytes == 0 {
        return Err(Reject::rule("is empty; accepted is a text"));
    }
    add(Input::text(start..walk.at(), bytes), found)
}

fn token(walk: &mut Walker<'_>) -> Result<(), Reject> {
    integer(walk, 0, u32::MAX.into()).map(|_| ())
}

fn tokens(count: usize, place: Range<usize>, found: &mut Findings) -> Result<(), Reject> {
    if count == 0 {
        return Err(Reject::rule("is empty; accepted is at least one token"));
    }
    found.are_tokens = true;
    let count = count as u64;
    add(Input::tokens(place, count), found)
}

fn add(input: Input, found: &mut Findings) -> Result<(), Reject> {
    if found.inputs.len() >= MAX_INPUTS {
        let said = format!("is one of more than {MAX_INPUTS} inputs");
        return Err(Reject::rule(said));
    }
    found.inputs.push(input);
    Ok(())
}
