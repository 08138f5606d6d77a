#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
use super::*;

fn read(chunks: &[&[u8]]) -> Vec<(String, String)> {
    let mut reader = EventReader::default();
    let mut events = Vec::new();
    let mut take = |event: SseEvent<'_>| {
        events.push((
            event.name.to_owned(),
            String::from_utf8(event.data.to_vec()).unwrap(),
        ));
        Ok::<(), TooLong>(())
    };
    for chunk in chunks {
        reader.feed(chunk, &mut take).unwrap();
    }
    reader.finish(&mut take).unwrap();
    events
}

const STREAM: &str = "\u{feff}: hello\n\nevent: error\ndata: one\ndata:two\n\ndata\n\nid: 7\nretry: 3\ndata:  three\n\n\
                      event: lost\n\ndata: é\n\ndata: last";

fn expected() -> Vec<(String, String)> {
    [
        ("error", "one\ntwo"),
        ("", ""),
        ("", " three"),
        ("", "é"),
        ("", "last"),
    ]
    .map(|(name, data)| (name.to_owned(), data.to_owned()))
    .to_vec()
}

#[test]
fn events_are_the_same_however_the_stream_is_cut_and_its_lines_end() {
    for line_end in ["\n", "\r", "\r\n"] {
        let stream = STREAM.replace('\n', line_end).into_bytes();
        assert_eq!(read(&[&stream]), expected(), "{line_end:?} whole");
        for at in 0..stream.len() {
            let (head, tail) = stream.split_at(at);
            assert_eq!(read(&[head, tail]), expected(), "{line_end:?} cut at {at}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(read(&bytes), expected(), "{line_end:?} byte by byte");
    }
}

#[test]
fn mixed_line_ends_are_read() {
    assert_eq!(
        read(&[b"data: a\r\ndata: b\rdata: c\n\r\n"]),
        [("".into(), "a\nb\nc".into())]
    );
}

#[test]
fn an_event_over_the_limit_is_refused() {
    let mut reader = EventReader::default();
    let chunk = vec![b'x'; 1 << 20];
    reader.feed(b"data: ", |_| Ok::<(), TooLong>(())).unwrap();
    let fed = (0..17).try_for_each(|_| reader.feed(&chunk, |_| Ok::<(), TooLong>(())));
    assert_eq!(fed, Err(TooLong));
}

#[test]
fn a_single_data_line_inside_a_chunk_is_not_copied() {
    let chunk = b"data: {\"a\":1}\n\n".to_vec();
    let range = chunk.as_ptr_range();
    let mut reader = EventReader::default();
    reader
        .feed(&chunk, |event| {
            assert!(range.contains(&event.data.as_ptr()));
            Ok::<(), TooLong>(())
        })
        .unwrap();
}

#[test]
fn a_byte_order_mark_counts_in_front_of_the_first_line_alone() {
    let stream = "\u{feff}data: a\n\u{feff}data: b\n\n".as_bytes();
    for at in 0..stream.len() {
        let (head, tail) = stream.split_at(at);
        assert_eq!(read(&[head, tail]), [("".into(), "a".into())], "{at}");
    }
}

#[test]
fn the_name_of_an_event_is_one_line() {
    let mut out = Vec::new();
    write_name("response.x\ndata: {}\r\n\nevent: y", &mut out);
    out.extend_from_slice(b"data: {}\n\n");
    let mut names = Vec::new();
    let mut reader = EventReader::default();
    let read = reader.feed(&out, |event: SseEvent<'_>| {
        names.push(event.name.to_owned());
        Ok::<(), TooLong>(())
    });
    read.unwrap();
    assert_eq!(names, ["response.x data: {}   event: y"]);
}
