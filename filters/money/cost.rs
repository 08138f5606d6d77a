//! Computes a cost and its parts from tokens and prices. Source: docs/facts/model-gateway.md 8.1, docs/decisions.md 14.

use super::prices::PriceSet;
use super::unit::{Unit, UnitCounts};
use super::usd::Usd;

/// The billed usage. `prompt` includes `cached` and both kinds of cache writes. Media tokens are part of
/// `completion`, or of the rest of `prompt`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct BilledTokens {
    pub prompt: u64,
    /// Prompt tokens read from the cache.
    pub cached: u64,
    /// Prompt tokens written to the cache for five minutes.
    pub written_5m: u64,
    /// Prompt tokens written to the cache for an hour.
    pub written_1h: u64,
    pub audio_prompt: u64,
    pub image_prompt: u64,
    /// Completion tokens, including reasoning.
    pub completion: u64,
    pub audio_completion: u64,
    pub image_completion: u64,
    pub reasoning: u64,
    /// Drawn images.
    pub images: u64,
    pub web_searches: u64,
    pub units: UnitCounts,
    /// Whether the read pages are annotated.
    pub annotates: bool,
}

/// A cost and its parts.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Cost {
    pub total: Usd,
    pub details: Details,
}

/// `usage.cost_details`: each field of the contract, 0 where it does not apply, and the cost of units. Source:
/// docs/model-gateway.md 2.5.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Details {
    /// Prompt and completion, without fees.
    pub upstream_inference_cost: Usd,
    /// Uncached, cached and written prompt.
    pub upstream_inference_prompt_cost: Usd,
    pub upstream_inference_completions_cost: Usd,
    pub total_cost: Usd,
    /// Uncached prompt without images and audio.
    pub input_cost: Usd,
    /// Completion without images.
    pub output_cost: Usd,
    pub cached_input_cost: Usd,
    pub cache_write_input_cost: Usd,
    pub request_cost: Usd,
    pub web_search_cost: Usd,
    pub image_input_cost: Usd,
    pub image_output_cost: Usd,
    pub audio_input_cost: Usd,
    pub data_storage_cost: Usd,
    /// Pages, seconds and other units. The contract has no member for them, so they are reported only if they cost
    /// something.
    pub unit_cost: Usd,
}

impl Details {
    /// Writes a JSON object. Its numbers are the exact decimals.
    #[rustfmt::skip]
    pub fn write(&self, out: &mut Vec<u8>) {
        let parts = [
            ("{\"upstream_inference_cost\":", self.upstream_inference_cost),
            (",\"upstream_inference_prompt_cost\":", self.upstream_inference_prompt_cost),
            (",\"upstream_inference_completions_cost\":", self.upstream_inference_completions_cost),
            (",\"total_cost\":", self.total_cost),
            (",\"input_cost\":", self.input_cost),
            (",\"output_cost\":", self.output_cost),
            (",\"cached_input_cost\":", self.cached_input_cost),
            (",\"cache_write_input_cost\":", self.cache_write_input_cost),
            (",\"request_cost\":", self.request_cost),
            (",\"web_search_cost\":", self.web_search_cost),
            (",\"image_input_cost\":", self.image_input_cost),
            (",\"image_output_cost\":", self.image_output_cost),
            (",\"audio_input_cost\":", self.audio_input_cost),
            (",\"data_storage_cost\":", self.data_storage_cost),
        ];
        for (key, part) in parts {
            out.extend_from_slice(key.as_bytes());
            part.write(out);
        }
        if !self.unit_cost.is_zero() {
            out.extend_from_slice(b",\"unit_cost\":");
            self.unit_cost.write(out);
        }
        out.push(b'}');
    }
}

impl Cost {
    /// Returns the sum of both, part by part.
    #[must_use]
    pub fn plus(&self, other: &Self) -> Self {
        let (one, two) = (&self.details, &other.details);
        let sum = |part: fn(&Details) -> Usd| part(one).plus(part(two));
        Self {
            total: self.total.plus(other.total),
            details: Details {
                upstream_inference_cost: sum(|it| it.upstream_inference_cost),
                upstream_inference_prompt_cost: sum(|it| it.upstream_inference_prompt_cost),
                upstream_inference_completions_cost: sum(|it| {
                    it.upstream_inference_completions_cost
                }),
                total_cost: sum(|it| it.total_cost),
                input_cost: sum(|it| it.input_cost),
                output_cost: sum(|it| it.output_cost),
                cached_input_cost: sum(|it| it.cached_input_cost),
                cache_write_input_cost: sum(|it| it.cache_write_input_cost),
                request_cost: sum(|it| it.request_cost),
                web_search_cost: sum(|it| it.web_search_cost),
                image_input_cost: sum(|it| it.image_input_cost),
                image_output_cost: sum(|it| it.image_output_cost),
                audio_input_cost: sum(|it| it.audio_input_cost),
                data_storage_cost: sum(|it| it.data_storage_cost),
                unit_cost: sum(|it| it.unit_cost),
            },
        }
    }
}

