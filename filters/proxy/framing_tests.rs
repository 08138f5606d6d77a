#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use proptest::prelude::*;

use super::*;
use crate::fault::Fault;

const MAX: usize = 32 << 10;

fn judge(head: &str) -> Result<(), HeadError> {
    check_http1(head.as_bytes(), MAX).map(|_| ())
}

/// Judges a head with these lines after a usual first line.
fn fields(lines: &str) -> Result<(), HeadError> {
    judge(&format!("POST /v1/x HTTP/1.1\r\n{lines}\r\n"))
}

/// Judges a target of HTTP/1.1 with the host `a`.
fn target(target: &str) -> Result<(), HeadError> {
    judge(&format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"))
}

#[test]
fn a_usual_head_is_accepted() {
    for head in [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\nGET / HTTP/1.1\r\nhost:a:80\r\n\r\n",
        "GET / HTTP/1.0\r\n\r\n",
        "POST /x?q=%0a HTTP/1.1\r\nHost: [::1]:8080\r\nContent-Length: 5\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 5\r\ncontent-length:5\r\n\r\n",
        "POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: Chunked\r\n\r\n",
        "POST http://a:1/x HTTP/1.1\r\nHost: a:1\r\n\r\n",
        "VERSION-CONTROL /x HTTP/1.1\r\nHost: a\r\nX-Text: \u{e9}\tb\r\n\r\n",
    ] {
        assert_eq!(judge(head), Ok(()), "{head:?}");
    }
}

#[test]
fn two_lengths_are_refused_in_every_form() {
    let host = "Host: a\r\n";
    for (lines, error) in [
        (
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            HeadError::TwoLengths,
        ),
        (
            "transfer-encoding: chunked\r\ncontent-length: 5\r\n",
            HeadError::TwoLengths,
        ),
        (
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            HeadError::LengthTwice,
        ),
        (
            "Content-Length: 5\r\nContent-Length: 05\r\n",
            HeadError::LengthTwice,
        ),
        (
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
            HeadError::CodingTwice,
        ),
        ("Transfer-Encoding: chunked, chunked\r\n", HeadError::Coding),
        ("Transfer-Encoding: identity\r\n", HeadError::Coding),
        ("Transfer-Encoding: \"chunked\"\r\n", HeadError::Coding),
        ("Transfer-Encoding: chunked;q=1\r\n", HeadError::Coding),
        ("Transfer-Encoding: chunked\u{b}\r\n", HeadError::Coding),
        ("Transfer-Encoding:\r\n", HeadError::Coding),
        ("Content-Length: 5, 5\r\n", HeadError::Length),
        ("Content-Length:\r\n", HeadError::Length),
        ("Content-Length: +5\r\n", HeadError::Length),
        ("Content-Length: -1\r\n", HeadError::Length),
        ("Content-Length: 0x5\r\n", HeadError::Length),
        (
            "Content-Length: 18446744073709551616\r\n",
            HeadError::Length,
        ),
    ] {
        assert_eq!(fields(&format!("{host}{lines}")), Err(error), "{lines:?}");
    }
    let old = "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(judge(old), Err(HeadError::CodingVersion));
}

#[test]
fn a_line_ends_with_cr_lf_and_begins_with_a_name() {
    for (lines, error) in [
        ("Host: a\n", HeadError::LineEnd),
        ("Host: a\r\nX: b\rc\r\n", HeadError::LineEnd),
        ("Host: a\r\r\n", HeadError::LineEnd),
        ("Host: a\r\n folded\r\n", HeadError::FoldedLine),
        ("Host: a\r\n\tfolded\r\n", HeadError::FoldedLine),
        ("Host : a\r\n", HeadError::FieldName),
        ("Host: a\r\nno colon\r\n", HeadError::FieldName),
        ("Host: a\r\n: empty\r\n", HeadError::FieldName),
        ("Host: a\r\nX\u{e9}: b\r\n", HeadError::FieldName),
        ("Host: a\r\nX\u{7f}: b\r\n", HeadError::FieldName),
    ] {
        assert_eq!(fields(lines), Err(error), "{lines:?}");
    }
    assert_eq!(
        judge("GET / HTTP/1.1\nHost: a\r\n\r\n"),
        Err(HeadError::LineEnd)
    );
    assert_eq!(
        judge("\nGET / HTTP/1.1\r\nHost: a\r\n\r\n"),
        Err(HeadError::LineEnd)
    );
}

#[test]
fn a_host_is_one_host() {
    for (lines, error) in [
        ("X: y\r\n", HeadError::HostMissing),
        ("Host: a\r\nhost: a\r\n", HeadError::HostTwice),
        ("Host:\r\n", HeadError::Host),
        ("Host: a b\r\n", HeadError::Host),
        ("Host: a/b\r\n", HeadError::Host),
        ("Host: u@a\r\n", HeadError::Host),
        ("Host: a:x\r\n", HeadError::Host),
        ("Host: :80\r\n", HeadError::Host),
        ("Host: [::1\r\n", HeadError::Host),
        ("Host: []\r\n", HeadError::Host),
        ("Host: \u{e9}\r\n", HeadError::Host),
    ] {
        assert_eq!(fields(lines), Err(error), "{lines:?}");
    }
}

#[test]
fn a_target_is_a_path_of_this_host() {
    for (text, error) in [
        ("*", HeadError::TargetForm),
        ("a", HeadError::TargetForm),
        ("a:443", HeadError::TargetForm),
        ("ftp://a/x", HeadError::TargetForm),
        ("http:/a/x", HeadError::TargetForm),
        ("http:///x", HeadError::TargetForm),
        ("http://b/x", HeadError::OtherHost),
        ("http://a:81/x", HeadError::OtherHost),
        ("http://A/x", HeadError::OtherHost),
        ("http://u@a/x", HeadError::TargetForm),
        ("http://a\\b/x", HeadError::TargetForm),
        ("http://a%20/x", HeadError::TargetForm),
        ("/a<b", HeadError::TargetBytes),
        ("/a`b", HeadError::TargetBytes),
        ("/?a=\"b\"", HeadError::TargetBytes),
        ("/?a>b", HeadError::TargetBytes),
        ("/?a\u{1}", HeadError::TargetBytes),
        ("/?a\u{7f}", HeadError::TargetBytes),
        ("/?a#b\u{7f}", HeadError::TargetBytes),
        ("/\u{e9}", HeadError::TargetBytes),
        ("/\u{7f}", HeadError::TargetBytes),
        ("/\u{1}", HeadError::TargetBytes),
        ("/\t", HeadError::TargetBytes),
        ("/a b", HeadError::RequestLine),
        ("", HeadError::TargetForm),
    ] {
        assert_eq!(target(text), Err(error), "{text:?}");
    }
    let long = format!("/{}", "a".repeat(MAX_TARGET_BYTES));
    assert_eq!(target(&long), Err(HeadError::TargetTooLong));
    assert_eq!(target(&long[1..].replacen('a', "/", 1)), Ok(()));
    for head in [
        "GET / HTTP/1.2\r\n",
        "GET /\r\n",
        "GET  / HTTP/1.1\r\n",
        "\r\n",
    ] {
        let head = format!("{head}Host: a\r\n\r\n");
        assert_eq!(judge(&head), Err(HeadError::RequestLine), "{head:?}");
    }
}

#[test]
fn a_target_has_what_the_parser_behind_takes() {
    for byte in 0x21..0x7f_u8 {
        for text in [
            format!("/{}", char::from(byte)),
            format!("/?{}", char::from(byte)),
        ] {
            let is_taken = text.parse::<http::uri::PathAndQuery>().is_ok();
            assert_eq!(target(&text).is_ok(), is_taken, "{text:?}");
        }
    }
    assert_eq!(target("/a?b?c#d\"<>"), Ok(()));
}

#[test]
fn a_value_has_no_control_byte() {
    for byte in 0_u8..=0xff {
        let head = [
            b"GET / HTTP/1.1\r\nHost: a\r\nX: a",
            &[byte][..],
            b"b\r\n\r\n",
        ]
        .concat();
        let judged = check_http1(&head, MAX);
        let expected = match byte {
            b'\r' | b'\n' => Err(HeadError::LineEnd),
            b'\t' | b' '..=b'~' | 0x80.. => Ok(BodyFraming::Length(0)),
            _ => Err(HeadError::FieldValue),
        };
        assert_eq!(judged, expected, "{byte:#x}");
    }
}

#[test]
fn a_connection_takes_no_header_away_that_has_to_be_sent_on() {
    let judge = |options: &str| fields(&format!("Host: a\r\n{options}"));
    let refused = Err(HeadError::ConnectionOption);
    for names in [
        "keep-alive",
        "close, upgrade",
        "Authorization,, x-a ",
        "",
        "hosts",
    ] {
        assert_eq!(
            judge(&format!("Connection: {names}\r\n")),
            Ok(()),
            "{names:?}"
        );
    }
    for names in [
        "host",
        "close, HOST",
        "X-Forwarded-For",
        ":path",
        "\"a\"",
        "a b",
        "a;b",
    ] {
        assert_eq!(
            judge(&format!("connection: {names}\r\n")),
            refused,
            "{names:?}"
        );
    }
    assert_eq!(judge(&"Connection: a\r\n".repeat(MAX_OPTIONS)), Ok(()));
    assert_eq!(
        judge(&format!("Connection: {}\r\n", "a,".repeat(MAX_OPTIONS + 1))),
        refused
    );
}

#[test]
fn a_body_is_framed_by_its_length_or_by_chunks() {
    let framing = |lines: &str| {
        let head = format!("POST / HTTP/1.1\r\nHost: a\r\n{lines}\r\n");
        check_http1(head.as_bytes(), MAX).unwrap()
    };
    assert_eq!(framing(""), BodyFraming::Length(0));
    assert_eq!(framing("Content-Length: 007\r\n"), BodyFraming::Length(7));
    let most = "9".repeat(MAX_LENGTH_DIGITS);
    let length = BodyFraming::Length(most.parse().unwrap());
    assert_eq!(framing(&format!("Content-Length: {most}\r\n")), length);
    assert_eq!(
        framing("Transfer-Encoding: chunked\r\n"),
        BodyFraming::Chunks
    );
}

#[test]
fn a_method_is_upper_case_letters() {
    for method in ["TRACE", "CONNECT", "get", "Post", "G3T", "GET;", ""] {
        let head = format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(judge(&head), Err(HeadError::Method), "{method}");
    }
}

#[test]
fn a_large_head_has_its_own_statuses() {
    let many = "X: y\r\n".repeat(MAX_FIELDS);
    assert_eq!(
        fields(&format!("Host: a\r\n{many}")),
        Err(HeadError::TooManyFields)
    );
    let large = format!("Host: a\r\nX: {}\r\n", "y".repeat(MAX));
    assert_eq!(fields(&large), Err(HeadError::TooLarge(MAX)));
    assert_eq!(
        target(&format!("/{}", "a".repeat(MAX))),
        Err(HeadError::TargetTooLong)
    );
    for (error, status) in [
        (HeadError::TooLarge(1), 431),
        (HeadError::TooManyFields, 431),
        (HeadError::TargetTooLong, 414),
        (HeadError::Host, 400),
    ] {
        assert_eq!(Fault::from(error).status(), status);
    }
}

fn http2(uri: &str, headers: &[(&str, &str)]) -> Result<(), HeadError> {
    let mut request = http::Request::builder().uri(uri);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    check_http2(&request.body(()).unwrap().into_parts().0, 1024)
}

#[test]
fn http2_has_the_same_rules() {
    assert_eq!(http2("http://a/x?y", &[("content-length", "5")]), Ok(()));
    assert_eq!(http2("/x", &[("host", "a")]), Ok(()));
    assert_eq!(http2("/x", &[]), Err(HeadError::HostMissing));
    assert_eq!(http2("http://a/x", &[("host", "A")]), Ok(()));
    let other = http2("http://a/x", &[("host", "b")]);
    assert_eq!(other, Err(HeadError::OtherHost));
    let coding = [("host", "a"), ("transfer-encoding", "chunked")];
    assert_eq!(http2("/x", &coding), Err(HeadError::CodingVersion));
    let lengths = [("content-length", "5"), ("content-length", "6")];
    assert_eq!(http2("http://a/x", &lengths), Err(HeadError::LengthTwice));
    let large = "y".repeat(1024);
    assert_eq!(
        http2("http://a/x", &[("x", &large)]),
        Err(HeadError::TooLarge(1024))
    );
}

proptest! {
    /// No bytes panic, and a head that is accepted has no line end but CR LF.
    #[test]
    fn any_bytes_are_judged(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        line in 0_usize..5,
    ) {
        let starts: [&[u8]; 5] = [
            b"", b"GET ", b"GET / HTTP/1.1\r\n", b"GET / HTTP/1.1\r\nHost: a\r\n", b"GET / HTTP/1.1\r\nHost: ",
        ];
        let head = [starts[line], &bytes, b"\r\n\r\n"].concat();
        if check_http1(&head, MAX).is_ok() {
            let end = memchr::memmem::find(&head, b"\r\n\r\n").unwrap();
            for (at, byte) in head[..end].iter().enumerate() {
                prop_assert!(*byte != b'\n' || head[at - 1] == b'\r');
            }
        }
    }
}
