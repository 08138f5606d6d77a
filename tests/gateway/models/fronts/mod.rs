//! Endpoints that call models, one module per route.

mod bad_chat;
pub mod chat_completions;
pub mod compact;
pub mod completions;
mod count_tokens;
pub mod embeddings;
mod image_edits;
mod images;
mod message_bounds;
mod message_citations;
mod message_errors;
mod message_pings;
mod message_safeguards;
mod messages;
mod moderations;
mod ocr;
mod operations;
mod promises;
mod rerank;
mod responses;
mod search;
mod speech;
mod stored_responses;
mod systemone;
pub mod transcriptions;
mod translations;
pub mod videos;
