//! `[telemetry]`, as the file has it.

use std::collections::BTreeMap;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{SecretRef, time};

#[derive(Debug, Deserialize, JsonSchema, Serialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct TelemetryConfig {
    /// Where traces go, such as `http://127.0.0.1:4318`; empty: there are none.
    #[schemars(extend("format" = "url-or-empty"))]
    pub otlp_endpoint: String,
    /// How they go there: http, to the path /v1/traces behind that of the URL unless it ends so, or grpc.
    pub otlp_protocol: OtlpProtocol,
    /// Headers of each export; a value is a text, or { env = … } or { file = … } for a secret.
    #[schemars(extend("x-names" = "header"))]
    pub otlp_headers: BTreeMap<String, SecretRef>,
    /// The name of the service in traces.
    #[schemars(length(min = 1))]
    pub service_name: String,
    /// The share of requests that are traced; a client that sends `traceparent` decides for its own.
    #[schemars(range(min = 0, max = 1))]
    pub sample_ratio: f64,
    /// The most spans that wait; more are dropped and counted.
    #[schemars(range(min = 1, max = 65_536))]
    pub queue: usize,
    /// Seconds that one export may take.
    #[serde(rename = "timeout_s", with = "time::seconds")]
    #[schemars(with = "u64", range(min = 1, max = 300))]
    pub timeout: Duration,
    /// The version of OpenTelemetry's GenAI conventions whose names spans have.
    pub semconv: Semconv,
}

impl Default for TelemetryConfig {
    fn default() -> Self {
        Self {
            otlp_endpoint: String::new(),
            otlp_protocol: OtlpProtocol::default(),
            otlp_headers: BTreeMap::new(),
            service_name: "weirgate".to_owned(),
            sample_ratio: 1.0,
            queue: 4_096,
            timeout: Duration::from_secs(10),
            semconv: Semconv::default(),
        }
    }
}

/// How spans are exported: protobuf over HTTP, or gRPC.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OtlpProtocol {
    #[default]
    Http,
    Grpc,
}

/// A version of the GenAI conventions.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub enum Semconv {
    #[default]
    #[serde(rename = "0.1")]
    V0_1,
}
