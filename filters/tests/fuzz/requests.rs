//! Requests on one connection: each has its own bytes however they come, and a body ends where a simple reference says.

use filters::proxy::{RequestFollower, RequestRefusal};

use crate::choices::Choices;
use crate::damage;
use crate::run::run;

const MAX_BYTES: usize = 32 << 10;
const EXTENSIONS: [&str; 4] = ["", ";a", ";a=\"b c\"", " ;a"];
const TRAILERS: [&str; 3] = ["", "X-Sum: 1\r\n", "a:\r\nb: \u{e9}\r\n"];

/// A body of chunks and what it says.
fn chunked(choices: &mut Choices<'_>) -> (Vec<u8>, Vec<u8>) {
    let (mut body, mut said) = (Vec::new(), Vec::new());
    for _ in 0..choices.below(4) {
        let data = match choices.below(3) {
            0 => choices.bytes(40),
            1 => b"\r\n0\r\n\r\nGET / HTTP/1.1\r\n\r\n".to_vec(),
            _ => vec![b'x'; choices.below(300)],
        };
        if data.is_empty() {
            continue;
        }
        let (zeros, extension) = ("0".repeat(choices.below(4)), choices.pick(&EXTENSIONS));
        body.extend(format!("{zeros}{:X}{extension}\r\n", data.len()).bytes());
        body.extend(&data);
        body.extend(b"\r\n");
        said.extend(data);
    }
    let (extension, trailers) = (choices.pick(&EXTENSIONS), choices.pick(&TRAILERS));
    body.extend(format!("0{extension}\r\n{trailers}\r\n").bytes());
    (body, said)
}

pub fn request(choices: &mut Choices<'_>) -> Vec<u8> {
    let head = "POST /content/v2 HTTP/1.1\r\nHost: a\r\n";
    match choices.below(3) {
        0 => format!("{head}\r\n").into_bytes(),
        1 => {
            let body = choices.bytes(60);
            let head = format!("{head}Content-Length: {}\r\n\r\n", body.len());
            [head.as_bytes(), &body].concat()
        }
        _ => {
            let head = format!("{head}Transfer-Encoding: chunked\r\n\r\n");
            [head.as_bytes(), &chunked(choices).0].concat()
        }
    }
}

/// The whole requests that these pieces bring, and whether something was refused.
fn follow(pieces: &[&[u8]]) -> (Vec<Vec<u8>>, bool) {
    let mut follower = RequestFollower::new(MAX_BYTES);
    let (mut held, mut running, mut whole) = (Vec::new(), Vec::new(), Vec::new());
    for piece in pieces {
        held.extend_from_slice(piece);
        loop {
            match follower.follow(&held) {
                Ok(0) => break,
                Ok(count) => running.extend(held.drain(..count)),
                Err(RequestRefusal::Head(_) | RequestRefusal::Body(_)) => return (whole, true),
            }
            if follower.is_whole() {
                whole.push(std::mem::take(&mut running));
                follower.begin_next();
            }
        }
    }
    (whole, false)
}

#[test]
fn each_request_has_its_own_bytes_however_they_come() {
    run("framing: requests", |choices| {
        let requests: Vec<Vec<u8>> = (0..=choices.below(4)).map(|_| request(choices)).collect();
        let bytes = requests.concat();
        let damaged = damage::bytes(choices, bytes.clone());
        let at_once = follow(&[&damaged]);
        let pieces = choices.cut(&damaged);
        assert_eq!(
            follow(&pieces),
            at_once,
            "{:?}",
            String::from_utf8_lossy(&damaged)
        );
        if damaged == bytes {
            assert_eq!(at_once, (requests, false));
        }
    });
}

/// Returns the line at a place, each byte as a character, and where the next one begins.
fn line_at(body: &[u8], at: usize) -> Option<(String, usize)> {
    let rest = body.get(at..)?;
    let end = rest.windows(2).position(|two| two == b"\r\n")?;
    let line = rest[..end].iter().map(|byte| char::from(*byte)).collect();
    Some((line, at + end + 2))
}

/// Reads chunks line by line. Returns the body's length and what it says; `None` if it is not whole or not good.
fn decode(body: &[u8]) -> Option<(usize, Vec<u8>)> {
    let is_text = |text: &str| !text.contains(|c: char| c.is_ascii_control() && c != '\t');
    let is_name = |name: &str| http::HeaderName::from_bytes(name.as_bytes()).is_ok();
    let (mut at, mut said) = (0, Vec::new());
    loop {
        let (line, data) = line_at(body, at)?;
        let (digits, extension) = line
            .split_once(';')
            .map_or((&*line, ""), |(digits, extension)| {
                (digits.trim_end_matches([' ', '\t']), extension)
            });
        let is_size = (1..=15).contains(&digits.len())
            && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
            && is_text(extension);
        let size = usize::from_str_radix(digits, 16).ok().filter(|_| is_size)?;
        at = data;
        if size == 0 {
            break;
        }
        let end = at.checked_add(size)?;
        said.extend_from_slice(body.get(at..end)?);
        (body.get(end..end + 2)? == b"\r\n").then_some(())?;
        at = end + 2;
    }
    loop {
        let (line, next) = line_at(body, at)?;
        at = next;
        if line.is_empty() {
            return Some((at, said));
        }
        let (name, value) = line.split_once(':')?;
        (is_name(name) && is_text(value)).then_some(())?;
    }
}

#[test]
fn a_chunked_body_ends_where_a_simple_reader_ends_it() {
    const HEAD: &[u8] = b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    run("framing: chunks", |choices| {
        let (body, said) = chunked(choices);
        assert_eq!(decode(&body), Some((body.len(), said)));
        let mut damaged = damage::bytes(choices, body);
        damaged.extend(b"GET / HTTP/1.1\r\n");
        let (whole, _) = follow(&[HEAD, &damaged]);
        let length = whole.first().map(|request| request.len() - HEAD.len());
        let expected = decode(&damaged).map(|(length, _)| length);
        assert_eq!(length, expected, "{:?}", String::from_utf8_lossy(&damaged));
    });
}
