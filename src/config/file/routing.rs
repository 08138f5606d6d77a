//! `[limits]`, `[routing]` and `[models]`, as the file has them.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::quotas::RequestsPerMinute;
use super::time;

/// Limits of requests.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// The most model requests at once; more are refused with 529.
    #[schemars(range(min = 1, max = 1_000_000))]
    pub in_flight: usize,
    /// The most bytes of all request bodies in memory at once; more are refused with 529.
    #[schemars(range(min = 1_048_576))]
    pub buffered_bytes: usize,
    /// The most bytes of files in forms that are on the disk at once.
    #[schemars(range(min = 1_048_576))]
    pub spooled_bytes: usize,
    /// The most bytes of a request body, by endpoint.
    pub body_bytes: BodyBytes,
    /// Requests per minute and organization, by endpoint group; absent: the built-in limit, 0: unlimited.
    pub requests_per_minute: RequestsPerMinute,
    /// Whether a shared window counts each request in Redis on its own; if false, a process may hold units of a hot window for 100 ms.
    pub shared_exact: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            in_flight: 1000,
            buffered_bytes: 1_073_741_824,
            spooled_bytes: 4_294_967_296,
            body_bytes: BodyBytes::default(),
            requests_per_minute: RequestsPerMinute::default(),
            shared_exact: true,
        }
    }
}

/// The maximum size of a body, by endpoint.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct BodyBytes {
    /// Chat completions and the other model endpoints.
    #[schemars(range(min = 1024, max = 1_073_741_824))]
    pub chat: usize,
    /// Requests for images.
    #[schemars(range(min = 1024, max = 1_073_741_824))]
    pub images: usize,
    /// Documents that are read.
    #[schemars(range(min = 1024, max = 1_073_741_824))]
    pub ocr: usize,
    /// Forms with audio.
    #[schemars(range(min = 1024, max = 1_073_741_824))]
    pub audio: usize,
    /// Videos that providers send.
    #[schemars(range(min = 1024, max = 1_073_741_824))]
    pub video: usize,
    /// Decisions.
    #[schemars(range(min = 1024, max = 1_073_741_824))]
    pub decisions: usize,
    /// Batches of decisions.
    #[schemars(range(min = 1024, max = 1_073_741_824))]
    pub batch: usize,
    /// Graph queries and management.
    #[schemars(range(min = 1024, max = 1_073_741_824))]
    pub graph: usize,
    /// Graph data that is indexed.
    #[schemars(range(min = 1024, max = 1_073_741_824))]
    pub graph_data: usize,
}

impl Default for BodyBytes {
    fn default() -> Self {
        Self {
            chat: 20_971_520,
            images: 67_108_864,
            ocr: 67_108_864,
            audio: 26_214_400,
            video: 268_435_456,
            decisions: 262_144,
            batch: 1_048_576,
            graph: 4_194_304,
            graph_data: 67_108_864,
        }
    }
}

/// The selection of attempts, and timeouts.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Routing {
    /// The most providers tried for one request.
    #[schemars(range(min = 1, max = 10))]
    pub attempts: u32,
    /// The share of requests without a session that try a provider out of order.
    #[schemars(range(min = 0, max = 1))]
    pub exploration: f64,
    /// Seconds a session stays with its provider.
    #[serde(rename = "sticky_ttl_s", with = "time::seconds")]
    #[schemars(with = "u64", range(max = 604_800))]
    pub sticky_ttl: Duration,
    /// The weights of the strategy `auto`.
    pub weights: Weights,
    /// Seconds to connect to a provider.
    #[serde(rename = "connect_timeout_s", with = "time::seconds")]
    #[schemars(with = "u64", range(min = 1, max = 300))]
    pub connect_timeout: Duration,
    /// Seconds from the request to the first event of a stream, per attempt.
    #[serde(rename = "first_event_timeout_s", with = "time::seconds")]
    #[schemars(with = "u64", range(min = 1, max = 86_400))]
    pub first_event_timeout: Duration,
    /// Seconds between two events of a stream.
    #[serde(rename = "idle_timeout_s", with = "time::seconds")]
    #[schemars(with = "u64", range(min = 1, max = 86_400))]
    pub idle_timeout: Duration,
    /// Seconds for a whole reply that does not stream, per attempt.
    #[serde(rename = "total_timeout_s", with = "time::seconds")]
    #[schemars(with = "u64", range(min = 1, max = 86_400))]
    pub total_timeout: Duration,
    /// Seconds for a whole stream, per attempt.
    #[serde(rename = "stream_total_timeout_s", with = "time::seconds")]
    #[schemars(with = "u64", range(min = 1, max = 86_400))]
    pub stream_total_timeout: Duration,
    /// Seconds for all attempts together.
    #[serde(rename = "deadline_s", with = "time::seconds")]
    #[schemars(with = "u64", range(min = 1, max = 86_400))]
    pub deadline: Duration,
    /// Seconds of silence before a waiting client of a stream gets a comment.
    #[serde(rename = "keepalive_s", with = "time::seconds")]
    #[schemars(with = "u64", range(min = 1, max = 3600))]
    pub keepalive: Duration,
    /// Milliseconds without content after which a second attempt begins beside a stream, at another provider or region; 0: never.
    #[serde(rename = "hedge_after_ms", with = "time::optional_ms")]
    #[schemars(with = "u64", range(max = 3_600_000))]
    pub hedge_after: Option<Duration>,
    /// The models that `auto` chooses from: the cheapest that can serve the request, the first of equals.
    #[schemars(inner(length(min = 1)), extend("uniqueItems" = true))]
    pub auto: Vec<String>,
    /// The models that `auto` chooses from where images are asked for, in the same way.
    #[schemars(inner(length(min = 1)), extend("uniqueItems" = true))]
    pub auto_images: Vec<String>,
}

impl Default for Routing {
    fn default() -> Self {
        Self {
            attempts: 3,
            exploration: 0.01,
            sticky_ttl: Duration::from_secs(3600),
            weights: Weights::default(),
            connect_timeout: Duration::from_secs(5),
            first_event_timeout: Duration::from_secs(120),
            idle_timeout: Duration::from_secs(60),
            total_timeout: Duration::from_secs(600),
            stream_total_timeout: Duration::from_secs(1200),
            deadline: Duration::from_secs(1500),
            keepalive: Duration::from_secs(15),
            hedge_after: None,
            auto: Vec::new(),
            auto_images: Vec::new(),
        }
    }
}

/// The weights of the automatic strategy. None is negative; all may be zero.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Weights {
    /// Of the price.
    #[schemars(range(min = 0, max = 1000))]
    pub price: f64,
    /// Of the uptime.
    #[schemars(range(min = 0, max = 1000))]
    pub uptime: f64,
    /// Of the throughput.
    #[schemars(range(min = 0, max = 1000))]
    pub throughput: f64,
    /// Of the latency.
    #[schemars(range(min = 0, max = 1000))]
    pub latency: f64,
}

impl Default for Weights {
    fn default() -> Self {
        Self {
            price: 0.6,
            uptime: 0.5,
            throughput: 0.05,
            latency: 0.025,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ModelsConfig {
    /// The catalogue's file; where it is not set and conf/models.toml is absent, the catalogue is empty.
    #[schemars(length(min = 1), extend("x-file" = "catalogue"))]
    pub file: String,
    /// Whether /v1/models needs a key.
    pub require_key: bool,
}

impl Default for ModelsConfig {
    fn default() -> Self {
        Self {
            file: "conf/models.toml".to_owned(),
            require_key: true,
        }
    }
}
