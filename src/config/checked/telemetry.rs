//! The checked settings of traces.

use std::time::Duration;

use http::HeaderName;

use super::{OtlpProtocol, Semconv};
use crate::config::secret::Secret;

/// Where traces go, and which.
#[derive(Clone, PartialEq)]
pub struct TelemetryConfig {
    /// The URL of each export.
    pub endpoint: String,
    pub protocol: OtlpProtocol,
    /// The values are valid in headers.
    pub headers: Vec<(HeaderName, Secret)>,
    pub service_name: String,
    /// The share of requests that are traced, from 0 to 1.
    pub sample_ratio: f64,
    /// The maximum number of spans that wait.
    pub queue: usize,
    /// The maximum time of an export.
    pub timeout: Duration,
    pub semconv: Semconv,
}
