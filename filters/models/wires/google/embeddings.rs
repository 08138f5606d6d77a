//! Embeddings in the words of this wire: one content per input, because parts of one content become one vector.
//!
//! A vector that was shortened has no longer the length 1, which clients of the convention rely on: it is scaled.

use bytes::Bytes;
use serde_json::Value;

use super::failure::{classify_error, find_error};
use crate::fault::{Fault, FaultKind};
use crate::json::{Error, Str, Type, Walker, write_number};
use crate::models::embeddings::{EmbeddingFacts, Encoding, vector, write_item};
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::usage::Usage;
use crate::models::wires::decoder::Decoder;
use crate::models::wires::decoder::WholeReply;
use crate::models::wires::failure::Failure;
use crate::models::wires::wire::Target;

/// How many inputs one request may have.
pub(super) const MAX_INPUTS: u64 = 100;

pub(super) fn encode(
    request: &ModelRequest,
    facts: &EmbeddingFacts,
    target: &Target<'_>,
) -> Result<Vec<Bytes>, Fault> {
    let mut body = Vec::with_capacity(request.source.body.len() + 128 * facts.inputs);
    body.extend_from_slice(b"{\"requests\":[");
    let value = request
        .source
        .member("input")
        .map(|m| request.source.value(m));
    let text = std::str::from_utf8(value.unwrap_or_default()).unwrap_or_default();
    write_requests(&mut Walker::over(text), facts, target, &mut body).map_err(|error| {
        Fault::new(FaultKind::Internal, "the request could not be translated")
            .with_detail(format!("checked input does not walk: {error}"))
    })?;
    body.extend_from_slice(b"]}");
    Ok(vec![body.into()])
}

fn write_requests(
    walk: &mut Walker<'_>,
    facts: &EmbeddingFacts,
    target: &Target<'_>,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    if walk.peek()? == Type::String {
        write_request(walk.string()?, facts, target, out);
        return Ok(());
    }
    walk.array(|walk, index| {
        if index > 0 {
            out.push(b',');
        }
        write_request(walk.string()?, facts, target, out);
        Ok(())
    })
}

fn write_request(text: Str<'_>, facts: &EmbeddingFacts, target: &Target<'_>, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"model\":");
    Str::Plain(&format!("models/{}", target.model)).write(out);
    out.extend_from_slice(b",\"content\":{\"parts\":[{\"text\":");
    text.write(out);
    out.extend_from_slice(b"}]}");
    if let Some(dimensions) = facts.dimensions {
        out.extend_from_slice(b",\"outputDimensionality\":");
        write_number(dimensions.into(), out);
    }
    out.push(b'}');
}

/// Returns the decoder of a reply.
pub(super) fn decoder(facts: EmbeddingFacts) -> Box<dyn Decoder> {
    Box::new(WholeReply::new(move |body, sink| read(body, facts, sink)))
}

fn read(body: &[u8], facts: EmbeddingFacts, sink: &mut dyn Sink) -> Result<(), Failure> {
    let mut walk = Walker::new(body).map_err(malformed)?;
    let mut vectors: Vec<&str> = Vec::with_capacity(facts.inputs);
    let mut prompt = None;
    if walk.peek().map_err(malformed)? != Type::Object {
        return Err(error_in(body));
    }
    let walked = walk.object(|walk, key| match &*key {
        "embeddings" if walk.peek()? == Type::Array => walk.array(|walk, _| {
            vectors.push(member(walk, "values")?.unwrap_or_default());
            Ok::<(), Error>(())
        }),
        "usageMetadata" => {
            let count = member(walk, "promptTokenCount")?;
            prompt = count.and_then(|count| count.parse::<u64>().ok());
            Ok(())
        }
        _ => walk.skip().map(|_| ()),
    });
    walked.and_then(|()| walk.end()).map_err(malformed)?;
    if vectors.is_empty() {
        return Err(error_in(body));
    }
    if vectors.len() != facts.inputs {
        return Err(Failure::malformed(
            "the provider's reply does not hold one embedding per input",
        ));
    }
    let mut out = Vec::new();
    for (at, values) in vectors.into_iter().enumerate() {
        out.clear();
        write_vector(at, values, facts, &mut out)?;
        sink.item(&out);
    }
    if let Some(prompt) = prompt.filter(|prompt| *prompt > 0) {
        sink.usage(Usage {
            prompt,
            ..Usage::default()
        });
    }
    Ok(())
}

/// A member of the object that comes next; `None` where there is no object, or it has no such member.
fn member<'a>(walk: &mut Walker<'a>, wanted: &str) -> Result<Option<&'a str>, Error> {
    let mut found = None;
    if walk.peek()? != Type::Object {
        return walk.skip().map(|_| None);
    }
    walk.object(|walk, key| {
        let value = walk.skip()?;
        if key == wanted {
            found = Some(value);
        }
        Ok::<(), Error>(())
    })?;
    Ok(found)
}

fn write_vector(
    at: usize,
    values: &str,
    facts: EmbeddingFacts,
    out: &mut Vec<u8>,
) -> Result<(), Failure> {
    let is_array = values.starts_with('[');
    if is_array && facts.encoding == Encoding::Float && facts.dimensions.is_none() {
        write_item(at, out, |out| out.extend_from_slice(values.as_bytes()));
        return Ok(());
    }
    let mut floats = vector::read_floats(values)
        .ok_or_else(|| Failure::malformed("an embedding is no vector"))?;
    if facts.dimensions.is_some() {
        vector::normalise(&mut floats);
    }
    write_item(at, out, |out| vector::write(&floats, facts.encoding, out));
    Ok(())
}

/// A 200 that holds no vector: an error, alone or in an array, or nothing that can be read.
fn error_in(body: &[u8]) -> Failure {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    find_error(&body).map_or_else(
        || Failure::malformed("the provider's reply holds no embedding"),
        classify_error,
    )
}

fn malformed(error: Error) -> Failure {
    Failure::malformed(format!("the provider's reply cannot be read: {error}"))
}
