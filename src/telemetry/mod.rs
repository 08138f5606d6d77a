//! What operators observe: metrics and log lines.

pub mod logging;
pub mod metrics;
pub mod text_lines;
