//! Embeddings in the words of this wire: one content per input, because parts of one content become one vector. The cloud takes one
//! content at once.
//!
//! A vector that was shortened has no longer the length 1, which clients of the convention rely on: it is scaled.

use bytes::Bytes;

use super::failure::{classify_error, find_error};
use crate::fault::Fault;
use crate::json::{Error, Str, Type, Walker, write_number};
use crate::models::embeddings::EmbeddingFacts;
use crate::models::embeddings::batch::BatchLimits;
use crate::models::embeddings::input_type::InputType;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::routing::wire_limits::WireLimits;
use crate::models::usage::Usage;
use crate::models::wires::codec::{BodySlice, OperationCodec};
use crate::models::wires::decoder::{Decoder, WholeReply};
use crate::models::wires::embedding_list::{self, ExpectedVectors, count};
use crate::models::wires::failure::Failure;
use crate::models::wires::scan::malformed;
use crate::models::wires::splice::Splice;
use crate::models::wires::wire::Target;

/// What is asked for at once.
const AT_ONCE: BatchLimits = BatchLimits {
    inputs: 100,
    tokens: u64::MAX,
};

/// What the cloud is asked for at once.
const ONE: BatchLimits = BatchLimits {
    inputs: 1,
    tokens: u64::MAX,
};

const CODEC_LIMITS: WireLimits = WireLimits {
    token_inputs: false,
    ..WireLimits::WIDEST
};

pub(super) static CODEC: OperationCodec<EmbeddingFacts> = OperationCodec {
    limits: CODEC_LIMITS,
    parts: |_, facts, target| embedding_list::parts(facts, target, AT_ONCE),
    ..OperationCodec::new(
        "/models/{model}:batchEmbedContents",
        encode,
        |_, facts, target, _| decoder(facts, target, AT_ONCE),
    )
};

/// How the cloud takes them. Source: docs/facts/clouds.md 3.
pub(super) static CLOUD_CODEC: OperationCodec<EmbeddingFacts> = OperationCodec {
    limits: CODEC_LIMITS,
    parts: |_, facts, target| embedding_list::parts(facts, target, ONE),
    ..OperationCodec::new(
        "/models/{model}:embedContent",
        encode_one,
        |_, facts, target, _| decoder(facts, target, ONE),
    )
};

fn encode(
    request: &ModelRequest,
    facts: &EmbeddingFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let batch = embedding_list::batch(facts, target, AT_ONCE);
    let mut body = Vec::with_capacity(facts.place(&batch).len() + 160 * batch.len());
    body.extend_from_slice(b"{\"requests\":[");
    let rest = rest_of_request(request, facts, target)?;
    let inputs = facts.inputs.get(batch).unwrap_or_default();
    for (at, input) in inputs.iter().enumerate() {
        if at > 0 {
            body.push(b',');
        }
        // The string as it came, with its quotes and escapes.
        let text = request.source.body.get(input.place.clone());
        body.extend_from_slice(b"{\"content\":{\"parts\":[{\"text\":");
        body.extend_from_slice(text.unwrap_or_default());
        body.extend_from_slice(&rest);
    }
    body.extend_from_slice(b"]}");
    Ok(vec![body.into()])
}

/// Encodes the input of the part at hand for the cloud. A text that is too long is an error in the convention; without a word it would
/// be cut off.
fn encode_one(
    request: &ModelRequest,
    facts: &EmbeddingFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let mut splice = Splice::new(&request.source.body);
    splice.new_bytes(b"{\"content\":{\"parts\":[{\"text\":");
    splice.slice(facts.place(&embedding_list::batch(facts, target, ONE)));
    splice.new_bytes(b"}]},\"embedContentConfig\":{\"autoTruncate\":false");
    if let Some(asked) = asked_use(request)? {
        splice.new_bytes(b",\"taskType\":");
        splice.new_string(task(asked));
    }
    if let Some(dimensions) = facts.dimensions {
        splice.new_bytes(format!(",\"outputDimensionality\":{dimensions}").as_bytes());
    }
    splice.new_bytes(b"}}");
    Ok(splice.finish())
}

