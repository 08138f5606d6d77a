//! Embeddings: what wires need to know of a request, and vectors in both encodings ([`vector`]).

pub mod vector;

/// What a front found in a request for embeddings.
#[derive(Clone, Copy, Debug)]
pub struct EmbeddingFacts {
    /// How many inputs there are, and so how many vectors the reply has to hold.
    pub inputs: usize,
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

/// Writes an item of the reply: `{"object":"embedding","index":…,"embedding":…}`.
pub fn write_item(index: usize, out: &mut Vec<u8>, embedding: impl FnOnce(&mut Vec<u8>)) {
    out.extend_from_slice(b"{\"object\":\"embedding\",\"index\":");
    crate::json::write_number(index as u64, out);
    out.extend_from_slice(b",\"embedding\":");
    embedding(out);
    out.push(b'}');
}
