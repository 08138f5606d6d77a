//! Collectors of traces: over HTTP, and over gRPC.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, Span};
use prost::Message;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use super::loopback::own_address;
use super::script::Reply;
use super::until;
use super::upstream::Upstream;

/// The answer of a collector that takes everything.
pub fn taken() -> Reply {
    let body = ExportTraceServiceResponse::default().encode_to_vec();
    Reply::whole(200, &[("content-type", "application/x-protobuf")], body)
}

/// What an HTTP collector has received, in exports that came whole.
pub fn exports(collector: &Upstream) -> Vec<ResourceSpans> {
    let requests = collector.requests().into_iter();
    let decode = |body: Vec<u8>| ExportTraceServiceRequest::decode(&body[..]).unwrap();
    requests
        .flat_map(|request| decode(request.body).resource_spans)
        .collect()
}

/// The spans of exports.
pub fn spans(exports: &[ResourceSpans]) -> Vec<Span> {
    let scopes = exports.iter().flat_map(|export| &export.scope_spans);
    scopes.flat_map(|scope| scope.spans.clone()).collect()
}

/// Waits until an HTTP collector has so many spans.
pub fn wait_spans(collector: &Upstream, count: usize) -> Vec<Span> {
    let received = || spans(&exports(collector));
    until("spans", || received().len() >= count);
    let received = received();
    assert_eq!(received.len(), count, "{received:#?}");
    received
}

/// The value of an attribute as text; empty: there is none.
pub fn value(span: &Span, key: &str) -> String {
    let found = span.attributes.iter().filter(|it| it.key == key);
    let values: Vec<_> = found.collect();
    assert!(values.len() <= 1, "{key} stands there twice");
    let value = values
        .first()
        .and_then(|it| it.value.as_ref()?.value.as_ref());
    value.map(text).unwrap_or_default()
}

fn text(value: &Value) -> String {
    match value {
        Value::StringValue(text) => text.clone(),
        Value::BoolValue(value) => value.to_string(),
        Value::IntValue(value) => value.to_string(),
        Value::DoubleValue(value) => value.to_string(),
        Value::ArrayValue(values) => {
            let values = values.values.iter().flat_map(|value| &value.value);
            values.map(text).collect::<Vec<_>>().join(",")
        }
        other => panic!("{other:?}"),
    }
}

/// The only span of this kind.
pub fn only(spans: &[Span], kind: SpanKind) -> &Span {
    let found: Vec<&Span> = spans.iter().filter(|it| it.kind() == kind).collect();
    assert_eq!(found.len(), 1, "{spans:#?}");
    found[0]
}

/// Lower-case hex digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A call of gRPC: its path, its headers and its message.
pub type GrpcCall = (String, http::HeaderMap, ExportTraceServiceRequest);

/// A collector that speaks gRPC, as frames of HTTP/2.
pub struct GrpcCollector {
    address: SocketAddr,
    calls: Arc<Mutex<Vec<GrpcCall>>>,
    _runtime: Runtime,
}

impl GrpcCollector {
    /// Starts one that answers each call with this status of gRPC.
    pub fn answering(status: &'static str) -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind((own_address(), 0)));
        let listener = listener.unwrap();
        let address = listener.local_addr().unwrap();
        let calls = Arc::new(Mutex::default());
        runtime.spawn(serve(listener, Arc::clone(&calls), status));
        Self {
            address,
            calls,
            _runtime: runtime,
        }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub fn calls(&self) -> Vec<GrpcCall> {
        self.calls.lock().unwrap().clone()
    }
}

async fn serve(listener: TcpListener, calls: Arc<Mutex<Vec<GrpcCall>>>, status: &'static str) {
    while let Ok((socket, _)) = listener.accept().await {
        let calls = Arc::clone(&calls);
        tokio::spawn(async move {
            let Ok(mut connection) = h2::server::handshake(socket).await else {
                return;
            };
            while let Some(Ok((request, respond))) = connection.accept().await {
                tokio::spawn(answer(request, respond, Arc::clone(&calls), status));
            }
        });
    }
}

async fn answer(
    request: http::Request<h2::RecvStream>,
    mut respond: h2::server::SendResponse<Bytes>,
    calls: Arc<Mutex<Vec<GrpcCall>>>,
    status: &'static str,
) {
    let (head, mut stream) = request.into_parts();
    let mut body = Vec::new();
    while let Some(Ok(piece)) = stream.data().await {
        _ = stream.flow_control().release_capacity(piece.len());
        body.extend_from_slice(&piece);
    }
    // A message has a byte for its compression and four for its length before it.
    let message = ExportTraceServiceRequest::decode(&body[5..]).unwrap();
    let call = (head.uri.path().to_owned(), head.headers, message);
    calls.lock().unwrap().push(call);
    let response = http::Response::builder().header("content-type", "application/grpc");
    let mut sending = respond
        .send_response(response.body(()).unwrap(), false)
        .unwrap();
    if status == "0" {
        let empty = Bytes::from_static(&[0; 5]);
        sending.send_data(empty, false).unwrap();
    }
    let trailers = [("grpc-status", status)].map(|(name, value)| {
        let name = http::HeaderName::from_static(name);
        (name, http::HeaderValue::from_static(value))
    });
    sending
        .send_trailers(trailers.into_iter().collect())
        .unwrap();
}
