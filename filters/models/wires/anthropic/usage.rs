//! Usage of this wire: the prompt without what was read from or written to the cache.
//! Source: docs/facts/wire-formats.md 3.4.

use serde::Deserialize;

use crate::models::reply::Sink;
use crate::models::usage::{Unread, Usage};
use crate::models::wires::count::lenient;
use crate::models::wires::tier_word::TierWord;

/// A report. Absent and null members leave what was known.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Report {
    #[serde(deserialize_with = "lenient")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    output_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    cache_creation_input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    cache_read_input_tokens: Option<u64>,
    cache_creation: Option<Creation>,
    output_tokens_details: Option<OutputDetails>,
    server_tool_use: Option<ServerTools>,
    service_tier: Option<TierWord>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Creation {
    #[serde(deserialize_with = "lenient")]
    ephemeral_5m_input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    ephemeral_1h_input_tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    #[serde(deserialize_with = "lenient")]
    thinking_tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct ServerTools {
    #[serde(deserialize_with = "lenient")]
    web_search_requests: Option<u64>,
}

impl Report {
    /// Takes over what a later report says; cumulative, never added.
    pub(super) fn update(&mut self, later: Self) {
        fn newer<T>(known: &mut Option<T>, later: Option<T>) {
            if later.is_some() {
                *known = later;
            }
        }
        newer(&mut self.input_tokens, later.input_tokens);
        newer(&mut self.output_tokens, later.output_tokens);
        newer(
            &mut self.cache_creation_input_tokens,
            later.cache_creation_input_tokens,
        );
        newer(
            &mut self.cache_read_input_tokens,
            later.cache_read_input_tokens,
        );
        newer(&mut self.cache_creation, later.cache_creation);
        newer(&mut self.output_tokens_details, later.output_tokens_details);
        newer(&mut self.server_tool_use, later.server_tool_use);
        newer(&mut self.service_tier, later.service_tier);
    }

    /// Hands on the report.
    pub(super) fn tell(&self, sink: &mut dyn Sink) {
        sink.usage(self.usage());
        // Its own count decides: a search that failed was seen, and costs nothing.
        let searches = self
            .server_tool_use
            .and_then(|tools| tools.web_search_requests);
        if let Some(searches) = searches {
            sink.searches(searches);
        }
        if let Some(tier) = self.service_tier.and_then(|word| word.0) {
            sink.service_tier(tier);
        }
    }

    /// In the words of the convention.
    fn usage(&self) -> Usage {
        let cached = self.cache_read_input_tokens.unwrap_or(0);
        let written = self.cache_creation_input_tokens.unwrap_or(0);
        let completion = self.output_tokens.unwrap_or(0);
        let thinking = self
            .output_tokens_details
            .and_then(|details| details.thinking_tokens);
        Usage {
            prompt: self
                .input_tokens
                .unwrap_or(0)
                .saturating_add(cached)
                .saturating_add(written),
            completion,
            reasoning: thinking.map(|thinking| thinking.min(completion)),
            cached,
            cache_write: written,
            cache_write_5m: self
                .cache_creation
                .and_then(|c| c.ephemeral_5m_input_tokens),
            cache_write_1h: self
                .cache_creation
                .and_then(|c| c.ephemeral_1h_input_tokens),
            web_searches: self
                .server_tool_use
                .and_then(|tools| tools.web_search_requests)
                .unwrap_or(0),
            unread: Unread {
                prompt: self.input_tokens.is_none(),
                completion: self.output_tokens.is_none(),
            },
            ..Usage::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_prompt_holds_what_was_cached_and_written_each_once(
            input in 0..1_u64 << 60, cached in 0..1_u64 << 60, written in 0..1_u64 << 60,
        ) {
            let report = Report {
                input_tokens: Some(input),
                cache_read_input_tokens: Some(cached),
                cache_creation_input_tokens: Some(written),
                ..Report::default()
            };
            let usage = report.usage();
            prop_assert_eq!(usage.prompt, input + cached + written);
            prop_assert_eq!((usage.cached, usage.cache_write), (cached, written));
        }
    }
}
