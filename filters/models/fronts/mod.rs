//! The public shapes, a folder per API that clients speak. No front knows a wire.

pub mod chat_completions;
pub mod embeddings;
mod error_event;
pub mod speech;

use http::HeaderName;

/// The header by which a client names the version of an API whose errors have the alternative style.
///
/// Source: docs/model-gateway.md 7.
pub const ALTERNATIVE_STYLE: HeaderName = HeaderName::from_static("anthropic-version");
