//! How many tokens a text has at the least, where the tokenizer of a model is known.
//!
//! A text that fits is never refused, so every number here is a lower bound. Ordinary text is counted exactly. A piece without a
//! break (a run of one sign, or of a script that writes no spaces) costs the exact merge up to half a microsecond a byte, so
//! its number is the least with which any tokens of the vocabulary make it. Cost: up to 0.2 µs a byte.

use serde::Deserialize;
use vocabularies::byte_pair_encoding::BytePairEncoding;

/// The bytes of the longest token.
const TOKEN_BYTES: usize = 128;
/// The most bytes of a piece that is counted exactly.
const EXACT_BYTES: usize = 64;
/// The most bytes that are looked at together, which bounds memory: 8 bytes for each.
const TOGETHER_BYTES: usize = 32 << 10;
/// What may be one token or several, as a provider sees fit.
const SPECIAL: [&str; 5] = [
    "<|endoftext|>",
    "<|fim_prefix|>",
    "<|fim_middle|>",
    "<|fim_suffix|>",
    "<|endofprompt|>",
];

/// A tokenizer whose vocabulary is built in. It is loaded (some 25 ms, 20 MB) when the first text has to be counted.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
pub enum Tokenizer {
    /// That of OpenAI's models for embeddings.
    #[serde(rename = "cl100k_base")]
    Cl100kBase,
}

impl Tokenizer {
    /// Returns how many tokens a text has at the least. A text that must have more than `most` is not counted further.
    pub(super) fn least(self, text: &str, most: u64) -> u64 {
        let by_length = text.len().div_ceil(TOKEN_BYTES) as u64;
        if by_length > most || SPECIAL.iter().any(|special| text.contains(special)) {
            return by_length.min(most.saturating_add(1));
        }
        let Self::Cl100kBase = self;
        let vocabulary = vocabularies::cl100k_base();
        let pieces = vocabulary.split(text);
        pieces.fold(0, |sum, piece| sum + least_of_piece(&vocabulary.bpe, piece))
    }
}

/// Returns how many tokens a piece has at the least, which the tokenizer never joins with its neighbours.
fn least_of_piece(vocabulary: &BytePairEncoding, piece: &str) -> u64 {
    let piece = piece.as_bytes();
    if piece.len() <= EXACT_BYTES {
        return vocabulary.count(piece) as u64;
    }
    let parts = piece.chunks(TOGETHER_BYTES);
    let cuts = parts.len().saturating_sub(1) as u64;
    let parts = parts.map(|part| vocabulary.encode_minimal(part).len() as u64);
    // A token over a cut is at most so many tokens of a byte in its place: every vocabulary has all of those.
    let most_more = cuts * (TOKEN_BYTES as u64 - 1);
    parts.sum::<u64>().saturating_sub(most_more)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]
    use super::*;

    fn least(text: &str) -> u64 {
        Tokenizer::Cl100kBase.least(text, u64::MAX)
    }

    #[test]
    fn ordinary_text_is_counted_as_its_tokenizer_counts_it() {
        // Numbers of OpenAI's own tokenizer.
        for (text, tokens) in [
            ("", 0),
            ("a", 1),
            ("tiktoken is great!", 6),
            ("antidisestablishmentarianism", 6),
            ("2 + 2 = 4", 7),
            ("お誕生日おめでとう", 9),
        ] {
            assert_eq!(least(text), tokens, "{text}");
        }
    }

    #[test]
    fn no_text_has_fewer_tokens_than_its_bound() {
        let vocabulary = vocabularies::cl100k_base();
        for unit in [
            "a", "A", " ", "\n", "\t", "-", "/", "=", "é", "漢字", "👍", "ab", "aB", "<|", " the",
        ] {
            for bytes in [1, 63, 64, 65, 1000, 40_000, 100_000] {
                let text = unit.repeat(bytes / unit.len() + 1);
                let (least, exact) = (least(&text), vocabulary.count(text.as_str()) as u64);
                assert!(least <= exact, "{unit:?} {bytes}: {least} of {exact}");
                // The bound is worth something: at most a third is lost, and what cuts lose.
                let lost = exact / 3 + 127 * (bytes / TOGETHER_BYTES) as u64;
                assert!(
                    least + lost >= exact,
                    "{unit:?} {bytes}: {least} of {exact}"
                );
            }
        }
    }

    #[test]
    fn what_a_provider_may_take_for_one_token_is_not_counted() {
        let text = "<|endoftext|>".repeat(9);
        assert_eq!(least(&text), 1);
    }

    #[test]
    fn a_text_that_must_be_too_long_is_not_counted() {
        let text = "a b ".repeat(100);
        assert_eq!(Tokenizer::Cl100kBase.least(&text, 3), 4);
        assert_eq!(Tokenizer::Cl100kBase.least(&text, 4), 201);
    }
}
