//! Event streams: the same events however they are cut, and those that the standard finds.

use filters::sse::{EventReader, SseEvent, TooLong};

use crate::choices::Choices;
use crate::damage;
use crate::run::run;

type Events = Vec<(String, Vec<u8>)>;

pub fn stream(choices: &mut Choices<'_>) -> Vec<u8> {
    const ENDS: [&str; 3] = ["\n", "\r\n", "\r"];
    const LINES: [&str; 12] = [
        "data: {\"a\":1}",
        "data:x",
        "data",
        "data: ",
        "event: error",
        "event:",
        ": comment",
        "id: 1",
        "retry: 5",
        "",
        "unknown: 1",
        "data:  two",
    ];
    let end = *choices.pick(&ENDS);
    let mut stream = if choices.once_in(8) {
        "\u{feff}".to_owned()
    } else {
        String::new()
    };
    for _ in 0..choices.below(24) {
        let end = if choices.once_in(16) {
            *choices.pick(&ENDS)
        } else {
            end
        };
        let line = *choices.pick(&LINES);
        stream.push_str(line);
        stream.push_str(end);
        if choices.once_in(2) {
            stream.push_str(end);
        }
    }
    stream.into_bytes()
}

fn read(pieces: &[&[u8]]) -> Events {
    let mut reader = EventReader::default();
    let mut events = Vec::new();
    let mut take = |event: SseEvent<'_>| {
        events.push((event.name.to_owned(), event.data.to_vec()));
        Ok::<(), TooLong>(())
    };
    for piece in pieces {
        reader.feed(piece, &mut take).unwrap();
    }
    reader.finish(&mut take).unwrap();
    events
}

/// The standard's own words, over the whole stream. An event that the end cuts off counts too.
fn reference(stream: &[u8]) -> Events {
    let stream = stream.strip_prefix(b"\xef\xbb\xbf").unwrap_or(stream);
    let mut lines: Vec<Vec<u8>> = vec![Vec::new()];
    let mut after_cr = false;
    for &byte in stream {
        match byte {
            b'\n' if after_cr => {}
            b'\n' | b'\r' => lines.push(Vec::new()),
            byte => lines.last_mut().unwrap().push(byte),
        }
        after_cr = byte == b'\r';
    }
    let last = lines.pop().unwrap();
    let mut events = Events::new();
    let (mut name, mut data) = (String::new(), None::<Vec<u8>>);
    // The last line has no end: it counts if it is data.
    let ended = lines.len();
    for (number, line) in lines.into_iter().chain([last]).enumerate() {
        if line.is_empty() {
            if number < ended {
                events.extend(data.take().map(|data| (std::mem::take(&mut name), data)));
                name.clear();
            }
            continue;
        }
        let colon = line
            .iter()
            .position(|byte| *byte == b':')
            .unwrap_or(line.len());
        let value = line.get(colon + 1..).unwrap_or_default();
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match &line[..colon] {
            b"data" => match &mut data {
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
                None => data = Some(value.to_vec()),
            },
            b"event" if number < ended => name = String::from_utf8_lossy(value).into_owned(),
            _ => {}
        }
    }
    events.extend(data.map(|data| (name, data)));
    events
}

#[test]
fn events_are_the_same_however_a_stream_is_cut() {
    run("sse: cuts", |choices| {
        let stream = stream(choices);
        let stream = damage::bytes(choices, stream);
        let whole = read(&[&stream]);
        let pieces = choices.cut(&stream);
        assert_eq!(
            read(&pieces),
            whole,
            "{:?} {pieces:?}",
            String::from_utf8_lossy(&stream)
        );
    });
}

#[test]
fn events_are_those_of_the_standard() {
    run("sse: standard", |choices| {
        let stream = stream(choices);
        let stream = damage::bytes(choices, stream);
        assert_eq!(
            read(&[&stream]),
            reference(&stream),
            "{:?}",
            String::from_utf8_lossy(&stream)
        );
    });
}
