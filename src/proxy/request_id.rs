//! The id of a request: it appears in the response headers, in the log line and in the ledger.

use filters::accounts::holds_api_key;
use http::{HeaderMap, HeaderName, HeaderValue};

const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// An id of 1–128 characters of `A-Za-z0-9_.-`. It is empty until the head is read.
#[derive(Clone, Debug)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// The id before the head is read.
    pub const NONE: Self = Self(HeaderValue::from_static(""));

    /// Returns the client's `x-request-id` if it is valid, else a new id of this time. Source: docs/interface.md.
    pub fn from_headers(headers: &HeaderMap, unix_ms: u64) -> Self {
        let client_id = headers.get(X_REQUEST_ID);
        let client_id = client_id.filter(|value| is_valid(value.as_bytes()));
        client_id.map_or_else(|| Self::generate(unix_ms), |value| Self(value.clone()))
    }

    /// Returns the id that a stored request has.
    pub fn from_text(text: &str) -> Self {
        HeaderValue::from_str(text).map_or(Self::NONE, Self)
    }

    /// Returns a new id; ids sort by time. An id is not a secret, so the thread's own generator is random enough. The
    /// operating system's generator would cost a call per request.
    fn generate(unix_ms: u64) -> Self {
        let mut random = [0; 10];
        fastrand::fill(&mut random);
        let id = uuid::Builder::from_unix_timestamp_millis(unix_ms, &random).into_uuid();
        let mut buffer = uuid::Uuid::encode_buffer();
        let id = id.simple().encode_lower(&mut buffer);
        // Hex digits are always a valid header value.
        HeaderValue::from_str(id).map_or(Self::NONE, Self)
    }

    /// Returns the id as a header value.
    pub fn as_header(&self) -> &HeaderValue {
        &self.0
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

/// Returns whether an id may be logged and sent: it is short and plain, and not an API key.
fn is_valid(id: &[u8]) -> bool {
    let is_allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
    (1..=128).contains(&id.len()) && id.iter().all(is_allowed) && !holds_api_key(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request_id(client_id: &[u8]) -> String {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_bytes(client_id);
        headers.extend(value.map(|value| (X_REQUEST_ID, value)));
        RequestId::from_headers(&headers, 1).as_str().to_owned()
    }

    #[test]
    fn a_valid_client_id_is_used() {
        let longest = "a".repeat(128);
        for client_id in ["a", "A-1_b.c", &*longest] {
            assert_eq!(request_id(client_id.as_bytes()), client_id);
        }
    }

    #[test]
    fn an_invalid_client_id_is_replaced_by_a_new_one() {
        let too_long = "a".repeat(129);
        let api_key = format!("a.wg_{}", "B".repeat(43));
        for client_id in ["", "a b", "\u{e9}", "a\"b", &*too_long, &*api_key] {
            let generated = request_id(client_id.as_bytes());
            assert!(
                generated.len() == 32 && is_valid(generated.as_bytes()),
                "{client_id}: {generated}"
            );
        }
        assert_ne!(request_id(b""), request_id(b""));
    }
}
