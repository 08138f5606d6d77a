//! The prices of one call, and how the prices of other calls follow from them.

use std::fmt;

use super::unit::UnitPrices;
use super::usd::{Factor, InvalidAmount, Price};

/// The keys of token prices in files, in the order of the fields of [`TokenPrices`].
pub const TOKEN_PRICE_KEYS: [&str; 10] = [
    "input_price",
    "output_price",
    "input_audio_price",
    "input_image_price",
    "output_audio_price",
    "output_image_price",
    "output_reasoning_price",
    "cached_input_price",
    "cache_write_price",
    "cache_write_1h_price",
];

/// The prices of one call. Tokens whose price is `None` cost as other tokens of the prompt or of the completion.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct PriceSet {
    /// Per prompt token.
    pub input: Price,
    /// Per completion token.
    pub output: Price,
    /// Per prompt token of audio.
    pub input_audio: Option<Price>,
    /// Per prompt token of images.
    pub input_image: Option<Price>,
    /// Per completion token of audio.
    pub output_audio: Option<Price>,
    /// Per completion token of images.
    pub output_image: Option<Price>,
    /// Per drawn image, in place of its tokens.
    pub image: Option<Price>,
    /// Per completion token of reasoning.
    pub output_reasoning: Option<Price>,
    /// Per prompt token read from the provider's cache.
    pub cached_input: Option<Price>,
    /// Per prompt token written to the cache for five minutes.
    pub cache_write: Option<Price>,
    /// Per prompt token written to the cache for an hour; `None` means the price of `cache_write`.
    pub cache_write_1h: Option<Price>,
    pub request: Price,
    pub web_search: Price,
    pub units: UnitPrices,
    /// Per page that is read and annotated, in place of the price of a page.
    pub annotated_page: Option<Price>,
}

/// Prices of tokens. Each one that is given replaces its price in a [`PriceSet`].
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TokenPrices {
    pub input: Option<Price>,
    pub output: Option<Price>,
    pub input_audio: Option<Price>,
    pub input_image: Option<Price>,
    pub output_audio: Option<Price>,
    pub output_image: Option<Price>,
    pub output_reasoning: Option<Price>,
    pub cached_input: Option<Price>,
    pub cache_write: Option<Price>,
    pub cache_write_1h: Option<Price>,
}

/// A price that cannot be billed after multiplication with a factor.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Unscalable {
    pub key: &'static str,
    /// The prompt tokens above which the price holds.
    pub above: Option<u64>,
    pub(super) why: InvalidAmount,
}

impl fmt::Display for Unscalable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.above {
            Some(above) => write!(f, "beyond {above} tokens {}", self.why),
            None => self.why.fmt(f),
        }
    }
}

impl TokenPrices {
    /// Makes prices from an array in the order of [`TOKEN_PRICE_KEYS`].
    pub fn from_array(prices: [Option<Price>; TOKEN_PRICE_KEYS.len()]) -> Self {
        let [
            input,
            output,
            input_audio,
            input_image,
            output_audio,
            output_image,
            output_reasoning,
            cached_input,
            cache_write,
            cache_write_1h,
        ] = prices;
        Self {
            input,
            output,
            input_audio,
            input_image,
            output_audio,
            output_image,
            output_reasoning,
            cached_input,
            cache_write,
            cache_write_1h,
        }
    }

    /// Returns the prices in the order of [`TOKEN_PRICE_KEYS`].
    pub fn to_array(&self) -> [Option<Price>; TOKEN_PRICE_KEYS.len()] {
        [
            self.input,
            self.output,
            self.input_audio,
            self.input_image,
            self.output_audio,
            self.output_image,
            self.output_reasoning,
            self.cached_input,
            self.cache_write,
            self.cache_write_1h,
        ]
    }

    /// Returns whether no price is given.
    pub fn is_empty(&self) -> bool {
        self.to_array().iter().all(Option::is_none)
    }
}

fn scale(
    key: &'static str,
    price: Option<Price>,
    factor: Factor,
) -> Result<Option<Price>, Unscalable> {
    let scaled = price.map(|price| price.scaled(factor)).transpose();
    scaled.map_err(|why| Unscalable {
        key,
        above: None,
        why,
    })
}

