#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use super::written::{event, exception, frame, text};
use super::*;

type Read = Vec<(FrameKind, String, Vec<u8>)>;

fn read(chunks: &[&[u8]]) -> Result<Read, FrameError> {
    let mut reader = FrameReader::default();
    let mut all = Vec::new();
    for chunk in chunks {
        reader.feed(chunk, |frame| {
            all.push((frame.kind, frame.name.to_owned(), frame.payload.to_vec()));
            Ok::<(), FrameError>(())
        })?;
    }
    reader.finish()?;
    Ok(all)
}

/// A stream of three frames, one of them with headers of all types.
fn stream() -> Vec<u8> {
    let (kind, name) = (text("event"), text("odd"));
    let bytes = [&[0, 3][..], b"abc"].concat();
    let headers: [(&str, u8, &[u8]); 12] = [
        ("a", 0, &[]),
        ("b", 1, &[]),
        ("c", 2, &[1]),
        ("d", 3, &[1; 2]),
        ("e", 4, &[1; 4]),
        ("f", 5, &[1; 8]),
        (":message-type", 7, &kind),
        ("g", 6, &bytes),
        ("h", 8, &[1; 8]),
        ("i", 9, &[1; 16]),
        (":event-type", 7, &name),
        ("j", 7, &[0, 0]),
    ];
    [
        event("messageStart", b"{\"role\":\"assistant\"}"),
        frame(&headers, b""),
        exception("throttlingException", b"{\"message\":\"slow\"}"),
    ]
    .concat()
}

#[test]
fn frames_are_the_same_at_every_split() {
    let stream = stream();
    let whole = read(&[&stream]).unwrap();
    let said = |kind, name: &str, payload: &str| (kind, name.to_owned(), payload.into());
    let expected: Read = vec![
        said(FrameKind::Event, "messageStart", "{\"role\":\"assistant\"}"),
        said(FrameKind::Event, "odd", ""),
        said(
            FrameKind::Exception,
            "throttlingException",
            "{\"message\":\"slow\"}",
        ),
    ];
    assert_eq!(whole, expected);
    for at in 0..=stream.len() {
        let (head, tail) = stream.split_at(at);
        assert_eq!(read(&[head, tail]).as_ref(), Ok(&whole), "{at}");
        let (next, tail) = tail.split_at(tail.len().min(5));
        assert_eq!(read(&[head, next, tail]).as_ref(), Ok(&whole), "{at}");
    }
    let bytes: Vec<&[u8]> = stream.chunks(1).collect();
    assert_eq!(read(&bytes), Ok(whole));
}

#[test]
fn a_stream_that_ends_within_a_frame_is_cut() {
    let first = event("a", b"{}");
    let stream = [first.clone(), event("b", b"{}")].concat();
    for at in 0..stream.len() {
        let is_whole = at == 0 || at == first.len();
        let cut = read(&[&stream[..at]]);
        assert_eq!(cut.err(), (!is_whole).then_some(FrameError::Cut), "{at}");
    }
}

#[test]
fn a_changed_byte_is_never_handed_out() {
    let stream = event("contentBlockDelta", b"{\"delta\":{\"text\":\"hi\"}}");
    for at in 0..stream.len() {
        for bit in 0..8 {
            let mut changed = stream.clone();
            changed[at] ^= 1 << bit;
            assert_eq!(read(&[&changed]), Err(FrameError::Checksum), "{at} {bit}");
        }
    }
}

/// Returns the start of a frame with these lengths and the right checksum.
fn prelude(all: u32, headers: u32) -> Vec<u8> {
    let lengths = [all.to_be_bytes(), headers.to_be_bytes()].concat();
    let checksum = crc32fast::hash(&lengths).to_be_bytes();
    [&lengths[..], &checksum].concat()
}

#[test]
fn a_hostile_length_is_refused_before_anything_is_held() {
    let most = MAX_FRAME_BYTES as u32;
    for (all, headers, expected) in [
        (0, 0, FrameError::Malformed),
        (15, 0, FrameError::Malformed),
        (16, 1, FrameError::Malformed),
        (100, 85, FrameError::Malformed),
        (100, u32::MAX, FrameError::Malformed),
        (most + 1, 0, FrameError::TooLong),
        (1 << 31, 0, FrameError::TooLong),
        (u32::MAX, u32::MAX, FrameError::TooLong),
        (most, 0, FrameError::Cut),
    ] {
        let prelude = prelude(all, headers);
        assert_eq!(read(&[&prelude]), Err(expected), "{all} {headers}");
        let bytes: Vec<&[u8]> = prelude.chunks(1).collect();
        assert_eq!(read(&bytes), Err(expected), "{all} {headers}");
    }
    let mut reader = FrameReader::default();
    let fed = reader.feed(&prelude(most, 0), |_| Ok::<(), FrameError>(()));
    assert_eq!((fed, reader.held.capacity() < 100), (Ok(()), true));
}

#[test]
fn headers_that_do_not_fit_the_format_are_refused() {
    let event = text("event");
    let lone = [&[0, 1][..], &[0xff]].concat();
    let long = [0, 9, b'x'];
    let cases: [&[(&str, u8, &[u8])]; 8] = [
        &[],
        &[(":event-type", 7, &event)],
        &[(":message-type", 7, &long)],
        &[(":message-type", 7, &lone)],
        &[(":message-type", 1, &[])],
        &[(":message-type", 7, &[0, 0])],
        &[(":message-type", 7, &event), ("x", 10, &[])],
        &[(":message-type", 7, &event), ("x", 9, &[0; 15])],
    ];
    for headers in cases {
        let frame = frame(headers, b"{}");
        assert_eq!(read(&[&frame]), Err(FrameError::Malformed), "{headers:?}");
    }
    let nameless = frame(&[(":message-type", 7, &event)], b"{}");
    assert_eq!(read(&[&nameless]).unwrap()[0].1, "");
}

#[test]
fn an_error_has_its_code_and_message_in_headers() {
    let [kind, code, message] = ["error", "InternalError", "down"].map(text);
    let headers: [(&str, u8, &[u8]); 3] = [
        (":message-type", 7, &kind),
        (":error-code", 7, &code),
        (":error-message", 7, &message),
    ];
    let read = read(&[&frame(&headers, b"")]).unwrap();
    assert_eq!(
        read,
        [(FrameKind::Error, "InternalError".into(), b"down".to_vec())]
    );
}
