//! Embeddings in the words of this wire. Source: docs/facts/clouds.md 1.6.

use bytes::Bytes;

use crate::fault::Fault;
use crate::json::Walker;
use crate::models::embeddings::EmbeddingFacts;
use crate::models::embeddings::batch::BatchLimits;
use crate::models::embeddings::input_type::{self, InputType};
use crate::models::reply::Sink;
use crate::models::request::ModelRequest;
use crate::models::routing::wire_limits::WireLimits;
use crate::models::usage::Usage;
use crate::models::wires::codec::{BodySlice, OperationCodec};
use crate::models::wires::decoder::{Decoder, ReplyHead, WholeReply};
use crate::models::wires::embedding_list::{self, ExpectedVectors};
use crate::models::wires::exception;
use crate::models::wires::failure::Failure;
use crate::models::wires::scan::{count, inside, malformed, object};
use crate::models::wires::splice::Splice;
use crate::models::wires::wire::Target;

/// What is asked for at once.
const AT_ONCE: BatchLimits = BatchLimits {
    inputs: 1,
    tokens: u64::MAX,
};

pub(super) static CODEC: OperationCodec<EmbeddingFacts> = OperationCodec {
    limits: WireLimits {
        token_inputs: false,
        ..WireLimits::WIDEST
    },
    parts: |_, facts, target| embedding_list::parts(facts, target, AT_ONCE),
    ..OperationCodec::new("/model/{model}/invoke", encode, |_, facts, target, head| {
        decoder(facts, target, head)
    })
};

/// Encodes the input of the part at hand. Vectors of a length that was asked for are of the length 1, as clients of the convention rely
/// on; an older model knows no word for either, and gets none.
///
/// Errors: a 400 for a use of the vectors, for which there is no word.
fn encode(
    request: &ModelRequest,
    facts: &EmbeddingFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let asked = request.source.member("input_type");
    if InputType::read(asked.map(|member| request.source.value(member)))?.is_some() {
        return Err(input_type::refused());
    }
    let mut splice = Splice::new(&request.source.body);
    splice.new_bytes(b"{\"inputText\":");
    splice.slice(facts.place(&embedding_list::batch(facts, target, AT_ONCE)));
    if let Some(dimensions) = facts.dimensions {
        let length = format!(",\"dimensions\":{dimensions},\"normalize\":true");
        splice.new_bytes(length.as_bytes());
    }
    splice.new_bytes(b"}");
    Ok(splice.finish())
}

/// Returns the decoder of a reply.
fn decoder(facts: &EmbeddingFacts, target: &Target<'_>, head: &ReplyHead) -> Box<dyn Decoder> {
    let batch = embedding_list::batch(facts, target, AT_ONCE);
    let expected = ExpectedVectors::for_batch(facts, &batch);
    let told = head.prompt_tokens;
    let read = move |body: &Bytes, sink: &mut dyn Sink| {
        let read = read(body, told, &expected, sink);
        read.map_err(|failure| exception::in_success(body).unwrap_or(failure))
    };
    Box::new(WholeReply::new(read).with_max(expected.max_bytes()))
}

fn read(
    body: &[u8],
    told: Option<u64>,
    expected: &ExpectedVectors,
    sink: &mut dyn Sink,
) -> Result<(), Failure> {
    let body = std::str::from_utf8(body).unwrap_or_default().trim_ascii();
    let members = object(body, ["embedding", "inputTextTokenCount"]);
    let [vector, tokens] = members.unwrap_or_default();
    if inside(vector).is_empty() {
        let none = "the provider's reply holds no embedding";
        return Err(Failure::malformed(none));
    }
    let vector = Walker::over(vector).numbers().map_err(malformed)?;
    expected.write_items(&[vector], sink)?;
    if let Some(prompt) = count(tokens).or(told) {
        sink.usage(Usage {
            prompt,
            ..Usage::default()
        });
    }
    Ok(())
}