impl PriceSet {
    /// Returns whether plans count the model as premium: output from 15 USD or input from 5 USD per million tokens.
    ///
    /// Source: docs/interface.md, `plans`, docs/facts/model-gateway.md 5.3.
    pub fn is_premium(&self) -> bool {
        const PER_MILLION: u64 = 10_u64.pow(12);
        self.output >= Price::from_units(15 * PER_MILLION)
            || self.input >= Price::from_units(5 * PER_MILLION)
    }

    /// Returns whether neither tokens nor units nor requests cost anything.
    pub fn is_free(&self) -> bool {
        let tokens = self.tokens();
        let own = [
            tokens.input_audio,
            tokens.input_image,
            tokens.output_audio,
            tokens.output_image,
            tokens.output_reasoning,
            self.image,
            self.annotated_page,
        ];
        let others = own.into_iter().flatten();
        let mut all = others.chain([self.input, self.output, self.request]);
        all.all(Price::is_zero) && self.units.is_zero()
    }

    /// Returns the mean of input and output price, for comparisons. Returns `None` if tokens are free but something
    /// else costs, because such prices do not compare.
    pub fn mean(&self) -> Option<f64> {
        let has_mean = !self.input.is_zero() || !self.output.is_zero() || self.is_free();
        has_mean.then(|| f64::midpoint(self.input.as_f64(), self.output.as_f64()))
    }

    /// Returns these prices with those of `own` in their place.
    #[must_use]
    pub fn with(&self, own: &TokenPrices) -> Self {
        Self {
            input: own.input.unwrap_or(self.input),
            output: own.output.unwrap_or(self.output),
            input_audio: own.input_audio.or(self.input_audio),
            input_image: own.input_image.or(self.input_image),
            output_audio: own.output_audio.or(self.output_audio),
            output_image: own.output_image.or(self.output_image),
            output_reasoning: own.output_reasoning.or(self.output_reasoning),
            cached_input: own.cached_input.or(self.cached_input),
            cache_write: own.cache_write.or(self.cache_write),
            cache_write_1h: own.cache_write_1h.or(self.cache_write_1h),
            ..*self
        }
    }

    /// Returns these prices with those of tokens, images and units times a factor. Fees do not change.
    ///
    /// Errors: a product that cannot be billed without rounding.
    pub fn scaled(&self, factor: Factor) -> Result<Self, Unscalable> {
        let mut tokens = self.tokens().to_array();
        for (price, key) in tokens.iter_mut().zip(TOKEN_PRICE_KEYS) {
            *price = scale(key, *price, factor)?;
        }
        let mut units = self.units;
        for (unit, price) in self.units.set() {
            let scaled = scale(unit.price_key(), Some(price), factor)?;
            units = units.with(unit, scaled.unwrap_or_default());
        }
        let all = Self {
            image: scale("image_price", self.image, factor)?,
            annotated_page: scale("annotated_page_price", self.annotated_page, factor)?,
            units,
            ..*self
        };
        Ok(all.with(&TokenPrices::from_array(tokens)))
    }

    /// Returns these prices of a long-prompt step for a tier, or for hours, with own prices but without own steps.
    /// Where the step changes a price of short prompts, the higher of step and own price holds; elsewhere the own
    /// price does.
    pub(super) fn with_higher(&self, own: &TokenPrices, short: &Self) -> Self {
        let steps = self.tokens().to_array().into_iter();
        let pairs = steps.zip(short.tokens().to_array());
        let mut chosen = own.to_array();
        for (own, (step, short)) in chosen.iter_mut().zip(pairs) {
            if step != short {
                *own = own.map(|own| step.map_or(own, |step| own.max(step)));
            }
        }
        self.with(&TokenPrices::from_array(chosen))
    }

    /// Returns these prices with the fees times a factor. Errors: as [`Self::scaled`].
    pub(super) fn with_fees_scaled(&self, factor: Factor) -> Result<Self, Unscalable> {
        let fee = |key, price| scale(key, Some(price), factor).map(Option::unwrap_or_default);
        Ok(Self {
            request: fee("request_price", self.request)?,
            web_search: fee("web_search_price", self.web_search)?,
            ..*self
        })
    }

    fn tokens(&self) -> TokenPrices {
        TokenPrices {
            input: Some(self.input),
            output: Some(self.output),
            input_audio: self.input_audio,
            input_image: self.input_image,
            output_audio: self.output_audio,
            output_image: self.output_image,
            output_reasoning: self.output_reasoning,
            cached_input: self.cached_input,
            cache_write: self.cache_write,
            cache_write_1h: self.cache_write_1h,
        }
    }
}
