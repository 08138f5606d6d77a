//! Embeddings by predictions: an instance per input, and a prediction with its tokens for each. Source: docs/facts/clouds.md 3.

use bytes::Bytes;

use super::embeddings::{asked_use, error_in, task, vector};
use crate::fault::Fault;
use crate::json::{Error, Type, Walker};
use crate::models::embeddings::EmbeddingFacts;
use crate::models::embeddings::batch::BatchLimits;
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::routing::wire_limits::WireLimits;
use crate::models::usage::Usage;
use crate::models::wires::codec::{BodySlice, OperationCodec};
use crate::models::wires::decoder::{Decoder, WholeReply};
use crate::models::wires::embedding_list::{self, ExpectedVectors, count};
use crate::models::wires::failure::Failure;
use crate::models::wires::scan::{malformed, object};
use crate::models::wires::splice::Splice;
use crate::models::wires::wire::Target;

/// What is asked for at once.
const AT_ONCE: BatchLimits = BatchLimits {
    inputs: 250,
    tokens: 20_000,
};

pub(super) static CODEC: OperationCodec<EmbeddingFacts> = OperationCodec {
    limits: WireLimits {
        token_inputs: false,
        ..WireLimits::WIDEST
    },
    parts: |_, facts, target| embedding_list::parts(facts, target, AT_ONCE),
    ..OperationCodec::new("/models/{model}:predict", encode, |_, facts, target, _| {
        decoder(facts, target)
    })
};

/// A text that is too long is an error in the convention; without a word it would be cut off.
fn encode(
    request: &ModelRequest,
    facts: &EmbeddingFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let asked = asked_use(request)?;
    let batch = embedding_list::batch(facts, target, AT_ONCE);
    let mut splice = Splice::new(&request.source.body);
    splice.new_bytes(b"{\"instances\":[");
    let inputs = facts.inputs.get(batch).unwrap_or_default();
    for (at, input) in inputs.iter().enumerate() {
        splice.new_bytes(if at > 0 { b"," } else { b"" });
        splice.new_bytes(b"{\"content\":");
        splice.slice(input.place.clone());
        if let Some(asked) = asked {
            splice.new_bytes(b",\"task_type\":");
            splice.new_string(task(asked));
        }
        splice.new_bytes(b"}");
    }
    splice.new_bytes(b"],\"parameters\":{\"autoTruncate\":false");
    if let Some(dimensions) = facts.dimensions {
        splice.new_bytes(format!(",\"outputDimensionality\":{dimensions}").as_bytes());
    }
    splice.new_bytes(b"}}");
    Ok(splice.finish())
}

/// Returns the decoder of a reply.
fn decoder(facts: &EmbeddingFacts, target: &Target<'_>) -> Box<dyn Decoder> {
    let batch = embedding_list::batch(facts, target, AT_ONCE);
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
    let mut prompt: u64 = 0;
    if walk.peek().map_err(malformed)? != Type::Object {
        return Err(error_in(body));
    }
    let walked = walk.object(|walk, key| match &*key {
        "predictions" if walk.peek()? == Type::Array => walk.array(|walk, _| {
            let (vector, tokens) = prediction(walk)?;
            vectors.push(vector);
            prompt = prompt.saturating_add(tokens);
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

/// Returns the vector of the prediction that comes next, which is empty where there is none, and the tokens of its input.
fn prediction<'a>(walk: &mut Walker<'a>) -> Result<(&'a str, u64), Error> {
    let mut found = ("", 0);
    if walk.peek()? != Type::Object {
        return walk.skip().map(|_| found);
    }
    walk.object(|walk, key| {
        if key != "embeddings" {
            return walk.skip().map(|_| ());
        }
        let embeddings = walk.skip()?;
        found = (vector(&mut Walker::over(embeddings))?, tokens(embeddings));
        Ok::<(), Error>(())
    })?;
    Ok(found)
}

/// Returns the tokens that the statistics of a vector tell.
fn tokens(embeddings: &str) -> u64 {
    let [statistics] = object(embeddings, ["statistics"]).unwrap_or_default();
    let [told] = object(statistics, ["token_count"]).unwrap_or_default();
    count(told)
}
