//! The prices of one call, and how those of other calls are made of them.

use super::usd::{Factor, InvalidAmount, Price};

/// The prices of one call. A price that is `None` is that of other tokens of the prompt or of the completion.
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
    /// Per prompt token written to the cache for an hour; `None`: as `cache_write`.
    pub cache_write_1h: Option<Price>,
    /// Per request.
    pub request: Price,
    /// Per search.
    pub web_search: Price,
}

/// Prices of tokens that replace those of a [`PriceSet`], where they are given.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[expect(missing_docs, reason = "the fields are those of a PriceSet")]
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

impl PriceSet {
    /// Returns whether plans count the model as premium: output from 15 USD or input from 5 USD per million tokens.
    ///
    /// Source: docs/interface.md, `plans`, docs/facts/model-gateway.md 5.3.
    pub fn is_premium(&self) -> bool {
        const PER_MILLION: u64 = 10_u64.pow(12);
        self.output >= Price::from_units(15 * PER_MILLION)
            || self.input >= Price::from_units(5 * PER_MILLION)
    }

    /// Returns whether neither tokens nor requests cost anything.
    pub fn is_free(&self) -> bool {
        let tokens = self.tokens();
        let own = [
            tokens.input_audio,
            tokens.input_image,
            tokens.output_audio,
            tokens.output_image,
            tokens.output_reasoning,
            self.image,
        ];
        let others = own.into_iter().flatten();
        let mut all = others.chain([self.input, self.output, self.request]);
        all.all(Price::is_zero)
    }

    /// Returns the mean of input and output price, for comparisons.
    pub fn mean(&self) -> f64 {
        f64::midpoint(self.input.as_f64(), self.output.as_f64())
    }

    /// Returns these prices with others in their place.
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

    /// Returns these prices with those of tokens and images times a factor. Fees stay.
    ///
    /// Errors: a product that cannot be billed without rounding.
    pub fn scaled(&self, factor: Factor) -> Result<Self, InvalidAmount> {
        let scaled = |price: Option<Price>| price.map(|price| price.scaled(factor)).transpose();
        let tokens = self.tokens();
        let image = scaled(self.image)?;
        let all = Self { image, ..*self };
        Ok(all.with(&TokenPrices {
            input: scaled(tokens.input)?,
            output: scaled(tokens.output)?,
            input_audio: scaled(tokens.input_audio)?,
            input_image: scaled(tokens.input_image)?,
            output_audio: scaled(tokens.output_audio)?,
            output_image: scaled(tokens.output_image)?,
            output_reasoning: scaled(tokens.output_reasoning)?,
            cached_input: scaled(tokens.cached_input)?,
            cache_write: scaled(tokens.cache_write)?,
            cache_write_1h: scaled(tokens.cache_write_1h)?,
        }))
    }

    /// Returns these prices with those of fees times a factor. Errors: as [`Self::scaled`].
    pub(super) fn with_fees_scaled(&self, factor: Factor) -> Result<Self, InvalidAmount> {
        Ok(Self {
            request: self.request.scaled(factor)?,
            web_search: self.web_search.scaled(factor)?,
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
