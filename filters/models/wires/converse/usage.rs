//! Usage of this wire: the prompt without what was read from or written to the cache. Source: docs/facts/wire-formats.md 5.2.

use serde::Deserialize;

use crate::models::chat::text::Text;
use crate::models::reply::Sink;
use crate::models::usage::{Unread, Usage};
use crate::models::wires::count::lenient;

/// A report.
#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub(super) struct Report<'a> {
    #[serde(deserialize_with = "lenient")]
    input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    output_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    cache_read_input_tokens: Option<u64>,
    #[serde(deserialize_with = "lenient")]
    cache_write_input_tokens: Option<u64>,
    /// What was written, by how long it holds.
    #[serde(borrow)]
    cache_details: Option<Vec<CacheWrite<'a>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CacheWrite<'a> {
    #[serde(borrow)]
    ttl: Text<'a>,
    #[serde(deserialize_with = "lenient")]
    input_tokens: Option<u64>,
}

impl Report<'_> {
    /// Hands on the report.
    pub(super) fn tell(&self, sink: &mut dyn Sink) {
        sink.usage(self.usage());
    }

    /// In the words of the convention.
    fn usage(&self) -> Usage {
        let cached = self.cache_read_input_tokens.unwrap_or(0);
        let written = self.cache_write_input_tokens.unwrap_or(0);
        let input = self.input_tokens.unwrap_or(0);
        Usage {
            prompt: input.saturating_add(cached).saturating_add(written),
            completion: self.output_tokens.unwrap_or(0),
            cached,
            cache_write: written,
            cache_write_5m: self.written("5m"),
            cache_write_1h: self.written("1h"),
            unread: Unread {
                prompt: self.input_tokens.is_none(),
                completion: self.output_tokens.is_none(),
            },
            ..Usage::default()
        }
    }

    /// Returns what was written that holds so long.
    fn written(&self, ttl: &str) -> Option<u64> {
        let details = self.cache_details.as_ref()?;
        let tokens = details.iter().filter(|written| &*written.ttl == ttl);
        let tokens = tokens.filter_map(|written| written.input_tokens);
        tokens.reduce(u64::saturating_add)
    }
}
