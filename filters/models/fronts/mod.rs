//! The public shapes, a folder per API that clients speak. No front knows a wire.

pub mod chat_completions;
pub mod embeddings;
