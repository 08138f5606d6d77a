//! The price that a candidate is compared by: that of an average token of the call that is expected.
//!
//! Source: docs/facts/model-gateway.md 3.3, 3.6.

use super::health::TokenShares;
use crate::money::PriceSet;

/// From this many estimated prompt tokens on, providers are expected to find a part of a prompt in their caches.
const MIN_CACHED_TOKENS: u64 = 5_000;

/// What is expected of a call within a session, before its mapping has been measured. Our choice: the profile of chats.
const SESSION: TokenShares = TokenShares {
    cached: 0.5,
    written: 0.0,
    output_ratio: 0.1,
};
/// What is expected of a long prompt without a session. Our choice: the general profile.
const LONG_PROMPT: TokenShares = TokenShares {
    cached: 0.1,
    written: 0.0,
    output_ratio: 0.2,
};

/// Returns whether a part of the prompt may come from a provider's cache.
pub fn expects_cache(prompt_tokens: u64, has_session: bool) -> bool {
    has_session || prompt_tokens >= MIN_CACHED_TOKENS
}

/// Returns what is expected of a candidate that was not measured: the mean of those that were, because calls of a model are
/// alike, or else an assumption.
pub(super) fn assume_shares(
    measured: impl Iterator<Item = TokenShares>,
    has_session: bool,
) -> TokenShares {
    let zero = TokenShares {
        cached: 0.0,
        written: 0.0,
        output_ratio: 0.0,
    };
    let (sum, count) = measured.fold((zero, 0.0), |(sum, count), it| {
        let sum = TokenShares {
            cached: sum.cached + it.cached,
            written: sum.written + it.written,
            output_ratio: sum.output_ratio + it.output_ratio,
        };
        (sum, count + 1.0)
    });
    match (count > 0.0, has_session) {
        (true, _) => TokenShares {
            cached: sum.cached / count,
            written: sum.written / count,
            output_ratio: sum.output_ratio / count,
        },
        (false, true) => SESSION,
        (false, false) => LONG_PROMPT,
    }
}

/// Returns the price of an average token where these shares are expected; `None`: only other things cost, so it does not
/// compare.
pub(super) fn blend(prices: &PriceSet, shares: TokenShares) -> Option<f64> {
    prices.mean()?;
    let [cached, written, ratio] =
        [shares.cached, shares.written, shares.output_ratio].map(f64::from);
    let input = prices.input.as_f64();
    let or_input = |price: Option<crate::money::Price>| price.map_or(input, |it| it.as_f64());
    let prompt = (1.0 - cached - written) * input
        + cached * or_input(prices.cached_input)
        + written * or_input(prices.cache_write);
    Some((prompt + ratio * prices.output.as_f64()) / (1.0 + ratio))
}
