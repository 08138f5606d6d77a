//! Embeddings in the words of this wire.

use crate::fault::Fault;
use crate::models::embeddings::batch::BatchLimits;
use crate::models::embeddings::input_type::{self, InputType};
use crate::models::embeddings::{EmbeddingFacts, Encoding};
use crate::models::request::ModelRequest;
use crate::models::routing::wire_limits::WireLimits;
use crate::models::wires::codec::{BodySlice, OperationCodec};
use crate::models::wires::decoder::Decoder;
use crate::models::wires::embedding_list::{self, ExpectedVectors};
use crate::models::wires::splice::Splice;
use crate::models::wires::wire::Target;

/// What is asked for at once: of the tokens what all models take.
const AT_ONCE: BatchLimits = BatchLimits {
    inputs: 1000,
    tokens: 120_000,
};

pub(super) static CODEC: OperationCodec<EmbeddingFacts> = OperationCodec {
    limits: WireLimits {
        token_inputs: false,
        ..WireLimits::WIDEST
    },
    parts: |_, facts, target| embedding_list::parts(facts, target, AT_ONCE),
    ..OperationCodec::new("/embeddings", encode, |_, facts, target, _| {
        decoder(facts, target)
    })
};

fn encode(
    request: &ModelRequest,
    facts: &EmbeddingFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let asked = request.source.member("input_type");
    let asked = InputType::read(asked.map(|member| request.source.value(member)))?;
    let mut splice = Splice::new(&request.source.body);
    splice.new_bytes(b"{\"model\":");
    splice.new_string(target.model);
    splice.new_bytes(b",\"input\":[");
    splice.slice(facts.place(&embedding_list::batch(facts, target, AT_ONCE)));
    // A text that is too long is an error in the convention; without this it would be cut off.
    splice.new_bytes(b"],\"truncation\":false");
    if let Some(asked) = asked {
        splice.new_bytes(b",\"input_type\":");
        splice.new_string(input_type_word(asked)?);
    }
    if let Some(dimensions) = facts.dimensions {
        splice.new_bytes(format!(",\"output_dimension\":{dimensions}").as_bytes());
    }
    if facts.encoding == Encoding::Base64 {
        splice.new_bytes(b",\"encoding_format\":\"base64\"");
    }
    splice.new_bytes(b"}");
    Ok(splice.finish())
}

fn input_type_word(asked: InputType) -> Result<&'static str, Fault> {
    match asked {
        InputType::Query => Ok("query"),
        InputType::Document => Ok("document"),
        InputType::Classification | InputType::Clustering => Err(input_type::refused()),
    }
}

/// Returns the decoder of a reply.
fn decoder(facts: &EmbeddingFacts, target: &Target<'_>) -> Box<dyn Decoder> {
    let batch = embedding_list::batch(facts, target, AT_ONCE);
    embedding_list::decoder(ExpectedVectors::for_batch(facts, &batch))
}
