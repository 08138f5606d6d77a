//! The head that replaces a refused one, so that the refusal is answered, counted and logged like any other.

use super::byte_class::{GRAPHIC, METHOD, PATH, are_in_class, count_in_class};
use super::framing::MAX_TARGET_BYTES;

/// The maximum bytes of a path. They suffice to tell which product is asked.
const MAX_PATH_BYTES: usize = 256;
/// The longest method that is kept.
const MAX_METHOD_BYTES: usize = 32;
/// The longest request id that is kept.
const MAX_ID_BYTES: usize = 128;

/// Returns a head without a body that every parser reads in the same way. It keeps the method, the path and the
/// request id of the refused head as far as they are valid.
pub fn write_stand_in(head: &[u8]) -> Vec<u8> {
    let head = head.strip_prefix(b"\r\n").unwrap_or(head);
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default();
    let mut words = first.split(|byte| *byte == b' ');
    let method = words.next().unwrap_or_default();
    let target = words.next().unwrap_or_default();
    let path = match words.next().map(<[u8]>::trim_ascii_end) {
        Some(b"HTTP/1.1" | b"HTTP/1.0") => valid_path(target),
        // The target is longer than allowed, and the head ends inside it.
        None if target.len() > MAX_TARGET_BYTES => valid_path(target),
        // The words of any other line may mean anything, and paths are logged.
        _ => b"",
    };
    let mut stand_in = Vec::with_capacity(MAX_PATH_BYTES);
    stand_in.extend_from_slice(if is_good_method(method) {
        method
    } else {
        b"GET"
    });
    stand_in.push(b' ');
    stand_in.extend_from_slice(if path.is_empty() { b"/" } else { path });
    stand_in.extend_from_slice(b" HTTP/1.1\r\nhost: refused\r\nconnection: close\r\n");
    if let Some(id) = lines.find_map(find_request_id) {
        stand_in.extend_from_slice(b"x-request-id: ");
        stand_in.extend_from_slice(id);
        stand_in.extend_from_slice(b"\r\n");
    }
    stand_in.extend_from_slice(b"\r\n");
    stand_in
}

fn is_good_method(method: &[u8]) -> bool {
    let is_tunnel = matches!(method, b"" | b"CONNECT");
    !is_tunnel && method.len() <= MAX_METHOD_BYTES && are_in_class(method, METHOD)
}

/// Returns the path of a target up to its first invalid byte.
fn valid_path(target: &[u8]) -> &[u8] {
    let mut rest = target;
    if !target.starts_with(b"/") {
        let host = memchr::memmem::find(target, b"://").and_then(|at| target.get(at + 3..));
        let slash = host.and_then(|host| memchr::memchr(b'/', host));
        rest = slash
            .and_then(|slash| host.and_then(|host| host.get(slash..)))
            .unwrap_or_default();
    }
    let good = count_in_class(rest, PATH).min(MAX_PATH_BYTES);
    rest.get(..good).unwrap_or_default()
}

/// Returns the request id if the line is a valid header `x-request-id`.
fn find_request_id(line: &[u8]) -> Option<&[u8]> {
    let (name, value) = line.split_at_checked(memchr::memchr(b':', line)?)?;
    let value = value.get(1..)?.trim_ascii();
    let is_good = (1..=MAX_ID_BYTES).contains(&value.len()) && are_in_class(value, GRAPHIC);
    (is_good && name.eq_ignore_ascii_case(b"x-request-id")).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::check_http1;

    fn stands_in(head: &str) -> String {
        let stand_in = write_stand_in(head.as_bytes());
        assert!(check_http1(&stand_in, 1 << 10).is_ok(), "{head:?}");
        String::from_utf8_lossy(&stand_in).into_owned()
    }

    #[test]
    fn what_is_good_of_a_head_goes_on() {
        for (head, begin) in [
            (
                "POST /v1/x?a\u{1} HTTP/1.1\r\nHost: b\r\n\r\n",
                "POST /v1/x HTTP/1.1\r\n",
            ),
            (
                "GET http://u@a/b/c HTTP/1.1\r\n\r\n",
                "GET /b/c HTTP/1.1\r\n",
            ),
            ("CONNECT a:80 HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\n"),
            ("get /a HTTP/1.1\r\n", "GET /a HTTP/1.1\r\n"),
            ("GET /a b HTTP/1.1\r\n", "GET / HTTP/1.1\r\n"),
            ("GET /a HTTP/9.9\r\n", "GET / HTTP/1.1\r\n"),
            ("GET /a\r\n", "GET / HTTP/1.1\r\n"),
            ("TRACE /a\u{e9} HTTP/1.1\n", "TRACE /a HTTP/1.1\r\n"),
            ("OPTIONS *", "OPTIONS / HTTP/1.1\r\n"),
            ("", "GET / HTTP/1.1\r\n"),
        ] {
            let stand_in = write_stand_in(head.as_bytes());
            assert!(stand_in.starts_with(begin.as_bytes()), "{head:?}");
        }
        let long = stands_in(&format!("GET /{} HTTP/1.1\r\n", "a".repeat(10_000)));
        assert!(long.len() < 400, "{long}");
        let with_id = stands_in("GET / HTTP/1.1\r\nA: b\r\nX-Request-Id: one-2 \r\n\r\n");
        assert!(with_id.contains("\r\nx-request-id: one-2\r\n"), "{with_id}");
        let without = stands_in("GET / HTTP/1.1\r\nX-Request-Id: one two\r\n\r\n");
        assert!(!without.contains("x-request-id"), "{without}");
    }
}