/// Returns what the vectors are for. Errors: a 400, it is none of the known words.
pub(super) fn asked_use(request: &ModelRequest) -> Result<Option<InputType>, Fault> {
    let asked = request.source.member("input_type");
    InputType::read(asked.map(|member| request.source.value(member)))
}

/// Returns what follows the text of each request, to its end.
fn rest_of_request(
    request: &ModelRequest,
    facts: &EmbeddingFacts,
    target: &Target<'_>,
) -> Result<Vec<u8>, Fault> {
    let mut rest = b"}]},\"model\":".to_vec();
    Str::Plain(&format!("models/{}", target.model)).write(&mut rest);
    if let Some(asked) = asked_use(request)? {
        rest.extend_from_slice(b",\"taskType\":");
        Str::Plain(task(asked)).write(&mut rest);
    }
    if let Some(dimensions) = facts.dimensions {
        rest.extend_from_slice(b",\"outputDimensionality\":");
        write_number(dimensions.into(), &mut rest);
    }
    rest.push(b'}');
    Ok(rest)
}

/// Returns the wire's word for a use.
pub(super) fn task(asked: InputType) -> &'static str {
    match asked {
        InputType::Query => "RETRIEVAL_QUERY",
        InputType::Document => "RETRIEVAL_DOCUMENT",
        InputType::Classification => "CLASSIFICATION",
        InputType::Clustering => "CLUSTERING",
    }
}

/// Returns the decoder of a reply.
fn decoder(facts: &EmbeddingFacts, target: &Target<'_>, limits: BatchLimits) -> Box<dyn Decoder> {
    let batch = embedding_list::batch(facts, target, limits);
    let expected = ExpectedVectors {
        is_cut: facts.dimensions.is_some(),
        ..ExpectedVectors::for_batch(facts, &batch)
    };
    let read = move |body: &Bytes, sink: &mut dyn Sink| read(body, &expected, sink);
    Box::new(WholeReply::new(read).with_max(expected.max_bytes()))
}

fn read(body: &[u8], expected: &ExpectedVectors, sink: &mut dyn Sink) -> Result<(), Failure> {
    let mut walk = Walker::new(body).map_err(malformed)?;
    let mut vectors: Vec<&str> = Vec::with_capacity(expected.count);
    let mut prompt = 0;
    if walk.peek().map_err(malformed)? != Type::Object {
        return Err(error_in(body));
    }
    let walked = walk.object(|walk, key| match &*key {
        "embeddings" if walk.peek()? == Type::Array => walk.array(|walk, _| {
            vectors.push(vector(walk)?);
            Ok::<(), Error>(())
        }),
        "embedding" => vector(walk).map(|vector| vectors.push(vector)),
        "usageMetadata" if walk.peek()? == Type::Object => walk.object(|walk, key| {
            let value = walk.skip()?;
            if key == "promptTokenCount" {
                prompt = count(value);
            }
            Ok::<(), Error>(())
        }),
        _ => walk.skip().map(|_| ()),
    });
    walked.and_then(|()| walk.end()).map_err(malformed)?;
    if vectors.is_empty() {
        return Err(error_in(body));
    }
    expected.write_items(&vectors, sink)?;
    if prompt > 0 {
        sink.usage(Usage {
            prompt,
            ..Usage::default()
        });
    }
    Ok(())
}

/// The `values` of the object that comes next; empty where there is no object, or it has none.
pub(super) fn vector<'a>(walk: &mut Walker<'a>) -> Result<&'a str, Error> {
    let mut found = "";
    if walk.peek()? != Type::Object {
        return walk.skip().map(|_| "");
    }
    walk.object(|walk, key| {
        match &*key {
            "values" if walk.peek()? == Type::Array => found = walk.numbers()?,
            _ => _ = walk.skip()?,
        }
        Ok::<(), Error>(())
    })?;
    Ok(found)
}

/// A 200 that holds no vector: an error, alone or in an array, or nothing that can be read.
pub(super) fn error_in(body: &[u8]) -> Failure {
    find_error(body).map_or_else(
        || Failure::malformed("the provider's reply holds no embedding"),
        |error| classify_error(&error),
    )
}
