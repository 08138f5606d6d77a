//! Heads of HTTP requests: what is accepted can be framed in one way alone.

use filters::proxy::{MAX_FIELDS, MAX_TARGET_BYTES, check_http1, check_http2};
use http::{HeaderName, HeaderValue, Request};

use crate::choices::Choices;
use crate::damage;
use crate::run::run;

const MAX_BYTES: usize = 32 << 10;
const METHODS: [&str; 6] = ["GET", "POST", "HEAD", "OPTIONS", "DELETE", "M-SEARCH"];
const TARGETS: [&str; 6] = [
    "/",
    "/v1/models",
    "/a?b=c&d",
    "/%2e/x;y",
    "/~a!$&'()*+,=:@",
    "/content/v2?auth=k#f",
];
const HOSTS: [&str; 5] = [
    "a",
    "a.example:8080",
    "[::1]:80",
    "127.0.0.1",
    "[2001:db8::7]",
];
const FIELDS: [&str; 10] = [
    "Accept: */*",
    "Content-Type: application/json",
    "Authorization: Bearer wg_1",
    "Connection: keep-alive",
    "X-Empty:",
    "Cookie: a=b; c=d",
    "Expect: 100-continue",
    "Upgrade: websocket",
    "x-obs: \u{e9}",
    "TE: trailers",
];
const LENGTHS: [&str; 3] = [
    "Content-Length: 5",
    "content-length:0",
    "CONTENT-LENGTH: 007 ",
];
const CODINGS: [&str; 3] = [
    "Transfer-Encoding: chunked",
    "transfer-encoding:\tCHUNKED",
    "TRANSFER-ENCODING:chunked ",
];

/// A head that is valid, and whether it is HTTP/1.1.
pub fn head(choices: &mut Choices<'_>) -> String {
    let is_http1_1 = !choices.once_in(8);
    let host = *choices.pick(&HOSTS);
    let (method, target) = (*choices.pick(&METHODS), *choices.pick(&TARGETS));
    let absolute = if choices.once_in(8) {
        format!("http://{host}")
    } else {
        String::new()
    };
    let version = if is_http1_1 { "1.1" } else { "1.0" };
    let mut head = format!("{method} {absolute}{target} HTTP/{version}\r\n");
    let mut fields = vec![format!("Host: {host}")];
    match choices.below(3) {
        1 => fields.push((*choices.pick(&LENGTHS)).to_owned()),
        2 if is_http1_1 => fields.push((*choices.pick(&CODINGS)).to_owned()),
        _ => {}
    }
    for _ in 0..choices.below(6) {
        let place = choices.below(fields.len() + 1);
        fields.insert(place, (*choices.pick(&FIELDS)).to_owned());
    }
    for field in fields {
        head.push_str(&field);
        head.push_str("\r\n");
    }
    head + "\r\n"
}

