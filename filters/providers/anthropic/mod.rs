//! The anthropic wire.
