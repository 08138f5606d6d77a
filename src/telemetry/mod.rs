//! Metrics, log lines, calls in memory and traces for operators.

pub mod calls;
pub mod load;
pub mod logging;
pub mod metrics;
pub mod reload;
pub mod text_lines;
pub mod traces;
