//! Makes spans. Every text in a span is bounded, and holds no API key.

use filters::accounts::holds_api_key;
use filters::trace_context::SpanId;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::common::v1::{AnyValue, ArrayValue, KeyValue};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{Span, SpanFlags, Status};

use super::RequestTrace;
use super::names;

/// The maximum bytes of a text in a span.
const MAX_TEXT_BYTES: usize = 256;
/// The maximum number of texts in a list.
const MAX_LISTED: usize = 64;

/// A span while it is made.
pub struct SpanDraft(Span);

/// The beginning and the end of a span: nanoseconds since 1970.
#[derive(Clone, Copy, Debug)]
pub struct SpanTimes {
    pub start_ns: u64,
    pub end_ns: u64,
}

impl SpanDraft {
    /// Begins the span of a request.
    pub fn of_request(trace: &RequestTrace, name: &str, times: SpanTimes) -> Self {
        let remote = match trace.parent {
            Some(_) => SpanFlags::ContextIsRemoteMask as u32,
            None => 0,
        };
        let mut span = span(trace, trace.span, name, times);
        span.parent_span_id = trace
            .parent
            .map(|parent| parent.bytes().to_vec())
            .unwrap_or_default();
        span.kind = SpanKind::Server.into();
        span.flags |= SpanFlags::ContextHasIsRemoteMask as u32 | remote;
        Self(span)
    }

    /// Begins a span of what the request asks for elsewhere.
    pub fn of_attempt(trace: &RequestTrace, id: SpanId, name: &str, times: SpanTimes) -> Self {
        let mut span = span(trace, id, name, times);
        span.parent_span_id = trace.span.bytes().to_vec();
        span.kind = SpanKind::Client.into();
        span.flags |= SpanFlags::ContextHasIsRemoteMask as u32;
        Self(span)
    }

    /// Replaces the name.
    pub fn rename(&mut self, name: &str) {
        self.0.name = bounded(name);
    }

    /// Adds a text, if it is not empty.
    pub fn text(&mut self, key: &'static str, text: &str) {
        if !text.is_empty() {
            self.add(key, Value::StringValue(bounded(text)));
        }
    }

    /// Adds a number.
    pub fn number(&mut self, key: &'static str, number: u64) {
        self.add(key, integer(number));
    }

    /// Adds a number of seconds.
    pub fn seconds(&mut self, key: &'static str, seconds: f64) {
        self.add(key, Value::DoubleValue(seconds));
    }

    /// Adds a truth value.
    pub fn flag(&mut self, key: &'static str, value: bool) {
        self.add(key, Value::BoolValue(value));
    }

    /// Adds a list of texts, if it is not empty.
    pub fn texts(&mut self, key: &'static str, texts: &[&str]) {
        if texts.is_empty() {
            return;
        }
        let listed = texts.iter().take(MAX_LISTED);
        let values = listed.map(|text| AnyValue {
            value: Some(Value::StringValue(bounded(text))),
        });
        let values = values.collect();
        self.add(key, Value::ArrayValue(ArrayValue { values }));
    }

    /// Says that it failed, and for what class of reason.
    pub fn fail(&mut self, error_type: &str) {
        self.text(names::ERROR_TYPE, error_type);
        self.0.status = Some(Status {
            code: StatusCode::Error.into(),
            message: String::new(),
        });
    }

    /// Returns the span.
    pub fn finish(self) -> Span {
        self.0
    }

    fn add(&mut self, key: &'static str, value: Value) {
        self.0.attributes.push(attribute(key, value));
    }
}

/// Returns an attribute.
pub(super) fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

/// Returns a number that fits the protocol.
fn integer(number: u64) -> Value {
    Value::IntValue(i64::try_from(number).unwrap_or(i64::MAX))
}

fn span(trace: &RequestTrace, id: SpanId, name: &str, times: SpanTimes) -> Span {
    Span {
        trace_id: trace.trace.bytes().to_vec(),
        span_id: id.bytes().to_vec(),
        trace_state: trace.state.to_string(),
        name: bounded(name),
        start_time_unix_nano: times.start_ns,
        end_time_unix_nano: times.end_ns.max(times.start_ns),
        // The lowest flag says that the trace is recorded.
        flags: 1,
        ..Span::default()
    }
}

/// Returns the start of a text. A text with one of our API keys is not shown.
fn bounded(text: &str) -> String {
    // Most texts have no underscore and need no search for a key.
    if text.contains('_') && holds_api_key(text.as_bytes()) {
        return "[removed]".to_owned();
    }
    match text.len() <= MAX_TEXT_BYTES {
        true => text.to_owned(),
        false => {
            let end = text.floor_char_boundary(MAX_TEXT_BYTES);
            format!("{}…", text.get(..end).unwrap_or_default())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_bounded_and_holds_no_key() {
        assert_eq!(bounded("gpt-5"), "gpt-5");
        assert_eq!(bounded(&"é".repeat(128)), "é".repeat(128));
        assert_eq!(bounded(&"é".repeat(129)), "é".repeat(128) + "…");
        assert_eq!(bounded(&format!("x{}", "é".repeat(200))).len(), 255 + 3);
        assert_eq!(bounded(&format!("m/wg_{}", "B".repeat(43))), "[removed]");
    }

    #[test]
    fn a_number_beyond_the_protocol_is_its_largest() {
        assert_eq!(integer(7), Value::IntValue(7));
        assert_eq!(integer(u64::MAX), Value::IntValue(i64::MAX));
    }
}
