//! Speaks to a collector of traces: protobuf over HTTP, or gRPC.

use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_client::TraceServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use prost::Message;
use tonic::Code;
use tonic::metadata::MetadataMap;
use tonic::transport::{Channel, ClientTlsConfig, Endpoint};

use crate::config::{OtlpProtocol, TelemetryConfig};
use crate::outbound::{self, Outbound};

/// The maximum bytes of a collector's reply.
const MAX_REPLY_BYTES: usize = 64 << 10;
const PROTOBUF: HeaderValue = HeaderValue::from_static("application/x-protobuf");

/// The collector of a configuration.
pub(super) enum Exporter {
    Http {
        client: Outbound,
        endpoint: String,
        headers: HeaderMap,
    },
    Grpc {
        client: TraceServiceClient<Channel>,
        headers: HeaderMap,
        timeout: Duration,
    },
}

/// The reason for which an export failed.
#[derive(Debug)]
pub(super) struct ExportError {
    /// What happened, without secrets.
    pub(super) text: String,
    /// Whether the same export may succeed later.
    pub(super) is_retryable: bool,
}

impl ExportError {
    fn retryable(text: String) -> Self {
        Self {
            text,
            is_retryable: true,
        }
    }

    fn terminal(text: String) -> Self {
        Self {
            text,
            is_retryable: false,
        }
    }
}

impl Exporter {
    /// Returns the exporter of a configuration. It connects when it first exports. Call it on a runtime.
    ///
    /// Errors: no client can be made.
    pub(super) fn new(config: &TelemetryConfig) -> Result<Self, String> {
        let headers = headers(config);
        let endpoint = config.endpoint.clone();
        match config.protocol {
            OtlpProtocol::Http => {
                let client = Outbound::new(config.timeout, [endpoint.as_str()]);
                Ok(Self::Http {
                    client: client.map_err(outbound::describe)?,
                    endpoint,
                    headers,
                })
            }
            OtlpProtocol::Grpc => {
                let is_tls = endpoint.starts_with("https:");
                let channel = Endpoint::from_shared(endpoint).map_err(|error| error.to_string())?;
                let channel = channel.connect_timeout(config.timeout);
                let channel = match is_tls {
                    true => {
                        let tls = ClientTlsConfig::new().with_webpki_roots();
                        channel.tls_config(tls).map_err(|error| error.to_string())?
                    }
                    false => channel,
                };
                Ok(Self::Grpc {
                    client: TraceServiceClient::new(channel.connect_lazy())
                        .max_decoding_message_size(MAX_REPLY_BYTES),
                    headers,
                    timeout: config.timeout,
                })
            }
        }
    }

    /// Sends spans. Returns how many of them the collector did not take.
    ///
    /// Errors: none of them was taken.
    pub(super) async fn export(
        &self,
        request: &ExportTraceServiceRequest,
    ) -> Result<u64, ExportError> {
        let reply = match self {
            Self::Http {
                client,
                endpoint,
                headers,
            } => post(client, endpoint, headers, request).await?,
            Self::Grpc {
                client,
                headers,
                timeout,
            } => call(client.clone(), headers.clone(), request.clone(), *timeout).await?,
        };
        let rejected = reply.partial_success.map_or(0, |it| it.rejected_spans);
        Ok(u64::try_from(rejected).unwrap_or(0))
    }
}

/// Returns the headers of each export. A secret does not show itself where a head is printed.
fn headers(config: &TelemetryConfig) -> HeaderMap {
    let listed = config.headers.iter().filter_map(|(name, value)| {
        let mut value = HeaderValue::from_str(value.expose()).ok()?;
        value.set_sensitive(true);
        Some((HeaderName::clone(name), value))
    });
    listed.collect()
}

/// Exports over HTTP. Source: the OTLP specification, "OTLP/HTTP Response": 429, 502, 503 and 504 may be repeated.
async fn post(
    client: &Outbound,
    endpoint: &str,
    headers: &HeaderMap,
    request: &ExportTraceServiceRequest,
) -> Result<ExportTraceServiceResponse, ExportError> {
    let request = client
        .post(endpoint)
        .map_err(|error| ExportError::terminal(error.to_string()))?
        .headers(headers.clone())
        .header(CONTENT_TYPE, PROTOBUF)
        .body(request.encode_to_vec());
    let reply = request.send().await;
    let reply = reply.map_err(|error| ExportError::retryable(outbound::describe(error)))?;
    let status = reply.status();
    if !status.is_success() {
        let text = format!("it answered {status}");
        return Err(match status.as_u16() {
            429 | 502 | 503 | 504 => ExportError::retryable(text),
            _ => ExportError::terminal(text),
        });
    }
    // The spans were taken, so what the reply says beyond that is worth no second export.
    let body = outbound::read_body(reply, MAX_REPLY_BYTES).await;
    let body: Bytes = body.unwrap_or_default();
    Ok(ExportTraceServiceResponse::decode(body).unwrap_or_default())
}

/// Exports over gRPC.
async fn call(
    mut client: TraceServiceClient<Channel>,
    headers: HeaderMap,
    request: ExportTraceServiceRequest,
    timeout: Duration,
) -> Result<ExportTraceServiceResponse, ExportError> {
    let mut request = tonic::Request::new(request);
    *request.metadata_mut() = MetadataMap::from_headers(headers);
    request.set_timeout(timeout);
    let reply = tokio::time::timeout(timeout, client.export(request)).await;
    let reply = reply.map_err(|_| ExportError::retryable("it does not answer".to_owned()))?;
    match reply {
        Ok(reply) => Ok(reply.into_inner()),
        Err(status) => {
            let text = format!("it answered {:?}", status.code());
            Err(match is_retryable(status.code()) {
                true => ExportError::retryable(text),
                false => ExportError::terminal(text),
            })
        }
    }
}

/// Source: the OTLP specification, "OTLP/gRPC Response". What a failed connection says is among these codes.
fn is_retryable(code: Code) -> bool {
    matches!(
        code,
        Code::Cancelled
            | Code::DeadlineExceeded
            | Code::Aborted
            | Code::OutOfRange
            | Code::Unavailable
            | Code::DataLoss
            | Code::ResourceExhausted
    )
}
