//! Embeddings: what wires need to know of a request, and vectors in both encodings ([`vector`]).

pub mod batch;
pub mod input_type;
pub mod tokenizer;
pub mod vector;

use std::borrow::Cow;
use std::ops::Range;
use std::sync::OnceLock;

use serde::Deserialize;

use self::batch::Input;
use self::tokenizer::Tokenizer;

/// What a front found in a request for embeddings.
#[derive(Clone, Debug)]
pub struct EmbeddingFacts {
    /// The inputs, in order; the reply has to hold a vector of each. Never empty.
    pub inputs: Vec<Input>,
    /// How the client reads vectors.
    pub encoding: Encoding,
    /// The length of the vectors, where the client asked for one.
    pub dimensions: Option<u32>,
    /// The longest text, once one had to be counted: planning asks for each candidate.
    pub longest_text: OnceLock<LongestText>,
}

/// The text with the most tokens.
#[derive(Clone, Copy, Debug, Default)]
pub struct LongestText {
    index: usize,
    tokens: u64,
}

/// A text without escapes.
#[derive(Deserialize)]
struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

/// How a vector is said in JSON. Source: docs/model-gateway.md 2.6.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Encoding {
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

    /// Returns whether a text has to be counted to know whether a model takes it: one with more bytes than the model
    /// takes tokens.
    pub fn has_to_count(&self, most: u64) -> bool {
        self.inputs.iter().any(|input| input.bytes > most)
    }

    /// Returns the index of a text with more than so many tokens; `None`: it cannot be told of any.
    ///
    /// Cost: as [`Tokenizer`] says, once for each request.
    pub fn find_long_text(&self, body: &[u8], tokenizer: Tokenizer, most: u64) -> Option<usize> {
        if !self.has_to_count(most) {
            return None;
        }
        let count = || self.count(body, tokenizer, most);
        let longest = self.longest_text.get_or_init(count);
        (longest.tokens > most).then_some(longest.index)
    }

    /// Returns the index of an input that is more than so many tokens.
    pub fn find_long_tokens(&self, most: u64) -> Option<usize> {
        self.inputs.iter().position(|input| input.tokens > most)
    }

    fn count(&self, body: &[u8], tokenizer: Tokenizer, most: u64) -> LongestText {
        let mut longest = LongestText::default();
        let long = self.inputs.iter().enumerate();
        for (index, input) in long.filter(|(_, input)| input.bytes > most) {
            let text = body.get(input.place.clone()).unwrap_or_default();
            // Half a surrogate is not text; what it is to its provider is not known.
            let text = serde_json::from_slice::<Text<'_>>(text);
            let tokens = text.map_or(0, |Text(text)| tokenizer.least(&text, most));
            if tokens > longest.tokens {
                longest = LongestText { index, tokens };
            }
        }
        longest
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
