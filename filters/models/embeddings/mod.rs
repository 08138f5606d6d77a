//! Embeddings: what wires need to know of a request, and vectors in both encodings ([`vector`]).

pub mod batch;
pub mod input_type;
pub mod vector;

use std::ops::Range;

use self::batch::Input;

/// What a front found in a request for embeddings.
#[derive(Clone, Debug)]
pub struct EmbeddingFacts {
    /// The inputs, in order; the reply has to hold a vector of each. Never empty.
    pub inputs: Vec<Input>,
    /// How the client reads vectors.
    pub encoding: Encoding,
    /// The length of the vectors, where the client asked for one.
    pub dimensions: Option<u32>,
}

/// How a vector is said in JSON. Source: docs/model-gateway.md 2.6.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Encoding {
    /// An array of numbers.
    #[default]
    Float,
    /// Little-endian 32-bit floats, packed and written as base64.
    Base64,
}

impl EmbeddingFacts {
    /// Returns where some of the inputs stand in the body, with what is between them.
    pub fn place(&self, inputs: &Range<usize>) -> Range<usize> {
        let inputs = self.inputs.get(inputs.clone()).unwrap_or_default();
        match (inputs.first(), inputs.last()) {
            (Some(first), Some(last)) => first.place.start..last.place.end,
            _ => 0..0,
        }
    }
}

/// Writes an item of the reply: `{"object":"embedding","index":…,"embedding":…}`.
pub fn write_item(index: usize, out: &mut Vec<u8>, embedding: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"{\"object\":\"embedding\",\"index\":");
    crate::json::write_number(index as u64, out);
    out.extend_from_slice(b",\"embedding\":");
    embedding(out);
    out.push(b'}');
}
