//! Usage of this wire: the prompt holds what was read from the cache and written to it, the output its reasoning.
//! Source: docs/facts/wire-formats.md 2.3.

use serde::Deserialize;

use crate::models::usage::{Unread, Usage};
use crate::models::wires::count::lenient;

/// A report. Null members count as absent.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Report {
    #[serde(deserialize_with = "lenient")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    output_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct InputDetails {
    #[serde(deserialize_with = "lenient")]
    cached_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    cache_write_tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct OutputDetails {
    #[serde(deserialize_with = "lenient")]
    reasoning_tokens: Option<u64>,
}

/// Returns the searches of `tool_usage`.
pub(super) fn count_searches(tool_usage: &str) -> Option<u64> {
    #[derive(Deserialize)]
    struct ToolUsage {
        web_search: Option<Count>,
    }
    #[derive(Deserialize)]
    struct Count {
        num_requests: Option<u64>,
    }
    let used: ToolUsage = serde_json::from_str(tool_usage).ok()?;
    used.web_search?.num_requests
}

impl Report {
    /// In the words of the convention. What a host gets wrong is put right, so that prompt ≥ cached + written and
    /// completion ≥ reasoning. Source: docs/facts/wire-formats.md R8.
    pub(super) fn usage(&self) -> Usage {
        let prompt = self.input_tokens.unwrap_or(0);
        let completion = self.output_tokens.unwrap_or(0);
        let input = self.input_tokens_details.unwrap_or_default();
        let output = self.output_tokens_details.unwrap_or_default();
        let cached = input.cached_tokens.unwrap_or(0).min(prompt);
        Usage {
            prompt,
            completion,
            reasoning: output.reasoning_tokens.map(|count| count.min(completion)),
            cached,
            cache_write: input.cache_write_tokens.unwrap_or(0).min(prompt - cached),
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
        fn whatever_is_reported_the_prompt_holds_what_was_cached_and_written(
            prompt: u64, completion: u64, cached: u64, written: u64, reasoning: u64,
        ) {
            let report = Report {
                input_tokens: Some(prompt),
                output_tokens: Some(completion),
                input_tokens_details: Some(InputDetails {
                    cached_tokens: Some(cached),
                    cache_write_tokens: Some(written),
                }),
                output_tokens_details: Some(OutputDetails { reasoning_tokens: Some(reasoning) }),
            };
            let usage = report.usage();
            prop_assert_eq!((usage.prompt, usage.completion), (prompt, completion));
            prop_assert!(usage.cached.checked_add(usage.cache_write).is_some_and(|sum| sum <= prompt));
            prop_assert!(usage.reasoning <= Some(completion));
        }
    }
}