/// Checks by other means that an accepted head has one meaning.
fn has_one_meaning(head: &[u8]) {
    let text: String = head.iter().map(|byte| char::from(*byte)).collect();
    let text = text.strip_prefix("\r\n").unwrap_or(&text);
    let until = text.find("\r\n\r\n").map_or(text.len(), |end| end + 2);
    let lines: Vec<&str> = text[..until].split_terminator("\r\n").collect();
    assert!(
        lines.iter().all(|line| !line.contains(['\r', '\n'])),
        "a line end inside: {text:?}"
    );
    let words: Vec<&str> = lines[0].split(' ').collect();
    let [method, target, version] = words[..] else {
        panic!("{text:?}")
    };
    assert!(
        !method.is_empty() && method.bytes().all(|b| b.is_ascii_uppercase() || b == b'-'),
        "{text:?}"
    );
    assert!(
        target.bytes().all(|b| b.is_ascii_graphic()) && target.len() <= MAX_TARGET_BYTES,
        "{text:?}"
    );
    let mut named = [const { Vec::new() }; 3];
    assert!(lines.len() - 1 <= MAX_FIELDS, "{text:?}");
    for line in &lines[1..] {
        let (name, value) = line
            .split_once(':')
            .unwrap_or_else(|| panic!("no colon: {text:?}"));
        assert!(!name.is_empty() && !name.contains([' ', '\t']), "{text:?}");
        HeaderName::from_bytes(name.as_bytes()).unwrap();
        let value = value.trim_matches([' ', '\t', '\u{b}', '\u{c}']);
        for (at, wanted) in ["host", "content-length", "transfer-encoding"]
            .iter()
            .enumerate()
        {
            if name.eq_ignore_ascii_case(wanted) {
                named[at].push(value);
            }
        }
    }
    let [hosts, lengths, codings] = named;
    assert!(
        hosts.len() == 1 || hosts.is_empty() && version == "HTTP/1.0",
        "{text:?}"
    );
    assert!(
        lengths
            .iter()
            .all(|length| *length == lengths[0] && length.parse::<u64>().is_ok()),
        "{text:?}"
    );
    assert!(
        lengths
            .iter()
            .all(|length| length.bytes().all(|b| b.is_ascii_digit())),
        "{text:?}"
    );
    assert!(
        codings.len() <= 1
            && codings
                .iter()
                .all(|coding| coding.eq_ignore_ascii_case("chunked")),
        "{text:?}"
    );
    assert!(
        codings.is_empty() || lengths.is_empty() && version == "HTTP/1.1",
        "{text:?}"
    );
    if !target.starts_with('/') {
        let (_, rest) = target.split_once("://").unwrap();
        let authority = rest.split(['/', '?', '#']).next().unwrap();
        assert!(
            hosts
                .iter()
                .all(|host| host.eq_ignore_ascii_case(authority)),
            "{text:?}"
        );
    }
}

#[test]
fn an_accepted_head_of_http1_has_one_meaning() {
    run("framing: HTTP/1", |choices| {
        let head = head(choices).into_bytes();
        let damaged = damage::bytes(choices, head.clone());
        let judged = check_http1(&damaged, MAX_BYTES);
        if damaged == head {
            assert!(judged.is_ok(), "{:?}", String::from_utf8_lossy(&head));
        }
        if judged.is_ok() {
            has_one_meaning(&damaged);
        }
    });
}

#[test]
fn an_accepted_head_of_http2_has_one_meaning() {
    const NAMES: [&str; 7] = [
        "host",
        "content-length",
        "transfer-encoding",
        "te",
        "accept",
        "cookie",
        "x-a",
    ];
    const VALUES: [&str; 10] = [
        "a", "b", "5", "6", "+5", "chunked", "trailers", "", "a b", "a/b",
    ];
    run("framing: HTTP/2", |choices| {
        let target = (*choices.pick(&TARGETS)).to_owned();
        let target = damage::bytes(choices, target.into_bytes());
        let mut request = Request::builder().method(*choices.pick(&METHODS));
        let authority = *choices.pick(&["a", "a:80", "a@b", "a..b", "[::1]"]);
        let target = String::from_utf8_lossy(&target).into_owned();
        request = match choices.below(3) {
            0 => request.uri(target),
            _ => request.uri(format!("https://{authority}{target}")),
        };
        for _ in 0..choices.below(8) {
            let value = *choices.pick(&VALUES);
            let value = HeaderValue::from_static(value);
            request = request.header(*choices.pick(&NAMES), value);
        }
        let Ok(request) = request.body(()) else {
            return;
        };
        let (head, ()) = request.into_parts();
        if check_http2(&head, MAX_BYTES).is_err() {
            return;
        }
        let all = |name: &str| head.headers.get_all(name).iter().collect::<Vec<_>>();
        assert!(all("transfer-encoding").is_empty(), "{head:?}");
        assert!(all("host").len() <= 1, "{head:?}");
        assert!(
            head.uri.authority().is_some() || all("host").len() == 1,
            "{head:?}"
        );
        if let Some(authority) = head.uri.authority() {
            let is_same = |host: &&HeaderValue| {
                host.as_bytes()
                    .eq_ignore_ascii_case(authority.as_str().as_bytes())
            };
            assert!(all("host").iter().all(is_same), "{head:?}");
        }
        let lengths = all("content-length");
        assert!(
            lengths.iter().all(|length| *length == lengths[0]),
            "{head:?}"
        );
        // An authority alone is what `CONNECT` asks for, which the server refuses.
        let target = head.uri.path_and_query().map(|target| target.as_str());
        assert!(
            target.is_none_or(|target| target.starts_with('/')),
            "{head:?}"
        );
    });
}
