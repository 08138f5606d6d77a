//! Metrics and log lines for operators.

pub mod logging;
pub mod metrics;
pub mod reload;
pub mod text_lines;
