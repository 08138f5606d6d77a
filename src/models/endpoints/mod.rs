//! Endpoints of the model gateway that respond in-process.

pub mod codex;
mod contents;
pub mod count_tokens;
pub mod credits;
pub mod key;
mod list_page;
pub mod messages;
mod model_entry;
pub mod models;
mod pricing;
pub mod prompts;
pub mod responses;
pub mod stored_responses;
pub mod usage;
pub mod videos;
