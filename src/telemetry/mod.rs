//! Metrics, log lines and traces for operators.

pub mod logging;
pub mod metrics;
pub mod reload;
pub mod text_lines;
pub mod traces;
