//! What operators see of the process: metrics and log lines.

pub mod logging;
pub mod metrics;
