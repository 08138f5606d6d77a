//! Endpoints that call no model, one module per route.

mod contents_model;
mod contents_models;
mod credits;
mod delete_video;
pub mod key;
mod model;
mod models;
pub mod prompt;
mod prompts;
mod render_prompt;
mod usage;
mod usage_breakdown;
mod video;
mod video_content;
mod video_list;
