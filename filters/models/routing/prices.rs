//! Reads the prices of a mapping, as decimal text.

use super::catalog_file::WrittenMapping;
use crate::money::{InvalidAmount, LongContext, Price, PriceSet};

/// The key of a price, and why it is none.
pub(super) type BadPrice = (&'static str, InvalidAmount);

/// Returns the prices of a mapping; `None` where neither input nor output has one.
pub(super) fn read_prices(written: &WrittenMapping) -> Result<Option<PriceSet>, BadPrice> {
    let tokens = |key, text| read(key, text, Price::per_million);
    let fee = |key, text| read(key, text, Price::per_call);
    let input = tokens("input_price", &written.input_price)?;
    let output = tokens("output_price", &written.output_price)?;
    let set = PriceSet {
        input: input.unwrap_or_default(),
        output: output.unwrap_or_default(),
        input_audio: tokens("input_audio_price", &written.input_audio_price)?,
        input_image: tokens("input_image_price", &written.input_image_price)?,
        output_audio: tokens("output_audio_price", &written.output_audio_price)?,
        output_image: tokens("output_image_price", &written.output_image_price)?,
        image: fee("image_price", &written.image_price)?,
        cached_input: tokens("cached_input_price", &written.cached_input_price)?,
        cache_write: tokens("cache_write_price", &written.cache_write_price)?,
        cache_write_1h: tokens("cache_write_1h_price", &written.cache_write_1h_price)?,
        request: fee("request_price", &written.request_price)?.unwrap_or_default(),
        web_search: fee("web_search_price", &written.web_search_price)?.unwrap_or_default(),
        long_context: match &written.long_context {
            Some(long) => Some(LongContext {
                above_tokens: long.above_tokens,
                input: tokens("long_context.input_price", &long.input_price)?,
                output: tokens("long_context.output_price", &long.output_price)?,
                cached_input: tokens("long_context.cached_input_price", &long.cached_input_price)?,
                cache_write: tokens("long_context.cache_write_price", &long.cache_write_price)?,
                cache_write_1h: tokens(
                    "long_context.cache_write_1h_price",
                    &long.cache_write_1h_price,
                )?,
            }),
            None => None,
        },
    };
    Ok((input.is_some() || output.is_some()).then_some(set))
}

fn read(
    key: &'static str,
    text: &Option<String>,
    parse: fn(&str) -> Result<Price, InvalidAmount>,
) -> Result<Option<Price>, BadPrice> {
    let price = text.as_deref().map(parse).transpose();
    price.map_err(|bad| (key, bad))
}
