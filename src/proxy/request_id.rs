//! The name of a request: in its answer's headers, in its line, in what is billed for it.

use std::time::{SystemTime, UNIX_EPOCH};

use http::{HeaderMap, HeaderValue};

/// 1–128 of `A-Za-z0-9_.-`; nothing until the head was looked at.
#[derive(Clone, Debug)]
pub struct RequestId(HeaderValue);

impl RequestId {
    /// Of a request whose head nobody has looked at.
    pub const NONE: Self = Self(HeaderValue::from_static(""));

    /// The client's `x-request-id` where it is one, else a new one. Source: docs/interface.md.
    pub fn of(headers: &HeaderMap) -> Self {
        let theirs = headers.get("x-request-id");
        let theirs = theirs.filter(|value| is_id(value.as_bytes()));
        theirs.map_or_else(Self::new, |value| Self(value.clone()))
    }

    /// An id that sorts by time. It is a name and no secret: numbers of the thread's own generator make it unique,
    /// for which the system's would cost a call per request.
    fn new() -> Self {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let mut random = [0; 10];
        fastrand::fill(&mut random);
        let ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        let id = uuid::Builder::from_unix_timestamp_millis(ms, &random).into_uuid();
        let mut buffer = uuid::Uuid::encode_buffer();
        let id = id.simple().encode_lower(&mut buffer);
        // Hex digits always make a header.
        HeaderValue::from_str(id).map_or(Self::NONE, Self)
    }

    /// As headers have it.
    pub fn header(&self) -> &HeaderValue {
        &self.0
    }

    /// As a text.
    pub fn text(&self) -> &str {
        self.0.to_str().unwrap_or_default()
    }
}

fn is_id(text: &[u8]) -> bool {
    let is_of_it = |byte: &u8| byte.is_ascii_alphanumeric() || b"_.-".contains(byte);
    (1..=128).contains(&text.len()) && text.iter().all(is_of_it)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(theirs: &[u8]) -> String {
        let mut headers = HeaderMap::new();
        let value = HeaderValue::from_bytes(theirs);
        headers.extend(value.map(|value| (http::HeaderName::from_static("x-request-id"), value)));
        RequestId::of(&headers).text().to_owned()
    }

    #[test]
    fn a_name_of_the_clients_is_kept() {
        let longest = "a".repeat(128);
        for theirs in ["a", "A-1_b.c", &*longest] {
            assert_eq!(of(theirs.as_bytes()), theirs);
        }
    }

    #[test]
    fn what_is_no_name_is_replaced_by_a_new_one() {
        let too_long = "a".repeat(129);
        for theirs in ["", "a b", "\u{e9}", "a\"b", &*too_long] {
            let made = of(theirs.as_bytes());
            assert!(
                made.len() == 32 && is_id(made.as_bytes()),
                "{theirs}: {made}"
            );
        }
        assert_ne!(of(b""), of(b""));
    }
}