/// Returns the cost of `tokens` at `prices`, without rounding. `prices` have to be those for a prompt of this length.
pub(super) fn cost(prices: &PriceSet, tokens: &BilledTokens) -> Cost {
    let special = tokens
        .cached
        .saturating_add(tokens.written_5m)
        .saturating_add(tokens.written_1h);
    let uncached = tokens.prompt.saturating_sub(special);
    let (text, image_in, audio_in) = split(uncached, tokens.image_prompt, tokens.audio_prompt);
    let (words, image_out, audio_out) = split(
        tokens.completion,
        tokens.image_completion,
        tokens.audio_completion,
    );
    let write_5m = prices.cache_write.unwrap_or(prices.input);
    let write_1h = prices.cache_write_1h.unwrap_or(write_5m);
    let cached = prices.cached_input.unwrap_or(prices.input);
    let input = prices.input.times(text);
    let images = prices.input_image.unwrap_or(prices.input).times(image_in);
    let audio = prices.input_audio.unwrap_or(prices.input).times(audio_in);
    let cached = cached.times(tokens.cached);
    let written = write_5m
        .times(tokens.written_5m)
        .plus(write_1h.times(tokens.written_1h));
    let spoken = prices.output_audio.unwrap_or(prices.output);
    let thoughts = tokens.reasoning.min(words);
    let thought = prices.output_reasoning.unwrap_or(prices.output);
    let output = prices
        .output
        .times(words - thoughts)
        .plus(thought.times(thoughts))
        .plus(spoken.times(audio_out));
    let drawn = drawn_cost(prices, tokens.images, image_out);
    let request = prices.request.times(1);
    let search = prices.web_search.times(tokens.web_searches);
    let (units_in, units_out) = units_cost(prices, &tokens.units, tokens.annotates);
    let prompt = input.plus(images).plus(audio).plus(cached).plus(written);
    let prompt = prompt.plus(units_in);
    let completion = output.plus(drawn).plus(units_out);
    let total = prompt.plus(completion).plus(request).plus(search);
    let details = Details {
        upstream_inference_cost: prompt.plus(completion),
        upstream_inference_prompt_cost: prompt,
        upstream_inference_completions_cost: completion,
        total_cost: total,
        input_cost: input,
        output_cost: output,
        cached_input_cost: cached,
        cache_write_input_cost: written,
        request_cost: request,
        web_search_cost: search,
        image_input_cost: images,
        image_output_cost: drawn,
        audio_input_cost: audio,
        data_storage_cost: Usd::ZERO,
        unit_cost: units_in.plus(units_out),
    };
    Cost { total, details }
}

/// Returns the cost of drawn images: by the image if the image has a price, else by their tokens.
fn drawn_cost(prices: &PriceSet, images: u64, tokens: u64) -> Usd {
    match prices.image {
        Some(each) => each.times(images),
        None => prices.output_image.unwrap_or(prices.output).times(tokens),
    }
}

/// Returns the cost of the units of a request, and of those of its response. `annotates`: its pages are annotated.
pub(super) fn units_cost(prices: &PriceSet, counts: &UnitCounts, annotates: bool) -> (Usd, Usd) {
    let page = prices.annotated_page.filter(|_| annotates);
    let page = page.unwrap_or_else(|| prices.units.get(Unit::Page));
    let priced = prices.units.with(Unit::Page, page);
    let priced = priced.set();
    let costs = priced.map(|(unit, price)| (unit, price.times(counts.get(unit))));
    costs.fold(
        (Usd::ZERO, Usd::ZERO),
        |(read, made), (unit, cost)| match Unit::is_output(unit) {
            true => (read, made.plus(cost)),
            false => (read.plus(cost), made),
        },
    )
}

/// Splits tokens into the text tokens, those of images and those of audio. No token counts twice.
fn split(tokens: u64, images: u64, audio: u64) -> (u64, u64, u64) {
    let images = images.min(tokens);
    let audio = audio.min(tokens - images);
    (tokens - images - audio, images, audio)
}
