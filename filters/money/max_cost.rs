//! The most that a call may cost, before anybody knows what it will.
//! Source: docs/promises.md; docs/facts/model-gateway.md 5.4.
//!
//! A token is at least one byte of the text it stands for, so the bytes of a request bound its prompt. What a
//! provider makes of a picture, a sound or a file cannot be read off its bytes: the catalogue bounds those.

use super::cost::PriceSet;
use super::usd::{Price, Usd};

/// Prompt tokens that one part may be, where the catalogue does not say.
const IMAGE_TOKENS: u64 = 4_096;
/// The same of a sound.
const AUDIO_TOKENS: u64 = 16_384;
/// The same of a file.
const FILE_TOKENS: u64 = 65_536;
/// Tokens of an answer that neither the request nor the catalogue bounds.
const OUTPUT_TOKENS: u64 = 16_384;

/// What of a request bounds its cost.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CostInputs {
    /// Bytes of the request without the data of media.
    pub bytes: u64,
    /// Parts that are pictures.
    pub images: u64,
    /// Parts that are sounds.
    pub sounds: u64,
    /// Parts that are files.
    pub files: u64,
    /// What is said to the provider that each answer may have.
    pub max_tokens: Option<u64>,
    /// How many answers it wants, at least 1.
    pub choices: u64,
}

/// What of a mapping bounds the cost of a call.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TokenBounds {
    /// The most tokens of one answer.
    pub max_output: Option<u64>,
    /// The most prompt tokens of a picture.
    pub image_tokens: Option<u64>,
    /// The same of a sound.
    pub audio_tokens: Option<u64>,
    /// The same of a file.
    pub file_tokens: Option<u64>,
}

/// The most that a call may cost at these prices.
pub fn max_cost(prices: &PriceSet, bounds: &TokenBounds, asked: &CostInputs) -> Usd {
    let media = [
        (asked.images, bounds.image_tokens, IMAGE_TOKENS),
        (asked.sounds, bounds.audio_tokens, AUDIO_TOKENS),
        (asked.files, bounds.file_tokens, FILE_TOKENS),
    ];
    let prompt = media
        .into_iter()
        .map(|(parts, bound, usual)| parts.saturating_mul(bound.unwrap_or(usual)))
        .fold(asked.bytes, u64::saturating_add);
    let answer = match (asked.max_tokens, bounds.max_output) {
        (Some(asked), Some(most)) => asked.min(most),
        (Some(one), None) | (None, Some(one)) => one,
        (None, None) => OUTPUT_TOKENS,
    };
    let output = prices
        .output
        .times(answer.saturating_mul(asked.choices.max(1)));
    dearest_prompt(prices)
        .times(prompt)
        .plus(output)
        .plus(prices.request.times(1))
}

/// The dearest that a prompt token can be: writing to a cache costs more than reading nothing.
fn dearest_prompt(prices: &PriceSet) -> Price {
    [
        prices.cached_input,
        prices.cache_write,
        prices.cache_write_1h,
    ]
    .into_iter()
    .flatten()
    .fold(prices.input, Price::max)
}
