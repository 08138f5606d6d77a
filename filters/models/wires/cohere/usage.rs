//! Usage of this wire: all tokens, and those that are billed. Source: docs/facts/wire-formats.md 5.6.

use serde::Deserialize;

use crate::models::reply::Sink;
use crate::models::usage::{Unread, Usage};
use crate::models::wires::count::lenient;

/// A report.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Report {
    billed_units: Option<Tokens>,
    tokens: Option<Tokens>,
    #[serde(deserialize_with = "lenient")]
    cached_tokens: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(default)]
struct Tokens {
    #[serde(deserialize_with = "lenient")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    output_tokens: Option<u64>,
}

impl Report {
    /// Hands on the report.
    pub(super) fn tell(&self, sink: &mut dyn Sink) {
        sink.usage(self.usage());
    }

    fn usage(&self) -> Usage {
        let billed = self.billed_units.unwrap_or_default();
        let all = self.tokens.unwrap_or_default();
        let prompt = all.input_tokens.or(billed.input_tokens);
        let completion = all.output_tokens.or(billed.output_tokens);
        let (prompt_tokens, completion_tokens) = (prompt.unwrap_or(0), completion.unwrap_or(0));
        Usage {
            prompt: prompt_tokens,
            completion: completion_tokens,
            cached: self.cached_tokens.unwrap_or(0).min(prompt_tokens),
            billed_prompt: billed.input_tokens,
            billed_completion: billed.output_tokens,
            unread: Unread {
                prompt: prompt.is_none(),
                completion: completion.is_none(),
            },
            ..Usage::default()
        }
    }
}
