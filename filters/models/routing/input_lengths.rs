//! Whether the inputs of a request for embeddings are as short as a mapping takes them. Source: docs/model-gateway.md 2.6.

use super::capable::Lack;
use super::catalog::Mapping;
use crate::models::embeddings::EmbeddingFacts;
use crate::models::request::{ModelRequest, Payload};

/// Returns whether [`check`] has to count the tokens of texts, which takes its time.
pub fn has_to_count(request: &ModelRequest, mapping: &Mapping) -> bool {
    let most = mapping.tokenizer.and(mapping.context_size);
    match (&request.payload, most) {
        (Payload::Embeddings(facts), Some(most)) if !request.needs.token_inputs => {
            facts.has_to_count(most)
        }
        _ => false,
    }
}

/// Checks the length of each input. The length of a text is judged where the tokenizer of the mapping is known: no number of
/// bytes is too many for some other, which may leave spaces out or make one token of an unknown word.
pub(super) fn check(request: &ModelRequest, mapping: &Mapping) -> Result<(), Lack> {
    let (Payload::Embeddings(facts), Some(most)) = (&request.payload, mapping.context_size) else {
        return Ok(());
    };
    let too_long = match mapping.tokenizer {
        _ if request.needs.token_inputs => facts.find_long_tokens(most),
        Some(tokenizer) => facts.find_long_text(&request.source.body, tokenizer, most),
        None => None,
    };
    too_long.map_or(Ok(()), |index| {
        let reason = format!("takes at most {most} tokens in an input");
        Err(Lack::new(name(facts, index), reason))
    })
}

/// Returns what names an input.
fn name(facts: &EmbeddingFacts, index: usize) -> String {
    match facts.inputs.len() {
        1 => "input".to_owned(),
        _ => format!("input[{index}]"),
    }
}
