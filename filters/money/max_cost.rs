//! The maximum cost of a call, computed before the call. Source: docs/promises-tests.md; docs/facts/model-gateway.md 5.4.
//!
//! A token covers at least one byte of text, so the bytes of a request bound its prompt. The bytes of an image, audio
//! part or file do not bound its tokens, so these bounds come from the catalogue.

use super::cost::units_cost;
use super::price_list::Rates;
use super::prices::PriceSet;
use super::unit::UnitCounts;
use super::usd::{Price, Usd};

/// Maximum prompt tokens of an image, unless the catalogue has a bound.
const MAX_IMAGE_TOKENS: u64 = 4_096;
/// Maximum prompt tokens of an audio part, unless the catalogue has a bound.
const MAX_AUDIO_TOKENS: u64 = 16_384;
/// Maximum prompt tokens of a file, unless the catalogue has a bound.
const MAX_FILE_TOKENS: u64 = 65_536;
/// Maximum prompt tokens of the results of a search, unless the catalogue has a bound.
const MAX_SEARCH_TOKENS: u64 = 16_384;
/// Maximum tokens of a choice, if neither the request nor the catalogue limits them. Requests to providers that
/// charge by the token state this limit. Source: docs/decisions.md 14.
pub const UNKNOWN_OUTPUT_TOKENS: u64 = 16_384;

/// Maximum tokens of a choice with a higher limit, unless the catalogue has a bound. No model produces as many, and
/// no more are ever charged. Our choice.
pub const UNBOUNDED_OUTPUT_TOKENS: u64 = 2_000_000;

/// Maximum images of a choice, unless the catalogue has a bound. Source: docs/model-gateway.md 2.7, the bound of `n`.
const MAX_DRAWN_IMAGES: u64 = 10;
/// Completion tokens that are reserved for a drawn image. No usual size takes as many. Our choice.
const MAX_DRAWN_IMAGE_TOKENS: u64 = 2_000;

/// The facts of a request that bound its cost.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct CostInputs {
    /// Bytes of the request without media data.
    pub bytes: u64,
    pub images: u64,
    pub audio: u64,
    pub files: u64,
    /// The token limit of one choice, as sent to the provider.
    pub max_tokens: Option<u64>,
    /// Number of requested choices, at least 1.
    pub choices: u64,
    /// Number of requested images of a choice (`image_config.n`).
    pub wanted_images: u64,
    /// Whether the response may hold images. `None` means unknown; then images count if they have a price.
    pub draws: Option<bool>,
    /// The number of requests to the provider that one response takes; 0 counts as 1.
    pub requests: u64,
    pub searches: u64,
    pub billed_searches: u64,
    pub units: UnitCounts,
    /// Whether the read pages are to be annotated.
    pub annotates: bool,
}

/// The token limits of a mapping.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TokenBounds {
    /// Maximum tokens of one choice: of the response, or of prompt and response together.
    pub max_output: Option<u64>,
    pub image_tokens: Option<u64>,
    pub audio_tokens: Option<u64>,
    pub file_tokens: Option<u64>,
    pub drawn_images: Option<u64>,
    pub search_tokens: Option<u64>,
}

impl TokenBounds {
    /// Returns the maximum tokens of a choice. `limit` is the one that is sent to the provider.
    pub fn output(&self, limit: Option<u64>) -> u64 {
        match (limit, self.max_output) {
            (Some(limit), Some(maximum)) => limit.min(maximum),
            (Some(limit), None) => limit.min(UNBOUNDED_OUTPUT_TOKENS),
            (None, Some(maximum)) => maximum,
            (None, None) => UNKNOWN_OUTPUT_TOKENS,
        }
    }
}

/// Returns the maximum cost of a call at these prices.
pub(super) fn max_cost(rates: &Rates, bounds: &TokenBounds, inputs: &CostInputs) -> Usd {
    let images = media_tokens(inputs.images, bounds.image_tokens, MAX_IMAGE_TOKENS);
    let audio = media_tokens(inputs.audio, bounds.audio_tokens, MAX_AUDIO_TOKENS);
    let files = media_tokens(inputs.files, bounds.file_tokens, MAX_FILE_TOKENS);
    let found = media_tokens(inputs.searches, bounds.search_tokens, MAX_SEARCH_TOKENS);
    let text = inputs.bytes.saturating_add(files).saturating_add(found);
    let output_tokens = bounds.output(inputs.max_tokens);
    let output_tokens = output_tokens.saturating_mul(inputs.choices.max(1));
    let at = |prices: &PriceSet| {
        let plain = max_prompt_price(prices);
        let output_tokens = output_tokens.max(drawn_tokens(prices, bounds, inputs));
        let (read, made) = units_cost(prices, &inputs.units, inputs.annotates);
        plain
            .times(text)
            .plus(highest(plain, [prices.input_image]).times(images))
            .plus(highest(plain, [prices.input_audio]).times(audio))
            .plus(max_output_price(prices).times(output_tokens))
            .plus(prices.request.times(inputs.requests.max(1)))
            .plus(drawn_cost(prices, bounds, inputs))
            .plus(prices.web_search.times(inputs.billed_searches))
            .plus(read)
            .plus(made)
    };
    let prompt = text.saturating_add(images).saturating_add(audio);
    rates.up_to(prompt).map(at).fold(Usd::ZERO, Usd::max)
}

/// Returns the maximum cost of images that have a price of their own.
fn drawn_cost(prices: &PriceSet, bounds: &TokenBounds, inputs: &CostInputs) -> Usd {
    match prices.image {
        Some(each) if inputs.draws.unwrap_or(true) => {
            each.times(drawn_images(MAX_DRAWN_IMAGES, bounds, inputs))
        }
        _ => Usd::ZERO,
    }
}

/// Returns the tokens of drawn images that are billed as tokens. Providers may not count them in the token limit.
fn drawn_tokens(prices: &PriceSet, bounds: &TokenBounds, inputs: &CostInputs) -> u64 {
    let draws = inputs.draws.unwrap_or(prices.output_image.is_some());
    if !draws || prices.image.is_some() {
        return 0;
    }
    drawn_images(1, bounds, inputs).saturating_mul(MAX_DRAWN_IMAGE_TOKENS)
}

/// Returns the maximum images of all choices. `default` is the number per choice if no request or catalogue sets one.
fn drawn_images(default: u64, bounds: &TokenBounds, inputs: &CostInputs) -> u64 {
    let of_choice = bounds.drawn_images.unwrap_or(default);
    let of_choice = of_choice.max(inputs.wanted_images);
    of_choice.saturating_mul(inputs.choices.max(1))
}

fn media_tokens(parts: u64, bound: Option<u64>, default: u64) -> u64 {
    parts.saturating_mul(bound.unwrap_or(default))
}

/// Returns the highest price of a prompt token: a cache write may cost more than plain input.
fn max_prompt_price(prices: &PriceSet) -> Price {
    let others = [
        prices.cached_input,
        prices.cache_write,
        prices.cache_write_1h,
    ];
    highest(prices.input, others)
}

/// Returns the highest price of a completion token: any token may belong to an image or to audio.
fn max_output_price(prices: &PriceSet) -> Price {
    let others = [
        prices.output_image,
        prices.output_audio,
        prices.output_reasoning,
    ];
    highest(prices.output, others)
}

fn highest<const N: usize>(price: Price, others: [Option<Price>; N]) -> Price {
    others.into_iter().flatten().fold(price, Price::max)
}
