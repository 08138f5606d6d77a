//! Embeddings on the wire that has our shapes: the request passes as slices, and so do the items of the reply.

use sha2::{Digest, Sha256};

use super::request::new_member;
use crate::fault::Fault;
use crate::json::quoted;
use crate::models::embeddings::EmbeddingFacts;
use crate::models::embeddings::batch::BatchLimits;
use crate::models::parameter::Parameter;
use crate::models::request::ModelRequest;
use crate::models::wires::codec::{BodySlice, OperationCodec};
use crate::models::wires::embedding_list::{self, ExpectedVectors};
use crate::models::wires::splice::Splice;
use crate::models::wires::wire::Target;

/// Members of the convention; a strict provider gets no others.
const KNOWN: [&str; 5] = ["model", "input", "encoding_format", "dimensions", "user"];

/// What is asked for at once, unless the mapping takes less.
const AT_ONCE: BatchLimits = BatchLimits::NONE;

pub(super) static CODEC: OperationCodec<EmbeddingFacts> = OperationCodec {
    parts: |_, facts, target| embedding_list::parts(facts, target, AT_ONCE),
    ..OperationCodec::new("embeddings", encode, |_, facts, target, _| {
        let batch = embedding_list::batch(facts, target, AT_ONCE);
        embedding_list::decoder(ExpectedVectors::for_batch(facts, &batch))
    })
};

fn encode(
    request: &ModelRequest,
    facts: &EmbeddingFacts,
    target: &Target<'_>,
) -> Result<Vec<BodySlice>, Fault> {
    let quirks = target.quirks;
    let is_dropped = |key: &str| !quirks.passes(key, &KNOWN);
    let takes_user = target.parameters.supports(Parameter::User);
    let batch = embedding_list::batch(facts, target, AT_ONCE);
    let mut splice = Splice::new(&request.source.body);
    splice.new_bytes(b"{");
    new_member(&mut splice, "model", quoted(target.model).as_bytes());
    for member in &request.source.members {
        if matches!(&*member.key, "model" | "user") || is_dropped(&member.key) {
            continue;
        }
        splice.new_bytes(b",");
        match &*member.key {
            "input" if batch.len() < facts.inputs.len() => {
                splice.new_bytes(b"\"input\":[");
                splice.slice(facts.place(&batch));
                splice.new_bytes(b"]");
            }
            "dimensions" => {
                let name = target.parameters.name(Parameter::Dimensions);
                new_member(&mut splice, name, request.source.value(member));
            }
            _ => splice.slice(member.whole.clone()),
        }
    }
    if let Some(key_id) = target.key_id.filter(|_| takes_user) {
        splice.new_bytes(b",");
        new_member(&mut splice, "user", quoted(&user(key_id)).as_bytes());
    }
    splice.new_bytes(b"}");
    Ok(splice.finish())
}

/// Returns the opaque identifier of a caller's key. Source: docs/decisions.md 10.
fn user(key_id: &str) -> String {
    let digest = Sha256::digest(key_id);
    digest.iter().take(16).map(|b| format!("{b:02x}")).collect()
}
